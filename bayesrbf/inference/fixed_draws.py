"""The variational objective over fixed draws: a deterministic function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.stats import ortho_group

from bayesrbf.inference.laplace import GaussianApproximation
from bayesrbf.inference.progress import Track, silent
from bayesrbf.numerics.log_posterior import LogPosterior

_STEP: Final = 1e-5  # Step of a difference of the gradient, in posterior standard deviations.


def fixed_draws(
    dimension: int, pairs: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw coordinate"]:
    """Standard normal draws whose means are exactly 0 and whose squares have mean exactly 1.

    There are ``pairs`` draws z, and each comes with -z. Coordinates in one block of ``pairs`` are
    exactly uncorrelated: they are columns of a random rotation, times the root of ``pairs``.

    >>> z = fixed_draws(3, 8, np.random.default_rng(0))
    >>> np.allclose(z.mean(axis=0), 0), np.allclose(z.T @ z / 16, np.eye(3))
    (True, True)
    """
    blocks = [
        ortho_group.rvs(pairs, random_state=rng) * np.sqrt(pairs)
        for _ in range(0, dimension, pairs)
    ]
    half = np.concatenate([*blocks, np.empty((pairs, 0))], axis=1)[:, :dimension]
    return np.concatenate([half, -half])


@dataclass(frozen=True)
class FixedDrawObjective:
    r"""Minus the evidence lower bound of an independent Gaussian, less a constant.

    .. math:: f(v, r) = -\frac{1}{M} \sum_j \log p(m + e^s z_j) - \sum_i s_i, \quad
        m = \hat\theta + C v, \quad s = s_0 + r,

    with :math:`\hat\theta` and C of Laplace's approximation and :math:`s_0` the
    spread of its independent counterpart: one unit of any of eta = (v, r) is
    about one posterior standard deviation, whatever the units of theta.
    """

    log_posterior: LogPosterior
    gaussian: GaussianApproximation  # Laplace's approximation.
    z: Float[np.ndarray, "fixed coordinate"]  # The fixed draws; the second half is minus the first.

    @cached_property
    def log_sd(self) -> Float[np.ndarray, " coordinate"]:
        """Log of the spread s0, one over the root of the precision's diagonal."""
        return -0.5 * np.log(np.diag(self.gaussian.precision))

    def mean_and_log_sd(
        self, eta: Float[np.ndarray, " argument"]
    ) -> tuple[Float[np.ndarray, " coordinate"], Float[np.ndarray, " coordinate"]]:
        """Mean m and log spread s of the Gaussian at eta, in coordinates theta."""
        v, r = np.split(eta, 2)
        return self.gaussian.mode + self.gaussian.factor @ v, self.log_sd + r

    def of_draws(
        self, eta: Float[np.ndarray, " argument"]
    ) -> tuple[Float[np.ndarray, " fixed"], Float[np.ndarray, "fixed argument"]]:
        """Terms of the objective, one for every fixed draw, and their gradients.

        The values ``-log p(m + e^s z_j) - sum(s)`` may be infinite or NaN.
        """
        mean, log_sd = self.mean_and_log_sd(eta)
        with np.errstate(over="ignore", invalid="ignore"):  # a search may try any spread
            deviations = np.exp(log_sd) * self.z
            values, by_theta = self._at(mean, deviations)
            by_mean = -by_theta @ self.gaussian.factor
            by_spread = -by_theta * deviations - 1
        return -values - log_sd.sum(), np.concatenate([by_mean, by_spread], axis=1)

    def __call__(
        self, eta: Float[np.ndarray, " argument"]
    ) -> tuple[float, Float[np.ndarray, " argument"]]:
        """Value in nats and gradient.

        Where a draw has no density the value is infinite and the gradient zero.
        """
        values, gradients = self.of_draws(eta)
        if not (np.all(np.isfinite(values)) and np.all(np.isfinite(gradients))):
            return np.inf, np.zeros_like(eta)
        return float(values.mean()), gradients.mean(axis=0)

    def hessian(
        self, eta: Float[np.ndarray, " argument"], track: Track = silent
    ) -> Float[np.ndarray, "argument argument"]:
        r"""Second derivatives, from the change of every draw's gradient along coordinates.

        A step of the mean moves all draws alike, so that the columns :math:`H_j e_l` of
        their second derivatives are known one by one; with :math:`d_j = e^s z_j`,

        .. math:: f_{vv} = -C' \Bigl(\frac{1}{M} \sum_j H_j\Bigr) C, \quad
            f_{rv} = -\Bigl(\frac{1}{M} \sum_j \operatorname{diag}(d_j) H_j\Bigr) C, \quad
            f_{rr} = -\frac{1}{M} \sum_j \operatorname{diag}(d_j) \left( H_j
                \operatorname{diag}(d_j) + \operatorname{diag}(g_j) \right).
        """
        mean, log_sd = self.mean_and_log_sd(eta)
        deviations = np.exp(log_sd) * self.z
        _, gradients = self._at(mean, deviations)
        factor = self.gaussian.factor
        bend, cross, of_spread = np.empty((3, *factor.shape))
        for axis, sd in track(list(enumerate(np.exp(self.log_sd))), "Linear response"):
            moved_mean = mean.copy()
            moved_mean[axis] += _STEP * sd
            _, moved = self._at(moved_mean, deviations)
            # Divided by the step that rounding left, not by the one that was asked for.
            change = (moved - gradients) / (moved_mean[axis] - mean[axis])
            bent = change * deviations
            bend[:, axis] = change.mean(axis=0)
            cross[:, axis] = bent.mean(axis=0)
            of_spread[:, axis] = bent.T @ deviations[:, axis] / len(bent)
        of_spread += np.diag((gradients * deviations).mean(axis=0))
        by_mean, cross = factor.T @ bend @ factor, cross @ factor
        result = -np.block([[by_mean, cross.T], [cross, of_spread]])
        return (result + result.T) / 2

    def _at(
        self,
        mean: Float[np.ndarray, " coordinate"],
        deviations: Float[np.ndarray, "fixed coordinate"],
    ) -> tuple[Float[np.ndarray, " fixed"], Float[np.ndarray, "fixed coordinate"]]:
        """Log density and gradient of every draw."""
        return self.log_posterior.values_and_gradients(mean + deviations)

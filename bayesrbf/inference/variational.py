"""Variational inference: the Gaussian nearest to a posterior, by fixed draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.stats import ortho_group

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.tasks import Track, progress, silent
from bayesrbf.inference.draws import Draws, GaussianSampling, bounded_curvature, check_numbers
from bayesrbf.inference.laplace import GaussianApproximation, approximate

# The variational objective over fixed draws: a deterministic function.


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
            shifted_mean = mean.copy()
            shifted_mean[axis] += _STEP * sd
            _, shifted_gradients = self._at(shifted_mean, deviations)
            # Divided by the step that rounding left, not by the one that was asked for.
            change = (shifted_gradients - gradients) / (shifted_mean[axis] - mean[axis])
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


# Variational inference: the Gaussian nearest to a posterior, by a deterministic objective.


COVARIANCES: Final = ("linear_response", "mean_field")
PAIRS: Final = 16
"""Pairs of fixed draws.

With 16 the means of iris with holes are right to .03 posterior standard deviations and the log
spreads to .03 (root mean square); 16 pairs of independent draws leave .2 and .14.
"""

_FLAT: Final = 1e-4
"""Curvature, relative to Laplace's, below which it counts as zero: the spread would be 100 times
as wide."""
_LEVEL: Final = 1e-3
"""Gradient at which no mean is further than 1e-3 posterior standard deviations from its optimum."""


def advi(
    log_posterior: LogPosterior,
    start: Float[np.ndarray, " coordinate"],
    *,
    draws: int = 1000,
    chains: int = 4,
    random_state: int | np.random.Generator | None = None,
    resample: bool = False,
    covariance: str = "linear_response",
    pairs: int = PAIRS,
    max_iter: int = 200,
    progress_bar: bool = False,
) -> Draws:
    r"""Draw from the Gaussian that is nearest to the posterior.

    .. math:: q = N(m, \operatorname{diag}(e^{2 s})), \quad
        \max_{m, s} \; \sum_i s_i + \frac{1}{M} \sum_{j=1}^M \log p(m + e^s z_j),

    with M = 2 ``pairs`` draws z that never change: the objective has no noise, so that L-BFGS finds
    its maximum and its curvature means something. The search begins at ``start``, where the density
    must be finite. The draws come in pairs z, -z whose coordinates are exactly uncorrelated, in
    blocks of as many coordinates as there are pairs.

    A Gaussian with independent coordinates is too narrow where the posterior's
    are not. The linear response of its mean,

    .. math:: \operatorname{Cov}(\theta) = \left.
        \frac{\partial m(t)}{\partial t} \right|_{t = 0}, \quad
        m(t) = \text{the mean when } t'\theta \text{ is added to } \log p,

    which is the block of m in the inverse of the objective's second
    derivatives, mends that; for a normal posterior it is the covariance. It
    costs M gradients a coordinate: with more than a thousand of them
    ``covariance="mean_field"`` saves minutes; the mean is the same. All draws of all chains are
    independent; ``resample`` replaces them by a Pareto-smoothed importance resample. An interrupt
    (Ctrl-C) returns what was drawn, marked incomplete, or is raised before the first draw.

    See Giordano, Ingram, Broderick (2024), Black box variational inference with a deterministic
    objective, JMLR 25, sections 3 and 4.
    """
    check_numbers("advi", draws=draws, chains=chains)
    _check(covariance, pairs)
    rng = np.random.default_rng(random_state)
    sampling = GaussianSampling("advi", draws, chains, rng, resample)
    log_posterior = log_posterior.prepared_for_many()
    with progress(progress_bar) as track:
        gaussian = approximate(log_posterior, start, track)
        z = fixed_draws(gaussian.mode.size, pairs, rng)
        objective = FixedDrawObjective(log_posterior, gaussian, z)
        fit = fit_gaussian(
            objective,
            linear_response=covariance == "linear_response",
            max_iter=max_iter,
            track=track,
        )
        attributes = {**fit.attributes, "covariance": covariance, "fixed_draws": 2 * pairs}
        return sampling.of_gaussian(
            log_posterior, fit.mean, fit.factor, attributes=attributes, track=track
        )


def _check(covariance: str, pairs: int) -> None:
    """ValueError for invalid arguments of this method."""
    if covariance not in COVARIANCES:
        raise ValueError(
            f"advi(covariance=...) must be one of {COVARIANCES}; received {covariance!r}."
        )
    if pairs < 2:
        raise ValueError(f"advi(pairs=...) must be at least 2; received {pairs!r}.")


@dataclass(frozen=True)
class VariationalFit:
    """The Gaussian that maximises the objective, in the unconstrained coordinates."""

    mean: Float[np.ndarray, " coordinate"]
    log_sd: Float[np.ndarray, " coordinate"]  # Log spreads of its independent coordinates.
    # C with C C' the covariance of the draws: linear response or mean field.
    factor: Float[np.ndarray, "coordinate coordinate"]
    elbo: float  # Evidence lower bound of the independent Gaussian, in nats.
    elbo_error: float  # Its standard error over choices of the fixed draws.
    # Largest standard error of a mean over such choices, in posterior standard deviations.
    mean_error: float
    slope: float  # Largest entry of the gradient, in nats per posterior standard deviation.
    n_iter: int  # Steps of L-BFGS.
    n_indefinite: int  # Directions without a linear response, whose spread is Laplace's at most.

    @property
    def converged(self) -> bool:
        """Whether the gradient is zero within the tolerance."""
        return self.slope <= _LEVEL

    @property
    def sentence(self) -> str:
        """Message on the convergence of the search."""
        if self.converged:
            return f"The variational objective is level after {self.n_iter} steps."
        return (
            f"The variational objective still rises after {self.n_iter} steps: raise max_iter or "
            "pairs, or use refine('nuts')."
        )

    @property
    def curvature(self) -> str:
        """Message on the linear response and its indefinite directions."""
        if self.n_indefinite == 0:
            return "The variational objective curves upwards in every direction."
        return (
            f"The linear response has no spread in {self.n_indefinite} of {self.mean.size} "
            "directions; it was set to Laplace's at most: use refine('nuts') before trusting "
            "intervals."
        )

    @property
    def attributes(self) -> dict[str, float | int | str]:
        """Figures for the attributes of the draws."""
        return {
            "converged": int(self.converged),
            "convergence": self.sentence,
            "curvature": self.curvature,
            "elbo": self.elbo,
            "elbo_error": self.elbo_error,
            "gradient_norm": self.slope,
            "mean_error": self.mean_error,
            "n_indefinite": self.n_indefinite,
        }


def fit_gaussian(
    objective: FixedDrawObjective,
    *,
    linear_response: bool = True,
    max_iter: int = 200,
    track: Track = silent,
) -> VariationalFit:
    """Gaussian that minimises the objective, with the covariance of its draws.

    The draws have the linear response's covariance, or else the independent Gaussian's own.
    """
    # Given its fixed draws the objective has no noise: the gradient can end the search.
    options = {"maxiter": max_iter, "maxcor": 20, "ftol": 1e-14, "gtol": _LEVEL / 10}
    result = minimize(objective, _start(objective), jac=True, method="L-BFGS-B", options=options)
    eta = np.asarray(result.x, dtype=np.float64)
    mean, log_sd = objective.mean_and_log_sd(eta)
    values, gradients = objective.of_draws(eta)
    response = _linear_response(objective, eta, track) if linear_response else _laplace(objective)
    # The squares are minus log q: for q = p the excess is constant.
    excess = values - 0.5 * np.sum(objective.z**2, axis=1)
    return VariationalFit(
        mean=mean,
        log_sd=log_sd,
        factor=response.factor if linear_response else np.diag(np.exp(log_sd)),
        # The entropy without its log spreads, which are in the values.
        elbo=float(0.5 * mean.size * (1 + np.log(2 * np.pi)) - values.mean()),
        elbo_error=float(_standard_error(excess)),
        mean_error=_mean_error(gradients, response, objective.gaussian.factor),
        slope=float(np.max(np.abs(gradients.mean(axis=0)), initial=0.0)),
        n_iter=int(result.nit),
        n_indefinite=response.n_indefinite,
    )


@dataclass(frozen=True)
class _Response:
    """Linear response of mean and spreads to a linear term in the log density.

    The mean moves by C C' times the term's gradient in theta; gradients in the log spreads, times
    the coupling, act like gradients of the mean in v.
    """

    factor: Float[np.ndarray, "coordinate coordinate"]
    coupling: Float[np.ndarray, "coordinate coordinate"]
    n_indefinite: int


def _laplace(objective: FixedDrawObjective) -> _Response:
    """Response of Laplace's approximation, without the objective's curvature."""
    factor = objective.gaussian.factor
    return _Response(factor, np.zeros_like(factor), 0)


def _linear_response(
    objective: FixedDrawObjective, eta: Float[np.ndarray, " argument"], track: Track
) -> _Response:
    r"""Linear response from the block of the mean in the inverse Hessian: a Schur complement.

    .. math:: (H_{vv} - H_{vr} H_{rr}^{-1} H_{rv})^{-1}, \quad \theta = \hat\theta + C v.
    """
    hessian = objective.hessian(eta, track)
    half = eta.size // 2
    of_mean, cross, of_spread = hessian[:half, :half], hessian[half:, :half], hessian[half:, half:]
    curvatures, axes, flat = bounded_curvature(of_spread, _FLAT)
    coupling = axes @ ((axes.T @ cross) / curvatures[:, None])
    curvatures, axes, indefinite = bounded_curvature(of_mean - cross.T @ coupling, _FLAT)
    # The symmetric root: of a curvature near one in many directions, the axes are arbitrary.
    factor = objective.gaussian.factor @ (axes / np.sqrt(curvatures)) @ axes.T
    return _Response(factor, coupling, int(flat.sum() + indefinite.sum()))


def _mean_error(
    gradients: Float[np.ndarray, "fixed argument"],
    response: _Response,
    whitening: Float[np.ndarray, "coordinate coordinate"],
) -> float:
    """Largest standard error of a mean over fixed draws, in posterior standard deviations.

    To first order a mean is the response to the mean of the draws' gradients.
    """
    of_mean, of_spread = np.split(gradients, 2, axis=1)
    covariance = response.factor @ response.factor.T
    # A gradient in v is C' times that in theta.
    forces = np.linalg.solve(whitening.T, (of_mean - of_spread @ response.coupling).T)
    errors = _standard_error((covariance @ forces).T)
    return float(np.max(errors / np.sqrt(np.diag(covariance)), initial=0.0))


def _standard_error(of_draws: Float[np.ndarray, "fixed *rest"]) -> Float[np.ndarray, "*rest"]:
    """Standard error of a mean over antithetic pairs."""
    # Draws come in two halves, the second with the signs of the first turned.
    pairs = of_draws.reshape(2, len(of_draws) // 2, *of_draws.shape[1:]).mean(axis=0)
    return np.asarray(pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)))


def _start(objective: FixedDrawObjective) -> Float[np.ndarray, " argument"]:
    """Laplace's Gaussian, with spreads halved until every fixed draw has a density."""
    dimension = objective.gaussian.mode.size
    eta = np.zeros(2 * dimension)
    while not np.isfinite(objective(eta)[0]):
        eta[dimension:] -= np.log(2)
    return eta

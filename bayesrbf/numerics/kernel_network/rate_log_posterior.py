r"""Criteria for the rates of a kernel: Gaussian processes on the class indicators.

A column's rate is :math:`a_j = a^0_j g_j h`, with the fixed rate :math:`a^0`, a factor g of its
own and a factor h that all columns share. With the kernel
:math:`K_{nm} = \exp(-\sum_j a_j D_{jnm}) + \epsilon [n = m]`, row weights v, noise :math:`\nu` and
the indicators R of the labels less the classes' shares :math:`\pi`, there are two criteria.

**Evidence.** The indicators, in units of their root mean square, are a Gaussian process with
signal variance s. Of C classes they have C - 1 orthonormal contrasts, whose log density is

.. math:: \sum_{c < C} \log N(R_c; 0, s K + \nu V^{-1})
   - \tfrac{C - 1}{2} \sum_n [(v_n - 1) \log(2 \pi \nu) + \log v_n].

The second sum makes a row of weight two the row twice.

**Leave-one-out.** With :math:`G = K + \nu V^{-1}` and :math:`A = G^{-1} R`, the prediction of a
row's indicators from all other rows is in closed form, and so is its log score:

.. math:: F_n = R_n - A_n / c_n, \quad
   c_n = \tfrac{u_n}{v_n} (G^{-1})_{nn} + \tfrac{v_n - u_n}{\nu}, \quad
   \sum_n v_n \log \mathrm{softmax}(t F_n + \log \pi)[y_n].

Of a row of weight v the weight u of one unit is left out: all of it, or that of one of several
equal people. Were all of these left out, a row that stands in the table with two labels would be
predicted from the other label alone.
It is not the log density of anything: with the prior it is the log of a pseudo-posterior.

All gradients come from one inverse. With the gradient g of the score in A and h in the diagonal of
:math:`G^{-1}`, that in G is :math:`-(G^{-1} g) A' - G^{-1} \mathrm{diag}(h) G^{-1}`.

See Rasmussen and Williams (2006), Gaussian processes for machine learning, sections 5.4 and 6.5.3;
Sundararajan and Keerthi (2001), Predictive approaches for choosing hyperparameters in Gaussian
processes, Neural Computation 13, 1103-1118.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import lapack
from scipy.spatial.distance import squareform

from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.records.kernel_rates import (
    NUGGET,
    RATE_PRIORS,
    Normal,
    RateCriterion,
    RateRows,
)

LOG_2PI = float(np.log(2 * np.pi))


class Judged(NamedTuple):
    """A criterion and its gradient, in nats; the kernel's has an entry for each of a pair."""

    value: float
    by_kernel: Float[np.ndarray, "obs obs"]
    by_noise: float
    by_output_scale: float


@dataclass(frozen=True)
class RateLogPosterior:
    """Log posterior of the rates, or log pseudo-posterior, given labelled rows.

    Coordinates are the logarithms of the columns' own factors, of the common factor, of the noise
    and of the signal variance s or the temperature t, as in the declared graph.
    """

    rows: RateRows
    fixed: Float[np.ndarray, " column"]  # Rates that a factor of 1 leaves as they are.
    criterion: RateCriterion

    @property
    def priors(self) -> tuple[Normal, ...]:
        """Prior of every coordinate."""
        prior = RATE_PRIORS[self.criterion]
        return (prior.factors,) * self.fixed.size + (prior.common, prior.noise, prior.output_scale)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient in the coordinates."""
        rates = rates_at(theta, self.fixed)
        noise, output_scale = np.exp(theta[-2:])
        pairs = np.exp(-rates @ self.rows.distances)
        kernel = squareform(pairs)
        np.fill_diagonal(kernel, 1 + NUGGET)
        judged = CRITERIA[self.criterion](kernel, noise, output_scale, self.rows)
        # Every pair stands at two places of the kernel.
        by_pair = 2 * squareform(judged.by_kernel, checks=False) * pairs
        by_factor = -rates * (self.rows.distances @ by_pair)
        by_scale = output_scale * judged.by_output_scale
        by_others = [by_factor.sum(), noise * judged.by_noise, by_scale]
        mean, sd = np.array([(one.mean, one.sd) for one in self.priors]).T
        z = (theta - mean) / sd
        log_prior = -0.5 * z @ z - np.log(sd).sum() - 0.5 * z.size * LOG_2PI
        return judged.value + log_prior, np.concatenate([by_factor, by_others]) - z / sd


def rates_at(
    theta: Float[np.ndarray, " coordinate"], fixed: Float[np.ndarray, " column"]
) -> Float[np.ndarray, " column"]:
    """The rates at given coordinates, which are relative to fixed ones."""
    rates: np.ndarray = fixed * np.exp(theta[:-3] + theta[-3])
    return rates


def log_evidence(
    kernel: Float[np.ndarray, "obs obs"], noise: float, signal: float, rows: RateRows
) -> Judged:
    """Log density of the contrasts of the indicators."""
    weights, n_contrasts = rows.weights, rows.shares.size - 1
    mean_square = weights @ (rows.residuals**2).sum(axis=1) / (n_contrasts * weights.sum())
    responses = rows.residuals / np.sqrt(mean_square)
    precision, log_determinant = inverse(signal * kernel + np.diag(noise / weights))
    smoothed = precision @ responses
    copies = (weights - 1).sum()
    of_copies = copies * (LOG_2PI + np.log(noise)) + np.log(weights).sum()
    of_all = log_determinant + weights.size * LOG_2PI + of_copies
    # The derivative of log N(r; 0, G) in G, summed over the contrasts.
    by_gram = 0.5 * (smoothed @ smoothed.T - n_contrasts * precision)
    return Judged(
        value=-0.5 * float((responses * smoothed).sum() + n_contrasts * of_all),
        by_kernel=signal * by_gram,
        by_noise=float((np.diag(by_gram) / weights).sum() - 0.5 * n_contrasts * copies / noise),
        by_output_scale=float((by_gram * kernel).sum()),
    )


def leave_one_out(
    kernel: Float[np.ndarray, "obs obs"], noise: float, temperature: float, rows: RateRows
) -> Judged:
    """Log score of every label given all other rows and the other units of its own."""
    weights, residuals, left_out = rows.weights, rows.residuals, rows.left_out
    precision, _ = inverse(kernel + np.diag(noise / weights))
    smoothed, staying = precision @ residuals, (weights - left_out) / noise
    own = left_out / weights * np.diag(precision) + staying
    predicted = residuals - smoothed / own[:, None]
    log_p = log_softmax(temperature * predicted + np.log(rows.shares), axis=1)
    # Residuals and shares make up the indicators, whose log softmax has this derivative.
    slope = weights[:, None] * (residuals + rows.shares - np.exp(log_p))
    by_prediction = temperature * slope
    by_own = (by_prediction * smoothed).sum(axis=1) / own**2
    by_precision = by_own * left_out / weights
    by_smoothed = -by_prediction / own[:, None]
    by_gram = -(precision @ by_smoothed) @ smoothed.T - (precision * by_precision) @ precision
    return Judged(
        value=float(weights @ log_p[np.arange(weights.size), rows.labels]),
        by_kernel=0.5 * (by_gram + by_gram.T),
        by_noise=float((np.diag(by_gram) / weights - by_own * staying / noise).sum()),
        by_output_scale=float((slope * predicted).sum()),
    )


CRITERIA: Final[dict[RateCriterion, Callable[..., Judged]]] = {
    "evidence": log_evidence,
    "leave-one-out": leave_one_out,
}


def inverse(gram: Float[np.ndarray, "obs obs"]) -> tuple[Float[np.ndarray, "obs obs"], float]:
    """Inverse of a positive definite matrix and the log of its determinant, by Cholesky."""
    factor, _ = lapack.dpotrf(gram, lower=1)  # with zeros above the diagonal, which stay
    log_determinant = 2 * float(np.log(np.diag(factor)).sum())
    lower = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    result = lower + lower.T
    np.fill_diagonal(result, np.diag(lower))
    return result, log_determinant

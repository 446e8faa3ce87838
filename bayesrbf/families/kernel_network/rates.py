"""Rates of a kernel that are learned from the labels, column by column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.spatial.distance import squareform
from scipy.special import erf

from bayesrbf.base.arrays import class_shares, log_softmax, on_one_blas_thread, split_levels
from bayesrbf.base.rows import Observations
from bayesrbf.families.kernel_network.kernels import CellMoments, KernelName, ProductKernel
from bayesrbf.families.kernel_network.records import (
    NUGGET,
    RATE_PRIORS,
    Normal,
    RateCriterion,
    RateRows,
)
from bayesrbf.mixture.gaussian import LOG_2PI

# Criteria for the rates of a kernel: Gaussian processes on the class indicators.


class Judged(NamedTuple):
    """A criterion and its gradient, in nats; the kernel's has an entry for each of a pair."""

    value: float
    by_kernel: Float[np.ndarray, "obs obs"]
    by_noise: float
    by_output_scale: float


@dataclass(frozen=True)
class RateLogPosterior:
    r"""Log posterior of the rates, or log pseudo-posterior, given labelled rows.

    It is a criterion of the kernel

    .. math:: K_{nm} = \exp\Big(-\sum_j a_j D_{jnm}\Big) + \epsilon [n = m]

    plus the normal log priors of the coordinates: the logarithms of the factors of the columns, of
    the common factor, of the noise, and of the signal variance s or the temperature t.
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
        mean, sd = np.array([(prior.mean, prior.sd) for prior in self.priors]).T
        z = (theta - mean) / sd
        log_prior = -0.5 * z @ z - np.log(sd).sum() - 0.5 * z.size * LOG_2PI
        return judged.value + log_prior, np.concatenate([by_factor, by_others]) - z / sd


def rates_at(
    theta: Float[np.ndarray, " coordinate"], fixed: Float[np.ndarray, " column"]
) -> Float[np.ndarray, " column"]:
    r"""Rates at the coordinates: log factors of the fixed rates.

    .. math:: a_j = a^0_j g_j h

    with a factor g for each column and a factor h that all columns share.
    """
    rates: np.ndarray = fixed * np.exp(theta[:-3] + theta[-3])
    return rates


def log_evidence(
    kernel: Float[np.ndarray, "obs obs"], noise: float, signal: float, rows: RateRows
) -> Judged:
    r"""Log density of the C - 1 orthonormal contrasts of the indicators.

    The class indicators less the class shares, R, in units of their root mean square, are a
    Gaussian process with signal variance s and noise :math:`\nu` over the row weights v:

    .. math:: \sum_{c < C} \log N(R_c; 0, s K + \nu V^{-1})
       - \tfrac{C - 1}{2} \sum_n [(v_n - 1) \log(2 \pi \nu) + \log v_n].

    The second sum makes a row of weight two the row twice. See Rasmussen and Williams (2006),
    Gaussian processes for machine learning, sections 5.4 and 6.5.3.
    """
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
    r"""Log score of every label given all other rows and the other subjects of its row.

    With the class indicators less the class shares, R, the prediction is in closed form:

    .. math:: F_n = R_n - A_n / c_n, \quad A = G^{-1} R, \quad G = K + \nu V^{-1}, \quad
       c_n = \tfrac{u_n}{v_n} (G^{-1})_{nn} + \tfrac{v_n - u_n}{\nu}, \\
       \sum_n v_n \log \mathrm{softmax}(t F_n + \log \pi)[y_n].

    Of a row of weight v the weight u of one subject is left out: all of it, or that of one of
    several equal people. Were all of these left out, a row that stands in the table with two labels
    would be predicted from the other label alone. The score is not a log density.

    See Sundararajan and Keerthi (2001), Predictive approaches for choosing hyperparameters in
    Gaussian processes, Neural Computation 13, 1103-1118.
    """
    weights, residuals, left_out = rows.weights, rows.residuals, rows.left_out
    precision, _ = inverse(kernel + np.diag(noise / weights))
    smoothed, staying = precision @ residuals, (weights - left_out) / noise
    left_out_precision = left_out / weights * np.diag(precision) + staying
    predicted = residuals - smoothed / left_out_precision[:, None]
    log_p = log_softmax(temperature * predicted + np.log(rows.shares), axis=1)
    # Residuals and shares make up the indicators, whose log softmax has this derivative.
    slope = weights[:, None] * (residuals + rows.shares - np.exp(log_p))
    by_prediction = temperature * slope
    # All gradients come from one inverse: with the gradient g in A and h in the diagonal of G^-1,
    # the gradient in G is -(G^-1 g) A' - G^-1 diag(h) G^-1.
    by_own = (by_prediction * smoothed).sum(axis=1) / left_out_precision**2
    by_precision = by_own * left_out / weights
    by_smoothed = -by_prediction / left_out_precision[:, None]
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


# Rates of a kernel that are learned from the labels, column by column.
#
# The rates of one table are partly chance. So the mode is found by L-BFGS on several sub-samples of
# the labelled rows, the first search from the fixed rates and each other from the mode before, and
# the logarithms of the rates are averaged. For one network on eight tables, two sub-samples were
# worse by .004 nats of held-out log loss than four, and eight no better. A stack has two.


SHARE, MIN_SAMPLE_ROWS, MAX_SAMPLE_ROWS = 0.75, 20, 300
"""Part of the labelled rows that a sub-sample has, and the bounds of their number."""
MAX_DISTANCES: Final = 2**23
"""Columns times pairs of rows of a sub-sample: 64 MiB, which 300 rows of 187 columns take."""
SLOPE: Final = 0.1
"""The search ends where no slope is larger, in nats per unit of a log rate, or after its steps."""
LOG_FACTOR, LOG_NOISE = (-6.0, 6.0), (-6.0, 3.0)
"""Bounds of the search."""


@dataclass(frozen=True)
class RateSearch:
    """Effort of the search for rates."""

    subsamples: int = 4
    steps: int = 50
    """Most iterations of the search on each sub-sample."""


@on_one_blas_thread
def learn_rates(judges: Iterable[RateLogPosterior], steps: int) -> Float[np.ndarray, " coordinate"]:
    """Mean of the modes of the sub-samples; each search starts where the one before ended.

    The first starts at the fixed rates.
    """
    modes: list[np.ndarray] = []
    for judge in judges:
        modes.append(_climb(judge, steps, modes[-1] if modes else None))
    mean: np.ndarray = np.mean(modes, axis=0)
    return mean


def rate_log_posteriors(
    kernel: ProductKernel,
    cells: CellMoments,
    rows: Observations,
    n_classes: int,
    criterion: RateCriterion,
    seed: int,
    search: RateSearch,
) -> Iterator[RateLogPosterior]:
    """Log posteriors of the rates given each sub-sample; those of the kernel are the fixed ones.

    ``cells`` are the rows as the kernel sees them, of two or more classes.
    """
    shares = class_shares(rows.labels, rows.weights, n_classes)
    # A row of equal subjects leaves out one of them; a row of less than one, all of itself.
    left_out = rows.weights / np.maximum(rows.subject_counts, 1.0)
    for draw in range(search.subsamples):
        # Seeded by its number, a sub-sample is the same however many there are.
        rng = np.random.default_rng([seed, draw])
        labelled = _one_of_each_subject(rows, rng)
        size = _sample_size(labelled.size, kernel.rates.size)
        chosen = np.sort(rng.choice(labelled, size, replace=False))
        distances = expected_distances(cells.take(chosen), kernel.levels, kernel.name)
        labels, weights = rows.labels[chosen], rows.weights[chosen]
        sample = RateRows(distances, labels, weights, left_out[chosen], shares)
        yield RateLogPosterior(sample, kernel.rates, criterion)


def _one_of_each_subject(rows: Observations, rng: np.random.Generator) -> Int[np.ndarray, " row"]:
    """Labelled rows, one at random of a subject that has several: none is predicted by its own."""
    labelled = np.flatnonzero(rows.labels >= 0)
    if rows.subjects is None or not rows.subjects.split.any():
        return labelled
    shuffled = rng.permutation(labelled)
    # Sorted, for numbers of subjects follow from the order of the table.
    return np.sort(shuffled[np.unique(rows.subjects.numbers[shuffled], return_index=True)[1]])


def expected_distances(
    cells: CellMoments, levels: tuple[int, ...], name: KernelName
) -> Float[np.ndarray, "column pair"]:
    r"""Distances of all pairs of rows, reals then categorical columns, in the order of pdist.

    With difference d of the means and sum :math:`s^2` of the variances of two real cells, and
    probability o that two levels agree,

    .. math::
       E|x - x'| = s \sqrt{2 / \pi}\, e^{-d^2 / (2 s^2)} + d\, \mathrm{erf}(d / (s \sqrt 2)), \quad
       \tfrac12 E (x - x')^2 = \tfrac12 (d^2 + s^2), \quad
       P(\text{other level}) = 1 - o.

    Each distance is a negative definite function of two rows, so :math:`\exp(-\sum_j a_j D_j)`,
    with ones on its diagonal, is a kernel for any rates :math:`a_j \ge 0` (Schoenberg 1938).
    """
    i, j = np.triu_indices(cells.n_rows, 1)
    means, variances = (np.ascontiguousarray(moments.T) for moments in (cells.mean, cells.variance))
    gap = np.abs(means.take(i, 1) - means.take(j, 1))
    if variances.any():
        variance = variances.take(i, 1) + variances.take(j, 1)
        reals = _absolute(gap, variance) if name == "laplace" else 0.5 * (gap**2 + variance)
    else:
        reals = gap if name == "laplace" else 0.5 * gap**2
    by_column = split_levels(cells.probabilities, levels)
    agree = [agreement[:, i, j] for agreement in ((p @ p.T)[None] for p in by_column)]
    return np.concatenate([reals, *(1 - agreement for agreement in agree)])


def _absolute(
    gap: Float[np.ndarray, "feature pair"], variance: Float[np.ndarray, "feature pair"]
) -> Float[np.ndarray, "feature pair"]:
    """Mean of the absolute value of normal differences; the gap itself where both are known."""
    result, holes = gap.copy(), variance > 0
    d, s = gap[holes], np.sqrt(variance[holes])
    z = d / (s * math.sqrt(2))
    result[holes] = s * math.sqrt(2 / math.pi) * np.exp(-(z**2)) + d * erf(z)
    return result


def _sample_size(n_labelled: int, n_columns: int) -> int:
    """Rows of a sub-sample."""
    target = max(int(SHARE * n_labelled), MIN_SAMPLE_ROWS)
    # n rows have some n² / 2 pairs.
    fitting = int(np.sqrt(2 * MAX_DISTANCES / max(n_columns, 1)))
    return min(target, MAX_SAMPLE_ROWS, max(fitting, MIN_SAMPLE_ROWS), n_labelled)


def _climb(
    log_posterior: RateLogPosterior, steps: int, start: Float[np.ndarray, " coordinate"] | None
) -> Float[np.ndarray, " coordinate"]:
    """The mode, or where the steps end."""
    if start is None:
        start = np.array([prior.mean for prior in log_posterior.priors])

    def falling(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(theta)
        return -value, -gradient

    bounds = [*[LOG_FACTOR] * (start.size - 2), LOG_NOISE, LOG_FACTOR]
    theta: np.ndarray = minimize(
        falling,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "gtol": SLOPE, "ftol": 0.0},
    ).x
    return theta

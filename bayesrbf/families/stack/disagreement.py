"""How far draws of a stack spread: disagreement of members, and rows unlike the training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import chdtri, ndtri, softmax
from scipy.stats.qmc import Halton

from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.records import MOST_LOG, Requirements, stored, within
from bayesrbf.base.rows import Observations
from bayesrbf.mixture.cells import CellLaw

# Draws of a pool in which disagreement counts: the truth is one kind of model more.
#
# A family of models, fitted to rows that another family made, agrees with itself and is wrong. How
# far, other families show. Let the log odds of the truth and of J kinds of members be independent
# draws from one normal distribution, of whose mean the pool is the estimate. Then the truth given
# the kinds is Student's t. Kinds that happen to agree at one row are no proof there, so the
# variance of a row is moderated [1]_: its squared scale v is halfway between that of the row itself
# and that of the table, the mean over rows held out,
#
# .. math:: v(x) = \frac{J + 1}{J} \; \frac{s^2(x) + s_0^2}{2}, \quad
#     s^2(x) = \frac{1}{J - 1} \sum_j (l_j(x) - \bar l(x))^2.
#
# Kinds disagree less where fewer cells are known, and not at all about a row without a cell. So the
# mean of the table is one at every knot of the share of hidden cells
# (:mod:`bayesrbf.base.hidden_share`), over the rows held out and their copies, and :math:`s_0`
# below is that of the row.
#
# What the table says counts as much as J - 1 deviations at the row, so that the degrees of freedom
# are 2 (J - 1). A draw is a function of the row: the factors :math:`f_j` of the deviations and the
# shift g of the log odds, over its scale, are the same for all rows,
#
# .. math:: l_0 = \bar l + \sum_j f_j (l_j - \bar l) + g, \quad
#     f_j = c \, z_j, \quad g = c \, s_0 \sqrt{J - 1} \, z_0, \quad
#     c^2 = \frac{J + 1}{J \, \chi^2_{2 (J - 1)}}.
#
# What a pool says is calibrated: it is the *mean* of the frequencies that rows like this have. The
# mean of the logistic of a normal variable lies nearer to 1/2 than its median. So the draws have
# their median further out [2]_,
#
# .. math:: \operatorname{median} l_0 = \sqrt{1 + \pi v / 8} \; \bar l.
#
# At a row unlike those of the fit, what is added to the pool is s times as large: the median m
# stays where it is. There the kinds know little, but no less than nothing. A probability of which
# nothing is known is Beta(1/2, 1/2) by Jeffreys' rule. Its log odds have the mean 0 and the
# variance :math:`2 \psi'(1/2) = \pi^2`, and lie :math:`\pi^2 + m^2` from m in mean square. So draws
# spread further no more than to that scale, over all classes,
#
# .. math:: s^2(x) \le \max\left(1, \frac{\sum_c (\pi^2 + m_c^2(x))}{\sum_c v_c(x)}\right).
#
# Members of one kind err together, so the mean of their log odds is what their kind says, and
# counts once.
#
# .. [1] Smyth (2004), Linear models and empirical Bayes methods for assessing differential
#    expression in microarray experiments, Statistical Applications in Genetics 3, section 4.
# .. [2] MacKay (1992), The evidence framework applied to classification networks, Neural
#    Computation 4, section 3.


LEAST_DISPUTED_LOG: Final = np.log(LEAST_DISPUTED_PROBABILITY)
NOTHING_KNOWN: Final = np.pi
"""Standard deviation of the log odds of a probability under Jeffreys' prior."""


def variance_of_kinds(
    members: Float[np.ndarray, "row member label"],
    pool: Float[np.ndarray, "row label"],
    kinds: Int[np.ndarray, " member"],
) -> Float[np.ndarray, "row label"]:
    """Variance ``s^2`` of the log odds of the kinds of members about their pool."""
    sizes = np.bincount(kinds)
    if sizes.size == 1:
        return np.zeros(pool.shape)
    # Members of one kind err together: their mean counts as one.
    by_kind = np.eye(sizes.size)[kinds].T / sizes[:, None]
    of_members = log_odds(np.exp(members), LEAST_DISPUTED_PROBABILITY)
    of_pool = log_odds(np.exp(pool), LEAST_DISPUTED_PROBABILITY)
    deviations = np.einsum("kj,njc->nkc", by_kind, of_members - of_pool[:, None])
    variance: np.ndarray = np.square(deviations).sum(axis=1) / (sizes.size - 1)
    return variance


def disagreement_draws(
    n_draws: int,
    kinds: Int[np.ndarray, " member"],
    n_classes: int,
    table_variance: float,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "draw member"], Float[np.ndarray, "draw label"]]:
    """Factors f of the members' deviations, and shifts of log probabilities; one kind has none.

    They fill their distribution evenly (a scrambled Halton sequence in random order): by the tail
    of 200 independent draws all intervals of a fit would be too wide, or all too narrow.
    """
    sizes = np.bincount(kinds)
    n_kinds = sizes.size
    if n_kinds == 1:
        return np.zeros((n_draws, kinds.size)), np.zeros((n_draws, n_classes))
    even = Halton(1 + n_kinds + n_classes, seed=rng).random(n_draws)
    chi_squared, z = np.split(rng.permutation(even), [1], axis=1)
    chi_squared, z = chdtri(2 * (n_kinds - 1), chi_squared), ndtri(z)
    scale = np.sqrt((n_kinds + 1) / (n_kinds * chi_squared))
    factors = (scale * z[:, :n_kinds] / sizes)[:, kinds]
    # Log odds of two classes are the difference of two shifts: each has half the variance.
    shift_sd = np.sqrt((n_kinds - 1) * table_variance / 2)
    return factors, scale * shift_sd * z[:, n_kinds:]


def disagreed(
    members: Float[np.ndarray, "*draws row member label"],
    pool: Float[np.ndarray, "*draws row label"],
    factors: Float[np.ndarray, "*draws member"],
    shift: Float[np.ndarray, "*draws label"],
    spread: Float[np.ndarray, " row"] | float = 1.0,
    shifted: Float[np.ndarray, " row"] | float = 1.0,
) -> Float[np.ndarray, "*draws row label"]:
    """Log probabilities of the pool, moved by its members' deviations from it and by a shift.

    Rows unlike those of the fit are moved so many times as far; ``shifted`` is what their shift
    is of that of the table.
    """
    centre = np.maximum(pool, LEAST_DISPUTED_LOG)
    deviations = np.maximum(members, LEAST_DISPUTED_LOG) - centre[..., None, :]
    moves = np.einsum("...j,...njc->...nc", factors, deviations)
    moves += np.reshape(shifted, (-1, 1)) * shift[..., None, :]
    moved = centre + np.reshape(spread, (-1, 1)) * moves
    return log_softmax(moved, axis=-1)


def squared_scale(
    variance: Float[np.ndarray, "row label"],
    table_variance: Float[np.ndarray, " row"] | float,
    n_kinds: int,
) -> Float[np.ndarray, "row label"]:
    """Squared scale ``v`` of what one kind of model more may say, in log odds."""
    return (n_kinds + 1) / n_kinds * (variance + np.reshape(table_variance, (-1, 1))) / 2


def bounded_spread(
    spread: Float[np.ndarray, " row"],
    scale: Float[np.ndarray, "row label"],
    median: Float[np.ndarray, "row label"],
) -> Float[np.ndarray, " row"]:
    """Factor by which draws spread, bounded where they would be further out than for no knowledge.

    ``scale`` is their squared scale, ``median`` that of their log odds.

    Examples
    --------
    >>> scale, median = np.array([[1.0], [1.0], [100.0]]), np.array([[0.0], [4.0], [0.0]])
    >>> bounded_spread(np.full(3, 45.0), scale, median).round(2)
    array([3.14, 5.09, 1.  ])
    """
    nothing = (NOTHING_KNOWN**2 + median**2).sum(axis=1)
    with np.errstate(divide="ignore"):
        most = np.sqrt(np.maximum(1, nothing / scale.sum(axis=1)))
    bounded: np.ndarray = np.minimum(spread, most)
    return bounded


def stretch_of_median(
    scale: Float[np.ndarray, "row label"],
) -> Float[np.ndarray, "row label"]:
    """Factor from the pool's log odds to the median of the draws.

    Examples
    --------
    >>> stretch_of_median(squared_scale(np.array([[4.0, 0.0]]), 2.0, 3)).round(2)
    array([[1.6 , 1.23]])
    """
    stretch: np.ndarray = np.sqrt(1 + np.pi * scale / 8)
    return stretch


# How far draws spread at rows that are unlike the rows of the fit.
#
# Within component k the log density of the observed cells has a mean and a variance of its own:
# with d observed reals, :math:`m^2` their squared Mahalanobis distance, and categories j with
# entropies :math:`H_{kj}` and variances :math:`V_{kj}` of :math:`\log \theta_{kj}`, the typicality
# of a row is
#
# .. math:: t_k = \frac{-\frac12 (m_k^2 - d) + \sum_j (\log \theta_{kj}[x_j] + H_{kj})}
#    {\sqrt{\frac{d}{2} + \sum_j V_{kj}}}, \qquad t = \sum_k p(k \mid x_o) \, t_k .
#
# With a the share of its cells that are observed, the row is compared with rows that were held out
# of the density:
#
# .. math:: \pi(x) = \frac{1 + \sum_i w_i \, [u_i \le u(x)]}{1 + \sum_i w_i}, \quad
#     u = t - b \sqrt{a}, \quad s(x) = \max\left(1, \frac{q}{\pi(x)}\right),
#
# with q = 0.15: draws spread s times as far in the least usual rows, 15 in 100, unless the models
# know nothing there anyway (above). t is a sum over cells
# over the square root of their number, so where the density is wrong by the same in every cell its
# mean grows as the square root of a; b is that slope, by least squares.


UNUSUAL: Final = 0.15
"""Share of rows at which draws spread further."""
LEAST_ROW_VARIANCE: Final = 1e-9
"""Least variance: of a row without a cell, say."""

Rows = Float[np.ndarray, " obs"]


@stored
class UsualRows:
    """Typicalities of rows that were held out of a density, which others are compared with."""

    excess: Float[np.ndarray, " row"]
    """``u`` above."""
    weights: Float[np.ndarray, " row"]
    slope: float

    def spread(self, rows: Observations, law: CellLaw) -> Rows:
        """Factor by which draws spread at rows, which are in the units of the law."""
        own = typicality(rows, law) - self.slope * root_share(rows)
        order = np.argsort(self.excess)
        below = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        rank = below[np.searchsorted(self.excess[order], own, side="right")]
        spread: Rows = np.maximum(1, UNUSUAL * (1 + below[-1]) / (1 + rank))
        return spread

    def __laws__(self) -> Requirements:
        yield self.excess.size == self.weights.size, "a weight of every row"
        yield within(self.weights, 0) and within(abs(self.excess), 0, MOST_LOG), "typicalities"
        yield within(abs(self.slope), 0, MOST_LOG), "a slope"


def usual_rows(typical: Rows, shares: Rows, weights: Rows) -> UsualRows:
    """Learn the slope from held-out rows: typicalities, roots of shares observed, weights."""
    squares = weights @ shares**2
    slope = float(weights @ (typical * shares) / squares) if squares > 0 else 0.0
    return UsualRows(typical - slope * shares, weights, slope)


def root_share(rows: Observations) -> Rows:
    """Square root of the share of cells that are observed."""
    observed = np.hstack([~np.isnan(rows.real), rows.codes >= 0])
    root: Rows = np.sqrt(observed.mean(axis=1))
    return root


def typicality(rows: Observations, law: CellLaw) -> Float[np.ndarray, " obs"]:
    """``t`` above: standard deviations by which a row is likelier than a component's rows are."""
    point = law.parameters
    rows = rows.unlabelled()
    shares = softmax(law.log_joint(rows), axis=1)
    observed = ~np.isnan(rows.real)
    patterns, place = np.unique(observed, axis=0, return_inverse=True)
    bare = replace(rows, codes=np.full_like(rows.codes, -1))
    excess = law.log_joint(bare)
    # Less the log joint at the component's own mean what is left is -m² / 2: the determinant,
    # which depends on the pattern of holes, cancels.
    excess -= _at_means(patterns, rows, law)[place.ravel()]
    # m² is chi-squared: -m² / 2 has mean -d / 2 and variance d / 2.
    excess += 0.5 * observed.sum(axis=1, keepdims=True)
    variance = np.repeat(0.5 * observed.sum(axis=1, keepdims=True), len(point.means), axis=1)
    for column, theta in enumerate(point.category_probabilities):
        present = np.flatnonzero(rows.codes[:, column] >= 0)
        log_theta = np.log(theta)
        mean = (theta * log_theta).sum(axis=1)
        excess[present] += log_theta[:, rows.codes[present, column]].T - mean
        variance[present] += ((theta * log_theta**2).sum(axis=1) - mean**2)[None]
    result: Float[np.ndarray, " obs"] = (
        shares * excess / np.sqrt(variance + LEAST_ROW_VARIANCE)
    ).sum(axis=1)
    return result


def _at_means(
    patterns: Bool[np.ndarray, "pattern feature"], like: Observations, law: CellLaw
) -> Float[np.ndarray, "pattern component"]:
    """Log joint of components and their own means, some reals missing, without categories."""
    result = np.empty((len(patterns), len(law.parameters.means)))
    n = len(patterns)
    nothing = np.full((n, like.codes.shape[1]), -1)
    for k, mean in enumerate(law.parameters.means):
        real = np.where(patterns, mean, np.nan)
        rows = Observations(real, nothing, np.full(n, -1), np.ones(n))
        result[:, k] = law.log_joint(rows)[:, k]
    return result

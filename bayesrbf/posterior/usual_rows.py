r"""How far draws spread at rows that are unlike the rows of the fit.

Within component k the log density of the observed cells has a mean and a variance of its own: with
d observed reals, :math:`m^2` their squared Mahalanobis distance, and categories j with entropies
:math:`H_{kj}` and variances :math:`V_{kj}` of :math:`\log \theta_{kj}`, the typicality of a row is

.. math:: t_k = \frac{-\frac12 (m_k^2 - d) + \sum_j (\log \theta_{kj}[x_j] + H_{kj})}
   {\sqrt{\frac{d}{2} + \sum_j V_{kj}}}, \qquad t = \sum_k p(k \mid x_o) \, t_k .

With a the share of its cells that are observed, the row is compared with rows that were held out of
the density:

.. math:: \pi(x) = \frac{1 + \sum_i w_i \, [u_i \le u(x)]}{1 + \sum_i w_i}, \quad
    u = t - b \sqrt{a}, \quad s(x) = \max\left(1, \frac{q}{\pi(x)}\right),

with q = 0.15: draws spread s times as far in the least usual rows, 15 in 100, unless the models
know nothing there anyway (:mod:`bayesrbf.numerics.stack.disagreement`). t is a sum over cells over
the square root of their number, so where the density is wrong by the same in every cell its mean
grows as the square root of a; b is that slope, by least squares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import softmax

from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import MOST_LOG, Requirements, stored, within

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

r"""How unlike the rows of a mixture a row is, comparable between rows with different holes.

Within component k the log density of the observed cells has a mean and a variance of its own: with
d observed reals, :math:`m^2` their squared Mahalanobis distance, and categories j with entropies
:math:`H_{kj}` and variances :math:`V_{kj}` of :math:`\log \theta_{kj}`,

.. math:: t_k = \frac{-\frac12 (m_k^2 - d) + \sum_j (\log \theta_{kj}[x_j] + H_{kj})}
   {\sqrt{\frac{d}{2} + \sum_j V_{kj}}}, \qquad t = \sum_k p(k \mid x_o) \, t_k .

The novelty of a row is the share of the model's own rows, with the same cells missing, that have a
larger t.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import softmax

from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.records.mixture import Observations

SIMULATED: Final = 500
"""Rows of the model that each row is compared with."""
BLOCK_ROWS: Final = 50_000
"""Simulated rows held at once."""
LEAST: Final = 1e-9
"""Least variance: of a row without a cell, say."""


def typicality(rows: Observations, law: CellLaw) -> Float[np.ndarray, " obs"]:
    """``t`` above: standard deviations by which a row is likelier than a component's rows are."""
    point, structure = law.parameters, law.specification
    rows = replace(rows.unlabelled(), further=_no_further(rows.n_obs, rows))
    shares = softmax(prepare(rows, structure).component_log_joint(point), axis=1)
    observed = ~np.isnan(rows.real)
    patterns, place = np.unique(observed, axis=0, return_inverse=True)
    bare = replace(rows, codes=np.full_like(rows.codes, -1))
    found = prepare(bare, structure).component_log_joint(point)
    found -= _at_means(patterns, rows, law)[place.ravel()]
    found += 0.5 * observed.sum(axis=1, keepdims=True)
    variance = np.repeat(0.5 * observed.sum(axis=1, keepdims=True), len(point.means), axis=1)
    for column, theta in enumerate(point.category_probabilities):
        known = np.flatnonzero(rows.codes[:, column] >= 0)
        log_theta = np.log(theta)
        mean = (theta * log_theta).sum(axis=1)
        found[known] += log_theta[:, rows.codes[known, column]].T - mean
        variance[known] += ((theta * log_theta**2).sum(axis=1) - mean**2)[None]
    result: Float[np.ndarray, " obs"] = (shares * found / np.sqrt(variance + LEAST)).sum(axis=1)
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
        rows = Observations(real, nothing, np.full(n, -1), np.ones(n), _no_further(n, like))
        joint = prepare(rows, law.specification).component_log_joint(law.parameters)
        result[:, k] = joint[:, k]
    return result


def novelty(
    rows: Observations, law: CellLaw, rng: np.random.Generator
) -> Float[np.ndarray, " obs"]:
    """Share of the model's rows, with the same cells missing, that are more typical; ties halve.

    Rows are in the units of the law.
    """
    own = np.empty(rows.n_obs)
    for part, some in rows.in_blocks():
        own[part] = typicality(some, law)
    others, _ = sample(law.parameters, law.specification, SIMULATED, rng)
    for one in law.atoms:
        others.real[others.codes[:, one.category] > 0, one.feature] = np.nan
    reals = ~np.isnan(rows.real)
    for one in law.atoms:
        reals[:, one.feature] |= rows.codes[:, one.category] > 0
    seen = np.hstack([reals, rows.codes >= 0])
    patterns, place = np.unique(seen, axis=0, return_inverse=True)
    place = place.ravel()
    by_pattern = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[by_pattern], np.arange(len(patterns) + 1))
    result = np.empty(len(own))
    size = max(1, BLOCK_ROWS // SIMULATED)
    for start in range(0, len(patterns), size):
        block = patterns[start : start + size]
        simulated = _with_holes(others, block, rows.real.shape[1])
        reference = np.sort(typicality(simulated, law).reshape(len(block), SIMULATED), axis=1)
        for pattern, those in enumerate(reference, start):
            alike = by_pattern[ends[pattern] : ends[pattern + 1]]
            ranks = [np.searchsorted(those, own[alike], side) for side in ("left", "right")]
            result[alike] = 1 - 0.5 * sum(ranks) / SIMULATED
    return result


def _with_holes(
    rows: Observations, patterns: Bool[np.ndarray, "pattern cell"], n_features: int
) -> Observations:
    """All rows under every pattern of observed cells, pattern by pattern."""
    shown = np.repeat(patterns, rows.n_obs, axis=0)
    real, codes = np.tile(rows.real, (len(patterns), 1)), np.tile(rows.codes, (len(patterns), 1))
    n = len(shown)
    return Observations(
        np.where(shown[:, :n_features], real, np.nan),
        np.where(shown[:, n_features:], codes, -1),
        np.full(n, -1),
        np.ones(n),
        _no_further(n, rows),
    )


def _no_further(n_rows: int, like: Observations) -> tuple[Float[np.ndarray, "obs _"], ...]:
    """Cells under laws of their own, all missing: they have no part in how typical a row is."""
    return tuple(np.full((n_rows, cells.shape[1]), np.nan) for cells in like.further)

r"""How unlike the rows of a mixture a row is, comparable between rows with different holes.

A row may be odd because its cells are improbable together, or each of them by itself. Both are log
densities in standard units behind the maps, of the row and of its cells alone,

.. math:: u = \log p(x_o), \qquad v = \sum_{j \in o} \log p(x_j), \qquad
   s = \log \Phi\Big(\frac{u - \bar u}{\mathrm{sd}(u)}\Big)
   + \log \Phi\Big(\frac{v - \bar v}{\mathrm{sd}(v)}\Big),

with means and standard deviations of the model's own rows that have the same cells missing. The
novelty of a row is the share of these rows that have a larger s.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr, logsumexp

from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.records.mixture import Observations, in_blocks

SIMULATED: Final = 500
"""Rows of the model that each row is compared with."""
ROUNDING_OF_STATISTIC: Final = 1e-9
"""Rows whose s differs by less are alike, and numbers that vary by less do not vary."""


def novelty(
    rows: Observations, law: CellLaw, rng: np.random.Generator
) -> Float[np.ndarray, " obs"]:
    """Share of the model's rows, with the same cells missing, that have a larger s; ties halve.

    Rows are in the units of the law.
    """
    together, alone = np.empty(rows.n_obs), np.empty(rows.n_obs)
    for part, some in rows.in_blocks():
        together[part] = _log_density(some, law)
        alone[part] = _cells_alone(some, law).sum(axis=1)
    others, _ = sample(law.parameters, law.specification, SIMULATED, rng)
    for atoms in law.atoms:
        # A drawn cell at an atom is NaN among the reals, as it is in a user's rows.
        others.real[others.codes[:, atoms.category] > 0, atoms.feature] = np.nan
    others_alone = _cells_alone(others, law)
    reals = ~np.isnan(rows.real)
    for atoms in law.atoms:
        reals[:, atoms.feature] |= rows.codes[:, atoms.category] > 0
    observed = np.hstack([reals, rows.codes >= 0])
    patterns, place = np.unique(observed, axis=0, return_inverse=True)
    place = place.ravel()
    by_pattern = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[by_pattern], np.arange(len(patterns) + 1))
    result = np.empty(rows.n_obs)
    for part in in_blocks(len(patterns), SIMULATED * observed.shape[1]):
        block = patterns[part]
        simulated = _log_density(_with_holes(others, block, rows.real.shape[1]), law)
        pairs = zip(block, simulated.reshape(len(block), SIMULATED), strict=True)
        for number, (pattern, others_together) in enumerate(pairs, part.start):
            alike = by_pattern[ends[number] : ends[number + 1]]
            # Logs of cells by themselves add up, so one pass over the rows serves all patterns.
            both = (together[alike], others_together), (alone[alike], others_alone @ pattern)
            tails = [_log_tails(values, reference) for values, reference in both]
            own, theirs = (sum(of_rows, np.zeros(())) for of_rows in zip(*tails, strict=True))
            result[alike] = _share_above(own, theirs)
    return result


def _log_tails(values: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log normal tails of numbers and of those that give the mean and the standard deviation."""
    centre, spread = float(reference.mean()), float(reference.std())
    spread = spread if spread > ROUNDING_OF_STATISTIC else 1.0  # of rows without a cell, say
    return log_ndtr((values - centre) / spread), log_ndtr((reference - centre) / spread)


def _share_above(
    own: Float[np.ndarray, " row"], others: Float[np.ndarray, " other"]
) -> Float[np.ndarray, " row"]:
    """Share of others that are larger than each number; ties halve."""
    others = np.sort(others)
    below = np.searchsorted(others, own - ROUNDING_OF_STATISTIC, "left")
    upto = np.searchsorted(others, own + ROUNDING_OF_STATISTIC, "right")
    share: Float[np.ndarray, " row"] = 1 - 0.5 * (below + upto) / others.size
    return share


def _log_density(rows: Observations, law: CellLaw) -> Float[np.ndarray, " obs"]:
    """Log density of the observed cells, in the units of the law; labels are not used."""
    log_joint = law.log_joint(rows.unlabelled())
    log_density: Float[np.ndarray, " obs"] = logsumexp(log_joint, axis=1)
    return log_density


def _cells_alone(rows: Observations, law: CellLaw) -> Float[np.ndarray, "obs cell"]:
    """Log density of every cell by itself, 0 where missing: reals first, then categories."""
    n_reals, n_cells = rows.real.shape[1], rows.real.shape[1] + rows.codes.shape[1]
    log_densities = np.empty((rows.n_obs, n_cells))
    for cell in range(n_cells):
        alone = np.arange(n_cells)[None] == cell
        log_densities[:, cell] = _log_density(_with_holes(rows, alone, n_reals), law)
    return log_densities


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
    )

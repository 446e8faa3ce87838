"""Columns of counts in the graph."""

from __future__ import annotations

import numpy as np
import pymc as pm
from pytensor.tensor import TensorVariable

from bayesrbf.models.column_laws import LawNodes
from bayesrbf.records import names
from bayesrbf.records.column_laws import CountColumns


def declare_counts(record: CountColumns, n_components: int) -> LawNodes:
    r"""Means and dispersions with their priors, and negative binomial counts under them.

    .. math:: \mu \sim \mathrm{Gamma}(1 + m / 10,\ 1 / 10), \quad
        \alpha \sim \mathrm{Gamma}(2,\ 1 / a)

    with the mean m and the dispersion a of the column.
    """
    pm.modelcontext(None).add_coords({names.COUNT_COLUMN: record.columns})
    dims = (names.COMPONENT, names.COUNT_COLUMN)
    shapes = 1 + np.float64(0.1) * np.asarray(record.means)
    means = pm.Gamma(names.COUNT_MEANS, shapes, np.float64(0.1), dims=dims)
    rates = 1 / np.asarray(record.dispersions)
    dispersions = pm.Gamma(names.COUNT_DISPERSIONS, np.float64(2), rates, dims=dims)
    return LawNodes(len(record.columns), (means, dispersions), _logp, _draw)


def _logp(
    counts: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    dispersions: TensorVariable,
) -> TensorVariable:
    """Log density of the observed counts of a row."""
    law = pm.NegativeBinomial.dist(mu=means, alpha=1 / dispersions)
    return (observed * pm.logp(law, counts)).sum(-1)


def _draw(means: TensorVariable, dispersions: TensorVariable) -> TensorVariable:
    """Counts of rows, given the values at their components."""
    return pm.NegativeBinomial.dist(mu=means, alpha=1 / dispersions)

"""Columns of ordered levels in the graph."""

from __future__ import annotations

from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayesrbf.models.column_laws import LawNodes
from bayesrbf.records import names
from bayesrbf.records.column_laws import OrdinalColumns


def declare_ordinals(record: OrdinalColumns, n_components: int) -> LawNodes:
    r"""Locations and slopes with their priors, and the levels under them.

    .. math:: P(x \le l) = \sigma(\tau c_l - \eta), \quad
        \eta \sim N(0, 3^2), \quad \tau \sim \mathrm{Gamma}(2, 1)
    """
    pm.modelcontext(None).add_coords({names.ORDINAL_COLUMN: record.columns})
    dims = (names.COMPONENT, names.ORDINAL_COLUMN)
    locations = pm.Normal(names.ORDINAL_LOCATIONS, np.float64(0), np.float64(3), dims=dims)
    slopes = pm.Gamma(names.ORDINAL_SLOPES, np.float64(2), np.float64(1), dims=dims)
    cuts = np.full((len(record.columns), max(record.n_levels) + 1), np.inf)
    cuts[:, 0] = -np.inf  # below level l is cut l, and above it cut l + 1
    for row, column in zip(cuts, record.cuts, strict=True):
        row[1 : len(column) + 1] = column
    return LawNodes(
        len(record.columns), (locations, slopes), partial(_logp, cuts), partial(_draw, cuts)
    )


def _logp(
    cuts: np.ndarray,
    codes: TensorVariable,
    observed: TensorVariable,
    locations: TensorVariable,
    slopes: TensorVariable,
) -> TensorVariable:
    r"""Log probability of the observed levels of a row.

    .. math:: \log (\sigma(b) - \sigma(a))
        = \log \sigma(b) + \log \sigma(-a) + \log (1 - e^{a - b})

    where a part at an infinite cut point is 0.
    """
    places, column = pt.cast(codes, "int64"), np.arange(len(cuts))
    finite = pt.as_tensor(np.isfinite(cuts))
    at = pt.as_tensor(np.where(np.isfinite(cuts), cuts, 0.0))
    below, above = at[column, places], at[column, places + 1]
    has_below, has_above = finite[column, places], finite[column, places + 1]
    between = pt.and_(has_below, has_above)
    gap = slopes * pt.switch(between, above - below, np.float64(1))
    total = pt.switch(has_above, -pt.softplus(locations - slopes * above), 0.0)
    total += pt.switch(has_below, -pt.softplus(slopes * below - locations), 0.0)
    total += pt.switch(between, pt.log1mexp(-gap), 0.0)
    return (observed * total).sum(-1)


def _draw(cuts: np.ndarray, locations: TensorVariable, slopes: TensorVariable) -> TensorVariable:
    """Levels of rows: how many cut points a logistic variable lies above."""
    latent = pm.Logistic.dist(mu=locations, s=np.float64(1))
    return (latent[..., None] > slopes[..., None] * cuts[:, 1:]).sum(-1)

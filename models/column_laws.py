"""Laws of further columns in the graph: how one enters, counts, and ordered levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayesrbf.records import names
from bayesrbf.records.column_laws import CountColumns, OrdinalColumns
from bayesrbf.records.specification import FurtherColumns


@dataclass(frozen=True)
class LawNodes:
    """The variables of a law in the model on the stack, and what rows are under them.

    ``logp`` maps cells, their mask and the nodes to log densities, the columns summed out of the
    last axis; leading axes broadcast, so that one function serves a row given its component and a
    row against all components. ``draw`` maps the nodes at the components of some rows to cells.
    A missing cell is 0 and so is its mask.
    """

    n_columns: int
    nodes: tuple[TensorVariable, ...]  # The component is the first axis of each.
    logp: Callable[..., TensorVariable]
    draw: Callable[..., TensorVariable]

    def core_dims(self, law: int) -> list[str]:
        """Dims of the nodes after the component's, as NumPy writes them: ``"c0_1"``."""
        named = enumerate(self.nodes)
        return [",".join(f"n{law}_{i}_{j}" for j in range(1, node.ndim)) for i, node in named]


@singledispatch
def declare_law(record: FurtherColumns, n_components: int) -> LawNodes:
    """Declare what is registered under the record's class in the model on the stack."""
    raise TypeError(
        f"{type(record).__name__} has no law in the graphs: register a function that declares "
        "its variables for a number of components, by declare_law.register."
    )


def declare_cells(name: str, law: LawNodes, z: TensorVariable, observed: Any, cells: Any) -> None:
    """One observed node of the law's columns, given the component z of every row."""
    dims = [f"({core})" for core in law.core_dims(0)]
    pm.CustomDist(
        name,
        *(node[z] for node in law.nodes),
        observed,
        logp=lambda value, *given: law.logp(value, given[-1], *given[:-1]),
        dist=lambda *given: law.draw(*given[:-2]) * given[-2],
        signature=f"{','.join(dims)},(c)->(c)",
        observed=cells,
    )


def joint(
    laws: tuple[LawNodes, ...],
    nodes: tuple[TensorVariable, ...],
    cells: TensorVariable,
    observed: TensorVariable,
) -> TensorVariable:
    """Log density (obs, component) of the cells under all laws, whose nodes stand side by side."""
    total, column, node = pt.zeros((cells.shape[0], 1)), 0, 0
    for law in laws:
        mine = slice(column, column + law.n_columns)
        given = nodes[node : node + len(law.nodes)]
        total += law.logp(cells[:, None, mine], observed[:, None, mine], *given)
        column, node = mine.stop, node + len(law.nodes)
    return total


def draws(
    laws: tuple[LawNodes, ...], nodes: tuple[TensorVariable, ...], component: TensorVariable
) -> list[TensorVariable]:
    """Cells of every law given the components of some rows."""
    cells, node = [], 0
    for law in laws:
        given = nodes[node : node + len(law.nodes)]
        cells.append(law.draw(*(value[component] for value in given)))
        node += len(law.nodes)
    return cells


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
    return LawNodes(len(record.columns), (means, dispersions), _log_counts, _draw_counts)


def _log_counts(
    counts: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    dispersions: TensorVariable,
) -> TensorVariable:
    """Log density of the observed counts of a row."""
    law = pm.NegativeBinomial.dist(mu=means, alpha=1 / dispersions)
    return (observed * pm.logp(law, counts)).sum(-1)


def _draw_counts(means: TensorVariable, dispersions: TensorVariable) -> TensorVariable:
    """Counts of rows, given the values at their components."""
    return pm.NegativeBinomial.dist(mu=means, alpha=1 / dispersions)


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
        len(record.columns),
        (locations, slopes),
        partial(_log_levels, cuts),
        partial(_draw_levels, cuts),
    )


def _log_levels(
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


def _draw_levels(
    cuts: np.ndarray, locations: TensorVariable, slopes: TensorVariable
) -> TensorVariable:
    """Levels of rows: how many cut points a logistic variable lies above."""
    latent = pm.Logistic.dist(mu=locations, s=np.float64(1))
    return (latent[..., None] > slopes[..., None] * cuts[:, 1:]).sum(-1)

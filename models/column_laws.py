"""Laws of further columns in the graph, and the door by which one enters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

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

"""Rows that several models see, such as the members of a stack."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from bayesrbf.numerics.kernel_network.product_kernels import CellMoments
from bayesrbf.records.mixture import Observations


@runtime_checkable
class FillsCells(Protocol):
    """A model that gives missing cells of a kernel their distributions."""

    def cells(self, rows: Observations) -> CellMoments:
        """Rows as a kernel sees them."""
        ...


class RowView:
    """Rows as some models see them; what kernels with the same companions see is made once."""

    def __init__(self, rows: Observations) -> None:
        self.rows = rows
        self._cells: dict[int, CellMoments] = {}

    def cells(self, companions: FillsCells) -> CellMoments:
        """The rows as kernels with these companions see them."""
        if id(companions) not in self._cells:
            self._cells[id(companions)] = companions.cells(self.rows)
        return self._cells[id(companions)]

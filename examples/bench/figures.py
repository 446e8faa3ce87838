"""What a benchmark measured: printed, and kept as a file from which the pages show it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

import pandas as pd

from tests.measured import Cell, write

Row = dict[str, Cell]
ERRORS: Final = 2.0
"""Standard errors by which a mean may miss its bound: chance alone rarely takes it further."""


def show(
    name: str,
    measured: pd.DataFrame | Iterable[Mapping[str, object]],
    digits: int | Mapping[str, int] = 3,
) -> None:
    """Print a table, and keep it under its name. The index of a frame becomes its first columns."""
    frame = pd.DataFrame(measured)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(names=[name or "" for name in frame.index.names])
    columns = {str(column): frame[column].tolist() for column in frame}
    print("\n" + write(name, columns, command(), digits), flush=True)


def command() -> str:
    """How this benchmark alone is run."""
    test = re.sub(r"\[.*|\s.*", "", os.environ["PYTEST_CURRENT_TEST"].split("::")[-1])
    return f"make bench ARGS='-k {test}'"


def at_most(found: pd.DataFrame | pd.Series, bound: float) -> None:
    """Refuse a column whose mean is above the bound by more than its errors allow."""
    frame = pd.DataFrame(found)
    least = frame.mean() - ERRORS * frame.sem()
    assert (least <= bound).all(), least[~(least <= bound)]


def at_least(found: pd.DataFrame | pd.Series, bound: float) -> None:
    """Refuse a column whose mean is below the bound by more than its errors allow."""
    at_most(-found, -bound)


def near_one(found: pd.DataFrame | pd.Series, by: float) -> None:
    """Refuse a column whose mean is further from 1 than its errors allow."""
    at_most(found, 1 + by)
    at_least(found, 1 - by)

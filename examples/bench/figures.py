"""What a benchmark measured: printed, and kept as a file from which the pages show it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from tests.measured import Cell, write

Row = dict[str, Cell]


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

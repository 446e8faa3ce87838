"""What a benchmark measured: printed, and kept as a file from which the pages show it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from tests.measured import FIGURES, SETTINGS, Cell, markdown, read, table, write

Row = dict[str, Cell]
Counts = Mapping[str, tuple[int, int]]


def show(
    name: str,
    measured: pd.DataFrame | Iterable[Mapping[str, object]],
    digits: int | Mapping[str, int] = 3,
    counts: Counts | None = None,
) -> None:
    """Print a table, and keep it under its name where a default run or ``counts`` made it.

    The index of a frame becomes its first columns. A run that the environment changed is kept
    where ``counts`` say what was run of what was asked, and where no fuller one was kept.
    """
    frame = pd.DataFrame(measured)
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(names=[name or "" for name in frame.index.names])
    columns = {str(column): frame[column].tolist() for column in frame}
    given = (columns, command(), digits, counts)
    whole = not any(SETTINGS.match(variable) for variable in os.environ)
    kept = whole or (counts and not poorer(name, counts))
    print("\n" + (write(name, *given) if kept else markdown(table(*given))), flush=True)


def command() -> str:
    """How this benchmark alone is run."""
    test = re.sub(r"\[.*|\s.*", "", os.environ["PYTEST_CURRENT_TEST"].split("::")[-1])
    return f"make bench ARGS='-k {test}'"


def poorer(name: str, counts: Counts) -> bool:
    """Whether a file has the figures of a fuller run."""
    if not (FIGURES / f"{name}.json").exists():
        return False
    kept = read(name).counts
    return any(ran < kept.get(what, (asked, 0))[0] for what, (ran, asked) in counts.items())

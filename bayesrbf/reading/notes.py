"""Notes, errors and warnings about a table, and the phrases of which their sentences are made."""

from __future__ import annotations

import csv
import io
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bayesrbf.table.kinds import Kind

# Warnings at the line of the user's code that led to them.


class ColumnWarning(UserWarning):
    """Doubtful columns or rows of a training table."""


FOR_DEVELOPERS: Final = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
)
"""Warnings of other libraries for programmers, which neither a page nor a terminal shows."""
PACKAGE: Final = str(Path(__file__).parent.parent)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package in the call stack."""
    warnings.warn(message, category, skip_file_prefixes=(PACKAGE,))


# Notes on a table, and the phrases of which their sentences are made.


SHOWN_COLUMNS: Final = 6
"""Columns that a sentence names."""


class TableError(ValueError):
    """A file that cannot be read as a table.

    Parameters
    ----------
    *problems : str
        A sentence on each reason.

    Attributes
    ----------
    problems : tuple of str
        The same; the message has all of them.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        many = [f"{len(problems)} problems:", *(f"- {problem}" for problem in problems)]
        super().__init__(problems[0] if len(problems) == 1 else "\n".join(many))


@dataclass(frozen=True)
class Note:
    """A note on a column, or on the whole file where ``column`` is empty."""

    topic: str
    column: str
    value: str = ""  # Value that similar notes share, such as the stand-in; the message on a file.
    count: int = 0  # Cells that it is about.
    example: str = ""  # One of them.
    elsewhere: bool = False  # Whether other columns have the value, so that it may mean something.


def option(name: str, *values: str) -> str:
    """An option as it is typed.

    >>> print(option("na", "-999"), option("na", "not known", "a,b"), option("decimal", ","))
    --na=-999 --na 'not known,"a,b"' --decimal ','
    """
    if len(values) == 1 and not any(c.isalnum() or c in "'\"" for c in values[0]):
        return f"--{name}{'=' if values[0].startswith('-') else ' '}'{values[0]}'"
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    glue = "=" if text.getvalue().startswith("-") else " "
    return f"--{name}{glue}{shlex.quote(text.getvalue())}"


def ways_of(kind: type[Kind], *names: str) -> str:
    """Advice on the options for columns that look like a kind."""
    values = names if kind.option != "kind" else [f"{name}={kind.word}" for name in names]
    latest = f", {option('time', names[0])} to hold the latest rows out" if kind.grows else ""
    asks, ignores = option(kind.option, *values), option("ignore", *names)
    return f"say {asks} to read {kind.numbers}{latest}, or {ignores}."


def listed(items: Sequence[object], most: int = SHOWN_COLUMNS) -> str:
    """Items in a sentence; empty without any.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"), most=2)
    ('a', 'a, b and c', 'a, b and 4 more')
    """
    shown = [str(item) for item in items[:most]]
    rest = [f"{len(items) - most} more"] if len(items) > most else []
    *first, last = [*shown, *rest] or [""]
    return f"{', '.join(first)} and {last}" if first else last

"""Describes doubtful columns of a training table in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Shaped

from bayesrbf.estimators.warning import ColumnWarning, warn
from bayesrbf.reading.same_levels import written_apart
from bayesrbf.table import Columns
from bayesrbf.table.containers import read_cells

if TYPE_CHECKING:
    from bayesrbf.reading.notes import Note

SHOWN: Final = 5
"""Columns that the sentence tells about."""
MOST: Final = 500
"""Columns of a table beyond which none is looked at: a millisecond each, and ids matter less."""


def column_doubts(X: object, columns: Columns, *, named: bool) -> str:
    """Stand-ins for missing cells, names of rows and text that is numbers; empty for a clean table.

    Where the categorical columns are ``named``, and of columns whose type is a category, text is
    what it should be.
    """
    clauses = list(_doubts(X, columns, named)) if len(columns.names) <= MOST else []
    clauses += _codes_apart(columns)
    more = f"; {len(clauses) - SHOWN} more columns are doubtful" if len(clauses) > SHOWN else ""
    sentence = "; ".join(clauses[:SHOWN]) + more
    return f"{sentence[0].upper()}{sentence[1:]}." if clauses else ""


def warn_of_blank_labels(classes: Shaped[np.ndarray, " label"], owner: str) -> None:
    """Warn where a class is a text without a letter: NaN and None hide a label, and it does not."""
    for label in classes.tolist():
        if isinstance(label, str) and not label.strip():
            warn(
                f"{owner}.fit takes the label {label!r} for a class. If it means that a row has no "
                f"label, give unlabelled={label!r}.",
                ColumnWarning,
            )


def _doubts(X: object, columns: Columns, named: bool) -> Iterator[str]:
    """A clause on each doubtful column."""
    from bayesrbf.reading.doubtful import REMEDY, numbers_as_text
    from bayesrbf.reading.noticing import MISSING_CODE, notice

    cells = read_cells(X)
    looked: dict[str, Any] = {}
    remedy = f" ({REMEDY})"  # Said once.
    for name, column, declared, kind in zip(
        cells.names, cells.columns, cells.declared, columns.kinds, strict=True
    ):
        if column.dtype.kind == "f" and kind == "real":
            looked[name] = column
        elif kind == "categorical" and not named and not declared:
            texts = column.tolist()
            clause = numbers_as_text(cell for cell in texts if isinstance(cell, str))
            if clause:
                yield f"column {name!r} {clause}{remedy}"
                remedy = ""
            elif all(cell is None or isinstance(cell, str) for cell in texts):
                looked[name] = texts
    for note in notice(looked):
        # What is far from all others and no usual code, such as a row of zeros that were centred,
        # is told of files only.
        usual = note.topic != "stand-in" or MISSING_CODE.fullmatch(note.value)
        if usual and note.topic in CLAUSES:
            yield f"column {note.column!r} {CLAUSES[note.topic](note)}"


def _codes_apart(columns: Columns) -> Iterator[str]:
    """A clause on each column of codes such as 7 and 007, which may be one number or two codes."""
    from bayesrbf.reading.notes import listed

    for name, levels in columns.levels_of.items():
        texts = [level for level in levels if isinstance(level, str)]
        if apart := written_apart(texts):
            yield (
                f"column {name!r} holds {listed(list(map(repr, apart)))}, which are one number and "
                "count as levels apart (if they are one, write them in one way)"
            )


def _holds(note: Note, why: str) -> str:
    """A stand-in."""
    often = "one cell" if note.count == 1 else f"{note.count} cells"
    return f"holds {note.value} in {often}, {why} (if it means missing, make it NaN)"


CLAUSES: Final[dict[str, Callable[[Note], str]]] = {
    "stand-in": lambda note: _holds(note, "far from all other values"),
    "only negative": lambda note: _holds(note, "and no other negative value"),
    "word for missing": lambda note: _holds(note, "read as a category"),
    "identifier": lambda note: (
        f"has {note.value}, such as {note.example} (if it names the rows, leave it out)"
    ),
    "free text": lambda note: (
        f"holds text that hardly repeats, {note.count} distinct values (leave it out, or make "
        "categories of it)"
    ),
}
"""What is said of a column, by the topic of a note."""

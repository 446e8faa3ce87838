"""Describes doubtful columns of a training table in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Int, Shaped

from bayesrbf.estimators.warning import ColumnWarning, warn
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


def warn_of_lone_rows(
    classes: Shaped[np.ndarray, " label"], codes: Int[np.ndarray, " obs"], owner: str
) -> None:
    """Warn where a class has one labelled row, which no fit can be judged by."""
    counts = np.bincount(codes[codes >= 0], minlength=classes.size)[: classes.size]
    lone = [repr(label) for label in classes[counts == 1].tolist()]
    if lone and counts.max() > 1:  # where no class has more, nothing is held out, and fit says so
        named = ", ".join(lone[:SHOWN]) + (", ..." if len(lone) > SHOWN else "")
        warn(
            f"{owner}.fit: one labelled row alone is of class {named}. It is never held out, so "
            "the probability of such a class cannot be validated, nor calibrated; label more of "
            "its rows, or leave it out."
        )


def _doubts(X: object, columns: Columns, named: bool) -> Iterator[str]:
    """A clause on each doubtful column."""
    from bayesrbf.reading.doubtful import REMEDY, numbers_as_text
    from bayesrbf.reading.noticing import MISSING_CODE, notice

    for name in (columns.names[position] for position in columns.empty):
        yield f"column {name!r} has no cell (it is left out, and stays missing)"
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

"""Describes doubtful columns of a training table in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Int, Shaped

from bayesrbf.estimators.warning import ColumnWarning, warn
from bayesrbf.reading.same_levels import in_one_spelling, written_apart
from bayesrbf.records.units import copies_sentence
from bayesrbf.table import Columns
from bayesrbf.table.containers import read_cells

if TYPE_CHECKING:
    from bayesrbf.reading.notes import Note

SHOWN: Final = 5
"""Columns that the sentence tells about."""
MANY_COPIES: Final = 0.05
"""Share of copies among the rows from which there is a warning: many tables have one or two."""
MOST: Final = 500
"""Columns of a table beyond which none is looked at: a millisecond each, and ids matter less."""


def column_doubts(X: object, columns: Columns, *, named: bool, grouped: bool = True) -> str:
    """Stand-ins for missing cells, names of rows and text that is numbers; empty for a clean table.

    Where the categorical columns are ``named``, and of columns whose type is a category, text is
    what it should be, and only its levels are looked at. Fits that are ``grouped`` take groups.
    """
    clauses = list(_doubts(X, columns, named, grouped)) if len(columns.names) <= MOST else []
    clauses += _codes_apart(columns)
    more = f"; {len(clauses) - SHOWN} more columns are doubtful" if len(clauses) > SHOWN else ""
    sentence = "; ".join(clauses[:SHOWN]) + more
    return f"{sentence[0].upper()}{sentence[1:]}." if clauses else ""


def warn_of_labels(
    classes: Shaped[np.ndarray, " label"], codes: Int[np.ndarray, " obs"], owner: str
) -> None:
    """Warn of one class alone, labels that may mean none, and labels that are written alike."""
    from bayesrbf.reading.words import doubtful_labels

    frequencies = np.bincount(codes[codes >= 0], minlength=classes.size).tolist()
    labels = {str(label): label for label in classes.tolist()}
    if len(labels) == 1:
        warn(
            f"{owner}.fit received one class alone, {classes.tolist()[0]!r}: its probability is 1 "
            "everywhere, and nothing can be told apart. Give labelled rows of another class."
        )
    for note in doubtful_labels("y", dict(zip(labels, frequencies, strict=True))):
        if note.topic == "label for missing":
            label = labels[note.value]
            warn(
                f"{owner}.fit takes the label {label!r} for a class ({note.count} rows). If it "
                f"means that a row has no label, give unlabelled={label!r}.",
                ColumnWarning,
            )
        else:
            warn(
                f"{owner}.fit takes the labels {note.value} for different classes; they differ by "
                f"{note.example}. If they mean the same, write them alike.",
                ColumnWarning,
            )


def warn_of_copies(repeated: int, n_rows: int, owner: str) -> None:
    """Warn where many rows are copies of an earlier one; ``status_`` tells of any."""
    if repeated > MANY_COPIES * n_rows:
        warn(f"{owner}.fit: {copies_sentence(repeated)}", ColumnWarning)


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


def _doubts(X: object, columns: Columns, named: bool, grouped: bool) -> Iterator[str]:
    """A clause on each doubtful column."""
    from bayesrbf.reading.doubtful import REMEDY, numbers_as_text
    from bayesrbf.reading.noticing import MISSING_CODE, notice

    for name in (columns.names[position] for position in columns.empty):
        yield f"column {name!r} has no cell (it is left out, and stays missing)"
    cells = read_cells(X)
    looked: dict[str, Any] = {}
    decided = set[str]()
    remedy = f" ({REMEDY})"  # Said once.
    for name, column, declared, kind in zip(
        cells.names, cells.columns, cells.declared, columns.kinds, strict=True
    ):
        if column.dtype.kind == "f" and kind == "real":
            looked[name] = column
        elif kind == "categorical":
            texts = column.tolist()
            if named or declared:
                decided.add(name)
            elif clause := numbers_as_text(cell for cell in texts if isinstance(cell, str)):
                yield f"column {name!r} {clause}{remedy}"
                remedy = ""
                continue
            if all(cell is None or isinstance(cell, str) for cell in texts):
                level = in_one_spelling({cell for cell in texts if cell is not None})
                looked[name] = [None if cell is None else level[cell] for cell in texts]
    for note in notice(looked):
        # What is far from all others and no usual code, such as a row of zeros that were centred,
        # is told of files only.
        usual = note.topic != "stand-in" or MISSING_CODE.fullmatch(note.value)
        if usual and note.topic in (OF_LEVELS if note.column in decided else CLAUSES):
            yield f"column {note.column!r} {CLAUSES[note.topic](note)}{_groups(note, grouped)}"


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


def _groups(note: Note, grouped: bool) -> str:
    """What to do about names of patients and the like; empty for all else."""
    if note.topic not in REPEATED:
        return ""
    if not grouped:
        return " (if it names patients or the like, leave it out)"
    return (
        " (if it says which rows belong together, leave it out and give it as groups= to fit, so "
        "that they are never both fitted and held out)"
    )


OF_LEVELS: Final = frozenset({"word for missing", "spelled alike", "names of rows"})
"""Topics that are told of categories that were named or declared, too."""
REPEATED: Final = ("repeated names", "repeated numbers", "repeated texts")
CLAUSES: Final[dict[str, Callable[[Note], str]]] = {
    "stand-in": lambda note: _holds(note, "far from all other values"),
    "only negative": lambda note: _holds(note, "and no other negative value"),
    "word for missing": lambda note: _holds(
        replace(note, value=repr(note.value)), "read as a category"
    ),
    "spelled alike": lambda note: (
        f"holds {note.value}, which differ by {note.example} (if they mean the same, write them "
        "alike)"
    ),
    "identifier": lambda note: (
        f"has {note.value}, such as {note.example} (if it names the rows, leave it out)"
    ),
    "names of rows": lambda note: (
        f"has {note.count} texts that are all different, such as {note.example!r} (leave it out: "
        "it names the rows)"
    ),
    **dict.fromkeys(REPEATED, lambda note: f"has {note.value}, such as {note.example}"),
    "free text": lambda note: (
        f"holds text that hardly repeats, {note.count} distinct values (leave it out, or make "
        "categories of it)"
    ),
}
"""What is said of a column, by the topic of a note."""

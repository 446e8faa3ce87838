"""Remarks on new rows, and the advice that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bayesrbf.app.words import clipped, listing

Topic = Literal[
    "not new",
    "reasons",
    "columns",
    "exchanged",
    "unit",
    "levels",
    "missing",
    "labels",
    "ranking",
    "calibration",
    "classes",
    "worth",
    "cost",
    "patterns",
    "rows",
    "cells",
    "grows",
]

RECALIBRATE: Final = (
    "Recalibrate: the probabilities do not come true as often as they say, or meet other class "
    "frequencies, as far as these rows can tell."
)
ACTIONS: Final[Mapping[Topic, str]] = {
    "not new": "Give rows that are new to the model, or take the figures of its report.",
    "reasons": "Cells are missing, or measured, otherwise than in training: if the reasons are "
    "others, say so by --missingness ignorable (assume_missingness in Python), else give {columns} "
    "as in training.",
    "columns": "Add {columns}, or fit again without what cannot be had.",
    "exchanged": "Exchange {columns} back.",
    "unit": "Give {columns} in the units of training.",
    "levels": "Write the levels of {columns} as in training, or fit again with rows that have the "
    "new ones.",
    "missing": "Give {columns} as in training, or fit again with rows like these.",
    "labels": "Refit with rows of the classes that the model does not know, or correct these "
    "labels; all that is said here is of the other rows.",
    "ranking": "Refit, or label more rows where these are few: they are not surely ranked better "
    "than by chance, or are ranked worse than training rows held out, which no recalibration "
    "mends.",
    "calibration": RECALIBRATE,
    "classes": RECALIBRATE,
    "worth": RECALIBRATE,
    "cost": "Do not decide by the model at these costs: a row costs no less than by the answer "
    "that is best for all rows alike, as far as these rows can tell.",
    "patterns": "Find out why cells are missing in other patterns than in training before you use "
    "the model.",
    "rows": "Find out why so many rows are unlike those of training before you use the model.",
    "cells": "Look at the cells that stand out, and correct those that are wrong.",
    "grows": "Fit again with rows of such cells.",
}
"""What to do about a finding, the most urgent one first."""
OF_COLUMNS: Final = ("reasons", "columns", "exchanged", "unit", "levels", "missing")
"""Topics about whole columns of the rows."""
OF_DENSITY: Final = ("patterns", "rows", "cells")
"""Topics about cells and rows that a density finds."""
OF_CELLS: Final = (*OF_COLUMNS, *OF_DENSITY)
AS_GIVEN: Final = ("not new", *OF_COLUMNS)
"""Topics about the rows as they were given: such a finding voids what other remarks say."""
USE: Final = "Use the model as it is, as far as these rows can tell."
CARE: Final = (
    "Use the model with care, or label more rows: these do not show both that it is better than "
    "answers without a model and that its probabilities come true."
)
"""In place of ``USE`` where labelled rows have no finding, and their verdict is no plain yes."""
LISTED_COLUMNS: Final = 8


@dataclass(frozen=True)
class Remark:
    """A sentence on new rows, and the columns of the model that it is about."""

    topic: Topic
    sentence: str
    is_finding: bool = True
    """Else it is worth knowing, and chance may explain it."""
    columns: tuple[str, ...] = ()


def lines_of_remarks(remarks: Sequence[Remark], advised: str) -> list[str]:
    """Remarks as lines of text: the findings first, then the others, then the advice."""
    width = max((len(remark.topic) for remark in remarks), default=0)
    lines = []
    for is_finding, title in ((True, "Found"), (False, "Beside that")):
        group = [remark for remark in remarks if remark.is_finding is is_finding]
        if group:
            lines += [title, *(f"  {remark.topic:<{width}}  {remark.sentence}" for remark in group)]
    if not any(remark.is_finding for remark in remarks):
        lines = ["Nothing was found.", *lines]
    return [*lines, advised]


def advice(remarks: Sequence[Remark]) -> str:
    """What to do about the findings; to use the model where there is none.

    >>> print(advice([Remark("unit", "It is 1,000 times too large.", columns=("bmi",))]))
    Give column 'bmi' in the units of training. Until then rely on nothing that is said of these \
rows: it is about them as they were given.
    """
    columns_of: dict[Topic, dict[str, None]] = {}
    for remark in remarks:
        if remark.is_finding:
            columns_of.setdefault(remark.topic, {}).update(dict.fromkeys(remark.columns))
    found = [topic for topic in ACTIONS if topic in columns_of]
    if not found:
        return USE
    if found[0] not in AS_GIVEN:
        return ACTIONS[found[0]]
    actions = [
        ACTIONS[topic].format(columns=_named(list(columns_of[topic])))
        for topic in found
        if topic in AS_GIVEN
    ]
    return (
        f"{' '.join(actions)} Until then rely on nothing that is said of these rows: it is about "
        "them as they were given."
    )


def _named(columns: Sequence[str]) -> str:
    """Columns by their names, the first of many."""
    names = listing([repr(clipped(name, 30)) for name in columns], LISTED_COLUMNS)
    return f"column{'s' * (len(columns) != 1)} {names}"

"""The table of docs/reproduction.md: a line a question, with cells of the files of figures."""

from __future__ import annotations

from typing import Final

from tests.measured import FIGURES, read, text

Place = tuple[str, str, str, str]
"""A page, a file, the first cells of a row of it, and columns; each separated by "; "."""
SETS: Final = "18 tables; 18 tables, holes; 11 tables; 11 tables, holes"
QUESTIONS: Final[dict[str, Place]] = {
    "log loss of the default stack, 18 tables; with holes; 11 others; with holes": (
        "stack",
        "stack/log_loss",
        "stack",
        SETS,
    ),
    "the same of a random forest": ("stack", "stack/log_loss", "RandomForest", SETS),
    "CPU time of a default fit, in fits of a forest; with holes": (
        "stack",
        "times/fits",
        "`StackedClassifier()`",
        "complete; 30 % of the cells hidden",
    ),
    "true probabilities inside 90 % intervals of the stack, 200 rows": (
        "intervals",
        "intervals/200_rows_complete",
        "stack",
        "90%",
    ),
    "the same with holes": ("intervals", "intervals/200_rows_with_holes", "stack", "90%"),
    "log density of a cell, density of the report": (
        "density",
        "density/scores",
        "log density a cell, mixed, holes",
        "trimmed pool",
    ),
    "speed of an iteration of EM over scikit-learn's, 100,000 x 10": (
        "speed",
        "em_speed/sklearn",
        "compiled; full; apart",
        "scikit-learn / bayesrbf",
    ),
    "CPU seconds of a first fit of the stack, kernels not compiled; later": (
        "speed",
        "first_fit",
        "`StackedClassifier()`",
        "first fit; later",
    ),
    "ms until the server has answered a row, median; 99 of 100": (
        "serve",
        "serve/speed",
        "one row, 20 a second, JSON",
        "p50, ms; p99, ms",
    ),
}


def table() -> str:
    """The table in Markdown."""
    lines = [
        f"| {question} | {cells(*place)} | {{doc}}`measured/{place[0]}` |"
        for question, place in QUESTIONS.items()
    ]
    return "\n".join(["| question | measured | page |", "|:--|:--|:--|", *lines]) + "\n"


def cells(page: str, file: str, first: str, columns: str) -> str:
    """What the first row of that name has in the columns."""
    if not (FIGURES / f"{file}.json").exists():
        return "not run"
    figures, named = read(file), first.split("; ")
    row = next(row for row in figures.rows if [*row[: len(named)]] == named)
    places = [figures.columns.index(column) for column in columns.split("; ")]
    return "; ".join(text(row[at], figures.digits[at]) for at in places)

"""The table of docs/reproduction.md: a line a question, with cells of the files of figures."""

from __future__ import annotations

from typing import Final

from tests.measured import FIGURES, read, text

Place = tuple[str, str, str, str]
"""A page, a file, the first cells of a row of it, and columns; each separated by "; "."""
QUESTIONS: Final[dict[str, Place]] = {
    "log loss of the default stack, 18 tables": (
        "quality",
        "quality/complete",
        "`StackedClassifier()`",
        "log loss",
    ),
    "of a random forest; more than the stack, with its standard error": (
        "quality",
        "quality/complete",
        "random forest",
        "log loss; behind the stack; se",
    ),
    "log loss of the default stack, 30 % of the cells hidden": (
        "quality",
        "quality/with_holes",
        "`StackedClassifier()`",
        "log loss",
    ),
    "of a random forest there; more than the stack, with its standard error": (
        "quality",
        "quality/with_holes",
        "random forest",
        "log loss; behind the stack; se",
    ),
    "CPU time of a default fit, in fits of a forest; with cells hidden": (
        "quality",
        "quality/seconds",
        "`StackedClassifier()`",
        "complete; 30 % of the cells hidden",
    ),
    "true probabilities inside 90 % intervals of the stack; standard error; width": (
        "intervals",
        "intervals/complete",
        "stack",
        "90%; se of 90%; width",
    ),
    "the same with 80 % of the cells hidden": (
        "intervals",
        "intervals/any_cells",
        "stack; 80%",
        "90%; se of 90%; width",
    ),
    "frequencies of cross-tables inside 90 % intervals of the stack; width": (
        "intervals",
        "intervals/frequencies",
        "stack; no column",
        "90%; width",
    ),
    "the same with one column hidden": (
        "intervals",
        "intervals/frequencies",
        "stack; one column",
        "90%; width",
    ),
    "log density of a cell, density of the report": (
        "density",
        "density/scores",
        "log density a cell, mixed, holes",
        "trimmed pool",
    ),
    "speed of an iteration of EM over scikit-learn's, 100,000 x 10": (
        "times",
        "times/sklearn",
        "compiled; full; apart",
        "scikit-learn / bayesrbf",
    ),
    "CPU seconds of a process that fits a stack to iris, kernels not compiled": (
        "times",
        "times/wait",
        "a process that fits a stack to iris, nothing compiled",
        "CPU seconds",
    ),
    "ms until the server has answered a row, median; 99 of 100": (
        "times",
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

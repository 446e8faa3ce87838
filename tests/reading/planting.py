"""Plants troubles of real tables in clean ones, each with the note that it should give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrbf import TableError, read_table

Plant = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
SHARE = 0.08
"""Cells of a column that a stand-in takes the place of."""


@dataclass(frozen=True)
class Trouble:
    """A trouble, and what tells that it was noticed."""

    plant: Plant
    said: str  # Part of the sentence, or of the problem.


def stand_in(value: float, columns: int) -> Plant:
    """A number where a cell is missing."""

    def plant(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        table = table.copy()
        for name in reals(table)[:columns]:
            cells = table[name].to_numpy(dtype=float, copy=True)
            cells[rng.random(len(cells)) < SHARE] = value
            cells[:3] = value
            table[name] = cells
        return table

    return plant


def word(text: str) -> Plant:
    """A word where a cell of text is missing."""

    def plant(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        levels = rng.choice(["north", "south", "west"], len(table)).astype(object)
        levels[rng.random(len(table)) < SHARE] = text
        levels[0] = text
        return table.assign(planted=levels)

    return plant


def written(as_text: Callable[[float], str]) -> Plant:
    """A column of amounts, written in a way of its own."""

    def plant(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        amounts = np.round(np.exp(rng.normal(8, 1, len(table))), 2)
        return table.assign(planted=[as_text(amount) for amount in amounts])

    return plant


def column(make: Callable[[int, np.random.Generator], object]) -> Plant:
    """A column more."""
    return lambda table, rng: table.assign(planted=make(len(table), rng))


def _notes(n: int, rng: np.random.Generator) -> list[str]:
    words = np.array(["the patient", "said", "that pain", "came", "and", "went", "after a walk"])
    return [" ".join(rng.choice(words, 9)) for _ in range(n)]


def _days(n: int, rng: np.random.Generator, form: str) -> list[str]:
    days = np.datetime64("2018-03-01") + rng.integers(0, 2000, n)
    return pd.to_datetime(days).strftime(form).tolist()


TROUBLES = {
    "-999 in three columns": Trouble(stand_in(-999, 3), "-999"),
    "9999 in one column": Trouble(stand_in(9999, 1), "9999"),
    "-1e6 in one column": Trouble(stand_in(-1e6, 1), "-1000000"),
    "unknown": Trouble(word("unknown"), "'unknown'"),
    "n/k": Trouble(word("n/k"), "'n/k'"),
    "numbers of the rows": Trouble(column(lambda n, rng: rng.permutation(n) + 1), "count the rows"),
    "rising numbers": Trouble(
        column(lambda n, rng: 10_000 + np.cumsum(rng.integers(1, 9, n))), "rise or fall"
    ),
    "random numbers of six digits": Trouble(
        column(lambda n, rng: rng.choice(900_000, n, replace=False) + 100_000), "all different"
    ),
    "codes of the rows": Trouble(
        column(lambda n, rng: [f"P{i:05d}" for i in rng.permutation(n)]), "all different"
    ),
    "prose": Trouble(column(_notes), "hardly repeats"),
    "numbers of patients who come again": Trouble(
        column(lambda n, rng: rng.choice(9_000_000, n)[rng.integers(0, n, n)] + 1_000_000),
        "measured again",
    ),
    "codes of patients who come again": Trouble(
        column(lambda n, rng: [f"P{i:05d}" for i in rng.integers(0, n, n)]), "measured again"
    ),
    "cells below a limit": Trouble(
        written(lambda x: "<1500" if x < 1500 else f"{x:.0f}"), "beyond a limit"
    ),
    "per cent": Trouble(written(lambda x: f"{x / 500:.1f} %"), "percent signs"),
    "dollars": Trouble(written(lambda x: f"${x:,.2f}"), "amounts in $"),
    "euros": Trouble(written(lambda x: f"{x:.2f} €".replace(".", ",")), "amounts in €"),
    "commas between thousands": Trouble(written(lambda x: f"{x:,.2f}"), "thousands apart by ','"),
    "blanks between thousands": Trouble(
        written(lambda x: f"{x:,.0f}".replace(",", "\u202f")), "thousands apart by a blank"
    ),
    "open thousands": Trouble(written(lambda x: f"{1000 + x:,.0f}"), "a mark between thousands"),
    "dates": Trouble(column(lambda n, rng: _days(n, rng, "%Y-%m-%d")), "is a date"),
    "German dates": Trouble(column(lambda n, rng: _days(n, rng, "%d.%m.%Y")), "is a date"),
    "American dates": Trouble(column(lambda n, rng: _days(n, rng, "%m/%d/%Y")), "is a date"),
}
"""What goes wrong in tables of people."""

HARMLESS = ("rows and", "one value only", "the whole numbers", "leading zeros", "decimal commas")
"""Notes that are no alarm: how many rows there are, and kinds that were decided."""


def reals(table: pd.DataFrame) -> list[str]:
    """Names of the columns of numbers with more than a few values."""
    numbers = table.select_dtypes("number")
    return [name for name in numbers if numbers[name].nunique() > 10]


def heard(table: pd.DataFrame, folder: str, **options: object) -> list[str]:
    """Every sentence of reading a table, or its problems."""
    path = f"{folder}/table.csv"
    table.to_csv(path, index=False)
    try:
        found = read_table(path, "target", **options)  # type: ignore[arg-type]
    except TableError as error:
        return list(error.problems)
    return [note for note in found.notes if not any(mild in note for mild in HARMLESS)]

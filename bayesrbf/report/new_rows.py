"""New rows: read as the model takes them, and what is said of those unlike the training table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from bayesrbf.posterior.two_tables import FEWEST, changed_columns
from bayesrbf.reading import (
    ReadTable,
    TableError,
    names_in_file,
    read_blocks,
    read_file,
    text_dtype,
)
from bayesrbf.records.table_options import PLAIN, TableOptions
from bayesrbf.report.density import columns_of
from bayesrbf.report.reference import training_table
from bayesrbf.report.words import clipped, listing, number, plural

NOVEL: Final = 0.99
"""Novelty above which a row is called novel; of the model's own rows 1 in 100 has more."""
BLOCK: Final = 20_000
"""Rows of a new table that are read and answered at once."""
USUAL: Final = 0.01
"""Share of training rows with fewer cells from which a new row has fewer than nearly all."""
CHANCE: Final = 0.01
"""Probability below which so many novel rows are more than chance brings."""
FACTOR: Final = 3.0
"""Ratio of a number to what was expected from which it is told as a factor."""


@dataclass(frozen=True)
class NewRows:
    """A new table under the columns of a model."""

    rows: pd.DataFrame  # All columns of the model in their order; absent ones are empty.
    absent: Sequence[str]  # Columns of the model that the file lacks.
    extra: Sequence[str]  # Columns of the file that the model does not know.


def read_rows(model: Any, path: Path, options: TableOptions = PLAIN) -> NewRows:
    """Read the columns that a model was fitted to, by the options of its own table."""
    asked = _Asked.of(model, path, options)
    return asked.taken(read_file(path, None, asked.options, known=True))


def read_complete(model: Any, path: Path, options: TableOptions = PLAIN) -> pd.DataFrame:
    """The same, with an error where a column of the model is absent."""
    asked = _Asked.of(model, path, options)
    asked.refuse_absent()
    return asked.taken(read_file(path, None, asked.options, known=True)).rows


def complete_blocks(
    model: Any, path: Path, options: TableOptions = PLAIN, size: int = BLOCK
) -> Iterator[pd.DataFrame]:
    """The same, so many rows at a time: a long table needs the memory of a short one."""
    asked = _Asked.of(model, path, options)
    asked.refuse_absent()
    for read in read_blocks(path, asked.options, size):
        yield asked.taken(read).rows


@dataclass(frozen=True)
class _Asked:
    """What is asked of a file for a model."""

    name: str
    columns: Sequence[str]  # Of the model.
    reals: frozenset[str]  # Those of them that are numbers.
    options: TableOptions
    absent: Sequence[str]
    extra: Sequence[str]  # Not of the model, and not left out by its options.

    @classmethod
    def of(cls, model: Any, path: Path, options: TableOptions) -> _Asked:
        """From the names in a file; TableError where it has nothing of the model."""
        columns = columns_of(model)
        header = names_in_file(path)
        extra = [name for name in header if name not in (*columns.names, options.id)]
        absent = [name for name in columns.names if name not in header]
        if len(absent) == len(columns.names):
            raise TableError(f"{path.name} has none of the columns that the model was fitted to.")
        reals, here = frozenset(columns.real_names), [n for n in columns.names if n in header]
        known = {*columns.names, options.id}
        beside = replace(options, group=None, time=None).among([n for n in header if n in known])
        asked = replace(
            beside,
            real=tuple(name for name in here if name in reals and name not in beside.dates),
            categorical=tuple(name for name in here if name not in reals),
            ignore=tuple(extra),
        )
        left_out = (*options.ignore, options.group, options.time)
        told = [name for name in extra if name not in left_out]
        return cls(path.name, columns.names, reals, asked, absent, told)

    def refuse_absent(self) -> None:
        """TableError where a column of the model is absent."""
        if self.absent:
            raise TableError(
                f"{self.name} lacks {listing([repr(name) for name in self.absent])}, which the "
                "model was fitted to; add the column, empty where unknown."
            )

    def taken(self, read: ReadTable) -> NewRows:
        """The columns of the model in their order; absent ones are empty."""
        index = read.frame.index
        empty = {
            name: pd.Series(np.nan if name in self.reals else None, index, dtype)
            for name in self.absent
            for dtype in ["float64" if name in self.reals else text_dtype()]
        }
        return NewRows(read.frame.assign(**empty)[list(self.columns)], self.absent, self.extra)


def row_number(rows: pd.DataFrame, asked: str) -> int:
    """Number of a row, from 1, by its name where rows have names, else by the number itself.

    >>> named = pd.DataFrame({"x": [1.0, 2.0]}, pd.Index(["P1", "P2"], name="case"))
    >>> row_number(named, "P2"), row_number(named.reset_index(drop=True), "2")
    (2, 2)
    """
    named = rows.index.name is not None
    found = np.flatnonzero(rows.index.astype(str) == asked) if named else np.zeros(0, int)
    if found.size == 1:
        return int(found[0]) + 1
    if found.size > 1:
        raise ValueError(
            f"--row {asked} names {found.size} rows: {listing((found + 1).tolist())}; name the row "
            "of a file in which it stands once."
        )
    if named:
        some = listing([clipped(name, 24) for name in rows.index], 3)
        raise ValueError(
            f"--row {asked} must be the name of a row in column {str(rows.index.name)!r}, which "
            f"has {some}."
        )
    if not asked.removeprefix("-").isdigit():
        raise ValueError(f"--row {asked} must be the number of a row, 1 for the first.")
    return int(asked)


def novelty_of(model: Any, novel: pd.DataFrame, n_novel: int, n_rows: int) -> str:
    """How many of ``n_rows`` are unlike the training table, and the column that is odd most often.

    ``novel`` are all ``n_novel`` such rows, or the first of them. Empty where they are no more
    than chance brings.
    """
    if binom.sf(n_novel - 1, n_rows, 1 - NOVEL) > CHANCE:
        return ""
    verb = "is" if n_novel == 1 else "are"
    said = f"{n_novel} of {plural(n_rows, 'row')} {verb} unlike the training table"
    if not hasattr(model, "surprise"):
        return f"{said}."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what columns are, was said when the rows were predicted
        cells = model.surprise(novel)
    odd = cells["stands_out"].to_numpy()
    if not odd.any():
        return f"{said}: no single cell, but how cells go together."
    place = int(odd.sum(axis=0).argmax())
    name, rows = novel.columns[place], np.flatnonzero(odd[:, place])
    wrong = ""
    if pd.api.types.is_numeric_dtype(novel[name]):
        expected = cells["expected"].to_numpy()[rows, place].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = novel[name].to_numpy(dtype=float)[rows] / expected
        wrong = _wrong(model, novel, name, ratio)
    among = "them" if len(novel) == n_novel else f"the first {len(novel)}"
    return f"{said}: {clipped(name, 30)} stands out in {len(rows)} of {among}{wrong}."


def fewest_cells(model: Any) -> int:
    """Known cells of a row that 99 in 100 training rows have, or more."""
    known = training_table(model).notna().sum(axis=1)
    return int(np.quantile(known, USUAL, method="lower"))


def fewer_cells_of(model: Any, n_fewer: int, usual: int, fewest: int, n_rows: int) -> str:
    """How many rows have fewer cells than nearly all training rows, and what holds of them.

    ``usual`` are :func:`fewest_cells`, ``fewest`` those of the new row that has the fewest. Empty
    where there is no such row.
    """
    if n_fewer == 0:
        return ""
    verb, of_all = ("has" if n_fewer == 1 else "have"), len(columns_of(model).names)
    said = (
        f"{n_fewer} of {plural(n_rows, 'row')} {verb} fewer cells than 99 in 100 training rows: "
        f"{usual} of {of_all} there, here as few as {fewest}."
    )
    if model.calibration_ is None:
        return f"{said} The model is not calibrated for that; look at such rows one by one."
    return (
        f"{said} The model is calibrated for that, on held-out rows with cells hidden by chance: "
        "where little is known, the answer is near the class shares."
    )


def _wrong(model: Any, novel: pd.DataFrame, name: str, ratio: np.ndarray) -> str:
    """What became of a column, as check says it, or of its few odd cells by their ratio."""
    if len(ratio) < FEWEST:
        return _factor(float(np.median(ratio)))
    old = training_table(model)
    cells = {
        one: (old[one].dropna().to_numpy(float), novel[one].dropna().to_numpy(float))
        for one in columns_of(model).real_names
    }
    for one in changed_columns(cells):
        if name in one.columns and one.change is None:
            (other,) = set(one.columns) - {name}
            return f", exchanged with {clipped(other, 30)} as it seems"
        if name in one.columns and one.change is not None and one.change.offset == 0:
            return _factor(one.change.scale)
    return ""


def _factor(ratio: float) -> str:
    """How many times too large or small numbers are; empty where that is not what is wrong."""
    if not ratio > 0 or 1 / FACTOR < ratio < FACTOR:
        return ""
    size, way = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
    return f", about {number(size)} times too {way}"

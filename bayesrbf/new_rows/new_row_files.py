"""Files of new rows, read under the columns of a fitted model, and the labels beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from bayesrbf.new_rows.validation import as_classes
from bayesrbf.reading import (
    ReadTable,
    TableError,
    names_in_file,
    read_blocks,
    read_file,
    text_dtype,
)
from bayesrbf.reading.formats import RawTable
from bayesrbf.reading.same_levels import KnownLevels
from bayesrbf.reading.tabular_files import read_cells
from bayesrbf.records.table_options import PLAIN, TableOptions
from bayesrbf.report.options import ReportOptions
from bayesrbf.report.words import clipped, listing
from bayesrbf.table import Columns

if TYPE_CHECKING:
    from bayesrbf.estimators.classifier import Classifier
    from bayesrbf.estimators.estimator import Estimator

BLOCK_OF_ROWS: Final = 20_000
"""Rows of a new table that are read and answered at once."""
LISTED_NAMES: Final = 6


def read_rows(model: Classifier, path: Path, options: TableOptions = PLAIN) -> pd.DataFrame:
    """The columns of a file that a model was fitted to, read by the options of its own table.

    Columns that neither the model nor its options know are there, too, without their cells.
    """
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    read = read_file(path, None, plan.options, levels=plan.levels)
    return plan.cells(read).reindex(columns=[*plan.present, *plan.extra])


def read_complete(model: Classifier, path: Path, options: TableOptions = PLAIN) -> pd.DataFrame:
    """The columns of the model in their order; an error where one of them is absent."""
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    with plan.complete():
        read = read_file(path, None, plan.options, levels=plan.levels)
    return plan.cells(read)


def complete_cells(
    model: Classifier, raw: RawTable, name: str, options: TableOptions = PLAIN
) -> pd.DataFrame:
    """Read like :func:`read_complete`, from cells in memory that errors call by this name."""
    plan = _ReadingPlan.of(model, [column.name for column in raw.columns], name, options)
    with plan.complete():
        read = read_cells(raw, name, plan.options, plan.levels)
    return plan.cells(read)


def complete_blocks(
    model: Classifier, path: Path, options: TableOptions = PLAIN, size: int = BLOCK_OF_ROWS
) -> Iterator[pd.DataFrame]:
    """Read like :func:`read_complete`, but in blocks of ``size`` rows, for tables beyond memory."""
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    blocks = read_blocks(path, plan.options, size, plan.levels)
    with plan.complete():
        first = next(blocks)
    for read in chain([first], blocks):
        yield plan.cells(read)


@dataclass(frozen=True)
class _ReadingPlan:
    """How a file is read for a model."""

    name: str
    columns: Columns
    present: tuple[str, ...]  # Columns of the model that the file has.
    extra: tuple[str, ...]  # Not of the model, and not left out by its options.
    options: TableOptions

    @property
    def levels(self) -> dict[str, tuple[object, ...]]:
        """Levels of the columns of the model."""
        return self.columns.levels_of

    @classmethod
    def of(
        cls, model: Classifier, header: Sequence[str], name: str, options: TableOptions
    ) -> _ReadingPlan:
        """From the names in a file; TableError where it has nothing of the model."""
        columns = model.columns_
        present = [name for name in columns.names if name in header]
        extra = [name for name in header if name not in (*columns.names, options.id)]
        if not present:
            raise TableError(f"{name} has none of the columns that the model was fitted to.")
        of_model = {*columns.names, options.id}
        beside = replace(options, group=None, time=None).among([n for n in header if n in of_model])
        reals = frozenset(columns.real_names)
        reading = replace(
            beside,
            real=tuple(name for name in present if name in reals and name not in beside.dates),
            categorical=tuple(name for name in present if name not in reals),
            ignore=tuple(extra),
        )
        left_out = (*options.ignore, options.group, options.time)
        unnamed = tuple(name for name in extra if name not in left_out)
        return cls(name, columns, tuple(present), unnamed, reading)

    def cells(self, read: ReadTable) -> pd.DataFrame:
        """The columns of the model that were read, levels by their names in the model."""
        frame = read.frame[list(self.present)].copy()
        for name in frame.columns.intersection(list(self.levels)):
            column, own = frame[name], KnownLevels(self.levels[name])
            names = {text: own.name(text) for text in column.dropna().unique()}
            frame[name] = column.map(names).astype(text_dtype())
        return frame

    @contextmanager
    def complete(self) -> Iterator[None]:
        """TableError where a column of the model is absent, with all other problems of reading."""
        absent = [repr(name) for name in self.columns.names if name not in self.present]
        problems = [
            f"{self.name} lacks {listing(absent)}, which the model was fitted to; add the column, "
            "empty where unknown."
        ]
        problems = problems if absent else []
        try:
            yield
        except TableError as error:
            problems += error.problems
        if problems:
            raise TableError(*problems)


def refuse_kinds(model: Estimator, file: Path) -> None:
    """ValueError where the cells of a file cannot be those of a model that was fitted in Python."""
    if model.fitted_.table.columns is None:
        raise ValueError(
            f"{file} compares rows by a metric that knows no columns, which only Python reads so "
            "far: ask it by bayesrbf.load and its methods."
        )


def row_number(rows: pd.DataFrame, row: str) -> int:
    """Number of a row, from 1, by its name where rows have names, else by the number itself.

    >>> named = pd.DataFrame({"x": [1.0, 2.0]}, pd.Index(["P1", "P2"], name="case"))
    >>> row_number(named, "P2"), row_number(named.reset_index(drop=True), "2")
    (2, 2)
    """
    if rows.index.name is None:
        if not row.removeprefix("-").isdigit():
            raise ValueError(f"--row {row} must be the number of a row, 1 for the first.")
        return int(row)
    numbers = np.flatnonzero(rows.index.astype(str) == row) + 1
    if numbers.size > 1:
        raise ValueError(
            f"--row {row} names {numbers.size} rows: {listing(numbers.tolist())}; name the row "
            "of a file in which it stands once."
        )
    if not numbers.size:
        some = listing([clipped(name, 24) for name in rows.index], 3)
        raise ValueError(
            f"--row {row} must be the name of a row in column {str(rows.index.name)!r}, which "
            f"has {some}."
        )
    return int(numbers[0])


def read_labelled(
    model: Classifier, path: Path, target: str | None, options: ReportOptions
) -> tuple[pd.DataFrame, pd.Series]:
    """Read labelled rows: the columns of the model, and the labels as text, None where missing.

    Without a name the label column is that of the training table, or the only one that the model
    does not predict from and that holds classes of the model.
    """
    rows = read_complete(model, path, options.table)
    of_model, classes = set(model.columns_.names), {str(label) for label in model.classes_}
    header = names_in_file(path)
    if target is None and options.target in header:
        target = options.target
    if target in of_model:
        raise TableError(f"--target names {target!r}, a column that the model predicts from.")
    no_label = {*of_model, *options.table.beside}
    candidates = [name for name in header if name not in no_label] if target is None else [target]
    left = tuple(name for name in header if name not in candidates)
    reading = TableOptions(na=options.table.na, categorical=tuple(candidates), ignore=left)
    if not candidates:
        raise _no_target(path, [], classes)
    of_classes: list[object] = model.classes_.tolist()
    levels = dict.fromkeys(candidates, of_classes)
    labels = read_file(path, None, reading, levels=levels).frame[candidates]
    labels = labels.apply(lambda column: as_classes(column, of_classes))
    if target is not None:
        return rows, labels[target]
    fits = [name for name in candidates if classes & set(labels[name].dropna())]
    if len(fits) != 1:
        raise _no_target(path, fits, classes)
    return rows, labels[fits[0]]


def _no_target(path: Path, fits: list[str], classes: set[str]) -> TableError:
    """That the column of labels is not clear."""
    where = f"columns {listing(fits)} hold" if fits else "no other column holds"
    return TableError(
        f"{path.name}: beside what the model predicts from, {where} classes of the model "
        f"({listing(sorted(classes), LISTED_NAMES)}); name the label column by --target."
    )

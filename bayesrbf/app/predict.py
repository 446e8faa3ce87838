"""Predictions for files of new rows, block by block."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from bayesrbf import ReadTable, TableError
from bayesrbf.app.check import (
    FAMILIAR,
    NEW_LEVELS,
    NOVEL_ROW,
    as_classes,
    changed,
    renamed,
    training_cells,
)
from bayesrbf.app.report.options import Focus, ReportOptions
from bayesrbf.app.report.output import predictions_frame, to_csv
from bayesrbf.app.words import clipped, listing, plural
from bayesrbf.base.table_options import PLAIN, TableOptions
from bayesrbf.fit.asking import ignored_columns
from bayesrbf.reading.formats import RawTable
from bayesrbf.reading.notes import warn
from bayesrbf.reading.read import names_in_file, read_blocks, read_cells, read_file
from bayesrbf.table.columns import Columns
from bayesrbf.table.kinds import Category, Kind

if TYPE_CHECKING:
    from bayesrbf.families.classifier import Classifier
    from bayesrbf.families.estimator import Estimator


# New rows answered block by block: predictions to a file, and what is said of all rows.


KEPT_ROWS: Final = 1000
"""Novel rows that are kept to say what is odd about them."""
BLOCK_MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once; with more, 20,000 rows are answered no sooner."""
FEW_CELLS: Final = 0.01
"""Share of training rows with fewer cells from which a new row has fewer than nearly all."""
NOVEL_BY_CHANCE: Final = 0.01
"""Probability below which so many novel rows are more than chance brings."""


@dataclass
class BlockPredictions:
    """Predictions of blocks of rows, with counts over all rows."""

    model: Classifier
    focus: Focus
    rows: int = 0
    prob: float = 0.0  # Of the intervals.
    has_intervals: bool = True  # Without draws there are none.
    decided: Counter[str] = field(default_factory=Counter)
    _predicted: Counter[str] = field(default_factory=Counter)
    _first: pd.DataFrame | None = None  # The first block, with which training is compared.
    _novel: list[pd.DataFrame] = field(default_factory=list)
    _n_novel: int = 0
    _n_unfamiliar: int = 0  # Rows whose missing cells are unlike those of training.
    _n_fewer: int = 0  # Rows with fewer cells than nearly all training rows.
    _usual: int = 0  # Cells that nearly all training rows have.
    _fewest: int = 0  # Cells of the new row that has the fewest.

    def over(self, blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The predictions of each block, counted on the way."""
        observed = training_cells(self.model).notna().sum(axis=1)
        self._usual = self._fewest = int(np.quantile(observed, FEW_CELLS, method="lower"))
        for rows in blocks:
            with warnings.catch_warnings():
                if self._first is None:  # of these rows `changed` says it
                    warnings.filterwarnings("ignore", NEW_LEVELS)
                uncertainty = self.model.uncertainty(rows, self.focus.level, memory=BLOCK_MEMORY)
            ids = None if rows.index.name is None else rows.index
            predictions = predictions_frame(
                uncertainty, focus=self.focus, ids=ids, first=self.rows + 1
            )
            self._first = rows if self._first is None else self._first
            novel = uncertainty["novelty"].to_numpy() > NOVEL_ROW
            if self._n_novel < KEPT_ROWS:
                self._novel.append(rows[novel].head(KEPT_ROWS - self._n_novel))
            self._n_novel += int(novel.sum())
            observed = rows.notna().sum(axis=1)
            self._n_fewer += int((observed < self._usual).sum())
            self._n_unfamiliar += int((uncertainty["familiarity"].to_numpy() < FAMILIAR).sum())
            self._fewest = min(self._fewest, *observed)
            self.rows += len(rows)
            self.prob = float(uncertainty.attrs["prob"])
            self.has_intervals = not uncertainty.attrs["point_estimate"]
            self._predicted.update(predictions["predicted"])
            if "decision" in predictions:
                self.decided.update(predictions["decision"])
            yield predictions

    @property
    def predicted(self) -> dict[str, int]:
        """Rows by their most probable class."""
        return {str(label): self._predicted[str(label)] for label in self.model.classes_}

    def novelty(self) -> str:
        """A sentence on novel rows, where there are more than by chance; else empty."""
        return novelty_of(self.model, pd.concat(self._novel), self._n_novel, self.rows)

    def changed(self) -> list[str]:
        """Sentences on columns of the first block that changed beyond chance, and what to do."""
        return [] if self._first is None else changed(self.model, self._first)

    def unfamiliar(self) -> str:
        """A sentence on rows whose missing cells are unlike those of training; empty if none."""
        if self._n_unfamiliar == 0:
            return ""
        are = plural(self._n_unfamiliar, "row has", "rows have")
        return (
            f"{are} missing cells in a pattern unlike those of training (familiarity below "
            f"{FAMILIAR:g}): the answer is mostly as if it told nothing which cells are missing."
        )

    def fewer_cells(self) -> str:
        """A sentence on rows with fewer cells than nearly all training rows; empty without any."""
        if self._n_fewer == 0:
            return ""
        verb = "has" if self._n_fewer == 1 else "have"
        of_all = len(self.model.columns_.names)
        message = (
            f"{self._n_fewer} of {plural(self.rows, 'row')} {verb} fewer cells than 99 in 100 "
            f"training rows: {self._usual} of {of_all} there, here as few as {self._fewest}."
        )
        if not self.model.calibration_.by_missing_fraction:
            return f"{message} The model is not calibrated for that; look at such rows one by one."
        return (
            f"{message} The model is calibrated for that, on held-out rows with cells hidden by "
            "chance: where little is known, the answer is near the class shares."
        )


def write_predictions(predictions: Iterable[pd.DataFrame], file: BinaryIO) -> None:
    """Blocks of predictions as one CSV file."""
    for number_of_block, block in enumerate(predictions):
        file.write(to_csv(block, header=number_of_block == 0))


def novelty_of(model: Estimator, novel: pd.DataFrame, n_novel: int, n_rows: int) -> str:
    """A sentence on the number of novel rows, and on the column that stands out most often.

    ``novel`` are all ``n_novel`` such rows, or the first of them. Empty where they are no more
    than chance brings.
    """
    if binom.sf(n_novel - 1, n_rows, 1 - NOVEL_ROW) > NOVEL_BY_CHANCE:
        return ""
    verb = "is" if n_novel == 1 else "are"
    message = f"{n_novel} of {plural(n_rows, 'row')} {verb} unlike the training table"
    if model.model_.density is None:
        return f"{message}."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given when the rows were predicted
        cells = model.surprise(novel)
    odd = cells["stands_out"].to_numpy()
    if not odd.any():
        return f"{message}: no single cell, but how cells go together."
    column = int(odd.sum(axis=0).argmax())
    name, count = clipped(novel.columns[column], 30), int(odd[:, column].sum())
    among = "them" if len(novel) == n_novel else f"the first {len(novel)}"
    return f"{message}: {name} stands out in {count} of {among}."


# Files of new rows, read under the columns of a fitted model, and the labels beside them.


BLOCK_OF_ROWS: Final = 20_000
"""Rows of a new table that are read and answered at once."""
LISTED_NAMES: Final = 6


def warn_of_extra(
    model: Classifier, header: Sequence[str], name: str, options: ReportOptions
) -> None:
    """A warning of columns that neither the model nor its training table had."""
    left = options.target, options.table.id, *options.table.ignore, *options.table.beside
    known = {*model.columns_.names, *left}
    if extra := [column for column in header if column not in known]:
        warn(ignored_columns(name, extra))


def read_rows(model: Classifier, path: Path, options: TableOptions = PLAIN) -> pd.DataFrame:
    """The columns of a file that a model was fitted to, read by the options of its own table.

    Columns that neither the model nor its options know are there, too, without their cells.
    """
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    read = read_file(path, None, plan.options, kinds=plan.kinds)
    return plan.cells(read).reindex(columns=[*plan.present, *plan.extra])


def read_complete(model: Classifier, path: Path, options: TableOptions = PLAIN) -> pd.DataFrame:
    """The columns of the model in their order; an error where one of them is absent."""
    return read_beside(model, path, options, PLAIN)[0]


def read_beside(
    model: Classifier, path: Path, options: TableOptions, extra: TableOptions
) -> tuple[pd.DataFrame, ReadTable]:
    """The columns of the model, and the table with ``by``, ``score`` and groups that are asked."""
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    alone = {"score": extra.score, "group": extra.group, "centre": extra.centre}
    for option, name in alone.items():
        if name in plan.present:
            raise TableError(
                f"--{option} names {name!r}, a column that the model predicts from; name another."
            )
    ignored = tuple(name for name in plan.options.ignore if name not in alone.values())
    codes = [name for name in extra.by if name in options.categorical and name not in plan.present]
    reading = replace(
        plan.options,
        by=extra.by,
        categorical=(*plan.options.categorical, *codes),
        ignore=ignored,
        score=extra.score,
        group=extra.group,
        centre=extra.centre,
    )
    with plan.complete():
        read = read_file(path, None, reading, kinds=plan.kinds)
    cells = plan.cells(read)
    known = {name: cells[name] for name in extra.by if name in cells}
    return cells, replace(read, by=read.by.assign(**known))


def complete_cells(
    model: Classifier, raw: RawTable, name: str, options: TableOptions = PLAIN
) -> pd.DataFrame:
    """Read like :func:`read_complete`, from cells in memory that errors call by this name."""
    plan = _ReadingPlan.of(model, [column.name for column in raw.columns], name, options)
    with plan.complete():
        read = read_cells(raw, name, plan.options, plan.kinds)
    return plan.cells(read)


def complete_blocks(
    model: Classifier, path: Path, options: TableOptions = PLAIN, size: int = BLOCK_OF_ROWS
) -> Iterator[pd.DataFrame]:
    """Read like :func:`read_complete`, but in blocks of ``size`` rows, for tables beyond memory."""
    plan = _ReadingPlan.of(model, names_in_file(path), path.name, options)
    blocks = read_blocks(path, plan.options, size, plan.kinds)
    with plan.complete():
        first = next(blocks)
    for read in chain([first], blocks):
        yield plan.cells(read)


@dataclass(frozen=True)
class _ReadingPlan:
    """Options that read a file for a model."""

    name: str
    columns: Columns
    present: tuple[str, ...]  # Columns of the model that the file has.
    extra: tuple[str, ...]  # Not of the model, and not left out by its options.
    options: TableOptions

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kinds of the columns of the model; whatever stands in an empty one is text."""
        empty = (self.columns.names[position] for position in self.columns.empty)
        return self.columns.kind_of | dict.fromkeys(empty, Category())

    @classmethod
    def of(
        cls, model: Classifier, header: Sequence[str], name: str, options: TableOptions
    ) -> _ReadingPlan:
        """Plan by the column names of a file; TableError if no column belongs to the model."""
        columns = model.columns_
        present = [name for name in columns.names if name in header]
        extra = [name for name in header if name not in (*columns.names, options.id)]
        if not present:
            raise TableError(f"{name} has none of the columns that the model was fitted to.")
        of_model = {*columns.names, options.id}
        beside = options.of_new_rows.among([n for n in header if n in of_model])
        reading = replace(beside, ignore=tuple(extra))
        left_out = (*options.ignore, *options.beside)
        unnamed = tuple(name for name in extra if name not in left_out)
        return cls(name, columns, tuple(present), unnamed, reading)

    def cells(self, read: ReadTable) -> pd.DataFrame:
        """The columns of the model that were read, levels by their names in the model."""
        cells = read.frame[list(self.present)]
        levels = self.columns.levels_of
        named = {n: as_classes(cells[n], levels[n]) for n in self.present if n in levels}
        return cells.assign(**{n: column.astype(cells[n].dtype) for n, column in named.items()})

    @contextmanager
    def complete(self) -> Iterator[None]:
        """TableError where a column of the model is absent, with all other problems of reading."""
        lacking = [name for name in self.columns.names if name not in self.present]
        absent, hints = [repr(name) for name in lacking], [renamed(n, self.extra) for n in lacking]
        problems = [
            f"{self.name} lacks {listing(absent)}, which the model was fitted to; add the column, "
            f"empty where unknown{''.join(hints[:LISTED_NAMES])}."
        ]
        problems = problems if absent else []
        try:
            yield
        except TableError as error:
            problems += error.problems
        if problems:
            raise TableError(*problems)


def refuse_kinds(model: Estimator, file: Path) -> None:
    """Raise ValueError for a model that compares rows by a metric without columns."""
    if model.fitted_.table.columns is None:
        raise ValueError(
            f"{file} compares rows by a metric that knows no columns, which only Python reads so "
            "far: ask it by bayesrbf.load and its methods."
        )


def row_number(rows: pd.DataFrame, row: str) -> int:
    """Number of a row, from 1, by its name where rows have names, else by the number itself.

    Where no name is a number, rows with names have their numbers, too; where some are, ``#2`` is
    the second row.

    >>> named = pd.DataFrame({"x": [1.0, 2.0]}, pd.Index(["P1", "P2"], name="case"))
    >>> row_number(named, "P2"), row_number(named.reset_index(drop=True), "2")
    (2, 2)
    >>> row_number(named, "2"), row_number(named.set_axis([7, 8]).rename_axis("case"), "#2")
    (2, 2)
    """
    names = rows.index.astype(str)
    if row.startswith("#") and row[1:].isdigit() and row not in names:
        return int(row[1:])
    if rows.index.name is None or (row.isdigit() and not names.str.isdigit().any()):
        if not row.removeprefix("-").isdigit():
            raise ValueError(f"--row {row} must be the number of a row, 1 for the first.")
        return int(row)
    numbers = np.flatnonzero(names == row) + 1
    if numbers.size > 1:
        raise ValueError(
            f"--row {row} names {numbers.size} rows: {listing(numbers.tolist())}; name the row "
            "of a file in which it stands once."
        )
    if not numbers.size:
        row_names = listing([clipped(name, 24) for name in rows.index], 3)
        raise ValueError(
            f"--row {row} must be the name of a row in column {str(rows.index.name)!r}, which "
            f"has {row_names}; --row=#1 is the first row."
        )
    return int(numbers[0])


def read_labelled(
    model: Classifier,
    path: Path,
    target: str | None,
    options: ReportOptions,
    extra: TableOptions = PLAIN,
) -> tuple[pd.DataFrame, pd.Series, ReadTable]:
    """Read labelled rows: the columns of the model, and the labels as text, None where missing.

    The table has the columns beside them that are ``asked`` for.

    Without a name the label column is that of the training table, or the only one that the model
    does not predict from and that holds classes of the model.
    """
    rows, read = read_beside(model, path, options.table, extra)
    of_model, classes = set(model.columns_.names), {str(label) for label in model.classes_}
    header = names_in_file(path)
    if target is None and options.target in header:
        target = options.target
    if target is not None and target in extra.by:
        raise TableError(f"--by names {target!r}, the column of labels; name another.")
    if target in of_model:
        raise TableError(f"--target names {target!r}, a column that the model predicts from.")
    no_label = {*of_model, *options.table.beside, *extra.beside, *extra.by}
    candidates = [name for name in header if name not in no_label] if target is None else [target]
    left = tuple(name for name in header if name not in candidates)
    reading = TableOptions(na=options.table.na, ignore=left)
    if not candidates:
        raise _no_target(path, [], classes)
    of_classes: list[object] = model.classes_.tolist()
    kinds = dict.fromkeys(candidates, Category(tuple(of_classes)))
    labels = read_file(path, None, reading, kinds=kinds).frame[candidates]
    labels = labels.apply(lambda column: as_classes(column, of_classes))
    if target is not None:
        return rows, labels[target], read
    fits = [name for name in candidates if classes & set(labels[name].dropna())]
    if len(fits) != 1:
        raise _no_target(path, fits, classes)
    return rows, labels[fits[0]], read


def _no_target(path: Path, fits: list[str], classes: set[str]) -> TableError:
    """Error: the label column is ambiguous."""
    where = f"columns {listing(fits)} hold" if fits else "no other column holds"
    return TableError(
        f"{path.name}: beside what the model predicts from, {where} classes of the model "
        f"({listing(sorted(classes), LISTED_NAMES)}); name the label column by --target."
    )

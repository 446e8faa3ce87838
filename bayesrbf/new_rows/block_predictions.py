"""New rows answered block by block: predictions to a file, and what is said of all rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from bayesrbf.new_rows.training_cells import NOVEL_ROW, observed_reals, training_cells
from bayesrbf.posterior.two_tables import FEWEST, changed_columns
from bayesrbf.report.output import predictions_frame, to_csv
from bayesrbf.report.words import clipped, number, plural

if TYPE_CHECKING:
    from bayesrbf.estimators.classifier import Classifier
    from bayesrbf.estimators.estimator import Estimator

KEPT_ROWS: Final = 1000
"""Novel rows that are kept to say what is odd about them."""
BLOCK_MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once; with more, 20,000 rows are answered no sooner."""
FEW_CELLS: Final = 0.01
"""Share of training rows with fewer cells from which a new row has fewer than nearly all."""
NOVEL_BY_CHANCE: Final = 0.01
"""Probability below which so many novel rows are more than chance brings."""
LEAST_FACTOR: Final = 3.0
"""Ratio of a number to what was expected from which it is called a factor."""


@dataclass
class BlockPredictions:
    """Predictions of blocks of rows, and what is counted of all rows on the way."""

    model: Classifier
    costs: Mapping[str, float]
    rows: int = 0
    prob: float = 0.0  # Of the intervals.
    has_intervals: bool = True  # Without draws there are none.
    decided: Counter[str] = field(default_factory=Counter)
    _predicted: Counter[str] = field(default_factory=Counter)
    _novel: list[pd.DataFrame] = field(default_factory=list)
    _n_novel: int = 0
    _n_fewer: int = 0  # Rows with fewer cells than nearly all training rows.
    _usual: int = 0  # Cells that nearly all training rows have.
    _fewest: int = 0  # Cells of the new row that has the fewest.

    def over(self, blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The predictions of each block, counted on the way."""
        self._usual = self._fewest = fewest_cells(self.model)
        for rows in blocks:
            uncertainty = self.model.uncertainty(rows, memory=BLOCK_MEMORY)
            ids = None if rows.index.name is None else rows.index
            predictions = predictions_frame(
                uncertainty, costs=self.costs, ids=ids, first=self.rows + 1
            )
            novel = uncertainty["novelty"].to_numpy() > NOVEL_ROW
            if self._n_novel < KEPT_ROWS:
                self._novel.append(rows[novel].head(KEPT_ROWS - self._n_novel))
            self._n_novel += int(novel.sum())
            observed = rows.notna().sum(axis=1)
            self._n_fewer += int((observed < self._usual).sum())
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
        """Whether more rows than by chance are unlike the training table."""
        return novelty_of(self.model, pd.concat(self._novel), self._n_novel, self.rows)

    def fewer_cells(self) -> str:
        """A sentence on rows with fewer cells than nearly all training rows; empty without any."""
        if self._n_fewer == 0:
            return ""
        verb, of_all = ("has" if self._n_fewer == 1 else "have"), len(self.model.columns_.names)
        sentence = (
            f"{self._n_fewer} of {plural(self.rows, 'row')} {verb} fewer cells than 99 in 100 "
            f"training rows: {self._usual} of {of_all} there, here as few as {self._fewest}."
        )
        if self.model.calibration_ is None:
            return f"{sentence} The model is not calibrated for that; look at such rows one by one."
        return (
            f"{sentence} The model is calibrated for that, on held-out rows with cells hidden by "
            "chance: where little is known, the answer is near the class shares."
        )


def write_predictions(predictions: Iterable[pd.DataFrame], file: BinaryIO) -> None:
    """Blocks of predictions as one CSV file."""
    for number_of_block, block in enumerate(predictions):
        file.write(to_csv(block, header=number_of_block == 0))


def fewest_cells(model: Estimator) -> int:
    """Observed cells of a row that 99 in 100 training rows have, or more."""
    observed = training_cells(model).notna().sum(axis=1)
    return int(np.quantile(observed, FEW_CELLS, method="lower"))


def novelty_of(model: Estimator, novel: pd.DataFrame, n_novel: int, n_rows: int) -> str:
    """How many of ``n_rows`` are unlike the training table, and the column that is odd most often.

    ``novel`` are all ``n_novel`` such rows, or the first of them. Empty where they are no more
    than chance brings.
    """
    if binom.sf(n_novel - 1, n_rows, 1 - NOVEL_ROW) > NOVEL_BY_CHANCE:
        return ""
    verb = "is" if n_novel == 1 else "are"
    sentence = f"{n_novel} of {plural(n_rows, 'row')} {verb} unlike the training table"
    if model.model_.density is None:
        return f"{sentence}."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given when the rows were predicted
        cells = model.surprise(novel)
    odd = cells["stands_out"].to_numpy()
    if not odd.any():
        return f"{sentence}: no single cell, but how cells go together."
    place = int(odd.sum(axis=0).argmax())
    name, rows = novel.columns[place], np.flatnonzero(odd[:, place])
    wrong = ""
    if pd.api.types.is_numeric_dtype(novel[name]):
        expected = cells["expected"].to_numpy()[rows, place].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = novel[name].to_numpy(dtype=float)[rows] / expected
        wrong = _wrong(model, novel, name, ratio)
    among = "them" if len(novel) == n_novel else f"the first {len(novel)}"
    return f"{sentence}: {clipped(name, 30)} stands out in {len(rows)} of {among}{wrong}."


def _wrong(model: Estimator, novel: pd.DataFrame, name: str, ratio: np.ndarray) -> str:
    """The probable error of a column in words: another unit, or exchanged with another column."""
    if len(ratio) < FEWEST:
        return _factor(float(np.median(ratio)))
    old = training_cells(model)
    cells = {
        column: (observed_reals(old[column]), observed_reals(novel[column]))
        for column in model.columns_.real_names
    }
    for column_change in changed_columns(cells):
        if name in column_change.columns and column_change.change is None:
            (other,) = set(column_change.columns) - {name}
            return f", exchanged with {clipped(other, 30)} as it seems"
        if (
            name in column_change.columns
            and column_change.change is not None
            and column_change.change.offset == 0
        ):
            return _factor(column_change.change.scale)
    return ""


def _factor(ratio: float) -> str:
    """The factor by which numbers are too large or small, in words; empty if implausible."""
    if not ratio > 0 or 1 / LEAST_FACTOR < ratio < LEAST_FACTOR:
        return ""
    size, way = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
    return f", about {number(size)} times too {way}"

"""New rows answered block by block: predictions to a file, and the sums that are said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import pandas as pd

from bayesrbf.report.new_rows import NOVEL, fewer_cells_of, fewest_cells, novelty_of
from bayesrbf.report.output import predictions_frame, to_csv

KEPT: Final = 1000
"""Novel rows that are kept to say what is odd about them."""
MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once; with more, 20,000 rows are answered no sooner."""


@dataclass
class Scored:
    """What is said of all rows."""

    model: Any
    costs: Mapping[str, float]
    rows: int = 0
    prob: float = 0.0  # Of the intervals.
    has_intervals: bool = True  # Without draws there are none.
    decided: Counter[str] = field(default_factory=Counter)
    _predicted: Counter[str] = field(default_factory=Counter)
    _novel: list[pd.DataFrame] = field(default_factory=list)
    _n_novel: int = 0
    _n_fewer: int = 0  # Rows with fewer cells than nearly all training rows.
    _usual: int = 0  # Known cells that nearly all training rows have.
    _fewest: int = 0  # Known cells of the new row that has the fewest.

    def over(self, blocks: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The predictions of each block, counted on the way."""
        self._usual = self._fewest = fewest_cells(self.model)
        for rows in blocks:
            uncertainty = self.model.uncertainty(rows, memory=MEMORY)
            ids = None if rows.index.name is None else rows.index
            predictions = predictions_frame(
                uncertainty, costs=self.costs, ids=ids, first=self.rows + 1
            )
            novel = uncertainty["novelty"].to_numpy() > NOVEL
            if self._n_novel < KEPT:
                self._novel.append(rows[novel].head(KEPT - self._n_novel))
            self._n_novel += int(novel.sum())
            known = rows.notna().sum(axis=1)
            self._n_fewer += int((known < self._usual).sum())
            self._fewest = min(self._fewest, *known)
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
        """Whether rows have fewer cells than nearly all training rows."""
        return fewer_cells_of(self.model, self._n_fewer, self._usual, self._fewest, self.rows)


def write_predictions(predictions: Iterable[pd.DataFrame], file: BinaryIO) -> None:
    """Blocks of predictions as one CSV file."""
    for number, block in enumerate(predictions):
        file.write(to_csv(block, header=number == 0))

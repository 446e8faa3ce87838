"""The training table as it was read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesrbf import table
from bayesrbf.fitted.completed_rows import Cells
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import Requirements, named, simplex, within
from bayesrbf.table import Columns


@named
@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A training table as it was read: columns, rows and, for a classifier, classes."""

    owner: str
    """Name of the estimator, for messages."""
    columns: Columns | None
    """None where rows are only compared, by a metric that knows no columns."""
    rows: Observations
    """Rows of positive weight, in the user's units; without cells where rows are compared."""
    kept: Int[np.ndarray, " obs"]
    """Where each row stood in the table."""
    seed: int
    n_columns: int
    names: Shaped[np.ndarray, " column"] | None = None
    """Names of the columns, where the table had names."""
    template: Any = None
    """A table without a row, of the user's type; None where rows are not given back."""
    classes: Shaped[np.ndarray, " label"] | None = None
    """Class labels in the order of their codes."""
    prevalence: Float[np.ndarray, " label"] | None = None
    """Class probabilities of use; None: those of training."""
    handle_unknown: Literal["missing", "error"] = "missing"
    """What a level is that no training row had."""
    doubts: str = ""
    """A sentence on columns that may not be what they seem; empty where none is doubtful."""
    copies: Int[np.ndarray, "2 given"] | None = None
    """Where the log likelihood is of distinct rows: every row, and its place among those."""
    unlabelled_weight: float = 1.0
    """Factor of the weight of rows without a label."""
    passes: int = 0
    """Passes over a table out of memory; 0 for one in memory."""
    sampled: bool = False
    """Whether the rows are a sample of a table out of memory, all of which was fitted to."""
    repeated: int = 0
    """Rows that are copies of an earlier one beyond chance."""

    @property
    def read_columns(self) -> Columns:
        """The columns of a table that was read column by column."""
        if self.columns is None:
            raise AttributeError(
                f"This {self.owner} compares rows and knows no columns of a table."
            )
        return self.columns

    @property
    def class_labels(self) -> Shaped[np.ndarray, " label"]:
        """The classes of a classifier."""
        assert self.classes is not None  # what asks for classes is a classifier
        return self.classes

    @property
    def scored(
        self,
    ) -> tuple[Int[np.ndarray, " row"] | None, Int[np.ndarray, " row"] | None]:
        """Place of every row in the log likelihood, and its unit; None: its own."""
        units, places, of_rows = self.rows.units, None, np.arange(self.kept.size)
        if self.copies is not None:
            names, places = self.copies
            sorter = np.argsort(self.kept)
            at = sorter[np.searchsorted(self.kept, names, sorter=sorter).clip(max=sorter.size - 1)]
            # Rows that were merged into distinct ones are not all kept.
            of_rows = np.where(self.kept[at] == names, at, places)
        if units is None:
            return places, None
        alone = units.counts[of_rows] > 1  # equal people, merged into one row
        own = units.numbers.max() + 1 + np.arange(of_rows.size)
        return places, np.where(alone, own, units.numbers[of_rows])

    def __laws__(self) -> Requirements:
        columns, rows = self.columns, self.rows
        yield 0 <= self.seed < 2**31, "a seed"
        yield within(self.kept, 0) and rows.n_obs > 0, "positions of its rows"
        yield rows.n_obs == self.kept.size, "a position of every row"
        yield self.n_columns > 0 and self.passes >= 0, "columns, and passes over them"
        yield 0 <= self.repeated < max(rows.n_obs, 1) or columns is None, "fewer copies than rows"
        yield within(self.unlabelled_weight, 0), "a weight of rows without a label"
        yield columns is not None or self.template is None, "the columns of its frame"
        if columns is not None:
            yield self.n_columns == len(columns.names), "as many columns as it was fitted to"
            texts = self.names is None or all(isinstance(name, str) for name in self.names)
            named = self.names is None or list(self.names) == list(columns.names)
            yield texts and named, "its columns' names"
            frame = getattr(self.template, "columns", columns.names)
            yield len(frame) == len(columns.names), "a frame of its columns"
            dtypes = [getattr(one, "kind", "f") for one in getattr(self.template, "dtypes", ())]
            texts_of = {kind for kind, of in zip(columns.kinds, dtypes, strict=False) if of == "O"}
            yield "real" not in texts_of, "numbers in its columns of numbers"
        if self.classes is not None:
            n, labels = self.classes.size, self.classes.tolist()
            plain = all(isinstance(label, str | int | float) for label in labels)
            yield plain and self.classes.ndim == 1 and n == len(set(labels)), "classes that differ"
            p = self.prevalence
            yield p is None or (p.size == n and simplex(p)), "prevalences that sum to one"
            yield p is None or bool((p > 0).all()), "positive prevalences"

    def decoded(self, cells: Cells, like: Any) -> Any:
        """Cells as a table of the type of another."""
        return table.decode(*cells, self.read_columns, like)

    def with_template(self, like: Any) -> TrainingTable:
        """What was read, with an empty table of the user's type."""
        none = self.rows.take(np.arange(0))
        return replace(self, template=self.decoded((none.real, none.codes), like))

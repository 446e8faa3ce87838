"""A training table in memory, as an estimator asks for it to be read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.blocks import is_collection
from bayesrbf.estimators.arguments import Arguments, prevalence, row_groups, row_weights
from bayesrbf.estimators.column_doubts import (
    column_doubts,
    warn_of_copies,
    warn_of_labels,
    warn_of_lone_rows,
)
from bayesrbf.estimators.warning import ColumnWarning, warn
from bayesrbf.fitted.training_table import TrainingTable
from bayesrbf.records.units import Units

LARGEST_SEED: Final = 2**31 - 1
BLOCK: Final = 20_000
"""Rows of an array up to which it is one block, wherever it lies."""

Weights = Float[np.ndarray, " obs"]
Codes = Int[np.ndarray, " obs"]


@dataclass(frozen=True)
class Reading:
    """How an estimator asks for its training table to be read."""

    owner: str
    """Name of the estimator, for errors."""
    arguments: Arguments
    """Those of its constructor."""
    labelled: bool = True
    """Whether y holds class labels."""
    of_sample: bool = False
    """Whether of a table out of memory a random sample is all that is fitted to."""
    unlabelled_weight: float = 1.0
    """Factor of the weight of rows without a label."""

    @property
    def features(self) -> dict[str, Any]:
        """What the user says of kinds of columns, as :func:`table.learn_columns` takes it."""
        name = "categorical_features"
        return {name: self.arguments[name]} if name in self.arguments else {}

    @property
    def missingness(self) -> str:
        """Whether it tells anything that a cell is missing; where that is open, not at first."""
        missingness: str = self.arguments.get("missingness", "ignorable")
        return "ignorable" if missingness == "cv" else missingness

    @property
    def finds_atoms(self) -> bool:
        """Whether frequent values of real columns are point masses."""
        return self.arguments.get("atoms") == "auto"

    @property
    def seed(self) -> int:
        """A seed from ``random_state``: the next one of a generator."""
        return int(check_random_state(self.arguments["random_state"]).randint(LARGEST_SEED))

    def prevalence(
        self, classes: Shaped[np.ndarray, " label"]
    ) -> Float[np.ndarray, " label"] | None:
        """Class probabilities of use; None keeps those of training."""
        return prevalence(self.arguments["class_prior"], classes, self.owner)


@dataclass(frozen=True)
class Labels:
    """Codes and weights of the rows of a table, before those without weight are left out."""

    codes: Codes
    weights: Weights
    classes: Shaped[np.ndarray, " label"] | None = None
    prevalence: Float[np.ndarray, " label"] | None = None


def check_table(reading: Reading, X: object, y: object, sample_weight: object) -> Weights:
    """Refuse what is no table in memory or has no row; the row weights."""
    table.as_frame(X)  # our own error for what is no table, before scikit-learn raises its
    column_names(X)
    if reading.labelled and y is None:
        raise ValueError(f"{reading.owner}.fit requires y to be passed, but the target y is None.")
    if _num_samples(X) == 0:
        raise ValueError("X has 0 sample(s), but fit needs at least one row.")
    return row_weights(sample_weight, X)


def column_names(X: object) -> tuple[int, Shaped[np.ndarray, " column"] | None]:
    """Number of columns and their names as scikit-learn keeps them, None without names."""
    shell = BaseEstimator()  # it takes the names, so that a fit that fails changes no estimator
    validate_data(shell, X, skip_check_array=True)
    names = vars(shell).get("feature_names_in_")
    return int(vars(shell).get("n_features_in_", 0)), names  # learn_columns refuses other shapes


def read_labels(reading: Reading, X: object, y: object, weights: Weights) -> Labels:
    """Class codes and weights of the rows; a class without weight is left out."""
    check_consistent_length(X, y)
    unlabelled = reading.arguments["unlabelled"]
    factor = reading.unlabelled_weight
    classes, codes, weights = table.present_classes(y, weights, unlabelled, factor)
    warn_of_labels(classes, codes, reading.owner)
    warn_of_lone_rows(classes, codes[weights > 0], reading.owner)
    return Labels(codes, weights, classes, reading.prevalence(classes))


def read_rows(reading: Reading, X: object, labels: Labels, groups: object = None) -> TrainingTable:
    """Columns of a table in memory, and its rows of positive weight: no other row teaches."""
    n_columns, names = column_names(X)
    of_rows = row_groups(groups, X, f"{reading.owner}.fit")
    codes, weights = labels.codes, labels.weights
    kept = np.flatnonzero(weights > 0)
    if kept.size < weights.size:
        X, codes, weights = _safe_indexing(X, kept), codes[kept], weights[kept]
    columns = table.learn_columns(X, missingness=reading.missingness, **reading.features)
    cells = table.encode(X, columns)
    doubts = doubts_of(reading, X, columns)
    # Weights of a density say how many rows stand against its prior.
    rows, repeated = table.with_units(
        replace(cells, labels=codes, weights=weights),
        None if of_rows is None else of_rows[kept],
        relative=reading.labelled,
    )
    warn_of_copies(repeated, kept.size, reading.owner)
    table.check_spreads(cells.real, rows.weights, columns.real_names)
    if reading.finds_atoms:
        atoms = tuple(table.find_atoms(column, rows.weights) for column in cells.real.T)
        columns = replace(columns, atoms=atoms)
        cells = table.encode(X, columns)
    training = TrainingTable(
        reading.owner,
        columns,
        replace(cells, labels=codes, weights=rows.weights, units=rows.units),
        kept,
        reading.seed,
        n_columns,
        names,
        classes=labels.classes,
        prevalence=labels.prevalence,
        handle_unknown=reading.arguments["handle_unknown"],
        doubts=doubts,
        repeated=repeated,
        unlabelled_weight=reading.unlabelled_weight,
    )
    return training.with_template(X)


def units_in(X: object, groups: object, owner: str) -> tuple[Units | None, int]:
    """Units of the rows of a table in memory, and how many are copies of an earlier one."""
    cells = table.encode(X, table.learn_columns(X))
    rows, repeated = table.with_units(cells, row_groups(groups, X, owner), relative=False)
    return rows.units, repeated


def doubts_of(reading: Reading, X: object, columns: table.Columns) -> str:
    """What is doubtful about the columns of the training table; a warning where something is."""
    named = reading.arguments["categorical_features"]
    inferred = named is None or (isinstance(named, str) and named == "from_dtype")
    doubts = column_doubts(X, columns, named=not inferred, grouped=reading.labelled)
    if doubts:
        warn(doubts, ColumnWarning)
    return doubts


def read_table(
    reading: Reading, X: object, y: object, sample_weight: object, groups: object = None
) -> TrainingTable:
    """Columns, classes and rows of a table in memory."""
    weights = check_table(reading, X, y if reading.labelled else None, sample_weight)
    if not reading.labelled:
        return read_rows(reading, X, Labels(np.zeros(weights.size, dtype=int), weights))
    return read_rows(reading, X, read_labels(reading, X, y, weights), groups)


def refuse_collection(owner: str, X: object) -> None:
    """TypeError where a table out of memory is handed to a fit that needs all rows at once."""
    if is_collection(X):
        raise TypeError(
            f"{owner}.fit takes a table in memory, and {type(X).__name__} is read block by block: "
            "fit a random sample of its rows, drawn from all blocks, such as "
            "X.sample(frac=0.01).compute() of Dask, or fit MixtureDensity, HybridMixtureClassifier "
            "or StackedClassifier to it."
        )

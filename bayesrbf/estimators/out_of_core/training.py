"""A training table out of memory: its columns and classes, a sample, and the fit to all rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.blocks import Blocks, as_collection
from bayesrbf.estimators.arguments import LEAST_WEIGHT, MOST_WEIGHT, prevalence
from bayesrbf.estimators.estimator import LARGEST_SEED
from bayesrbf.estimators.out_of_core.parts import Asked, Part, parts_of
from bayesrbf.estimators.out_of_core.sampling import Sample
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.numerics.block_log_posterior import BlockLogPosterior, BlockSums
from bayesrbf.records.mixture import Observations

SAMPLE_ROWS: Final = 20_000
"""Rows of the sample, on which everything but the parameters is decided."""


@dataclass(frozen=True)
class Survey:
    """What one pass over the rows tells before any is encoded."""

    columns: table.Columns | None
    """None where there is no row."""
    classes: np.ndarray
    lengths: tuple[int, ...]
    """Rows of every block that weigh something."""
    mass: float
    like: Any
    """A table of one row."""

    def joined(self, other: Survey) -> Survey:
        """What the rows of both tell."""
        lengths = self.lengths + other.lengths
        if other.columns is None or self.columns is None:
            return replace(self if other.columns is None else other, lengths=lengths)
        try:
            classes = np.unique(np.concatenate([self.classes, other.classes]))
        except TypeError as error:
            raise TypeError(
                "y has labels of other types in some blocks than in others; make all of them text "
                "or all of them numbers."
            ) from error
        columns = table.joined_columns(self.columns, other.columns)
        return Survey(columns, classes, lengths, self.mass + other.mass, self.like)


@dataclass(frozen=True)
class Training:
    """A training table out of memory, encoded where it lies."""

    rows: Blocks[Observations]
    lengths: tuple[int, ...]
    sample: Observations
    mass: float
    """Weight of all rows."""
    passes: int
    """Passes over the rows so far."""

    def weighed(self, weigh: Callable[[Observations], Observations]) -> Training:
        """The same table, its rows weighed otherwise."""
        return replace(self, rows=self.rows.map(weigh))

    def as_all(self, rows: Observations) -> Observations:
        """Rows of the sample, together as heavy as the whole table."""
        factor = self.mass / float(self.sample.weights.sum())
        return replace(rows, weights=factor * rows.weights)


def read_collection(self: Any, X: Any, y: Any, sample_weight: Any, asked: Asked) -> Training | None:
    """Read a training table out of memory; None if it is in memory.

    Columns, classes and a sample of the rows are left in the estimator, as those of a table in
    memory are.
    """
    if isinstance(X, np.ndarray) and len(X) <= SAMPLE_ROWS:
        return None  # a memory map, of which nothing would be left out
    collection = as_collection(X)
    if collection is None:
        return None
    self._check_arguments()
    _refuse_arguments(self)
    parts, passes = parts_of(collection, y, sample_weight, asked)
    features = ("categorical_features", "count_features", "ordinal_features")
    options = {name: getattr(self, name, None) for name in features}
    survey = parts.map(partial(_surveyed, options=options)).reduce(Survey.joined)
    columns = _columns(survey, getattr(self, "missingness", "ignorable"))
    n_rows = sum(survey.lengths)
    self._sampled = n_rows > SAMPLE_ROWS and not self._of_sample
    if self._sampled:
        _refuse_inference(self, n_rows)
    validate_data(self, survey.like, skip_check_array=True)
    if asked.labelled:
        if not survey.classes.size:
            raise ValueError("y needs at least one labelled row of positive weight.")
        self.classes_ = survey.classes
        self._prevalence = prevalence(self.class_prior, self.classes_, type(self).__name__)
    self.seed_ = int(check_random_state(self.random_state).randint(LARGEST_SEED))
    read = partial(_encoded, columns=columns, classes=survey.classes, like=survey.like)
    rows = parts.map(read).kept()
    n_classes = survey.classes.size
    most = SAMPLE_ROWS // (n_classes + asked.labelled) if n_rows > SAMPLE_ROWS else n_rows
    draw = partial(Sample.of, n_classes=n_classes, most=most, seed=self.seed_)
    sample = rows.map(draw, list(accumulate(survey.lengths, initial=0))[:-1]).reduce(Sample.joined)
    weighed = sample.weighed()
    if getattr(self, "atoms", None) == "auto":
        found = tuple(table.find_atoms(column, weighed.weights) for column in weighed.real.T)
        columns = replace(columns, atoms=found)
        weighed = table.at_their_atoms(weighed, columns)
        rows = rows.map(partial(table.at_their_atoms, columns=columns))
    # Rows of weight zero have no number.
    self.kept_, self.columns_, self.rows_ = sample.places, columns, weighed
    none = weighed.take(np.arange(0))
    self._template = self._decoded((none.real, none.codes, none.further), survey.like)
    mass = float(sample.by_label.sum())
    return Training(rows, survey.lengths, weighed, mass, passes + 3)


def read_labelled(
    self: Any, X: Any, y: Any, sample_weight: Any, unlabelled_weight: float | None = None
) -> Training | None:
    """Read a training table with labels, in memory or out of it; None if it is in memory.

    A row without a label weighs what the estimator says, unless ``unlabelled_weight`` does.
    """
    self._check_arguments()
    factor = float(self.unlabelled_weight if unlabelled_weight is None else unlabelled_weight)
    asked = Asked(True, y if isinstance(y, str) else None, self.unlabelled, factor)
    training = read_collection(self, X, y, sample_weight, asked)
    if training is None:
        weights = self._check(X, y, sample_weight)
        labels, weights = self._read_labels(X, y, weights, factor)
        self._read_rows(X, labels, weights)
    return training


def of_all_rows[M: FittedModel, F](
    self: Any,
    training: Training | None,
    model: M,
    fit: F,
    refit: Callable[[Blocks[Observations], M, Observations], tuple[M, F, int]],
) -> tuple[M, F, str]:
    """The model and its fit to all rows from that to the sample, and a sentence on the way.

    In memory they are those that there are.
    """
    if training is None:
        for of_collections in ("passes_", "_sampled"):
            self.__dict__.pop(of_collections, None)
        return model, fit, ""
    self.rows_ = training.as_all(self.rows_)
    model, fit, passes = refit(training.rows, model, self.rows_)
    self.passes_ = training.passes + passes
    way = (
        f"{self.passes_} passes over {sum(training.lengths)} rows in {len(training.lengths)} "
        f"blocks, from the optimum of {training.sample.n_obs} rows drawn at random."
    )
    return model, fit, way


def of_sample(self: Any, training: Training | None) -> str:
    """A sentence on the sample where that is all that is fitted to; none in memory."""
    self.__dict__.pop("passes_", None)
    if training is None:
        self.__dict__.pop("_sampled", None)
        return ""
    self.passes_ = training.passes
    drawn, n_rows = training.sample.n_obs, sum(training.lengths)
    whose = f"all {n_rows}" if drawn == n_rows else f"{drawn} of {n_rows}"
    chance = "" if drawn == n_rows else " drawn at random,"
    blocks = f"{len(training.lengths)} blocks in {self.passes_} passes"
    return f" Fitted to {whose} rows,{chance} read from {blocks}."


def inferred(self: Any, training: Training | None) -> Any:
    """Draw what ``inference`` asks for, from the rows wherever they are."""
    if training is None or not self._sampled or self.inference == "map":
        return self._infer()
    sums = BlockSums(training.rows, self.model_.log_posterior)
    self._infer(BlockLogPosterior(sums, self._log_posterior()))
    self.passes_ += sums.passes
    self.status_ = f"{self.status_} {sums.passes} more passes for {self.inference}."
    return self


IN_MEMORY: Final = {
    "trim": False,
    "pool": None,
    "batch_size": None,
    "early_stopping": False,
    "scheme": "joint",
    "hidden_cells": "marginalise",
}
"""Arguments that need all rows at once unless they have these values."""
BY_SUMS: Final = ("map", "laplace", "advi")
"""What ``inference`` may ask for where rows are only summed over."""


def _refuse_arguments(self: Any) -> None:
    """ValueError that names an argument which needs all rows at once."""
    for name, possible in IN_MEMORY.items():
        given = getattr(self, name, possible)
        if given != possible:
            raise ValueError(
                f"{type(self).__name__}({name}={given!r}) needs all rows in memory, and X is out "
                f"of memory: pass {name}={possible!r}, or fit a random sample of the rows."
            )


def _refuse_inference(self: Any, n_rows: int) -> None:
    """ValueError where draws need rows in memory, and these are too many."""
    if self.inference not in BY_SUMS:
        raise ValueError(
            f"{type(self).__name__}(inference={self.inference!r}) takes at most {SAMPLE_ROWS:,} "
            f"rows of a table out of memory, which are then read into it; received {n_rows:,}. It "
            "needs every row thousands of times. Pass inference='laplace' or 'advi', which need "
            "sums over blocks, or fit a random sample of the rows."
        )


def _surveyed(part: Part, options: dict[str, Any]) -> Survey:
    """What a block tells."""
    n_rows = part.weights.size
    if not n_rows:
        return Survey(None, part.present, (0,), 0.0, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # figures of a block are not those of the table
        columns = table.learn_columns(part.table, **options)
    mass, like = float(part.weights.sum()), part.table[:1]
    return Survey(columns, np.unique(part.present), (n_rows,), mass, like)


def _columns(survey: Survey, missingness: str) -> table.Columns:
    """Columns of the whole table; ValueError if it has no row or weighs next to nothing."""
    columns = survey.columns
    if columns is None:
        raise ValueError("X has 0 sample(s) of positive weight, but fit needs at least one row.")
    mean = survey.mass / sum(survey.lengths)
    if not LEAST_WEIGHT <= mean <= MOST_WEIGHT:
        raise ValueError(
            f"sample_weight must have a mean between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}; "
            f"received {mean:g}. Divide it by its mean."
        )
    return columns.with_masks if missingness == "informative" else columns


def _encoded(part: Part, columns: table.Columns, classes: np.ndarray, like: Any) -> Observations:
    """The rows of a block."""
    if not part.weights.size:
        return table.encode(like, columns).take(np.arange(0))
    labels = np.full(_num_samples(part.table), -1, dtype=np.intp)
    labels[~part.hidden] = np.searchsorted(classes, part.present)
    return replace(table.encode(part.table, columns), labels=labels, weights=part.weights)

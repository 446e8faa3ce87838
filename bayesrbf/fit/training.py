"""A training table wherever its rows are: in memory, on disk, or on a cluster."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import accumulate, pairwise
from operator import add
from typing import TYPE_CHECKING, Any, Final, cast

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesrbf import table
from bayesrbf.base.blocks import BLOCK_ROWS, Blocks, Collection, as_collection, dask_parts, no_rows
from bayesrbf.base.priors import Fit, MixturePrior
from bayesrbf.base.rows import Observations
from bayesrbf.fit.arguments import MAX_WEIGHT, MIN_WEIGHT
from bayesrbf.fit.drawing import Sample
from bayesrbf.fit.reading import (
    BLOCK,
    Reading,
    column_names,
    read_table,
    warn_of_copies,
    warn_of_labels,
)
from bayesrbf.fit.table import TrainingTable
from bayesrbf.mixture.fitted import FittedMixture, Solver, fit_mixture_blocks

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


# Answers of fitted estimators about tables out of memory, block by block.


def by_blocks[F: Callable[..., object]](method: F) -> F:
    """Let a method that answers row by row take tables out of memory.

    Answers about Dask collections are lazy and have their partitions; others are put together.
    """

    @wraps(method)
    def answered(estimator: BaseEstimator, X: object, *args: object, **options: object) -> object:
        """Answer of the method about a table in memory, or about all blocks of another table."""
        if isinstance(X, np.ndarray) and len(X) <= BLOCK_ROWS:
            return method(estimator, X, *args, **options)  # a memory map is one block
        fitted = vars(estimator).get("fitted_")
        names = None if fitted is None else fitted.table.names
        collection = as_collection(X, None if names is None else tuple(names))
        if collection is None:
            return method(estimator, X, *args, **options)
        check_is_fitted(estimator)
        like = method(estimator, fitted.stored_row(), *args, **options)
        if isinstance(like, list):
            raise ValueError(
                f"{method.__name__}() draws several tables from one in memory: of a table read "
                "block by block, every block would be drawn by the same random numbers. Hand over "
                "one block at a time, or leave draws out."
            )
        return collection.answers(_Answer(estimator, method.__name__, args, options, like), like)

    return cast(F, answered)


@dataclass(frozen=True)
class _Answer:
    """A method of a fitted estimator and its arguments; a function of blocks that can travel."""

    estimator: BaseEstimator
    method: str
    args: tuple[object, ...]
    options: Mapping[str, object]
    like: object
    """The answer about one row."""

    def __call__(self, block: object) -> object:
        """Answer about the rows of a block."""
        if not _num_samples(block):
            return no_rows(self.like)
        return getattr(self.estimator, self.method)(block, *self.args, **self.options)


# A training table, wherever its rows are.
#
# One out of memory is read in passes over its blocks: columns and classes, then a sample, which all
# is decided on; a mixture is then fitted to all rows.


SAMPLE_ROWS: Final = BLOCK
"""Rows of the sample, on which everything but the parameters is decided."""
SAMPLE_CELLS: Final = 2**24
"""Cells of the sample where it is all that is fitted to: 128 MiB of reals."""


@dataclass(frozen=True)
class OutOfCore:
    """Rows of a training table out of memory, encoded where they lie."""

    blocks: Blocks[Observations]
    lengths: tuple[int, ...]
    """Rows of every block that weigh something."""
    sample: Observations
    mass: float
    """Weight of all rows."""

    def weighed(self, weigh: Callable[[Observations], Observations]) -> OutOfCore:
        """The table with other weights of its rows."""
        return replace(self, blocks=self.blocks.map(weigh))

    def fit_all(
        self, training: TrainingTable, model: FittedMixture, prior: MixturePrior, solver: Solver
    ) -> tuple[TrainingTable, FittedMixture, Fit, str]:
        """Training table, mixture, its fit to all rows from the fit to the sample, and a message.

        The rows of the table are scaled to weigh as much as all rows together.
        """
        # Rows of the sample, together as heavy as the whole table.
        factor = self.mass / float(self.sample.weights.sum())
        rows = replace(training.rows, weights=factor * training.rows.weights)
        model, fit, passes = fit_mixture_blocks(
            self.blocks, model, rows, prior=prior, solver=solver
        )
        training = replace(training, rows=rows, passes=training.passes + passes)
        message = (
            f"{training.passes} passes over {sum(self.lengths)} rows in {len(self.lengths)} "
            f"blocks, from the optimum of {self.sample.n_obs} rows drawn at random."
        )
        return training, model, fit, message

    def note_on_sample(self, training: TrainingTable) -> str:
        """Message on the sample of a fit to the sample alone."""
        drawn, n_rows = self.sample.n_obs, sum(self.lengths)
        whose = f"all {n_rows}" if drawn == n_rows else f"{drawn} of {n_rows}"
        chance = "" if drawn == n_rows else " drawn at random,"
        blocks = f"{len(self.lengths)} blocks in {training.passes} passes"
        return f" Fitted to {whose} rows,{chance} read from {blocks}."


def read_training(
    reading: Reading, X: object, y: object, sample_weight: object, groups: object = None
) -> tuple[TrainingTable, OutOfCore | None]:
    """Training table, and its encoded blocks if it is out of memory, else None.

    In memory the whole table is one block. ValueError for groups of a table out of memory.
    """
    is_one_block = isinstance(X, np.ndarray) and len(X) <= BLOCK  # a larger memory map is not
    collection = None if is_one_block else as_collection(X)
    if collection is not None:
        if groups is not None:
            raise ValueError(
                f"{reading.owner}.fit(groups=...) needs a table in memory, and X is out of memory: "
                "leave groups out, or fit a random sample of the groups."
            )
        return _read_collection(reading, collection, y, sample_weight)
    return read_table(reading, X, y, sample_weight, groups), None


@dataclass(frozen=True)
class Survey:
    """Results of one pass over the rows, before any is encoded."""

    columns: table.Columns | None
    """None where there is no row."""
    classes: np.ndarray
    lengths: tuple[int, ...]
    """Rows of every block that weigh something."""
    mass: float
    like: Any
    """A table of one row."""

    def joined(self, other: Survey) -> Survey:
        """Survey of the rows of both; TypeError if their labels are of different types."""
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


def _read_collection(
    reading: Reading, collection: Collection, y: object, sample_weight: object
) -> tuple[TrainingTable, OutOfCore]:
    """Training table with a sample of the rows in memory, and all rows as encoded blocks.

    Columns, classes and rows are read block by block. A small table is sampled whole. From a
    larger table, rows of each class are drawn at random and weigh for the rows not drawn.
    TrainingTable has columns, classes and the sample; OutOfCore has the blocks, the sample and the
    weight of all rows. ``y`` is the name of a column, or labels beside the table.
    """
    _refuse_arguments(reading)
    target = y if reading.labelled and isinstance(y, str) else None
    unlabelled = reading.arguments.get("unlabelled")
    reader = LabelsInBlocks(reading.labelled, target, unlabelled, reading.unlabelled_weight)
    blocks, passes = _labelled_blocks(
        collection, y if reading.labelled else None, sample_weight, reader
    )
    survey = blocks.map(partial(_surveyed, options=reading.features)).reduce(Survey.joined)
    columns = _columns(survey, reading.missingness)
    n_rows = sum(survey.lengths)
    sampled = n_rows > SAMPLE_ROWS and not reading.of_sample
    if sampled:
        _refuse_inference(reading, n_rows)
    n_columns, names = column_names(survey.like)
    if reading.labelled and not survey.classes.size:
        raise ValueError("y needs at least one labelled row of positive weight.")
    of_use = reading.prevalence(survey.classes) if reading.labelled else None
    seed = reading.seed
    read = partial(_encoded, columns=columns, classes=survey.classes, like=survey.like)
    rows = blocks.map(read).persisted()
    n_classes = survey.classes.size
    most = max(SAMPLE_ROWS, SAMPLE_CELLS // n_columns if reading.of_sample else 0)
    of_class = most // (n_classes + reading.labelled) if n_rows > most else n_rows
    draw = partial(Sample.of, n_classes=n_classes, most=of_class, seed=seed)
    sample = rows.map(draw, list(accumulate(survey.lengths, initial=0))[:-1]).reduce(Sample.joined)
    weighed = sample.weighed()
    weighed, repeated = table.with_subjects(weighed, relative=False)
    mass = float(sample.by_label.sum())
    if reading.labelled and weighed.n_obs == n_rows:  # rows that are drawn weigh for others
        usual = table.usual_weight(table.copies_of(weighed), weighed)
        weighed, mass = _scaled(weighed, usual), mass / usual
        rows = rows.map(partial(_scaled, usual=usual))
    orders = table.level_orders(weighed, columns)
    columns, weighed = columns.in_levels(orders), table.recoded(weighed, orders)
    rows = rows.map(partial(table.recoded, orders=orders))
    if reading.finds_point_masses:
        columns = replace(columns, point_masses=table.point_masses_of(weighed, columns))
        weighed = table.at_their_point_masses(weighed, columns)
        rows = rows.map(partial(table.at_their_point_masses, columns=columns))
    warn_of_copies(repeated, weighed.n_obs, reading.owner)
    if reading.labelled:
        warn_of_labels(survey.classes, weighed.labels, reading.owner)
    training = TrainingTable(
        reading.owner,
        columns,
        weighed,
        sample.positions,  # rows of weight zero have no number
        seed,
        n_columns,
        names,
        classes=survey.classes if reading.labelled else None,
        prevalence=of_use,
        handle_unknown=reading.arguments["handle_unknown"],
        unlabelled_weight=reading.unlabelled_weight,
        repeated=repeated,
        passes=passes + 3,
        sampled=sampled,
    )
    of_blocks = OutOfCore(rows, survey.lengths, weighed, mass)
    return training.with_template(survey.like), of_blocks


def _scaled(rows: Observations, usual: float) -> Observations:
    """Rows whose weights are relative to the usual one."""
    return rows if usual == 1 else replace(rows, weights=rows.weights / usual)


def _refuse_arguments(reading: Reading) -> None:
    """ValueError if an argument has a value for which all rows are needed at once."""
    for name, possible in reading.by_blocks.items():
        value = reading.arguments[name]
        if value not in possible:
            raise ValueError(
                f"{reading.owner}({name}={value!r}) needs all rows in memory, and X is out "
                f"of memory: pass {name}={possible[0]!r}, or fit a random sample of the rows."
            )


def _refuse_inference(reading: Reading, n_rows: int) -> None:
    """ValueError unless inference is "map": draws need rows in memory, and these are too many."""
    inference = reading.arguments["inference"]
    if inference != "map":
        raise ValueError(
            f"{reading.owner}(inference={inference!r}) needs every row again and again, and takes "
            f"at most {SAMPLE_ROWS:,} rows of a table out of memory; received {n_rows:,}: pass "
            "inference='map', or fit a random sample of the rows."
        )


def _surveyed(block: LabelledBlock, options: dict[str, Any]) -> Survey:
    """Survey of one block: its columns, classes, number of rows and weight; no columns if empty."""
    n_rows = block.weights.size
    if not n_rows:
        return Survey(None, block.present, (0,), 0.0, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # figures of a block are not those of the table
        columns = table.learn_columns(block.table, whole=False, **options)
    mass = float(block.weights.sum())
    return Survey(columns, np.unique(block.present), (n_rows,), mass, like=block.table[:1])


def _columns(survey: Survey, missingness: str) -> table.Columns:
    """Columns of the whole table; ValueError if it has no row or weighs next to nothing."""
    columns = survey.columns
    if columns is None:
        raise ValueError("X has 0 sample(s) of positive weight, but fit needs at least one row.")
    mean = survey.mass / sum(survey.lengths)
    if not MIN_WEIGHT <= mean <= MAX_WEIGHT:
        raise ValueError(
            f"sample_weight must have a mean between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}; "
            f"received {mean:g}. Divide it by its mean."
        )
    columns = table.in_one_name(columns)
    return columns.with_masks if missingness == "informative" else columns


def _encoded(
    block: LabelledBlock, columns: table.Columns, classes: np.ndarray, like: object
) -> Observations:
    """The rows of a block."""
    if not block.weights.size:
        return table.encode(like, columns).take(np.arange(0))
    labels = np.full(_num_samples(block.table), -1, dtype=np.intp)
    labels[~block.unlabelled] = np.searchsorted(classes, block.present)
    return replace(table.encode(block.table, columns), labels=labels, weights=block.weights)


# ---- blocks with their labels and weights


@dataclass(frozen=True)
class LabelsInBlocks:
    """Reader of the labels and weights of a table."""

    labelled: bool
    target: str | None = None
    """The column of X that holds the labels; None where they come beside it."""
    unlabelled: object = None
    """Mark of a hidden label."""
    unlabelled_weight: float = 1.0


@dataclass(frozen=True)
class LabelledBlock:
    """The rows of a block that weigh something, as they were handed over."""

    table: Any
    present: np.ndarray
    """Labels of the rows that have one."""
    unlabelled: Bool[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]


def _labelled_blocks(
    collection: Collection, y: object, sample_weight: object, reader: LabelsInBlocks
) -> tuple[Blocks[LabelledBlock], int]:
    """Blocks with their labels and weights, and the passes over the rows to find their lengths.

    Labels and weights are Dask collections of the same partitions, or one value a row in memory.
    """
    beside = {"y": None if reader.target else y, "sample_weight": sample_weight}
    lengths, passes = collection.lengths, 0
    if lengths is None and any(v is not None and not dask_parts(v) for v in beside.values()):
        lengths, passes = tuple(collection.blocks.map(_length).reduce(add)), 1
    n_blocks = collection.n_blocks
    cut = [_cut(values, lengths, n_blocks, name) for name, values in beside.items()]
    return collection.blocks.map(partial(_labelled_block, reader=reader), *cut), passes


def _length(block: object) -> list[int]:
    """Number of rows of a block."""
    return [_num_samples(block)]


def _cut(
    values: object, lengths: tuple[int, ...] | None, n_blocks: int, name: str
) -> Sequence[object]:
    """Values of the rows as one array or partition per block; None for every block without values.

    ValueError, which names the argument ``name``, if rows or partitions are not as many as in X.
    """
    if values is None:
        return [None] * n_blocks
    partitions = dask_parts(values)
    if partitions and len(partitions) != n_blocks:
        raise ValueError(
            f"{name} must have the partitions of X, which has {n_blocks}; received "
            f"{len(partitions)}. Make it from X, or hand {name} over in memory."
        )
    if partitions or lengths is None:
        return partitions
    if _num_samples(values) != sum(lengths):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{sum(lengths)} rows and {name} has {_num_samples(values)}."
        )
    ends = list(accumulate(lengths, initial=0))
    return [_safe_indexing(values, slice(*pair)) for pair in pairwise(ends)]


def _labelled_block(
    block: Any, labels: object, weights: object, reader: LabelsInBlocks
) -> LabelledBlock:
    """Rows of a block with positive weight, with their labels and weights.

    ValueError if labels or weights are not as many as the rows, or no column has the target's name.
    """
    # On a cluster the parts of other collections arrive as what they hold.
    labels, weights = (v.compute() if hasattr(v, "compute") else v for v in (labels, weights))
    if reader.target:
        frame = nw.from_native(block, eager_only=True)
        if reader.target not in frame.columns:
            near = difflib.get_close_matches(reader.target, frame.columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(frame.columns)}."
            raise ValueError(f"y={reader.target!r} names no column of X; {hint}")
        labels, block = frame[reader.target].to_native(), frame.drop(reader.target).to_native()
    n_rows = _num_samples(block)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if values is not None and _num_samples(values) != n_rows:
            raise ValueError(
                f"The blocks of X and {name} must have as many rows as each other; received "
                f"{n_rows} and {_num_samples(values)}."
            )
    present, unlabelled = np.zeros(n_rows, np.intp), np.zeros(n_rows, dtype=bool)
    if reader.labelled and n_rows:
        present, unlabelled = table.read_labels(labels, reader.unlabelled)
    weighed = np.where(unlabelled, reader.unlabelled_weight, 1.0) * _weights(weights, n_rows)
    positive = weighed > 0
    if not positive.all():
        block = _safe_indexing(block, np.flatnonzero(positive))
    return LabelledBlock(
        block, present[positive[~unlabelled]], unlabelled[positive], weighed[positive]
    )


def _weights(weights: object, n_rows: int) -> Float[np.ndarray, " obs"]:
    """Row weights of a block; ValueError if one is negative or no number."""
    if weights is None:
        return np.ones(n_rows)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_rows,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("sample_weight must hold one finite number of at least 0 for every row.")
    return values

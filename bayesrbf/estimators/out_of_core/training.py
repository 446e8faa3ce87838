"""A training table out of memory: its columns and classes, a sample, and the fit to all rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import _num_samples

from bayesrbf import table
from bayesrbf.blocks import Blocks, Collection
from bayesrbf.estimators.arguments import LEAST_WEIGHT, MOST_WEIGHT
from bayesrbf.estimators.column_doubts import warn_of_copies, warn_of_labels
from bayesrbf.estimators.out_of_core.parts import LabelsInBlocks, Part, parts_of
from bayesrbf.estimators.reading import BLOCK, Reading, column_names
from bayesrbf.fitted.drawing import draw_by
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.sampling import Sample
from bayesrbf.fitted.training_table import TrainingTable
from bayesrbf.numerics.block_log_posterior import BlockLogPosterior, BlockSums
from bayesrbf.records.mixture import Observations

SAMPLE_ROWS: Final = BLOCK
"""Rows of the sample, on which everything but the parameters is decided."""
SAMPLE_CELLS: Final = 2**24
"""Cells of the sample where it is all that is fitted to: 128 MiB of reals."""
DRAWS_BY_SUMS: Final = 250
"""Draws of a chain where the density of each is a sum over rows out of memory."""


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

    def as_all(self, rows: Observations) -> Observations:
        """Rows of the sample, together as heavy as the whole table."""
        factor = self.mass / float(self.sample.weights.sum())
        return replace(rows, weights=factor * rows.weights)

    def fit_all[M: FittedModel, F](
        self,
        training: TrainingTable,
        model: M,
        refit: Callable[[Blocks[Observations], M, Observations], tuple[M, F, int]],
    ) -> tuple[TrainingTable, M, F, str]:
        """The model and its fit to all rows from that to the sample, and a sentence on the way."""
        rows = self.as_all(training.rows)
        model, fit, passes = refit(self.blocks, model, rows)
        training = replace(training, rows=rows, passes=training.passes + passes)
        way = (
            f"{training.passes} passes over {sum(self.lengths)} rows in {len(self.lengths)} "
            f"blocks, from the optimum of {self.sample.n_obs} rows drawn at random."
        )
        return training, model, fit, way

    def way_of_sample(self, training: TrainingTable) -> str:
        """A sentence on the sample, where that is all that is fitted to."""
        drawn, n_rows = self.sample.n_obs, sum(self.lengths)
        whose = f"all {n_rows}" if drawn == n_rows else f"{drawn} of {n_rows}"
        chance = "" if drawn == n_rows else " drawn at random,"
        blocks = f"{len(self.lengths)} blocks in {training.passes} passes"
        return f" Fitted to {whose} rows,{chance} read from {blocks}."

    def with_draws[M: FittedModel, D](
        self, fit: FittedTable[M, D], method: str
    ) -> FittedTable[M, D]:
        """A fit with draws from sums over all rows."""
        sums = BlockSums(self.blocks, fit.model.log_posterior)
        log_posterior = BlockLogPosterior(sums, fit.log_posterior)
        point = fit.model.point(log_posterior)
        options = {"random_state": fit.table.seed, "draws": DRAWS_BY_SUMS}
        fit = fit.with_draws(draw_by(method)(log_posterior, point, **options))
        training = replace(fit.table, passes=fit.table.passes + sums.passes)
        sentence = f"{fit.sentence} {sums.passes} more passes for {method}."
        return fit.replaced(table=training, sentence=sentence)


def read_collection(
    reading: Reading, collection: Collection, y: object, sample_weight: object
) -> tuple[TrainingTable, OutOfCore]:
    """Read columns and classes of a table out of memory, and a sample of its rows."""
    _refuse_arguments(reading)
    target = y if reading.labelled and isinstance(y, str) else None
    unlabelled = reading.arguments.get("unlabelled")
    asked = LabelsInBlocks(reading.labelled, target, unlabelled, reading.unlabelled_weight)
    parts, passes = parts_of(collection, y if reading.labelled else None, sample_weight, asked)
    survey = parts.map(partial(_surveyed, options=reading.features)).reduce(Survey.joined)
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
    rows = parts.map(read).kept()
    n_classes = survey.classes.size
    most = max(SAMPLE_ROWS, SAMPLE_CELLS // n_columns if reading.of_sample else 0)
    of_class = most // (n_classes + reading.labelled) if n_rows > most else n_rows
    draw = partial(Sample.of, n_classes=n_classes, most=of_class, seed=seed)
    sample = rows.map(draw, list(accumulate(survey.lengths, initial=0))[:-1]).reduce(Sample.joined)
    weighed = sample.weighed()
    weighed, repeated = table.with_units(weighed, relative=False)
    mass = float(sample.by_label.sum())
    if reading.labelled and weighed.n_obs == n_rows:  # rows that are drawn weigh for others
        usual = table.usual_weight(table.copies_of(weighed), weighed)
        weighed, mass = _scaled(weighed, usual), mass / usual
        rows = rows.map(partial(_scaled, usual=usual))
    if reading.finds_atoms:
        atoms = tuple(table.find_atoms(column, weighed.weights) for column in weighed.real.T)
        columns = replace(columns, atoms=atoms)
        weighed = table.at_their_atoms(weighed, columns)
        rows = rows.map(partial(table.at_their_atoms, columns=columns))
    warn_of_copies(repeated, weighed.n_obs, reading.owner)
    if reading.labelled:
        warn_of_labels(survey.classes, weighed.labels, reading.owner)
    training = TrainingTable(
        reading.owner,
        columns,
        weighed,
        sample.places,  # rows of weight zero have no number
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


IN_MEMORY: Final = {
    "trim": False,
    "pool": None,
}
"""Arguments that need all rows at once unless they have these values."""
BY_SUMS: Final = ("map", "laplace", "advi")
"""What ``inference`` may ask for where rows are only summed over."""


def _refuse_arguments(reading: Reading) -> None:
    """ValueError that names an argument which needs all rows at once."""
    for name, possible in IN_MEMORY.items():
        given = reading.arguments.get(name, possible)
        if given != possible:
            raise ValueError(
                f"{reading.owner}({name}={given!r}) needs all rows in memory, and X is out "
                f"of memory: pass {name}={possible!r}, or fit a random sample of the rows."
            )


def _refuse_inference(reading: Reading, n_rows: int) -> None:
    """ValueError where draws need rows in memory, and these are too many."""
    inference = reading.arguments["inference"]
    if inference not in BY_SUMS:
        raise ValueError(
            f"{reading.owner}(inference={inference!r}) takes at most {SAMPLE_ROWS:,} "
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
        columns = table.learn_columns(part.table, whole=False, **options)
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
    columns = table.in_one_name(columns)
    return columns.with_masks if missingness == "informative" else columns


def _encoded(part: Part, columns: table.Columns, classes: np.ndarray, like: object) -> Observations:
    """The rows of a block."""
    if not part.weights.size:
        return table.encode(like, columns).take(np.arange(0))
    labels = np.full(_num_samples(part.table), -1, dtype=np.intp)
    labels[~part.hidden] = np.searchsorted(classes, part.present)
    return replace(table.encode(part.table, columns), labels=labels, weights=part.weights)

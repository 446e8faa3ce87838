"""The doubt about the kind of model: a stack beside a classifier widens its intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf import table
from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.hidden_share import hats, hidden_share
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import ClassPrediction, MixturePrior, Status
from bayesrbf.base.records import MOST_LOG, Requirements, stored, within
from bayesrbf.base.rows import Observations, joined_rows
from bayesrbf.families.stack.disagreement import (
    LEAST_DISPUTED_LOG,
    UsualRows,
    bounded_spread,
    disagreement_draws,
    squared_scale,
    stretch_of_median,
    variance_of_kinds,
)
from bayesrbf.families.stack.fitted import FittedStack, StackSettings, stack_of
from bayesrbf.families.stack.intervals import (
    cell_law_of,
    rows_held_out,
    strays_of,
    table_variance_of,
)
from bayesrbf.families.stack.members import SharedTraining, own_members, recipe_of
from bayesrbf.families.stack.pool import Pool, equal_pool, fit_pool, fit_pools
from bayesrbf.fit.calibration import unlabelled_gain
from bayesrbf.fit.estimator import AnyFit
from bayesrbf.fit.held_out import (
    MANY_ROWS,
    Fold,
    HeldOut,
    NumberedFold,
    masking_of,
    numbered_folds,
    split_rows,
    unit_folds,
)
from bayesrbf.fit.probabilities import LEAST_DOUBT, ClassPosterior
from bayesrbf.fit.table import TrainingTable
from bayesrbf.fit.warning import warn

# The rows that are held out of the members of a stack, and what they tell.


FOLDS, FEWER = 5, 3
"""On ten tables of at most 150 rows, complete and with holes, ten folds were no better. Of many
rows two thirds are enough for members that are weighed against each other."""
ENOUGH: Final = 5000
"""Different rows held out from which more tell little of weights and temperatures."""
SHARE: Final = 0.15
"""Share of the time of a fit that may be spent on it, unless a single fold takes more."""
ALWAYS: Final = 100
"""Rows that take as long as what a fit costs whatever the number of rows."""


def fit_stack(
    training: TrainingTable, settings: StackSettings, cv: object, n_jobs: int | None
) -> tuple[FittedStack, Int[np.ndarray, "two given"], str]:
    """Hold out, temper, pool, and fit all members; where rows were held out, and a sentence."""
    rows, kept, seed = training.rows, training.kept, training.seed
    folds = numbered_folds(pool_splits(cv, rows, kept, seed), training.class_labels)
    distinct = table.distinct(rows)[0]
    shared = settings.training(distinct, 0)
    members = settings.fit(shared)
    held_out = settings.hold_out_folds(folds, n_jobs)
    gain = gain_of_unlabelled(settings, folds, held_out, n_jobs)
    held_out, pools = pools_of(held_out, settings, training.owner)
    copies = places_held_out(rows, kept, [test for _, _, test in folds])
    model = stack_of(members, distinct, settings, pools, held_out)
    parts = Status.CONVERGED.sentence, gain, partly_seen(shared, held_out)
    return model, copies, " ".join(filter(None, parts))


def usual_folds(n_labelled: float) -> int:
    """Number of folds where the user gave none, by the number of labelled units."""
    return FEWER if n_labelled > MANY_ROWS else FOLDS


def pool_splits(
    cv: object, rows: Observations, kept: Int[np.ndarray, " obs"], seed: int
) -> Iterator[Fold]:
    """The user's folds, or as many usual ones as hold out enough rows: of very many rows, one."""
    if cv is not None:
        return split_rows(cv, rows, kept, seed)
    n_rows = int((table.distinct(rows)[0].labels >= 0).sum())
    n_folds = max(usual_folds(rows.n_labelled), n_rows // ENOUGH)
    enough = -(-n_folds * ENOUGH // n_rows)
    return islice(split_rows(n_folds, rows, kept, seed), enough)


def pools_of(
    held_out: HeldOut | None, settings: StackSettings, owner: str
) -> tuple[HeldOut, tuple[Pool, ...]]:
    """Weights and temperatures; equal ones, with a warning, where no row could be held out."""
    if held_out is not None:
        return held_out, fit_pools(held_out)
    warn(
        f"{owner}: no labelled row could be held out (classes of one row never "
        "are), so all members weigh the same and no temperature is fitted; label more rows."
    )
    n_members = len(settings.names)
    values = np.zeros((0, n_members, settings.n_classes))
    return HeldOut(values, np.zeros(0, np.intp), np.zeros(0)), (equal_pool(n_members),)


def partly_seen(training: SharedTraining, held_out: HeldOut) -> str:
    """A sentence on what saw a part of very many rows; empty where all was fitted to all."""
    sentences, n_rows = [], training.rows.n_obs
    networks, judged = training.of_networks.rows.n_obs, held_out.labels.size
    n_labelled = int((training.rows.labels >= 0).sum())
    if networks < n_rows:
        sentences.append(f"Kernel networks were fitted to {networks} of {n_rows} different rows.")
    if n_labelled > ENOUGH and judged < 0.9 * n_labelled:
        sentences.append(f"{judged} different rows held out gave weights and temperatures.")
    return " ".join(sentences)


def gain_of_unlabelled(
    settings: StackSettings,
    folds: Sequence[NumberedFold],
    held_out: HeldOut | None,
    n_jobs: int | None,
) -> str:
    """What rows without a label gained on labelled ones held out; empty where there are none.

    The first folds are fitted again without them, as many as the share allows, and one at least.
    Either kind of members has a pool of its own, fitted to the same rows held out.
    """
    if held_out is None or not (folds[0][1].labels < 0).any():
        return ""
    bare = [(number, train.take(train.labels >= 0), test) for number, train, test in folds]
    time = np.mean([ALWAYS + train.n_obs for _, train, _ in folds]) * (len(folds) + 1)
    more = np.cumsum([ALWAYS + train.n_obs for _, train, _ in bare])
    count = max(1, int((more <= SHARE * time).sum()))
    again = replace(settings, masking=None).hold_out_folds(bare[:count], n_jobs)
    assert again is not None  # each of these folds holds a row out
    n = again.labels.size
    with_them = HeldOut(held_out.values[:n], held_out.labels[:n], held_out.weights[:n])
    gains = fit_pool(again).losses(again) - fit_pool(with_them).losses(with_them)
    return unlabelled_gain("as given", gains, with_them.weights)


def places_held_out(
    rows: Observations, kept: Int[np.ndarray, " obs"], tests: Sequence[Observations]
) -> Int[np.ndarray, "two given"]:
    """Names of the labelled rows, and the place of each among the rows held out, fold after fold.

    ``tests`` are the rows held out of every fold. Copies of a row are dealt to the folds that hold
    them out by the weights that they have there.

    >>> cells, none = np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 0), int)
    >>> rows = Observations(cells, none, np.array([0, 1, 0]), np.ones(3))
    >>> places_held_out(
    ...     rows,
    ...     np.array([4, 5, 7]),
    ...     [rows.take(slice(2, 3)), rows.take(slice(2))],
    ... )
    array([[4, 5, 7],
           [0, 2, 1]])
    """
    everything = joined_rows([rows, *tests])
    _, place = table.distinct(everything)
    codes, labelled = place[: rows.n_obs], np.flatnonzero(rows.labels >= 0)
    of_tests, weights = place[rows.n_obs :], everything.weights[rows.n_obs :]
    if not of_tests.size:
        return np.zeros((2, 0), dtype=np.intp)
    order, ends = _ends(of_tests, weights)
    some, row_ends = _ends(codes[labelled], rows.weights[labelled])
    halves = (
        rows.weights[labelled]
        / np.bincount(codes[labelled], rows.weights[labelled])[codes[labelled]]
    )
    places = np.searchsorted(ends, row_ends - halves[some] / 2)
    entry = order[np.minimum(places, order.size - 1)]
    same_label = of_tests[entry] == codes[labelled[some]]  # others were never held out
    result = np.stack([labelled[some], entry])[:, same_label]
    result = result[:, np.argsort(result[0])]
    return np.stack([kept[result[0]], result[1]])


def _ends(
    codes: Int[np.ndarray, " row"], weights: Float[np.ndarray, " row"]
) -> tuple[Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Rows in the order of their codes: code plus the share of its weight up to each row."""
    order = np.argsort(codes, kind="stable")
    totals = np.bincount(codes, weights)
    own = codes[order]
    before = (np.cumsum(totals) - totals)[own]
    return order, own + (np.cumsum(weights[order]) - before) / totals[own]


# How far a classifier may be from the truth, told by other kinds of models of the same rows.
#
# Its posterior is that of its parameters if the model is right. Let the truth differ from the
# classifier as it would from a pool (:mod:`bayesrbf.families.stack.disagreement`): with the
# classifier's log odds l among those of J kinds, every draw is
#
# .. math:: l + s \Bigl(\sum_j f_j (l_j - l) + g\Bigr).
#
# The classifier's own draws are not added: kinds that were fitted to the same rows differ by what
# these rows leave open, too, and with both on four tables intervals of 90 % held .97 to 1. The
# table's mean square of :math:`l_j - l` is not known, for the classifier was not fitted without the
# rows held out; that of the kinds about their pool stands for it. It alone moves the median of the
# draws further out: where others contradict the classifier at a row, they do not make it surer.


Point = Callable[[Observations], Float[np.ndarray, "obs label"]]
"""Class log probabilities that a classifier gives out at the shares of training."""


@stored
class ModelDoubt:
    """A small pool of other kinds of models, fitted to the rows of a classifier."""

    pool: FittedStack
    kind: str
    """Kind of the classifier: members of the pool of the same kind tell nothing."""
    table_variance: float
    """Mean variance of the kinds of members about their pool, over rows held out."""
    usual: UsualRows
    """Rows held out of companions: at rows unlike them draws spread further."""

    def __laws__(self) -> Requirements:
        yield bool(self.others.any()), "members of another kind"
        yield within(self.table_variance, 0, MOST_LOG), "a variance"

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the rows of the pool."""
        return self.pool.members.own[0].table_shape

    @property
    def others(self) -> Bool[np.ndarray, " member"]:
        """Members of another kind than the classifier."""
        names = self.pool.members.names
        return np.array([recipe_of(name).kind != self.kind for name in names])

    def around(self, posterior: ClassPosterior, point: Point, seed: int) -> ClassPosterior:
        """The posterior whose draws are moved by how far other kinds differ from the classifier."""
        others = self.others
        own = others.sum()  # the classifier's place, behind the others
        kinds = np.append(self.pool.kinds[others], -1)
        kinds = np.unique(kinds, return_inverse=True)[1]
        n_kinds, rng = np.unique(kinds).size, np.random.default_rng(seed)
        factors, shifts = disagreement_draws(
            posterior.n_draws, kinds, posterior.n_classes, 1.0, rng
        )
        moves = np.concatenate([factors[:, :own], shifts], axis=1)
        *shape, dimension = posterior.theta.shape
        # They ride along as further coordinates, so that blocks of draws keep them.
        theta = np.concatenate([posterior.theta, moves.reshape(*shape, -1)], axis=2)

        def prepare(rows: Observations) -> DoubtedPredictor:
            log_p, hidden = point(rows), hidden_share(rows)
            members = self._members(rows, hidden)[:, others]
            everyone = np.concatenate([members, log_p[:, None]], axis=1)
            usual = self._usual_variance(hidden)
            scale = squared_scale(variance_of_kinds(everyone, log_p, kinds), usual, n_kinds)
            stretch = stretch_of_median(squared_scale(np.zeros(scale.shape), usual, n_kinds))
            # What is surer than anybody may dispute is moved from where disputes end.
            disputed = log_odds(np.exp(log_p), LEAST_DISPUTED_PROBABILITY)
            given_out = log_odds(np.exp(log_p), LEAST_DOUBT)
            outside = np.abs(given_out) > np.abs(disputed)
            stretch *= np.divide(disputed, given_out, out=np.ones_like(scale), where=outside)
            centre = np.maximum(log_p, LEAST_DISPUTED_LOG)
            return DoubtedPredictor(
                posterior.predictor(rows),
                dimension,
                centre,
                np.maximum(members, LEAST_DISPUTED_LOG) - centre[:, None],
                np.sqrt(usual),
                self._spread(rows, scale, disputed),
                stretch,
            )

        strays = strays_of(self.pool)
        return replace(posterior, predictor=prepare, theta=theta, temperature=1.0, strays=strays)

    def _members(
        self, rows: Observations, hidden: Float[np.ndarray, " obs"]
    ) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of the members, tempered."""
        values = self.pool.members.log_probabilities(rows)
        at_point = self.pool.pool_posterior.of_rows(hidden, self.pool.fitted_point)
        logs: np.ndarray = np.log(at_point.members(values))
        return logs

    def _spread(
        self,
        rows: Observations,
        scale: Float[np.ndarray, "obs label"],
        median: Float[np.ndarray, "obs label"],
    ) -> Float[np.ndarray, " obs"]:
        """How many times as far draws are moved: further at rows unlike those held out."""
        companion = self.pool.companion
        spread = self.usual.spread(companion.standardise(rows), cell_law_of(companion))
        return np.where(scale.any(axis=1), bounded_spread(spread, scale, median), 0.0)

    def _usual_variance(self, hidden: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Mean variance of the kinds about their pool where so many of the cells are hidden."""
        if self.pool.held.masked is None:
            return np.full(hidden.size, self.table_variance)
        return np.where(hidden < 1, hats(hidden) @ self.pool.knot_variances, 0.0)


@dataclass(frozen=True)
class DoubtedPredictor(Predictor):
    """Predictions of a classifier, moved towards other kinds of models and away."""

    predictor: Predictor
    """Of the classifier's own draws: their density of the rows stays."""
    dimension: int
    """Coordinates of the classifier's own draws."""
    centre: Float[np.ndarray, "obs label"]
    """Log probabilities of the classifier at its fitted point."""
    deviations: Float[np.ndarray, "obs member label"]
    """Log probabilities of the others over those of the classifier."""
    usual: Float[np.ndarray, " obs"]
    """Usual root mean square of these deviations."""
    spread: Float[np.ndarray, " obs"]
    """How many times as far draws are moved."""
    stretch: Float[np.ndarray, "obs label"] = None  # type: ignore[assignment]

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        own, moves = np.split(thetas, [self.dimension], axis=1)
        factors, shifts = np.split(moves, [self.deviations.shape[1]], axis=1)
        away = np.einsum("sj,njc->snc", factors, self.deviations)
        away += self.usual[:, None] * shifts[:, None]
        moved = self.centre + self.spread[:, None] * away
        return ClassPrediction(log_softmax(moved, axis=-1), self.predictor.at_all(own).log_density)


# A small pool of other kinds of models, fitted to the rows of a classifier.


MEMBERS_BESIDE: Final = "lite"
"""Set of members of the pool."""


def require_comparable(fit: AnyFit) -> None:
    """ValueError where other kinds of models cannot be fitted to the rows of a fit."""
    if not comparable(fit):
        raise ValueError(
            f"{fit.table.owner}.refine(model_doubt='pool') takes mixtures, RBF, kernel and sparse "
            "networks of real and categorical columns, whose missing cells tell nothing and whose "
            "labels are single classes; leave model_doubt out, or fit a StackedClassifier."
        )


def doubt_of(fit: AnyFit, cv: object, n_jobs: int | None) -> ModelDoubt:
    """Other kinds of models of the rows of a fit, held out by the classifier's own splits."""
    training = fit.table
    rows, n_classes = training.rows, training.class_labels.size
    few, seed = table.few_values(rows), training.seed
    members = own_members(MEMBERS_BESIDE, few, rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(members, (), levels, n_classes, MixturePrior(), seed, few, masking)
    splits = None if isinstance(cv, Integral) else cv  # a number of folds is the classifier's own
    pool = fit_stack(training, settings, splits, n_jobs)[0]
    distinct = table.distinct(rows)[0]
    folds = unit_folds(distinct.labels, distinct.units, FOLDS, seed)
    usual, variance = rows_held_out(settings, distinct, folds), table_variance_of(pool, distinct)
    return ModelDoubt(pool, fit.model.kind, variance, usual)


def comparable(fit: AnyFit) -> bool:
    """Whether other kinds of models can be fitted to the rows of a fit."""
    single = fit.table.rows.labels.max() < fit.table.class_labels.size
    return bool(fit.model.kind) and single and not fit.table.read_columns.masked

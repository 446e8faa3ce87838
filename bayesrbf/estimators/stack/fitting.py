"""How a stack is fitted: members held out fold by fold, tempered, pooled, refitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.estimators.folds import Fold, HeldOut, joined, numbered_folds
from bayesrbf.estimators.stack.extra import ExtraMember
from bayesrbf.estimators.stack.members import FittedMember, fit_members
from bayesrbf.estimators.stack.training import LearnedRates, Training, Views
from bayesrbf.estimators.warning import warn
from bayesrbf.inference.progress import progress
from bayesrbf.numerics.stack.pooling import LEAST_LOG, member_probabilities, pool_weights, pooled
from bayesrbf.posterior.recalibration import fit_temperature
from bayesrbf.posterior.scores import log_loss
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixturePrior

FEW_ROWS, MANY_FOLDS, FOLDS = 200, 10, 5
"""Weight of the labelled rows below which there are ten folds, else five."""


def default_folds(rows: Observations) -> int:
    """Number of folds where none is given."""
    few = rows.weights[rows.labels >= 0].sum() < FEW_ROWS
    return MANY_FOLDS if few else FOLDS


@dataclass(frozen=True)
class StackSettings:
    """What is fitted in every fold and at the end."""

    members: tuple[str, ...]
    """Names of own members."""
    extra: tuple[ExtraMember, ...]
    """Members of other libraries, not fitted."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    seed: int
    """Seed of starts and exemplars."""
    few: FewValues = field(default_factory=FewValues)
    """Real columns that a member may take for categories."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return self.members + tuple(member.name for member in self.extra)

    def fit(
        self, rows: Observations, seed: int, of_folds: Sequence[LearnedRates] = ()
    ) -> FittedMembers:
        """Fit all members to the same rows."""
        return self._fit(self._training(rows, seed, of_folds))

    def hold_out(
        self, fold: int, train: Observations, test: Observations
    ) -> tuple[Float[np.ndarray, "obs member label"], LearnedRates]:
        """Log probabilities that members fitted to some rows give to others, and their rates."""
        training = self._training(train, fold + 1)
        return self._fit(training).log_probabilities(test), training.learned_rates

    def hold_out_folds(
        self, splits: Iterable[Fold], classes: np.ndarray, n_jobs: int | None
    ) -> tuple[HeldOut | None, tuple[LearnedRates, ...]]:
        """What members say of the rows held out in all folds, and the rates of every fold.

        None where no row could be held out. ``n_jobs`` processes share the folds.
        """
        folds = numbered_folds(splits, classes)
        if not folds:
            return None, ()
        with progress(False) as track:
            said = Parallel(n_jobs=n_jobs)(
                delayed(self.hold_out)(*fold) for fold in track(folds, "Holding rows out")
            )
        values, rates = zip(*said, strict=True)
        return joined(values, [test for _, _, test in folds]), rates

    def _training(
        self, rows: Observations, seed: int, of_folds: Sequence[LearnedRates] = ()
    ) -> Training:
        """Rows, and what members fitted to them share."""
        seed = self.seed + seed
        known = self.levels, self.n_classes, self.prior, seed, of_folds, self.few
        return Training(rows, *known)

    def _fit(self, training: Training) -> FittedMembers:
        """All members."""
        extra = tuple(member.fit(training.rows) for member in self.extra)
        return FittedMembers(fit_members(training, self.members), extra, self.n_classes)


@dataclass(frozen=True)
class FittedMembers:
    """All members, fitted."""

    own: tuple[FittedMember, ...]
    extra: tuple[ExtraMember, ...]
    n_classes: int

    @property
    def condensed(self) -> FittedMembers:
        """Members that predict the same from less: those that draws share are many."""
        return replace(self, own=tuple(member.condensed for member in self.own))

    @property
    def rounded(self) -> FittedMembers:
        """The same with the digits of single precision in what is large; maps stay shared."""
        maps = {id(member.columns): member.columns.rounded for member in self.own}
        own = tuple(member.rounded(maps[id(member.columns)]) for member in self.own)
        return replace(self, own=own)

    def log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of every member at its fitted point, in nats, -60 at least."""
        views = Views(rows)
        joints = [member.of_views(views) for member in self.own]
        joints += [member.class_log_joint(rows, self.n_classes) for member in self.extra]
        return bounded_log_probabilities(np.stack(joints, axis=1))


@dataclass(frozen=True)
class Pool:
    """Weights and temperatures of a stack."""

    weights: Float[np.ndarray, " member"]
    member_temperatures: Float[np.ndarray, " member"]
    """Temperatures before the pool."""
    temperature: float
    """Temperature after it."""

    def losses(self, held: HeldOut) -> list[float]:
        """Held-out log losses of every member and of the pool, in nats; NaN without rows."""
        values, labels, n_members = held.values, held.labels, self.weights.size
        if labels.size == 0:
            return [np.nan] * (n_members + 1)
        temperatures, ones = self.member_temperatures, np.ones(1)
        pools = [pooled(values[:, [j]], ones, temperatures[[j]]) for j in range(n_members)]
        whole = self.temperature * pooled(values, self.weights, temperatures)
        whole = whole - np.logaddexp.reduce(whole, axis=1, keepdims=True)
        return [
            float(np.average(log_loss(np.exp(one), labels), weights=held.weights))
            for one in [*pools, whole]
        ]


def bounded_log_probabilities(
    log_joint: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Normalise over classes and hold above -60 nats."""
    return np.maximum(log_softmax(log_joint, axis=-1), LEAST_LOG)


def fit_pool(held: HeldOut) -> Pool:
    """Temperature of every member, then the weights, then the temperature of the pool.

    Each step is at its own mode given those before it. All at once, held-out rows
    would be fitted once more by every member's temperature: on small tables the pool
    is then too sure of itself.
    """
    values, labels, weights = held.values, held.labels, held.weights
    members = range(values.shape[1])
    temperatures = np.array([fit_temperature(values[:, j], labels, weights) for j in members])
    rows = np.arange(labels.size)
    true_class = np.stack(
        [member_probabilities(values[:, j], temperatures[j])[rows, labels] for j in members], axis=1
    )
    pool = pool_weights(true_class, weights)
    last = fit_temperature(pooled(values, pool, temperatures), labels, weights)
    return Pool(pool, temperatures, last)


def pool_of(held: HeldOut | None, settings: StackSettings, owner: str) -> tuple[HeldOut, Pool]:
    """Weights and temperatures; equal ones, with a warning, where no row could be held out."""
    if held is not None:
        return held, fit_pool(held)
    warn(
        f"{owner}: no labelled row could be held out (classes of one row never "
        "are), so all members weigh the same and no temperature is fitted; label more rows."
    )
    n_members = len(settings.names)
    values = np.zeros((0, n_members, settings.n_classes))
    return HeldOut(values, np.zeros(0, np.intp), np.zeros(0)), equal_pool(n_members)


def equal_pool(n_members: int) -> Pool:
    """Equal weights, and temperatures of 1."""
    return Pool(np.full(n_members, 1 / n_members), np.ones(n_members), 1.0)

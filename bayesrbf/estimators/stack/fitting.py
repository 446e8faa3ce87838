"""How a stack is fitted: members held out fold by fold, tempered, pooled, refitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.estimators.stack.extra import ExtraMember
from bayesrbf.estimators.stack.members import FittedMember, fit_members
from bayesrbf.estimators.stack.training import LearnedRates, Training, Views
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.folds import Fold, numbered_folds
from bayesrbf.fitted.holding_out import HeldOut, joined
from bayesrbf.fitted.masking import Masking
from bayesrbf.inference.progress import progress
from bayesrbf.numerics.hidden_share import knot_weights
from bayesrbf.numerics.stack.pooling import LEAST_LOG, member_probabilities, pool_weights, pooled
from bayesrbf.posterior.recalibration import fit_powers, fit_temperature
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations, joined_rows
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
    masking: Masking | None = None
    """How cells of rows held out are hidden, where they are."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return self.members + tuple(member.name for member in self.extra)

    def fit(
        self, rows: Observations, seed: int, of_folds: Sequence[LearnedRates] = ()
    ) -> FittedMembers:
        """Fit all members to the same rows."""
        return self._fit(self._training(rows, seed, of_folds))

    def hold_out(self, fold: int, train: Observations, test: Observations) -> FoldAnswers:
        """What members fitted to some rows say of others, as they are and with cells hidden."""
        training = self._training(train, fold + 1)
        members = self._fit(training)
        versions = [test]
        if self.masking is not None and self.takes_missing(members, test):
            versions = self.masking.versions(fold, train, test)
        said = members.log_probabilities(joined_rows(versions))
        values = np.moveaxis(said.reshape(len(versions), test.n_obs, *said.shape[1:]), 0, 1)
        return FoldAnswers(values, versions, training.learned_rates)

    def takes_missing(self, members: FittedMembers, rows: Observations) -> bool:
        """Whether members of other libraries answer where a cell is missing."""
        if not self.extra:
            return True
        one = rows.take(np.arange(min(1, rows.n_obs)))
        try:
            members.log_probabilities(
                replace(one, real=np.full_like(one.real, np.nan), codes=np.full_like(one.codes, -1))
            )
        except (TypeError, ValueError):
            return False
        return True

    def hold_out_folds(
        self,
        splits: Iterable[Fold],
        classes: np.ndarray,
        n_jobs: int | None,
    ) -> tuple[HeldOut | None, tuple[LearnedRates, ...]]:
        """What members say of the rows held out in all folds, and the rates of every fold.

        None where no row could be held out. ``n_jobs`` processes share the folds. Where a member of
        another library takes no missing cells, rows are predicted as they are alone.
        """
        folds = numbered_folds(splits, classes)
        if not folds:
            return None, ()
        with progress(False) as track:
            answers = Parallel(n_jobs=n_jobs)(
                delayed(self.hold_out)(*fold) for fold in track(folds, "Holding rows out")
            )
        values, versions = [one.values for one in answers], [one.versions for one in answers]
        return joined(values, versions, self.masking), tuple(one.rates for one in answers)

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
class FoldAnswers:
    """What the members of one fold say of its held-out rows."""

    values: Float[np.ndarray, "obs version member label"]
    """Class log probabilities of the rows as they are, then of their copies with cells hidden."""
    versions: Sequence[Observations]
    rates: LearnedRates


@dataclass(frozen=True)
class Pool:
    """Weights and temperatures of a stack."""

    weights: Float[np.ndarray, " member"]
    member_temperatures: Float[np.ndarray, " member"]
    """Temperatures before the pool."""
    temperature: float
    """Temperature after it."""
    pull: float = 0.0
    """Exponent of the class shares."""


def bounded_log_probabilities(
    log_joint: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Normalise over classes and hold above -60 nats."""
    return np.maximum(log_softmax(log_joint, axis=-1), LEAST_LOG)


def fit_pool(held: HeldOut, log_shares: Float[np.ndarray, " label"] | None = None) -> Pool:
    """Temperature of every member, then the weights, then temperature and pull of the pool.

    Each step is at its own mode given those before it. All at once, held-out rows
    would be fitted once more by every member's temperature: on small tables the pool
    is then too sure of itself. Without class shares there is no pull.
    """
    values, labels, weights = held.values, held.labels, held.weights
    members = range(values.shape[1])
    temperatures = np.array([fit_temperature(values[:, j], labels, weights) for j in members])
    rows = np.arange(labels.size)
    true_class = np.stack(
        [member_probabilities(values[:, j], temperatures[j])[rows, labels] for j in members], axis=1
    )
    pool = pool_weights(true_class, weights)
    log_pool = pooled(values, pool, temperatures)
    if log_shares is None:
        return Pool(pool, temperatures, fit_temperature(log_pool, labels, weights))
    return Pool(pool, temperatures, *fit_powers(log_pool, labels, weights, log_shares))


def fit_pools(held: HeldOut, knots: slice = slice(None)) -> tuple[Pool, ...]:
    """A pool at some knots of the share of hidden cells; one pool where no cells were hidden.

    A row counts at the two knots beside its share, the more the nearer.
    """
    masked = held.masked
    if masked is None:
        return (fit_pool(held),)
    values = np.concatenate([held.values[:, None], masked.values], axis=1)
    n_versions = values.shape[1]
    values, labels = values.reshape(-1, *values.shape[2:]), np.repeat(held.labels, n_versions)
    by_knot = knot_weights(masked.hidden.reshape(-1))
    by_knot *= np.repeat(held.weights, n_versions)[:, None]
    return tuple(
        fit_pool(HeldOut(values[some], labels[some], at_knot[some]), masked.log_shares)
        for at_knot, some in zip(by_knot.T[knots], by_knot.T[knots] > 0, strict=True)
    )


def pools_of(
    held: HeldOut | None, settings: StackSettings, owner: str
) -> tuple[HeldOut, tuple[Pool, ...]]:
    """Weights and temperatures; equal ones, with a warning, where no row could be held out."""
    if held is not None:
        return held, fit_pools(held)
    warn(
        f"{owner}: no labelled row could be held out (classes of one row never "
        "are), so all members weigh the same and no temperature is fitted; label more rows."
    )
    n_members = len(settings.names)
    values = np.zeros((0, n_members, settings.n_classes))
    nothing = HeldOut(values, np.zeros(0, np.intp), np.zeros(0))
    return nothing, (Pool(np.full(n_members, 1 / n_members), np.ones(n_members), 1.0),)

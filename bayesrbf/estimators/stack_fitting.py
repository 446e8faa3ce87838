"""How a stack is fitted: members held out fold by fold, tempered, pooled, refitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayesrbf import table
from bayesrbf.estimators.calibrating import Folds, split_rows
from bayesrbf.estimators.out_of_fold import HeldOut
from bayesrbf.estimators.stack_extra import ExtraMember
from bayesrbf.estimators.stack_members import FittedMember, fit_members
from bayesrbf.estimators.stack_training import Training, Views
from bayesrbf.numerics.pooling import LEAST_LOG, member_probabilities, pool_weights, pooled
from bayesrbf.parameters import Observations
from bayesrbf.posterior.temperature import fit_temperature
from bayesrbf.priors import MixturePrior

FEW_ROWS, MANY_FOLDS, FOLDS = 200, 10, 5
"""Labelled rows below which there are ten folds, else five."""


@dataclass(frozen=True)
class StackSettings:
    """What is fitted in every fold and at the end.

    Attributes
    ----------
    members : tuple of str
        Names of own members.
    extra : tuple of ExtraMember
        Members of other libraries, not fitted.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    prior : MixturePrior
        Declared prior of mixtures.
    seed : int
        Seed of starts and exemplars.
    """

    members: tuple[str, ...]
    extra: tuple[ExtraMember, ...]
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return self.members + tuple(member.name for member in self.extra)

    def fit(self, rows: Observations, seed: int) -> FittedMembers:
        """Fit all members to the same rows.

        Parameters
        ----------
        rows : Observations
            Distinct weighted rows in the user's units.
        seed : int
            Added to the seed.

        Returns
        -------
        FittedMembers
            What predicts.
        """
        training = Training(rows, self.levels, self.n_classes, self.prior, self.seed + seed)
        extra = tuple(member.fit(rows) for member in self.extra)
        return FittedMembers(fit_members(training, self.members), extra, self.n_classes)

    def hold_out(
        self, fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "obs member label"]:
        """Log probabilities that members fitted to some rows give to others.

        Parameters
        ----------
        fold : int
            Number of the fold.
        train : Observations
            Rows to fit.
        test : Observations
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_test, n_members, n_classes)
            In nats.
        """
        return self.fit(train, fold + 1).log_probabilities(test)


@dataclass(frozen=True)
class FittedMembers:
    """All members, fitted.

    Attributes
    ----------
    own : tuple of FittedMember
        Members of this library.
    extra : tuple of ExtraMember
        Members of others.
    n_classes : int
        Number of classes.
    """

    own: tuple[FittedMember, ...]
    extra: tuple[ExtraMember, ...]
    n_classes: int

    def log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of every member at its fitted point.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_members, n_classes)
            In nats; -60 at least.
        """
        views = Views(rows)
        joints = [member.class_log_joint(views) for member in self.own]
        joints += [member.class_log_joint(rows, self.n_classes) for member in self.extra]
        return bounded_log_probabilities(np.stack(joints, axis=1))


@dataclass(frozen=True)
class Pool:
    """Weights and temperatures of a stack.

    Attributes
    ----------
    weights : ndarray of shape (n_members,)
        Simplex weights.
    member_temperatures : ndarray of shape (n_members,)
        Temperatures before the pool.
    temperature : float
        Temperature after it.
    """

    weights: Float[np.ndarray, " member"]
    member_temperatures: Float[np.ndarray, " member"]
    temperature: float


def bounded_log_probabilities(
    log_joint: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Normalise over classes and hold above -60 nats.

    Parameters
    ----------
    log_joint : ndarray of shape (..., n_classes)
        Class log joints.

    Returns
    -------
    ndarray of shape (..., n_classes)
        Log probabilities in nats.
    """
    return np.maximum(log_softmax(log_joint, axis=-1), LEAST_LOG)


def fit_pool(held: HeldOut) -> Pool:
    """Temperature of every member, then the weights, then the temperature of the pool.

    Each step is at its own mode given those before it. All at once, held-out rows
    would be fitted once more by every member's temperature: on small tables the pool
    is then too sure of itself.

    Parameters
    ----------
    held : HeldOut
        Held-out log probabilities of shape (n_held_out, n_members, n_classes).

    Returns
    -------
    Pool
        The pool.
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


def equal_pool(n_members: int) -> Pool:
    """The pool of members of which nothing is known.

    Parameters
    ----------
    n_members : int
        Number of members.

    Returns
    -------
    Pool
        Equal weights, temperatures one.
    """
    return Pool(np.full(n_members, 1 / n_members), np.ones(n_members), 1.0)


def stack_folds(
    cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int
) -> Folds | Sequence[tuple[Observations, Observations]]:
    """Training and held-out rows of every fold.

    None and an integer deal the labelled rows of every class in turn; None to five folds,
    or ten where they weigh less than 200. The copies of a row are dealt, too: were they
    held out together, a row that stands there with both labels would always be predicted
    from the other label alone. A class of one row is never held out.

    Parameters
    ----------
    cv : None, int, splitter or iterable
        As given to the constructor.
    rows : Observations
        Rows of positive weight, in the order given to ``fit``.
    kept : ndarray of shape (n_obs,)
        Position that each of them had in ``fit``.
    seed : int
        Seed of the dealing.

    Returns
    -------
    iterable of (Observations, Observations)
        Rows to fit and labelled rows to score.
    """
    if not (cv is None or isinstance(cv, Integral)):
        return split_rows(cv, rows, kept, seed)
    distinct, _ = table.distinct(rows)
    labelled = distinct.labels >= 0
    few = distinct.weights[labelled].sum() < FEW_ROWS
    n_folds = (MANY_FOLDS if few else FOLDS) if cv is None else int(cv)
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")
    copies = copies_of(distinct, n_folds)
    folds = deal(copies.labels, n_folds, seed)
    return [
        (
            table.distinct(copies.take(folds != fold))[0],
            table.distinct(copies.take(folds == fold))[0],
        )
        for fold in np.unique(folds[folds >= 0])
    ]


def copies_of(rows: Observations, most: int) -> Observations:
    """Rows of weight 2 and more as several rows, whose weights add up to it.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows.
    most : int
        Most copies of a row.

    Returns
    -------
    Observations
        Copies side by side.

    Examples
    --------
    >>> cells, labels = np.zeros((2, 1)), np.arange(2)
    >>> rows = Observations(cells, np.zeros((2, 0), int), labels, np.array([3.0, 0.5]))
    >>> copies_of(rows, 2).weights
    array([1.5, 1.5, 0.5])
    """
    counts = np.clip(np.round(rows.weights), 1, most).astype(int)
    copies = rows.take(np.repeat(np.arange(rows.n_obs), counts))
    return replace(copies, weights=copies.weights / np.repeat(counts, counts))


def deal(labels: Int[np.ndarray, " obs"], n_folds: int, seed: int) -> Int[np.ndarray, " obs"]:
    """Deal the rows of every class to folds in turn; no fold takes the last row of a class.

    Parameters
    ----------
    labels : ndarray of shape (n_obs,)
        Class codes of rows, -1 where hidden.
    n_folds : int
        Number of folds.
    seed : int
        Seed of the order in which rows are dealt.

    Returns
    -------
    ndarray of shape (n_obs,)
        Fold in which a row is held out; -1 for rows without a label and the only row
        of a class.

    Examples
    --------
    >>> deal(np.array([0, 0, 1, 1, 1, 2, -1]), 2, seed=0)
    array([ 0,  1,  1,  0,  0, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    dealt = 0
    for label in range(labels.max(initial=-1) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        if members.size > 1:
            folds[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return folds

r"""Intervals of a stack: the error of its pool, given the labels of the rows held out.

**The law.** A pool gives class c the probability q and the log odds l. The truth has the log odds
:math:`l + \delta_c(x)`. Before any label the error is a Gaussian process,

.. math:: \delta_c \sim GP(0, k), \quad k(x, x') = \tau^2 \exp\Bigl(-\frac{(l - l')^2}{2 \rho^2}
    - \sum_j \frac{w_j (d_j - d'_j)^2}{2 \kappa^2} - \frac{(h - h')^2}{2 \eta^2}\Bigr) .

So the errors of two rows are alike where the pool says the same of them, and where the kinds of
members deviate from it in log odds by the same :math:`d_j(x)`, the mean over the members of a kind,
for these err together. A kind has its weight w in the pool of complete rows: one that the rows held
out refute tells nothing of the pool's error. h is the share of hidden cells. Of a row without a
cell only the class shares are known, so the pool has no error there.

The labels of rows held out refute what does not fit them, each row with the weight v. By Laplace's
approximation at :math:`\delta = 0`, where the pool was fitted to the same labels,

.. math:: \delta_c \mid y \sim GP(0, k - k (K + W^{-1})^{-1} k^T), \quad W = v \, q (1 - q) .

So near many labels the error is known, and elsewhere it is as before any label. Rows are held out
as they are and with cells hidden (:class:`bayesrbf.base.rows.MaskedRows`), and each counts. A unit
of several rows counts as one row. Labels that no row held out has tell nothing.

**Hidden cells.** P(class | some cells) is a mean over the completions of the row, and so is its
error. If their log odds have the standard deviation :math:`\rho s` and are independent normal,
k(x, x) has the mean :math:`\tau^2 (1 + 2 s^2)^{-1/2}` over two of them. So k is multiplied by g(x)
and g(x'), with :math:`g = (1 + 2 s^2)^{-1/4}`. A copy of a row held out, in which a share a of the
columns is hidden beside those that the row lacks, has log odds that differ by u. Then
:math:`s^2 = h \, u^2 / (\rho^2 a)`, on average over copies like the row by k, and one more of 0.

**Levels.** Of real columns the pool is a smooth function. Levels have no order, so what it makes of
a combination of them has no neighbours: the labels of rows of other levels tell less of it than the
process has it. Of n(x) rows of its levels alone, a prior variance of :math:`\sigma^2` leaves

.. math:: \Bigl(\frac{1}{g^2 \sigma^2} + n(x) \, q (1 - q)\Bigr)^{-1}, \quad
    n(x) = \sum_i v_i \, e^{-20 \, a_i(x)},

with :math:`a_i` the share of the columns in which training row i has another level. The variance of
the error is at least that.

:func:`class_error` sums k over at most 400 leading rows, the pivots of its Cholesky factor: always
that of the most variance left times information of the labels like it. What these leave of k at a
row is added to the variance there, and so is what is lacking to that by its levels; in a draw each
is one number for all rows. The constants were chosen by the interval score on cross-tables, on
labels of teachers and on truths of which any cells are known.

**The draws** of ``refine``, by the rules

1. *Error.* A draw is a function of the row: the pool at its fitted point, whose log probabilities
   are moved by a draw of :math:`\delta_c / \sqrt{2}`. Log odds of two classes are the difference of
   two errors, so theirs has the variance of the law; of more classes it is somewhat less.
2. *Class shares*, which are all that is known of a row without a cell, are frequencies of so many
   rows: every draw has its own (:class:`bayesrbf.fit.stages.ClassShares`).
3. *Far rows* are given the class shares, the more the further
   (:class:`bayesrbf.fit.stages.FarRows`).
4. *Prevalences.* Draws weigh as they find such a row probable where classes are as in use
   (:class:`bayesrbf.fit.stages.Prevalence`).
5. *Updates* move every draw by intercepts and a slope of its own
   (:class:`bayesrbf.fit.updates.Updated`).
6. *Centre.* Each class is moved in log odds to have the median :math:`l \sqrt{1 + \pi V / 8}`,
   with V the variance of the draws: a calibrated probability is the mean of the frequencies of such
   rows, which lies nearer to 1/2 than their median [1]_.
7. *Stray labels* have a rate that the labels of rows held out leave open: every draw has its own
   (:func:`bayesrbf.fit.label_noise.stray_labels`).
8. *Ends* are quantiles of these draws, and 0 or 1 where they are nearer to it than anybody may
   dispute (:func:`bayesrbf.fit.probabilities.outer_ends`).

.. [1] MacKay (1992), The evidence framework applied to classification networks, Neural
   Computation 4, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import expit

from bayesrbf.base import names
from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.rows import Observations
from bayesrbf.fit.chain import Draws, Stage, State, Step

Rows = Float[np.ndarray, " obs"]
Codes = Int[np.ndarray, "obs categorical"]

VARIANCE: Final = 4.5
"""``tau^2``: variance of the error of log odds before any label."""
LEVELS_VARIANCE: Final = 9.0
"""``sigma^2``: the same of a combination of levels, of which rows of other levels tell nothing."""
UNLIKE: Final = 20.0
"""How fast rows of other levels tell less: nats over the share of columns that differ."""
MOST_ALIKE: Final = 2000
"""Training rows whose levels are compared: of more, some speak for all."""
LENGTH: Final = 0.6
"""``rho``: difference of the pool's log odds over which errors are alike."""
KIND_LENGTH: Final = 0.25
"""``kappa``: root mean square difference of the kinds' deviations over which they are."""
HIDDEN_LENGTH: Final = 0.5
"""``eta``: difference of the shares of hidden cells over which they are."""
LEADING: Final = 400
"""Rows that the process is summed over."""
SPEAKING: Final = 300
"""Rows held out that tell how many labels are like a leading row."""
LEAST_LEFT: Final = 1e-6
"""Variance left times information that is none."""
SMALLEST: Final = 1e-12
"""Least probability of all other classes."""
MOST_DRAWS: Final = 1000
"""Draws of the error; further draws of a posterior have them again."""


# Where rows stand, as the error of the log odds of one class sees them.


@dataclass(frozen=True)
class Places:
    """What pool and kinds say of rows, and how far they may be wrong before any label."""

    coordinates: Float[np.ndarray, "row coordinate"]
    """Log odds of the pool, deviations of the kinds and hidden share, each over its length."""
    scale: Rows
    """``g``: factor of the standard deviation of the error; 0 of a row without a cell."""

    def take(self, rows: Sequence[int] | Int[np.ndarray, " some"]) -> Places:
        """Some of the rows."""
        return Places(self.coordinates[rows], self.scale[rows])

    @property
    def hidden(self) -> Rows:
        """Share of the columns that are hidden."""
        share: np.ndarray = self.coordinates[:, -1] * HIDDEN_LENGTH
        return share

    @property
    def doubt(self) -> Rows:
        """``q (1 - q)``."""
        q = expit(self.coordinates[:, 0] * LENGTH)
        return q * (1 - q)

    @property
    def variance(self) -> Rows:
        """``k(x, x)``: 0 of a row without a cell."""
        return VARIANCE * self.scale**2

    def alike(self, others: Places) -> Float[np.ndarray, "row other"]:
        """``k(x, x') / tau^2`` with other rows."""
        near = np.exp(-cdist(self.coordinates, others.coordinates, "sqeuclidean") / 2)
        alike: np.ndarray = np.outer(self.scale, others.scale) * near
        return alike

    def covariance(self, others: Places) -> Float[np.ndarray, "row other"]:
        """``k(x, x')`` with other rows."""
        return VARIANCE * self.alike(others)


@dataclass(frozen=True)
class Completions:
    """How far apart the log odds of the completions of a row are, by copies with cells hidden."""

    copies: Places
    squares: Rows
    """Square of what a copy moves, in lengths, by the share of columns that it hides."""

    def narrowed(self, places: Places) -> Places:
        """Places with the scale of a mean over completions."""
        near = places.alike(self.copies)
        spread = places.hidden * (near @ self.squares) / (near.sum(axis=1) + 1)
        return replace(places, scale=places.scale * (1 + 2 * spread) ** -0.25)


def completions_of(held: Places, n_rows: int) -> Completions:
    """What cells are worth, by ``n_rows`` rows held out, then copies of each with cells hidden."""
    copies = np.arange(n_rows, len(held.scale))
    rows = np.repeat(np.arange(n_rows), copies.size // max(n_rows, 1))
    more = held.hidden[copies] - held.hidden[rows]
    hides, rows, more = copies[more > 0], rows[more > 0], more[more > 0]
    moved = held.coordinates[hides, 0] - held.coordinates[rows, 0]
    return Completions(held.take(hides), moved**2 / more)


# Training rows that have the levels of a row.


@dataclass(frozen=True)
class Levels:
    """Levels of labelled training rows."""

    codes: Int[np.ndarray, "row categorical"]
    weights: Rows
    n_columns: int
    """Columns of the table, real ones too."""

    def alike(self, codes: Int[np.ndarray, "obs categorical"]) -> Float[np.ndarray, " obs"]:
        """How many training rows have the levels of each row; a missing one is of any level."""
        differ = np.zeros((len(codes), len(self.codes)))
        for own, others in zip(codes.T, self.codes.T, strict=True):
            differ += (own[:, None] != others) & (own >= 0)[:, None] & (others >= 0)
        near: np.ndarray = np.exp(-UNLIKE * differ / self.n_columns) @ self.weights
        return near


def levels_of(rows: Observations) -> Levels | None:
    """The levels of training rows; None without categorical columns."""
    if not rows.codes.shape[1]:
        return None
    labelled = rows.take(np.flatnonzero(rows.labels >= 0))
    codes, place = np.unique(labelled.codes, axis=0, return_inverse=True)
    weights = np.bincount(place.ravel(), labelled.weights)
    n_columns = rows.real.shape[1] + rows.codes.shape[1]
    if len(codes) > MOST_ALIKE:
        some = np.linspace(0, len(codes) - 1, MOST_ALIKE).astype(int)
        codes, weights = codes[some], weights[some] * weights.sum() / weights[some].sum()
    return Levels(codes, weights, n_columns)


@dataclass(frozen=True)
class ClassError:
    """The error of one class as a sum over leading rows, given the labels of rows held out."""

    leading: Places
    factor: Float[np.ndarray, "leading leading"]
    """Lower Cholesky factor of their prior covariance."""
    root: Float[np.ndarray, "leading leading"]
    """Root of the posterior covariance of the features."""

    def at(
        self, rows: Places
    ) -> tuple[Float[np.ndarray, "row leading"], Float[np.ndarray, " row"]]:
        """Coefficients of standard normal numbers that draw the error, and what is left of it.

        The second is the standard deviation of the part that no leading row tells of.
        """
        features = solve_triangular(self.factor, self.leading.covariance(rows), lower=True).T
        left = np.maximum(rows.variance - np.square(features).sum(axis=1), 0.0)
        return features @ self.root, np.sqrt(left)


def class_error(held: Places, information: Float[np.ndarray, " row"]) -> ClassError:
    """The error of one class given rows held out, of which each has the information ``W``."""
    features, chosen = _leading_features(held, information)
    precision = (features * information[:, None]).T @ features
    precision[np.diag_indices(len(precision))] += 1
    # With the lower factor L of the precision, (L^-1)^T is a root of its inverse.
    root = solve_triangular(cholesky(precision, lower=True), np.eye(len(precision)), lower=True).T
    return ClassError(held.take(chosen), features[chosen], root)


def _leading_features(
    rows: Places, information: Rows
) -> tuple[Float[np.ndarray, "row leading"], list[int]]:
    """Cholesky factor of the covariance of rows by pivots: where labels tell most more."""
    left, chosen = rows.variance, list[int]()
    features = np.zeros((min(LEADING, left.size), left.size))
    some = np.linspace(0, left.size - 1, min(SPEAKING, left.size)).astype(int)
    near = information + rows.alike(rows.take(some)) @ information[some] * left.size / some.size
    for step, feature in enumerate(features):
        told = left * near
        pivot = int(told.argmax())
        if told[pivot] < LEAST_LEFT:
            break
        known = features[:step]
        feature[:] = rows.covariance(rows.take([pivot]))[:, 0] - known[:, pivot] @ known
        feature /= np.sqrt(left[pivot])
        left = np.maximum(left - feature**2, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return features[: len(chosen)].T, chosen


# The errors of all classes of a stack, and draws of them.


@dataclass(frozen=True)
class PoolError:
    """The errors of all classes of a pool, and the numbers that draw them."""

    classes: tuple[ClassError, ...]
    numbers: Float[np.ndarray, "draw label coefficient"]
    """Standard normal numbers of the leading rows, of what they leave, and of levels."""
    held: tuple[Places, ...]
    """Where the rows held out stand for every class: as they are, then with cells hidden."""
    information: Float[np.ndarray, "held label"]
    completions: tuple[Completions, ...]
    levels: Levels | None

    def at(self, places: Sequence[Places], codes: Codes) -> ErrorOfRows:
        """The errors of rows, by where they stand for every class, and their levels."""
        near = None if self.levels is None else self.levels.alike(codes)
        narrowed = [one.narrowed(of) for one, of in zip(self.completions, places, strict=True)]
        both = zip(self.classes, narrowed, strict=True)
        coefficients = [with_levels(place, *error.at(place), near) for error, place in both]
        return self._of(coefficients, narrowed)

    def _of(
        self, coefficients: Sequence[Float[np.ndarray, "obs _"]], places: Sequence[Places]
    ) -> ErrorOfRows:
        """The errors of rows at their places."""
        variance = VARIANCE if self.levels is None else max(VARIANCE, LEVELS_VARIANCE)
        scales = np.column_stack([place.scale for place in places])
        return ErrorOfRows(tuple(coefficients), self.numbers, variance * scales**2, variance)

    def left_out(self, versions: Int[np.ndarray, "row version"], codes: Codes) -> ErrorOfRows:
        r"""The errors of rows held out, given the labels of all others.

        ``versions`` are positions in ``held``, that of the row as it is first. With their
        coefficients A and information W, a row has the variance :math:`[A (I - A^T W A)^{-1}
        A^T]_{00}`.
        """
        coefficients, n = list[Float[np.ndarray, "obs _"]](), len(versions)
        near = None if self.levels is None else np.maximum(self.levels.alike(codes) - 1, 0)
        for place, error, known in zip(self.held, self.classes, self.information.T, strict=True):
            told, left = error.at(place.take(versions.ravel()))
            told = told.reshape(*versions.shape, -1)
            own, labels = told[:, 0], np.sqrt(known[versions])[..., None] * told
            across = labels @ own[..., None]
            others = np.eye(labels.shape[1]) - labels @ labels.transpose(0, 2, 1)
            more = (across * np.linalg.solve(others, across)).sum(axis=(1, 2))
            before = np.square(own).sum(axis=1)
            scale = np.sqrt(1 + np.divide(more, before, out=np.zeros(n), where=before > 0))
            alone = left.reshape(versions.shape)[:, 0]
            itself = place.take(versions[:, 0])
            coefficients.append(with_levels(itself, own * scale[:, None], alone, near))
        return self._of(coefficients, [place.take(versions[:, 0]) for place in self.held])


def with_levels(
    places: Places,
    told: Float[np.ndarray, "obs leading"],
    left: Rows,
    near: Rows | None,
) -> Float[np.ndarray, "obs _"]:
    """Coefficients of the error, those of what is lacking to its variance by the levels last."""
    lacking = np.zeros(len(told))
    if near is not None:
        before = LEVELS_VARIANCE * places.scale**2
        least = before / (1 + before * near * places.doubt)
        lacking = np.sqrt(np.maximum(least - np.square(told).sum(axis=1) - left**2, 0.0))
    return np.column_stack([told, left, lacking])


def pool_error(
    held: Sequence[Places],
    information: Float[np.ndarray, "row label"],
    n_rows: int,
    levels: Levels | None,
    n_draws: int,
    seed: int,
) -> PoolError:
    """The errors of all classes, given the labels of ``n_rows`` rows held out and their copies."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((min(n_draws, MOST_DRAWS), len(held), LEADING + 2))
    completions = tuple(completions_of(place, n_rows) for place in held)
    held = tuple(one.narrowed(place) for one, place in zip(completions, held, strict=True))
    classes = tuple(map(class_error, held, information.T))
    return PoolError(classes, numbers, held, information, completions, levels)


@dataclass(frozen=True)
class ErrorOfRows:
    """The errors of all classes at some rows."""

    coefficients: tuple[Float[np.ndarray, "obs _"], ...]
    """Of every class."""
    numbers: Float[np.ndarray, "draw label coefficient"]
    before: Float[np.ndarray, "obs label"]
    """Variance before any label."""
    of_complete: float
    """The same of a row without a hidden cell."""

    def only(self, part: str) -> ErrorOfRows:
        """One part of the errors."""
        at: dict[str, slice | int] = {
            names.LABELS_HELD_OUT: slice(-2),
            names.LEADING_ROWS: -2,
            names.LEVELS_ALIKE: -1,
        }
        if part in at:
            kept = [np.zeros_like(one) for one in self.coefficients]
            for one, whole in zip(kept, self.coefficients, strict=True):
                one[:, at[part]] = whole[:, at[part]]
            return replace(self, coefficients=tuple(kept))
        variance = self.of_complete * (self.before > 0)
        spread = np.sqrt(self.before if part == names.HIDDEN_CELLS else variance)
        return replace(self, coefficients=tuple(np.c_[one, 0 * one] for one in spread.T))

    def labels_near(self, p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
        """Labels at a row of probability ``p`` that tell as much as all: ``(1/V - 1/k) / (p q)``.

        NaN of a row without a cell, whose error is 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            told = 1 / self.variance - 1 / self.before
            labels: np.ndarray = np.maximum(told, 0.0) / (p * (1 - p))
        return np.where(self.before > 0, labels, np.nan)

    @property
    def variance(self) -> Float[np.ndarray, "obs label"]:
        """Variance of the error of every class."""
        return np.stack([np.square(one).sum(axis=1) for one in self.coefficients], axis=1)

    def stretch(self, p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
        """Ratio of the median of the draws to what is given out, ``p``, in log odds."""
        of_logs = self.variance / 2
        weighed = p**2 * of_logs
        others = weighed.sum(axis=1, keepdims=True) - weighed
        # Log odds of a class move with the others by their shares of what is not the class.
        variance = of_logs + others / np.maximum(1 - p, SMALLEST) ** 2
        stretch: np.ndarray = np.sqrt(1 + np.pi * variance / 8)
        return stretch

    def draws(self, numbers: Int[np.ndarray, " draw"]) -> Float[np.ndarray, "draw obs label"]:
        """Moves of the log probabilities under draws by their numbers."""
        chosen, n_classes = numbers % len(self.numbers), len(self.coefficients)
        result = np.empty((numbers.size, len(self.coefficients[0]), n_classes))
        for label, one in enumerate(self.coefficients):
            of_class = self.numbers[chosen, label]
            # The last two numbers are of what the leading rows leave, and of levels.
            z = np.append(of_class[:, : one.shape[1] - 2], of_class[:, -2:], axis=1)
            # Log odds of two classes are the difference of two errors.
            result[:, :, label] = z @ one.T / np.sqrt(2)
        return result


def places_of(
    members: Float[np.ndarray, "row member label"],
    pool: Float[np.ndarray, "row label"],
    reported: Float[np.ndarray, "row label"],
    hidden: Float[np.ndarray, " row"],
    known: Bool[np.ndarray, " row"],
    kinds: Int[np.ndarray, " member"],
    weights: Float[np.ndarray, " member"],
) -> list[Places]:
    """Where rows stand for every class, by the probabilities of tempered members and their pool.

    Log odds are those of the ``reported`` probabilities, to which missing indicators may add.
    """
    of_members, of_pool, of_reported = (
        log_odds(p, LEAST_DISPUTED_PROBABILITY) for p in (members, pool, reported)
    )
    sizes, of_kinds = np.bincount(kinds), np.bincount(kinds, weights)
    # Members of one kind err together: their mean counts as one.
    by_kind = np.eye(sizes.size)[kinds].T * (np.sqrt(of_kinds) / sizes)[:, None]
    deviations = np.einsum("kj,njc->cnk", by_kind, of_members - of_pool[:, None]) / KIND_LENGTH
    places = []
    for own, apart in zip(of_reported.T, deviations, strict=True):
        coordinates = np.column_stack([own / LENGTH, apart, hidden / HIDDEN_LENGTH])
        places.append(Places(coordinates, known.astype(float)))
    return places


# The stage of the way of a probability.


@dataclass(frozen=True)
class PoolErrorStage(Stage):
    """Rule 1: the pool at its fitted point, moved by the error of every draw."""

    error: Callable[[], PoolError]
    """Gives the error, when it is asked for."""
    part: str = ""
    """Part of the error that is left alone; empty: all."""

    @property
    def parts(self) -> dict[str, Stage]:
        """The error before any label, and what is left of it."""
        return {name: replace(self, part=name) for name in names.PARTS_OF_ERROR}

    def on(self, seen: Any) -> Step:
        """Prepare some rows."""

        @cache
        def of_rows() -> ErrorOfRows:
            error: ErrorOfRows = seen.error_under(self.error())
            return error.only(self.part) if self.part else error

        def step(state: State, point: State, draws: Draws | None) -> State:
            if draws is None:
                return state
            error, p = of_rows(), np.exp(point.log_p[0])
            return replace(
                state,
                log_p=log_softmax(state.log_p + error.draws(draws), axis=-1),
                stretch=error.stretch(p),
                labels_near=error.labels_near(p),
            )

        return step

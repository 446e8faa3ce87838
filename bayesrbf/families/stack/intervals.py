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

:func:`class_error` sums k over at most 400 leading rows, the pivots of its Cholesky factor. What
these leave of k at a row is added to the variance there; in a draw it is one number for all rows.
The four constants were chosen by the interval score on cross-tables and on labels of teachers.

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

from bayesrbf.base import names
from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.fit.chain import Draws, Stage, State, Step

Rows = Float[np.ndarray, " obs"]

VARIANCE: Final = 6.0
"""``tau^2``: variance of the error of log odds before any label."""
LENGTH: Final = 0.6
"""``rho``: difference of the pool's log odds over which errors are alike."""
KIND_LENGTH: Final = 0.25
"""``kappa``: root mean square difference of the kinds' deviations over which they are."""
HIDDEN_LENGTH: Final = 0.5
"""``eta``: difference of the shares of hidden cells over which they are."""
LEADING: Final = 400
"""Rows that the process is summed over."""
LEAST_LEFT: Final = 1e-6
"""Variance that is none."""
SMALLEST: Final = 1e-12
"""Least probability of all other classes."""
MOST_DRAWS: Final = 1000
"""Draws of the error; further draws of a posterior have them again."""


# Where rows stand, as the error of the log odds of one class sees them.


@dataclass(frozen=True)
class Places:
    """What pool and kinds say of rows, and whether anything is known of them."""

    coordinates: Float[np.ndarray, "row coordinate"]
    """Log odds of the pool, deviations of the kinds and hidden share, each over its length."""
    known: Bool[np.ndarray, " row"]
    """Whether a row has a cell."""

    def take(self, rows: Sequence[int] | Int[np.ndarray, " some"]) -> Places:
        """Some of the rows."""
        return Places(self.coordinates[rows], self.known[rows])

    @property
    def variance(self) -> Float[np.ndarray, " row"]:
        """``k(x, x)``: 0 of a row without a cell."""
        return VARIANCE * self.known

    def covariance(self, others: Places) -> Float[np.ndarray, "row other"]:
        """``k(x, x')`` with other rows."""
        alike = np.exp(-cdist(self.coordinates, others.coordinates, "sqeuclidean") / 2)
        covariance: np.ndarray = VARIANCE * np.logical_and.outer(self.known, others.known) * alike
        return covariance


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
    features, chosen = _leading_features(held)
    precision = (features * information[:, None]).T @ features
    precision[np.diag_indices(len(precision))] += 1
    # With the lower factor L of the precision, (L^-1)^T is a root of its inverse.
    root = solve_triangular(cholesky(precision, lower=True), np.eye(len(precision)), lower=True).T
    return ClassError(held.take(chosen), features[chosen], root)


def _leading_features(rows: Places) -> tuple[Float[np.ndarray, "row leading"], list[int]]:
    """Cholesky factor of the covariance of rows by pivots: always the row of most variance left."""
    left, chosen = rows.variance, list[int]()
    features = np.zeros((min(LEADING, left.size), left.size))
    for step, feature in enumerate(features):
        pivot = int(left.argmax())
        if left[pivot] < LEAST_LEFT:
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
    """Standard normal numbers of the leading rows, then of what they leave."""
    held: tuple[Places, ...]
    """Where the rows held out stand for every class: as they are, then with cells hidden."""
    information: Float[np.ndarray, "held label"]

    def at(self, places: Sequence[Places]) -> ErrorOfRows:
        """The errors of rows, by where they stand for every class."""
        both = zip(self.classes, places, strict=True)
        coefficients = tuple(np.column_stack(error.at(place)) for error, place in both)
        return ErrorOfRows(coefficients, self.numbers, places[0].variance)

    def left_out(self, versions: Int[np.ndarray, "row version"]) -> ErrorOfRows:
        r"""The errors of rows held out, given the labels of all others.

        ``versions`` are positions in ``held``, that of the row as it is first. With their
        coefficients A and information W, a row has the variance :math:`[A (I - A^T W A)^{-1}
        A^T]_{00}`.
        """
        coefficients, n = list[Float[np.ndarray, "obs _"]](), len(versions)
        for place, error, known in zip(self.held, self.classes, self.information.T, strict=True):
            told, left = error.at(place.take(versions.ravel()))
            told = told.reshape(*versions.shape, -1)
            own, labels = told[:, 0], np.sqrt(known[versions])[..., None] * told
            across = labels @ own[..., None]
            others = np.eye(labels.shape[1]) - labels @ labels.transpose(0, 2, 1)
            more = (across * np.linalg.solve(others, across)).sum(axis=(1, 2))
            before = np.square(own).sum(axis=1)
            scale = np.sqrt(1 + np.divide(more, before, out=np.zeros(n), where=before > 0))
            alone = left.reshape(versions.shape)[:, :1]
            coefficients.append(np.hstack([own * scale[:, None], alone]))
        variance = self.held[0].take(versions[:, 0]).variance
        return ErrorOfRows(tuple(coefficients), self.numbers, variance)


def pool_error(
    held: Sequence[Places],
    information: Float[np.ndarray, "row label"],
    n_draws: int,
    seed: int,
) -> PoolError:
    """The errors of all classes, given the labels of rows held out."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((min(n_draws, MOST_DRAWS), len(held), LEADING + 1))
    classes = tuple(map(class_error, held, information.T))
    return PoolError(classes, numbers, tuple(held), information)


@dataclass(frozen=True)
class ErrorOfRows:
    """The errors of all classes at some rows."""

    coefficients: tuple[Float[np.ndarray, "obs _"], ...]
    """Of every class."""
    numbers: Float[np.ndarray, "draw label coefficient"]
    before: Rows
    """Variance of the error of every class before any label."""

    @property
    def none(self) -> ErrorOfRows:
        """Errors that are 0."""
        nothing = np.zeros((self.before.size, 1))
        return replace(self, coefficients=(nothing,) * len(self.coefficients))

    @property
    def before_labels(self) -> ErrorOfRows:
        """The errors before any label."""
        spread = np.sqrt(self.before)[:, None]
        return replace(self, coefficients=(spread,) * len(self.coefficients))

    def labels_near(self, p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
        """Labels at a row of probability ``p`` that tell as much as all: ``(1/V - 1/k) / (p q)``.

        NaN of a row without a cell, whose error is 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            told = 1 / self.variance - 1 / self.before[:, None]
            labels: np.ndarray = np.maximum(told, 0.0) / (p * (1 - p))
        return np.where(self.before[:, None] > 0, labels, np.nan)

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
            # The last number is of what the leading rows leave.
            z = np.append(of_class[:, : one.shape[1] - 1], of_class[:, -1:], axis=1)
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
        places.append(Places(coordinates, known))
    return places


# The stage of the way of a probability.


@dataclass(frozen=True)
class PoolErrorStage(Stage):
    """Rule 1: the pool at its fitted point, moved by the error of every draw."""

    error: Callable[[], PoolError]
    """Gives the error, when it is asked for."""
    before_labels: bool = False
    """Whether the error is that before any label."""

    @property
    def parts(self) -> dict[str, Stage]:
        """The error before and after the labels held out."""
        return {
            names.BEFORE_LABELS: replace(self, before_labels=True),
            names.LABELS_HELD_OUT: self,
        }

    def on(self, seen: Any) -> Step:
        """Prepare some rows."""

        @cache
        def of_rows() -> ErrorOfRows:
            error: ErrorOfRows = seen.error_under(self.error())
            return error.before_labels if self.before_labels else error

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

r"""Intervals of a stack: the error of its pool, given the labels of the rows held out.

**The law.** A pool gives class c the probability q and the log odds l. The truth has the log odds
:math:`l + \delta_c(x)`. Before any label the error is a Gaussian process,

.. math:: \delta_c \sim GP(0, k), \quad k(x, x') = \tau^2 \exp\Bigl(-\frac{(l - l')^2}{2 \rho^2}
    - \sum_j \frac{w_j (d_j - d'_j)^2}{2 \kappa^2} - \frac{(h - h')^2}{2 \eta^2}\Bigr) .

Members come in groups: kernel networks, a linear one, mixtures of one Gaussian a class and of
several, trees. The members of a group err together, so a group j deviates from the pool by the
mean :math:`d_j(x)` of its members' log odds less l. Errors of two rows are similar where the pool
and the deviations of the groups are. A group has its weight w in the pool of complete rows: a group
without weight says nothing about the error of the pool. h is the missing fraction of the row. Of a
row without a cell only the class shares are known, so the pool has no error there.

The labels of held-out rows, each of weight v, reduce the error. By Laplace's approximation at
:math:`\delta = 0`, for the pool was fitted to the same labels,

.. math:: \delta_c \mid y \sim GP(0, k - k (K + W^{-1})^{-1} k^T), \quad W = v \, q (1 - q) .

So the error is small near many labels, and has its prior variance elsewhere. Rows are held out as
they are and as masked copies (:class:`bayesrbf.fit.held_out.HeldOut`), and each copy counts. The
rows of one subject count as one row. Labels of rows that were never held out do not count.

**Missing cells.** P(class | some cells) is a mean over the completions of the row, and so is its
error. If the log odds of the completions are independent normal with the standard deviation
:math:`\rho s`, the mean of k over two completions is :math:`\tau^2 (1 + 2 s^2)^{-1/2}`. So k is
multiplied by g(x) g(x'), with :math:`g = (1 + 2 s^2)^{-1/4}`. A masked copy of a held-out row, in
which a further share a of the columns is masked, shifts the log odds by u. Then
:math:`s^2 = h \, u^2 / (\rho^2 a)`, averaged over the copies with weights k and one copy of 0.

**Levels.** Of real columns the pool is a smooth function. Levels have no order, so labels of rows
with other levels tell less about a combination of levels than the process assumes. From n(x) rows
with the same levels, a prior variance of :math:`\sigma^2` becomes

.. math:: \Bigl(\frac{1}{g^2 \sigma^2} + n(x) \, q (1 - q)\Bigr)^{-1}, \quad
    n(x) = \sum_i v_i \, e^{-20 \, a_i(x)},

with :math:`a_i` the share of the columns in which training row i has another level. This is a lower
bound of the variance of the error.

:func:`class_error` has at most 400 inducing points, the pivots of the Cholesky factor of k: each
has the largest product of residual variance and information of the labels near it. The variance of
a row is that of the inducing points, plus the residual, plus what is missing to the lower bound; a
draw has one number for each of the last two. The constants were chosen by the interval score on
contingency tables, on real tables with labels drawn from other models, and on truths with a
formula.

**The draws** of ``refine``, by the rules

1. *Error.* A draw is a function of the row: the log probabilities of the pool at its fitted point
   plus a draw of :math:`\delta_c / \sqrt{2}`. Log odds of two classes are the difference of two
   errors, so their error has the variance of the law; with more classes it is somewhat less.
2. *Class shares*, the prediction for a row without a cell, are frequencies of a finite number of
   rows, and are drawn anew for every draw (:class:`bayesrbf.fit.stages.ClassShares`).
3. *Out-of-distribution rows* are shrunk towards the class shares, the more the further
   (:class:`bayesrbf.fit.stages.Extrapolation`).
4. *Prevalences.* The weight of a draw at a row is its probability of such a row at the prevalences
   of use (:class:`bayesrbf.fit.stages.Prevalence`).
5. *Updates* apply drawn intercepts and a drawn slope to every draw
   (:class:`bayesrbf.fit.updates.Updated`).
6. *Centre.* The log odds of each class are shifted to the median :math:`l \sqrt{1 + \pi V / 8}`,
   with V the variance of the draws: a calibrated probability is the mean of the frequencies of such
   rows, which lies nearer to 1/2 than their median [1]_.
7. *Label noise.* Its rate is drawn from the posterior given the labels of held-out rows
   (:func:`bayesrbf.fit.label_noise.fit_label_noise`).
8. *Ends* are quantiles of these draws; ends nearer to 0 or 1 than the least disputed probability
   are set to it (:func:`bayesrbf.fit.probabilities.outer_ends`).

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
from bayesrbf.base.arrays import MIN_DISPUTED_PROBABILITY, log_odds, log_softmax
from bayesrbf.base.rows import Observations
from bayesrbf.fit.chain import Draws, Stage, State, Step

Rows = Float[np.ndarray, " obs"]
Codes = Int[np.ndarray, "obs categorical"]

VARIANCE: Final = 4.5
"""``tau^2``: prior variance of the error of the log odds."""
LEVELS_VARIANCE: Final = 9.0
"""``sigma^2``: prior variance of the error, which only rows of the same levels reduce."""
DECAY: Final = 20.0
"""Exponential decay, per share of columns that differ, of the weight of rows of other levels."""
MAX_COMBINATIONS: Final = 2000
"""Combinations of levels in training that are compared; more are sampled."""
LENGTH: Final = 0.6
"""``rho``: length scale of the pool's log odds."""
GROUP_LENGTH: Final = 0.25
"""``kappa``: length scale of the deviations of member groups, as a root mean square."""
MISSING_LENGTH: Final = 0.5
"""``eta``: length scale of the missing fraction."""
MAX_INDUCING: Final = 400
"""Inducing points of the process."""
MAX_INFORMANTS: Final = 300
"""Held-out rows over which the information near a candidate inducing point is summed."""
MIN_GAIN: Final = 1e-6
"""Residual variance times information below which no inducing point is added."""
SMALLEST: Final = 1e-12
"""Lower bound of the probability of all other classes, which is a divisor."""
MAX_DRAWS: Final = 1000
"""Draws of the error; further draws of a posterior repeat them."""


# Coordinates of rows in the process of the error of one class.


@dataclass(frozen=True)
class ErrorCoordinates:
    """Coordinates of rows in the process of the error, and the factor of its prior deviation."""

    coordinates: Float[np.ndarray, "row coordinate"]
    """Log odds of the pool, deviations of the member groups and missing fraction, each divided by
    its length scale."""
    scale: Rows
    """``g``: factor of the prior standard deviation; 0 for a row without a cell."""

    def take(self, rows: Sequence[int] | Int[np.ndarray, " some"]) -> ErrorCoordinates:
        """Coordinates of the rows with these indices."""
        return ErrorCoordinates(self.coordinates[rows], self.scale[rows])

    def at_prior_power(self, power: float) -> ErrorCoordinates:
        """The coordinates with the prior variance divided by a power."""
        return replace(self, scale=self.scale / np.sqrt(power))

    @property
    def missing_fraction(self) -> Rows:
        """Share of the columns that are missing."""
        fraction: np.ndarray = self.coordinates[:, -1] * MISSING_LENGTH
        return fraction

    @property
    def bernoulli_variance(self) -> Rows:
        """``q (1 - q)``."""
        q = expit(self.coordinates[:, 0] * LENGTH)
        return q * (1 - q)

    @property
    def variance(self) -> Rows:
        """``k(x, x)``: 0 for a row without a cell."""
        return VARIANCE * self.scale**2

    def correlation(self, other: ErrorCoordinates) -> Float[np.ndarray, "row other"]:
        """``k(x, x') / tau^2`` with other rows."""
        kernel = np.exp(-cdist(self.coordinates, other.coordinates, "sqeuclidean") / 2)
        correlation: np.ndarray = np.outer(self.scale, other.scale) * kernel
        return correlation

    def covariance(self, other: ErrorCoordinates) -> Float[np.ndarray, "row other"]:
        """``k(x, x')`` with other rows."""
        return VARIANCE * self.correlation(other)


@dataclass(frozen=True)
class Completions:
    """Variance of the log odds over the completions of a row, learned from masked copies."""

    masked: ErrorCoordinates
    squared_shift: Rows
    """``u^2 / (rho^2 a)`` of every masked copy."""

    def marginalised(self, rows: ErrorCoordinates) -> ErrorCoordinates:
        """Coordinates with ``g = (1 + 2 s^2)^(-1/4)``: the error averages over completions."""
        weights = rows.correlation(self.masked)
        # A copy that shifted nothing stands for rows that no copy resembles.
        mean = (weights @ self.squared_shift) / (weights.sum(axis=1) + 1)
        return replace(rows, scale=rows.scale * (1 + 2 * rows.missing_fraction * mean) ** -0.25)


def completions_of(held: ErrorCoordinates, n_rows: int) -> Completions:
    """Completions by the masked copies of held-out rows.

    ``held`` has ``n_rows`` rows as they are, followed by an equal number of copies of every row.
    """
    copies = np.arange(n_rows, len(held.scale))
    rows = np.repeat(np.arange(n_rows), copies.size // max(n_rows, 1))
    masked_share = held.missing_fraction[copies] - held.missing_fraction[rows]
    has_masked = masked_share > 0
    copies, rows, masked_share = copies[has_masked], rows[has_masked], masked_share[has_masked]
    shift = held.coordinates[copies, 0] - held.coordinates[rows, 0]
    return Completions(held.take(copies), shift**2 / masked_share)


# Training rows with the levels of a row.


@dataclass(frozen=True)
class TrainingLevels:
    """Distinct combinations of levels among the labelled training rows."""

    codes: Int[np.ndarray, "combination categorical"]
    weights: Float[np.ndarray, " combination"]
    n_columns: int
    """Columns of the table, real columns included."""

    def effective_count(self, codes: Codes) -> Float[np.ndarray, " obs"]:
        """``n(x)``: effective number of training rows with the levels of every row.

        A missing level matches every level.
        """
        differing = np.zeros((len(codes), len(self.codes)))
        for column, training in zip(codes.T, self.codes.T, strict=True):
            observed = (column >= 0)[:, None] & (training >= 0)
            differing += (column[:, None] != training) & observed
        count: np.ndarray = np.exp(-DECAY * differing / self.n_columns) @ self.weights
        return count


def training_levels(rows: Observations) -> TrainingLevels | None:
    """Combinations of levels of the labelled training rows; None without categorical columns.

    Of more than ``MAX_COMBINATIONS`` an even sample stands for all.
    """
    if not rows.codes.shape[1]:
        return None
    labelled = rows.take(np.flatnonzero(rows.labels >= 0))
    codes, index = np.unique(labelled.codes, axis=0, return_inverse=True)
    weights = np.bincount(index.ravel(), labelled.weights)
    n_columns = rows.real.shape[1] + rows.codes.shape[1]
    if len(codes) > MAX_COMBINATIONS:
        sample = np.linspace(0, len(codes) - 1, MAX_COMBINATIONS).astype(int)
        codes = codes[sample]
        weights = weights[sample] * weights.sum() / weights[sample].sum()
    return TrainingLevels(codes, weights, n_columns)


# The error of one class.


@dataclass(frozen=True)
class ClassError:
    """Posterior of the error of one class, by inducing points."""

    inducing: ErrorCoordinates
    factor: Float[np.ndarray, "inducing inducing"]
    """Lower Cholesky factor of the prior covariance of the inducing points."""
    root: Float[np.ndarray, "inducing inducing"]
    """Root of the posterior covariance of the features."""

    def at(
        self, rows: ErrorCoordinates
    ) -> tuple[Float[np.ndarray, "row inducing"], Float[np.ndarray, " row"]]:
        """Coefficients of the standard normal numbers of a draw, and the residual deviation.

        The residual is the part of the prior variance that the inducing points do not span.
        """
        features = solve_triangular(self.factor, self.inducing.covariance(rows), lower=True).T
        # Negative by rounding alone, near an inducing point.
        residual = np.maximum(rows.variance - np.square(features).sum(axis=1), 0.0)
        return features @ self.root, np.sqrt(residual)


def class_error(held: ErrorCoordinates, information: Float[np.ndarray, " row"]) -> ClassError:
    """Posterior of the error of one class given held-out rows with the information ``W``."""
    features, chosen = _inducing_features(held, information)
    precision = (features * information[:, None]).T @ features
    precision[np.diag_indices(len(precision))] += 1
    # With the lower factor L of the precision, (L^-1)^T is a root of its inverse.
    root = solve_triangular(cholesky(precision, lower=True), np.eye(len(precision)), lower=True).T
    return ClassError(held.take(chosen), features[chosen], root)


def _inducing_features(
    rows: ErrorCoordinates, information: Rows
) -> tuple[Float[np.ndarray, "row inducing"], list[int]]:
    """Pivoted Cholesky factor of the prior covariance, and the pivots.

    A pivot has the largest product of residual variance and information of the labels near it.
    """
    residual, chosen = rows.variance, list[int]()
    features = np.zeros((min(MAX_INDUCING, residual.size), residual.size))
    sample = np.linspace(0, residual.size - 1, min(MAX_INFORMANTS, residual.size)).astype(int)
    correlation = rows.correlation(rows.take(sample))
    nearby = information + correlation @ information[sample] * residual.size / sample.size
    for step, feature in enumerate(features):
        gain = residual * nearby
        pivot = int(gain.argmax())
        if gain[pivot] < MIN_GAIN:
            break
        previous = features[:step]
        feature[:] = rows.covariance(rows.take([pivot]))[:, 0] - previous[:, pivot] @ previous
        feature /= np.sqrt(residual[pivot])
        # Below 0 only by rounding, which must not make a pivot a second time.
        residual = np.maximum(residual - feature**2, 0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return features[: len(chosen)].T, chosen


# The errors of all classes of a stack, and draws of them.


@dataclass(frozen=True)
class PoolError:
    """Posterior of the errors of all classes, and the standard normal numbers of its draws."""

    classes: tuple[ClassError, ...]
    numbers: Float[np.ndarray, "draw label coefficient"]
    """Numbers of the inducing points, of the residual, and of the levels."""
    held: tuple[ErrorCoordinates, ...]
    """Coordinates of the held-out rows for every class: rows as they are, then masked copies."""
    information: Float[np.ndarray, "held label"]
    completions: tuple[Completions, ...]
    levels: TrainingLevels | None
    prior_power: float = 1.0
    """Power of the prior density of the error, by which the prior variances are divided."""

    def at_prior_power(self, power: float) -> PoolError:
        """The errors under the prior raised to a power."""
        held = tuple(rows.at_prior_power(power) for rows in self.held)
        classes = tuple(map(class_error, held, self.information.T))
        return replace(self, classes=classes, held=held, prior_power=self.prior_power * power)

    def at(self, rows: Sequence[ErrorCoordinates], codes: Codes) -> ErrorOfRows:
        """Errors of new rows from coordinates for every class and codes of levels."""
        counts = None if self.levels is None else self.levels.effective_count(codes)
        marginalised = [
            completions.marginalised(of_class).at_prior_power(self.prior_power)
            for completions, of_class in zip(self.completions, rows, strict=True)
        ]
        coefficients = [
            with_levels(of_class, *error.at(of_class), counts)
            for error, of_class in zip(self.classes, marginalised, strict=True)
        ]
        return self._of(coefficients, marginalised)

    def _of(
        self, coefficients: Sequence[Float[np.ndarray, "obs _"]], rows: Sequence[ErrorCoordinates]
    ) -> ErrorOfRows:
        """Errors of rows from coefficients and coordinates for every class."""
        variance = VARIANCE if self.levels is None else max(VARIANCE, LEVELS_VARIANCE)
        scales = np.column_stack([of_class.scale for of_class in rows])
        return ErrorOfRows(tuple(coefficients), self.numbers, variance * scales**2, variance)

    def left_out(self, versions: Int[np.ndarray, "row version"], codes: Codes) -> ErrorOfRows:
        r"""The errors of held-out rows, given the labels of all other rows.

        ``versions`` are indices into ``held``: the row as it is, then its masked copies. With the
        coefficients A of the versions and their information W, the variance of the row is
        :math:`[A (I - A^T W A)^{-1} A^T]_{00}`.
        """
        coefficients = list[Float[np.ndarray, "obs _"]]()
        counts = None
        if self.levels is not None:
            # The row is among the training rows of its levels: its own label is left out.
            counts = np.maximum(self.levels.effective_count(codes) - 1, 0)
        for rows, error, information in zip(
            self.held, self.classes, self.information.T, strict=True
        ):
            inducing, residual = error.at(rows.take(versions.ravel()))
            inducing = inducing.reshape(*versions.shape, -1)
            of_row = inducing[:, 0]
            weighted = np.sqrt(information[versions])[..., None] * inducing
            across = weighted @ of_row[..., None]
            without = np.eye(weighted.shape[1]) - weighted @ weighted.transpose(0, 2, 1)
            increase = (across * np.linalg.solve(without, across)).sum(axis=(1, 2))
            before = np.square(of_row).sum(axis=1)
            ratio = np.divide(increase, before, out=np.zeros(len(versions)), where=before > 0)
            coefficients.append(
                with_levels(
                    rows.take(versions[:, 0]),
                    of_row * np.sqrt(1 + ratio)[:, None],
                    residual.reshape(versions.shape)[:, 0],
                    counts,
                )
            )
        return self._of(coefficients, [rows.take(versions[:, 0]) for rows in self.held])


def with_levels(
    rows: ErrorCoordinates,
    inducing: Float[np.ndarray, "obs inducing"],
    residual: Rows,
    counts: Rows | None,
) -> Float[np.ndarray, "obs _"]:
    """Coefficients of the error: inducing points, then the residual, then the levels.

    The levels raise a smaller variance to ``1 / (1 / (g^2 sigma^2) + n q (1 - q))``.
    """
    shortfall = np.zeros(len(inducing))
    if counts is not None:
        before = LEVELS_VARIANCE * rows.scale**2
        lower_bound = before / (1 + before * counts * rows.bernoulli_variance)
        variance = np.square(inducing).sum(axis=1) + residual**2
        shortfall = np.maximum(lower_bound - variance, 0.0)
    return np.column_stack([inducing, residual, np.sqrt(shortfall)])


def pool_error(
    held: Sequence[ErrorCoordinates],
    information: Float[np.ndarray, "row label"],
    n_rows: int,
    levels: TrainingLevels | None,
    n_draws: int,
    seed: int,
) -> PoolError:
    """Posterior of the errors of all classes given ``n_rows`` held-out rows and masked copies."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((min(n_draws, MAX_DRAWS), len(held), MAX_INDUCING + 2))
    completions = tuple(completions_of(rows, n_rows) for rows in held)
    held = tuple(
        of_class.marginalised(rows) for of_class, rows in zip(completions, held, strict=True)
    )
    classes = tuple(map(class_error, held, information.T))
    return PoolError(classes, numbers, held, information, completions, levels)


@dataclass(frozen=True)
class ErrorOfRows:
    """The errors of all classes at some rows."""

    coefficients: tuple[Float[np.ndarray, "obs _"], ...]
    """Coefficients for every class: inducing points, then the residual, then the levels."""
    numbers: Float[np.ndarray, "draw label coefficient"]
    prior_variance: Float[np.ndarray, "obs label"]
    prior_variance_of_complete: float
    """Prior variance of a row without a missing cell."""

    def only(self, component: str) -> ErrorOfRows:
        """The errors with one component of the uncertainty alone."""
        columns: dict[str, slice | int] = {
            names.LABELS_HELD_OUT: slice(-2),
            names.INDUCING_POINTS: -2,
            names.RARE_LEVELS: -1,
        }
        if component in columns:
            component_coefficients = [np.zeros_like(of_class) for of_class in self.coefficients]
            for alone, of_class in zip(component_coefficients, self.coefficients, strict=True):
                alone[:, columns[component]] = of_class[:, columns[component]]
            return replace(self, coefficients=tuple(component_coefficients))
        variance = self.prior_variance
        if component != names.MISSING_CELLS:
            variance = self.prior_variance_of_complete * (variance > 0)
        deviations = np.sqrt(variance).T
        return replace(self, coefficients=tuple(np.c_[sd, np.zeros_like(sd)] for sd in deviations))

    def labels_near(self, p: Float[np.ndarray, "obs label"]) -> Float[np.ndarray, "obs label"]:
        """Equivalent number of labels of rows of probability p: ``(1/V - 1/k) / (p (1 - p))``.

        NaN of a row without a cell, whose error is 0.
        """
        # Rows without a cell have variances of 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            information = np.maximum(1 / self.variance - 1 / self.prior_variance, 0.0)
            labels: np.ndarray = information / (p * (1 - p))
        return np.where(self.prior_variance > 0, labels, np.nan)

    @property
    def variance(self) -> Float[np.ndarray, "obs label"]:
        """Posterior variance of the error of every class."""
        return np.stack([np.square(of_class).sum(axis=1) for of_class in self.coefficients], axis=1)

    def median_correction(
        self, p: Float[np.ndarray, "obs label"]
    ) -> Float[np.ndarray, "obs label"]:
        """Ratio of log odds: median of the draws over the reported probability p."""
        of_logs = self.variance / 2
        weighted = p**2 * of_logs
        other_classes = weighted.sum(axis=1, keepdims=True) - weighted
        # Log odds of a class move with the others by their shares of what is not the class.
        variance = of_logs + other_classes / np.maximum(1 - p, SMALLEST) ** 2
        correction: np.ndarray = np.sqrt(1 + np.pi * variance / 8)
        return correction

    def draws(self, numbers: Int[np.ndarray, " draw"]) -> Float[np.ndarray, "draw obs label"]:
        """Shifts of the log probabilities in nats, under draws by their numbers."""
        chosen = numbers % len(self.numbers)
        result = np.empty((numbers.size, len(self.coefficients[0]), len(self.coefficients)))
        for label, coefficients in enumerate(self.coefficients):
            of_class = self.numbers[chosen, label]
            # The last two numbers are those of the residual and of the levels.
            z = np.append(of_class[:, : coefficients.shape[1] - 2], of_class[:, -2:], axis=1)
            # Log odds of two classes are the difference of two errors.
            result[:, :, label] = z @ coefficients.T / np.sqrt(2)
        return result


def error_coordinates(
    members: Float[np.ndarray, "row member label"],
    pool: Float[np.ndarray, "row label"],
    reported: Float[np.ndarray, "row label"],
    missing_fraction: Float[np.ndarray, " row"],
    known: Bool[np.ndarray, " row"],
    groups: Int[np.ndarray, " member"],
    weights: Float[np.ndarray, " member"],
) -> list[ErrorCoordinates]:
    """Coordinates of rows for every class, by tempered members and their pool.

    Log odds are those of the ``reported`` probabilities, to which missing indicators may add.
    ``known`` rows have a cell; ``groups`` has the group of every member.
    """
    of_members, of_pool, of_reported = (
        log_odds(p, MIN_DISPUTED_PROBABILITY) for p in (members, pool, reported)
    )
    sizes, group_weights = np.bincount(groups), np.bincount(groups, weights)
    # Members of one group err together: their mean counts as one.
    by_group = np.eye(sizes.size)[groups].T * (np.sqrt(group_weights) / sizes)[:, None]
    deviations = np.einsum("gj,njc->cng", by_group, of_members - of_pool[:, None]) / GROUP_LENGTH
    return [
        ErrorCoordinates(
            np.column_stack([of_class / LENGTH, deviation, missing_fraction / MISSING_LENGTH]),
            known.astype(float),
        )
        for of_class, deviation in zip(of_reported.T, deviations, strict=True)
    ]


# The stage in the chain of a class probability.


@dataclass(frozen=True)
class PoolErrorStage(Stage):
    """Rule 1: the pool at its fitted point, shifted by the error of every draw."""

    error: Callable[[], PoolError]
    """Gives the error; cached, for it takes a fit."""
    component: str = ""
    """Name of the only component of the error; empty: all."""

    @property
    def components(self) -> dict[str, Stage]:
        """Stages with one component of the error each, by name."""
        return {name: replace(self, component=name) for name in names.COMPONENTS_OF_ERROR}

    def at_prior_power(self, power: float) -> Stage:
        """The stage with the prior of the error raised to a power."""
        return replace(self, error=cache(lambda: self.error().at_prior_power(power)))

    def on(self, seen: Any) -> Step:
        """Step that shifts every draw by the error of the pool; the point is unchanged."""

        @cache
        def of_rows() -> ErrorOfRows:
            error: ErrorOfRows = seen.error_under(self.error())
            return error.only(self.component) if self.component else error

        def step(state: State, point: State, draws: Draws | None) -> State:
            """State behind the error, with median corrections and equivalent numbers of labels."""
            if draws is None:
                return state
            error, p = of_rows(), np.exp(point.log_p[0])
            return replace(
                state,
                log_p=log_softmax(state.log_p + error.draws(draws), axis=-1),
                median_correction=error.median_correction(p),
                labels_near=error.labels_near(p),
            )

        return step

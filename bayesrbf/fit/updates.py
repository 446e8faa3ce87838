r"""Updates of class probabilities by labelled rows of another population.

A model gives out :math:`q(c | x)` at the class shares :math:`\pi`. An update has an intercept for
every class, and one slope,

.. math:: q'(c | x) \propto q(c | x) \, e^{a_c} \,
    \Bigl(\frac{q(c | x)}{\pi_c}\Bigr)^{b - 1},

so that a and b are about two things: how often the classes are, and how much the cells of a row
tell. A row without a cell has :math:`q = \pi`, and its probabilities depend on a alone. Both are at
the mode under the priors

.. math:: a_c \sim N(0, s / 4), \quad b - 1 \sim N(0, 3 s / 20), \quad
    p(s) \propto s^{-2}, \quad s \in \{1, 2, 4\},

whose second numbers are standard deviations: with few rows the model stays nearly as it was. The
scale s is the most probable one, by Laplace's approximation: a great change is not held back. The
intercepts sum to 0, whatever the order of the classes; of two classes the log odds move by
:math:`a_1 - a_0`, twice the second. Their uncertainty is the inverse curvature at the mode. Draws
of a and b from it are paired with the draws of the model.

See Steyerberg (2019), Clinical prediction models, chapter 20, and Vergouwe et al. (2017), A closed
testing procedure to select an appropriate method for updating prediction models, Statistics in
Medicine 36, 4529-4539.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import (
    MIN_SCORED_PROBABILITY,
    class_indicators,
    log_scores,
    log_softmax,
)
from bayesrbf.base.records import MAX_LOG, Requirements, simplex, stored, within
from bayesrbf.base.rows import Observations
from bayesrbf.fit.calibration import softmax_regression
from bayesrbf.fit.chain import Draws, Seen, Stage, State, Step
from bayesrbf.table.columns import Columns

Method = Literal["none", "intercept", "slope", "refit"]
METHODS: Final[tuple[Method, ...]] = ("none", "intercept", "slope", "refit")
"""Ways to update, from the simplest on; the slope comes with the intercepts."""
INTERCEPT_SD: Final = 0.25
SLOPE_SD: Final = 0.15
"""Prior standard deviations of the coefficients, in nats and of the slope."""
SCALES: Final = (1.0, 2.0, 4.0)
"""Factors of these, of which the evidence chooses one."""
MIN_LOG: Final = float(np.log(MIN_SCORED_PROBABILITY))
"""Log probabilities are clipped below: a slope would shift smaller ones without bound."""

LogProbabilities = Float[np.ndarray, "obs label"]
Labels = Int[np.ndarray, " obs"]
Weights = Float[np.ndarray, " obs"]
Coefficients = Float[np.ndarray, " coefficient"]
Covariance = Float[np.ndarray, "coefficient coefficient"]


# An update, and its fit to labelled rows.


def after_update(
    log_q: Float[np.ndarray, "*draws obs label"],
    log_shares: Float[np.ndarray, " label"],
    coefficients: Float[np.ndarray, "*draws coefficient"],
) -> Float[np.ndarray, "*draws obs label"]:
    """Class log probabilities after an update: intercepts and, as last coefficient, slope less 1.

    >>> log_q, log_shares = np.log([[0.5, 0.5], [0.2, 0.8]]), np.log([0.5, 0.5])
    >>> np.exp(after_update(log_q, log_shares, np.array([0.0, np.log(3.0), 0.0]))).round(2)
    array([[0.25, 0.75],
           [0.08, 0.92]])
    """
    bounded = np.maximum(log_q, MIN_LOG)
    evidence = coefficients[..., None, -1:] * (bounded - log_shares)
    return log_softmax(bounded + coefficients[..., None, :-1] + evidence, axis=-1)


def fit_update(
    log_q: LogProbabilities,
    labels: Labels,
    weights: Weights,
    log_shares: Float[np.ndarray, " label"],
    method: Method,
) -> tuple[Coefficients, Covariance]:
    """Mode and covariance of the intercepts and the slope less 1; 0 for fixed coefficients.

    Nine in ten are of the second class, where the model says one in two:

    >>> log_q, labels = np.log(np.full((200, 2), 0.5)), np.repeat([0, 1], [20, 180])
    >>> at, _ = fit_update(log_q, labels, np.ones(200), np.log([0.5, 0.5]), "intercept")
    >>> np.exp(after_update(log_q[:1], np.log([0.5, 0.5]), at)).round(1)
    array([[0.1, 0.9]])
    """
    n_classes, best = log_q.shape[1], -np.inf
    mode, covariance = np.zeros(n_classes + 1), np.zeros((n_classes + 1, n_classes + 1))
    free = {"intercept": n_classes, "slope": n_classes + 1}.get(method, 0)
    bounded, target = np.maximum(log_q, MIN_LOG), class_indicators(log_q, labels)
    intercepts = np.broadcast_to(np.eye(n_classes), (*log_q.shape, n_classes))
    design = np.concatenate([intercepts, (bounded - log_shares)[..., None]], axis=2)[..., :free]
    usual = np.append(np.full(n_classes, INTERCEPT_SD), SLOPE_SD)[:free]
    for scale in SCALES if free else ():
        sd = scale * usual
        at, spread = softmax_regression(design, target, weights, np.zeros(free), sd, bounded)
        fit = weights @ log_scores(log_softmax(bounded + design @ at, axis=-1), labels)
        volume = np.linalg.slogdet(spread)[1] / 2 - np.log(sd).sum()
        evidence = fit - np.square(at / sd).sum() / 2 + volume - 2 * np.log(scale)
        if evidence > best:
            best, mode[:free], covariance[:free, :free] = evidence, at, spread
    return mode, covariance


def even_folds(
    log_q: LogProbabilities, labels: Labels, weights: Weights, n_folds: int
) -> Int[np.ndarray, " obs"]:
    """Folds balanced over classes and predicted probabilities, whatever the order of the rows.

    >>> log_q = np.log([[0.5, 0.5], [0.2, 0.8], [0.4, 0.6], [0.1, 0.9]])
    >>> even_folds(log_q, np.array([0, 1, 0, 1]), np.ones(4), 2)
    array([0, 0, 1, 1])
    """
    folds = np.empty(labels.size, dtype=int)
    folds[np.lexsort((weights, *log_q.T, labels))] = np.arange(labels.size) % n_folds
    return folds


# A digest is stored as one integer of 64 bits.
DIGEST_BYTES: Final = 8


def row_digests(rows: Observations, columns: Columns | None) -> Int[np.ndarray, " obs"]:
    """Digest of the cells of every row, the same for equal rows.

    Labels and weights do not count, and missing indicators repeat what the cells are. ``columns``
    is None where rows are compared whole.

    >>> cells, labels = np.array([[-0.0, np.nan], [0.0, np.nan]]), np.array([0, 1])
    >>> one, other = row_digests(Observations(cells, labels[:, None] * 0, labels, np.ones(2)), None)
    >>> bool(one == other)
    True
    """
    if columns is not None:
        rows = table.without_indicators(rows, columns)
    real = rows.real + 0.0  # -0 is written as another number than 0, which it equals
    arrays = [real, rows.codes, *([] if rows.whole is None else [rows.whole])]
    texts = (repr(row).encode() for row in zip(*(array.tolist() for array in arrays), strict=True))
    digests = [blake2b(text, digest_size=DIGEST_BYTES).digest() for text in texts]
    return np.array(
        [int.from_bytes(digest, "little", signed=True) for digest in digests], dtype=np.int64
    )


@stored
class Update:
    """An update of a fitted classifier by labelled rows, or the finding that none was better."""

    method: Method
    """The chosen method. A refit changes the model itself, and its coefficients are 0."""
    coefficients: Coefficients
    """Intercepts of the classes, and slope less 1."""
    covariance: Covariance
    """Inverse curvature at the coefficients; 0 for fixed ones."""
    log_shares: Float[np.ndarray, " label"]
    """Log class shares that the probabilities stood for before."""
    shares: Float[np.ndarray, " label"]
    """Class shares of the updated probabilities."""
    n_rows: int
    """Number of labelled rows of the fit."""
    date: str
    """When, as 2026-11-27."""
    sentence: str
    """Message on the method, its coefficients and held-out gains."""
    row_digests: Int[np.ndarray, " row"] = field(default_factory=lambda: np.empty(0, np.int64))
    """Digests of the rows, which are not new to the model; none where no probability moved, or
    where a refit has the rows themselves."""

    def __laws__(self) -> Requirements:
        free = self.log_shares.size + 1
        sized = self.coefficients.shape == (free,) and self.covariance.shape == (free, free)
        yield sized, "an intercept a class, and a covariance"
        yield within(self.coefficients, -MAX_LOG, MAX_LOG), "coefficients within bounds"
        # 1e-9 is room for rounding, here and below.
        yield within(self.log_shares, -MAX_LOG, 1e-9), "log shares of classes"
        shares = self.shares.size == self.log_shares.size and simplex(self.shares)
        yield shares and bool((self.shares > 0).all()), "positive class shares"
        yield within(self.covariance, -MAX_LOG, MAX_LOG), "a covariance within bounds"
        yield within(np.linalg.eigvalsh(self.covariance), -1e-9), "a covariance"
        dated = re.fullmatch(r"\d{4}-\d\d-\d\d", self.date) is not None
        yield self.n_rows > 0 and dated, "rows and a date"
        yield self.row_digests.size in (0, self.n_rows), "a digest of every row, or none"

    @property
    def intercepts(self) -> Float[np.ndarray, " label"]:
        """Intercept of every class; they sum to 0."""
        return self.coefficients[:-1]

    @property
    def slope(self) -> float:
        """Slope of the log odds: factor of the evidence of the cells; 1 leaves it unchanged."""
        return 1 + float(self.coefficients[-1])

    @property
    def is_identity(self) -> bool:
        """Whether probabilities stay as they are."""
        return not self.coefficients.any()

    def applied(self, log_q: LogProbabilities) -> LogProbabilities:
        """Reported class log probabilities, from the ones before the update."""
        return (
            log_q if self.is_identity else after_update(log_q, self.log_shares, self.coefficients)
        )

    def at(self, shares: Float[np.ndarray, " label"]) -> Update:
        """The update at other class shares, by Bayes' rule."""
        intercepts = np.log(shares) - np.log(self.shares)
        return replace(
            self,
            coefficients=self.coefficients + np.append(intercepts - intercepts.mean(), 0.0),
            shares=shares,
        )

    def stage(self, n_draws: int, seed: int) -> Updated:
        """The stage in the chain of a class probability."""
        return Updated(self, n_draws, seed)


@dataclass(frozen=True)
class Updated(Stage):
    """An update, whose intercepts and slope are drawn anew for every draw.

    It is applied to every draw at the prevalences of use; all draws then have equal weights.
    """

    update: Update
    n_draws: int
    seed: int
    name = names.UPDATE

    @cached_property
    def drawn(self) -> Float[np.ndarray, "draw coefficient"]:
        """Intercepts and slope of every draw; the mode for a single draw."""
        drawn = np.tile(self.update.coefficients, (self.n_draws, 1))
        if self.n_draws > 1:
            rng, zero = np.random.default_rng([self.seed, 2]), np.zeros(drawn.shape[1])
            covariance = self.update.covariance
            drawn += rng.multivariate_normal(zero, covariance, self.n_draws, method="eigh")
        return drawn

    def on(self, seen: Seen) -> Step:
        """Step that applies the update: drawn coefficients to draws, the mode to the point."""
        update = self.update

        def step(state: State, point: State, draws: Draws | None) -> State:
            """The state behind the update, whose draws have equal weights."""
            coefficients = np.tile(update.coefficients, (len(state.log_p), 1))
            if draws is not None:
                coefficients = self.drawn[draws]
            log_p = after_update(state.log_p, update.log_shares, coefficients)
            # The update multiplies the error of the log odds by its slope.
            correction = state.median_correction
            if correction is not None:
                correction = np.sqrt(1 + update.slope**2 * (correction**2 - 1))
            return replace(state, log_p=log_p, median_correction=correction, log_weights=None)

        return step

"""Stages of every classifier: calibration, class shares, extrapolation and prevalences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv, logsumexp
from scipy.stats.qmc import Halton

from bayesrbf.base import names
from bayesrbf.base.arrays import keeping, log_softmax
from bayesrbf.base.missing_fraction import powers, recalibrated
from bayesrbf.base.records import ANY_NUMBER, MAX_LOG, Requirements, scales, stored, within
from bayesrbf.base.rows import Observations
from bayesrbf.fit.calibration import tempered
from bayesrbf.fit.chain import Draws, Seen, Stage, State, Step
from bayesrbf.table.order import standardisation


@stored
class Calibration(Stage):
    r"""Calibration of class probabilities by rows held out, by the missing fraction h where known.

    .. math:: \log q(c | x) = t(h) \, t \log p(c | x) + b(h) \log \pi_c + \text{constant}

    The class log probabilities p of a model are of shape (n_draws, n_obs, n_classes), in nats.
    Without a row held out t = 1, and nothing is changed.
    """

    temperature: float = 1.0
    """Factor t of the class log probabilities."""
    temperatures: Float[np.ndarray, " knot"] | None = None
    """Factors of tempered log probabilities at the knots of the missing fraction; None: t alone."""
    prior_exponents: Float[np.ndarray, " knot"] | None = None
    """Exponents b of the class shares at the knots."""
    log_shares: Float[np.ndarray, " label"] | None = None
    """Log class shares of training."""
    offsets: Float[np.ndarray, " label"] | None = field(default=None, metadata=ANY_NUMBER)
    """Offset of the log joint of a class never held out, which is not tempered; NaN for the other
    classes. None: every class was held out."""

    @property
    def by_missing_fraction(self) -> bool:
        """Whether the calibration depends on the missing fraction."""
        return self.log_shares is not None

    def powers(
        self, missing_fraction: Float[np.ndarray, " obs"]
    ) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Temperature and exponent of the class shares of every row."""
        assert self.temperatures is not None
        assert self.prior_exponents is not None
        return powers(missing_fraction, np.log(self.temperatures), self.prior_exponents)

    def on(self, seen: Seen) -> Step:
        """Step that calibrates class log probabilities of the rows."""

        def step(state: State, point: State, draws: Draws | None) -> State:
            log_p = tempered(state.log_p, self.temperature)
            if self.log_shares is not None:
                log_p = recalibrated(log_p, *self.powers(seen.missing_fraction), self.log_shares)
            return replace(state, log_p=keeping(log_p, state.log_p, self.offsets))

        return step

    def __laws__(self) -> Requirements:
        yield scales(self.temperature) and self.temperature < MAX_LOG, "a temperature"
        by_fraction = (self.temperatures, self.prior_exponents, self.log_shares)
        yield (
            len({values is None for values in by_fraction}) == 1,
            "its knots and class shares together",
        )
        if (offsets := self.offsets) is not None:
            judged = np.isnan(offsets)
            # 1e-9 is room for rounding.
            lowered = within(offsets[~judged], -MAX_LOG, 1e-9)
            yield bool(judged.any()) and lowered, "offsets of classes, of which one is judged"


NO_CALIBRATION: Final = Calibration()
"""The identity: temperature 1 and no offsets."""


# Uncertainty of the class shares, the prediction for a row without a cell: rule 2 of the intervals
# of a stack (:mod:`bayesrbf.families.stack.intervals`), and of all estimators.
#
# Calibrated probabilities are shrunk towards the class shares of training by b. The shares are
# frequencies of :math:`n_c` rows. A draw has shares under Jeffreys' prior,
#
# .. math:: \pi_s \sim \mathrm{Dirichlet}(n + 1/2), \qquad
#     \log p_s(c | x) \to \log p_s(c | x) + b(x) \, \log \frac{\pi_{s c}}{\pi_c}.


JEFFREYS = 0.5
"""Prior sample size of every class."""


def share_draws(
    counts: Float[np.ndarray, " label"], n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw label"]:
    """Log ratios of drawn class shares to the shares of ``counts``, by a Halton sequence.

    >>> log_ratios = share_draws(np.array([30.0, 70.0]), 1000, np.random.default_rng(0))
    >>> np.exp(np.quantile(log_ratios, [0.05, 0.95], axis=0)).round(1)
    array([[0.8, 0.9],
           [1.3, 1.1]])
    """
    # Halton's points come in an order of their own; permuted, the shares of a draw are
    # independent of its parameters.
    even = rng.permutation(Halton(counts.size, seed=rng).random(n_draws))
    # Gamma variables divided by their sum are Dirichlet.
    log_gamma = np.log(gammaincinv(counts + JEFFREYS, even))
    log_shares = np.log(counts / counts.sum())
    log_ratios: np.ndarray = log_gamma - logsumexp(log_gamma, axis=1, keepdims=True) - log_shares
    return log_ratios


@dataclass(frozen=True)
class ClassShares(Stage):
    """Class shares of training, drawn anew for every draw."""

    calibration: Calibration
    counts: Float[np.ndarray, " label"]
    """Labelled rows of every class."""
    n_draws: int
    seed: int
    name = names.CLASS_SHARES

    @cached_property
    def log_ratios(self) -> Float[np.ndarray, "draw label"]:
        """Log ratios of drawn class shares to the class shares of training."""
        return share_draws(self.counts, self.n_draws, np.random.default_rng([self.seed, 1]))

    def on(self, seen: Seen) -> Step:
        """Step that shifts every draw by its error of the class shares; the point is unchanged."""

        def step(state: State, point: State, draws: Draws | None) -> State:
            if draws is None:
                return state
            _, prior_exponent = self.calibration.powers(seen.missing_fraction)
            shifted = state.log_p + prior_exponent[:, None] * self.log_ratios[draws][:, None]
            return replace(state, log_p=log_softmax(shifted, axis=-1))

        return step


# Out-of-distribution rows, far outside of the training table: rule 3 of the intervals of a stack
# (:mod:`bayesrbf.families.stack.intervals`), and of all estimators.
#
# The tails of a model's densities decide there, which no row supports: a Gaussian is sure of a
# class at any distance. With :math:`e(x)` the largest distance of a cell from the range of its
# column in training, in standard deviations beyond the near ones, the reported probability is
#
# .. math:: (1 - w) \, p(c | x) + w \, \pi_c, \quad
#     \frac{w}{1 - w} = \Bigl(\frac{e(x)}{20}\Bigr)^2,
#
# It nears the class shares of training with the distance: the odds w / (1 - w) of a row of another
# population rise as under a heavy-tailed distribution. Where e is 0, nothing is changed.


NEAR: Final = 3.0
"""Standard deviations outside of the range up to which a row is not far."""
FURTHEST: Final = 1e100
"""Upper bound of distances, whose square is finite."""
HALF: Final = 20.0
"""Standard deviations beyond the near range at which the class shares have the weight 1/2."""


@dataclass(frozen=True)
class Extrapolation(Stage):
    """Class probabilities of out-of-distribution rows, far outside of the training table."""

    low: Float[np.ndarray, " column"]
    high: Float[np.ndarray, " column"]
    """Range of the numbers of every column in training."""
    scale: Float[np.ndarray, " column"]
    """Standard deviation of every column in training."""
    log_shares: Float[np.ndarray, " label"]
    """Log class shares of training."""

    def outside(self, rows: Observations) -> Float[np.ndarray, "obs column"]:
        """Distance of every cell beyond the near range, in standard deviations; 0 if missing."""
        with np.errstate(over="ignore"):  # infinitely far is far
            outside = np.maximum(self.low - rows.real, rows.real - self.high) / self.scale - NEAR
        return np.fmin(np.fmax(outside, 0.0), FURTHEST)

    def unknown(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Weight w of the class shares in the probabilities of every row."""
        if not self.scale.size or rows.whole is not None:  # held out of the table, or of no columns
            return np.zeros(rows.n_obs)
        odds = (self.outside(rows).max(axis=1) / HALF) ** 2
        return odds / (1 + odds)

    def mixed(
        self, log_p: Float[np.ndarray, "*draws obs label"], w: Float[np.ndarray, " obs"]
    ) -> Float[np.ndarray, "*draws obs label"]:
        """Class log probabilities of the mixture ``(1 - w) p + w pi`` with the class shares."""
        far = w > 0
        if not far.any():
            return log_p
        with np.errstate(divide="ignore"):  # w rounds to 1 at the largest distances
            rest, log_w = np.log1p(-w[far, None]), np.log(w[far, None])
        result = log_p.copy()
        result[..., far, :] = np.logaddexp(rest + log_p[..., far, :], log_w + self.log_shares)
        return result

    def on(self, seen: Seen) -> Step:
        """Step that mixes class probabilities of out-of-distribution rows with the class shares."""
        w = self.unknown(seen.rows)

        def step(state: State, point: State, draws: Draws | None) -> State:
            # Class shares need no correction of the median.
            correction = state.median_correction
            if correction is not None:
                correction = 1 + (correction - 1) * (1 - w[:, None])
            return replace(state, log_p=self.mixed(state.log_p, w), median_correction=correction)

        return step


def fit_extrapolation(
    training: Observations, log_shares: Float[np.ndarray, " label"]
) -> Extrapolation:
    """Extrapolation by the range and standard deviation of the columns, in the user's units.

    >>> training = Observations(
    ...     np.array([[0.0], [2.0]]), np.zeros((2, 0), int), np.array([0, 1]), np.ones(2))
    >>> stage = fit_extrapolation(training, np.log([0.5, 0.5]))
    >>> new = np.array([[2.0], [5.0], [25.0], [np.nan]])
    >>> rows = Observations(new, np.zeros((4, 0), int), np.full(4, -1), np.ones(4))
    >>> stage.unknown(rows)
    array([0. , 0. , 0.5, 0. ])
    """
    cells = training.real
    unit = standardisation(cells, training.weights)
    observed = ~np.isnan(cells)
    low = np.where(observed, cells, np.inf).min(axis=0)
    high = np.where(observed, cells, -np.inf).max(axis=0)
    return Extrapolation(low, high, unit.scale, log_shares)


@dataclass(frozen=True)
class Prevalence(Stage):
    r"""Bayes' rule for class shares of use that differ from the shares of training.

    Of a draw s, with r their ratio, Bayes' rule is about the mean over the draws,

    .. math:: \frac{r_c \, \bar p(c | x)}{\sum_b r_b \, \bar p(b | x)}
        = \sum_s w_s(x) \, \frac{r_c \, p_s(c | x)}{Z_s(x)}, \quad
        Z_s = \sum_b r_b \, p_s(b | x), \quad w_s = \frac{Z_s}{\sum_u Z_u},

    and so is the mean of what it makes of every draw, weighed by how probable the draw makes
    such a row where the shares are those of use.
    """

    log_ratio: Float[np.ndarray, " label"]
    """Log ratio of every class: share of use over share of training."""

    def on(self, seen: Seen) -> Step:
        """Step that applies Bayes' rule, and weighs the draws of each row by Z."""

        def step(state: State, point: State, draws: Draws | None) -> State:
            logits = state.log_p + self.log_ratio
            log_z = logsumexp(logits, axis=2)
            with np.errstate(invalid="ignore"):  # -inf - -inf where a draw allows no class
                log_p = logits - log_z[:, :, None]
            return replace(state, log_p=log_p, log_weights=None if draws is None else log_z)

        return step

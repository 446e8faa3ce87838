"""Figures of held-out probabilities: calibration, ranks, and their chance variation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.special import ndtri, stdtrit
from scipy.stats import rankdata

from bayesrbf.base.arrays import Labels, Probabilities, Weights, mean_over_folds
from bayesrbf.fit.calibration import calibration_slope

# Calibration error of class probabilities, and what chance alone does to it.
#
# Labels are class codes, probabilities have one column per class. Every number has a
# picture and every picture a band: what a perfectly calibrated classifier with the very
# same probabilities would show on labels drawn from them.


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted probability against observed frequency of one class, bin by bin."""

    predicted: Float[np.ndarray, " bin"]  # Mean predicted probability of the rows in a bin.
    observed: Float[np.ndarray, " bin"]  # Weighted share of the class among them.
    lower: Float[np.ndarray, " bin"]
    """Lower end of the consistency band, where a calibrated classifier's ``observed`` lies."""
    upper: Float[np.ndarray, " bin"]  # Its upper end.
    mass: Float[np.ndarray, " bin"]  # Total row weight of a bin.


@dataclass(frozen=True)
class Calibration:
    """Calibration error of predictions, and its distribution for calibrated ones."""

    error: float  # Classwise expected calibration error, between 0 (calibrated) and 1.
    noise: tuple[float, float]  # Equal-tailed interval of that error under perfect calibration.
    curves: tuple[ReliabilityCurve, ...]  # One curve per class.

    @property
    def within_noise(self) -> bool:
        """Whether the error is no larger than chance makes it for a calibrated classifier."""
        return self.error <= self.noise[1]


def calibration(
    probabilities: Probabilities,
    labels: Labels,
    weights: Weights | None = None,
    *,
    n_bins: int = 10,
    prob: float = 0.9,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Calibration:
    """Classwise calibration error, reliability curves, and bands of both with probability ``prob``.

    The error is ``1/C sum_c sum_b (V_cb / V) |mean of p_nc - share of class c|`` over at most
    ``n_bins`` bins b of equal weight V_cb per class. Equal probabilities are never split, so that a
    constant prediction is judged in one bin, in whatever order the rows come; see Kull et al.
    (2019), Beyond temperature scaling, NeurIPS, section 2.

    The bands come from labels drawn from the predictions themselves,
    ``y_n ~ Categorical(p_n)``, scored in the same bins.

    See Bröcker, Smith (2007), Increasing the reliability of reliability diagrams, Weather
    and Forecasting 22, section 3.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=500)
    >>> labels = (p.cumsum(1) < rng.random((500, 1))).sum(1)
    >>> calibration(p, labels).within_noise
    True
    >>> overconfident = p**4 / (p**4).sum(1, keepdims=True)
    >>> calibration(overconfident, labels).within_noise
    False
    """
    bins = _Bins.of(probabilities, weights, n_bins)
    observed = bins.observed(labels)
    drawn = _drawn_labels(probabilities, n_resamples, np.random.default_rng(random_state))
    resampled = np.stack([bins.observed(codes) for codes in drawn])
    tails = np.array([0.5 - prob / 2, 0.5 + prob / 2])
    lower, upper = np.quantile(resampled, tails, axis=0)
    noise = np.quantile(bins.error(resampled), tails)
    curves = tuple(
        ReliabilityCurve(
            predicted=bins.predicted[rows],
            observed=observed[rows],
            lower=lower[rows],
            upper=upper[rows],
            mass=bins.mass[rows],
        )
        for rows in bins.of_class
    )
    return Calibration(float(bins.error(observed)), (float(noise[0]), float(noise[1])), curves)


@dataclass(frozen=True)
class _Bins:
    """Bins of equal weight along each class's probability, flat over classes."""

    index: Int[np.ndarray, "obs label"]  # Flat bin of every row and class.
    weights: Weights
    mass: Float[np.ndarray, " bin"]  # Row weight of every flat bin.
    predicted: Float[np.ndarray, " bin"]  # Mean probability of every flat bin.
    of_class: tuple[slice, ...]  # Flat bins of each class.

    @classmethod
    def of(cls, probabilities: Probabilities, weights: Weights | None, n_bins: int) -> _Bins:
        """Bins of the probabilities of every class, at most ``n_bins`` of equal weight each."""
        weights = np.ones(probabilities.shape[0]) if weights is None else weights
        columns = [_equal_weight_bins(p, weights, n_bins) for p in probabilities.T]
        edges = np.cumsum([0, *(column.max() + 1 for column in columns)])
        index = np.stack(columns, axis=1) + edges[:-1]
        every_weight = np.repeat(weights, len(columns))
        mass = np.bincount(index.ravel(), every_weight)
        total = np.bincount(index.ravel(), every_weight * probabilities.ravel())
        of_class = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
        return cls(index, weights, mass, total / mass, of_class)

    def observed(self, labels: Labels) -> Float[np.ndarray, " bin"]:
        """Share of its class in every bin."""
        label_bins = self.index[np.arange(labels.size), labels]
        return np.bincount(label_bins, self.weights, minlength=self.mass.size) / self.mass

    def error(self, observed: Float[np.ndarray, "*draws bin"]) -> Float[np.ndarray, "*draws"]:
        """Classwise expected calibration error of observed shares."""
        share = self.mass / (self.weights.sum() * len(self.of_class))
        return np.asarray(np.abs(observed - self.predicted) @ share)


def _equal_weight_bins(
    values: Float[np.ndarray, " obs"], weights: Weights, n_bins: int
) -> Int[np.ndarray, " obs"]:
    """Bin of each value: equal weights, ties together, numbered from 0 without gaps.

    The bin is by the cumulative weight up to the middle of the value's ties, so it depends on the
    weighted distribution only and not on the order of the rows. Rows of weight 0 are in the bin of
    the weighted value before them, so that no bin is empty.
    """
    _, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weights)
    middle = (mass.cumsum() - mass / 2) / mass.sum()
    bins = np.minimum((middle * n_bins).astype(np.intp), n_bins - 1)
    weighted = mass > 0
    _, compact = np.unique(bins[weighted], return_inverse=True)
    # Values without weight get the bin of the weighted value before them, or the first bin.
    position = np.clip(weighted.cumsum() - 1, 0, None)
    return compact[position][inverse]


def _drawn_labels(
    probabilities: Probabilities, n: int, rng: np.random.Generator
) -> Iterator[Labels]:
    """Label vectors from the predictions themselves, one at a time to keep memory small."""
    cumulative = probabilities.cumsum(1)[:, :-1]
    for _ in range(n):
        yield (cumulative < rng.random((probabilities.shape[0], 1))).sum(1)


# Counts of events beside their law under probabilities that are calibrated.


@dataclass(frozen=True)
class Counted:
    """A number of rows, and its expectation under a calibrated model."""

    number: int
    expected: float
    lower: int  # Ends of the interval in which the number lies for a calibrated model.
    upper: int


def poisson_binomial(p: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " count"]:
    """Probability of every number of successes of independent trials, 0 to all of them.

    They are the coefficients of the product of ``1 - p + p z``, multiplied pair by pair.

    >>> poisson_binomial(np.array([0.5, 0.5])).round(3)
    array([0.25, 0.5 , 0.25])
    """
    factors = np.column_stack([1 - p, p])
    while len(factors) > 1:
        if len(factors) % 2:
            # The polynomial 1 as a partner for the last factor.
            identity = np.zeros((1, factors.shape[1]))
            identity[0, 0] = 1.0
            factors = np.concatenate([factors, identity])
        # The length of the product: a transform of fewer places would wrap the convolution round.
        size = 2 * factors.shape[1] - 1
        spectra = np.fft.rfft(factors, size, axis=1)
        factors = np.fft.irfft(spectra[::2] * spectra[1::2], size, axis=1)
    # The transform leaves rounding of either sign where a probability is next to 0.
    law = np.clip(factors[0, : p.size + 1], 0.0, None) if p.size else np.ones(1)
    return np.asarray(law / law.sum())


def two_sided(p: Float[np.ndarray, " obs"], number: int) -> float:
    """Probability of a number of successes at least as extreme: twice the smaller tail, at most 1.

    >>> two_sided(np.full(4, 0.5), 4)
    0.125
    """
    law = poisson_binomial(p)
    return float(min(1.0, 2 * min(law[: number + 1].sum(), law[number:].sum())))


def counted(p: Float[np.ndarray, " obs"], number: int, level: float = 0.9) -> Counted:
    """A number of successes, its expectation and its equal-tailed interval.

    >>> counted(np.full(100, 0.1), 20)
    Counted(number=20, expected=10.0, lower=5, upper=15)
    """
    below = poisson_binomial(p).cumsum()
    tails = np.searchsorted(below, [0.5 - level / 2, 0.5 + level / 2])
    lower, upper = np.minimum(tails, p.size)
    return Counted(number, float(round(p.sum(), 9)), int(lower), int(upper))


def improbable_labels(
    probabilities: Probabilities, labels: Labels, bound: float, level: float = 0.9
) -> Counted:
    """Number of rows whose label's probability is below a bound, and its calibrated expectation.

    A label drawn from p falls below the bound b with probability ``sum_c p_c [p_c < b]``.
    """
    p_label = probabilities[np.arange(labels.size), labels]
    drawn = np.where(probabilities < bound, probabilities, 0.0).sum(axis=1)
    return counted(drawn, int((p_label < bound).sum()), level)


def beyond_chance(
    probabilities: Probabilities, labels: Labels, rate: float
) -> Int[np.ndarray, " found"]:
    """Positions of rows whose labels are less probable than chance explains, the least first.

    The k rows of least probability g at their label are told apart from chance where labels drawn
    from the probabilities would put at most ``rate k`` rows at g or below; k is the largest such
    number. It is the procedure of Benjamini and Hochberg with the expected number in place of its
    bound.

    >>> p = np.tile([0.999, 0.001], (50, 1))
    >>> beyond_chance(p, np.r_[1, np.zeros(49, int)], 0.1)
    array([0])
    >>> beyond_chance(np.tile([0.9, 0.1], (50, 1)), np.r_[np.ones(5, int), np.zeros(45, int)], 0.1)
    array([], dtype=int64)
    """
    p_label = probabilities[np.arange(labels.size), labels]
    order = np.argsort(p_label, kind="stable")
    every = np.sort(probabilities, axis=None)
    # A label drawn from the probabilities falls on an entry as often as the entry says, so all
    # entries up to g, of any row and class, add up to the rows expected at g or below.
    expected = np.r_[0.0, every.cumsum()][np.searchsorted(every, p_label[order], side="right")]
    good = np.flatnonzero(expected <= rate * np.arange(1, labels.size + 1))
    return order[: good[-1] + 1 if good.size else 0]


def holm(p_values: Float[np.ndarray, " test"], level: float) -> Bool[np.ndarray, " test"]:
    """Mask of the tests that Holm's procedure rejects at the family-wise error rate ``level``.

    See Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6, 65-70.

    >>> holm(np.array([0.001, 0.04, 0.03]), 0.05)
    array([ True, False, False])
    """
    order = np.argsort(p_values, kind="stable")
    failed = p_values[order] > level / np.arange(p_values.size, 0, -1)
    failures = np.flatnonzero(failed)
    rejected = np.zeros(p_values.size, dtype=bool)
    rejected[order[: failures[0] if failures.size else p_values.size]] = True
    return rejected


# Figures of held-out probabilities: one class against the rest, with intervals.
#
# ``score`` is a probability a row, ``positive`` whether the row is of the class. Intervals are of
# the rows as a sample; that other rows would have trained another model is not in them. Nearly all
# are score intervals, which hold their promise at 0 and 1, too, where a bootstrap gives a point.


LEVEL: Final = 0.9
"""Probability inside the intervals, and inside those that verdicts are read off."""

TINY: Final = 1e-12
"""Distance from 0 and 1 at which the search for ends of an interval stops."""

Score = Float[np.ndarray, " obs"]
Positive = Bool[np.ndarray, " obs"]


@dataclass(frozen=True)
class Interval:
    """A figure between the ends of its interval; NaN where there is none."""

    value: float
    lower: float
    upper: float


NONE: Final = Interval(np.nan, np.nan, np.nan)
"""Interval of a figure that no row bears on."""


@dataclass(frozen=True)
class DecisionCurve:
    """Net benefit of a row at every threshold; acting on no row has 0."""

    thresholds: Float[np.ndarray, " threshold"]
    model: Float[np.ndarray, " threshold"]
    lower: Float[np.ndarray, " threshold"]
    upper: Float[np.ndarray, " threshold"]
    everybody: Float[np.ndarray, " threshold"]  # Of acting on every row.


def proportion(share: float, n: int | float, level: float = LEVEL) -> Interval:
    r"""Share of n rows with its score interval; NaN if n is 0.

    It is the set of p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`.

    See Wilson (1927), Probable inference, the law of succession, and statistical inference,
    Journal of the American Statistical Association 22, 209-212.

    >>> interval = proportion(1.0, 10)
    >>> round(interval.lower, 3), interval.upper
    (0.787, 1.0)
    """
    if not n > 0:
        return NONE
    z = ndtri(0.5 + level / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    # Rounding must not push an end past the share or past 0 and 1.
    return Interval(
        share,
        0.0 if share == 0 else float(min(centre - half, share)),
        1.0 if share == 1 else float(max(centre + half, share)),
    )


def change(
    before: float, n_before: int | float, now: float, n_now: int | float, level: float = LEVEL
) -> Interval:
    r"""Difference of two shares of rows, the later one less the earlier one.

    With l and u the ends of the score interval of each, the interval is from
    :math:`d - \sqrt{(p_2 - l_2)^2 + (u_1 - p_1)^2}` to
    :math:`d + \sqrt{(u_2 - p_2)^2 + (p_1 - l_1)^2}`.

    See Newcombe (1998), Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17, 873-890, method 10.

    >>> interval = change(0.5, 100, 0.5, 100)
    >>> interval.value, round(interval.lower, 3), round(interval.upper, 3)
    (0.0, -0.115, 0.115)
    """
    old, new = proportion(before, n_before, level), proportion(now, n_now, level)
    fall = np.hypot(now - new.lower, old.upper - before)
    rise = np.hypot(new.upper - now, before - old.lower)
    return Interval(now - before, float(now - before - fall), float(now - before + rise))


def mean(values: Float[np.ndarray, " obs"], level: float = LEVEL) -> Interval:
    """Mean of rows with Student's interval; NaN without rows, and ends NaN for a single row.

    >>> interval = mean(np.array([1.0, 2.0, 3.0]))
    >>> interval.value, round(interval.upper - interval.lower, 2)
    (2.0, 3.37)
    """
    if not values.size:
        return NONE
    value = float(values.mean())
    if values.size == 1:
        return Interval(value, np.nan, np.nan)
    half = stdtrit(values.size - 1, 0.5 + level / 2) * standard_error(values)
    return Interval(value, float(value - half), float(value + half))


def mean_of(
    values: Float[np.ndarray, " obs"], subjects: Int[np.ndarray, " obs"], level: float = LEVEL
) -> Interval:
    """Mean of rows with Student's interval by the spread of the means of their groups."""
    value, error = mean_over_folds(values, subjects)
    half = stdtrit(np.unique(subjects).size - 1, 0.5 + level / 2) * error
    return Interval(value, float(value - half), float(value + half))


def standard_error(values: Float[np.ndarray, " obs"]) -> float:
    """Standard error of the mean of rows; infinite for a single one."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.inf


def auroc(score: Score, positive: Positive, level: float = LEVEL) -> Interval:
    r"""Area under the ROC curve: how often a row of the class has the higher score, ties half.

    NaN where all rows or none are of the class.

    The interval is the set of :math:`\theta` with :math:`|\hat\theta - \theta| \le z\,
    \mathrm{se}(\theta)`, where with m rows of the class and n others

    .. math:: \mathrm{se}^2 = \frac{\theta (1 - \theta)}{m n} \Bigl[1 + \Bigl(\frac{m + n}{2}
        - 1\Bigr) \Bigl(\frac{1 - \theta}{2 - \theta} + \frac{\theta}{1 + \theta}\Bigr)\Bigr].

    See Newcombe (2006), Confidence intervals for an effect size measure based on the
    Mann-Whitney statistic. Part 2, Statistics in Medicine 25, 559-573, method 5.

    >>> interval = auroc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))
    >>> interval.value, round(interval.lower, 2), round(interval.upper, 2)
    (0.875, 0.37, 0.99)
    """
    m, n = int(positive.sum()), int((~positive).sum())
    if not (m and n):
        return NONE
    value = (rankdata(score)[positive].sum() - m * (m + 1) / 2) / (m * n)
    z = ndtri(0.5 + level / 2)

    def outside(theta: float) -> float:
        shared = (1 - theta) / (2 - theta) + theta / (1 + theta)
        away = (value - theta) ** 2 / (theta * (1 - theta))  # 0 / 0 at an end is no root
        return float(away - z**2 / (m * n) * (1 + ((m + n) / 2 - 1) * shared))

    lower = brentq(outside, TINY, min(value, 1 - TINY)) if value > TINY else 0.0
    upper = brentq(outside, max(value, TINY), 1 - TINY) if value < 1 - TINY else 1.0
    return Interval(float(value), float(lower), float(upper))


def average_precision(score: Score, positive: Positive, level: float = LEVEL) -> Interval:
    r"""Mean over the rows of the class of the share of the class among rows scored as high.

    NaN if no row is of the class.

    The interval is the score interval of a share of as many rows as the class has. See Boyd, Eng,
    Page (2013), Area under the precision-recall curve: point estimates and confidence intervals,
    ECML PKDD, section 4, on binomial intervals.

    >>> interval = average_precision(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]))
    >>> round(interval.value, 3)
    0.833
    """
    m = int(positive.sum())
    if not m:
        return NONE
    as_high = np.searchsorted(np.sort(-score), -score, side="right")
    events_as_high = np.searchsorted(np.sort(-score[positive]), -score[positive], side="right")
    return proportion(float((events_as_high / as_high[positive]).mean()), m, level)


def slope(probabilities: Probabilities, labels: Labels, level: float = LEVEL) -> Interval:
    """Calibration slope (:func:`calibration_slope`) with its interval; 1 is right."""
    value, error = calibration_slope(probabilities, labels)
    half = float(ndtri(0.5 + level / 2)) * error
    return Interval(value, value - half, value + half)


def decision_curve(
    score: Score,
    positive: Positive,
    thresholds: Float[np.ndarray, " threshold"],
    level: float = LEVEL,
    subjects: Int[np.ndarray, " obs"] | None = None,
) -> DecisionCurve:
    r"""Net benefit of acting where the probability is at least t.

    .. math:: \frac{1}{n} \sum_i [p_i \ge t] \Bigl(y_i - (1 - y_i) \frac{t}{1 - t}\Bigr)

    in rows of the class found for each row, less the rows acted on in vain at the price that the
    threshold puts on them. See Vickers, Elkin (2006), Decision curve analysis: a novel method for
    evaluating prediction models, Medical Decision Making 26, 565-574.

    >>> score, positive = np.array([0.9, 0.6, 0.2]), np.array([True, False, False])
    >>> decision_curve(score, positive, np.array([0.5])).model.round(3)
    array([0.])
    """
    odds = thresholds / (1 - thresholds)
    row_benefit = np.where(positive, 1.0, -odds[:, None])
    every = row_benefit * (score >= thresholds[:, None])
    benefits = [
        mean(row, level) if subjects is None else mean_of(row, subjects, level) for row in every
    ]
    return DecisionCurve(
        thresholds,
        np.array([benefit.value for benefit in benefits]),
        np.array([benefit.lower for benefit in benefits]),
        np.array([benefit.upper for benefit in benefits]),
        row_benefit.mean(axis=1),
    )

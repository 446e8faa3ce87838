r"""Figures of held-out probabilities: one class against the rest, with intervals.

``score`` is a probability a row, ``positive`` whether the row is of the class. Intervals are of the
rows as a sample; that other rows would have trained another model is not in them. Nearly all are
score intervals, which hold their promise at 0 and 1, too, where a bootstrap gives a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq
from scipy.special import stdtrit
from scipy.stats import norm, rankdata

from bayesrbf.posterior.recalibration import calibration_slope
from bayesrbf.posterior.scores import Labels, Probabilities

LEVEL: Final = 0.9
"""Probability inside the intervals, and inside those that verdicts are read off."""

TINY: Final = 1e-12

Score = Float[np.ndarray, " obs"]
Positive = Bool[np.ndarray, " obs"]


@dataclass(frozen=True)
class Interval:
    """A figure between the ends of its interval; NaN where there is none."""

    value: float
    lower: float
    upper: float


NONE: Final = Interval(np.nan, np.nan, np.nan)
"""What is said where no row bears on a figure."""


@dataclass(frozen=True)
class OneAgainstRest:
    """Discrimination between one class and the rest."""

    rows: int  # Of the class.
    auroc: Interval
    average_precision: Interval
    sensitivity: Interval  # Of the decisions, as are the other three.
    specificity: Interval
    ppv: Interval  # Positive predictive value: of the rows decided so, the share of the class.
    npv: Interval  # Negative predictive value: of all other rows, the share of the rest.


@dataclass(frozen=True)
class DecisionCurve:
    """Net benefit of a row at every threshold; acting on no row has 0."""

    thresholds: Float[np.ndarray, " threshold"]
    model: Float[np.ndarray, " threshold"]
    lower: Float[np.ndarray, " threshold"]
    upper: Float[np.ndarray, " threshold"]
    everybody: Float[np.ndarray, " threshold"]  # Of acting on every row.


def proportion(share: float, n: int, level: float = LEVEL) -> Interval:
    r"""Score interval of a share of rows.

    It is the set of p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`.

    See Wilson (1927), Probable inference, the law of succession, and statistical inference,
    Journal of the American Statistical Association 22, 209-212.

    >>> interval = proportion(1.0, 10)
    >>> round(interval.lower, 3), interval.upper
    (0.787, 1.0)
    """
    if not n > 0:
        return NONE
    z = norm.ppf(0.5 + level / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    # Rounding must not push an end past the share or past 0 and 1.
    return Interval(
        share,
        0.0 if share == 0 else float(min(centre - half, share)),
        1.0 if share == 1 else float(max(centre + half, share)),
    )


def change(before: float, n_before: int, now: float, n_now: int, level: float = LEVEL) -> Interval:
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
    """Mean of rows with Student's interval; the ends are NaN for a single row.

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


def standard_error(values: Float[np.ndarray, " obs"]) -> float:
    """Standard error of the mean of rows; infinite for a single one."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.inf


def auroc(score: Score, positive: Positive, level: float = LEVEL) -> Interval:
    r"""Area under the ROC curve: how often a row of the class has the higher score, ties half.

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
    z = norm.ppf(0.5 + level / 2)

    def outside(theta: float) -> float:
        shared = (1 - theta) / (2 - theta) + theta / (1 + theta)
        away = (value - theta) ** 2 / (theta * (1 - theta))  # 0 / 0 at an end is no root
        return float(away - z**2 / (m * n) * (1 + ((m + n) / 2 - 1) * shared))

    lower = brentq(outside, TINY, min(value, 1 - TINY)) if value > TINY else 0.0
    upper = brentq(outside, max(value, TINY), 1 - TINY) if value < 1 - TINY else 1.0
    return Interval(float(value), float(lower), float(upper))


def average_precision(score: Score, positive: Positive, level: float = LEVEL) -> Interval:
    r"""Mean over the rows of the class of the share of the class among rows scored as high.

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
    own = np.searchsorted(np.sort(-score[positive]), -score[positive], side="right")
    return proportion(float((own / as_high[positive]).mean()), m, level)


def one_against_rest(
    score: Score, decided: Positive, positive: Positive, level: float = LEVEL
) -> OneAgainstRest:
    """Every figure of a class whose decisions are known."""

    def share(holds: Positive) -> Interval:
        return proportion(float(holds.mean()), holds.size, level) if holds.size else NONE

    return OneAgainstRest(
        rows=int(positive.sum()),
        auroc=auroc(score, positive, level),
        average_precision=average_precision(score, positive, level),
        sensitivity=share(decided[positive]),
        specificity=share(~decided[~positive]),
        ppv=share(positive[decided]),
        npv=share(~positive[~decided]),
    )


def slope(probabilities: Probabilities, labels: Labels, level: float = LEVEL) -> Interval:
    """Calibration slope (:func:`calibration_slope`) with its interval; 1 is right."""
    value, error = calibration_slope(probabilities, labels)
    half = float(norm.ppf(0.5 + level / 2)) * error
    return Interval(value, value - half, value + half)


def decision_curve(
    score: Score, positive: Positive, thresholds: Float[np.ndarray, " threshold"]
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
    each = np.where(positive, 1.0, -odds[:, None])
    benefits = [mean(row) for row in each * (score >= thresholds[:, None])]
    return DecisionCurve(
        thresholds,
        np.array([benefit.value for benefit in benefits]),
        np.array([benefit.lower for benefit in benefits]),
        np.array([benefit.upper for benefit in benefits]),
        each.mean(axis=1),
    )

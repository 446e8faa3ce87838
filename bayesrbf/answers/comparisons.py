"""Performance compared with an existing score, and performance by subsets of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri, stdtrit

from bayesrbf.answers.performance import (
    EventForecasts,
    EventPerformance,
    net_benefit,
    resampled,
)
from bayesrbf.answers.scores import LEVEL, Interval, Positive, Score, auroc
from bayesrbf.base.arrays import brier, log_loss

# Two sets of probabilities of one event, row by row.


@dataclass(frozen=True)
class Reclassified:
    """Rows whose decision differs between a given score and a model, as counts."""

    events_up: int  # Events that the model calls so, and the score does not.
    events_down: int
    others_up: int
    others_down: int


@dataclass(frozen=True)
class Differences:
    """Paired differences of the figures of two models on the same rows, with intervals."""

    auroc: Interval
    brier: Interval
    log_loss: Interval
    net_benefit: Interval  # At the threshold.
    reclassified: Reclassified


def differences(
    model: Score,
    other: Score,
    positive: Positive,
    *,
    threshold: float = 0.5,
    subjects: Int[np.ndarray, " obs"] | None = None,
    level: float = LEVEL,
) -> Differences:
    """Paired differences of two event probabilities on the same rows: ``model`` minus ``other``.

    Ends of the intervals are quantiles over bootstrap resamples of rows, or of whole ``subjects``.
    Net benefit and reclassified rows are at ``threshold``.
    """

    def figures(rows: Any) -> Float[np.ndarray, " figure"]:
        """Differences of AUROC, Brier score, log loss and net benefit on some rows."""
        y = positive[rows].astype(int)
        of_both = []
        for score in (model[rows], other[rows]):
            both = np.column_stack([1 - score, score])
            of_both.append(
                [
                    auroc(score, positive[rows], level).value,
                    brier(both, y).mean(),
                    log_loss(both, y).mean(),
                    net_benefit(score, positive[rows], threshold).mean(),
                ]
            )
        return np.subtract(of_both[0], of_both[1])

    drawn = np.stack([figures(rows) for rows in resampled(subjects, positive.size)])
    ends = np.nanquantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    rows = np.vstack([figures(slice(None)), ends]).T.tolist()
    areas, squares, losses, benefits = (Interval(*row) for row in rows)
    up = (model >= threshold) & (other < threshold)
    down = (model < threshold) & (other >= threshold)
    counts = [int((kind & move).sum()) for kind in (positive, ~positive) for move in (up, down)]
    return Differences(areas, squares, losses, benefits, Reclassified(*counts))


@dataclass(frozen=True)
class GivenScore:
    """An existing score compared with the model, on the held-out rows that have it."""

    name: str
    how: str  # How it became a probability, in words.
    left_out: int  # Rows that do not have it.
    model: EventPerformance
    score: EventPerformance
    differences: Differences  # Of the model less the score.


def given_score(
    column: object, score: Score, forecasts: EventForecasts, folds: Int[np.ndarray, " obs"]
) -> GivenScore:
    """Performance of the model and of an existing score on the rows that have the score.

    ``column`` is the name of the score, ``forecasts`` are the model's on held-out rows, and
    ``folds`` their folds. ValueError where these rows are all events, or all without one.
    """
    name = "the score" if column is None else f"score {column}"
    probability, mapping = score_as_probability(score, forecasts.happened, folds)
    there = ~np.isnan(probability)
    model = forecasts.take(there)
    if model.happened.all() or not model.happened.any():
        raise ValueError(
            f"{name} is known of {int(there.sum())} rows with a label, and not of both classes; "
            "leave it out, or give it for more rows."
        )
    other = replace(model, p=probability[there])
    compared = differences(
        model.p,
        other.p,
        model.happened,
        threshold=model.thresholds[0],
        subjects=model.subjects,
        level=model.level,
    )
    without = int((~there).sum())
    return GivenScore(name, mapping, without, model.performance, other.performance, compared)


def score_as_probability(
    score: Score, happened: Positive, folds: Int[np.ndarray, " obs"]
) -> tuple[Score, str]:
    """Probability of the event from an existing score, and a message on how it was obtained.

    A score between 0 and 1, not 0 and 1 alone, is a probability: of the event, or of no event if
    the whole interval of its AUROC lies below chance. Any other score is mapped by a logistic
    regression that is fitted to the rows of all other folds, NaN where these have one class alone.
    A missing score is NaN. ValueError where the score is infinite.
    """
    if np.isinf(score).any():
        raise ValueError("a score must be finite; leave cells empty where it is not known.")
    there = ~np.isnan(score)
    between = (score[there] > 0) & (score[there] < 1)
    if between.any() and score[there].min() >= 0 and score[there].max() <= 1:
        if auroc(score[there], happened[there]).upper < BY_CHANCE:
            return 1 - score, "taken for the probability that the event does not happen"
        return score, "taken for a probability of the event"
    from sklearn.linear_model import LogisticRegression  # slow to load, and points are rare

    mapped = np.full(score.size, np.nan)
    unit = score[there].std() if there.any() else 1.0
    score = (score - (score[there].mean() if there.any() else 0.0)) / (unit or 1.0)
    for fold in np.unique(folds):
        test, train = there & (folds == fold), there & (folds != fold)
        if test.any() and 0 < happened[train].sum() < train.sum():
            line = LogisticRegression(C=np.inf).fit(score[train, None], happened[train])
            mapped[test] = line.predict_proba(score[test, None])[:, 1]
    return mapped, (
        "its points became probabilities by a logistic regression of the other folds, so that its "
        "O:E, intercept and slope are right by construction"
    )


# Figures that differ from one part of the rows to another, such as centres.


BY_CHANCE: Final = 0.5
"""AUROC of rows that are ranked by chance."""
MIN_PARTS: Final = 3
"""Minimum number of subsets for a prediction interval of a new one."""


@dataclass(frozen=True)
class RandomEffects:
    r"""Mean and spread of a figure over parts, and where that of a new part may lie.

    .. math:: y_k \sim N(\mu + u_k, s_k^2), \quad u_k \sim N(0, \tau^2)

    The variance between parts is that of Paule and Mandel [2]_; the interval of the mean is
    Student's with K - 1 degrees of freedom [3]_; that of a new part is
    :math:`\mu \pm t_{K - 2} \sqrt{\tau^2 + \mathrm{se}^2}` [4]_.

    .. [2] Paule, Mandel (1982), Journal of Research of the National Bureau of Standards 87.
    .. [3] Knapp, Hartung (2003), Improved tests for a random effects meta-regression, Statistics
       in Medicine 22.
    .. [4] Higgins, Thompson, Spiegelhalter (2009), A re-evaluation of random-effects
       meta-analysis, Journal of the Royal Statistical Society A 172.
    """

    parts: int
    mean: Interval
    tau: float  # In the units of the analysis: log odds for AUROC, logarithms for O:E.
    new: Interval


def random_effects(
    values: Float[np.ndarray, " part"],
    errors: Float[np.ndarray, " part"],
    level: float = LEVEL,
    back: Callable[[Any], Any] = lambda x: x,
) -> RandomEffects | None:
    """Random-effects mean, spread and prediction interval of a figure; None below three parts.

    ``errors`` are standard errors. Parts without a finite value and a positive finite error are
    left out. ``back`` maps the mean and all ends to the reported scale; tau stays in the units of
    ``values``.

    >>> found = random_effects(np.array([1.0, 2.0, 3.0]), np.full(3, 0.1))
    >>> round(found.tau, 2), round(found.mean.value, 2)
    (0.99, 2.0)
    """
    known = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    y, variance = values[known], errors[known] ** 2
    if y.size < MIN_PARTS:
        return None

    def excess(tau_squared: float) -> float:
        weights = 1 / (variance + tau_squared)
        centre = weights @ y / weights.sum()
        return float(weights @ (y - centre) ** 2 - (y.size - 1))

    tau_squared = 0.0
    if excess(0.0) > 0:
        tau_squared = float(brentq(excess, 0.0, y.size * np.ptp(y) ** 2))
    weights = 1 / (variance + tau_squared)
    centre = float(weights @ y / weights.sum())
    # The factor of Hartung and Knapp is 1 with this variance, and below 1 where it is 0.
    error = 1 / np.sqrt(weights.sum())
    half = stdtrit(y.size - 1, 0.5 + level / 2) * error
    away = stdtrit(y.size - 2, 0.5 + level / 2) * np.sqrt(tau_squared + error**2)
    ends = [back(np.array([centre, centre - d, centre + d])).tolist() for d in (half, away)]
    tau = float(np.sqrt(tau_squared))
    return RandomEffects(int(y.size), Interval(*ends[0]), tau, Interval(*ends[1]))


@dataclass(frozen=True)
class RowsOf:
    """A part of some rows."""

    name: str
    inside: Positive
    exchangeable: bool = True
    """Whether it is one of many alike, such as a centre, and not a range or a rest."""


@dataclass(frozen=True)
class Part:
    """Performance in one part of the rows."""

    name: str
    performance: EventPerformance
    width: float
    """Mean width of the intervals of the probability; NaN where there are none."""
    exchangeable: bool

    MIN_EVENTS: ClassVar = 10
    """Minimum number of events, and of rows without one, for a usable estimate."""

    @property
    def few(self) -> bool:
        """Whether it has too few events, or rows without one, to tell much."""
        events = self.performance.events
        return min(events, self.performance.rows - events) < self.MIN_EVENTS


@dataclass(frozen=True)
class Parts:
    """Performance of an event part by part, and how much it differs from part to part."""

    by: str
    parts: tuple[Part, ...]
    spread: Mapping[str, RandomEffects]
    """By figure, over parts that are exchangeable and not few; empty for fewer than three."""

    MIN_EVENTS_FOR_CALIBRATION: ClassVar = 100
    """Events, and rows without one, from which calibration can be judged [1]_.

    .. [1] Collins, Ogundimu, Altman (2016), Sample size considerations for the external validation
       of a multivariable prognostic model, Statistics in Medicine 35.
    """

    @property
    def with_widths(self) -> bool:
        """Whether there are intervals."""
        return any(subset.width == subset.width for subset in self.parts)


def performance_by(
    by: str,
    subsets: Iterable[RowsOf],
    forecasts: EventForecasts,
    widths: Float[np.ndarray, " obs"] | None = None,
) -> Parts:
    """Performance in every subset that has rows, and random effects of the figures over subsets.

    Random effects are over the exchangeable subsets with enough events and rows without one; there
    are none for fewer than three such subsets. Their intervals have 90 %, whatever the level of the
    forecasts is. Of their thresholds the first is used. ``widths`` are widths of the intervals of
    the probabilities.
    """
    at_first = replace(forecasts, thresholds=forecasts.thresholds[:1])
    records = tuple(
        Part(
            subset.name,
            at_first.take(subset.inside).performance,
            np.nan if widths is None else float(widths[subset.inside].mean()),
            subset.exchangeable,
        )
        for subset in subsets
        if subset.inside.any()
    )
    telling = [record.performance for record in records if record.exchangeable and not record.few]
    if len(telling) < MIN_PARTS:
        return Parts(by, records, {})
    spread = {}
    events, rows = np.array([(figures.events, figures.rows) for figures in telling]).T
    # Clips AUROCs of 0 and 1, whose log odds are infinite.
    half_a_pair = 0.5 / (events * (rows - events))[:, None]
    scales: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "AUROC": (lambda x: logit(np.clip(x, half_a_pair, 1 - half_a_pair)), expit),
        "calibration intercept": (lambda x: x, lambda x: x),
        "calibration slope": (lambda x: x, lambda x: x),
        "observed over expected events (O:E)": (np.log, np.exp),
    }
    for figure, (there, back) in scales.items():
        ends = there(np.array([list(vars(record.figures[figure]).values()) for record in telling]))
        errors = (ends[:, 2] - ends[:, 1]) / (2 * ndtri(0.5 + forecasts.level / 2))
        if (combined := random_effects(ends[:, 0], errors, back=back)) is not None:
            spread[figure] = combined
    return Parts(by, records, spread)

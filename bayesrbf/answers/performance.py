r"""Performance of class probabilities on labelled rows: one record, with its intervals.

The record of an event, one class against the rest, has what STRATOS calls essential: AUROC, a
calibration plot, net benefit with a decision curve, and the probabilities of each outcome [1]_;
beside them scores, calibration in the large and slope, and decisions at thresholds.

Intervals are of the rows as a sample: that other rows would have trained another model is not in
them. Where rows have groups, an interval is as wide as that of resampled groups, too.

.. [1] Van Calster et al. (2025), Evaluation of performance measures in predictive artificial
   intelligence models to support medical decisions: overview and guidance, Lancet Digital Health.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from bayesrbf.answers.scores import (
    LEVEL,
    NONE,
    DecisionCurve,
    Interval,
    Positive,
    ReliabilityCurve,
    Score,
    auroc,
    average_precision,
    calibration,
    decision_curve,
    mean,
    proportion,
    slope,
)
from bayesrbf.base.arrays import (
    MIN_DISPUTED_PROBABILITY,
    MIN_SCORED_PROBABILITY,
    Labels,
    Probabilities,
    brier,
    correct,
    log_loss,
    log_odds,
)
from bayesrbf.fit.calibration import softmax_regression

# How often an event happens where it is said to have some probability, as a smooth curve.


KNOTS: Final = {
    3: (0.1, 0.5, 0.9),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
}
"""Quantiles of the log odds at which a spline has its knots, by their number [2]_."""
FEW: Final = 30
SOME: Final = 100
"""Rows below which there are three knots, and four."""
GRID: Final = 101
SHOWN: Final = (0.01, 0.99)
"""Quantiles of the log odds between which the curve is drawn."""
BEND: Final = 0.1
"""Prior standard deviation of the bend of the curve over that of its line."""
FURTHEST: Final = 40.0
"""Bound of the search for log odds."""


@dataclass(frozen=True)
class CalibrationCurve:
    """Smooth frequency of an event by its probability, and how far the two are apart."""

    probability: Float[np.ndarray, " point"]
    observed: Float[np.ndarray, " point"]
    lower: Float[np.ndarray, " point"]
    """Lower end of the band, which holds at each point by itself."""
    upper: Float[np.ndarray, " point"]
    ici: float
    """Mean distance of curve and probability over the rows: integrated calibration index."""
    e50: float  # Median distance.
    e90: float  # Distance that nine rows in ten do not exceed.


def calibration_curve(
    score: Score,
    positive: Positive,
    level: float = LEVEL,
    subjects: Int[np.ndarray, " obs"] | None = None,
) -> CalibrationCurve | None:
    r"""Frequency of an event by its probability: logistic regression on a spline of the log odds.

    The spline is cubic between at most five knots, and linear beyond the outer ones [2]_. The
    integrated calibration index is the mean of :math:`|\hat f(p_i) - p_i|` over the rows, with its
    quantiles E50 and E90 [3]_. None where all rows or none are events, or all probabilities are
    equal. With ``subjects`` the band is by sums of row scores within a subject (a sandwich).

    .. [2] Harrell (2015), Regression modeling strategies, 2nd edition, section 2.4.
    .. [3] Austin, Steyerberg (2019), The integrated calibration index and related metrics,
       Statistics in Medicine 38.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=4000)
    >>> right = calibration_curve(p, rng.random(4000) < p)
    >>> timid = calibration_curve(0.25 + 0.5 * p, rng.random(4000) < p)
    >>> right.ici < 0.02, round(timid.ici, 2)
    (True, 0.12)
    """
    x = log_odds(score, MIN_DISPUTED_PROBABILITY)
    if positive.all() or not positive.any() or np.ptp(x) == 0:
        return None
    number = min(3 if x.size < FEW else 4 if x.size < SOME else 5, np.unique(x).size)
    knots = np.zeros(0)  # of two values a line is all that can be told
    if number > 2 and x.size > number:
        knots = np.unique(np.quantile(x, KNOTS[number], method="inverted_cdf"))
    low, high = np.quantile(x, SHOWN).tolist()  # the outermost rows tell little of it
    grid = np.linspace(low, high, GRID)
    # Columns are orthogonal. Of the prior's standard deviation of 10, which says hardly anything of
    # the line, the bend has a tenth: where the event is nearly certain nothing else bounds it.
    basis, triangle = np.linalg.qr(spline_basis(x, knots))
    size = np.sqrt(x.size) * np.where(np.arange(basis.shape[1]) < 2, 1.0, BEND)
    basis *= size
    on_grid = np.linalg.solve(triangle.T, spline_basis(grid, knots).T).T * size
    design = np.stack([np.zeros_like(basis), basis], axis=1)
    target = np.column_stack([~positive, positive]).astype(float)
    start = np.zeros(basis.shape[1])
    mode, covariance = softmax_regression(design, target, np.ones(x.size), start)
    if subjects is not None:
        row_scores = basis * (expit(basis @ mode) - positive)[:, None]
        sums = np.stack([np.bincount(subjects, column) for column in row_scores.T], axis=1)
        covariance = covariance @ (sums.T @ sums) @ covariance
    centre = on_grid @ mode
    half = ndtri(0.5 + level / 2) * np.sqrt(np.einsum("ni,ij,nj->n", on_grid, covariance, on_grid))
    away = np.abs(expit(basis @ mode) - score)
    return CalibrationCurve(
        probability=expit(grid),
        observed=expit(centre),
        lower=expit(centre - half),
        upper=expit(centre + half),
        ici=float(away.mean()),
        e50=float(np.median(away)),
        e90=float(np.quantile(away, 0.9)),
    )


def spline_basis(
    x: Float[np.ndarray, " obs"], knots: Float[np.ndarray, " knot"]
) -> Float[np.ndarray, "obs coefficient"]:
    """Design matrix: intercept, x, and cubic splines that are linear beyond the outer knots.

    With fewer than three knots there is no spline.

    >>> spline_basis(np.array([0.0, 5.0, 6.0, 7.0]), np.array([0.0, 1.0, 2.0]))[:, 2]
    array([0. , 6. , 7.5, 9. ])
    """
    columns = [np.ones_like(x), x]
    if knots.size > 2:
        *inner, before, last = knots.tolist()

        def cube(knot: float) -> Float[np.ndarray, " obs"]:
            return np.maximum(x - knot, 0.0) ** 3 / (last - knots[0]) ** 2

        for knot in inner:
            share = (last - knot) / (last - before)
            columns.append(cube(knot) - share * cube(before) + (share - 1) * cube(last))
    return np.column_stack(columns)


# Scores, calibration and decisions of one event.


BINS: Final = 20
"""Bars of the probabilities of each outcome."""
THRESHOLDS: Final = np.linspace(0.01, 0.99, 99)
"""Thresholds of decision curves."""
SUM_BY_ROUNDING: Final = 1e-3
"""Distance of a sum of probabilities from 1 that single precision may leave."""
RESAMPLES: Final = 200
"""Resamples of groups."""


@dataclass(frozen=True)
class AtThreshold:
    """Decisions to act where the probability of the event is at least a threshold."""

    threshold: float
    called: Interval  # Share of the rows that are acted on.
    sensitivity: Interval
    specificity: Interval
    ppv: Interval
    npv: Interval
    net_benefit: Interval  # In events found for each row.
    everybody: float  # Net benefit of acting on every row.


@dataclass(frozen=True)
class EventPerformance:
    """Performance of the probabilities of one event."""

    event: str
    rows: int
    events: int
    expected: float
    """Sum of the probabilities."""
    auroc: Interval
    average_precision: Interval
    brier: Interval
    """Mean of ``(p - y)^2``."""
    scaled_brier: Interval
    """``1 - Brier / Brier of the share of events``: 1 is perfect, 0 is useless."""
    log_loss: Interval
    """In nats a row."""
    intercept: Interval
    """Calibration in the large: what the log odds lack on average; 0 is right."""
    slope: Interval
    """Calibration slope; 1 is right."""
    observed_to_expected: Interval
    """Events over the sum of the probabilities (O:E), with the intercept's interval; 1 is right."""
    sensitivity: Interval
    """Sensitivity of the decisions; specificity and predictive values likewise."""
    specificity: Interval
    ppv: Interval
    npv: Interval
    reliability: ReliabilityCurve
    """Observed frequency by probability, in groups of rows."""
    curve: CalibrationCurve | None
    """Smooth calibration curve."""
    distribution: Int[np.ndarray, "outcome bin"]
    """Rows without and with the event by probability, in bars from 0 to 1."""
    thresholds: tuple[AtThreshold, ...]
    decision_curve: DecisionCurve

    @property
    def as_often(self) -> bool:
        """Whether events may have come as often as expected: the interval of O:E holds 1."""
        return not (self.observed_to_expected.upper < 1 or self.observed_to_expected.lower > 1)

    @property
    def at(self) -> AtThreshold:
        """The first of the thresholds."""
        return self.thresholds[0]

    @property
    def figures(self) -> dict[str, Interval]:
        """Scores and calibration, by their names in words."""
        return {name: getattr(self, field) for field, name in FIGURES.items()}

    @property
    def decisions(self) -> dict[str, Interval]:
        """Sensitivity, specificity, PPV and NPV of the decisions, by these names."""
        return {
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "PPV": self.ppv,
            "NPV": self.npv,
        }


Named = dict[str, Interval]


def event_performance(
    event: str,
    score: Score,
    positive: Positive,
    *,
    decided: Positive | None = None,
    thresholds: Sequence[float] = (0.5,),
    subjects: Int[np.ndarray, " obs"] | None = None,
    level: float = LEVEL,
) -> EventPerformance:
    """Performance of the probabilities of an event: discrimination, calibration, decisions.

    ``decided`` rows are called events; by default those at the first threshold or above. With
    ``subjects`` intervals are at least as wide as quantiles over bootstrap resamples of subjects.
    """
    called = score >= thresholds[0] if decided is None else decided
    subjects = several(subjects)

    def figures(rows: Any, level: float) -> Named:
        """Figures of some rows by name; the index of a threshold precedes names at a threshold."""
        p, happened = score[rows], positive[rows]
        named = {**_scores(p, happened, level), **_calibration(p, happened, level)}
        named |= _decisions(called[rows], happened, level)
        for index, threshold in enumerate(thresholds):
            at = _decisions(p >= threshold, happened, level)
            at |= {"net_benefit": mean(net_benefit(p, happened, threshold), level)}
            named |= {f"{index} {name}": figure for name, figure in at.items()}
        return named

    named = figures(slice(None), level)
    if subjects is not None:
        named = _as_wide(named, figures, subjects, level)
    named["observed_to_expected"] = _observed_to_expected(
        score, positive, named["intercept"], level
    )
    field_names = {field.name for field in fields(EventPerformance)}
    at_thresholds = tuple(
        AtThreshold(
            threshold=float(threshold),
            everybody=float(net_benefit(np.ones_like(score), positive, threshold).mean()),
            **{
                name: named[f"{index} {name}"]
                for name in ("called", "sensitivity", "specificity", "ppv", "npv", "net_benefit")
            },
        )
        for index, threshold in enumerate(thresholds)
    )
    edges = np.linspace(0, 1, BINS + 1)
    both = [np.histogram(score[kind], edges)[0] for kind in (~positive, positive)]
    return EventPerformance(
        event=event,
        rows=score.size,
        events=int(positive.sum()),
        expected=float(score.sum()),
        reliability=reliability(score, positive, level),
        curve=calibration_curve(score, positive, level, subjects),
        distribution=np.array(both),
        thresholds=at_thresholds,
        decision_curve=decision_curve(score, positive, THRESHOLDS, level, subjects),
        **{name: figure for name, figure in named.items() if name in field_names},
    )


@dataclass(frozen=True)
class EventForecasts:
    """Probabilities of an event for some rows, and whether it happened."""

    event: str
    p: Score
    happened: Positive
    thresholds: Sequence[float] = (0.5,)
    subjects: Int[np.ndarray, " obs"] | None = None
    level: float = LEVEL

    def take(self, rows: Bool[np.ndarray, " obs"]) -> EventForecasts:
        """Forecasts of some of the rows."""
        subjects = None if self.subjects is None else self.subjects[rows]
        return replace(self, p=self.p[rows], happened=self.happened[rows], subjects=subjects)

    @property
    def performance(self) -> EventPerformance:
        """Figures of these rows, decided at the first threshold."""
        return event_performance(
            self.event,
            self.p,
            self.happened,
            thresholds=self.thresholds,
            subjects=self.subjects,
            level=self.level,
        )


def reliability(score: Score, positive: Positive, level: float = LEVEL) -> ReliabilityCurve:
    """Observed frequency of an event by its probability, in ten groups of rows at most."""
    both = np.column_stack([1 - score, score])
    return calibration(both, positive.astype(int), prob=level).curves[1]


def several(subjects: Int[np.ndarray, " obs"] | None) -> Int[np.ndarray, " obs"] | None:
    """Groups by numbers from 0; None where every row, or all of them, are one group."""
    if subjects is None:
        return None
    found, numbers = np.unique(subjects, return_inverse=True)
    return numbers if 1 < found.size < numbers.size else None


def group_numbers(groups: object) -> Int[np.ndarray, " obs"] | None:
    """Group number of each row, another one for each row without a group; None if all differ.

    The result is None, too, if all rows are of one group.

    >>> group_numbers(["a", None, "b", "a", None])
    array([0, 2, 1, 0, 3])
    """
    cells = np.asarray(groups, dtype=object)
    missing = np.array([cell is None or cell != cell for cell in cells], dtype=bool)
    numbers = np.zeros(cells.size, dtype=int)
    known, numbers[~missing] = np.unique(cells[~missing].astype(str), return_inverse=True)
    numbers[missing] = known.size + np.arange(missing.sum())
    return several(numbers)


def _scores(score: Score, positive: Positive, level: float) -> Named:
    """AUROC, average precision, Brier score, scaled Brier score and log loss (nats), by name."""
    y = positive.astype(float)
    both = np.column_stack([1 - score, score])
    squares, share = (score - y) ** 2, float(y.mean())
    scaled = NONE
    if 0 < share < 1:
        worst = share * (1 - share)
        # To first order the scaled score is a mean of what each row adds to it.
        rows = (squares.mean() - squares) / worst
        rows += squares.mean() * (1 - 2 * share) * (y - share) / worst**2
        around = mean(rows, level)
        value = 1 - float(squares.mean()) / worst
        scaled = Interval(value, value + around.lower, value + around.upper)
    return {
        "auroc": auroc(score, positive, level),
        "average_precision": average_precision(score, positive, level),
        "brier": mean(squares, level),
        "scaled_brier": scaled,
        "log_loss": mean(log_loss(both, positive.astype(int)), level),
    }


def _calibration(score: Score, positive: Positive, level: float) -> Named:
    """Calibration intercept and slope, by name; NaN where all rows or none are events."""
    both = np.column_stack([1 - score, score])
    has_both = 0 < positive.sum() < positive.size
    return {
        "intercept": _intercept(score, positive, level),
        "slope": slope(both, positive.astype(int), level) if has_both else NONE,
    }


def _observed_to_expected(
    score: Score, positive: Positive, intercept: Interval, level: float
) -> Interval:
    """Ratio of observed to expected events, the sum of the probabilities; NaN if that is 0.

    The ends are the events expected at the ends of the intercept's interval over that sum. So 1 is
    outside where 0 is outside of the intercept's interval. Where all rows or none are events, there
    is no intercept, and the ends are by Wilson's interval of the share of events.
    """
    expected = float(score.sum())
    if expected == 0:
        return NONE
    if np.isnan(intercept.value):
        share = proportion(float(positive.mean()), positive.size, level)
        return Interval(*(end * positive.size / expected for end in vars(share).values()))
    x = log_odds(score, MIN_SCORED_PROBABILITY)
    lower, upper = (float(expit(x + end).sum()) for end in (intercept.lower, intercept.upper))
    return Interval(float(positive.sum()) / expected, lower / expected, upper / expected)


def _intercept(score: Score, positive: Positive, level: float) -> Interval:
    """The a of ``y ~ expit(a + logit p)``, and its interval by the curvature of the likelihood.

    NaN where all rows or none are events.
    """
    if positive.all() or not positive.any():
        return NONE
    x = log_odds(score, MIN_SCORED_PROBABILITY)
    ends = -FURTHEST - x.max(), FURTHEST - x.min()
    value = float(brentq(lambda a: expit(x + a).sum() - positive.sum(), *ends))
    q = expit(x + value)
    half = float(ndtri(0.5 + level / 2) / np.sqrt((q * (1 - q)).sum()))
    return Interval(value, value - half, value + half)


def _decisions(decided: Positive, positive: Positive, level: float) -> Named:
    """Share called events, sensitivity, specificity, PPV and NPV, by name; NaN without rows."""

    def share(holds: Positive) -> Interval:
        return proportion(float(holds.mean()), holds.size, level) if holds.size else NONE

    return {
        "called": share(decided),
        "sensitivity": share(decided[positive]),
        "specificity": share(~decided[~positive]),
        "ppv": share(positive[decided]),
        "npv": share(~positive[~decided]),
    }


def net_benefit(score: Score, positive: Positive, threshold: float) -> Float[np.ndarray, " obs"]:
    """Contribution of every row to the net benefit of acting at a threshold."""
    odds = threshold / (1 - threshold)
    return np.where(score >= threshold, np.where(positive, 1.0, -odds), 0.0)


def _as_wide(
    named: Named,
    figures: Callable[[Any, float], Named],
    subjects: Int[np.ndarray, " obs"],
    level: float,
) -> Named:
    """Intervals by name, widened to the quantiles of ``figures`` over resampled subjects."""
    drawn = [figures(rows, level) for rows in resampled(subjects)]
    tails = [0.5 - level / 2, 0.5 + level / 2]
    wide = {}
    for name, interval in named.items():
        values = np.array([draw[name].value for draw in drawn])
        lower, upper = interval.lower, interval.upper
        if not np.isnan(values).all():
            ends = np.nanquantile(values, tails)
            lower, upper = float(np.fmin(lower, ends[0])), float(np.fmax(upper, ends[1]))
        wide[name] = replace(interval, lower=lower, upper=upper)
    return wide


def as_wide(
    figure: Callable[[Any], Interval], subjects: Int[np.ndarray, " obs"] | None, level: float
) -> Interval:
    """Interval of a figure of some rows, widened to its quantiles over resampled groups."""
    interval, numbers = figure(slice(None)), several(subjects)
    if numbers is None:
        return interval
    return _as_wide({"": interval}, lambda rows, _: {"": figure(rows)}, numbers, level)[""]


def resampled(
    subjects: Int[np.ndarray, " obs"] | None, n_rows: int = 0, n: int = RESAMPLES, seed: int = 0
) -> Iterator[Int[np.ndarray, " some"]]:
    """Positions of the rows of ``n`` bootstrap samples; whole subjects are drawn, else rows.

    ``n_rows`` is the number of rows, and is read without ``subjects`` only.

    >>> rows = next(resampled(np.array([0, 0, 1, 1])))
    >>> rows.size, (rows[::2] % 2 == 0).all()
    (4, np.True_)
    """
    rng = np.random.default_rng(seed)
    subjects = np.arange(n_rows) if subjects is None else subjects
    _, subject, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    of_group = np.split(np.argsort(subject, kind="stable"), counts.cumsum()[:-1])
    for _ in range(n):
        chosen = rng.integers(counts.size, size=counts.size)
        yield np.concatenate([of_group[group] for group in chosen])


# The record of all classes, and its function for anybody's probabilities.


@dataclass(frozen=True)
class Performance:
    """Performance of class probabilities on labelled rows; the result of :func:`performance`.

    ``print`` shows it as text.

    Attributes
    ----------
    rows : int
        Number of rows.
    level : float
        Probability inside the intervals.
    groups : int or None
        Number of groups, where rows have some.
    accuracy, log_loss, brier : Interval
        Share of rows whose most probable class is right, log loss in nats, and Brier score: the
        mean of ``(p - y)^2`` for two classes, summed over the classes for more.
    events : tuple of records
        One event for two classes, every class against the rest for more: ``auroc``,
        ``average_precision``, ``brier``, ``scaled_brier``, ``log_loss``, ``intercept``, ``slope``
        and ``observed_to_expected``, each with an interval; ``curve``, ``distribution``,
        ``thresholds`` and ``decision_curve``.
    reliability : record
        Said against come true, of the event or of the most probable one of more classes.
    """

    rows: int
    level: float
    groups: int | None
    accuracy: Interval
    log_loss: Interval
    brier: Interval
    events: tuple[EventPerformance, ...]
    reliability: ReliabilityCurve

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values and arrays."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.rows} rows; intervals of {100 * self.level:g} %"]
        for event in self.events:
            lines += [f"{event.event}: {event.events} events, {event.expected:.1f} expected"]
            for name, figure in event.figures.items():
                between = f"({figure.lower:.3f} to {figure.upper:.3f})"
                lines.append(f"  {name:<42} {figure.value:.3f} {between}")
            if event.curve is not None:
                curve = f"{event.curve.ici:.3f}, {event.curve.e50:.3f}, {event.curve.e90:.3f}"
                lines.append(f"  {'ICI, E50, E90':<42} {curve}")
            for at in event.thresholds:
                right = f"sensitivity {at.sensitivity.value:.3f}, specificity"
                right = f"{right} {at.specificity.value:.3f}, PPV {at.ppv.value:.3f}, NPV"
                right = f"{right} {at.npv.value:.3f}, net benefit {at.net_benefit.value:.4f}"
                lines.append(f"  at {at.threshold:g}: {right}")
        return "\n".join(lines)


FIGURES: Final = {
    "auroc": "AUROC",
    "brier": "Brier score",
    "scaled_brier": "scaled Brier score",
    "log_loss": "log loss, nats",
    "observed_to_expected": "observed over expected events (O:E)",
    "intercept": "calibration intercept",
    "slope": "calibration slope",
}
"""Figures of a table, with their names in words."""


def performance_of(
    p: Probabilities,
    labels: Labels,
    classes: Sequence[str],
    *,
    shown: Sequence[int] | None = None,
    decided: Labels | None = None,
    thresholds: Sequence[float] = (0.5,),
    subjects: Int[np.ndarray, " obs"] | None = None,
    level: float = LEVEL,
) -> Performance:
    """Performance of class probabilities: figures of all classes, and of each class as the event.

    ``labels`` and ``decided`` are codes of classes. ``shown`` are the codes of the classes that are
    events in turn, by default all. ``decided`` is not used for two classes.
    """
    shown = range(len(classes)) if shown is None else shown
    n_groups = None if subjects is None else int(np.unique(subjects).size)

    def of_rows(figure: Callable[[Any], Interval]) -> Interval:
        return as_wide(figure, subjects, level)

    right, losses, squares = correct(p, labels), log_loss(p, labels), brier(p, labels)
    events = tuple(
        event_performance(
            str(classes[c]),
            p[:, c],
            labels == c,
            # Of two classes a threshold decides, which rounding may move at a tie.
            decided=None if decided is None or len(classes) == 2 else decided == c,
            thresholds=thresholds,
            subjects=subjects,
            level=level,
        )
        for c in shown
    )
    top = p.max(axis=1)
    is_top = labels == p.argmax(axis=1)
    return Performance(
        rows=labels.size,
        level=level,
        groups=n_groups,
        accuracy=of_rows(lambda rows: proportion(float(right[rows].mean()), labels.size, level)),
        log_loss=of_rows(lambda rows: mean(losses[rows], level)),
        brier=of_rows(lambda rows: mean(squares[rows], level)),
        events=events,
        reliability=events[0].reliability if len(events) == 1 else reliability(top, is_top, level),
    )


def performance(
    y: object,
    p: object,
    *,
    classes: Sequence[object] | None = None,
    event: object = None,
    thresholds: float | Sequence[float] = (0.5,),
    groups: object = None,
    level: float = LEVEL,
) -> Performance:
    """Judge anybody's class probabilities on labelled rows: the record of ``report``.

    Parameters
    ----------
    y : array-like of shape (n_obs,)
        Labels.
    p : array-like of shape (n_obs,) or (n_obs, n_classes)
        Probabilities of the event, or of every class.
    classes : sequence, optional
        Classes in the order of the columns of ``p``; by default those of ``y``, sorted.
    event : object, optional
        The class that is the event; by default the last of two, and each of more.
    thresholds : float or sequence of float
        Probabilities of the event from which one acts, strictly between 0 and 1.
    groups : array-like of shape (n_obs,), optional
        Group of each row, such as its patient: intervals are then as wide as those of resampled
        groups, too.
    level : float
        Probability inside the intervals.

    Returns
    -------
    Performance
        A frozen record; ``print`` shows it.

    Raises
    ------
    ValueError
        If labels, probabilities or thresholds cannot be used together.

    Examples
    --------
    >>> import bayesrbf
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> y = np.where(rng.random(500) < p, "sick", "well")
    >>> found = bayesrbf.performance(y, p, event="sick", classes=["well", "sick"])
    >>> sick = found.events[0]
    >>> round(sick.auroc.value, 2), sick.slope.lower < 1 < sick.slope.upper
    (0.84, True)
    """
    labels, values = np.asarray(y), np.asarray(p, dtype=float)
    cutoffs: list[float] = np.atleast_1d(np.asarray(thresholds, dtype=float)).tolist()
    present = {label for label in labels.ravel().tolist() if label is not None and label == label}
    known = list(sorted(present, key=str) if classes is None else classes)
    if len(known) < 2:
        raise ValueError(
            f"performance(classes=...) must name the two classes, or more, of which y has "
            f"{', '.join(map(str, known)) or 'none'} alone."
        )
    if values.ndim == 1 and len(known) == 2:
        last = known[-1] if event is None else event
        values = np.column_stack([1 - values, values])
        known = sorted(known, key=lambda label: label == last)  # stable: the event comes last
    problem = _unusable(labels, values, known, event, cutoffs, level)
    if problem:
        raise ValueError(f"performance(...): {problem}")
    codes = np.array([known.index(label) for label in labels.tolist()])
    shown = range(len(known)) if len(known) > 2 else [1]
    if event is not None:
        shown = [known.index(event)]
    subjects = None
    if groups is not None:
        shape = np.asarray(groups, dtype=object).shape
        if shape != codes.shape:
            raise ValueError(
                f"performance(groups=...) must have one entry for each of {codes.size} rows; "
                f"received the shape {shape}."
            )
        subjects = group_numbers(groups)
    return performance_of(
        values,
        codes,
        [str(label) for label in known],
        shown=shown,
        thresholds=cutoffs,
        subjects=subjects,
        level=level,
    )


def _unusable(
    labels: np.ndarray,
    values: np.ndarray,
    known: Sequence[object],
    event: object,
    thresholds: Sequence[float],
    level: float,
) -> str:
    """Message on labels and probabilities that cannot be used together; empty if they can."""
    if labels.ndim != 1 or values.shape != (labels.size, len(known)) or labels.size < 2:
        return (
            f"p must have a probability of the event for each label, or of each of the classes "
            f"{', '.join(map(str, known))}; received shapes {labels.shape} and {values.shape}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()):
        return "p must hold probabilities between 0 and 1, none of them missing."
    if values.shape[1] > 1 and np.abs(values.sum(axis=1) - 1).max() > SUM_BY_ROUNDING:
        return "each row of p must sum to 1."
    if any(label is None or label != label for label in labels.tolist()):
        return "y has missing labels; leave their rows out."
    strange = sorted({str(label) for label in labels.tolist() if label not in known})
    if strange:
        return f"y has labels that are none of the classes: {', '.join(strange[:5])}."
    if event is not None and event not in known:
        return f"event must be one of {', '.join(map(str, known))}; received {event!r}."
    if not (
        len(thresholds) and all(0 < threshold < 1 for threshold in thresholds) and 0 < level < 1
    ):
        return (
            "thresholds, at least one, and level must lie strictly between 0 and 1; received "
            f"{', '.join(f'{threshold:g}' for threshold in thresholds) or 'no threshold'} and "
            f"level {level:g}."
        )
    return ""

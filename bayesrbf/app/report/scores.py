"""Scores of the model and its rivals on held-out rows, and whether probabilities come true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int
from markupsafe import Markup

from bayesrbf.answers.performance import EventPerformance, as_wide
from bayesrbf.answers.scores import Calibration, Interval, calibration, slope
from bayesrbf.app.report.drawing import NARROW, legend
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.options import ANYTHING
from bayesrbf.app.report.performance import reliability
from bayesrbf.app.svg import PlotArea, element, picture
from bayesrbf.app.words import ends, listing, number, percent, plural, with_ends
from bayesrbf.base import names
from bayesrbf.base.arrays import brier, correct, log_loss, mean_over_folds

if TYPE_CHECKING:
    import xarray as xr


FAR_SLOPE = 2.0
"""Calibration slope from which, or its inverse, probabilities are far too timid or extreme."""


Estimate = tuple[float, float]
"""A value and its standard error."""


@dataclass(frozen=True)
class MeanScores:
    """Scores of one classifier on held-out rows, means over folds."""

    name: str
    log_loss: Estimate  # In nats.
    brier: Estimate
    accuracy: Estimate
    slope: Interval
    calibration: Calibration
    grouped: bool = False  # Whether rows have groups: chance of the calibration error counts rows.


@dataclass(frozen=True)
class Check:
    """Predictions for hidden labels against the truth."""

    rows: int  # Whose label was hidden from the model.
    log_loss: float
    accuracy: float
    outside: int  # Rows whose true class got a probability below 0.05.


def compute(
    held_out: HeldOutRows,
    name: str,
    subjects: Int[np.ndarray, " obs"] | None = None,
    level: float = ANYTHING.level,
) -> MeanScores:
    """Scores and calibration of one classifier on the held-out rows."""
    rows = held_out.scored
    p = held_out.probabilities[name][rows]
    labels = held_out.labels[rows]
    folds = held_out.folds[rows]
    return MeanScores(
        name=name,
        log_loss=mean_over_folds(log_loss(p, labels), folds),
        brier=mean_over_folds(brier(p, labels), folds),
        accuracy=mean_over_folds(correct(p, labels), folds),
        slope=as_wide(
            lambda sample: slope(p[sample], labels[sample], level),
            None if subjects is None else subjects[rows],
            level,
        ),
        grouped=subjects is not None,
        calibration=calibration(p, labels, prob=level),
    )


def read_check(job: Job, uncertainty: xr.Dataset) -> Check | None:
    """Predictions for hidden labels against the truth, where it is known."""
    if job.truth is None:
        return None
    unlabelled = job.y.isna().to_numpy()
    if not unlabelled.any():
        return None
    classes = [str(label) for label in uncertainty[names.LABEL].to_numpy()]
    labels = np.array([classes.index(str(label)) for label in job.truth.y[unlabelled]])
    p = uncertainty["probability"].to_numpy()[unlabelled]
    of_truth = p[np.arange(labels.size), labels]
    return Check(
        rows=int(unlabelled.sum()),
        log_loss=float(log_loss(p, labels).mean()),
        accuracy=float(correct(p, labels).mean()),
        outside=int((of_truth < 0.05).sum()),
    )


def calibrated(
    tilt: Interval, errors: Calibration, event: EventPerformance | None = None, *, grouped: bool
) -> bool:
    """Whether slope, calibration error and O:E are compatible with calibrated probabilities.

    Where rows have groups the error does not tell: the chance in it counts rows.
    """
    as_by_chance = (grouped or errors.within_noise) and tilt.lower <= 1 <= tilt.upper
    return as_by_chance and (event is None or event.as_often)


def calibration_words(score: MeanScores, event: EventPerformance | None = None) -> str:
    """The end of a sentence that says whether the probabilities are calibrated."""
    slope = score.slope
    if calibrated(slope, score.calibration, event, grouped=score.grouped):
        return "its probabilities come true as often as they say, as far as these rows can tell"
    if not slope.lower <= 1 <= slope.upper:
        kind = "too extreme" if slope.value < 1 else "too timid"
        much = "somewhat" if 1 / FAR_SLOPE < slope.value < FAR_SLOPE else "far"
        return (
            f"its probabilities are {much} {kind} (slope {number(slope.value)}, "
            f"{ends(slope.lower, slope.upper)}; 1 is right)"
        )
    if event is not None and not event.as_often:
        ratio = event.observed_to_expected
        return (
            f"its probabilities are too {'high' if ratio.upper < 1 else 'low'} (O:E "
            f"{number(ratio.value)}, {ends(ratio.lower, ratio.upper)}; 1 is right)"
        )
    chance = score.calibration.noise
    return (
        f"its probabilities miss by {number(score.calibration.error)} on average, where chance "
        f"makes {ends(*chance)}"
    )


def tell(scores: Sequence[MeanScores]) -> Iterator[tuple[str, str]]:
    """Log loss and calibration by their names."""
    of_model, *of_rivals = scores
    rest = listing([f"{score.name} {number(score.log_loss[0])}" for score in of_rivals])
    yield "log loss", f"{number(of_model.log_loss[0])} nats of surprise ({rest})"
    low, high = map(number, of_model.calibration.noise)
    noise = "" if of_model.grouped else f" (chance alone {low} to {high})"
    yield "calibration error", f"{number(of_model.calibration.error)}{noise}"
    yield "calibration slope", f"{with_ends(of_model.slope)}, 1 is right"


def tell_check(check: Check | None) -> Iterator[tuple[str, str]]:
    """Accuracy on the hidden labels, as a line."""
    if check is not None:
        rows = f"{plural(check.rows, 'row')} that the fit had without their labels"
        yield "hidden labels", f"{percent(check.accuracy)} right, of {rows}"


def figures(scores: Sequence[MeanScores]) -> dict[str, Any]:
    """Figures of the section for JSON."""
    of_model, *of_rivals = scores
    return {
        "rivals": {score.name: {"log loss": score.log_loss[0]} for score in of_rivals},
        "calibration_error": of_model.calibration.error,
        "calibration_error_by_chance": of_model.calibration.noise,
        "calibration_slope": of_model.slope,
    }


def show(
    scores: Sequence[MeanScores], classes: Sequence[str], drawn: list[int], level: float
) -> dict[str, Any]:
    """Log loss and Brier score of all classifiers, and reliability of the classes in ``drawn``."""
    of_model = scores[0].calibration
    rivals = [score.name for score in scores]
    losses, briers = ([getattr(score, name) for score in scores] for name in ("log_loss", "brier"))
    return {
        "log_loss": _comparison(rivals, losses, "log loss (nats)"),
        "brier": _comparison(rivals, briers, "Brier score"),
        "reliability": [reliability(of_model.curves[c], classes[c], c % 8) for c in drawn],
        "band": legend({f"where {percent(level)} of calibrated models would be": "band"}),
    }


def _comparison(names: Sequence[str], values: Sequence[tuple[float, float]], unit: str) -> Markup:
    """Scores of several classifiers with two standard errors on either side; smaller is better."""
    spread = [2 * np.nan_to_num(error) for _, error in values]
    ends = [value + step for (value, _), step in zip(values, spread, strict=True)]
    top, row = 8.0, 42.0
    bottom = top + row * len(names)
    axes = PlotArea((0.0, max(ends) * 1.06), (0.0, 1.0), (10.0, top, NARROW - 14, bottom))
    marks: list[Markup] = []
    for i, (name, (value, _), step) in enumerate(zip(names, values, spread, strict=True)):
        y = top + row * (i + 0.68)
        style = "c0" if i == 0 else "muted"
        low, high = axes.at_x(max(value - step, 0.0)), axes.at_x(value + step)
        label = f"{name}: {number(value)}"
        marks += [
            element("text", label, class_="name", x=axes.box[0] + 3, y=y - 11),
            element("line", class_=f"stroke {style} thick", x1=low, x2=high, y1=y, y2=y),
            element("circle", class_=f"fill {style}", cx=axes.at_x(value), cy=y, r=5),
        ]
    title = f"{unit}: " + "; ".join(
        f"{name} {number(value)} ± {number(error)}"
        for name, (value, error) in zip(names, values, strict=True)
    )
    return picture(NARROW, bottom + 40, title, axes.frame(unit), *marks)

"""Refits: stability of the probabilities, and the learning curve."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from sklearn.base import clone

import bayesrbf
from bayesrbf import Stability
from bayesrbf.app.report.drawing import BOX, MAX_POINTS, WIDE_BOX, WIDE_WIDTH, curve, upright
from bayesrbf.app.report.families import FAMILIES, QUICK_FOLDS, Recipe, refitted_as
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.performance import event_among
from bayesrbf.app.svg import PlotArea, element, picture, points
from bayesrbf.app.words import clipped, number, percent, plural


@dataclass(frozen=True)
class Refits:
    """Fits to samples of the rows, and to tables of the model."""

    stability: Stability | None = None
    recipe: str = ""  # How they were fitted, in a sentence.
    learning: bayesrbf.LearningCurve | None = None  # Where it could be made.


def compute(job: Job, held_out: HeldOutRows) -> Refits:
    """Refits on samples of the rows, or of the groups that were asked for."""
    again, recipe = refitted_as(job)
    event = event_among(held_out, job.focus) if len(held_out.classes) == 2 else None
    stability = bayesrbf.stability(
        Recipe(FAMILIES[job.family].procedure(again)),
        job.X,
        job.y,
        refits=job.stability,
        event=None if event is None else held_out.classes[event.column],
        threshold=0.5 if event is None else event.threshold,
        groups=job.subjects,
        random_state=job.seed,
    )
    return Refits(stability, recipe)


def read_learning(job: Job, model: Any, density: Any) -> bayesrbf.LearningCurve | None:
    """Fits to tables that the density and the model draw; a warning where a class is too rare."""
    recipe = clone(model)
    if FAMILIES[job.family].pools:
        recipe.set_params(cv=min(job.folds, QUICK_FOLDS))
    try:
        return bayesrbf.learning_curve(
            model,
            job.X[job.labels >= 0],
            density=density,
            recipe=recipe,
            repeats=job.curve_tables,
            random_state=job.seed,
        )
    except ValueError as error:
        warnings.warn(f"There is no learning curve: {error}", stacklevel=2)
        return None


def say(refits: Refits) -> dict[str, str]:
    """Message on the stability of probabilities and decisions over refits, with the recipe."""
    if (stability := refits.stability) is None:
        return {"stability": ""}
    event, number_of = stability.largest, len(stability.refits)
    message = (
        f"{plural(number_of, 'refit')} on bootstrap samples of the rows move the probability of "
        f"“{clipped(event.event, 24)}” by {number(event.error.mean())} on average, and change "
        f"{percent(event.changes.mean())} of the decisions at {percent(event.threshold)}. "
        f"{refits.recipe}"
    )
    return {"stability": message}


def tell(refits: Refits) -> Iterator[tuple[str, str]]:
    """Lines on stability and on the learning curve."""
    if refits.stability is not None:
        yield "stability", say(refits)["stability"]
    if refits.learning is not None:
        yield "more rows", refits.learning.sentence


def figures(refits: Refits) -> dict[str, Any]:
    """Figures of the section for JSON."""
    found, curve = refits.stability, refits.learning
    return {
        "stability": None
        if found is None
        else {
            "refits": len(found.refits),
            "failures": found.failures,
            "recipe": refits.recipe,
            "events": {
                event.event: {"threshold": event.threshold, "level": event.level, **event.figures}
                for event in found.events
            },
        },
        "learning_curve": None
        if curve is None
        else {"sentence": curve.sentence, "sizes": curve.sizes, "figures": curve.figures},
    }


def show(refits: Refits) -> dict[str, Any]:
    """Instability of every row, and the learning curve, where there are any."""
    return {
        "stability": _stability(refits.stability) if refits.stability else [],
        "learning": _learning(refits.learning) if refits.learning else None,
    }


def _stability(found: Stability) -> list[Markup]:
    """Instability interval of every row, and the share of the refits that decide it otherwise."""
    event = found.largest
    rows = slice(None, None, -(-event.probability.size // MAX_POINTS))
    unit = np.array([0.0, 1.0])
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), BOX)
    x = list(map(axes.at_x, event.probability[rows].tolist()))
    low, high = event.interval[:, rows]
    bars = [
        element("line", class_="stroke c0 faint", x1=at, x2=at, y1=axes.at_y(a), y2=axes.at_y(b))
        for at, a, b in zip(x, low.tolist(), high.tolist(), strict=True)
    ]
    dots = [
        element("circle", class_="fill c0 faint", cx=at, cy=axes.at_y(share), r=2)
        for at, share in zip(x, event.changes[rows].tolist(), strict=True)
    ]
    across = f"probability of {clipped(event.event, 22)}"
    most = number(event.width.max())
    intervals = axes.frame(across, "by the refits"), *bars, curve(axes, unit, unit, "diagonal")
    decided = axes.frame(across, "share of refits"), *dots, upright(axes, event.threshold)
    return [
        picture(356.0, 274.0, f"Instability intervals, at most {most} wide", *intervals),
        picture(356.0, 274.0, "Share of refits that decide a row otherwise", *decided),
    ]


def _learning(found: bayesrbf.LearningCurve) -> Markup:
    """Log loss above that of the truth by rows, and where the refits are."""
    sizes, (mean, low, high) = found.sizes.astype(float), found.figures["log loss above truth"].T
    top = max(high.max(), 0.001)  # of a truth that is certain there is none
    axes = PlotArea((0.0, sizes[-1]), (0.0, top), WIDE_BOX)
    x, y = axes.at_x, axes.at_y
    edges = points(map(x, np.r_[sizes, sizes[::-1]]), map(y, np.r_[high, low[::-1]]))
    return picture(
        WIDE_WIDTH,
        294.0,
        found.sentence,
        axes.frame("rows", "log loss above truth (nats)"),
        element("polygon", class_="band", points=edges),
        curve(axes, sizes, mean, "line c0"),
        *(
            element("circle", class_="fill c0", cx=x(n), cy=y(loss), r=3.5)
            for n, loss in zip(sizes, mean, strict=True)
        ),
        upright(axes, float(found.n_obs)),
    )

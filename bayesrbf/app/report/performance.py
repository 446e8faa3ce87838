"""Performance on held-out rows: class by class, part by part, beside a score that was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup

from bayesrbf import Performance
from bayesrbf.answers.comparisons import GivenScore, Parts, given_score
from bayesrbf.answers.performance import EventForecasts, EventPerformance, performance_of
from bayesrbf.answers.scores import Interval, ReliabilityCurve
from bayesrbf.app.report.costs import costs_of, decisions
from bayesrbf.app.report.drawing import BOX, SMALL_WIDTH, WIDE_BOX, curve, legend, upright
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.options import Focus
from bayesrbf.app.svg import PlotArea, element, picture, points, rect
from bayesrbf.app.words import clipped, count, listing, number, percent, plural, with_ends

UNVALIDATED: Final = 2
"""Rows of a class up to which nothing that is said of it can be validated."""
MAX_CURVES: Final = 6
"""Classes whose decision curves are drawn: the most frequent."""
FOUND: Final = ("sensitivity", "PPV")
"""Decisions that are told of every one of more than two classes."""
THRESHOLDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Thresholds of the table of decisions, beside the one in use."""


@dataclass(frozen=True)
class Event:
    """The event among two classes, and the threshold of its probability."""

    name: str
    why: str  # In words.
    threshold: float  # At the costs that were given; without any, one half.
    column: int  # Among the classes.


OfClass = tuple[str, EventPerformance, EventPerformance | None]
"""Name of a class, figures of the model, and those of the rival, where there is one."""


@dataclass(frozen=True)
class Judged:
    """Figures of the model and of the best rival, where it has one, with their intervals."""

    model: Performance  # Of two classes only the one of interest is an event.
    rival: Performance | None
    threshold: float | None  # At the costs that were given to two classes.
    event: Event | None  # None for more than two classes.
    confusion: Int[np.ndarray, "label label"]
    """Held-out rows by true (row) and decided (column) class."""

    @property
    def most_frequent(self) -> float:
        """Share of the most frequent class among the rows."""
        of_class = self.confusion.sum(axis=1)
        return float(of_class.max() / max(of_class.sum(), 1))

    @property
    def classes(self) -> list[OfClass]:
        """Name, figures of the model and figures of the rival, by class."""
        events = self.model.events
        rivals = (None,) * len(events) if self.rival is None else self.rival.events
        return [(event.event, event, other) for event, other in zip(events, rivals, strict=True)]

    @property
    def against_rest(self) -> dict[str, EventPerformance]:
        """The model's figures by class: of two the event, of more every one."""
        return {event.event: event for event in self.model.events}

    @property
    def hardest(self) -> OfClass:
        """The class with the lowest AUROC; of two classes the one of interest."""
        every = self.classes
        ranked = [c for c in every if c[1].auroc.value == c[1].auroc.value]
        return min(ranked or every, key=lambda c: c[1].auroc.value)

    @property
    def drawn(self) -> list[OfClass]:
        """The most frequent classes, which have pictures."""
        frequent = sorted(self.classes, key=lambda of_class: -of_class[1].events)
        if self.event is not None:
            return frequent
        return [of_class for of_class in frequent if of_class[1].events > UNVALIDATED][:MAX_CURVES]


def unvalidated(counts: Mapping[str, int]) -> dict[str, int]:
    """Classes of one or two labelled rows, and how many."""
    return {name: rows for name, rows in counts.items() if rows <= UNVALIDATED}


def thresholds_at(threshold: float) -> tuple[float, ...]:
    """The threshold in use, then the usual thresholds."""
    # A threshold from costs equals a usual one but for rounding.
    return (threshold, *(usual for usual in THRESHOLDS if abs(usual - threshold) > 1e-9))


def compute(
    held_out: HeldOutRows,
    focus: Focus,
    model: str,
    rival: str | None,
    groups: Int[np.ndarray, " obs"] | None = None,
) -> Judged:
    """Judge every class against the rest on the held-out rows."""
    rows = held_out.scored
    labels, classes = held_out.labels[rows], list(map(str, held_out.classes))
    event = event_among(held_out, focus) if len(classes) == 2 else None
    threshold = 0.5 if event is None else event.threshold

    decided = {
        name: decisions(held_out.probabilities[name][rows], classes, focus.costs)
        for name in filter(None, (model, rival))
    }

    def judged(name: str) -> Performance:
        return performance_of(
            held_out.probabilities[name][rows],
            labels,
            classes,
            shown=None if event is None else [event.column],
            decided=decided[name],
            thresholds=thresholds_at(threshold),
            subjects=None if groups is None else groups[rows],
            level=focus.level,
        )

    of_model, n_classes = judged(model), len(classes)
    pairs = np.bincount(labels * n_classes + decided[model], minlength=n_classes**2)
    return Judged(
        model=of_model,
        rival=None if rival is None else judged(rival),
        threshold=threshold if event is not None and focus.costs else None,
        event=event,
        confusion=pairs.reshape(n_classes, n_classes),
    )


def event_of(counts: Float[np.ndarray, " label"], classes: Sequence[str], focus: Focus) -> Event:
    """The class that was asked for, else the dearest, else the rarest one; of ties the last."""
    weights = costs_of(classes, focus.costs)
    if focus.event is not None:
        column, why = list(classes).index(focus.event), "as was asked for"
    elif np.ptp(weights) > 0:
        column, why = int(weights.argmax()), "the class whose mistakes cost most"
    else:
        column, why = counts.size - 1 - int(counts[::-1].argmin()), "the rarer class"
        if np.ptp(counts) == 0:
            why = "the last of two equally frequent classes"
    threshold = round(float(1 - weights[column] / weights.sum()), 12)
    return Event(classes[column], why, threshold, column)


def event_among(held_out: HeldOutRows, focus: Focus) -> Event:
    """The event of the rows held out."""
    counts = held_out.trained
    if counts is None:
        labels = held_out.labels[held_out.scored]
        counts = np.bincount(labels, minlength=len(held_out.classes)).astype(float)
    return event_of(counts, list(map(str, held_out.classes)), focus)


def forecasts_of_event(job: Job, held_out: HeldOutRows, model: str) -> EventForecasts:
    """The model's probabilities of the event on the rows held out."""
    rows, event = held_out.scored, event_among(held_out, job.focus)
    return EventForecasts(
        event.name,
        held_out.probabilities[model][rows, event.column],
        held_out.labels[rows] == event.column,
        thresholds_at(event.threshold),
        None if job.subjects is None else job.subjects[rows],
        job.focus.level,
    )


def read_score(job: Job, held_out: HeldOutRows, model: str) -> GivenScore | None:
    """The existing score compared with the model, for two classes; None without a score."""
    if job.score is None or len(held_out.classes) > 2:
        return None
    rows, score = held_out.scored, job.score.to_numpy(dtype=float)
    forecasts = forecasts_of_event(job, held_out, model)
    return given_score(job.score.name, score[rows], forecasts, held_out.folds[rows])


MIN_LEAD: Final = 0.05
"""Share of the log loss of the class frequencies, or of the cost of the answer that is the same for
all rows: a lead over them that may be 0 and may be so large is not known."""


def is_open(lead: Interval, base: float) -> bool:
    """Whether the interval of a lead holds both 0 and a worthwhile share of the loss ``base``."""
    return lead.lower <= 0 and lead.upper >= MIN_LEAD * base


SEPARATED: Final = 0.99
"""AUROC from which it is asked how so good a ranking came about."""


def of_separation(auroc: Interval) -> str:
    """A question where the AUROC is nearly 1; else empty.

    >>> of_separation(Interval(0.8, 0.7, 0.9))
    ''
    """
    if not auroc.value >= SEPARATED:
        return ""
    return (
        f"An AUROC of {number(auroc.value)} is rarely true of new rows: was every column known "
        "before the label, and are rows without the event those that one would ask about, not "
        "controls who are plainly well?"
    )


def few_for_calibration(counts: Sequence[int]) -> str:
    """Reason why rows are too few to judge calibration, by class; empty where they suffice.

    >>> few_for_calibration([8, 92])
    'cannot be judged with 8 rows of the rarer class (about 100 are needed)'
    """
    smallest = sorted(counts)[-2]
    which = "rarer" if len(counts) == 2 else "second most frequent"
    few = f"{plural(smallest, 'row')} of the {which} class"
    needed = f"cannot be judged with {few} (about {Parts.MIN_EVENTS_FOR_CALIBRATION} are needed)"
    return needed if smallest < Parts.MIN_EVENTS_FOR_CALIBRATION else ""


def say(
    performance: Judged, labelled: Mapping[str, int], focus: Focus, *, costs: bool, where: str
) -> dict[str, str]:
    """The rows of every class, held out or new, and the rule by which a row is called so.

    Of classes of too few ``labelled`` rows nothing can be said; empty where there are none.
    """
    rare = [f"“{clipped(c, 24)}” ({plural(n, 'row')})" for c, n in unvalidated(labelled).items()]
    message = f"Nothing that is said of {listing(rare)} can be validated: a class needs more rows."
    messages = {"unvalidated": message if rare else ""}
    event, classes = performance.event, list(labelled)
    rows = performance.confusion.sum(axis=1).tolist()
    judged = f"{plural(sum(rows), 'row')} {where}"
    if event is None:
        class_rows = [f"{clipped(c, 24)} {count(n)}" for c, n in zip(classes, rows, strict=True)]
        rule = "what costs least by expectation" if costs else "what is most probable"
        return messages | {"events": f"{judged}: {listing(class_rows, 8)}. A row is called {rule}."}
    name = clipped(event.name, 24)
    rule = "costs least by expectation" if costs else "is the more probable class"
    called = f"where that {rule} (threshold {percent(event.threshold)})"
    if focus.threshold is not None:
        called = f"from a probability of {percent(event.threshold)} on, as was asked for"
    verb = "is an event" if rows[classes.index(event.name)] == 1 else "are events"
    events = (
        f"{count(rows[classes.index(event.name)])} of {judged} {verb}: an event "
        f"is a row that is “{name}”, {event.why}. A row is called “{name}” {called}."
    )
    return messages | {"events": events}


def tell(
    performance: Judged, before: Judged | None, score: GivenScore | None
) -> Iterator[tuple[str, str]]:
    """Names and figures; figures of new rows with those of held-out training rows."""
    right = with_ends(performance.model.accuracy, percent)
    yield "classified right", f"{right}, by the most probable class"
    earlier = {} if before is None else before.against_rest
    for name, of_class in performance.against_rest.items():
        if (event := performance.event) is not None:
            for word, share in of_class.decisions.items():
                yield word, f"{with_ends(share, percent)}, threshold {percent(event.threshold)}"
        if not np.isnan(of_class.auroc.value):
            clauses = [f"{with_ends(of_class.auroc)}, {clipped(name, 24)} against the rest"]
            if name in earlier:
                clauses.append(f"{with_ends(earlier[name].auroc)} on the training rows held out")
            if event is None:
                shares = ((word, of_class.decisions[word]) for word in FOUND)
                clauses += [f"{word} {with_ends(share, percent)}" for word, share in shares]
            yield "AUROC", "; ".join(clauses)
        if event is not None:
            ratio = with_ends(of_class.observed_to_expected)
            yield "O:E", f"{ratio}, events over those expected, 1 is right"
    if score is not None:
        area, loss = score.differences.auroc, score.differences.log_loss
        beside = f"AUROC {with_ends(area)}, log loss {with_ends(loss)}"
        yield f"less {clipped(score.name, 24)}", beside


def figures(performance: Judged) -> dict[str, Any]:
    """Figures of the section for JSON."""
    model = performance.model
    return {
        "event": performance.event,
        "scores": {
            "log loss": model.log_loss,
            "Brier score": model.brier,
            "share right": model.accuracy,
        },
        "against_rest": performance.against_rest,
    }


def show(
    performance: Judged, rival: str | None, score: GivenScore | None, level: float
) -> dict[str, Any]:
    """Pictures of calibration and of net benefit."""
    event, acted = performance.event, performance.drawn
    come_true = performance.model.reliability  # Of the event, or of the most probable class.
    scores = {} if score is None else {score.name: score.score}
    return {
        "come_true": reliability(come_true, "that class")
        if event is None
        else reliability(come_true, event.name, event.column % 8, performance.hardest[1]),
        "net_benefit": [
            net_benefit(
                of_model,
                [*filter(None, (other, *scores.values()))],
                performance.threshold,
                len(acted) == 1,
            )
            for _, of_model, other in acted
        ],
        "benefit_lines": benefit_lines("this model", level, [*filter(None, (rival, *scores))]),
    }


def benefit_lines(who: str, level: float, other_names: Sequence[str]) -> Markup:
    """Names of the curves of :func:`net_benefit`."""
    marks = {f"{who}, with its {percent(level)} interval": "line c0"}
    marks |= {name: f"line c{series} dash{series}" for series, name in enumerate(other_names, 1)}
    return legend(marks | {"acting on every row": "line muted"})


STRIP: Final = 46.0
"""Height of the bars of each outcome below a reliability diagram."""


def reliability(
    curve: ReliabilityCurve, name: str, series: int = 0, event: EventPerformance | None = None
) -> Markup:
    """Observed share against predicted probability of one class, with its band.

    With the performance of the class there are the smooth curve, with its band, in place of a line
    through the dots, and below it the rows with and without the event by their probability.
    """
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (44.0, 12.0, 284.0, 252.0))
    x, y = axes.at_x, axes.at_y
    outside = int(((curve.observed < curve.lower) | (curve.observed > curve.upper)).sum())
    across = [x(p) for p in curve.predicted]
    widths = 5.0
    bands = [
        rect(centre - widths, y(high), 2 * widths, max(y(low) - y(high), 1.5), "band", rx=2)
        for centre, low, high in zip(across, curve.lower, curve.upper, strict=True)
    ]
    biggest = curve.mass.max()
    dots = [
        element(
            "circle",
            element("title", f"{number(mass)} rows: said {number(p)}, came true {number(share)}"),
            class_=f"fill c{series}",
            cx=centre,
            cy=y(share),
            r=2.5 + 2.5 * float(np.sqrt(mass / biggest)),
        )
        for centre, share, p, mass in zip(
            across, curve.observed, curve.predicted, curve.mass, strict=True
        )
    ]
    title = (
        f"Reliability of {name}: {outside} of {curve.mass.size} groups of rows lie outside "
        "what chance allows"
    )
    line = points(across, [y(share) for share in curve.observed])
    strip = []
    if event is not None:
        strip = _outcomes(event, axes, series)
        if (smooth := event.curve) is not None:
            line = points(map(x, smooth.probability.tolist()), map(y, smooth.observed.tolist()))
            around = np.r_[smooth.probability, smooth.probability[::-1]].tolist()
            edges = np.r_[smooth.upper, smooth.lower[::-1]].tolist()
            veil = points(map(x, around), map(y, edges))
            bands.append(element("polygon", class_=f"veil fill c{series}", points=veil))
    return picture(
        SMALL_WIDTH,
        292.0 + (2 * STRIP if event is not None else 0.0),
        title,
        axes.frame(f"predicted probability of {clipped(name, 22)}", "observed share"),
        *bands,
        element("line", class_="diagonal", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0)),
        element("polyline", class_=f"line c{series}", points=line),
        *dots,
        *strip,
    )


def _outcomes(event: EventPerformance, axes: PlotArea, series: int) -> list[Markup]:
    """Histograms of events (up) and non-events (down), each scaled to its own maximum."""
    rest, events = event.distribution
    middle = axes.box[3] + 40 + STRIP
    wide = (axes.at_x(1.0) - axes.at_x(0.0)) / rest.size
    marks = [element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=middle, y2=middle)]
    for counts, up, style in ((events, True, f"fill c{series}"), (rest, False, "fill muted")):
        for i, rows in enumerate(counts.tolist()):
            high = (STRIP - 12) * rows / max(int(counts.max()), 1)
            y, x = middle - high if up else middle, axes.at_x(i / rest.size)
            marks += [rect(x, y, wide - 1, high, style)] if rows else []
    for text, y in ((clipped(event.event, 36), middle - STRIP + 8), ("others", middle + STRIP - 2)):
        marks.append(element("text", text, class_="tick start", x=axes.box[0], y=y))
    return marks


def net_benefit(
    event: EventPerformance,
    rivals: Sequence[EventPerformance],
    threshold: float | None = None,
    wide: bool = True,
) -> Markup:
    """Net benefit of the model with its interval, of others, and of acting on every row."""
    box = WIDE_BOX if wide else BOX
    found = event.decision_curve
    t = found.thresholds
    # The floor keeps an axis where no threshold has a benefit.
    high = max(float(found.model.max()), float(found.everybody.max()), 1e-3) * 1.15
    low = -0.25 * high
    axes = PlotArea((0.0, 1.0), (low, high), box)

    def inside(values: Float[np.ndarray, " threshold"]) -> Float[np.ndarray, " threshold"]:
        return np.clip(values, low, high)

    across = [axes.at_x(float(at)) for at in np.r_[t, t[::-1]]]
    edges = np.r_[inside(found.upper), inside(found.lower)[::-1]]
    band = points(across, [axes.at_y(float(edge)) for edge in edges])
    zero = axes.at_y(0.0)
    marks = [
        element("polygon", class_="band", points=band),
        element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=zero, y2=zero),
        curve(axes, t[found.everybody > low], found.everybody[found.everybody > low], "line muted"),
        *(
            curve(axes, t, inside(other.decision_curve.model), f"line c{series} dash{series}")
            for series, other in enumerate(rivals, 1)
        ),
        curve(axes, t, inside(found.model), "line c0"),
    ]
    if threshold is not None:
        marks.append(upright(axes, threshold))
    title = (
        f"Net benefit of acting on {event.event}, at most {number(float(found.model.max()))} of a "
        f"row; acting on every row {number(float(found.everybody.max()))}"
    )
    name = f"probability of {clipped(event.event, 22)} from which one acts"
    return picture(
        box[2] + 12, box[3] + 42, title, axes.frame(name, "net benefit of a row"), *marks
    )

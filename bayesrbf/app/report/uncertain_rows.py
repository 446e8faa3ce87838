"""Rows that the model is unsure of, why, and what would help; rows unlike all others.

Beside them stands how often intervals such as theirs hold a known truth, by a rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from markupsafe import Markup
from scipy.special import logit
from sklearn.base import clone

import bayesrbf
from bayesrbf.app.check import OPEN_WIDTH
from bayesrbf.app.report.density import JudgedTable, odd_cell
from bayesrbf.app.report.drawing import MAX_POINTS, WIDE_BOX, WIDE_WIDTH, legend
from bayesrbf.app.report.families import FAMILIES, Drawn
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.learned import component_names
from bayesrbf.app.report.performance import Event, event_among
from bayesrbf.app.svg import PlotArea, element, picture
from bayesrbf.app.words import clipped, count, number, percent, plural
from bayesrbf.base import names
from bayesrbf.fit.probabilities import entropy

if TYPE_CHECKING:
    import xarray as xr


LISTED_ROWS = 20
NEAREST = 5
"""Rows that are listed where fewer are undecided."""
THRESHOLD = 0.9
"""A row counts as unsure where its most probable class has less than this probability."""
WORTH = 0.05
"""Share of the entropy that a measurement must remove to be suggested."""
MIN_DISTANCE_TO_CERTAINTY = 1e-15
"""Entropy of a row that shares of uncertainty are taken of, in nats."""
LACK_OF_DATA = 0.5
"""Share of epistemic entropy from which more labelled rows are suggested: most of it."""
MAX_NOVEL: Final = 10
LISTED_NOVELTY: Final = 0.98
"""Novelty from which a row is listed."""
SURELY_NARROW: Final = 2.0
"""Standard errors from which intervals are told to be too narrow."""
REHEARSED_LEVEL: Final = 0.9
ONE_KIND: Final = (
    "These are intervals if the model is right: they know nothing of how other kinds of models "
    "differ. "
)


@dataclass(frozen=True)
class UnsureRow:
    """A row that the model is least sure of, and what would help."""

    row: str  # What it is called.
    label: str  # Label; empty where hidden.
    predicted: str  # What it is called: the decision, or the most probable class.
    probability: float  # Of the event, else of the most probable class, as are the limits.
    lower: float  # NaN without draws, as is the upper end.
    upper: float
    aleatoric: float  # In nats, as is the epistemic part.
    epistemic: float
    component: str  # The one with the largest responsibility, in words.
    help: str  # In words.


@dataclass(frozen=True)
class NovelRow:
    """A row unlike all others, and the cell that the rest of the row makes least probable."""

    row: str  # What it is called.
    novelty: float
    column: str  # Of that cell, as are the next two.
    value: str
    expected: str
    without: float  # Novelty of the row if that cell were missing.
    alone: bool  # Whether the row would then be no more novel than others.


@dataclass(frozen=True)
class UncertainRows:
    """Uncertainty of rows by fits that had not seen their labels, and the least sure ones."""

    aleatoric: Float[np.ndarray, " obs"]  # In nats, as is the epistemic part.
    epistemic: Float[np.ndarray, " obs"]
    outcome: Int[np.ndarray, " obs"]
    """1 where the held-out prediction was right, 0 wrong, -1 without a label."""
    rows: tuple[UnsureRow, ...]  # The least sure first.
    judged: int  # Held-out rows.
    below: int  # Those whose most probable class has less than ``threshold``.
    threshold: float
    novel: tuple[NovelRow, ...]  # The most novel first.
    intervals: str  # How often they hold the truth, or that this was not tried.
    event: Event | None = None  # Of two classes.
    undecided: int | None = None  # Rows whose interval holds the threshold; None without any.

    @property
    def with_intervals(self) -> bool:
        """Whether rows have intervals and epistemic uncertainty: a point estimate has none."""
        return any(row.lower == row.lower for row in self.rows)

    @property
    def of_rows(self) -> str:
        """How many rows there are, and which, in words."""
        whom = " or without a label" if (self.outcome < 0).any() else ""
        return f"{plural(self.outcome.size, 'row')} held out{whom}"

    def unsettled(self, costs: bool) -> tuple[int, int, str]:
        """Rows that no decision is settled for, of how many, and in which sense."""
        if costs and self.event is not None and self.undecided is not None:
            criterion = f"their intervals hold the threshold of {percent(self.event.threshold)}"
            return self.undecided, len(self.outcome), criterion
        return self.below, self.judged, f"held out; no class reaches {percent(self.threshold)}"


def compute(
    job: Job,
    model: Any,
    judged: JudgedTable,
    held_out: HeldOutRows,
    known: Int[np.ndarray, " row"],
    uncertainty: xr.Dataset,
    intervals: str,
) -> UncertainRows:
    """Epistemic and aleatoric uncertainty of rows, the least sure rows, and advice.

    For an event they are those whose probability is nearest to the threshold in use, else those
    of most entropy. ``uncertainty`` is that of the rows at the positions ``known``.

    Nearest components and the worth of a measurement need a density.
    """
    event = event_among(held_out, job.focus) if len(held_out.classes) == 2 else None
    total = uncertainty["total_entropy"].to_numpy()
    # Without draws nothing is known of the model: all entropy counts as aleatoric.
    epistemic = np.nan_to_num(uncertainty["epistemic_entropy"].to_numpy())
    order = -total
    undecided = None
    if event is not None:
        p, lower, upper = (
            uncertainty[name].to_numpy()[:, event.column]
            for name in (names.PROBABILITY, "lower", "upper")
        )
        order = np.abs(
            logit(np.clip(p, MIN_DISTANCE_TO_CERTAINTY, 1 - MIN_DISTANCE_TO_CERTAINTY))
            - logit(event.threshold)
        )
        undecided = int(((lower < event.threshold) & (event.threshold < upper)).sum())
        undecided = None if np.isnan(lower).all() else undecided
    # Rows that are settled are not listed; some of them show how far they are from it.
    listed = LISTED_ROWS if undecided is None else int(np.clip(undecided, NEAREST, LISTED_ROWS))
    worst = np.argsort(order, kind="stable")[:listed]
    probabilities = next(iter(held_out.probabilities.values()))
    scored, labels = held_out.scored, held_out.labels[known]
    right = uncertainty[names.PROBABILITY].to_numpy().argmax(1) == labels
    outcome = np.where(labels >= 0, right, -1)
    rows = _unsure(job, model, uncertainty.isel(obs=worst), known[worst], event)
    return UncertainRows(
        aleatoric=total - epistemic,
        epistemic=epistemic,
        outcome=outcome,
        rows=rows,
        judged=scored.size,
        below=int((probabilities[scored].max(1) < THRESHOLD).sum()),
        threshold=THRESHOLD,
        novel=novel_rows(job, judged),
        intervals=intervals,
        event=event,
        undecided=undecided,
    )


def _unsure(
    job: Job,
    model: Any,
    uncertainty: xr.Dataset,
    worst: Int[np.ndarray, " row"],
    event: Event | None,
) -> tuple[UnsureRow, ...]:
    """Descriptions of the least sure rows, by the probability of event or likeliest class.

    ``worst`` are their positions in the table.
    """
    has_density = FAMILIES[job.family].has_components
    nearest = _nearest(job.X.iloc[worst], model) if has_density else [""] * len(worst)
    # Shares of the model's own uncertainty: the draws have another, of which a gain is no part.
    model_entropy = np.maximum(
        entropy(model.predict_proba(job.X.iloc[worst])), MIN_DISTANCE_TO_CERTAINTY
    )
    worth = None
    if has_density or FAMILIES[job.family].pools:
        worth = model.acquire_cells(job.X.iloc[worst])["gain"].to_pandas() / model_entropy[:, None]
    result = []
    for position, row in enumerate(worst):
        of_row = uncertainty.isel(obs=position)
        p = of_row[names.PROBABILITY].to_numpy()
        best = decided = int(p.argmax())
        if event is not None:
            best = event.column
            decided = best if p[best] >= event.threshold else 1 - best
        lower, upper = float(of_row["lower"][best]), float(of_row["upper"][best])
        total = max(float(of_row["total_entropy"]), MIN_DISTANCE_TO_CERTAINTY)
        epistemic = float(of_row["epistemic_entropy"])
        label = job.y.iloc[row]
        result.append(
            UnsureRow(
                row=job.row(int(row)),
                label="" if pd.isna(label) else str(label),
                predicted=job.focus.action(model.classes_[decided]),
                probability=float(p[best]),
                lower=lower,
                upper=upper,
                aleatoric=float(of_row["aleatoric_entropy"]),
                epistemic=epistemic,
                component=nearest[position],
                help=what_would_help(
                    {} if worth is None else worth.iloc[position],
                    epistemic / total,
                    (lower, upper),
                    event is not None and (upper < event.threshold or lower > event.threshold),
                ),
            )
        )
    return tuple(result)


def _nearest(X: pd.DataFrame, density: Any) -> list[str]:
    """Name of the component with the largest responsibility for each row."""
    components = component_names(density)
    shares = np.asarray(density.transform(X))
    return [components[component] for component in shares.argmax(axis=1)]


def what_would_help(
    worth: Mapping[str, float] | pd.Series,
    epistemic: float,
    interval: tuple[float, float] = (np.nan, np.nan),
    decided: bool = False,
) -> str:
    """Advice for one row in words: refer it, or what would make its prediction surer.

    Where the interval is on one side of the threshold, which is ``decided``, nothing is advised.

    ``worth`` is the share of the uncertainty that a missing cell takes away, NaN where it is
    observed; ``epistemic`` is the share of the uncertainty that is about the model, NaN without
    draws, as the ends of the interval are.
    """
    if decided:
        return "nothing: its interval is on one side of the threshold"
    lower, upper = interval
    # Classes overlap where no probability inside of the interval is sure.
    unsure = lower > 1 - THRESHOLD and upper < THRESHOLD
    surer = _surer(worth, epistemic, unsure)
    is_open = upper - lower > OPEN_WIDTH
    return f"refer: the interval leaves every answer open; {surer}" if is_open else surer


def _surer(worth: Mapping[str, float] | pd.Series, epistemic: float, overlap: bool) -> str:
    """Advice: the cell, rows or other measurement that would reduce the uncertainty most."""
    gains = {name: gain for name, gain in worth.items() if gain == gain}
    best = max(gains, key=gains.__getitem__, default=None)
    if best is not None and gains[best] > WORTH:
        share = percent(min(float(gains[best]), 1.0))
        return f"measure {clipped(best, 30)}: takes away about {share} of the uncertainty"
    if epistemic > LACK_OF_DATA or (epistemic == epistemic and not overlap):
        return "more labelled rows like it"
    if epistemic != epistemic:
        return (
            "unknown: without intervals of rows held out kinds of uncertainty cannot be separated"
        )
    return "another kind of measurement: the classes overlap here"


def held_out_uncertainty(
    fit: Any, held_out: HeldOutRows, uncertainty: xr.Dataset
) -> tuple[Int[np.ndarray, " row"], xr.Dataset]:
    """Positions of the rows predicted without their label, and uncertainty of these rows.

    Labelled rows were held out; of rows without a label ``uncertainty`` has the answers. Where
    rows that were held out have no interval, no row has one.
    """
    p = next(iter(held_out.probabilities.values()))
    prob = float(uncertainty.attrs["prob"])
    answers = {name: values.to_numpy().copy() for name, values in uncertainty.data_vars.items()}
    found = fit.held_out_summary(p, prob)
    rows = held_out.scored if found is None else found[0]
    answers[names.PROBABILITY][rows] = p[rows]
    answers["total_entropy"][rows] = entropy(p[rows])
    spreads = ("lower", "upper", "aleatoric_entropy", "epistemic_entropy")
    for name in spreads:
        values = np.nan if found is None else getattr(found[1], name.removesuffix("_entropy"))
        answers[name][rows if found else slice(None)] = values
    known = np.union1d(rows, np.flatnonzero(held_out.labels < 0))
    return known, uncertainty.assign(
        {name: (uncertainty[name].dims, values) for name, values in answers.items()}
    ).isel(obs=known)


def novel_rows(job: Job, judged: JudgedTable) -> tuple[NovelRow, ...]:
    """Rows unlike all others, the least probable cells first among equals.

    Of each, its least probable cell is hidden and the row judged anew.
    """
    log_tail = judged.cells["log_tail"].to_numpy()
    order = np.lexsort((np.nansum(log_tail, axis=1), -judged.novelty))[:MAX_NOVEL]
    rows = order[judged.novelty[order] >= LISTED_NOVELTY]
    rows = rows[~np.isnan(log_tail[rows]).all(axis=1)]
    if not rows.size:
        return ()
    least = np.nanargmin(log_tail[rows], axis=1)
    table = judged.table.iloc[rows].assign(**{job.target: None})
    hidden = table.mask(least[:, None] == np.arange(table.shape[1]))
    novel = []
    for row, column, without in zip(rows, least, judged.density.novelty(hidden), strict=True):
        tail = float(np.exp(log_tail[row, column]))
        cell = odd_cell(job, judged.cells, int(row), int(column), tail)
        novel.append(
            NovelRow(
                row=cell.row,
                novelty=float(judged.novelty[row]),
                column=cell.column,
                value=cell.value,
                expected=cell.expected,
                without=float(without),
                alone=bool(without < LISTED_NOVELTY),
            )
        )
    return tuple(novel)


def read_intervals(job: Job, drawn: Drawn) -> str:
    """A sentence on the rehearsal's coverage, or on how to ask for a rehearsal."""
    if drawn.refined.draws_ is None:
        return (
            "No draws were made, so how often intervals hold the truth cannot be tried; "
            f"--inference {FAMILIES[job.family].methods[0]} makes draws."
        )
    if job.rehearse:
        return _rehearsed(job, drawn)
    if_right = ONE_KIND if drawn.refined.fitted_.assumes_model else ""
    return (
        f"{if_right}How often such intervals hold the truth was not tried here: --rehearse tries "
        "it, for the price of six more fits with their draws."
    )


def rehearse(job: Job, drawn: Drawn, n_repeats: int = 2) -> xr.Dataset:
    """Rehearse the model as it was chosen and drawn."""
    model = drawn.refined
    if "missingness" in model.get_params() and not model.fitted_.uses_indicators:
        model = clone(model).set_params(missingness="ignorable")  # labels at random choose anew
    return bayesrbf.rehearse(
        model,
        job.X,
        job.y,
        groups=job.groups,
        inference=drawn.refined.draws_.method,
        n_repeats=n_repeats,
        random_state=job.seed,
        **drawn.options,
    )


def _rehearsed(job: Job, drawn: Drawn) -> str:
    """Message of the rehearsal, with a warning where intervals are too narrow."""
    try:
        rehearsal = rehearse(job, drawn)
    except ValueError as error:
        # Labels drawn for a table with rare classes may allow no fit; the report does without.
        return f"How often these intervals hold the truth could not be tried: {error}"
    message = str(rehearsal.attrs["sentence"])
    at = rehearsal.sel(level=REHEARSED_LEVEL)
    most = float(at["overall_coverage"] + SURELY_NARROW * at["overall_error"])
    if most >= REHEARSED_LEVEL:
        return message
    return (
        f"{message} They are too narrow: {number(SURELY_NARROW)} standard errors more would be "
        f"{percent(most)}. Less is known than they show."
    )


def tell(record: UncertainRows, *, costs: bool) -> Iterator[tuple[str, str]]:
    """Number of rows without a settled decision, as a line."""
    n_unsettled, rows, criterion = record.unsettled(costs)
    yield "unsure of", f"{n_unsettled} of {plural(rows, 'row')}, {criterion}"


def say(record: UncertainRows) -> dict[str, str]:
    """Messages on the number of unsure rows and of open intervals, with advice."""
    share = float(record.epistemic.sum() / max((record.aleatoric + record.epistemic).sum(), 1e-300))
    kinds = "without intervals of rows held out the kinds of uncertainty cannot be separated."
    if record.epistemic.any():
        kinds = (
            f"of all uncertainty {percent(share)} is about the model, and more rows or a better "
            "kind of model may take it away; the rest is overlap of the classes in these columns."
        )
    undecided = ""
    if record.event is not None and record.undecided is not None:
        holds = "holds" if record.undecided == 1 else "hold"
        undecided = (
            f"The intervals of {count(record.undecided)} of {record.of_rows} "
            f"{holds} the threshold of {percent(record.event.threshold)}: of these either decision "
            "may be right. Listed are the rows nearest to it. "
        )
    wide = sum(row.upper - row.lower > OPEN_WIDTH for row in record.rows)
    verb = "has an interval" if wide == 1 else "have intervals"
    refer = (
        f"Of {plural(len(record.rows), 'row')} listed {count(wide)} {verb} wider than "
        f"{number(OPEN_WIDTH)}: nothing is to be decided by such a probability. Refer the row to "
        "whoever decides without the model, or measure the cell that its line names and predict it "
        "anew."
    )
    return {
        "unsure": f"No class has a probability of {percent(record.threshold)} or more in "
        f"{count(record.below)} of {plural(record.judged, 'row')} held out; {kinds}",
        "open_intervals": undecided + refer if wide else undecided.strip(),
    }


def show(record: UncertainRows) -> dict[str, Any]:
    """Epistemic against aleatoric entropy of every row; None without intervals."""
    marks = {"held-out prediction right": "dot c0", "wrong": "cross c1", "no label": "ring c2"}
    drawn = _kinds(record) if record.epistemic.any() else None
    return {"uncertain_rows": drawn, "outcomes": legend(marks)}


def _kinds(record: UncertainRows) -> Markup:
    """Scatter of epistemic against aleatoric entropy, one mark a row."""
    aleatoric, epistemic, outcome = record.aleatoric, record.epistemic, record.outcome
    axes = PlotArea(
        (0.0, max(float(aleatoric.max(initial=0)), 0.05) * 1.05),
        (0.0, max(float(epistemic.max(initial=0)), 0.005) * 1.08),
        WIDE_BOX,
    )
    rows = np.unique(np.linspace(0, len(outcome) - 1, MAX_POINTS).astype(int))
    rows = rows[np.argsort(-outcome[rows], kind="stable")]
    rows = np.concatenate([rows[outcome[rows] != 0], rows[outcome[rows] == 0]])
    dots = [
        _outcome_mark(
            axes.at_x(float(aleatoric[i])), axes.at_y(float(epistemic[i])), int(outcome[i])
        )
        for i in rows
    ]
    title = (
        f"Uncertainty by overlap (aleatoric) against uncertainty about the model (epistemic) of "
        f"{len(outcome)} rows; "
        f"{int((outcome == 0).sum())} held-out predictions were wrong"
    )
    frame = axes.frame(
        "uncertainty because classes overlap (nats)", "uncertainty about the model (nats)"
    )
    return picture(WIDE_WIDTH, 294.0, title, frame, *dots)


def _outcome_mark(x: float, y: float, outcome: int) -> Markup:
    """A dot where right, a cross where wrong, a ring where unknown."""
    if outcome == 0:
        arms = f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"
        return element("path", class_="stroke c1 thick", d=arms)
    if outcome == 1:
        return element("circle", class_="fill c0 faint", cx=x, cy=y, r=3)
    return element("circle", class_="stroke c2 faint", cx=x, cy=y, r=3)

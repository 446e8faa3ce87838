"""One case: a row in a form, and the answers of the model to it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

import bayesrbf
from bayesrbf.app.check import NOVEL_ROW, OPEN_WIDTH
from bayesrbf.app.explain import ClassAnswer, class_answers, odd_cells, why
from bayesrbf.app.serve.questions import cost_matrix
from bayesrbf.app.serve.rows import completed
from bayesrbf.app.serve.served import RequestError
from bayesrbf.app.words import between, percent
from bayesrbf.base import names
from bayesrbf.fit.probabilities import entropy
from bayesrbf.reading.formats import CONTROL, RawColumn, RawTable

if TYPE_CHECKING:
    from bayesrbf.app.serve.served import Field, ServedModel


CELL: Final = "cell-"
"""Prefix of the names of the fields, before the position of the column."""
SETTLED: Final = 0.8
"""Share of the draws from which a decision is advised without a word on the other one."""
N_POINTS: Final = 25
"""Points of the curve along a column of numbers."""
LIKE_THOUSANDS: Final = re.compile(r"-?\d{1,3},\d{3}")
"""A decimal comma that could as well stand between thousands: one more digit tells."""
LONGEST_CELL: Final = 1000
"""Letters of a cell."""


@dataclass(frozen=True)
class CaseClass:
    """A class, its answer, and the probability that the page showed before; NaN at first."""

    answer: ClassAnswer
    before: float

    @property
    def is_open(self) -> bool:
        """Whether the interval leaves every answer open."""
        return self.answer.upper - self.answer.lower > OPEN_WIDTH

    @property
    def of_hundred(self) -> str:
        """The interval as a count, such as "about 23 to 41"."""
        ends = [round(100 * end) for end in (self.answer.lower, self.answer.upper)]
        return f"about {ends[0]} to {ends[1]}" if ends[0] < ends[1] else f"about {ends[0]}"


@dataclass(frozen=True)
class CaseAnswer:
    """The probabilities of a case."""

    classes: tuple[CaseClass, ...]  # In the order of the model, so that bars stay where they are.
    has_intervals: bool
    assumes_model: bool
    novelty: float  # NaN without a density.
    warnings: tuple[str, ...]

    @property
    def is_novel(self) -> bool:
        """Whether the row is unlike the training rows."""
        return self.novelty > NOVEL_ROW


@dataclass(frozen=True)
class Decision:
    """The answer of least expected cost."""

    best: str
    costs: tuple[tuple[str, float], ...]  # Expected cost by answer.
    agreeing: float  # Share of the draws under which it costs least; NaN without draws.
    refer: bool  # Whether referring costs less.

    @property
    def is_settled(self) -> bool:
        """Whether most draws agree, if there are any."""
        return not self.agreeing < SETTLED


COMPONENT_WORDS: Final = {
    names.BEFORE_LABELS: "the error of the model for a complete row, before any label speaks of it",
    names.MISSING_CELLS: "the same with the cells that are missing",
    names.LABELS_HELD_OUT: "the error of the model, given the labels held out",
    names.INDUCING_POINTS: "rows unlike those from which this error is computed",
    names.RARE_LEVELS: "how few rows have this combination of levels",
    names.OTHER_KINDS: "how far the model is from other kinds of models",
    names.CLASS_SHARES: "the class shares of training",
    names.UPDATE: "the update, which few rows have made",
    names.LABEL_NOISE: "labels that are wrong, whatever the row",
}


@dataclass(frozen=True)
class IntervalComponents:
    """Components of the interval of a class."""

    label: str
    parts: tuple[tuple[str, float, float], ...]
    """Components of the uncertainty, and the ends of the interval if nothing else were."""
    labels_near: float  # Labels like this row that would tell as much; NaN of a row without a cell.


@dataclass(frozen=True)
class Measurement:
    """A missing cell: its expected share of the uncertainty, and its expected content."""

    column: str
    share: float
    expected: str


@dataclass(frozen=True)
class Along:
    """The probability of a class along a column, all other cells as they are."""

    field: Field
    label: str
    at: tuple[float, ...]  # Cells of numbers, places of levels.
    probability: tuple[float, ...]
    lower: tuple[float, ...]  # NaN without draws.
    upper: tuple[float, ...]
    present: float  # The present cell, NaN where it is missing.


def row_of(served: ServedModel, form: Mapping[str, str]) -> pd.DataFrame:
    """The row in the fields of a form; RequestError with every problem of its cells."""
    cells = {field.name: form.get(f"{CELL}{field.position}", "").strip() for field in served.fields}
    odd = {n for n, text in cells.items() if len(text) > LONGEST_CELL or CONTROL.search(text)}
    problems = [
        f"{name}: a cell has at most {LONGEST_CELL} characters of plain text."
        for name in cells
        if name in odd
    ]
    columns = tuple(RawColumn(n, ["" if n in odd else text]) for n, text in cells.items())
    raw = RawTable(columns, [1], "the case, row", (), marked=True)
    try:
        row = completed(served, raw, "the case")
    except RequestError as error:
        problems += [problem.removeprefix("the case, row 1, ") for problem in error.problems]
    if problems:
        raise RequestError(422, *problems)
    return row


def form_of(served: ServedModel, index: int) -> dict[str, str]:
    """The fields of a form filled with a training row, counted from 0."""
    row = served.cells.iloc[index]
    return {
        f"{CELL}{field.position}": _written(row.iloc[field.position], field, served.decimal)
        for field in served.fields
        if not pd.isna(row.iloc[field.position])
    }


def _written(cell: object, field: Field, decimal: str) -> str:
    """Text of a cell that is read back as the same cell."""
    if field.kind.has_levels:
        return str(cell)
    value = float(str(cell))
    if typed := field.kind.typed(value):
        return typed
    short = f"{value:.12g}"
    text = (short if float(short) == value else repr(value)).replace(".", decimal)
    return f"{text}0" if LIKE_THOUSANDS.fullmatch(text) else text


def answer_of(served: ServedModel, row: pd.DataFrame, before: Mapping[str, float]) -> CaseAnswer:
    """The probabilities of a row; ``before`` are those that the page shows by now."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "The model was fitted to a point")
        summary = served.estimator.uncertainty(row, served.focus.level)
    by_label = {answer.label: answer for answer in class_answers(summary)}
    novelty = float(summary["novelty"][0]) if served.has_density else np.nan
    return CaseAnswer(
        tuple(CaseClass(by_label[label], before.get(label, np.nan)) for label in served.classes),
        not summary.attrs["point_estimate"],
        bool(summary.attrs["assumes_model"]),
        novelty,
        tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def decision_of(served: ServedModel, row: pd.DataFrame) -> Decision | None:
    """The decision of least expected cost; None without costs, and where no cell is known."""
    if not served.focus.costs or row.isna().all(axis=None):
        return None
    decided = served.estimator.decide(row, cost_matrix(served, served.focus.costs), served.refer)
    expected = decided["expected_cost"].to_numpy()[0].tolist()
    return Decision(
        best=served.focus.action(decided["best"].item()),
        costs=tuple(zip(map(served.focus.action, served.classes), expected, strict=True)),
        agreeing=float(decided["probability_best"].item()),
        refer=served.refer is not None and bool(decided["refer"].item()),
    )


def interval_components(
    served: ServedModel, row: pd.DataFrame, label: str
) -> IntervalComponents | None:
    """Components of the interval of a class; None without draws about the model."""
    fit = served.estimator.fitted_
    if fit.draws is None or fit.assumes_model:
        return None
    widths = bayesrbf.explain_interval(served.estimator, row, served.focus.level).isel(obs=0)
    widths = widths.sel(label=_class_named(served, label))
    ends = (widths[name].to_numpy().tolist() for name in ("component_lower", "component_upper"))
    named = (
        COMPONENT_WORDS.get(name, name)
        for name in widths[names.UNCERTAINTY_COMPONENT].to_numpy().tolist()
    )
    components = zip(named, *ends, strict=True)
    return IntervalComponents(label, tuple(components), float(widths["labels_near"]))


def measurements_of(served: ServedModel, row: pd.DataFrame) -> list[Measurement] | None:
    """Missing cells by their expected reduction of the uncertainty; None without a density."""
    if not served.has_density:
        return None
    missing = [field for field in served.fields if row[field.name].isna().iloc[0]]
    if not missing:
        return []
    model = served.estimator
    gains = model.acquire_cells(row)["gain"].to_numpy()[0]
    uncertainty = float(entropy(model.predict_proba(row))[0])
    worth = sorted(
        (field for field in missing if gains[field.position] > 0),
        key=lambda field: -gains[field.position],
    )
    if not worth:
        return []
    law = model.conditional(row)
    level = served.focus.level
    low, high = law.quantile((1 - level) / 2), law.quantile((1 + level) / 2)
    lines = []
    for field in worth:
        if not field.kind.has_levels and field.name in low:
            seen = served.cells[field.name]  # a normal law reaches beyond what a cell can be
            ends = [frame[field.name].iloc[0] for frame in (low, high)]
            clipped = (min(max(end, seen.min()), seen.max()) for end in ends)
            expected = between(*(field.written(float(end)) for end in clipped))
        elif not field.kind.has_levels:  # on a circle
            expected = f"about {field.written(float(law.mean()[field.name].iloc[0]))}"
        else:
            levels = law.probabilities(field.name).iloc[0].sort_values(ascending=False)[:2]
            expected = ", ".join(f"{level} ({percent(p)})" for level, p in levels.items())
        share = min(1.0, float(gains[field.position]) / uncertainty) if uncertainty > 0 else 0.0
        lines.append(Measurement(field.name, share, expected))
    return lines


def along(served: ServedModel, row: pd.DataFrame, field: Field, label: str) -> Along:
    """The probability of a class as one cell varies; missing indicators are those of the row."""
    value = row[field.name].iloc[0]
    if not field.kind.has_levels:
        ends = [field.low, field.high] if pd.isna(value) else [field.low, field.high, float(value)]
        grid = np.linspace(min(ends), max(ends), N_POINTS)
        values: list[object] = list(field.kind.nearest(grid))
        at = tuple(grid.tolist())
        present_at = np.nan if pd.isna(value) else float(value)
    else:
        values = [level for level, _ in field.levels]
        at = tuple(map(float, range(len(values))))
        present_at = float(values.index(str(value))) if str(value) in values else np.nan
    before = pd.concat([row] * len(values), ignore_index=True)
    rows = before.assign(**{field.name: pd.Series(values, dtype=row[field.name].dtype)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were said of the case itself
        summary = served.estimator.uncertainty(rows, served.focus.level, asked_at=before)
    summary = summary.sel(label=_class_named(served, label))
    p, lower, upper = (
        tuple(summary[name].to_numpy().tolist()) for name in (names.PROBABILITY, "lower", "upper")
    )
    if summary.attrs["point_estimate"]:
        lower = upper = (np.nan,) * len(p)
    return Along(field, label, at, p, lower, upper, present_at)


def _class_named(served: ServedModel, label: str) -> object:
    """The class of the model with this name."""
    return served.estimator.classes_[served.classes.index(label)]


# The parts of the page that answer a case.


def label_of(served: ServedModel, form: Mapping[str, str]) -> str:
    """The class that is explained."""
    label = form.get("label", "")
    return label if label in served.classes else served.of_interest


def _before(form: Mapping[str, str], classes: Sequence[str]) -> dict[str, float]:
    """The probabilities that the page shows by now; none where it shows none."""
    texts = form.get("before", "").split()
    try:
        p = [float(text) for text in texts]
    except ValueError:
        return {}
    usable = len(p) == len(classes) and all(0 <= probability <= 1 for probability in p)
    return dict(zip(classes, p, strict=True)) if usable else {}


def _along(served: ServedModel, row: pd.DataFrame, form: Mapping[str, str]) -> Along | None:
    """The curve along the column that the reader is at; None before one was chosen."""
    chosen = form.get("column", "")
    if not (is_short(chosen) and int(chosen) < len(served.fields)):
        return None
    return along(served, row, served.fields[int(chosen)], label_of(served, form))


def is_short(text: str) -> bool:
    """Whether a text is a number of few digits."""
    return len(text) < 10 and text.isascii() and text.isdigit()


@dataclass(frozen=True)
class Panel:
    """A part of the page: address, place on the page, script and tests follow it."""

    name: str  # Of its address, and of its template part_NAME.html, which has its result so named.
    of: Callable[[ServedModel, pd.DataFrame, Mapping[str, str]], Any]
    saved: str = ""  # Its name in the file of a case; empty where that has it otherwise or not.


PANELS: Final = (
    Panel(
        "answer", lambda served, row, form: answer_of(served, row, _before(form, served.classes))
    ),
    Panel("decision", lambda served, row, form: decision_of(served, row), "decision"),
    Panel("odd", lambda served, row, form: odd_cells(served.estimator, row, 0)[0], "stands_out"),
    Panel("along", _along),
    Panel(
        "why", lambda served, row, form: why(served.estimator, row, label_of(served, form)), "why"
    ),
    Panel(
        "interval",
        lambda served, row, form: interval_components(served, row, label_of(served, form)),
        "interval",
    ),
    Panel("next", lambda served, row, form: measurements_of(served, row), "next"),
)
"""In the order in which they are asked and shown."""

"""Why a model answers a row as it does: as a record, and as text for a terminal."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from bayesrbf.app.check import NOVEL_ROW
from bayesrbf.app.report.costs import decisions
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.words import (
    NO_DENSITY,
    NO_DRAWS,
    aligned,
    cell_text,
    clipped,
    listing,
    number,
    percent,
    signed,
)
from bayesrbf.table.kinds import Kind

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.families.classifier import Classifier


MAX_REASONS: Final = 4
"""Sentences on what speaks for a decision, and against it."""
MIN_SHOWN_PROBABILITY: Final = 0.005
"""Contribution, in nats, that two decimals show."""
SURE_SIGN: Final = 2.0
"""Standard errors from which a cell is said to speak for or against."""
MAX_LETTERS: Final = 300
"""Letters of the message on the pattern of a row."""


@dataclass(frozen=True)
class ClassAnswer:
    """Probability and interval of one class; the ends are NaN where there are no draws."""

    label: str
    probability: float
    lower: float
    upper: float


@dataclass(frozen=True)
class CellEffect:
    """Contribution of one observed cell to the log odds of the answer, in nats."""

    column: str
    cell: float | str
    adds: float  # Its Shapley value.
    standard_error: float  # 0 where all orders of telling were tried.
    lost_without: float


@dataclass(frozen=True)
class PatternEffect:
    """Contribution of the missing and measured cells of a row to the same log odds, in nats."""

    message: str  # Such as "not measured: 'g'".
    adds: float
    standard_error: float
    lost_without: float


@dataclass(frozen=True)
class Why:
    """Contributions to the log odds of the answer against the rest, in nats."""

    label: str
    base: float  # With no cell known, nor which were measured.
    log_odds: float  # With all observed cells.
    cells: Sequence[CellEffect]  # The largest first.
    pattern: PatternEffect | None = None  # None where missing indicators are no evidence.

    @property
    def effects(self) -> list[CellEffect | PatternEffect]:
        """Effects of the cells and of the pattern, the largest first."""
        effects: list[CellEffect | PatternEffect] = [*self.cells]
        effects += [self.pattern] if self.pattern else []
        return sorted(effects, key=lambda effect: -abs(effect.adds))


@dataclass(frozen=True)
class Reasons:
    """Sentences on what speaks most against a decision and for it, the strongest first."""

    decision: str  # What it is called.
    against: Sequence[str]
    in_favour: Sequence[str]


@dataclass(frozen=True)
class UnexpectedCell:
    """A cell that stands out given the rest of its row; the limits are NaN for a category."""

    column: str
    cell: float | str
    expected: float | str
    lower: float
    upper: float
    interval: str  # In words; empty where there is none.
    tail: float


@dataclass(frozen=True)
class ExplainedRow:
    """A row, the answer of a model, and why."""

    row: int  # 1 for the first.
    name: str  # What the index calls it; empty where the index just counts.
    rows: int  # Of the table.
    prob: float  # Of the intervals.
    classes: Sequence[ClassAnswer]  # The most probable one first.
    decision: str | None  # That of least expected cost, in words; None without costs.
    why: Why
    reasons: Reasons  # For the decision; without costs, for the most probable class.
    missing: Sequence[str]  # Columns without a cell in this row.
    stands_out: Sequence[UnexpectedCell] | None  # None where rows have no density.
    false_discoveries: float  # Rate at which cells stand out; NaN without a density.
    novelty: float  # NaN without a density.
    estimator: str


def explain_row(
    model: Classifier,
    rows: pd.DataFrame,
    of: int,
    focus: Focus = ANYTHING,
) -> ExplainedRow:
    """Explain one row, numbered from 1: its answer, the effects of its cells, and what is odd.

    The decision of least expected cost is told where the focus has costs.
    """
    if not 1 <= of <= len(rows):
        raise ValueError(
            f"--row must be from 1 to {len(rows)}, the rows of the table; received {of}."
        )
    row = rows.iloc[[of - 1]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The model was fitted to a point")  # the text says so
        uncertainty = model.uncertainty(row, focus.level)
    odd, rate = odd_cells(model, rows, of - 1)
    classes = uncertainty["label"].to_numpy().tolist()
    decided = int(decisions(uncertainty["probability"].to_numpy(), classes, focus.costs)[0])
    label, answer = str(classes[decided]), why(model, row)
    of_decision = answer if answer.label == label else why(model, row, label)
    return ExplainedRow(
        row=of,
        name="" if rows.index.name is None else str(rows.index[of - 1]),
        rows=len(rows),
        prob=float(uncertainty.attrs["prob"]),
        classes=class_answers(uncertainty),
        decision=focus.action(label) if focus.decides else None,
        why=answer,
        reasons=reasons_of(of_decision, focus.action(label)),
        missing=list(row.columns[row.isna().iloc[0]]),
        stands_out=odd,
        false_discoveries=rate,
        novelty=float(uncertainty["novelty"][0]) if odd is not None else np.nan,
        estimator=type(model).__name__,
    )


def class_answers(uncertainty: xr.Dataset) -> list[ClassAnswer]:
    """Classes with their intervals, the most probable one first."""
    point = bool(uncertainty.attrs["point_estimate"])
    mean, lower, upper = (
        uncertainty[name].to_numpy()[0].tolist() for name in ("probability", "lower", "upper")
    )
    labels = uncertainty["label"].to_numpy()
    return [
        ClassAnswer(
            str(labels[c]), mean[c], np.nan if point else lower[c], np.nan if point else upper[c]
        )
        for c in np.argsort(-np.array(mean), kind="stable")
    ]


def why(model: Classifier, row: pd.DataFrame, label: str | None = None) -> Why:
    """Contributions of a row to the log odds of a class (the likeliest if None)."""
    explained = model.explain(row).isel(obs=0)
    labels = [str(of_class) for of_class in model.classes_]
    best = int(explained["log_odds"].argmax("label")) if label is None else labels.index(label)
    answer = explained.isel(label=best)
    shapley, left_out, error = (
        answer[name].to_numpy() for name in ("shapley", "left_out", "standard_error")
    )
    observed = np.flatnonzero(~np.isnan(shapley))
    cells = [
        CellEffect(
            str(row.columns[j]),
            _cell(row.iat[0, j], model.columns_.kinds[j]),
            float(shapley[j]),
            float(error[j]),
            float(left_out[j]),
        )
        for j in observed[np.argsort(-np.abs(shapley[observed]), kind="stable")]
    ]
    pattern = None
    if message := str(answer["pattern"].item()):
        pattern = PatternEffect(
            message=clipped(message, MAX_LETTERS),
            adds=float(answer["pattern_shapley"]),
            standard_error=float(answer["pattern_standard_error"]),
            lost_without=float(answer["pattern_left_out"]),
        )
    return Why(labels[best], float(answer["base"]), float(answer["log_odds"]), cells, pattern)


def reasons_of(why: Why, decision: str) -> Reasons:
    """Sentences on what speaks most against a decision and for it, by what is added to its class.

    >>> income = CellEffect("income", 1200.0, -2.0, 0.0, -1.8)
    >>> ward = CellEffect("ward", "B", 0.3, 0.0, 0.1)
    >>> pattern = PatternEffect("not measured: 'debt'", -0.2, 0.0, -0.2)
    >>> told = reasons_of(Why("good", 0.0, -1.9, [income, ward], pattern), "granted")
    >>> told.in_favour
    ['ward “B” speaks for “granted”.']
    >>> for sentence in told.against:
    ...     print(sentence)
    income of 1200 speaks against “granted”.
    Not measured: 'debt'; this speaks against “granted”.
    """
    named = clipped(decision, 30)
    sentences: dict[str, list[str]] = {"against": [], "for": []}
    for effect in why.effects:  # the largest first
        verb = "for" if effect.adds > 0 else "against"
        if abs(effect.adds) >= max(MIN_SHOWN_PROBABILITY, SURE_SIGN * effect.standard_error):
            sentences[verb].append(f"{_subject(effect)} speaks {verb} “{named}”.")
    return Reasons(decision, sentences["against"][:MAX_REASONS], sentences["for"][:MAX_REASONS])


def _subject(effect: CellEffect | PatternEffect) -> str:
    """The column and its cell, or the pattern, as the subject of a sentence."""
    if isinstance(effect, PatternEffect):
        return f"{effect.message[0].upper()}{effect.message[1:]}; this"
    text = cell_text(effect.cell)
    holds = f"of {text}" if isinstance(effect.cell, float) else f"“{text}”"
    return f"{clipped(effect.column, 30)} {holds}"


def odd_cells(
    model: Classifier, rows: pd.DataFrame, index: int
) -> tuple[list[UnexpectedCell] | None, float]:
    """Cells that stand out and the rate of false ones; None without a density of rows."""
    if model.model_.density is None:
        return None, np.nan
    cells = model.surprise(rows).isel(obs=index)
    odd = []
    for j in np.flatnonzero(cells["stands_out"].to_numpy()):
        kind, expected = model.columns_.kinds[j], cells["expected"].to_numpy()[j]
        lower, upper = float(cells["lower"][j]), float(cells["upper"][j])
        low, high = (kind.written(end) or number(end) for end in (lower, upper))
        odd.append(
            UnexpectedCell(
                str(rows.columns[j]),
                _cell(rows.iat[index, j], kind),
                _cell(expected, kind),
                lower,
                upper,
                "" if np.isnan(lower) else f"{low} to {high}",
                float(np.exp(cells["log_tail"][j])),
            )
        )
    return odd, float(cells.attrs["false_discoveries"])


def _cell(value: object, kind: Kind) -> float | str:
    """A cell as a number, or as its kind writes it."""
    if kind.has_levels or not isinstance(value, float | int):
        return str(value)
    return kind.written(float(value)) or float(value)


def lines_of_row(row: ExplainedRow) -> list[str]:
    """The row as text for a terminal."""
    named = f" {clipped(row.name, 30)}:" if row.name else ""
    blocks = _answer(row), _explained(row.why, row.missing), _reasoned(row.reasons), _oddities(row)
    return [
        f"Row{named} {row.row} of {row.rows}",
        *(line for block in blocks for line in ("", *block)),
    ]


def _answer(row: ExplainedRow) -> list[str]:
    """Classes, the most probable one first, with the interval of each where there are draws."""
    point = np.isnan(row.classes[0].lower)
    table = [["class", "", "probability", *([] if point else [f"{percent(row.prob)} interval"])]]
    for of_class in row.classes:
        between = [] if point else [f"{percent(of_class.lower)} to {percent(of_class.upper)}"]
        table.append([clipped(of_class.label, 30), "", percent(of_class.probability), *between])
    no_draws = [f"  {NO_DRAWS}"] if point else []
    decided = [] if row.decision is None else [f"  Decided, at least expected cost: {row.decision}"]
    return ["What the model says", *aligned(table), *no_draws, *decided]


def _explained(why: Why, missing: Sequence[str]) -> list[str]:
    """Contributions of the observed cells and of the pattern to the log odds of the answer."""
    label, pattern = clipped(why.label, 30), why.pattern
    if not why.effects:
        return [f"No cell is observed: the answer is that of a row without cells ({label})."]
    sampled = any(effect.standard_error > 0 for effect in why.effects)
    table = [["column", "cell", "adds", *(["± s.e."] if sampled else []), "lost without"]]
    for effect in why.cells:
        cells = [clipped(effect.column, 30), cell_text(effect.cell), signed(effect.adds)]
        cells += [f"{effect.standard_error:.2f}"] if sampled else []
        table.append([*cells, signed(effect.lost_without)])
    first, last = signed(why.base), signed(why.log_odds)
    holes = [clipped(name, 30) for name in missing]
    return [
        f"Why {label}: log odds against the rest, in nats",
        f"  {first} with no cell known, {last} with all observed cells; these lines add the rest:",
        *(aligned(table) if why.cells else []),
        *([_pattern_line(pattern, sampled)] if pattern else []),
        "  adds: what the cell adds, averaged over all orders of telling the cells (Shapley).",
        "  lost without: what the log odds lose if this cell alone were not known.",
        *([f"  Not observed: {listing(holes, 8)}."] if holes else []),
    ]


def _pattern_line(pattern: PatternEffect, sampled: bool) -> str:
    """Contribution of the missing and measured cells."""
    error = f" ± {pattern.standard_error:.2f}" if sampled else ""
    lost = signed(pattern.lost_without)
    return f"  {pattern.message}: adds {signed(pattern.adds)}{error}, lost without {lost}"


def _reasoned(reasons: Reasons) -> list[str]:
    """Sentences on what speaks most against the decision and for it."""
    return [
        f"What speaks most against “{clipped(reasons.decision, 30)}”, and what for it",
        *(f"  {reason}" for reason in reasons.against or ["No cell speaks against it."]),
        *(f"  {reason}" for reason in reasons.in_favour or ["No cell speaks for it."]),
        "  By what a cell adds to the log odds in this model; no cause is told.",
    ]


def _oddities(row: ExplainedRow) -> list[str]:
    """Lines on cells that stand out and on the novelty of the row; none without a density."""
    if row.stands_out is None:
        return [NO_DENSITY]
    rate = percent(row.false_discoveries)
    lines = [f"No cell of this row stands out (false discovery rate {rate})."]
    if row.stands_out:
        table = [["column", "cell", "expected", "interval", "tail"]]
        for odd in row.stands_out:
            name, cell = clipped(odd.column, 30), cell_text(odd.cell)
            table.append([name, cell, cell_text(odd.expected), odd.interval, number(odd.tail)])
        title = f"Cells that stand out given the rest of the row (false discovery rate {rate})"
        lines = [title, *aligned(table)]
    if np.isnan(row.novelty):
        return lines
    return [*lines, of_novelty(row.novelty)]


def of_novelty(novelty: float) -> str:
    r"""A sentence on the novelty of a row.

    >>> print(of_novelty(0.5).replace("\N{NO-BREAK SPACE}", " "))
    Novelty 0.50: of rows that the model makes up with the same cells missing, 50 % are more
    ordinary; the row is like rows of the training table.
    """
    verdict = "unlike the training table, and its probabilities may not hold"
    if not novelty > NOVEL_ROW:
        verdict = "like rows of the training table"
    return (
        f"Novelty {novelty:.2f}: of rows that the model makes up with the same cells missing, "
        f"{percent(novelty)} are more ordinary; the row is {verdict}."
    )

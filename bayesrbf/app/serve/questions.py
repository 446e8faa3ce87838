"""The questions about rows that a server answers, each in one record, and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd

from bayesrbf.app.check import NOVEL_ROW
from bayesrbf.app.report.costs import costs_of, decisions_in_words, problems_of_focus
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.output import predictions_frame
from bayesrbf.app.serve.served import RequestError, ServedModel, Tally
from bayesrbf.app.words import listing
from bayesrbf.base import names
from bayesrbf.base.artefact import strict_json
from bayesrbf.fit.decisions import mistakes

MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once."""


@dataclass(frozen=True)
class Options:
    """Options of a request; the options of the server are the defaults."""

    prob: float  # Inside the intervals.
    focus: Focus
    refer: float | None

    @classmethod
    def of(cls, query: Mapping[str, str], served: ServedModel, question: Question) -> Self:
        """Options from the query of an address; RequestError with every problem of it."""
        known = {option.name: option for option in question.options}
        options = cls(served.focus.level, served.focus, served.refer)
        problems = [
            f"{name[:40]!r} is no option of {question.name}; it has {listing([*known]) or 'none'}."
            for name in query
            if name not in known
        ]
        for name in filter(query.__contains__, known):
            try:
                options = known[name].update(query[name], options, served)
            except RequestError as error:
                problems += error.problems
        if question.needs == "density" and not served.has_density:
            kind = type(served.estimator).__name__
            problems.append(f"{kind} has no density of rows, which {question.name} needs.")
        if question.needs == "costs" and not options.focus.costs:
            example = '?costs={"sick": 10, "well": 1}'
            problems.append(f"{question.name} needs costs of mistaken rows, such as {example}.")
        if problems:
            raise RequestError(422, *problems)
        return options


@dataclass(frozen=True)
class Option:
    """An option of questions: its description and its parser."""

    name: str  # Of a field of the query of an address.
    description: str
    type: Literal["number", "string"]  # In JSON.
    update: Callable[[str, Any, ServedModel], Any]
    """The options, updated from the text of this one; RequestError with its problems."""


def _prob(text: str, options: Options, served: ServedModel) -> Options:
    prob = _number("prob", text)
    if not 0 < prob < 1:
        raise RequestError(422, f"prob must be between 0 and 1; received {prob:g}.")
    return replace(options, prob=prob)


def _costs(text: str, options: Options, served: ServedModel) -> Options:
    try:
        cost_items = strict_json(text, 1).items()
        focus = replace(options.focus, costs={str(name): float(cost) for name, cost in cost_items})
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        example = '{"sick": 10, "well": 1}'
        raise RequestError(422, f"costs must be a JSON object such as {example}.") from None
    if problems := list(problems_of_focus(focus, served.classes, "the model")):
        raise RequestError(422, *problems)
    return replace(options, focus=focus)


def _refer(text: str, options: Options, served: ServedModel) -> Options:
    refer = _number("refer", text)
    if refer < 0:
        raise RequestError(422, f"refer must be a cost of at least 0; received {refer:g}.")
    return replace(options, refer=refer)


def _number(name: str, text: str) -> float:
    """A finite number in a query."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise RequestError(422, f"{name} must be a number; received {text[:40]!r}.")
    return value


PROB: Final = Option("prob", "Probability inside intervals.", "number", _prob)
COSTS: Final = Option("costs", 'Costs of mistakes: {"sick": 10, "well": 1}.', "string", _costs)
REFER: Final = Option("refer", "Cost of referring a row.", "number", _refer)

Lines = tuple[pd.DataFrame, Tally]
JsonType = Literal["number", "string", "boolean", "any"]
TYPES: Final[Mapping[JsonType, list[str]]] = {
    "number": ["number", "null"],
    "string": ["string", "null"],
    "boolean": ["boolean"],
    "any": ["number", "string", "boolean", "null"],
}


@dataclass(frozen=True)
class Question:
    """A question about rows: addresses, OpenAPI, the page ``/api`` and tests follow it."""

    name: str  # The name of the estimators' method.
    description: str  # Its answer, in a sentence.
    lines: Callable[[ServedModel, pd.DataFrame, Options], Lines]
    shape: Mapping[JsonType, str]
    """Columns of its answer by their type: ``{class}`` stands for every class, ``{column}`` for
    every column of the model. A decision is there where there are costs."""
    rows: int | None = None  # Answered at once, all if None; between blocks the time is looked at.
    options: tuple[Option, ...] = ()
    needs: Literal["density", "costs"] | None = None

    def columns(self, served: ServedModel) -> dict[str, list[str]]:
        """Columns of the answer about rows of a model, with their types in JSON."""
        slots = {
            "{column}": [field.name for field in served.fields],
            "{class}": served.classes,
        }
        columns = {"row": ["integer"], "outside": TYPES["string"]}
        for kind, text in self.shape.items():
            named = text.split("; ")
            for slot, fills in slots.items():
                named = [n.replace(slot, fill) for n in dict.fromkeys(named) for fill in fills]
            columns |= dict.fromkeys(named, TYPES[kind])
        return columns


def _tally(served: ServedModel, p: np.ndarray, novelty: np.ndarray | None = None) -> Tally:
    """Counts of predicted rows."""
    sums = dict(zip(served.classes, p.sum(axis=0).tolist(), strict=True))
    judged = np.zeros(0) if novelty is None else novelty[~np.isnan(novelty)]
    return Tally(len(p), int((judged > NOVEL_ROW).sum()), judged.size, sums)


def _predict(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Probabilities without intervals, which take a few milliseconds."""
    p = served.estimator.predict_proba(rows)
    labels = np.array(served.classes, dtype=object)
    columns = {"predicted": labels[p.argmax(axis=1)]}
    if options.focus.decides:
        columns["decision"] = decisions_in_words(p, served.classes, options.focus)
    columns |= {f"probability_{label}": p[:, c] for c, label in enumerate(served.classes)}
    return pd.DataFrame(columns), _tally(served, p)


def _uncertainty(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Probabilities with their intervals, as predictions.csv has them."""
    summary = served.estimator.uncertainty(rows, options.prob, memory=MEMORY)
    frame = predictions_frame(summary, focus=options.focus).drop(columns="row")
    p, novelty = summary[names.PROBABILITY].to_numpy(), summary["novelty"].to_numpy()
    return frame, _tally(served, p, novelty)


def _decide(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Decisions of least expected cost, called as :func:`_predict` calls them."""
    matrix = cost_matrix(served, options.focus.costs)
    lines, tally = _of_dataset(rows, served.estimator.decide(rows, matrix, options.refer))
    decided = lines["best"].map(options.focus.action)
    return lines.rename(columns={"best": "decision"}).assign(decision=decided), tally


def cost_matrix(served: ServedModel, costs: Mapping[str, float]) -> pd.DataFrame:
    """Cost of every answer in a row of every class."""
    matrix = mistakes(costs_of(served.classes, costs))
    return pd.DataFrame(matrix, served.estimator.classes_, served.classes)


def _of_dataset(rows: pd.DataFrame, dataset: Any) -> Lines:
    """An answer about rows as lines."""
    return dataset.to_dataframe().reset_index(drop=True), Tally(len(rows))


_EVERY: Final = (
    Question(
        "predict",
        "Class probabilities of each row, without intervals.",
        _predict,
        {"string": "predicted; decision", "number": "probability_{class}"},
        rows=2_000,
        options=(COSTS,),
    ),
    Question(
        "uncertainty",
        "Class probabilities with intervals, kinds of uncertainty and novelty.",
        _uncertainty,
        {
            "string": "predicted; decision",
            "number": "probability_{class}; lower_{class}; upper_{class}; total_entropy; "
            "aleatoric_entropy; epistemic_entropy; novelty; familiarity",
        },
        rows=500,
        options=(PROB, COSTS),
    ),
    Question(
        "explain",
        "What cells and their pattern add to the log odds of each class (Shapley, nats).",
        lambda served, rows, _: _of_dataset(rows, served.estimator.explain(rows)),
        {
            "string": "pattern",
            "number": "shapley[{column}, {class}]; left_out[{column}, {class}]; "
            "standard_error[{column}, {class}]; pattern_shapley[{class}]; "
            "pattern_left_out[{class}]; pattern_standard_error[{class}]; log_odds[{class}]; "
            "base[{class}]; evaluations",
        },
        rows=10,
    ),
    Question(
        "acquire_cells",
        "What each missing cell is worth, and which one to measure next.",
        lambda served, rows, _: _of_dataset(rows, served.estimator.acquire_cells(rows)),
        {"string": "best", "number": "gain[{column}]; price[{column}]; best_price"},
        rows=10,
        needs="density",
    ),
    Question(
        "surprise",
        "How surprising each cell is, given the rest of its row.",
        lambda served, rows, options: _of_dataset(
            rows, served.estimator.surprise(rows, prob=options.prob)
        ),
        {
            "number": "log_tail[{column}]; lower[{column}]; upper[{column}]",
            "any": "expected[{column}]",
            "boolean": "stands_out[{column}]",
        },
        options=(PROB,),
        needs="density",
    ),
    Question(
        "decide",
        "The answer of least expected cost, and whether to refer the row.",
        _decide,
        {
            "string": "decision",
            "number": "expected_cost[{class}]; cost; probability_best",
            "boolean": "refer",
        },
        rows=500,
        options=(COSTS, REFER),
        needs="costs",
    ),
)
QUESTIONS: Final = {question.name: question for question in _EVERY}
"""All questions, by their names."""

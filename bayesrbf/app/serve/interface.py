"""The interface of the server: questions about rows, their answers, and OpenAPI."""

from __future__ import annotations

import io
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from bayesrbf.app.check import NOVEL_ROW, changed
from bayesrbf.app.report.costs import costs_of, decisions_in_words, problems_of_focus
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.output import numbered, predictions_frame, to_csv
from bayesrbf.app.serve.served import (
    CSV,
    JSON,
    PARQUET,
    Limits,
    RequestError,
    ServedModel,
    Tally,
)
from bayesrbf.app.words import listing, plain
from bayesrbf.base import names
from bayesrbf.base.artefact import strict_json
from bayesrbf.fit.asking import ENOUGH
from bayesrbf.fit.decisions import mistakes
from bayesrbf.version import __version__

WARNINGS: Final = "Bayesrbf-Warnings"
"""Header of the warnings of an answer."""
MOST_WARNINGS, MOST_LETTERS = 5, 300
MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once."""


@dataclass(frozen=True)
class Options:
    """Options of a request beside its rows."""

    prob: float = 0.9  # Inside the intervals.
    focus: Focus = ANYTHING  # With other costs than the server's, where a request has them.
    refer: float | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], served: ServedModel, question: str) -> Options:
        """Options from the query of an address; RequestError with every problem of it."""
        asked = QUESTIONS[question]
        problems = [
            f"{name[:40]!r} is no option of {question}; it has {listing(asked.options) or 'none'}."
            for name in query
            if name not in asked.options
        ]
        focus = served.focus
        prob = _query_number(query, "prob", focus.level, problems)
        if prob is not None and not 0 < prob < 1:
            problems.append(f"prob must be between 0 and 1; received {prob:g}.")
        refer = _query_number(query, "refer", served.refer, problems)
        if refer is not None and refer < 0:
            problems.append(f"refer must be a cost of at least 0; received {refer:g}.")
        if "costs" in query:
            try:
                costs = strict_json(query["costs"], 1)
                costs = {str(name): float(cost) for name, cost in costs.items()}
                focus = replace(focus, costs=costs)
                problems += problems_of_focus(focus, served.classes, "the model")
            except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
                problems.append('costs must be a JSON object such as {"sick": 10, "well": 1}.')
        if asked.needs == "density" and not served.has_density:
            kind = type(served.estimator).__name__
            problems.append(f"{kind} has no density of rows, which {question} needs.")
        if asked.needs == "costs" and not focus.costs:
            example = '?costs={"sick": 10, "well": 1}'
            problems.append(f"{question} needs costs of mistaken rows, such as {example}.")
        if problems:
            raise RequestError(422, *problems)
        return cls(prob or focus.level, focus, refer)


def _query_number(
    query: Mapping[str, str], name: str, usual: float | None, problems: list[str]
) -> float | None:
    """A finite number in a query."""
    try:
        value = float(query[name]) if name in query else usual
    except ValueError:
        value = np.nan
    if value is not None and not np.isfinite(value):
        problems.append(f"{name} must be a number; received {query.get(name, '')[:40]!r}.")
        return None
    return value


@dataclass(frozen=True)
class Answered:
    """Lines of an answer, what was said on the way, and what is counted."""

    frame: pd.DataFrame
    warnings: tuple[str, ...]
    tally: Tally


def answer(
    served: ServedModel, question: str, rows: pd.DataFrame, options: Options, seconds: float
) -> Answered:
    """Answer a question about rows, one line for each; TimeoutError between two blocks of them."""
    asked, end = QUESTIONS[question], time.monotonic() + seconds
    size = asked.rows or len(rows)
    frames, tallies = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "The model was fitted to a point")
        for start in range(0, len(rows), size):
            if time.monotonic() > end:
                raise TimeoutError
            block = rows.iloc[start : start + size]
            frame, tally = asked.lines(served, block, options)
            frames.append(frame)
            tallies.append(tally)
    told = []
    if len(rows) >= ENOUGH:  # predictions warn of missing cells themselves
        told = changed(served.estimator, rows, ("missing", "reasons"))
    spoken = dict.fromkeys([*told, *(str(warning.message) for warning in caught)])
    frame = pd.concat(frames, ignore_index=True)
    frame["outside"] = outside(served, rows)
    frame = numbered(frame, None if rows.index.name is None else rows.index)
    return Answered(frame, tuple(spoken), _sum(tallies))


def outside(served: ServedModel, rows: pd.DataFrame) -> list[str]:
    """Of every row the columns of numbers that lie beyond all cells of training, by their names."""
    found = [list[str]() for _ in range(len(rows))]
    for name, (low, high) in served.ranges.items():
        cells = rows[name].to_numpy(dtype=float)
        for place in np.flatnonzero((cells < low) | (cells > high)):
            found[place].append(name)
    return [", ".join(names_of_row) for names_of_row in found]


def _sum(tallies: list[Tally]) -> Tally:
    """Sum of the counts of all blocks."""
    labels = dict.fromkeys(label for tally in tallies for label in tally.probability)
    return Tally(
        sum(tally.rows for tally in tallies),
        sum(tally.novel for tally in tallies),
        sum(tally.judged for tally in tallies),
        {c: sum(tally.probability.get(c, 0.0) for tally in tallies) for c in labels},
    )


def _tally(served: ServedModel, p: np.ndarray, novelty: np.ndarray | None = None) -> Tally:
    """Counts of predicted rows."""
    sums = dict(zip(served.classes, p.sum(axis=0).tolist(), strict=True))
    judged = np.zeros(0) if novelty is None else novelty[~np.isnan(novelty)]
    return Tally(len(p), int((judged > NOVEL_ROW).sum()), judged.size, sums)


Lines = tuple[pd.DataFrame, Tally]


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


@dataclass(frozen=True)
class Question:
    """A question about rows, and all that the server knows of it."""

    lines: Callable[[ServedModel, pd.DataFrame, Options], Lines]
    rows: int | None  # Answered at once, all if None; between blocks the time is looked at.
    what: str  # Its answer, in a sentence.
    options: tuple[str, ...] = ()  # Of PARAMETERS.
    needs: Literal["density", "costs"] | None = None


QUESTIONS: Final = {
    "predict": Question(
        _predict, 2_000, "Class probabilities of each row, without intervals.", ("costs",)
    ),
    "uncertainty": Question(
        _uncertainty,
        500,
        "Class probabilities with intervals, kinds of doubt and novelty.",
        ("prob", "costs"),
    ),
    "explain": Question(
        lambda served, rows, _: _of_dataset(rows, served.estimator.explain(rows)),
        10,
        "What cells and their pattern add to the log odds of each class (Shapley, nats).",
    ),
    "acquire": Question(
        lambda served, rows, _: _of_dataset(rows, served.estimator.acquire(rows)),
        10,
        "What each missing cell is worth, and which one to measure next.",
        needs="density",
    ),
    "surprise": Question(
        lambda served, rows, asked: _of_dataset(
            rows, served.estimator.surprise(rows, prob=asked.prob)
        ),
        None,
        "How surprising each cell is, given the rest of its row.",
        ("prob",),
        "density",
    ),
    "decide": Question(
        _decide,
        500,
        "The answer of least expected cost, and whether to refer the row.",
        ("costs", "refer"),
        "costs",
    ),
}
"""Questions by the names of the estimators' methods; addresses, options, OpenAPI follow it."""
PARAMETERS: Final = {
    "prob": ("Probability inside intervals.", "number"),
    "costs": ('Costs of mistakes: {"sick": 10, "well": 1}.', "string"),
    "refer": ("Cost of referring a row.", "number"),
}
"""Options of questions: what they are, and their type in JSON."""


def content_of(served: ServedModel, answered: Answered, media_type: str) -> bytes:
    """The lines as JSON, CSV or Parquet, as the rows came."""
    if media_type == JSON:
        record = {
            "model": served.title,
            "digest": served.digest,
            "answers": records_of(answered.frame),
            "warnings": answered.warnings,
        }
        return json.dumps(record, allow_nan=False, ensure_ascii=False).encode()
    if media_type == CSV:
        return to_csv(answered.frame)
    assert media_type == PARQUET
    stream = io.BytesIO()
    answered.frame.to_parquet(stream, index=False)
    return stream.getvalue()


def warned(answered: Answered) -> dict[str, str]:
    """The warnings as a header of plain letters: a table has no place for them."""
    if not answered.warnings:
        return {}
    sentences = [sentence[:MOST_LETTERS] for sentence in answered.warnings[:MOST_WARNINGS]]
    return {WARNINGS: json.dumps(sentences)}


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Lines as JSON has them: what is no number is null."""
    lines: list[dict[str, Any]] = plain(frame.to_dict("records"))
    return lines


# The interface as OpenAPI describes it.


def description(
    served: ServedModel, limits: Limits, example: Mapping[str, object]
) -> dict[str, Any]:
    """The OpenAPI description of the interface of a model."""
    row = _row(served, example)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"bayesrbf: {served.title}",
            "version": __version__,
            "description": "One row or many; cells that are left out or null are missing.",
        },
        "servers": [{"url": f"{served.prefix or ''}/api"}],
        "paths": {
            **{f"/{question}": {"post": _question(question, limits)} for question in QUESTIONS},
            "/model": {
                "get": {
                    "summary": "The model: columns, classes, held-out scores, version, digest.",
                    "responses": {"200": {"description": "The model.", "content": {JSON: {}}}},
                }
            },
        },
        "components": {"schemas": {"Row": row, "Problems": _PROBLEMS, "Answers": _ANSWERS}},
    }


_PROBLEMS: Final = {
    "type": "object",
    "required": ["problems"],
    "properties": {"problems": {"type": "array", "items": {"type": "string"}}},
}
_ANSWERS: Final = {
    "type": "object",
    "required": ["model", "digest", "answers", "warnings"],
    "properties": {
        "model": {"type": "string"},
        "digest": {"type": "string"},
        "answers": {"type": "array", "items": {"type": "object"}},
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
}


def _row(served: ServedModel, example: Mapping[str, object]) -> dict[str, Any]:
    """A row as a schema."""
    columns: dict[str, Any] = {}
    levels = served.estimator.columns_.levels_of
    for shown in served.fields:
        numbers = [] if shown.kind.of_texts else ["number"]
        schema: dict[str, Any] = {
            "type": [*numbers, "string", "null"],
            "description": shown.extent,
        }
        if shown.name in levels:
            names = [name for name, _ in shown.levels]
            schema = {"enum": [*dict.fromkeys([*levels[shown.name], *names]), None]}
        columns[shown.name] = schema
    return {"type": "object", "properties": columns, "example": dict(example)}


def _question(question: str, limits: Limits) -> dict[str, Any]:
    """One question as an operation."""
    row, problem = {"$ref": "#/components/schemas/Row"}, {"$ref": "#/components/schemas/Problems"}
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}
    wrapped = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
    table = {"schema": {"type": "string", "format": "binary"}}
    refused = {"content": {JSON: {"schema": problem}}}
    return {
        "operationId": question,
        "summary": QUESTIONS[question].what,
        "parameters": [
            {"name": name, "in": "query", "description": what, "schema": {"type": kind}}
            for name, (what, kind) in PARAMETERS.items()
            if name in QUESTIONS[question].options
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"oneOf": [row, rows, wrapped]}},
                CSV: table,
                PARQUET: table,
            },
        },
        "responses": {
            "200": {
                "description": "One answer for each row, in the form of the request.",
                "content": {
                    JSON: {"schema": {"$ref": "#/components/schemas/Answers"}},
                    CSV: table,
                    PARQUET: table,
                },
            },
            "401": {"description": "The token is missing or wrong.", **refused},
            "413": {"description": "Too many rows or bytes.", **refused},
            "415": {"description": "The content type is none of the three.", **refused},
            "421": {"description": "The Host is no name of the server.", **refused},
            "422": {"description": "Every problem of the request.", **refused},
            "503": {"description": "Too many wait, or it takes too long.", **refused},
        },
    }

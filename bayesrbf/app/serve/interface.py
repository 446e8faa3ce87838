"""The interface of the server: models, settings, rows of a request, answers, OpenAPI."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import math
import re
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from bayesrbf.answers.performance import Performance, performance_of
from bayesrbf.app.check import NOVEL_ROW, changed, training_cells
from bayesrbf.app.predict import complete_cells, refuse_kinds
from bayesrbf.app.report.costs import (
    costs_of,
    decisions_in_words,
    problems_of_focus,
)
from bayesrbf.app.report.options import ANYTHING, Focus, ReportOptions, read_options
from bayesrbf.app.report.output import (
    MODEL,
    held_out_rows,
    numbered,
    predictions_frame,
    read_predictions,
    to_csv,
)
from bayesrbf.app.words import cell, clipped, decimals_of, listing, plain
from bayesrbf.base import names
from bayesrbf.base.artefact import strict_json
from bayesrbf.families.estimator import load
from bayesrbf.fit.asking import ENOUGH
from bayesrbf.fit.decisions import mistakes
from bayesrbf.reading.formats import CONTROL, RawColumn, RawTable, opened_parquet, raw_content
from bayesrbf.reading.notes import TableError
from bayesrbf.reading.noticing import KnownLevels
from bayesrbf.table.kinds import Kind
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.families.classifier import Classifier


# What is served, where, and how much of it one request may take.


PARTS: Final = ("answer", "decision", "odd", "along", "why", "doubt", "next")
"""Parts of the page that answer a case, in the order in which they are asked and shown."""
JSON: Final = "application/json"
CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True)
class ModelFolder:
    """A folder that report or fit wrote, and how its model is served."""

    name: str  # Empty for the only one, which is at the root.
    folder: Path
    costs: Mapping[str, float] = field(default_factory=dict)
    """Cost of a mistaken row by class, in place of those in the folder."""
    refer: float | None = None
    """Cost of referring a row to somebody else; None where that is no choice."""
    shows_rows: bool = True
    """Whether its page fills in rows of the training table."""
    missingness: Literal["as_trained", "ignorable"] = "as_trained"
    """Why cells of the rows that it is asked about are missing."""

    @property
    def prefix(self) -> str:
        """Beginning of the addresses of its pages."""
        return f"/{self.name}" if self.name else ""


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of the requests that wait."""

    rows: int = 10_000
    bytes: int = 10_000_000
    seconds: float = 30.0
    waiting: int = 64
    """Requests that wait for a process; one more is refused."""


@dataclass(frozen=True)
class Access:
    """Hosts and tokens that may ask."""

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    """Names under which the server may be addressed, beside addresses and localhost."""
    token: str = ""
    """Token that a request must have; empty: none."""


@dataclass(frozen=True)
class Asked:
    """A request as a process of the pool takes it."""

    model: str
    task: str
    body: bytes = b""
    media_type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    address: str = "http://127.0.0.1:8000/"
    """Address at which the server was reached."""


@dataclass(frozen=True)
class Tally:
    """Counts of an answer, for the metrics."""

    rows: int = 0
    novel: int = 0  # Of those judged, unlike the training table.
    judged: int = 0
    probability: Mapping[str, float] = field(default_factory=dict)  # Sums over the rows, by class.


NOTHING: Final = Tally()


@dataclass(frozen=True)
class Reply:
    """Reply of a process to a request."""

    content: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # Beside those of every reply.
    tally: Tally = NOTHING


class RequestError(ValueError):
    """A request that cannot be answered: the status, and every problem of it."""

    def __init__(self, status: int, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.status = status
        self.problems = problems


# Answers of the interface: a question about rows, as a frame, as bytes of the form asked for.


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


# Rows from the body of a request, read as the command line reads those of a file.


MOST_DEPTH: Final = 4
"""Levels of nesting in the JSON of rows: an object, its rows, a row."""
MOST_PROBLEMS: Final = 100
"""Problems of a request that are told."""
LONGEST_NAME: Final = 100
"""Letters of a name that are compared with the columns."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of a pair of code units, which JSON can write and no text has."""
_NUMBERS: Final = (int, float)
MOST_NUMBER: Final = 10**300
GZIP: Final = b"\x1f\x8b"
"""First bytes of compressed bodies: unpacked they may be a thousand times as long."""
TABLE: Final = "the table"
_NO_CELLS: Final = {bool: "true or false", list: "a list", dict: "an object"}


def rows_of(served: ServedModel, body: bytes, media_type: str, most_rows: int) -> pd.DataFrame:
    """The rows of a request; RequestError where they cannot be read, or are too many."""
    if media_type == JSON:
        records, beside = records_in(body)
        check_number(len(records), most_rows)
        problems = list(islice(chain(beside, _problems(served, records)), MOST_PROBLEMS + 1))
        try:
            rows = completed(served, raw_records(served, records), "the request")
        except RequestError as error:
            problems += error.problems
        if problems:
            more = ["There are more problems."] * (len(problems) > MOST_PROBLEMS)
            raise RequestError(422, *problems[:MOST_PROBLEMS], *more)
        return with_numbers(served, rows, records)
    if media_type not in (CSV, PARQUET):
        raise RequestError(
            415, f"Content-Type must be {JSON}, {CSV} or {PARQUET}; received {media_type!r}."
        )
    if (media_type == PARQUET) != body.startswith(b"PAR1") or body.startswith(GZIP):
        raise RequestError(422, f"The body is not what its content type {media_type} says.")
    raw = _read(lambda: _table(body, media_type, most_rows))
    check_number(len(raw.lines), most_rows)
    return completed(served, raw, TABLE)


def _table(body: bytes, media_type: str, most_rows: int) -> RawTable:
    """A table in a body; RequestError before more rows are made than one request may have."""
    if media_type == PARQUET:
        check_number(opened_parquet(io.BytesIO(body), TABLE).shape[0], most_rows)
        return next(raw_content(body, TABLE))
    blocks = raw_content(body, TABLE, most_rows + 2)  # a header, and one row too many
    first, second = next(blocks), next(blocks, None)
    check_number(len(first.lines) + (most_rows if second else 0), most_rows)
    return first


def completed(served: ServedModel, raw: RawTable, name: str) -> pd.DataFrame:
    """Cells as the columns of the model."""
    return _read(lambda: complete_cells(served.estimator, raw, name, served.options.table))


def with_numbers(
    served: ServedModel, rows: pd.DataFrame, records: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Rows with the numbers of JSON, which mean what they say, however other cells are written."""
    columns = {name: rows[name].array for name in rows}
    for name in served.plain_reals:
        cells: list[Any] = [record.get(name) for record in records]
        numbers = np.array([float(one) if type(one) in _NUMBERS else np.nan for one in cells])
        read = rows[name].to_numpy(dtype=float)
        columns[name] = pd.array(np.where(np.isnan(numbers), read, numbers), dtype="float64")
    return pd.DataFrame(columns, rows.index)


def _read[T](read: Callable[[], T]) -> T:
    """Result of a reader; its problems become those of the request."""
    try:
        return read()
    except TableError as error:
        raise RequestError(422, *(error.problems or (str(error),))[:MOST_PROBLEMS]) from None


def check_number(rows: int, most: int) -> None:
    """RequestError for more rows than one request may have."""
    if rows > most:
        raise RequestError(413, f"A request may have at most {most} rows.")


def records_in(body: bytes) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows in a JSON body, and a sentence on everything else in it.

    It is one object, a list of them, or an object with a list as ``rows``.
    """
    try:
        content = strict_json(body.decode(), MOST_DEPTH)
    except ValueError as error:  # also of a text that is no UTF-8
        raise RequestError(422, f"The body cannot be read: {clipped(error, 200)}.") from None
    beside: list[str] = []
    if isinstance(content, dict) and isinstance(content.get("rows"), list):
        beside = [
            f"{clipped(name, 40)!r}: nothing stands beside 'rows'; options such as costs are "
            "fields of the query of the address."
            for name in content
            if name != "rows"
        ]
        content = content["rows"]
    elif isinstance(content, dict):
        content = [content]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise RequestError(
            422,
            'The JSON must be a row {"column": cell, ...}, a list of rows, or {"rows": [...]}.',
            *beside,
        )
    if not content:
        raise RequestError(422, "There is no row; give at least one.", *beside)
    return content, beside


def columns_of(served: ServedModel) -> list[str]:
    """Columns that rows may have: those of the model, and what its table had beside them."""
    return list(dict.fromkeys((*served.estimator.columns_.names, *served.options.table.beside)))


def raw_records(served: ServedModel, records: Sequence[Mapping[str, Any]]) -> RawTable:
    """Records as the cells of a file; a name that a record lacks is a missing cell."""
    of = _levels(served)
    cells = [
        RawColumn(
            name,
            [
                _text(record.get(name), name in served.plain_reals, of.get(name))
                for record in records
            ],
        )
        for name in columns_of(served)
        if name in served.estimator.columns_.names or any(name in record for record in records)
    ]
    lines = list(range(1, len(records) + 1))
    return RawTable(tuple(cells), lines, "the request, row", (), marked=True)


def _problems(served: ServedModel, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names that are no columns, and cells that are neither numbers nor text."""
    columns, extra = columns_of(served), {served.options.target, *served.options.table.ignore}
    levels = _levels(served)
    for place, record in enumerate(records, start=1):
        for name, value in record.items():
            problem = ""
            if name in columns:
                problem = _problem(value, levels.get(name))
            elif name not in extra:
                problem = f"the model has no such column; {_near(name, columns)}"
            if problem:
                yield f"row {place}, {clipped(name, 40)!r}: {problem}"


def _levels(served: ServedModel) -> dict[str, KnownLevels]:
    """The levels of every column that has some."""
    return {n: KnownLevels(of) for n, of in served.estimator.columns_.levels_of.items()}


def _problem(cell: Any, levels: KnownLevels | None) -> str:
    """Why a cell of JSON is neither number nor text nor a level; empty where it is."""
    is_level = type(cell) is bool and levels is not None and levels.place(cell) is not None
    if type(cell) in _NO_CELLS and not is_level:
        return f"a cell must be a number, text or null; received {_NO_CELLS[type(cell)]}."
    if type(cell) is int and abs(cell) > MOST_NUMBER:
        return "the number is too large."
    if isinstance(cell, str) and (CONTROL.search(cell) or _HALVES.search(cell)):
        return "the text has characters that are no text."
    return ""


def _near(name: str, columns: Collection[str]) -> str:
    """Columns that a wrong name may mean, as a sentence."""
    near = difflib.get_close_matches(name[:LONGEST_NAME], columns, n=1)
    return f"did you mean {near[0]!r}?" if near else f"they are {listing(list(columns), 8)}."


def _text(cell: Any, is_number: bool, levels: KnownLevels | None) -> str:
    """A cell as a file has it; numbers of a column of numbers come later, what is none is told."""
    if cell is None or (is_number and type(cell) in _NUMBERS) or _problem(cell, levels):
        return ""
    return cell.strip() if isinstance(cell, str) else repr(cell)


# A model folder, opened: the model, the fields of its form, and what its card says.


FEW: Final = 10
"""Held-out rows of a class below which they say little of it."""
N_BARS: Final = 22
TAILS: Final = 0.01
"""Share of the training cells below the field's slider, and above it."""


@dataclass(frozen=True)
class Field:
    """A column of the model as a field of a form."""

    position: int
    name: str
    kind: Kind
    missing: float  # Share of the training cells.
    levels: tuple[tuple[str, float], ...]  # With their shares; empty of numbers.
    low: float  # Ends of the slider, NaN of levels.
    high: float
    decimals: int | None  # Of its cells; None where powers of ten serve them better.
    extent: str  # The training cells in words.
    bars: tuple[float, ...]  # The distribution of the training cells, at most 1.

    @property
    def step(self) -> float:
        """Step of the slider."""
        return float(10.0 ** -_places(self.decimals))

    def written(self, value: float) -> str:
        """A cell in words."""
        return self.kind.written(value) or cell(value, self.decimals)


@dataclass(frozen=True)
class HeldOut:
    """Scores of the model on training rows that were held out of its fits."""

    rows: int
    log_loss: float  # In nats.
    frequencies_log_loss: float  # Of the class frequencies of these rows.
    accuracy: float
    rare: tuple[str, ...]  # Classes of so few held-out rows that they say little of them.
    performance: Performance  # Of two classes one event, of more every class.


@dataclass(frozen=True)
class ServedModel:
    """A model and all that its pages say of it."""

    name: str
    prefix: str
    folder: Path
    estimator: Classifier
    options: ReportOptions
    focus: Focus
    refer: float | None
    shows_rows: bool
    digest: str
    written: str  # The day on which the file was written.

    @classmethod
    def of(cls, served: ModelFolder) -> ServedModel:
        """Open a folder; ValueError or OSError where it cannot be, or costs are of no class."""
        file = served.folder / MODEL
        estimator, options = load(file), read_options(served.folder)
        if served.missingness == "ignorable":
            estimator.assume_missingness(served.missingness)
        if not is_classifier(estimator):
            raise ValueError(
                f"{file} holds a {type(estimator).__name__}, which has no classes; serve answers "
                "about classes."
            )
        refuse_kinds(estimator, file)
        focus = options.focus
        if served.costs:
            focus = replace(focus, costs=served.costs, threshold=None)
        if served.refer is not None and not focus.costs:
            raise ValueError(
                "--refer needs the costs of mistaken rows beside it; name them by --cost."
            )
        problems = list(problems_of_focus(focus, estimator.classes_, f"the model {file}"))
        if problems:
            raise ValueError(" ".join(problems))
        return cls(
            name=served.name,
            prefix=served.prefix,
            folder=served.folder,
            estimator=estimator,
            options=options,
            focus=focus,
            refer=served.refer,
            shows_rows=served.shows_rows,
            digest=hashlib.sha256(file.read_bytes()).hexdigest(),
            written=datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat(),
        )

    @property
    def title(self) -> str:
        """Title on the pages."""
        return self.name or self.folder.resolve().name

    @property
    def classes(self) -> list[str]:
        """Classes in the order of the model."""
        return [str(label) for label in self.estimator.classes_]

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the classes in training."""
        shares = self.estimator.fitted_.class_shares.tolist()
        return dict(zip(self.classes, shares, strict=True))

    @property
    def has_density(self) -> bool:
        """Whether rows have a density: cells can then be judged, and what they would tell."""
        return self.estimator.model_.density is not None

    @property
    def of_interest(self) -> str:
        """The class that is explained at first: the event, the dearest to mistake, the rarest."""
        if self.focus.event is not None:
            return self.focus.event
        costs = costs_of(self.classes, self.focus.costs)
        return self.classes[int(np.lexsort((np.array(list(self.shares.values())), -costs))[0])]

    @cached_property
    def plain_reals(self) -> frozenset[str]:
        """Columns of numbers that are written as such."""
        columns = self.estimator.columns_
        return frozenset(n for n in columns.number_names if not columns.kind_of[n].of_texts)

    @property
    def decimal(self) -> str:
        """The decimal mark of the table: a comma where points stand between thousands."""
        return "," if self.options.table.thousands == "." else "."

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells that it was fitted to."""
        return training_cells(self.estimator)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the largest training cell of every column of numbers on a line."""
        kinds = self.estimator.columns_.kind_of.items()
        lines = [name for name, kind in kinds if not kind.has_levels and kind.is_ordered]
        cells = self.cells[lines].astype(float)
        ends = zip(lines, cells.min().tolist(), cells.max().tolist(), strict=True)
        return {name: (low, high) for name, low, high in ends if low == low}

    @cached_property
    def usual(self) -> pd.DataFrame:
        """A row of usual cells, medians and the most frequent levels: an example, and nobody's."""
        columns = {}
        for one in self.fields:
            known = self.cells[one.name].dropna()
            middle = known.sort_values()[len(known) // 2 :]
            usual = known.mode() if one.kind.has_levels else middle
            columns[one.name] = usual[:1].reset_index(drop=True)
        return pd.DataFrame(columns, pd.RangeIndex(1))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its form."""
        kinds = self.estimator.columns_.kind_of.items()
        return tuple(
            _field(place, name, self.cells[name], kind) for place, (name, kind) in enumerate(kinds)
        )

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions of its training rows, where the folder has them; else an empty frame."""
        return read_predictions(self.folder)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """Performance on held-out rows; None if the folder has none."""
        found = held_out_rows(self.folder, self.classes)
        if found is None:
            return None
        p, codes = found
        counts = np.bincount(codes, minlength=len(self.classes))
        shares = counts[counts > 0] / counts.sum()
        shown = [self.classes.index(self.of_interest)] if len(self.classes) == 2 else None
        judged = performance_of(p, codes, self.classes, shown=shown)
        return HeldOut(
            rows=judged.rows,
            log_loss=judged.log_loss.value,
            frequencies_log_loss=float(-(shares * np.log(shares)).sum()),
            accuracy=judged.accuracy.value,
            rare=tuple(np.array(self.classes)[counts < FEW].tolist()),
            performance=judged,
        )

    @cached_property
    def card(self) -> dict[str, Any]:
        """The model card as JSON."""
        fit = self.estimator.fitted_
        return {
            "model": self.title,
            "estimator": type(self.estimator).__name__,
            "version": __version__,
            "digest": self.digest,
            "written": self.written,
            "target": self.options.target,
            "classes": self.classes,
            "rows": len(self.cells),
            "updates": [one.sentence for one in fit.updates],
            "has_intervals": fit.draws is not None,
            "intervals_assume_the_model": bool(fit.assumes_model),
            "costs": dict(self.focus.costs),
            "event": self.focus.event,
            "actions": dict(self.focus.actions),
            "refer": self.refer,
            "held_out": self.held_out,
            "columns": [
                {
                    "name": one.name,
                    "kind": one.kind.word,
                    "missing": one.missing,
                    "training": [level for level, _ in one.levels] or one.extent,
                }
                for one in self.fields
            ],
        }


def _places(decimals: int | None) -> int:
    """Decimals of a slider."""
    return 15 if decimals is None else decimals


def _field(
    position: int,
    name: str,
    cells: pd.Series,
    kind: Kind,
) -> Field:
    """A column as a field, by its training cells, and its levels where it has any."""
    missing, observed = float(cells.isna().mean()), cells.dropna()
    if not kind.has_levels:
        return _number(position, name, observed.to_numpy(dtype=float), kind, missing)
    shares = observed.map(str).value_counts(normalize=True)
    levels = tuple((name, float(shares.get(name, 0.0))) for name in map(str, kind.levels_in_order))
    most = max(share for _, share in levels)
    bars = tuple(share / most for _, share in levels)
    extent = f"{len(levels)} levels"
    return Field(position, name, kind, missing, levels, np.nan, np.nan, 0, extent, bars)


def _number(position: int, name: str, cells: np.ndarray, kind: Kind, missing: float) -> Field:
    """A column of numbers as a field."""
    if not cells.size:
        return Field(position, name, kind, 1.0, (), 0.0, 1.0, 0, "never observed", ())
    low, high = (float(end) for end in np.quantile(cells, [TAILS, 1 - TAILS]))
    if low == high:
        low, high = float(cells.min()), float(cells.max())
    decimals = decimals_of(cells)
    if decimals is not None:
        places = 10.0**decimals
        low, high = math.floor(low * places) / places, math.ceil(high * places) / places
    least, most = (
        kind.written(end) or cell(end, decimals) for end in (float(cells.min()), float(cells.max()))
    )
    counts, _ = np.histogram(cells, N_BARS, (low, high) if low < high else None)
    return Field(
        position=position,
        name=name,
        kind=kind,
        missing=missing,
        levels=(),
        low=low,
        high=high,
        decimals=decimals,
        extent=f"{least} to {most}",
        bars=tuple((counts / max(counts.max(), 1)).tolist()),
    )

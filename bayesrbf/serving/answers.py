"""Answers of the interface: a question about rows, as a frame, as bytes of the form asked for."""

from __future__ import annotations

import io
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from bayesrbf.artefact.strict_json import strict_json
from bayesrbf.new_rows.training_cells import NOVEL_ROW
from bayesrbf.posterior.decisions import mistakes
from bayesrbf.records import names
from bayesrbf.report.costs import costs_of, decisions, problems_of_costs
from bayesrbf.report.output import predictions_frame, to_csv
from bayesrbf.report.words import listing, plain
from bayesrbf.serving.settings import CSV, JSON, PARQUET, QUESTIONS, RequestError, Tally

if TYPE_CHECKING:
    from bayesrbf.serving.served_model import ServedModel

BLOCKS: Final = {"uncertainty": 500, "decide": 500, "explain": 10, "acquire": 10}
"""Rows that are answered at once; between blocks the time is looked at. All rows of the others."""
PREDICTED_ROWS: Final = 2_000
OPTIONS: Final = {
    "predict": ("costs",),
    "uncertainty": ("prob", "costs"),
    "explain": (),
    "acquire": (),
    "surprise": ("prob",),
    "decide": ("costs", "refer"),
}
"""Options of every question."""
NEEDS_DENSITY: Final = ("acquire", "surprise")
WARNINGS: Final = "Bayesrbf-Warnings"
"""Header of the warnings of an answer."""
MOST_WARNINGS, MOST_LETTERS = 5, 300
MEMORY: Final = 2**28
"""Bytes that arrays over draws take at once."""


@dataclass(frozen=True)
class Options:
    """What a request may say beside its rows."""

    prob: float = 0.9  # Inside the intervals.
    costs: Mapping[str, float] | None = None  # In place of those that the server was told.
    refer: float | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], served: ServedModel, question: str) -> Options:
        """From the query of an address; RequestError with every problem of it."""
        usable = OPTIONS[question]
        problems = [
            f"{name[:40]!r} is no option of {question}; it has {listing(usable) or 'none'}."
            for name in query
            if name not in usable
        ]
        prob = _number(query, "prob", 0.9, problems)
        if prob is not None and not 0 < prob < 1:
            problems.append(f"prob must be between 0 and 1; received {prob:g}.")
        refer = _number(query, "refer", served.refer, problems)
        if refer is not None and refer < 0:
            problems.append(f"refer must be a cost of at least 0; received {refer:g}.")
        costs = served.costs
        if "costs" in query:
            try:
                costs = strict_json(query["costs"], 1)
                costs = {str(name): float(cost) for name, cost in costs.items()}
                problems += problems_of_costs(costs, served.classes, "the model")
            except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
                problems.append('costs must be a JSON object such as {"sick": 10, "well": 1}.')
        if question in NEEDS_DENSITY and not served.has_density:
            kind = type(served.estimator).__name__
            problems.append(f"{kind} has no density of rows, which {question} needs.")
        if question == "decide" and not costs:
            problems.append(
                'decide needs costs of mistaken rows, such as ?costs={"sick": 10, "well": 1}.'
            )
        if problems:
            raise RequestError(422, *problems)
        return cls(prob or 0.9, costs, refer)


def _number(
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
    assert question in QUESTIONS
    end = time.monotonic() + seconds
    size = BLOCKS.get(question, PREDICTED_ROWS if question == "predict" else len(rows))
    frames, tallies = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "The model was fitted to a point")
        for start in range(0, len(rows), size):
            if time.monotonic() > end:
                raise TimeoutError
            block = rows.iloc[start : start + size]
            frame, tally = _LINES[question](served, block, options)
            frames.append(frame)
            tallies.append(tally)
    spoken = dict.fromkeys(str(warning.message) for warning in caught)
    frame = pd.concat(frames, ignore_index=True)
    if rows.index.name != "row":  # else it has the names
        frame["row"] = np.arange(1, len(frame) + 1)
    return Answered(frame, tuple(spoken), _sum(tallies))


def _sum(tallies: list[Tally]) -> Tally:
    """What was counted of all blocks."""
    labels = dict.fromkeys(label for tally in tallies for label in tally.probability)
    return Tally(
        sum(tally.rows for tally in tallies),
        sum(tally.novel for tally in tallies),
        sum(tally.judged for tally in tallies),
        {c: sum(tally.probability.get(c, 0.0) for tally in tallies) for c in labels},
    )


def _tally(served: ServedModel, p: np.ndarray, novelty: np.ndarray | None = None) -> Tally:
    """What is counted of predicted rows."""
    sums = dict(zip(served.classes, p.sum(axis=0).tolist(), strict=True))
    judged = np.zeros(0) if novelty is None else novelty[~np.isnan(novelty)]
    return Tally(len(p), int((judged > NOVEL_ROW).sum()), judged.size, sums)


Lines = tuple[pd.DataFrame, Tally]


def _predict(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Probabilities without intervals, which take a few milliseconds."""
    p = served.estimator.predict_proba(rows)
    labels = np.array(served.classes, dtype=object)
    columns = _numbered(rows) | {"predicted": labels[p.argmax(axis=1)]}
    if options.costs:
        columns["decision"] = labels[decisions(p, served.classes, options.costs)]
    columns |= {f"probability_{label}": p[:, c] for c, label in enumerate(served.classes)}
    return pd.DataFrame(columns), _tally(served, p)


def _uncertainty(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Probabilities with their intervals, as predictions.csv has them."""
    summary = served.estimator.uncertainty(rows, options.prob, memory=MEMORY)
    ids = None if rows.index.name is None else rows.index
    frame = predictions_frame(summary, costs=options.costs, ids=ids)
    p, novelty = summary[names.PROBABILITY].to_numpy(), summary["novelty"].to_numpy()
    return frame, _tally(served, p, novelty)


def _decide(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    """Decisions of least expected cost, each an answer with a class."""
    matrix = cost_matrix(served, options.costs or {})
    return _of_dataset(rows, served.estimator.decide(rows, matrix, options.refer))


def cost_matrix(served: ServedModel, costs: Mapping[str, float]) -> pd.DataFrame:
    """Cost of every answer in a row of every class."""
    matrix = mistakes(costs_of(served.classes, costs))
    return pd.DataFrame(matrix, served.estimator.classes_, served.classes)


def _explain(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    return _of_dataset(rows, served.estimator.explain(rows))


def _acquire(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    return _of_dataset(rows, served.estimator.acquire(rows))


def _surprise(served: ServedModel, rows: pd.DataFrame, options: Options) -> Lines:
    return _of_dataset(rows, served.estimator.surprise(rows, prob=options.prob))


def _of_dataset(rows: pd.DataFrame, dataset: Any) -> Lines:
    """An answer about rows as lines."""
    lines = dataset.to_dataframe().reset_index(drop=True)
    return pd.concat([pd.DataFrame(_numbered(rows)), lines], axis=1), Tally(len(rows))


def _numbered(rows: pd.DataFrame) -> dict[str, Any]:
    """Numbers of the rows, and their names where they have any."""
    columns: dict[str, Any] = {"row": np.arange(len(rows))}
    return (
        columns if rows.index.name is None else columns | {str(rows.index.name): list(rows.index)}
    )


_LINES: Final[dict[str, Callable[[ServedModel, pd.DataFrame, Options], Lines]]] = {
    "predict": _predict,
    "uncertainty": _uncertainty,
    "explain": _explain,
    "acquire": _acquire,
    "surprise": _surprise,
    "decide": _decide,
}


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

"""The interface of the server: questions about rows, answered in the form in which these came."""

from __future__ import annotations

import io
import json
import time
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from bayesrbf.app.check import NEW_LEVELS, changed
from bayesrbf.app.report.output import numbered, to_csv
from bayesrbf.app.serve.questions import QUESTIONS, Options, Question
from bayesrbf.app.serve.rows import rows_of
from bayesrbf.app.serve.served import (
    CSV,
    JSON,
    PARQUET,
    Limits,
    ModelRequest,
    Reply,
    RequestError,
    ServedModel,
    Tally,
)
from bayesrbf.app.words import plain
from bayesrbf.fit.asking import MIN_ROWS

WARNINGS: Final = "Bayesrbf-Warnings"
"""Header of the warnings of an answer."""
MAX_WARNINGS, MAX_LETTERS = 5, 300
"""Warnings in the header of a reply that is a table, and letters of each."""


def reply_to(served: ServedModel, request: ModelRequest, limits: Limits) -> Reply:
    """Reply to a request with a question; RequestError with every problem of it."""
    question = QUESTIONS[request.task]
    media_type = request.media_type or JSON
    try:
        options = Options.of(request.query, served, question)
    except RequestError as error:
        try:  # what else is wrong is said, too
            rows_of(served, request.body, media_type, limits.rows)
        except RequestError as other:
            raise RequestError(other.status, *error.problems, *other.problems) from None
        raise
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "The model was fitted to a point")
        rows = rows_of(served, request.body, media_type, limits.rows)
        frame, tally = _answer(served, question, rows, options, limits.seconds)
    messages = [str(warning.message) for warning in caught]
    if len(rows) >= MIN_ROWS:  # predictions warn of missing cells themselves
        warned = (message for message in messages if not message.startswith(NEW_LEVELS))
        messages = [*changed(served.estimator, rows, ("missing", "reasons")), *warned]
    messages = [*dict.fromkeys(messages)]
    headers = {}
    if messages:  # for tables, which have no place for them: plain letters
        shortened = [message[:MAX_LETTERS] for message in messages[:MAX_WARNINGS]]
        headers = {WARNINGS: json.dumps(shortened)}
    return Reply(_content(served, frame, messages, media_type), media_type, 200, headers, tally)


def _answer(
    served: ServedModel, question: Question, rows: pd.DataFrame, options: Options, seconds: float
) -> tuple[pd.DataFrame, Tally]:
    """Lines about rows, one for each, and counts; TimeoutError between two blocks of rows."""
    end = time.monotonic() + seconds
    size = question.rows or len(rows)
    frames, tallies = [], []
    for start in range(0, len(rows), size):
        if time.monotonic() > end:
            raise TimeoutError
        frame, tally = question.lines(served, rows.iloc[start : start + size], options)
        frames.append(frame)
        tallies.append(tally)
    frame = pd.concat(frames, ignore_index=True)
    frame["outside"] = outside(served, rows)
    frame = numbered(frame, None if rows.index.name is None else rows.index)
    return frame, _sum(tallies)


def outside(served: ServedModel, rows: pd.DataFrame) -> list[str]:
    """Names of the columns of numbers outside their training range, by row."""
    found = [list[str]() for _ in range(len(rows))]
    for name, (low, high) in served.ranges.items():
        cells = rows[name].to_numpy(dtype=float)
        for index in np.flatnonzero((cells < low) | (cells > high)):
            found[index].append(name)
    return [", ".join(names_of_row) for names_of_row in found]


def _sum(tallies: list[Tally]) -> Tally:
    """Counts summed over blocks."""
    labels = dict.fromkeys(label for tally in tallies for label in tally.probability)
    return Tally(
        sum(tally.rows for tally in tallies),
        sum(tally.novel for tally in tallies),
        sum(tally.judged for tally in tallies),
        {c: sum(tally.probability.get(c, 0.0) for tally in tallies) for c in labels},
    )


def _content(
    served: ServedModel, frame: pd.DataFrame, messages: Sequence[str], media_type: str
) -> bytes:
    """The lines as JSON, CSV or Parquet, as the rows came."""
    if media_type == JSON:
        record = {
            "model": served.title,
            "digest": served.digest,
            "answers": records_of(frame),
            "warnings": messages,
        }
        return json.dumps(record, allow_nan=False, ensure_ascii=False).encode()
    if media_type == CSV:
        return to_csv(frame)
    assert media_type == PARQUET
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False)
    return stream.getvalue()


def records_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as JSON records; NaN becomes null."""
    lines: list[dict[str, Any]] = plain(frame.to_dict("records"))
    return lines

"""What every answer of the server must be, whatever was asked."""

from __future__ import annotations

import csv
import io
import json
from typing import Final, NoReturn

import pyarrow.parquet as pq

from bayesrbf.app.serve.served import CSV, JSON, PARQUET
from bayesrbf.app.serve.server import HEADERS
from tests.app.report.injections import PAYLOADS
from tests.app.serve.mutations import ASKED, Sent
from tests.app.serve.server import Answer

MARKUP: Final = tuple(text for text in PAYLOADS if text.startswith("<") and len(text) > 20)
"""Texts that a page may have in other letters only."""
NOT_HTTP: Final = b"Invalid HTTP request received."
"""What is said, with a 400, of bytes that are no request."""


def broken(sent: Sent, answer: Answer) -> str:
    """The promise that an answer does not keep; empty where it keeps all."""
    status, media_type = answer.status, answer.media_type
    if status >= 500 and status != 503:
        return f"status {status}"
    if status == 400 and answer.content in (NOT_HTTP, b"" if sent.method == "HEAD" else NOT_HTTP):
        return ""
    missing = [name for name in HEADERS if answer.headers.get(name.lower()) != HEADERS[name]]
    if missing:
        return f"no {missing[0]}"
    if not answer.content:
        of_part = status == 200 and sent.path.startswith("/parts/")  # which has nothing to say
        allowed = sent.method == "HEAD" or status in (204, 307) or of_part
        return "" if allowed else f"nothing at all, status {status}"
    if status == 200 and sent.path in ASKED:
        asked = sent.media_type.partition(";")[0].strip().lower() or JSON
        if media_type != asked:
            return f"{media_type} where {asked} was asked for"
    try:
        return _content(answer)
    except (ValueError, OSError) as error:
        return f"no {media_type}: {error}"


def _content(answer: Answer) -> str:
    """What is wrong with the content, by its type; errors where it is of another."""
    media_type, content = answer.media_type, answer.content
    if media_type == JSON:
        record = json.loads(content.decode(), parse_constant=_refused)
        if answer.status >= 400 and not _says(record):
            return f"status {answer.status} without a sentence"
    elif answer.status >= 400 and media_type != "text/html":
        return f"status {answer.status} as {media_type or 'nothing'}"
    elif media_type == "text/html":
        text = content.decode()
        found = [payload for payload in MARKUP if payload in text]
        return f"the page has {found[0]}" if found else ""
    elif media_type == CSV:
        widths = {len(line) for line in csv.reader(io.StringIO(content.decode()), strict=True)}
        return "" if len(widths) == 1 else f"CSV with lines of {sorted(widths)} cells"
    elif media_type == PARQUET:
        pq.read_table(io.BytesIO(content))
    elif media_type not in ("text/plain", "text/css", "text/javascript"):
        return f"{media_type or 'nothing'} was never promised"
    return ""


def _says(record: object) -> bool:
    """Whether a record has a sentence for each problem."""
    problems = record.get("problems") if isinstance(record, dict) else None
    return bool(problems) and all(isinstance(text, str) and text for text in problems)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")

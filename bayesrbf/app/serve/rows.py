"""Rows from the body of a request, read as the command line reads those of a file."""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import pandas as pd

from bayesrbf import TableError
from bayesrbf.app.predict import complete_cells, warn_of_extra
from bayesrbf.app.serve.served import CSV, JSON, PARQUET, RequestError, ServedModel
from bayesrbf.app.words import clipped, listing
from bayesrbf.base.artefact import strict_json
from bayesrbf.reading.formats import CONTROL, RawColumn, RawTable, opened_parquet, raw_content
from bayesrbf.reading.noticing import KnownLevels

MAX_DEPTH: Final = 4
"""Levels of nesting in the JSON of rows: an object, its rows, a row."""
MAX_PROBLEMS: Final = 100
"""Problems of a request that are told."""
LONGEST_NAME: Final = 100
"""Letters of a name that are compared with the columns."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of a pair of code units, which JSON can write and no text has."""
_NUMBERS: Final = (int, float)
MAX_NUMBER: Final = 10**300  # A float ends near 1.8e308.
GZIP: Final = b"\x1f\x8b"
"""First bytes of compressed bodies: unpacked they may be a thousand times as long."""
TABLE: Final = "the table"
_NO_CELLS: Final = {bool: "true or false", list: "a list", dict: "an object"}


def rows_of(served: ServedModel, body: bytes, media_type: str, most_rows: int) -> pd.DataFrame:
    """The rows of a request; RequestError where they cannot be read, or are too many."""
    if media_type == JSON:
        records, beside = records_in(body)
        check_number(len(records), most_rows)
        problems = list(islice(chain(beside, _problems(served, records)), MAX_PROBLEMS + 1))
        try:
            rows = completed(served, raw_records(served, records), "the request")
        except RequestError as error:
            problems += error.problems
        if problems:
            more = ["There are more problems."] * (len(problems) > MAX_PROBLEMS)
            raise RequestError(422, *problems[:MAX_PROBLEMS], *more)
        return with_numbers(served, rows, records)
    if media_type not in (CSV, PARQUET):
        raise RequestError(
            415, f"Content-Type must be {JSON}, {CSV} or {PARQUET}; received {media_type!r}."
        )
    if (media_type == PARQUET) != body.startswith(b"PAR1") or body.startswith(GZIP):
        raise RequestError(422, f"The body is not what its content type {media_type} says.")
    raw = _read(lambda: _table(body, media_type, most_rows))
    check_number(len(raw.lines), most_rows)
    header = [column.name for column in raw.columns]
    warn_of_extra(served.estimator, header, TABLE.capitalize(), served.options)
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
    """Rows with numeric JSON cells taken as they are, without the reading of decimal marks."""
    columns = {name: rows[name].array for name in rows}
    for name in served.plain_reals:
        cells: list[Any] = [record.get(name) for record in records]
        numbers = np.array([float(value) if type(value) in _NUMBERS else np.nan for value in cells])
        read = rows[name].to_numpy(dtype=float)
        columns[name] = pd.array(np.where(np.isnan(numbers), read, numbers), dtype="float64")
    return pd.DataFrame(columns, rows.index)


def _read[T](read: Callable[[], T]) -> T:
    """Result of a reader; its errors become a RequestError."""
    try:
        return read()
    except TableError as error:
        raise RequestError(422, *(error.problems or (str(error),))[:MAX_PROBLEMS]) from None


def check_number(rows: int, most: int) -> None:
    """RequestError for more rows than one request may have."""
    if rows > most:
        raise RequestError(413, f"A request may have at most {most} rows.")


def records_in(body: bytes) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows in a JSON body, and a sentence on everything else in it.

    It is one object, a list of them, or an object with a list as ``rows``.
    """
    try:
        content = strict_json(body.decode(), MAX_DEPTH)
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
    """Columns that rows may have: features, and other columns of the training table."""
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
    columns = columns_of(served)
    extra = {served.options.target, *served.options.table.ignore}
    levels = _levels(served)
    for number, record in enumerate(records, start=1):
        for name, value in record.items():
            problem = ""
            if name in columns:
                problem = _problem(value, levels.get(name))
            elif name not in extra:
                problem = f"the model has no such column; {_near(name, columns)}"
            if problem:
                yield f"row {number}, {clipped(name, 40)!r}: {problem}"


def _levels(served: ServedModel) -> dict[str, KnownLevels]:
    """The levels of every column that has some."""
    return {n: KnownLevels(of) for n, of in served.estimator.columns_.levels_of.items()}


def _problem(cell: Any, levels: KnownLevels | None) -> str:
    """Problem of a JSON cell that is no number, text or level; empty for a valid cell."""
    is_level = type(cell) is bool and levels is not None and levels.position(cell) is not None
    if type(cell) in _NO_CELLS and not is_level:
        return f"a cell must be a number, text or null; received {_NO_CELLS[type(cell)]}."
    if type(cell) is int and abs(cell) > MAX_NUMBER:
        return "the number is too large."
    if isinstance(cell, str) and (CONTROL.search(cell) or _HALVES.search(cell)):
        return "the text has characters that are no text."
    return ""


def _near(name: str, columns: Collection[str]) -> str:
    """Columns that a wrong name may mean, as a sentence."""
    near = difflib.get_close_matches(name[:LONGEST_NAME], columns, n=1)
    return f"did you mean {near[0]!r}?" if near else f"they are {listing(list(columns), 8)}."


def _text(cell: Any, is_number: bool, levels: KnownLevels | None) -> str:
    """Text of a cell; empty for numbers of numeric columns (read later) and for problems."""
    if cell is None or (is_number and type(cell) in _NUMBERS) or _problem(cell, levels):
        return ""
    return cell.strip() if isinstance(cell, str) else repr(cell)

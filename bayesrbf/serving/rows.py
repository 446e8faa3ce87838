"""Rows from the body of a request, read as the command line reads those of a file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bayesrbf.artefact.strict_json import strict_json
from bayesrbf.new_rows.new_row_files import complete_cells
from bayesrbf.reading import TableError
from bayesrbf.reading.decoding import CONTROL
from bayesrbf.reading.formats import RawColumn, RawTable, raw_content
from bayesrbf.report.words import clipped, listing
from bayesrbf.serving.settings import CSV, JSON, PARQUET, RequestError

if TYPE_CHECKING:
    import pandas as pd

    from bayesrbf.serving.served_model import ServedModel

MOST_DEPTH: Final = 4
"""Levels of nesting in the JSON of rows: an object, its rows, a row."""
MOST_PROBLEMS: Final = 100
"""Problems of a request that are told."""
LONGEST_NAME: Final = 100
"""Letters of a name that are compared with the columns."""
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of a pair of code units, which JSON can write and no text has."""
_NO_CELLS: Final = {bool: "true or false", list: "a list", dict: "an object"}


def rows_of(served: ServedModel, body: bytes, media_type: str, most_rows: int) -> pd.DataFrame:
    """The rows of a request; RequestError where they cannot be read, or are too many."""
    if media_type == JSON:
        name, raw = "the request", raw_records(served, records_in(body), most_rows)
    elif media_type in (CSV, PARQUET):
        if (media_type == PARQUET) != body.startswith(b"PAR1"):
            raise RequestError(422, f"The body is not what its content type {media_type} says.")
        name = "the table"
        raw = _read(lambda: next(raw_content(body, name)))
    else:
        raise RequestError(
            415, f"Content-Type must be {JSON}, {CSV} or {PARQUET}; received {media_type!r}."
        )
    check_number(len(raw.lines), most_rows)
    return _read(lambda: complete_cells(served.estimator, raw, name, served.options.table))


def _read[T](read: Callable[[], T]) -> T:
    """What a reader gives; its problems are those of the request."""
    try:
        return read()
    except TableError as error:
        raise RequestError(422, *(error.problems or (str(error),))[:MOST_PROBLEMS]) from None


def check_number(rows: int, most: int) -> None:
    """RequestError for more rows than one request may have."""
    if rows > most:
        raise RequestError(413, f"A request may have at most {most} rows; received {rows}.")


def records_in(body: bytes) -> list[Mapping[str, Any]]:
    """The rows in a JSON body: one object, a list of them, or an object with a list as ``rows``."""
    try:
        content = strict_json(body.decode(), MOST_DEPTH)
    except ValueError as error:  # also of a text that is no UTF-8
        raise RequestError(422, f"The body cannot be read: {clipped(error, 200)}.") from None
    if isinstance(content, dict):
        content = content["rows"] if isinstance(content.get("rows"), list) else [content]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise RequestError(
            422, 'The JSON must be a row {"column": cell, ...}, a list of rows, or {"rows": [...]}.'
        )
    if not content:
        raise RequestError(422, "There is no row; give at least one.")
    return content


def raw_records(
    served: ServedModel, records: Sequence[Mapping[str, Any]], most_rows: int
) -> RawTable:
    """Records as the cells of a file; a name that a record lacks is a missing cell."""
    check_number(len(records), most_rows)
    table = served.options.table
    columns = dict.fromkeys((*served.estimator.columns_.names, *table.beside))
    extra = {served.options.target, *table.ignore}
    problems = list(islice(_problems(records, columns, extra), MOST_PROBLEMS + 1))
    if problems:
        more = ["There are more problems."] * (len(problems) > MOST_PROBLEMS)
        raise RequestError(422, *problems[:MOST_PROBLEMS], *more)
    comma = table.thousands == "."
    cells = [
        RawColumn(name, [_text(record.get(name), comma) for record in records])
        for name in columns
        if name in served.estimator.columns_.names or any(name in record for record in records)
    ]
    lines = list(range(1, len(records) + 1))
    return RawTable(tuple(cells), lines, "the request, row", (), marked=served.has_marks)


def _problems(
    records: Sequence[Mapping[str, Any]], columns: Collection[str], extra: Collection[str]
) -> Iterator[str]:
    """Names that are no columns, and cells that are neither numbers nor text."""
    for place, record in enumerate(records, start=1):
        for name, cell in record.items():
            problem = ""
            if name not in columns:
                if name not in extra:
                    problem = f"the model has no such column; {_near(name, columns)}"
            elif type(cell) in _NO_CELLS:
                problem = (
                    f"a cell must be a number, text or null; received {_NO_CELLS[type(cell)]}."
                )
            elif isinstance(cell, str) and (CONTROL.search(cell) or _HALVES.search(cell)):
                problem = "the text has characters that are no text."
            if problem:
                yield f"row {place}, {clipped(name, 40)!r}: {problem}"


def _near(name: str, columns: Collection[str]) -> str:
    """What may have been meant by a name that is no column."""
    near = difflib.get_close_matches(name[:LONGEST_NAME], columns, n=1)
    return f"did you mean {near[0]!r}?" if near else f"they are {listing(list(columns), 8)}."


def _text(cell: Any, comma: bool) -> str:
    """A cell as a file has it; ``comma``: numbers of this table have points between thousands."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell.strip()
    return repr(cell).replace(".", ",") if comma else repr(cell)

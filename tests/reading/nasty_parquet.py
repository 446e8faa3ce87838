"""Nasty Parquet files, made by code."""

from __future__ import annotations

import datetime
import io
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from tests.reading.nasty import PLAIN, TWO, Nasty


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    """A Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), file, **options)
    return file.getvalue()


def arrow(values: list[Any], kind: str, *more: Any) -> Any:
    import pyarrow as pa

    return pa.array(values, getattr(pa, kind)(*more))


def in_any(values: list[Any], *kinds: str) -> bytes:
    """In the first of these types that the pyarrow at hand can write."""
    import pyarrow as pa

    try:
        return typed(lambda: arrow(values, kinds[0]))()
    except pa.ArrowNotImplementedError:
        return in_any(values, *kinds[1:])


def typed(make: Callable[[], Any]) -> Callable[[], bytes]:
    return lambda: parquet({"a": make(), "b": ["x", "y"]})


def struct_of_texts() -> Any:
    import pyarrow as pa

    return pa.array([{"n": 1}, {"n": 2}])


def lists() -> Any:
    import pyarrow as pa

    return pa.array([[1], [2, 3]])


def dictionary() -> Any:
    import pyarrow as pa

    return pa.array(["u", "v"]).dictionary_encode()


def twice() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), file)
    return file.getvalue()


def cut(share: float) -> bytes:
    whole = parquet({"a": [1.5, 2.0], "b": ["x", "y"]})
    return whole[: int(len(whole) * share)]


def long_footer() -> bytes:
    whole = parquet({"a": [1.5, 2.0], "b": ["x", "y"]})
    return whole[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1"


PARQUET: Final = {
    "floats": Nasty(partial(parquet, {"a": [1.5, 2.0], "b": ["x", "y"]}), TWO),
    "NaN and null": Nasty(
        partial(parquet, {"a": [1.5, float("nan"), None], "b": ["x", "y", None]}),
        {"a": [1.5, None], "b": ["x", "y"]},
        "rows without a cell are no rows and were skipped: 3.",
    ),
    "infinity": Nasty(
        partial(parquet, {"a": [1.5, float("inf")], "b": ["x", "y"]}),
        "row 2, column 'a': 'inf' is infinite",
    ),
    "halves": Nasty(typed(lambda: arrow([1.5, 2.0], "float32").cast("float16")), TWO),
    "integers beyond 2^53": Nasty(
        typed(lambda: arrow([2**63 - 1, 1], "int64")),
        {"a": ["9223372036854775807", "1"], "b": ["x", "y"]},
        "too long for a float",
    ),
    "decimals": Nasty(
        typed(lambda: arrow([Decimal("1.5"), Decimal("2")], "decimal128", 5, 2)), TWO
    ),
    "dates": Nasty(
        typed(lambda: arrow([datetime.date(2020, 1, 1), None], "date32")),
        "is a date: say --dates a",
    ),
    "instants in zones": Nasty(
        typed(lambda: arrow([datetime.datetime(2020, 1, 1), None], "timestamp", "us", "+01:00")),
        "is a date: say --dates a",
    ),
    "instants beyond the year 9999": Nasty(
        typed(lambda: arrow([2**60, 0], "int64").cast("timestamp[ms]")),
        "column 'a': a cell cannot be read as timestamp",
    ),
    "nanoseconds": Nasty(
        typed(lambda: arrow([2**60 + 1, 0], "int64").cast("timestamp[ns]")),
        "is a date: say --dates a",
    ),
    "days beyond the year 9999": Nasty(
        typed(lambda: arrow([10**7, 0], "int32").cast("date32")), "cannot be read as date32"
    ),
    "a zone that does not exist": Nasty(
        typed(lambda: arrow([0, 1], "timestamp", "us", "Mars/Olympus")),
        "cannot be read as timestamp",
    ),
    "the first instant, in a zone": Nasty(
        typed(lambda: arrow([-62135596800 * 10**6, 0], "timestamp", "us", "+14:00")),
        "is a date: say --dates a",
    ),
    "texts of another Arrow type": Nasty(
        lambda: in_any(["u", None], "string_view", "large_string"),
        {"a": ["u", None], "b": ["x", "y"]},
    ),
    "durations": Nasty(
        typed(lambda: arrow([5, 6], "int64").cast("duration[s]")), "neither numbers nor categories"
    ),
    "bytes": Nasty(
        typed(lambda: arrow([b"u", b"\xff"], "binary")), "neither numbers nor categories"
    ),
    "lists": Nasty(typed(lists), "neither numbers nor categories"),
    "structures": Nasty(typed(struct_of_texts), "neither numbers nor categories"),
    "booleans": Nasty(
        typed(lambda: arrow([True, None], "bool_")), {"a": ["True", None], "b": ["x", "y"]}
    ),
    "dictionaries": Nasty(typed(dictionary), {"a": ["u", "v"], "b": ["x", "y"]}),
    "nulls alone": Nasty(
        typed(lambda: arrow([None, None], "null")),
        {"a": [None, None], "b": ["x", "y"]},
        "has no value",
    ),
    "the word NA": Nasty(
        partial(parquet, {"a": [1.5, 2.0], "b": ["NA", "?"]}), {"a": [1.5, 2.0], "b": ["NA", "?"]}
    ),
    "numbers as text": Nasty(
        partial(parquet, {"a": ["1.5", "2"], "b": ["x", "y"]}),
        TWO,
    ),
    "no row": Nasty(partial(parquet, {"a": [], "b": []}), "0 rows"),
    "no column": Nasty(partial(parquet, {}), "0 columns"),
    "a column without a name": Nasty(partial(parquet, {"": [1.5], "b": ["x"]}), "without a name"),
    "the same name twice": Nasty(twice, "the same name"),
    "a NUL in a name": Nasty(partial(parquet, {"a\0": [1.5], "b": ["x"]}), "control character"),
    "an escape sequence in a cell": Nasty(
        partial(parquet, {"a": [1.5], "b": ["\x1b[2J"]}), "control character"
    ),
    "half of the file": Nasty(partial(cut, 0.5), "damaged"),
    "the first four bytes": Nasty(b"PAR1", "damaged"),
    "a footer longer than the file": Nasty(long_footer, "damaged"),
    "CSV under the name of Parquet": Nasty(PLAIN.encode(), TWO),
    "a cell of 2 MB": Nasty(
        partial(parquet, {"a": [1.5, 2.0], "b": ["x" * 2**21, "y"]}),
        {"a": [1.5, 2.0], "b": ["x" * 2**21, "y"]},
    ),
}

CORPUS: Final[dict[str, Nasty]] = {
    name: Nasty(one.content, one.becomes, one.note, ".parquet") for name, one in PARQUET.items()
}

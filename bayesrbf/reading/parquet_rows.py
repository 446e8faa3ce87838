"""Rows of Parquet files: all at once, by row groups, or some at random of a long file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.reading.decoding import check_size, check_text
from bayesrbf.reading.notes import TableError

MOST_PARQUET_CELLS: Final = 10_000_000
"""Cells of a Parquet file that are read at once; as text, each takes some 80 bytes."""
DRAWN_ROWS: Final = 20_000
"""Rows of a longer file that a report looks at."""


@dataclass(frozen=True)
class OpenedParquet:
    """A Parquet file with distinct names."""

    file: Any
    texts: frozenset[str]  # Columns of text, which are read as dictionaries, as categories are.

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.file.metadata.num_rows, self.file.metadata.num_columns


def opened_parquet(source: Any, name: str) -> OpenedParquet:
    """A Parquet file with distinct names; texts stay in dictionaries: one may be in many rows."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
        import pyarrow.types as t
    except ImportError as error:
        raise TableError(
            f"{name} is a Parquet file, which needs pyarrow: pip install pyarrow."
        ) from error
    try:
        schema = pq.ParquetFile(source).schema_arrow
        texts = [field.name for field in schema if t.is_string(field.type)]
        opened = pq.ParquetFile(source, read_dictionary=texts)
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: names that are no text
        raise TableError(f"{name} is a damaged Parquet file ({error}).") from error
    metadata = opened.metadata
    if not metadata.num_rows or not metadata.num_columns:
        raise TableError(f"{name} has {metadata.num_rows} rows and {metadata.num_columns} columns.")
    if len(set(schema.names)) < len(schema.names) or "" in schema.names:
        raise TableError(f"{name} has columns without a name or with the same name; rename them.")
    for title in schema.names:
        check_text(title, f"{name}, the name of a column")
    return OpenedParquet(opened, frozenset(texts))


def long_parquet(path: Path) -> OpenedParquet | None:
    """The file, opened, if it is Parquet of more cells than are read at once; else None."""
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            return None
    opened = opened_parquet(path, path.name)
    rows, columns = opened.shape
    return opened if rows * columns > MOST_PARQUET_CELLS else None


def rows_of(opened: OpenedParquet, name: str, groups: Sequence[int] | None = None) -> Any:
    """Rows of some row groups, or of all, as an Arrow table.

    TableError where they say, or turn out, to hold more than a CSV file may.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as t

    file = opened.file
    groups = range(file.metadata.num_row_groups) if groups is None else groups
    metadata = [file.metadata.row_group(group) for group in groups]
    size = max(
        sum(2 * row_group.num_rows * row_group.num_columns for row_group in metadata),
        sum(row_group.total_byte_size for row_group in metadata),
    )
    check_size(size, name)
    try:
        table = file.read_row_groups(list(groups))
        lengths = (
            pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
            for column in table.columns
            if t.is_dictionary(column.type) and t.is_string(column.type.value_type)
            for chunk in column.chunks
        )
        size = sum(lengths, start=size)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name} is a damaged Parquet file ({error}).") from error
    check_size(size, name)
    return table


def row_groups(opened: OpenedParquet, name: str) -> Iterator[tuple[int, Any]]:
    """Number of the first row of every row group, and its rows."""
    start = 0
    for group in range(opened.file.metadata.num_row_groups):
        table = rows_of(opened, name, [group])
        yield start, table
        start += table.num_rows


def random_rows(opened: OpenedParquet, name: str) -> tuple[list[int], Any]:
    """Numbers of some rows, all as likely, in their order, and the rows; always the same ones."""
    import pyarrow as pa

    total, _ = opened.shape
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(total, min(DRAWN_ROWS, total), replace=False, shuffle=False))
    parts = []
    for start, table in row_groups(opened, name):
        own = chosen[np.searchsorted(chosen, start) : np.searchsorted(chosen, start + len(table))]
        parts.append(table.take(own - start))
    return chosen.tolist(), pa.concat_tables(parts)

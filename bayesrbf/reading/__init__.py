"""Tables from files: CSV and Parquet as real and categorical columns, and what was noticed."""

from __future__ import annotations

from bayesrbf.reading.files import MISSING_MARKERS, ReadTable, read_table
from bayesrbf.reading.table_error import TableError

__all__ = ["MISSING_MARKERS", "ReadTable", "TableError", "read_table"]

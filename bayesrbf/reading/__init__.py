"""Tables from files: CSV and Parquet as real and categorical columns, and what was noticed."""

from __future__ import annotations

from bayesrbf.reading.delimited import TableError
from bayesrbf.reading.tabular_files import MISSING_MARKERS, ReadTable, read_table

__all__ = ["MISSING_MARKERS", "ReadTable", "TableError", "read_table"]

"""Tables from files: what columns were taken for, and what was noticed before any fit."""

from __future__ import annotations

from bayesrbf.reading.missing import MISSING_MARKERS
from bayesrbf.reading.notes import TableError
from bayesrbf.reading.read import read_table
from bayesrbf.reading.tabular_files import (
    ReadTable,
    names_in_file,
    numbers_have_commas,
    read_blocks,
    read_file,
    text_dtype,
)

__all__ = [
    "MISSING_MARKERS",
    "ReadTable",
    "TableError",
    "names_in_file",
    "numbers_have_commas",
    "read_blocks",
    "read_file",
    "read_table",
    "text_dtype",
]

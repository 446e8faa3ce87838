"""The error of every reader of files."""

from __future__ import annotations


class TableError(ValueError):
    """A file that cannot be read as a table, in one sentence."""

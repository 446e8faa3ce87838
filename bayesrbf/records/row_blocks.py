"""Rows in blocks: what is made of each stays within one bound of memory."""

from __future__ import annotations

from collections.abc import Iterator

AT_ONCE = 2**19
"""Numbers that an array over a block of rows may take: 4 MiB."""
IN_CACHE = 2**16
"""Numbers of an array that is gone through several times: 512 KiB stay in a core's own cache."""


def in_blocks(n_rows: int, numbers_a_row: int, *, cached: bool = False) -> Iterator[slice]:
    """Neighbouring rows, so many that an array of that many numbers a row stays within the bound.

    >>> list(in_blocks(5, AT_ONCE // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, (IN_CACHE if cached else AT_ONCE) // max(1, numbers_a_row))
    return (slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size))

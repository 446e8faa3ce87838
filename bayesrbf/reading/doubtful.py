"""Finds columns of text in a frame that seem to hold numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from bayesrbf.reading.notation import limits_among, read_numbers

FEW_OTHERS: Final = 0.1
"""Share of the observed cells up to which the others are an exception."""
LEAST_NUMBERS: Final = 10
"""Numbers that a column must hold; fewer different ones may be codes that were made text."""
REMEDY: Final = (
    "read_table(X) of this package reads quantities, and categorical_features names codes"
)
"""What to do where columns of text hold numbers."""
_ZERO_FIRST: Final = re.compile(r"[+-]?0\d+", re.ASCII)


def numbers_as_text(cells: Iterable[str]) -> str:
    """A clause about a column of text that holds numbers in nearly all cells; else empty.

    >>> numbers_as_text([f"${i},500.00" for i in range(1, 20)])
    "holds numbers written as text, such as '$1,500.00': 19 different ones count as categories"
    """
    counts = Counter(cell.strip() for cell in cells)
    limits = limits_among(counts)
    texts = dict.fromkeys(limits.get(text, text) for text in counts)
    numeric = read_numbers(list(texts)).numbers
    others = Counter({t: n for t, n in counts.items() if limits.get(t, t) not in numeric})
    total, n_others = counts.total(), others.total()
    if any(_ZERO_FIRST.fullmatch(text) for text in numeric) or not numeric.keys() & counts.keys():
        return ""
    if not others:
        if len(counts) <= LEAST_NUMBERS:
            return ""
        example = next(iter(limits), next(iter(counts)))
        return (
            f"holds numbers written as text, such as {example!r}: {len(counts)} different ones "
            "count as categories"
        )
    if n_others > FEW_OTHERS * total or total - n_others < LEAST_NUMBERS:
        return ""
    shown = ", ".join(
        f"{cell!r} {'once' if times == 1 else f'{times} times'}"
        for cell, times in others.most_common(3)
    )
    more = ", ..." if len(others) > 3 else ""
    few = "1 cell" if n_others == 1 else f"{n_others} cells"
    return (
        f"is text for {few} ({shown}{more}): its other {total - n_others} cells are numbers and "
        "count as categories"
    )

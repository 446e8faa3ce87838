"""What is doubtful about columns of text of a frame that is fitted as it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from bayesrbf.reading.limits import limits_among
from bayesrbf.reading.notation import read_numbers
from bayesrbf.reading.noticing import hardly_repeats

FEW_OTHERS: Final = 0.1
"""Share of the observed cells up to which the others are an exception."""
LEAST_NUMBERS: Final = 10
"""Numbers that a column must hold; fewer different ones may be codes that were made text."""
_LEADING_ZERO: Final = re.compile(r"[+-]?0\d+", re.ASCII)


class TextWarning(UserWarning):
    """A column of text of a frame may be no category; the command line has its own notes."""


def doubtful_texts(columns: Mapping[str, Iterable[str]]) -> str:
    """What to do about columns of text that are no categories, in one paragraph; empty if none is.

    They are those of numbers, but for a few cells, and those of texts that hardly repeat. The
    mapping has the observed cells of each column.

    >>> print(doubtful_texts({"fee": [f"${i},500.00" for i in range(1, 20)], "ward": "abab"}))
    Column 'fee' holds numbers written as text, such as '$1,500.00': 19 different ones count as
    categories. If they are codes, name the column in categorical_features; if they are quantities,
    bayesrbf.read_table(X) reads them, or convert them, NaN where missing.
    """
    counted = {name: Counter(cell.strip() for cell in cells) for name, cells in columns.items()}
    numbers = {name: _numbers(name, counts) for name, counts in counted.items()}
    told = list(filter(None, numbers.values()))
    if told:
        told.append(
            "If they are codes, name the column in categorical_features; if they are quantities, "
            "bayesrbf.read_table(X) reads them, or convert them, NaN where missing."
        )
    names = [
        f"Column {name!r} holds text that hardly repeats, such as {max(counts, key=len)[:40]!r}: "
        f"{len(counts)} different values in {counts.total()} rows count as categories."
        for name, counts in counted.items()
        if not numbers[name] and hardly_repeats(counts)
    ]
    if names:
        told += [*names, "They teach nothing: leave the column out of X."]
    return " ".join(told)


def _numbers(name: str, counts: Counter[str]) -> str:
    """What a column of text is that holds numbers but for a few cells; empty for any other."""
    limits = limits_among(counts)
    texts = dict.fromkeys(limits.get(text, text) for text in counts)
    numeric = read_numbers(list(texts)).numbers
    others = Counter({t: n for t, n in counts.items() if limits.get(t, t) not in numeric})
    total, n_others = counts.total(), others.total()
    if any(_LEADING_ZERO.fullmatch(text) for text in numeric) or not numeric.keys() & counts.keys():
        return ""
    if not others:
        if len(counts) <= LEAST_NUMBERS:
            return ""
        example = next(iter(limits), next(iter(counts)))
        return (
            f"Column {name!r} holds numbers written as text, such as {example!r}: {len(counts)} "
            "different ones count as categories."
        )
    if n_others > FEW_OTHERS * total or total - n_others < LEAST_NUMBERS:
        return ""
    shown = ", ".join(
        f"{cell!r} {'once' if times == 1 else f'{times} times'}"
        for cell, times in others.most_common(3)
    )
    more = ", ..." if len(others) > 3 else ""
    cells = "1 cell" if n_others == 1 else f"{n_others} cells"
    return (
        f"Column {name!r} is text for {cells} ({shown}{more}): its other {total - n_others} cells "
        "are numbers and count as categories."
    )

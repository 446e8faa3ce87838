"""Columns of text that hold numbers but for a few cells, such as a "?"."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Final

from bayesrbf.table.containers import Cells

PACKAGE: Final = str(Path(__file__).parent.parent)
FEW: Final = 0.1
"""Share of the observed cells up to which the others are an exception."""
LEAST: Final = 10
"""Numbers that a column must hold."""
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def warn_of_numbers_as_text(cells: Cells) -> None:
    """Warn once, with a sentence on every such column; a declared category is none of them."""
    found = [
        _sentence(name, [cell for cell in column.tolist() if cell is not None])
        for name, column, declared in zip(cells.names, cells.columns, cells.declared, strict=True)
        if column.dtype == object and not declared
    ]
    told = [sentence for sentence in found if sentence]
    if told:
        warnings.warn(
            f"{' '.join(told)} Make those cells missing (NaN) and the others numbers, or name the "
            "column in categorical_features.",
            UserWarning,
            skip_file_prefixes=(PACKAGE,),
        )


def _sentence(name: str, present: list[object]) -> str:
    """What a column of text is that holds numbers but for a few cells; empty for any other."""
    others = Counter(
        cell for cell in present if not (isinstance(cell, str) and _NUMBER.fullmatch(cell))
    )
    n_others, n_numbers = others.total(), len(present) - others.total()
    if not 0 < n_others <= FEW * len(present) or n_numbers < LEAST:
        return ""
    shown = ", ".join(
        f"{cell!r} {'once' if times == 1 else f'{times} times'}"
        for cell, times in others.most_common(3)
    )
    more = ", ..." if len(others) > 3 else ""
    cells = "1 cell" if n_others == 1 else f"{n_others} cells"
    return (
        f"Column {name!r} is text for {cells} ({shown}{more}): its other {n_numbers} cells are "
        "numbers and count as categories."
    )

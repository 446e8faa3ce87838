"""Cells below or above a limit of detection, such as "<5" among numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

_LIMIT: Final = re.compile("(?P<sign><=?|>=?|\u2264|\u2265) ?(?P<bare>.+)")


def limits_among(texts: Iterable[str]) -> dict[str, str]:
    """The texts that say a limit, and the limit of each as it is written.

    >>> limits_among(["<5", "> 1,5", "7"])
    {'<5': '5', '> 1,5': '1,5'}
    """
    matched = {text: _LIMIT.fullmatch(text) for text in texts}
    return {text: match["bare"] for text, match in matched.items() if match}


def beside_limit(text: str, limit: float) -> float:
    """The number that stands for a cell: the nearest one below a limit, or above it.

    All cells of one limit are one value, which no measured cell has, on the right side of all.

    >>> beside_limit("<5", 5.0) < 5 < beside_limit(">5", 5.0)
    True
    """
    return math.nextafter(limit, -math.inf if text[0] in "<\u2264" else math.inf)

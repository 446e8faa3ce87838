"""An answer as lines for people, or as one JSON object for machines."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from cyclopts import Parameter

Json = Annotated[bool, Parameter(name="--json", negative="")]

FOUND: Final = 3
"""Exit code of a command that was asked to find something, and did."""


def answer(told: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print what was found: one JSON object and nothing else, or lines."""
    if as_json:
        print(json.dumps(plain(told), allow_nan=False), flush=True)
    else:
        from bayesrbf.report.words import say

        say(*lines)
        sys.stdout.flush()


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, arrays as lists, what is no number as null.

    >>> plain({"p": (0.5, float("nan")), 1: None})
    {'p': [0.5, None], '1': None}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):  # of NumPy: an array, or a scalar
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

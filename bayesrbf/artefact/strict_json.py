"""JSON that somebody else wrote, read strictly and without recursion."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

import numpy as np

from bayesrbf.artefact.packing import StateError

STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, to the end where it is not closed: no character is looked at twice."""
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def depth(text: str) -> int:
    """Depth of brackets outside strings, without recursion."""
    outside = STRING.sub("", text).encode("ascii", "replace")
    steps = _STEPS[np.frombuffer(outside, np.uint8)]
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def strict_json(text: str, most_depth: int) -> Any:
    """JSON of bounded depth without duplicate keys, NaN, Infinity or overflowing numbers."""
    if depth(text) > most_depth:
        raise StateError(f"its JSON is nested deeper than {most_depth} levels")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are distinct."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StateError("an object of its JSON has duplicate keys")
    return result


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise StateError(f"its JSON holds {constant}")


def _finite(text: str) -> float:
    """A float that does not overflow."""
    value = float(text)
    if not math.isfinite(value):
        raise StateError(f"its JSON holds the number {text}")
    return value

"""An answer as lines for people, or as one JSON object for machines."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from bayesrbf.new_rows.drift import DriftCheck
    from bayesrbf.new_rows.validation import Validation

Json = Annotated[bool, Parameter(name="--json", negative="")]

FINDINGS: Final = 3
"""Exit code of a command that was asked for findings, and has some."""


def answer(record: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a record as one JSON object and nothing else, or lines."""
    if as_json:
        print(json.dumps(plain(record), allow_nan=False), flush=True)
    else:
        from bayesrbf.report.words import say

        say(*lines)
        sys.stdout.flush()


def finish_with_findings(
    table: Path, result: DriftCheck | Validation, text: str, *, as_json: bool
) -> None:
    """Print a check of a table, and exit with 3 where it has findings."""
    record = {"table": table.name, "found": bool(result.findings), **vars(result)}
    answer(record, text.splitlines(), as_json=as_json)
    if result.findings:
        raise SystemExit(FINDINGS)


def plain(value: Any) -> Any:
    """A value as JSON has it: records as objects, arrays as lists, what is no number as null.

    >>> plain({"p": (0.5, float("nan")), 1: None})
    {'p': [0.5, None], '1': None}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(item) for name, item in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if type(value).__module__ == "numpy":  # an array, or a scalar
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

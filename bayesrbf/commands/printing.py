"""An answer as lines for people, or as one JSON object for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from bayesrbf.new_rows.drift import DriftCheck
    from bayesrbf.new_rows.validation import Validation

Json = Annotated[bool, Parameter(name="--json", negative="")]

FINDINGS: Final = 3
"""Exit code of a command that was asked for findings, and has some."""


def answer(record: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a record as one JSON object and nothing else, or lines."""
    from bayesrbf.report.words import plain, say

    if as_json:
        print(json.dumps(plain(record), allow_nan=False), flush=True)
    else:
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

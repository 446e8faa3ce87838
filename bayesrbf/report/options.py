"""What a report was asked, kept beside its model for the commands that use the model again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

OPTIONS: Final = "options.json"


@dataclass(frozen=True)
class ReportOptions:
    """What was asked of a report."""

    target: str  # Name of the label column.
    costs: Mapping[str, float] = field(default_factory=dict)
    """Of a mistaken row by class, 1 for a class not named; empty where none was given."""


def options_content(options: ReportOptions) -> bytes:
    """The options as a file.

    >>> options_content(ReportOptions("y", {"sick": 5.0})).decode().split()
    ['{', '"target":', '"y",', '"costs":', '{', '"sick":', '5.0', '}', '}']
    """
    return (json.dumps(asdict(options), ensure_ascii=False, indent=1) + "\n").encode()


def read_options(folder: Path) -> ReportOptions | None:
    """The options of a report; None in a folder that has a model and no options.

    Raises ValueError, with the file and what it lacks, where the file is not one of a report.
    """
    file = folder / OPTIONS
    if not file.exists():
        return None
    try:
        held = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise _refused(file, f"it is no JSON ({error})") from None
    if not isinstance(held, dict) or not isinstance(held.get("target"), str):
        raise _refused(file, "it names no target")
    return ReportOptions(held["target"], _costs(file, held.get("costs", {})))


def _costs(file: Path, held: Any) -> dict[str, float]:
    """Costs by class; an error where they are none."""
    if not isinstance(held, dict):
        raise _refused(file, "its costs must be a number for each class")
    for name, cost in held.items():
        number = isinstance(cost, int | float) and not isinstance(cost, bool)
        if not (number and math.isfinite(cost) and cost > 0):
            raise _refused(file, f"its cost of {name!r} must be finite and above 0, not {cost!r}")
    return {name: float(cost) for name, cost in held.items()}


def _refused(file: Path, why: str) -> ValueError:
    """An error that says what is wrong with the file and how to mend it."""
    return ValueError(
        f"{file} cannot be read as the options of a report: {why}; write the report again, or "
        "remove the file to go without."
    )

"""Options of a report, stored beside its model for the commands that use the model again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from bayesrbf.base.table_options import PLAIN, TableOptions

OPTIONS: Final = "options.json"

FamilyName = Literal["stack", "mixture", "rbf", "sdgm", "median_lvq"]
Inference = Literal["auto", "laplace", "advi", "gibbs", "nuts", "map"]

ALL_CORES: Final = -1
"""Number of processes that stands for one a core."""


@dataclass(frozen=True)
class ReportOptions:
    """The options of a report that later commands need."""

    target: str  # Name of the label column; empty where none is known.
    costs: Mapping[str, float] = field(default_factory=dict)
    """Cost of a mistaken row by class, 1 for a class not named; empty where none was given."""
    table: TableOptions = PLAIN  # How the table was read, and new rows are.


def options_content(options: ReportOptions) -> bytes:
    """The options as a file.

    >>> content = json.loads(options_content(ReportOptions("y", {"sick": 5.0})))
    >>> content["target"], content["costs"], content["table"]["id"]
    ('y', {'sick': 5.0}, None)
    """
    return (json.dumps(asdict(options), ensure_ascii=False, indent=1) + "\n").encode()


def read_options(folder: Path) -> ReportOptions:
    """The options of a report; without a target in a folder that has a model and no options.

    Raises ValueError, with the file and what it lacks, where the file is not one of a report.
    """
    file = folder / OPTIONS
    if not file.exists():
        return ReportOptions("")
    try:
        content = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise _refused(file, f"it is no JSON ({error})") from None
    if not isinstance(content, dict) or not isinstance(content.get("target"), str):
        raise _refused(file, "it names no target")
    costs, table = _costs(file, content.get("costs", {})), _table(file, content.get("table", {}))
    return ReportOptions(content["target"], costs, table)


def _table(file: Path, content: Any) -> TableOptions:
    """How the table was read; an error where an option is unknown or of another type."""
    usual = asdict(PLAIN)
    if not isinstance(content, dict) or not content.keys() <= usual.keys():
        raise _refused(file, f"its table must be an object with {', '.join(usual)}")
    wrong = [name for name, value in content.items() if not _is_like(value, usual[name])]
    if wrong:
        raise _refused(file, f"its option {wrong[0]} cannot be {content[wrong[0]]!r}")
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return TableOptions(**options)


def _is_like(value: Any, usual: object) -> bool:
    """Whether a value is of the type of an option whose usual value is given."""
    if isinstance(usual, tuple):
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    return isinstance(value, bool) if isinstance(usual, bool) else isinstance(value, str | None)


def _costs(file: Path, content: Any) -> dict[str, float]:
    """Costs by class; an error where they are none."""
    if not isinstance(content, dict):
        raise _refused(file, "its costs must be a number for each class")
    for name, cost in content.items():
        number = isinstance(cost, int | float) and not isinstance(cost, bool)
        if not (number and math.isfinite(cost) and cost > 0):
            raise _refused(file, f"its cost of {name!r} must be finite and above 0, not {cost!r}")
    return {name: float(cost) for name, cost in content.items()}


def _refused(file: Path, why: str) -> ValueError:
    """An error that says what is wrong with the file and how to mend it."""
    return ValueError(
        f"{file} cannot be read as the options of a report: {why}; write the report again, or "
        "remove the file to go without."
    )

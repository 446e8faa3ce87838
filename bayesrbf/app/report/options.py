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
MODEL: Final = "model.safetensors"
PREDICTIONS: Final = "predictions.csv"
POSTERIOR: Final = "posterior.nc"
PAGE: Final = "report.html"
SHORT: Final = "short.html"
TRIPOD: Final = "tripod.md"
VALIDATION: Final = "validation.html"
"""Page of a validation, and its template."""
FIGURES: Final = {PAGE: "report.json", VALIDATION: "validation.json"}
"""Figures and sentences of a page, and the digest of the model that they are about."""
FILES: Final = (PREDICTIONS, MODEL, OPTIONS, POSTERIOR, PAGE, FIGURES[PAGE])
"""Files of a report."""

FamilyName = Literal["stack", "mixture", "rbf", "sdgm", "median_lvq"]
Inference = Literal["auto", "laplace", "advi", "gibbs", "nuts", "map"]

Missingness = Literal["as_trained", "ignorable"]
"""Why cells of new rows are missing, of every command that fits a model or asks one about them."""
AS_TRAINED: Final = "as_trained"

ALL_CORES: Final = -1
"""Number of processes that stands for one a core."""


@dataclass(frozen=True)
class Deciding:
    """Decisions and intervals, as the command line asks for them.

    Attributes
    ----------
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; 1 for classes not
        named. Rows are then decided at least expected cost. The model is the same.
    event : str, optional
        Which of two classes the figures are about; by default the one whose mistakes cost most,
        else the rarer one.
    threshold : float, optional
        Probability of the event from which a row is decided to be one, in place of costs.
    action : tuple of str
        What the decision for a class is called: sick=operate,well=wait or repeated.
    level : float, optional
        Probability inside the intervals, such as 0.95.
    """

    cost: tuple[str, ...] = ()
    event: str | None = None
    threshold: float | None = None
    action: tuple[str, ...] = ()
    level: float | None = None


@dataclass(frozen=True)
class Fitting:
    """Model, inference and time limit, as the command line takes them.

    Attributes
    ----------
    model : {"stack", "mixture", "rbf", "sdgm", "median_lvq"}
        What is fitted: a pool of kernel networks, mixtures and trees, one mixture, an RBF
        network, a sparse mixture, or exemplars.
    inference : {"auto", "laplace", "advi", "gibbs", "nuts", "map"}
        How draws are made: laplace and advi are approximations and take seconds; gibbs and nuts
        are exact, if the model is right, and take longer; map makes none, and so no intervals.
        auto takes the best one that the model has.
    quick : bool
        Take less time with families but the stack: no intervals unless --inference names a
        method, three folds at most. The page says so.
    time_limit : float, optional
        Seconds that all may take. The fullest form that is estimated to take half of them is
        made, without intervals or as by --quick where need be; what is not done at the limit
        is ended, and nothing is written.
    draws : int, optional
        Draws of each chain, all of which are kept; by default as many as the method usually
        takes, or fewer, so that they take about 20 MB at most.
    seed : int
        Seed of everything random.
    jobs : int
        Processes that share the fits; -1 takes all cores, or one where a run is too short for
        others to start. The answer does not depend on it.
    missingness : {"as_trained", "ignorable"}
        Why cells of new rows will be missing, or measured: for the reasons of training, or for
        others, so that it tells nothing of the class which they are.
    """

    model: FamilyName = "stack"
    inference: Inference = "auto"
    quick: bool = False
    time_limit: float | None = None
    draws: int | None = None
    seed: int = 0
    jobs: int = ALL_CORES
    missingness: Missingness = AS_TRAINED


@dataclass(frozen=True)
class Purpose:
    """What the model is for, in the words of its author.

    Attributes
    ----------
    intended_use : str, optional
        Who is to decide what by the probabilities; it stands on the page and on the card of serve.
    population : str, optional
        Whom the model is meant for; it stands there, too.
    """

    intended_use: str | None = None
    population: str | None = None


@dataclass(frozen=True)
class Focus:
    """What figures and decisions are about."""

    costs: Mapping[str, float] = field(default_factory=dict)
    """Cost of a mistaken row by class, 1 for a class not named; empty where none was given."""
    event: str | None = None  # That was asked for, one of two classes.
    actions: Mapping[str, str] = field(default_factory=dict)  # Words for decisions, by class.
    level: float = 0.9  # Probability inside the intervals.
    threshold: float | None = None  # Of the event, where it was asked for in place of costs.
    purpose: Purpose = Purpose()  # Of the model.

    @property
    def decides(self) -> bool:
        """Whether decisions are more than the most probable class."""
        return bool(self.costs or self.actions)

    def action(self, label: object) -> str:
        """Name of the decision for a class: its action, else the class."""
        return self.actions.get(str(label), str(label))


ANYTHING: Final = Focus()
"""A focus that names no class."""


@dataclass(frozen=True)
class ReportOptions:
    """The options of a report that later commands need."""

    target: str  # Name of the label column; empty where none is known.
    focus: Focus = ANYTHING
    table: TableOptions = PLAIN  # How the table was read, and new rows are.


def options_content(options: ReportOptions) -> bytes:
    """The options as a file.

    >>> content = json.loads(options_content(ReportOptions("y", Focus({"sick": 5.0}))))
    >>> content["target"], content["costs"], content["table"]["id"]
    ('y', {'sick': 5.0}, None)
    """
    content = {"target": options.target, **asdict(options.focus), "table": asdict(options.table)}
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


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
    return ReportOptions(
        content["target"], _focus(file, content), _table(file, content.get("table", {}))
    )


def _focus(file: Path, content: Mapping[str, Any]) -> Focus:
    """Focus of a report from its file; an error where an entry has another type."""
    usual = Focus()
    costs = _costs(file, content.get("costs", {}))
    event = content.get("event")
    actions = content.get("actions", {})
    level = content.get("level", usual.level)
    if not isinstance(event, str | None):
        raise _refused(file, f"its event must be a class, not {event!r}")
    if not isinstance(actions, dict) or not all(isinstance(word, str) for word in actions.values()):
        raise _refused(file, "its actions must be a word for each class")
    threshold = content.get("threshold")
    for name, value in {"level": level, "threshold": threshold}.items():
        if not (value is None or (isinstance(value, float) and 0 < value < 1)) or level is None:
            raise _refused(file, f"its {name} must lie strictly between 0 and 1, not {value!r}")
    purpose = content.get("purpose", {})
    known = isinstance(purpose, dict) and purpose.keys() <= asdict(usual.purpose).keys()
    if not known or not all(isinstance(text, str | None) for text in purpose.values()):
        raise _refused(file, f"its purpose must be {' and '.join(asdict(usual.purpose))}, as texts")
    return Focus(costs, event, actions, level, threshold, Purpose(**purpose))


def _table(file: Path, content: Any) -> TableOptions:
    """Reading options from the file; an error where one is unknown or has another type."""
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
    """Costs by class; an error where an entry is no positive number."""
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

"""Arguments that several commands take, answers as they print them, and how they end."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import active_children
from os import _exit as exit_at_once
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import CycloptsError, Parameter

from bayesrbf.app.report.options import (
    ALL_CORES,
    ANYTHING,
    AS_TRAINED,
    Deciding,
    Fitting,
    Focus,
    Missingness,
    Purpose,
)
from bayesrbf.base.files import remove_scratch
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.notes import FOR_DEVELOPERS, ColumnWarning

if TYPE_CHECKING:
    from bayesrbf.app.check import DriftCheck
    from bayesrbf.app.report.options import ReportOptions
    from bayesrbf.app.validate import Validation


# Ends a command on SIGTERM, or when its time limit has passed.


TERMINATED: Final = 143  # 128 + SIGTERM, as shells report it.
TIMED_OUT: Final = 124  # As the command timeout has it.
GRACE: Final = 4.0
"""Seconds in which a command may stop by itself, so that it has ended within five."""

_ALARM: Final = getattr(signal, "SIGALRM", None)  # Windows has none.
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
_CODES: Final = {signal.SIGTERM: TERMINATED} | ({} if _ALARM is None else {_ALARM: TIMED_OUT})
SENTENCES: Final = {
    TERMINATED: "terminated; nothing was written.",
    TIMED_OUT: "the time limit was reached; nothing was written. Allow twice the time that is "
    "announced, or take --model mixture --inference map, which fits sooner.",
}
"""Message of each exit code."""


def limit_time(seconds: float | None) -> None:
    """End this command after so many seconds, if any."""
    if seconds is None:
        return
    if not seconds > 0:
        raise ValueError(f"--time-limit takes seconds above 0; got {seconds:g}.")
    if _ALARM is None:
        raise ValueError("--time-limit needs a system with alarms, such as Linux or macOS.")
    signal.setitimer(signal.ITIMER_REAL, seconds)


@contextmanager
def obeying() -> Iterator[list[int]]:
    """Interrupt the command on a signal of ``_CODES``; the yielded list then has the exit code.

    What is begun is undone as after Ctrl-C. Python hears a signal only between its own steps, and
    a compiler or a long call of a library may take none for a minute. A thread therefore waits
    for the signal, too, and ends the process where the main one has not ended by itself.
    """
    codes: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        codes.append(_CODES[signal.Signals(number)])
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in _CODES}
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    wakeup = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(source,), daemon=True).start()
    try:
        yield codes
    finally:
        if _ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(wakeup)
        os.close(sink)  # the thread reads the end of it
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(source: int) -> None:
    """End the process some seconds after the signal, unless it has ended by itself."""
    while signals := os.read(source, 1):
        if signals[0] in _CODES:
            time.sleep(GRACE)
            if _closed(source):
                break
            _end_now(_CODES[signal.Signals(signals[0])])
    os.close(source)


def _closed(source: int) -> bool:
    """Whether the writing end of the pipe is closed: the command has ended."""
    os.set_blocking(source, False)
    try:
        return not os.read(source, 65536)
    except BlockingIOError:
        return False


def _end_now(code: int) -> None:
    """Remove unfinished files, then end the worker processes and this process."""
    remove_scratch()
    for child in active_children():
        with suppress(ProcessLookupError):
            os.kill(child.pid or 0, _KILL)  # by number: processes of loky have no kill()
    sys.stderr.write(f"bayesrbf: {SENTENCES[code]}\n")
    sys.stderr.flush()
    exit_at_once(code)


# An answer as lines for people, or as one JSON object for machines.


Json = Annotated[bool, Parameter(name="--json", negative="")]

FINDINGS: Final = 3
"""Exit code of a command that was asked for findings, and has some."""


def answer(record: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """Print a record as one JSON object and nothing else, or lines."""
    from bayesrbf.app.words import plain, say

    if as_json:
        print(json.dumps(plain(record), allow_nan=False), flush=True)
    else:
        say(*lines)
        sys.stdout.flush()


def finish_with_findings(
    table: Path, result: DriftCheck | Validation, text: str, *, as_json: bool
) -> None:
    """Print a check of a table, and exit with 3 where it has findings."""
    record = {"table": table.name, "found": bool(result.findings), **result.to_dict()}
    answer(record, text.splitlines(), as_json=as_json)
    if result.findings:
        raise SystemExit(FINDINGS)


# The command that lists the families of models, one line each.


@dataclass(frozen=True)
class OfferedModel:
    """A family of models as the command line offers it."""

    name: str  # What --model takes.
    estimator: str  # Its class in Python.
    description: str
    cost: str  # Class of the time that a fit with its intervals takes.


MODELS: Final = (
    OfferedModel(
        "stack",
        "StackedClassifier",
        "kernel networks, mixtures and trees, pooled by held-out log score (default)",
        "seconds",
    ),
    OfferedModel(
        "mixture",
        "HybridMixtureClassifier",
        "a density of the rows of each class, its shape chosen by held-out log score",
        "seconds",
    ),
    OfferedModel(
        "rbf",
        "RBFNetworkClassifier",
        "a network whose hidden layer is a mixture of ten components",
        "seconds",
    ),
    OfferedModel(
        "sdgm",
        "SDGMClassifier",
        "a sparse discriminative mixture",
        "minutes",
    ),
    OfferedModel(
        "median_lvq",
        "MedianLVQClassifier",
        "rows of the table that stand for their class, compared by Gower's dissimilarity",
        "seconds",
    ),
)
"""Models by their names on the command line, in the order of ``FAMILIES``."""

COST_OF_FAMILIES: Final = (
    "cost: a fit with its intervals, on some hundred rows and ten to thirty columns"
)


def models(*, json: Json = False) -> None:
    """Name what --model takes, one line each, with the class of its cost.

    Parameters
    ----------
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    name = max(len(family.name) for family in MODELS)
    cost = max(len(family.cost) for family in MODELS)
    lines = [f"{m.name:<{name}}  {m.cost:<{cost}}  {m.description}" for m in MODELS]
    answer({"models": MODELS}, [*lines, COST_OF_FAMILIES], as_json=json)


# Arguments that several commands take: how they are parsed, and the messages about them.


Names = Annotated[tuple[str, ...], Parameter(consume_multiple=False, negative="")]

UNDER: Final = Parameter(name="*", consume_multiple=False, negative="", show_default=False)
"""Options that are fields of one record, under a title of their own."""

Reading = Annotated[TableOptions, UNDER, Parameter(group="Reading the table")]
"""The options of every command that reads a training table."""

Decided = Annotated[Deciding, UNDER, Parameter(group="Decisions and intervals")]
"""The options of every command whose figures depend on what is decided."""
UNDECIDED: Final = Deciding()

Fitted = Annotated[Fitting, Parameter(name="*", negative="")]
"""The options of the commands that fit one model."""
USUALLY: Final = Fitting()

Meant = Annotated[Purpose, UNDER, Parameter(group="What the model is for")]
"""The options of every command that makes a model of a table."""

Coming = Annotated[
    Missingness,
    Parameter(
        help="Why cells of new rows are missing, or measured: for the reasons of training, or for "
        "others, so that it tells nothing of the class which they are."
    ),
]
"""The option of every command that asks a model about new rows."""

Quick = Annotated[bool, Parameter(negative="")]

_COMMA = re.compile(r'[^"]*\d,\d[^"]*')

REPORT_PACKAGES = ("jinja2", "markupsafe", "h5netcdf", "h5py", "pandas")


def names_in(tokens: Iterable[str]) -> list[str]:
    """Names from ``a,b``; a name with a comma is in double quotes."""
    return [name for token in tokens for name in next(csv.reader([token]), [])]


def typed(options: TableOptions, table: Path) -> TableOptions:
    """Options with comma-separated values split: ``a,b`` becomes two names.

    Where numbers of the table have commas, so has a value of ``na``: ``-999,0`` is one.
    """
    several: dict[str, Any] = {
        name: tuple(names_in(value))
        for name, value in vars(options).items()
        if isinstance(value, tuple)
    }
    if any(map(_COMMA.fullmatch, options.na)):
        from bayesrbf.reading.read import numbers_have_commas

        if numbers_have_commas(table):
            values = ([na] if _COMMA.fullmatch(na) else names_in([na]) for na in options.na)
            several["na"] = tuple(value for split in values for value in split)
    return replace(options, **several)


def refuse_by(options: TableOptions) -> None:
    """Refuse ``--by`` where no performance of subgroups is computed."""
    if options.by:
        raise ValueError(
            "--by tells the figures of report and validate apart, and this command has none of "
            "them; leave it out."
        )


def focus_in(options: Deciding, focus: Focus = ANYTHING) -> Focus:
    """Event, costs, actions and level of a command: its options, else the focus of the report.

    >>> focus_in(Deciding(event="sick", threshold=0.2)).costs
    {'sick': 4.0}
    """
    costs = costs_in(options.cost)
    if options.level is not None and not 0 < options.level < 1:
        raise ValueError(f"--level takes a probability between 0 and 1; got {options.level:g}.")
    event = options.event or focus.event
    if options.threshold is not None:
        if costs:
            raise ValueError("--threshold and --cost both say how rows are decided; choose one.")
        if event is None:
            raise ValueError("--threshold is a probability of the event; name it: --event CLASS.")
        if not 0 < options.threshold < 1:
            raise ValueError(
                f"--threshold takes a probability between 0 and 1; got {options.threshold:g}."
            )
        costs = {event: (1 - options.threshold) / options.threshold}  # in mistakes of the other
    actions = dict(_pairs(options.action, "--action takes class=word, such as sick=operate"))
    level = options.level or focus.level
    threshold = options.threshold
    if not costs and event == focus.event:
        threshold = focus.threshold
    focus = replace(focus, event=event, level=level, threshold=threshold)
    return replace(focus, costs=costs or focus.costs, actions=actions or focus.actions)


def _pairs(tokens: Iterable[str], takes: str) -> Iterator[tuple[str, str]]:
    """Names and values from ``sick=10,well=1``, where the last equals sign separates."""
    for pair in names_in(tokens):
        name, _, value = pair.rpartition("=")
        if not (name and value):
            raise ValueError(f"{takes}; got {pair!r}.")
        yield name, value


def costs_in(tokens: Iterable[str]) -> dict[str, float]:
    """Costs from ``class=cost``, where the last equals sign separates, or from a JSON object.

    >>> costs_in(["sick=10,well=1"]), costs_in(['{"sick": 10, "well": 1}'])
    ({'sick': 10.0, 'well': 1.0}, {'sick': 10.0, 'well': 1.0})
    """
    costs: dict[str, float] = {}
    for token in tokens:
        costs |= _costs_of_json(token) if token.lstrip().startswith("{") else _costs_of_pairs(token)
    return costs


def _costs_of_pairs(token: str) -> dict[str, float]:
    """Costs from ``sick=10,well=1``."""
    takes = "--cost takes class=number, such as sick=10, or a JSON object, such as " + shlex.quote(
        '{"sick": 10}'
    )
    costs = {}
    for name, value in _pairs([token], takes):
        try:
            costs[name] = float(value)
        except ValueError:
            raise ValueError(f"{takes}; got {f'{name}={value}'!r}.") from None
    return costs


def _costs_of_json(token: str) -> dict[str, float]:
    """Costs from ``{"sick": 10, "well": 1}``."""
    try:
        costs = json.loads(token)
    except ValueError as error:
        raise ValueError(f"--cost {token} is no JSON object: {error}.") from None
    for name, cost in costs.items():
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            raise ValueError(
                f"--cost takes one number for each class, what it costs to mistake a row of it; "
                f"got {json.dumps(cost)} for {name!r}. A table of costs by class and decision is "
                "for decide in Python."
            )
    return {name: float(cost) for name, cost in costs.items()}


def with_values_joined(tokens: Sequence[str]) -> list[str]:
    """Join a value that begins with a minus to its option, so that it is not read as an option.

    >>> with_values_joined(["look", "a.csv", "--na", "-999,0", "--json"])
    ['look', 'a.csv', '--na=-999,0', '--json']
    """
    joined: list[str] = []
    for token in tokens:
        if joined and joined[-1] == "--na" and re.match(r"-[\d.]", token):
            joined[-1] = f"--na={token}"
        else:
            joined.append(token)
    return joined


def file_in(out: Path | None, usual: Path, name: str, *, as_json: bool) -> Path | None:
    """The file to write in the folder that ``--out`` names; None for JSON alone."""
    if out is None:
        return None if as_json else usual / name
    if out.is_file() or (out.suffix == Path(name).suffix and not out.is_dir()):
        is_one = "is" if out.is_file() else "looks like"
        raise ValueError(
            f"--out names a folder, in which {name} is written; got {out}, which {is_one} a file."
        )
    return out / name


# Models that are served, and who may ask them.


NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
RESERVED: Final = ("static", "healthz", "metrics")
MIN_TOKEN: Final = 16
"""Letters of a token."""


def folders_by_name(folder: Path | None, models: tuple[str, ...]) -> dict[str, Path]:
    """Folders by the names of their models; the empty name for the only one."""
    if (folder is None) == (not models):
        raise ValueError(
            "serve takes one folder, such as: bayesrbf serve report; or several with names: "
            "bayesrbf serve --model heart=report --model liver=other"
        )
    if folder is not None:
        return {"": folder}
    named: dict[str, Path] = {}
    for text in models:
        name, _, path = text.partition("=")
        if not (NAME.fullmatch(name) and path) or name in RESERVED or name in named:
            raise ValueError(
                f"--model takes NAME=FOLDER, each name once, of letters, digits, '_', '-' and '.', "
                f"and none of {', '.join(RESERVED)}; got {text!r}."
            )
        named[name] = Path(path)
    return named


def token_in(file: Path | None) -> str:
    """The token in a file; empty without one."""
    if file is None:
        return ""
    token = file.read_text("utf-8").strip()
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            f"--token-file {file} must hold one token of at least {MIN_TOKEN} plain letters; "
            "make one by: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


# Numbers that are checked, what is needed, and how a command ends.


def checked_draws(draws: int | None) -> int | None:
    """The number of draws; ValueError below 1."""
    if draws is not None and draws < 1:
        raise ValueError(f"--draws takes a whole number above 0; got {draws}.")
    return draws


def checked_refits(refits: int | None) -> int:
    """The number of refits, 0 for None; ValueError for 1 and below."""
    if refits is not None and refits < 2:
        raise ValueError(f"--stability takes a whole number of refits, at least 2; got {refits}.")
    return refits or 0


def checked_jobs(jobs: int) -> int:
    """The number of processes; ValueError for 0 and below -1 (all cores)."""
    if jobs < 1 and jobs != ALL_CORES:
        raise ValueError(f"--jobs takes a whole number above 0, or -1 for all cores; got {jobs}.")
    return jobs


def command_line() -> str:
    """The command line as it would be typed."""
    return shlex.join(["bayesrbf", *sys.argv[1:]])


def need(packages: Iterable[str] = REPORT_PACKAGES, by: str = "report") -> None:
    """Raise an error with the line that installs the packages, where one is absent."""
    from importlib.util import find_spec

    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"the {by} needs {', '.join(absent)}; install it by: pip install {' '.join(absent)}"
        )


def model_for(
    folder: Path,
    table: Path,
    target: str | None = None,
    other_columns: Iterable[str | None] = (),
    missingness: Missingness = AS_TRAINED,
) -> tuple[ReportOptions, Any]:
    """Options and model of a folder; absent files and columns are refused before slow imports."""
    from bayesrbf.app.report.options import MODEL, read_options

    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; the folder of the model comes first.")
    (folder / MODEL).stat()
    table.stat()
    from bayesrbf import TableError
    from bayesrbf.reading.read import names_in_file, no_column

    header = names_in_file(table)
    absent = [name for name in (target, *other_columns) if name is not None and name not in header]
    if absent:
        raise TableError(*(no_column(name, header, table.name) for name in absent))
    from bayesrbf import load
    from bayesrbf.app.predict import refuse_kinds

    model = load(folder / MODEL)
    refuse_kinds(model, folder / MODEL)
    if missingness == "ignorable":
        model.assume_missingness(missingness)
    return read_options(folder), model


def refuse_to_replace(file: Path, held: str) -> None:
    """Refuse a folder with a file that a run would lose or make untrue."""
    if file.exists():
        raise FileExistsError(f"{file.parent} holds {held}; name another folder, or delete {file}.")


def point_to(folder: Path, files: Iterable[str]) -> None:
    """Print the paths of the files."""
    from bayesrbf.app.report.options import PAGE

    print(f"Open {folder / PAGE}")
    print(f"In {folder}: {', '.join(sorted(files))}")
    print(f"Try a case: bayesrbf serve {shlex.quote(str(folder))}")


@contextmanager
def spoken(*but: str) -> Iterator[None]:
    """Print warnings as sentences on stderr, but those that begin as a pattern does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for category in (*FOR_DEVELOPERS, ColumnWarning):  # the notes on the file say the latter
            warnings.simplefilter("ignore", category)
        for pattern in but:
            warnings.filterwarnings("ignore", pattern)
        yield
    for message in dict.fromkeys(one_line(Exception(warning.message)) for warning in caught):
        print(f"bayesrbf: {message}", file=sys.stderr)


def one_line(error: Exception) -> str:
    """An error as one line of plain text."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror[0].lower()}{error.strerror[1:]}."
    text = str(error) if not isinstance(error, CycloptsError) else str(error).strip()
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line) or type(error).__name__

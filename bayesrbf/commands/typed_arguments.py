"""Arguments that several commands take: how they are parsed, and the messages about them."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CycloptsError, Parameter

from bayesrbf.estimators.warning import FOR_DEVELOPERS, ColumnWarning
from bayesrbf.records.table_options import TableOptions
from bayesrbf.report.options import ALL_CORES

if TYPE_CHECKING:
    from bayesrbf.report.options import ReportOptions

Names = Annotated[tuple[str, ...], Parameter(consume_multiple=False, negative="")]

Reading = Annotated[
    TableOptions,
    Parameter(
        name="*",
        group="Reading the table",
        consume_multiple=False,
        negative="",
        show_default=False,
    ),
]
"""The options of every command that reads a training table."""

Quick = Annotated[bool, Parameter(negative="")]

_COMMA = re.compile(r'[^"]*\d,\d[^"]*')

REPORT_PACKAGES = ("jinja2", "markupsafe", "h5netcdf", "h5py", "pandas")


def names_in(tokens: Iterable[str]) -> list[str]:
    """Names from ``a,b``; a name with a comma is in double quotes."""
    return [name for token in tokens for name in next(csv.reader([token]), [])]


def typed(options: TableOptions, table: Path) -> TableOptions:
    """Options as they were meant: each of several names may have been typed as ``a,b``.

    Where numbers of the table have commas, so has a value of ``na``: ``-999,0`` is one.
    """
    several: dict[str, Any] = {
        name: tuple(names_in(value))
        for name, value in vars(options).items()
        if isinstance(value, tuple)
    }
    if any(map(_COMMA.fullmatch, options.na)):
        from bayesrbf.reading import numbers_have_commas

        if numbers_have_commas(table):
            values = ([na] if _COMMA.fullmatch(na) else names_in([na]) for na in options.na)
            several["na"] = tuple(value for some in values for value in some)
    return replace(options, **several)


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
    costs = {}
    for pair in names_in([token]):
        name, _, value = pair.rpartition("=")
        try:
            costs[name] = float(value)
        except ValueError:
            raise ValueError(
                "--cost takes class=number, such as sick=10, or a JSON object, such as "
                f"""{shlex.quote('{"sick": 10}')}; got {pair!r}."""
            ) from None
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


def checked_draws(draws: int | None) -> int | None:
    """A number of draws as it was given; an error below 1."""
    if draws is not None and draws < 1:
        raise ValueError(f"--draws takes a whole number above 0; got {draws}.")
    return draws


def checked_jobs(jobs: int) -> int:
    """A number of processes as it was given; an error for none, and for fewer than all cores."""
    if jobs < 1 and jobs != ALL_CORES:
        raise ValueError(f"--jobs takes a whole number above 0, or -1 for all cores; got {jobs}.")
    return jobs


def command_line() -> str:
    """The command line as it would be typed."""
    return shlex.join(["bayesrbf", *sys.argv[1:]])


def need(packages: Iterable[str] = REPORT_PACKAGES, by: str = "report") -> None:
    """Refuse with the line that installs them where packages are absent."""
    from importlib.util import find_spec

    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"the {by} needs {', '.join(absent)}; install it by: pip install {' '.join(absent)}"
        )


def model_for(folder: Path, table: Path) -> tuple[ReportOptions, Any]:
    """Options and model of a folder, for a table; what is absent is refused before imports."""
    from bayesrbf.reading import names_in_file
    from bayesrbf.report.options import read_options
    from bayesrbf.report.output import MODEL

    (folder / MODEL).stat()
    names_in_file(table)
    from bayesrbf import load  # takes seconds
    from bayesrbf.new_rows.new_row_files import refuse_kinds

    model = load(folder / MODEL)
    refuse_kinds(model, folder / MODEL)
    return read_options(folder), model


def point_to(folder: Path, files: Iterable[str]) -> None:
    """Print where the files are."""
    from bayesrbf.report.output import PAGE

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
    for sentence in dict.fromkeys(one_line(Exception(warning.message)) for warning in caught):
        print(f"bayesrbf: {sentence}", file=sys.stderr)


def of_dates(options: TableOptions) -> Iterator[str]:
    """Pattern of the warnings that say only that a date lies outside those of training.

    Time passes, and new rows have later dates.
    """
    if options.dates:
        names = "|".join(re.escape(repr(name)) for name in options.dates)
        yield rf"(Column ({names}) is (?!missing)((?!Columns? ').)*)+\Z"


def one_line(error: Exception) -> str:
    """An error as one line of plain text."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror[0].lower()}{error.strerror[1:]}."
    text = str(error) if not isinstance(error, CycloptsError) else str(error).strip()
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line) or type(error).__name__

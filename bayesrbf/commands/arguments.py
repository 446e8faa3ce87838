"""What the commands share: arguments as they are typed, and what is said to whom types them."""

from __future__ import annotations

import csv
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CycloptsError, Parameter

from bayesrbf.estimators.warning import ColumnWarning
from bayesrbf.records.table_options import TableOptions

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

REPORT_PACKAGES = ("jinja2", "markupsafe", "h5netcdf", "pandas")


def names_in(tokens: Iterable[str]) -> list[str]:
    """Names from ``a,b``; a name with a comma is in double quotes."""
    return [name for token in tokens for name in next(csv.reader([token]), [])]


def typed(options: TableOptions) -> TableOptions:
    """Options as they were meant: each of several names may have been typed as ``a,b``."""
    held = {field.name: getattr(options, field.name) for field in fields(options)}
    several: dict[str, Any] = {
        name: tuple(names_in(value)) for name, value in held.items() if isinstance(value, tuple)
    }
    return replace(options, **several)


def costs_in(tokens: Iterable[str]) -> dict[str, float]:
    """Costs from ``class=cost``; the last equals sign separates."""
    costs = {}
    for pair in names_in(tokens):
        name, _, value = pair.rpartition("=")
        try:
            costs[name] = float(value)
        except ValueError:
            raise ValueError(f"--cost takes class=number, such as sick=10; got {pair!r}.") from None
    return costs


def checked_draws(draws: int | None) -> int | None:
    """A number of draws as it was given; an error below 1."""
    if draws is not None and draws < 1:
        raise ValueError(f"--draws takes a whole number above 0; got {draws}.")
    return draws


def command_line() -> str:
    """The command line as it would be typed."""
    return shlex.join(["bayesrbf", *sys.argv[1:]])


def need(packages: Iterable[str] = REPORT_PACKAGES) -> None:
    """Exit with the name of the extra to install where one of its packages is absent."""
    from importlib.util import find_spec

    absent = [name for name in packages if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"the report needs {', '.join(absent)}; install it by: pip install 'bayesrbf[report]'"
        )


def asked(folder: Path, table: Path) -> tuple[ReportOptions, Any]:
    """Options and model of a folder, for a table; what is not there is refused before imports."""
    from bayesrbf.reading import names_in_file
    from bayesrbf.report.options import read_options
    from bayesrbf.report.output import MODEL

    (folder / MODEL).stat()
    names_in_file(table)
    from bayesrbf import load  # takes seconds

    return read_options(folder), load(folder / MODEL)


def point_to(folder: Path, files: Iterable[str]) -> None:
    """Print where the files are."""
    from bayesrbf.report.output import PAGE

    print(f"Open {folder / PAGE}")
    print(f"In {folder}: {', '.join(sorted(files))}")


@contextmanager
def spoken(*but: str) -> Iterator[None]:
    """Print warnings as sentences on stderr, but those that begin as a pattern does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ColumnWarning)  # the notes on the file say as much
        for pattern in but:
            warnings.filterwarnings("ignore", pattern)
        yield
    for sentence in dict.fromkeys(one_line(Exception(one.message)) for one in caught):
        print(f"bayesrbf: {sentence}", file=sys.stderr)


def of_dates(options: TableOptions) -> Iterator[str]:
    """What warnings say that know of columns of dates only that these are not as in training.

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


def in_lines(error: Exception) -> str:
    """An error as one line, or a line for each of its problems where it names several."""
    problems = getattr(error, "problems", ())
    if len(problems) < 2:
        return one_line(error)
    told = [f"  {one_line(ValueError(problem))}" for problem in problems]
    return "\n".join([f"{len(told)} problems:", *told])

"""The command line: from a table to a folder with probabilities and a report.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from cyclopts import App

from bayesrbf.commands.arguments import in_lines, one_line
from bayesrbf.commands.new_rows import check, explain, predict
from bayesrbf.commands.reports import demo, report
from bayesrbf.version import __version__

app = App(
    name="bayesrbf",
    version=__version__,
    help="Class probabilities for small, messy tables, and how sure they are.",
    help_format="plaintext",
    error_formatter=lambda error: f"bayesrbf: {one_line(error)}",
)
for command in (report, demo, predict, explain, check):
    app.command(command)
app.command(
    "bayesrbf.reproduce.commands:app",
    name="reproduce",
    help="Compute the figures of published experiments.",
)


def main() -> None:
    """Run the command line; an error is one sentence on stderr and a code above 0."""
    try:
        app(sys.argv[1:])
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written.", 130)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(in_lines(error), 2)


def _fail(sentence: str, code: int) -> NoReturn:
    """Print a sentence on stderr and exit."""
    print(f"bayesrbf: {sentence}", file=sys.stderr)
    raise SystemExit(code)

"""The command line: from a table to a folder with probabilities and a report.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Final, NoReturn

from cyclopts import App, CycloptsError

from bayesrbf.commands.ending import SENTENCES, obeying
from bayesrbf.commands.judging import compare, validate
from bayesrbf.commands.looking import look
from bayesrbf.commands.models import models
from bayesrbf.commands.questions import check, explain, predict
from bayesrbf.commands.reports import demo, fit, report
from bayesrbf.commands.serving import serve
from bayesrbf.commands.typed_arguments import one_line, with_values_joined
from bayesrbf.version import __version__

ERROR: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

CODES: Final = """Exit codes
  0    done
  2    error: one sentence on stderr, nothing was written
  3    check and validate: something was found
  124  --time-limit was reached: nothing was written
  130  interrupted: nothing was written
  141  who read the output closed it
  143  terminated: nothing was written"""

app = App(
    name="bayesrbf",
    version=__version__,
    help="Class probabilities for small, messy tables, and how sure they are.",
    help_format="plaintext",
    help_epilogue=CODES,
    error_formatter=lambda error: f"bayesrbf: {one_line(error)}",
    suppress_keyboard_interrupt=False,
)
for command in (
    *(look, report, fit, demo, predict, explain, check, validate, compare, models),
    serve,
):
    app.command(command)
app.command(
    "bayesrbf.commands.reproducing:app",
    name="reproduce",
    help="Compute the figures of published experiments.",
)


def main() -> None:
    """Run the command line; an error is one sentence on stderr and a code above 0."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that it cannot spell is no error
            stream.reconfigure(errors="backslashreplace")
    with obeying() as codes:
        _run(codes)


def _run(codes: list[int]) -> None:
    """Run the command; where a signal is to end it, ``codes`` has the exit code."""
    try:
        app(with_values_joined(sys.argv[1:]), exit_on_error=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_quietly()
    except CycloptsError:  # printed by its formatter
        raise SystemExit(ERROR) from None
    except KeyboardInterrupt:
        # Python remembers an interrupt that left source text under exec(), as dataclasses have it,
        # and would end by SIGINT although it was caught. After text that ran to its end it forgets.
        exec("")
        if codes:
            _fail(SENTENCES[codes[0]], codes[0])
        _fail("interrupted; nothing was written.", INTERRUPTED)
    except (ValueError, TypeError, OSError, ImportError) as error:
        _fail(_in_lines(error), ERROR)


def _leave_quietly() -> NoReturn:
    """Exit although nobody reads on; what is still in the buffer goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    raise SystemExit(PIPE_CLOSED)


def _in_lines(error: Exception) -> str:
    """An error as one line, or a line for each of the problems of a table."""
    from bayesrbf.reading import TableError

    problems = error.problems if isinstance(error, TableError) else ()
    if len(problems) < 2:
        return one_line(error)
    lines = [f"  {one_line(ValueError(problem))}" for problem in problems]
    return "\n".join([f"{len(lines)} problems:", *lines])


def _fail(sentence: str, code: int) -> NoReturn:
    """Print a sentence on stderr and exit."""
    print(f"bayesrbf: {sentence}", file=sys.stderr)
    raise SystemExit(code)

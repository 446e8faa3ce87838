"""Tables, pages and the command line: what is read, what is shown, what is left on the disk."""

from __future__ import annotations

from functools import partial

from tests.app.report.injections import PAYLOADS, SLOTS
from tests.killing import COMMANDS
from tests.trust.sections import Line, Row, Section, program, suite


def lines(long: bool) -> list[Line]:
    """Each suite is an attack."""
    return [
        suite(
            "tables that grow when unpacked, damaged Parquet",
            "tests/reading/test_bombs.py",
            long=long,
        ),
        suite(
            "hostile texts on the page and in the terminal",
            "tests/app/report/test_render.py",
            "tests/app/report/test_words.py",
            long=long,
        ),
        suite(
            "nasty CSV and Parquet files, each with what it must become",
            "tests/reading/test_nasty.py",
            long=long,
        ),
        suite(
            f"{len(PAYLOADS)} hostile texts in {len(SLOTS)} places of the page, parsed, and opened "
            "in Chromium where it is installed",
            "tests/app/report/test_injections.py",
            long=long,
        ),
        suite("interrupted writing of files", "tests/test_files.py", long=long),
        *(
            Line(
                f"`{command}` ended by SIGKILL, SIGINT and SIGTERM at touches of the disk",
                partial(ended, command, 1 if long else 16),
            )
            for command in COMMANDS
        ),
        suite("full disk, folder that cannot be written", "tests/test_killing.py", long=False),
    ]


def ended(command: str, every: int, number: int, times: int) -> Row:
    """A command ended at every so many-th touch of the disk."""
    tried, wrong = program("tests.killing", every, command)[command]
    return {"tried": tried, "through": len(wrong), "": "; ".join(wrong)}


SECTION = Section("command-line", lines)

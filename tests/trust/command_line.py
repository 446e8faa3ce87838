"""Tables, pages and the command line: what is read, what is shown, what is left on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from tests.report.injections import PAYLOADS, SLOTS
from tests.trust.sections import Section, Tried, program, suite

NASTY = "tests/reading/test_nasty.py"


def run(long: bool) -> Iterator[Tried | str]:
    """Each suite is an attack."""
    yield suite(
        "tables that grow when unpacked, damaged Parquet", "tests/reading/test_bombs.py", long=long
    )
    yield suite(
        "hostile texts on the page and in the terminal",
        "tests/report/test_render.py",
        "tests/report/test_words.py",
        long=long,
    )
    yield suite("nasty CSV and Parquet files, each with what it must become", NASTY, long=long)
    yield suite(
        f"{len(PAYLOADS)} hostile texts in {len(SLOTS)} places of the page, parsed, and opened in "
        "Chromium where it is installed",
        "tests/report/test_injections.py",
        long=long,
    )
    yield suite("interrupted writing of files", "tests/test_files.py", long=long)
    for command, (tried, wrong) in program("tests.killing", 1 if long else 16).items():
        what = f"`{command}` ended by SIGKILL, SIGINT and SIGTERM at touches of the disk"
        yield Tried(what, tried, len(wrong), "; ".join(wrong))
    yield suite("full disk, folder that cannot be written", "tests/test_killing.py", long=False)


SECTION = Section("command-line", "Command line and report", run)

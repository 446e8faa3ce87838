"""Tables, pages and the command line: what is read, what is shown, what is left on the disk."""

from __future__ import annotations

from collections.abc import Iterator

from tests.trust.sections import Section, Tried, suite


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
    yield suite("interrupted writing of files", "tests/test_files.py", long=long)


SECTION = Section("command-line", "Command line and report", run)

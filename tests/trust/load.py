"""Much of it at once: threads, processes, pickles, weights of any size."""

from __future__ import annotations

from collections.abc import Iterator

from tests.trust.sections import Section, Tried, portion, program, suite


def run(long: bool) -> Iterator[Tried | str]:
    """Each suite is an attack."""
    yield suite("threads, processes and pickles", "tests/test_sharing.py", long=long)
    said = program("tests.looping", portion(1000) if long else 50)
    grown = f"memory grew by {said['grown']:.0f} MiB"
    yield Tried(
        "fits and draws in a loop", said["fits"], int(said["files"] + said["threads"] > 0), grown
    )
    yield suite(
        "row weights of any size, wrapped interrupts",
        "tests/estimators/test_extreme_weights.py",
        long=long,
    )


SECTION = Section("load", "Load", run)

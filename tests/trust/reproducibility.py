"""The same seed: the same bits on threads and processes, and nearly the same on another machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.degenerate import METHODS
from tests.same_bits import OTHER, QUICK, THREADS, furthest, under
from tests.trust.sections import Section, Tried, portion

ACROSS = 1e-10


def run(long: bool) -> Iterator[Tried | str]:
    """Every environment beside the first."""
    whole = long and portion(len(METHODS)) == len(METHODS)
    chosen = () if whole else QUICK
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.npz"
        (first, environment), *others = THREADS.items()
        expected = under(environment, file, chosen)
        for name, environment in others:
            away = {
                k: d for k, d in furthest(expected, under(environment, file, chosen)).items() if d
            }
            told = "; ".join(f"{k}: {d:.0e}" for k, d in away.items())
            yield Tried(f"answers bit-equal: {first}, {name}", len(expected), len(away), told)
        if long:
            found = furthest(expected, under(OTHER, file, chosen))
            away = {k: d for k, d in found.items() if d > ACROSS}
            told = "; ".join(f"{k}: {d:.0e}" for k, d in away.items())
            what = "answers within 1e-10 on an older processor's instructions"
            yield Tried(what, len(found), len(away), told)


SECTION = Section("bits", "Reproducibility", run)

"""Model files: altered, forged, cut, flipped."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.mutations import FAMILIES, try_all
from tests.trust.sections import Section, Tried, suite

MOST = {True: 300, False: 20}
"""Alterations of a family in the long form and in the short one."""


def run(long: bool) -> Iterator[Tried | str]:
    """Altered files of every family, then the tests that forge by hand."""
    files = mutated(MOST[long])
    through = {text for text in files if text not in ("refused", "predicts")}
    yield Tried(
        f"model files with one value altered and a right digest, {len(FAMILIES)} kinds of model",
        files.total(),
        sum(files[text] for text in through),
        "; ".join(
            [
                f"{files['refused']} refused, {files['predicts']} predict finite numbers",
                *sorted(through),
            ]
        ),
    )
    yield suite("forged, cut and flipped model files", "tests/test_artefact.py", long=long)


def mutated(most: int) -> Counter[str]:
    """Outcomes of altered model files of every family."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in FAMILIES:
            total += try_all(name, most, Path(folder), seed=most)
    return total


SECTION = Section("artefact", "Model files", run)

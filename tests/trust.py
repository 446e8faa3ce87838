"""What was tried to break the package, how many, what held: ``make trust`` writes docs/trust.md."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bayesrbf.version import __version__
from tests.mutations import FAMILIES, try_all

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "trust.md"

SUITES = {
    "forged, cut and flipped model files": ("tests/test_artefact.py",),
    "tables that grow when unpacked, damaged Parquet": ("tests/reading/test_bombs.py",),
    "hostile texts on the page and in the terminal": (
        "tests/report/test_render.py",
        "tests/report/test_words.py",
    ),
    "interrupted writing of files": ("tests/test_files.py",),
    "row weights of any size, wrapped interrupts": ("tests/estimators/test_extreme_weights.py",),
    "threads, processes and pickles": ("tests/test_sharing.py",),
}
"""What is attacked, and the tests that do it."""


def mutated(most: int) -> Counter[str]:
    """Outcomes of altered model files of every family."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in FAMILIES:
            total += try_all(name, most, Path(folder), seed=most)
    return total


def suite(files: tuple[str, ...], long: bool) -> Counter[str]:
    """Numbers of tests that passed and failed."""
    chosen = [] if long else ["-m", "not slow"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = re.findall(r"(\d+) (passed|failed|error)", done.stdout.splitlines()[-1])
    return Counter({outcome: int(number) for number, outcome in counts})


def main(most: int = 300) -> int:
    """Run everything, write the page, and return the number of what got through."""
    long = most >= 100
    files = mutated(most)
    through = files.total() - files["refused"] - files["predicts"]
    lines = [
        "# What was tried to break it",
        "",
        f"Written by `make trust` with version {__version__}: each line is a count of this run.",
        "`SECURITY.md` says what is guarded and what is not.",
        "",
        "| attack | tried | held | got through |",
        "|---|---|---|---|",
        f"| model files with one value altered and a right digest, {len(FAMILIES)} kinds of model "
        f"({files['refused']} refused, {files['predicts']} predict finite numbers) "
        f"| {files.total()} | {files.total() - through} | {through} |",
    ]
    wrong = through
    for what, tests in SUITES.items():
        counts = suite(tests, long)
        failed = counts.total() - counts["passed"]
        wrong += failed
        lines.append(f"| {what} | {counts.total()} | {counts['passed']} | {failed} |")
        print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}: {wrong} got through")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))

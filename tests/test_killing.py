"""A command that is ended while it writes leaves its old output or its new one, never half."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.app.report.tables import mixed_table

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits are of POSIX")


@pytest.mark.slow
def test_commands_ended_at_touches_of_the_disk_leave_old_output_or_new() -> None:
    """At every eighth touch by each signal; ``make trust`` takes them all."""
    words = [sys.executable, "-m", "tests.killing", "8"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command, (tried, wrong) in json.loads(done.stdout).items():
        assert tried >= 6, command
        assert wrong == [], command


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a model and predictions, and a table of new rows."""
    folder = tmp_path_factory.mktemp("fitted")
    mixed_table(40).to_csv(folder / "table.csv", index=False)
    mixed_table(2000, seed=1).to_csv(folder / "new.csv", index=False)
    out = folder / "out"
    command("fit", folder / "table.csv", *OPTIONS, "--out", out)
    (out / "new-predictions.csv").write_text("old")
    return out, folder / "new.csv"


OPTIONS = ("--target", "outcome", "--model", "mixture", "--inference", "map")


def command(*words: object, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, which may write files of so many bytes."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "bayesrbf", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )


def test_full_disk_leaves_the_old_output(fitted: tuple[Path, Path]) -> None:
    """The disk takes half of the file."""
    out, new = fitted
    before = sorted(path.name for path in out.iterdir())
    done = command("predict", out, new, limit=50_000)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "new-predictions.csv: file too large" in done.stderr
    assert (out / "new-predictions.csv").read_text() == "old"
    assert sorted(path.name for path in out.iterdir()) == before


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="/sys is of Linux")
def test_folder_that_cannot_be_written_is_told_before_any_work(fitted: tuple[Path, Path]) -> None:
    """Root may write anywhere but there."""
    done = command("report", fitted[1], *OPTIONS, "--out", "/sys/kernel/out")
    assert done.returncode == 2
    assert "bayesrbf: /sys/kernel/out cannot be written: " in done.stderr
    assert done.stderr.count("\n") == 1


def test_predictions_of_a_table_are_whole(fitted: tuple[Path, Path]) -> None:
    out, new = fitted
    assert command("predict", out, new, "--out", new.with_name("p.csv")).returncode == 0
    assert len(pd.read_csv(new.with_name("p.csv"))) == 2000

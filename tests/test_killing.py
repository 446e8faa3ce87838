"""A command that is ended while it writes leaves its old output or its new one, never half."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.app.report.tables import mixed_table
from tests.programs import ROOT, program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits are of POSIX")


@pytest.mark.slow
def test_commands_ended_at_touches_of_the_disk_leave_old_output_or_new() -> None:
    """At every eighth touch by each signal; ``python -m tests.killing 1`` takes them all."""
    for command, (tried, wrong) in program("tests.killing", 8).items():
        assert tried >= 6, command
        assert wrong == [], command


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_a_whole_model() -> None:
    tried, wrong = program("tests.killing_saves", 20)
    assert tried == 20
    assert wrong == []


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of new rows."""
    file = tmp_path_factory.mktemp("new") / "new.csv"
    mixed_table(2000, seed=1).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and predictions."""
    folder = tmp_path_factory.mktemp("fitted")
    mixed_table(40).to_csv(folder / "table.csv", index=False)
    command("fit", folder / "table.csv", *OPTIONS, "--out", folder / "out")
    (folder / "out" / "new-predictions.csv").write_text("old")
    return folder / "out"


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


@pytest.mark.slow
def test_full_disk_leaves_the_old_output(fitted: Path, new: Path) -> None:
    """The disk takes half of the file."""
    before = sorted(path.name for path in fitted.iterdir())
    done = command("predict", fitted, new, limit=50_000)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "new-predictions.csv: file too large" in done.stderr
    assert (fitted / "new-predictions.csv").read_text() == "old"
    assert sorted(path.name for path in fitted.iterdir()) == before


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="/sys is of Linux")
def test_folder_that_cannot_be_written_is_told_before_any_work(new: Path) -> None:
    """Root may write anywhere but there."""
    done = command("report", new, *OPTIONS, "--out", "/sys/kernel/out")
    assert done.returncode == 2
    assert "bayesrbf: /sys/kernel/out cannot be written: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_predictions_of_a_table_are_whole(fitted: Path, new: Path) -> None:
    assert command("predict", fitted, new, "--out", new.with_name("p")).returncode == 0
    assert len(pd.read_csv(new.with_name("p") / "new-predictions.csv")) == 2000

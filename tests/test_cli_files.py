"""Where a report cannot be written, one sentence says so and the old files are whole."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf.app.report import output
from bayesrbf.app.report import run as running
from bayesrbf.app.report.options import FILES
from bayesrbf.app.report.output import draws_content, to_netcdf
from tests.app.report.tables import mixed_table
from tests.commands import command

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """A command line that is quick, because nothing is fitted; its folder holds old files."""
    file, out = tmp_path / "t.csv", tmp_path / "out"
    mixed_table(20).to_csv(file, index=False)
    out.mkdir()
    for name in (*FILES, "mine"):
        (out / name).write_text("old")

    def save(path: Path) -> None:
        running.write_whole(path, b"new")

    posterior = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"means": ("draw", np.arange(5.0))})}
    )
    model = SimpleNamespace(save=save, posterior_=posterior)
    outcome = SimpleNamespace(model=model, uncertainty=None, held_out=None, report=None)
    monkeypatch.setattr(running, "collect", lambda *_: outcome)
    monkeypatch.setattr(running, "predictions_frame", lambda *_: pd.DataFrame({"row": [1]}))
    monkeypatch.setattr(running, "render", lambda *_: "new")
    monkeypatch.setattr(running, "figures", lambda _: {})
    monkeypatch.setattr(running, "tell", lambda _: None)
    return ["report", file, "--target", "outcome", "--out", out]


def assert_old(out: Path) -> None:
    """Hold that nothing was changed, and that nothing was left."""
    assert {path.name: path.read_text() for path in out.iterdir()} == dict.fromkeys(
        (*FILES, "mine"), "old"
    )
    assert {path.name for path in out.parent.iterdir()} == {"t.csv", "out"}


def test_failure_half_way_leaves_the_old_folder_as_it_was(
    words: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is full.")

    monkeypatch.setattr(running, "collect", fail)
    assert "the disk is full." in command(*words).err
    assert_old(tmp_path / "out")


def test_disk_that_fills_at_any_file_is_a_sentence_and_old_files_are_whole(
    words: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Full at the k-th request to the disk, until a run needs fewer."""
    real = os.fsync
    for at in count():
        requests = count()

        def full(handle: int, requests: Any = requests, at: int = at) -> None:
            if next(requests) == at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(handle)

        monkeypatch.setattr(os, "fsync", full)
        said = command(*words)
        if said.code == 0:
            break
        assert said.code == 2
        assert "no space left on device." in said.err.splitlines()[-1]
        assert_old(tmp_path / "out")
    assert at > len(FILES)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {*FILES, "mine"}
    assert (out / "report.html").read_text() == (out / "model.safetensors").read_text() == "new"
    assert (out / "mine").read_text() == "old"
    with xr.open_datatree(out / "posterior.nc", engine="h5netcdf") as tree:
        assert tree["posterior"]["means"].to_numpy().tolist() == [0, 1, 2, 3, 4]


def test_folder_with_the_name_of_a_file_is_said_before_any_work(
    words: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "report.html").unlink()
    (out / "report.html").mkdir()
    words[1] = tmp_path / "never-read.csv"
    said = command(*words).err
    assert "report.html is a folder" in said
    assert len(said.splitlines()) == 1
    assert {path.read_text() for path in out.iterdir() if path.is_file()} == {"old"}


def test_draws_above_the_limit_are_thinned_and_the_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    drawn = xr.Dataset({"means": (("chain", "draw", "column"), rng.normal(size=(2, 200, 50)))})
    whole = xr.Dataset({"y": ("row", np.arange(5.0))})
    tree = xr.DataTree.from_dict({"posterior": drawn, "observed_data": whole})
    content, said = draws_content(tree)
    assert (len(content), said) == (len(to_netcdf(tree)), "")
    monkeypatch.setattr(output, "MAX_DRAW_BYTES", 60_000)
    assert draws_content(tree, whole=True)[1] == ""
    thinned, said = draws_content(tree)
    assert len(thinned) <= 60_000
    kept = xr.open_datatree(io.BytesIO(thinned), engine="h5netcdf").load()
    every = -(-200 // kept["posterior"].sizes["draw"])
    assert f"1 in {every} of the 200 draws" in said
    np.testing.assert_array_equal(kept["posterior"]["means"], drawn["means"][:, ::every])
    assert kept["observed_data"].sizes["row"] == 5


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are of POSIX")
def test_netcdf_on_a_full_disk_does_not_end_the_process(tmp_path: Path) -> None:
    """In a process of its own that may write no larger files, at several places of the file."""
    rng = np.random.default_rng(0)
    groups = {"posterior": 2, "sample_stats": 1, "log_likelihood": 3}
    tree = xr.DataTree.from_dict(
        {
            name: xr.Dataset({f"v{i}": (("chain", "draw"), rng.normal(size=(4, 500)))})
            for name, number in groups.items()
            for i in range(number)
        }
    )
    size = len(to_netcdf(tree))
    tree.to_netcdf(tmp_path / "given.nc", engine="h5netcdf")
    code = """
import resource, sys
import xarray as xr
from bayesrbf.base.files import write_whole, writing_together
from bayesrbf.app.report.output import to_netcdf
given, out, *limits = sys.argv[1:]
tree = xr.open_datatree(given, engine="h5netcdf").load()
for limit in map(int, limits):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with writing_together(out, ["posterior.nc"]) as beside:
            write_whole(beside / "posterior.nc", to_netcdf(tree))
    except OSError as error:
        print(error.filename)
"""
    out = tmp_path / "out"
    out.mkdir()
    (out / "posterior.nc").write_text("old")
    limits = [str(int(size * share)) for share in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)]
    words = [sys.executable, "-c", code, tmp_path / "given.nc", out, *limits]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(out / "posterior.nc")] * len(limits)
    assert [path.read_text() for path in out.iterdir()] == ["old"]

"""The experiment on sparse discriminative mixtures: its splits, and a quick run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bayesrbf.reproduce import sdgm


def test_splits_are_the_official_ones(data_folder: Path) -> None:
    banana = sdgm.splits("banana")
    assert len(banana) == 10
    assert {(s.y.size, s.y_new.size) for s in banana} == {(400, 4900)}
    assert set(np.unique(banana[0].y)) == {-1, 1}
    assert len({s.X.tobytes() for s in banana}) == 10
    ripley = sdgm.splits("ripley")
    assert (ripley[0].y.size, ripley[0].y_new.size) == (250, 1000)


def test_a_quick_run_prints_its_tables_and_is_not_run_twice(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = io.StringIO()
    sdgm.run(tmp_path, quick=True, console=Console(file=output, width=100))
    shown = output.getvalue()
    assert "Non-zero weights (table 1)" in shown
    assert "titanic" in shown
    assert "8 components a class" in shown
    (file,) = tmp_path.glob("*.jsonl")
    stored = file.read_text(encoding="utf-8")

    def fail(*_: object) -> dict[str, float]:
        raise AssertionError("a stored cell was computed again")

    monkeypatch.setattr(sdgm, "_sdgm", fail)
    monkeypatch.setattr(sdgm, "_process", fail)
    sdgm.run(tmp_path, quick=True, console=Console(quiet=True))
    assert file.read_text(encoding="utf-8") == stored

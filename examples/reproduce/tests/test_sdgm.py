"""The experiment on sparse discriminative mixtures: its splits, and a quick run."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from reproduce import hayashi, sdgm_synthetic


def test_splits_are_the_official_ones(data_folder: Path) -> None:
    banana = hayashi.splits("banana")
    assert len(banana) == 10
    assert {(s.y.size, s.y_new.size) for s in banana} == {(400, 4900)}
    assert set(np.unique(banana[0].y)) == {-1, 1}
    assert len({s.X.tobytes() for s in banana}) == 10
    ripley = hayashi.splits("ripley")
    assert (ripley[0].y.size, ripley[0].y_new.size) == (250, 1000)


def test_neighbours_on_the_chequerboard_differ() -> None:
    X, y = sdgm_synthetic.chequerboard(50, np.random.default_rng(0))
    assert np.bincount(y).tolist() == [400, 400]
    squares = X.reshape(16, 50, 2).mean(axis=1)
    colours = y[::50]
    assert (y == np.repeat(colours, 50)).all()
    distances = np.linalg.norm(squares[:, None] - squares, axis=2)
    beside = (distances > 0.4) & (distances < 0.6)
    across = (distances > 0.6) & (distances < 0.8)
    assert beside.sum() == 48
    assert (colours[:, None] != colours)[beside].all()
    assert (colours[:, None] == colours)[across].all()
    np.testing.assert_allclose(X.reshape(16, 50, 2).std(axis=1), 0.125, atol=0.05)


def test_appendix_b_is_shown_by_components_at_the_start() -> None:
    figures = {
        f"chequerboard/{start}/{seed}": dict.fromkeys(
            (name for name, _ in sdgm_synthetic.SHOWN), float(start + seed)
        )
        for start in (2, 20)
        for seed in (0, 1)
    }
    output = io.StringIO()
    console = Console(file=output, width=120)
    sdgm_synthetic.print_synthetic(figures | {"ripley/primal/8/0": {}}, console)
    rows = [line.split() for line in output.getvalue().splitlines()[-2:]]
    assert rows == [["4", *["2.5"] * 5], ["40", *["20.5"] * 5]]


@pytest.mark.slow
def test_figure_1_has_all_components_before_any_is_pruned(data_folder: Path) -> None:
    one, before, after = (model for _, model, _, _ in sdgm_synthetic.boundaries(n_init=4))
    assert one.n_components_ == 2
    assert before.n_components_ == 6
    assert after.n_components_ < 6
    assert after.n_weights_ < before.n_weights_


@pytest.mark.slow
def test_a_quick_run_prints_its_tables_and_is_not_run_twice(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = io.StringIO()
    hayashi.run(tmp_path, quick=True, console=Console(file=output, width=100))
    shown = output.getvalue()
    assert "Non-zero weights (table 1)" in shown
    assert "titanic" in shown
    assert "16 components" in shown
    (picture,) = tmp_path.glob("*.svg")
    assert str(picture) in shown.replace("\n", "")
    (file,) = tmp_path.glob("*.jsonl")
    stored = file.read_text(encoding="utf-8")

    def fail(*_: object) -> dict[str, float]:
        raise AssertionError("a stored cell was computed again")

    monkeypatch.setattr(hayashi, "_sdgm", fail)
    monkeypatch.setattr(hayashi, "_process", fail)
    monkeypatch.setattr(sdgm_synthetic, "fitted", fail)
    monkeypatch.setattr(sdgm_synthetic, "boundaries", fail)
    hayashi.run(tmp_path, quick=True, console=Console(quiet=True))
    assert file.read_text(encoding="utf-8") == stored

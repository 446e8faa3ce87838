"""The scripts of the gallery run as they stand, on public names alone."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

SCRIPTS = sorted((Path(__file__).resolve().parent.parent / "examples").glob("plot_*.py"))
LONG = {
    "plot_label_shift",
    "plot_new_row",
    "plot_next_measurement",
    "plot_arviz_tour",
    "plot_calibration",
    "plot_centres",
    "plot_conformal",
    "plot_credit_decision",
    "plot_detection_limit",
    "plot_few_labels",
    "plot_rbf_network_layers",
    "plot_regression_with_holes",
    "plot_rehearsal",
    "plot_save_load",
    "plot_sdgm_boundary",
    "plot_sdgm_head",
    "plot_serve",
    "plot_stack",
    "plot_tripod_report",
    "plot_uncertainty",
}
"""Scripts that need more than three seconds or PyTorch."""
PUBLIC = {"bayesrbf", "bayesrbf.datasets", "bayesrbf.models", "bayesrbf.plots", "bayesrbf.torch"}


def imported(script: Path) -> set[str]:
    """Modules that a script names in its imports."""
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_every_page_of_the_gallery_asks_a_question() -> None:
    assert len(SCRIPTS) >= 16
    assert {path.stem for path in SCRIPTS} >= LONG
    for script in SCRIPTS:
        title = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n")
        assert title[0].endswith("?"), script.name
        assert title[1] == "=" * len(title[0]), script.name


def short_and_long() -> list[Any]:
    """All scripts, the long ones marked as slow."""
    marks = {stem: [pytest.mark.slow] for stem in LONG}
    return [pytest.param(path, id=path.stem, marks=marks.get(path.stem, [])) for path in SCRIPTS]


@pytest.mark.parametrize("script", short_and_long())
def test_script_runs_and_draws(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "torch" in imported(script):
        pytest.importorskip("torch", reason="needs PyTorch: `make test-torch` runs it")
    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    plt.switch_backend("agg")
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        plt.close("all")
    assert shown


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_uses_public_names_alone(script: Path) -> None:
    assert {name for name in imported(script) if name.startswith("bayesrbf")} <= PUBLIC

"""The scripts of the gallery run as they stand, on public names alone."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

SCRIPTS = sorted((Path(__file__).resolve().parent.parent / "examples").glob("plot_*.py"))
PUBLIC = {"bayesrbf", "bayesrbf.datasets", "bayesrbf.models", "bayesrbf.plots", "bayesrbf.torch"}


def imported(script: Path) -> set[str]:
    """Modules that a script names in its imports."""
    nodes = list(ast.walk(ast.parse(script.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_there_are_scripts() -> None:
    assert SCRIPTS


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
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

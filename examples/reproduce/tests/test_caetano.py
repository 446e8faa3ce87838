"""Experiments on RBF networks: their tables, their summaries, and runs that were stopped."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import multivariate_normal

from reproduce import (
    caetano,
    caetano_pictures,
    caetano_regression,
    caetano_tables,
    ferreira,
)


def fail(*_: object) -> dict[str, float]:
    raise AssertionError("a stored cell was computed again")


@pytest.mark.slow
def test_a_quick_run_prints_its_tables_and_is_not_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = io.StringIO()
    caetano.run(tmp_path, quick=True, console=Console(file=output, width=140))
    shown = output.getvalue()
    for word in ("iris, 50 %", "diabetes", "components left of 20", "joint, chosen"):
        assert word in shown
    assert "table 3" not in shown
    assert "paper" in shown  # of the link
    (file,) = tmp_path.glob("*.jsonl")
    stored = file.read_text(encoding="utf-8")
    for module, name in (
        (caetano_pictures, "_link"),
        (caetano_tables, "_real"),
        (caetano_regression, "_fit"),
    ):
        monkeypatch.setattr(module, name, fail)
    caetano.run(tmp_path, quick=True, console=Console(quiet=True))
    assert file.read_text(encoding="utf-8") == stored


def test_a_table_has_means_and_spreads() -> None:
    figures = {
        f"table/{row}/{method}/{seed}": {"error": error}
        for row, method, seed, error in (
            ("a", "SVM", 0, 1.0),
            ("a", "SVM", 1, 3.0),
            ("a", "GP", 0, 5.0),
            ("b", "SVM", 0, 7.0),
        )
    }
    assert caetano.compared(figures | {"other/a/SVM/0": {"error": 99.0}}, "table", "error", 1) == (
        ["", "SVM", "GP"],
        [["a", "2.0 (1.4)", "5.0"], ["b", "7.0", "-"]],
    )


def test_three_gaussians_are_two_classes() -> None:
    X, y = caetano_pictures.three_gaussians(20_000, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(y), [20_000, 40_000])
    np.testing.assert_allclose(X[y == 0].mean(axis=0), caetano_pictures.MEANS[0], atol=0.05)
    np.testing.assert_allclose(np.cov(X[:20_000].T), caetano_pictures.COVARIANCES[0], atol=0.05)


def test_only_networks_see_rows_without_a_label(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caetano_tables, "LEARNED", 200)
    monkeypatch.setattr(caetano_tables, "PREDICTED", 100)
    seen = {}

    def judged(model, known, new):
        X, y = known
        seen[method] = (len(X), sum(label is not None for label in y), len(new[1]))
        return {}

    monkeypatch.setattr(caetano_tables, "_judged", judged)
    for method in ("joint", "kernel", "Caetano", "forest", "SVM"):
        caetano_tables._mixed("census", 25, method, 0, caetano_tables.FULL)
    for method in ("joint", "kernel", "Caetano"):
        assert seen[method] == (200, 50, 100)
    for method in ("forest", "SVM"):
        assert seen[method] == (50, 50, 100)


def test_every_table_of_numbers_has_responses(data_folder: Path) -> None:
    for name, load in caetano_regression.TABLES.items():
        data = load(3)
        assert np.isfinite(data.y).all(), name
        assert data.X.shape[0] == data.y.size >= 200
    holes = np.isnan(caetano_regression.TABLES["friedman 1, holes"](3).X).mean()
    assert holes == pytest.approx(0.2, abs=0.03)


def test_bells_are_densities() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    bells = ferreira.GaussianFeatures("em", 0).fit(X)
    mixture = bells.mixture_
    expected = [
        multivariate_normal(mean, covariance).pdf(X)
        for mean, covariance in zip(mixture.means_, mixture.covariances_, strict=True)
    ]
    np.testing.assert_allclose(bells.transform(X).T, expected, rtol=1e-8)
    clusters = ferreira.GaussianFeatures("kmeans", 0).fit(X)
    np.testing.assert_allclose(np.diag(clusters.transform(clusters.centres_)), 1)


@pytest.mark.slow
def test_a_quick_run_on_crabs(data_folder: Path, tmp_path: Path) -> None:
    output = io.StringIO()
    ferreira.run(tmp_path, quick=True, console=Console(file=output, width=140))
    assert "EM-LR-Link-K" in output.getvalue()
    X, X_new, y, y_new = ferreira.parts("crabs", 1)
    assert (len(X), len(X_new)) == (80, 120)
    assert set(y) == set(y_new) == {"male", "female"}
    np.testing.assert_allclose(np.cov(X.T), np.eye(5), atol=1e-10)

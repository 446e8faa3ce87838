"""Experiments on hybrid mixtures: their splits, their holes, and runs that were stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone

from bayesrbf import HybridMixtureClassifier
from reproduce import roth, roth_methods
from reproduce.roth_methods import DIAGONAL_50, PIXELS, USPS_TEST, splits, with_holes


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("mechanism", ["MCAR", "MAR", "NMAR"])
def test_holes_have_their_share_and_their_reason(mechanism, share):
    X = np.random.default_rng(0).normal(size=(4000, 5))
    X[:, 1:] += X[:, :1]
    hidden = np.isnan(with_holes(X, share, mechanism, seed=1))
    decided = hidden[:, 1:] if mechanism == "MAR" else hidden
    assert decided.mean() == pytest.approx(share, abs=0.02)
    by_own = np.corrcoef(X[:, 3], hidden[:, 3])[0, 1]
    rest = X[:, 3] - X[:, 0]  # what the first feature does not explain
    by_rest = np.corrcoef(rest, hidden[:, 3])[0, 1]
    if mechanism == "MCAR":
        assert abs(by_own) < 0.06
    if mechanism == "MAR":
        assert not hidden[:, 0].any()
        assert by_own > 0.1
        assert abs(by_rest) < 0.06
    if mechanism == "NMAR":
        assert by_rest > 0.1
    assert np.array_equal(hidden, np.isnan(with_holes(X, share, mechanism, seed=1)))


def test_folds_hold_every_row_out_once():
    parts = list(splits("iris"))
    assert len(parts) == 5
    assert sum(part.y_new.size for part in parts) == 150
    for part in parts:
        assert np.bincount(part.y_new).tolist() == [10, 10, 10]
        assert part.y.size == 120
    short = parts[0].first(30)
    assert short.y.size == 30
    assert np.isnan(short.hidden(0.5, "MCAR", seed=0).X_new).any()
    assert not np.isnan(short.X_new).any()


def test_parameters_are_counted():
    [split, *_] = splits("iris")
    model = roth_methods.MIXTURE.fit(split.X, split.y)
    # 2 class probabilities, and for each class 4 means and 10 covariances.
    assert roth_methods.n_parameters(model) == 2 + 3 * (4 + 10)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []

    def error(table: str, name: str, *further: object) -> dict[str, float]:
        made.append(f"{table}/{name}")
        if len(made) == 3:
            raise KeyboardInterrupt
        return {"error": float(len(made))}

    for name in ("_error", "_error_of_weight", "_error_few"):
        monkeypatch.setattr(roth, name, error)
    console = Console(width=160, file=open(tmp_path / "out.txt", "w"))  # noqa: SIM115
    roth.run(tmp_path, quick=True, console=console)  # prints what there is
    roth.run(tmp_path, quick=True, console=console)
    console.file.close()
    shown = (tmp_path / "out.txt").read_text()
    assert "Interrupted: 2 of" in shown
    assert shown.count("table 4.1") == 2
    assert "1.00" in shown  # the first cell is still the one of the first run
    assert made.count("iris/ML") == 1
    roth.run(tmp_path, quick=True, console=Console(quiet=True))
    assert made.count("iris/RBF SVM") == 1


@pytest.mark.parametrize("table", PIXELS)
@pytest.mark.parametrize("name", list(roth_methods.METHODS))
def test_the_structure_of_pixels_goes_with_every_method(name, table):
    found = roth_methods.candidates(table, name, 10_000)
    chosen = (table, name) in roth_methods.CHOSEN
    assert {model.shared_covariance for model in found} == ({True} if chosen else {True, False})
    for model in found:
        assert model.covariance_type == "diag"
        assert type(model.objective) is type(roth_methods.METHODS[name])
        assert name == "ML" or model.objective.max_iter == 60
        assert (model.n_components > roth_methods.COMPONENTS[table]) == (name == "ML")


def test_the_many_components_of_principal_components_are_diagonal() -> None:
    assert set(roth_methods.ONLY[DIAGONAL_50]) == {"ML", "hinge"}
    for name in roth_methods.ONLY[DIAGONAL_50]:
        for model in roth_methods.candidates(DIAGONAL_50, name, 50_000):
            assert (model.n_components, model.covariance_type, model.shared_covariance) == (
                128,
                "diag",
                False,
            )
            assert type(model.objective) is type(roth_methods.METHODS[name])


def test_images_of_usps_are_dealt_anew(data_folder: Path) -> None:
    [split] = splits("usps")
    assert (split.y.size, split.y_new.size) == (9298 - USPS_TEST, USPS_TEST)
    assert split.X.shape == (split.y.size, 256)
    shares = [np.bincount(y) / y.size for y in (split.y, split.y_new)]
    np.testing.assert_allclose(*shares, atol=2e-3)
    assert not {row.tobytes() for row in split.X} & {row.tobytes() for row in split.X_new}


def test_the_dial_of_the_hinge_begins_at_the_likelihood(data_folder: Path) -> None:
    [split] = roth_methods.few("usps", 300)
    [structure, _] = roth_methods.structures("usps", "hinge", 300)
    likely = clone(roth_methods.MIXTURE).set_params(**structure).fit(split.X, split.y)
    free = roth_methods.weighted("usps", 0.0, 300)
    new = split.X_new[:50]
    np.testing.assert_allclose(free.predict_proba(new), likely.predict_proba(new), atol=1e-6)


def test_copies_with_holes_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    [split, *_] = splits("iris")
    seen = {}

    class Spy(HybridMixtureClassifier):
        def fit(self, X, y):
            seen["X"], seen["y"] = X, y
            return self

    monkeypatch.setattr(roth_methods, "MIXTURE", Spy())
    monkeypatch.setattr(roth_methods, "few", lambda *_: (split,))
    roth_methods.fitted("usps", roth_methods.WITH_HOLES, 111, 0)
    n = split.y.size
    np.testing.assert_array_equal(seen["y"], [*split.y, *split.y])
    np.testing.assert_array_equal(seen["X"][:n], split.X)
    hidden = np.isnan(seen["X"][n:])
    assert 0.3 < hidden.mean() < 0.6
    np.testing.assert_array_equal(seen["X"][n:][~hidden], split.X[~hidden])

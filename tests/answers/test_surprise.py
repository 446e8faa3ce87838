"""Cells beside what the rest of their row suggests, and fits that leave odd cells out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity


def clean(n: int = 250, seed: int = 0) -> np.ndarray:
    """Four positive columns that hang together."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=(n, 1))
    return np.exp(0.4 * size + 0.12 * rng.normal(size=(n, 4)) + [0.0, 1.0, 2.0, 3.0])


def with_errors(X: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A twentieth of the rows with one cell ten times too large, and where that is."""
    bad = np.zeros(X.shape, dtype=bool)
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(X), len(X) // 20, replace=False)
    bad[rows, rng.integers(X.shape[1], size=rows.size)] = True
    return np.where(bad, 10 * X, X), bad


def density(**arguments: Any) -> MixtureDensity:
    return MixtureDensity(5, column_transforms="power", random_state=0, **arguments)


def test_errors_are_found_where_no_component_learnt_them() -> None:
    X, bad = with_errors(clean())
    found = {
        trim: average_precision_score(
            bad.ravel(), -density(trim=trim).fit(X).surprise(X)["log_tail"].to_numpy().ravel()
        )
        for trim in (False, True)
    }
    z = np.abs((X - X.mean(axis=0)) / X.std(axis=0)).ravel()
    assert found[True] > 0.97
    assert found[True] > found[False] + 0.1
    assert found[True] > average_precision_score(bad.ravel(), z)


def test_what_stands_out_is_wrong_at_about_the_rate() -> None:
    X, bad = with_errors(clean())
    stands_out = density(trim=True).fit(X).surprise(X)["stands_out"].to_numpy()
    assert stands_out[bad].mean() > 0.9
    assert (stands_out & ~bad).sum() <= max(3, 0.3 * stands_out.sum())
    nothing = MixtureDensity(column_transforms="power", trim=True, random_state=0).fit(clean())
    assert nothing.surprise(clean())["stands_out"].sum() <= 4


def test_a_trimmed_fit_is_the_fit_to_the_other_cells() -> None:
    X, bad = with_errors(clean())
    trimmed, plain = density(trim=True).fit(X), density().fit(np.where(bad, np.nan, X))
    left_out = np.isnan(trimmed.rows_.real) & ~np.isnan(X)
    assert (left_out.mean(axis=0) <= 0.05).all()
    assert left_out[bad].mean() > 0.9
    same = density().fit(np.where(left_out, np.nan, X))
    np.testing.assert_allclose(same.score_samples(X), trimmed.score_samples(X), rtol=1e-9)
    assert trimmed.score(clean(seed=5)) == pytest.approx(plain.score(clean(seed=5)), abs=0.2)


def test_tails_of_the_models_own_rows_are_uniform() -> None:
    model = MixtureDensity(2, random_state=0).fit(clean())
    drawn = model.sample(3000)
    tails = np.exp(model.surprise(drawn)["log_tail"].to_numpy()).ravel()
    for level in (0.02, 0.1, 0.5):
        assert (tails < level).mean() == pytest.approx(level, abs=0.02)


def test_datasets_have_the_names_of_the_frame() -> None:
    rng = np.random.default_rng(0)
    kind = np.where(rng.random(200) < 0.5, "a", "b")
    level = pd.Series(kind, dtype="category")
    length = rng.normal(np.where(kind == "a", 0.0, 8.0), 1.0)
    X = pd.DataFrame({"kind": level, "length": length, "other": rng.normal(size=200)})
    X.index = [f"row {i}" for i in range(200)]
    X.iloc[0, 0], X.iloc[1, 1] = None, np.nan
    X.loc["row 7", "kind"] = "a" if kind[7] == "b" else "b"
    found = MixtureDensity(2, random_state=0).fit(X).surprise(X, prob=0.8)
    assert list(found["column"].to_numpy()) == ["kind", "length", "other"]
    assert list(found["obs"].to_numpy()) == list(X.index)
    wrong = found.sel(obs="row 7", column="kind")
    assert float(wrong["log_tail"]) == float(found["log_tail"].sel(column="kind").min())
    assert wrong["expected"].item() == kind[7]
    missing = X.isna().to_numpy()
    np.testing.assert_array_equal(np.isnan(found["log_tail"]), missing)
    assert found["expected"].to_numpy()[0, 0] is None
    assert np.isnan(found["lower"].sel(column="kind")).all()
    other = found.sel(column="other")
    lower, upper = other["lower"].to_numpy(), other["upper"].to_numpy()
    expected = other["expected"].to_numpy().astype(float)
    assert ((lower <= expected) & (expected <= upper)).all()
    assert ((lower <= X["other"]) & (X["other"] <= upper)).mean() == pytest.approx(0.8, abs=0.1)


def test_every_mixture_tells_and_the_file_keeps_it(tmp_path: Any) -> None:
    X, bad = with_errors(clean(100))
    y = (np.log(X[:, 0]) > 0).astype(int)
    model = HybridMixtureClassifier(random_state=0).fit(X, y)
    expected = model.surprise(X)
    model.save(tmp_path / "model.safetensors")
    assert bayesrbf.load(tmp_path / "model.safetensors").surprise(X).identical(expected)
    assert average_precision_score(bad.ravel(), -expected["log_tail"].to_numpy().ravel()) > 0.5


def test_weights_are_rows() -> None:
    X, _ = with_errors(clean(80))
    weights = np.random.default_rng(3).integers(0, 3, 80)
    weighed = density(trim=True).fit(X, sample_weight=weights)
    repeated = density(trim=True).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighed.score_samples(X), repeated.score_samples(X), rtol=1e-7)


@pytest.mark.parametrize("arguments", [{"prob": 1.0}, {"false_discoveries": 0.0}])
def test_shares_are_between_0_and_1(arguments: dict[str, float]) -> None:
    model = MixtureDensity(random_state=0).fit(clean(30))
    with pytest.raises(ValueError, match="must be a number between 0 and 1; received"):
        model.surprise(clean(30), **arguments)

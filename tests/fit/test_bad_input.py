"""Faults of tables, weights and arguments are errors that name them; see also test_degenerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesrbf import (
    HybridMixtureClassifier,
    MixtureDensity,
)
from tests.cases import generative, some_quick

Table = tuple[Any, np.ndarray]


def plain(n: int = 40, d: int = 3) -> Table:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 1.5 * y[:, None], y


def changed(change: Callable[[np.ndarray], np.ndarray | None]) -> Callable[[], Table]:
    """A plain table after a change, in place or not."""

    def make() -> Table:
        X, y = plain()
        result = change(X)
        return (X if result is None else result), y

    return make


def set_to(rows: Any, columns: Any, value: Any) -> Callable[[np.ndarray], None]:
    return lambda X: X.__setitem__((rows, columns), value)


@pytest.mark.parametrize("weight", some_quick([1e-12, 1e12], 1e12))
def test_extreme_weights(weight: float) -> None:
    X, y = plain()
    X[::3, 0] = np.nan
    weights = np.r_[np.full(20, weight), np.ones(20)]
    for model in (HybridMixtureClassifier(), MixtureDensity(2, random_state=0)):
        model.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("value", some_quick([1e30, -1e200, 1.7e308], 1.7e308))
def test_rows_beyond_every_scale_have_a_finite_answer(value: float) -> None:
    X, y = plain()
    for model in (HybridMixtureClassifier(), HybridMixtureClassifier(shared_covariance=True)):
        probabilities = model.fit(X, y).predict_proba([[value, 0.0, np.nan]])
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert np.isfinite(model.score_samples([[value, 0.0, np.nan]])).all()


def test_a_row_without_a_cell_gets_the_class_probabilities() -> None:
    X, y = plain(41)
    model = generative().fit(X, y)
    expected = model.posterior_["posterior"]["class_probabilities"].to_numpy()[0]
    np.testing.assert_allclose(model.predict_proba(np.full((1, 3), np.nan)), expected, rtol=1e-12)
    assert model.score_samples(np.full((1, 3), np.nan))[0] == pytest.approx(0, abs=1e-12)


FAULTS: dict[str, tuple[Callable[[], Table], type[Exception], str]] = {
    "infinity": (changed(set_to(2, 1, np.inf)), ValueError, "infinity.*'x1'.*row 2"),
    "no rows": (lambda: (np.empty((0, 3)), np.empty(0)), ValueError, "0 sample"),
    "no columns": (lambda: (np.empty((5, 0)), np.arange(5) % 2), ValueError, "0 feature"),
    "one dimension": (lambda: (np.arange(5.0), np.arange(5) % 2), ValueError, "2D array"),
    "lengths differ": (lambda: (plain()[0], np.arange(5) % 2), ValueError, "inconsistent"),
    "mixed types": (
        lambda: (pd.DataFrame({"a": [1.0, "x", 2.0, "x"]}), np.array([0, 1, 0, 1])),
        TypeError,
        "'a' has mixed types",
    ),
    "times": (
        lambda: (pd.DataFrame({"a": pd.to_timedelta([1, 2, 3, 4], "h")}), np.array([0, 1, 0, 1])),
        ValueError,
        "'a' holds times",
    ),
    "beyond 1e154": (changed(lambda X: X * 1e155), ValueError, "1e154"),
    "below 1e-154": (changed(lambda X: X * 1e-155), ValueError, "'x0'.*below 1e-154"),
    "denormals": (changed(lambda X: X * 1e-310), ValueError, "'x0'.*below 1e-154"),
    "all labels hidden": (lambda: (plain()[0], np.full(40, np.nan)), ValueError, "every label"),
    "continuous labels": (
        lambda: (plain()[0], np.linspace(0, 1, 40)),
        ValueError,
        "[Uu]nknown label type",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_names(name: str) -> None:
    make, error, sentence = FAULTS[name]
    X, y = make()
    with pytest.raises(error, match=sentence):
        HybridMixtureClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.zeros(40), "non-zero"),
        (-np.ones(40), "[Nn]egative"),
        (np.ones(39), "shape"),
        (np.full(40, np.nan), "NaN"),
        (np.r_[np.inf, np.ones(39)], "inf"),
    ],
)
def test_weights_that_are_none_are_refused(weights: np.ndarray, sentence: str) -> None:
    X, y = plain()
    for model in (HybridMixtureClassifier(), MixtureDensity()):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, y, sample_weight=weights)


def test_labels_that_all_weigh_nothing_are_refused() -> None:
    X, y = plain()
    y = y.astype(float)
    y[10:] = np.nan
    with pytest.raises(ValueError, match="every label is hidden or has sample_weight 0"):
        HybridMixtureClassifier().fit(X, y, sample_weight=np.isnan(y).astype(float))


def test_new_tables_of_another_shape_are_refused() -> None:
    X, y = plain()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = HybridMixtureClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="X has 2 features, but HybridMixtureClassifier"):
        HybridMixtureClassifier().fit(X, y).predict(X[:, :2])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(frame.replace(frame.iloc[0, 0], np.inf))
    with pytest.raises(ValueError, match="'a' held numbers at fit, but now holds text"):
        model.predict(frame.assign(a="x"))


def test_unseen_levels_are_missing_with_a_warning_or_refused() -> None:
    X = pd.DataFrame({"a": ["u", "v"] * 10, "b": np.arange(20.0)})
    y = np.arange(20) % 2
    new = pd.DataFrame({"a": ["w"], "b": [3.0]})
    missing = pd.DataFrame({"a": [None], "b": [3.0]}).astype({"a": object})
    model = HybridMixtureClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="'a': 'w'"):
        found = model.predict_proba(new)
    np.testing.assert_array_equal(found, model.predict_proba(missing))
    with pytest.raises(ValueError, match="'a': 'w'"):
        HybridMixtureClassifier(handle_unknown="error").fit(X, y).predict(new)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("n_components", 1.5),
        ("n_components", True),
        ("covariance_type", "round"),
        ("n_init", 0),
        ("max_iter", 0),
        ("tol", -1.0),
        ("tol", np.nan),
        ("missingness", "random"),
        ("handle_unknown", "ignore"),
        ("inference", "mcmc"),
        ("objective", "accuracy"),
        ("tied", 2),
        ("calibrate", "isotonic"),
        ("unlabelled_weight", -0.5),
        ("unlabelled_weight", np.inf),
    ],
)
def test_arguments_are_checked_at_fit(name: str, value: object) -> None:
    X, y = plain()
    for model in (HybridMixtureClassifier(), MixtureDensity()):
        if name in model.get_params():
            stored = clone(model).set_params(**{name: value})
            assert stored.get_params()[name] is value
            with pytest.raises(ValueError, match=rf"{type(model).__name__}\({name}=\.\.\.\)"):
                stored.fit(X, y)


def test_a_prior_of_another_kind_is_refused() -> None:
    X, y = plain()
    with pytest.raises(TypeError, match="must be a MixturePrior, 'cv' or None"):
        MixtureDensity().set_params(prior={"mean_precision": 1}).fit(X, y)


def test_class_weight_does_not_exist() -> None:
    with pytest.raises(TypeError, match="class_weight"):
        HybridMixtureClassifier(class_weight="balanced")  # type: ignore[call-arg]

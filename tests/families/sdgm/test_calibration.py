"""The temperature of a sparse discriminative mixture, which every draw and completion takes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from bayesrbf import SDGMClassifier
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.held_out import stratified_folds
from bayesrbf.fit.stages import NO_CALIBRATION, Calibration

pytestmark = pytest.mark.slow


def noisy(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four columns, one of which says a little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] + 2 * rng.normal(size=n) > 0, "high", "low")


def model(**arguments: object) -> SDGMClassifier:
    settings = {"n_components": 1, "n_init": 1, "calibrate": True, "random_state": 0}
    return SDGMClassifier(**settings | arguments)


def log_loss(fitted: SDGMClassifier, X: np.ndarray, y: np.ndarray) -> float:
    p = fitted.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
    return float(-p.mean())


@pytest.mark.parametrize("prediction", ["average", "plug-in"])
def test_too_sure_a_mixture_is_made_less_sure(prediction: str) -> None:
    X, y = noisy()
    plain = model(calibrate=False, prediction=prediction).fit(X, y)
    calibrated = model(prediction=prediction).fit(X, y)
    assert plain.temperature_ == 1 > calibrated.temperature_
    new = noisy(1000, seed=1)
    assert log_loss(calibrated, *new) < log_loss(plain, *new) - 0.01
    assert calibrated.n_weights_ == plain.n_weights_


@pytest.mark.parametrize("prediction", ["average", "plug-in"])
@pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning")
def test_probabilities_are_the_mean_of_tempered_draws(prediction: str) -> None:
    X, y = noisy()
    fitted = model(prediction=prediction).fit(X, y)
    t, new = fitted.temperature_, noisy(30, seed=1)[0]
    # Without what comes after the temperature.
    fitted.fitted_ = fitted.fitted_.replaced(calibration=Calibration(t))
    p = fitted.predict_proba(new)
    np.testing.assert_allclose(fitted.uncertainty(new)["probability"], p, atol=1e-12)
    fitted.fitted_ = fitted.fitted_.replaced(calibration=NO_CALIBRATION)
    draws = fitted.predict_posterior(new)["predictions"]["probability"].to_numpy()
    expected = np.exp(log_softmax(t * np.log(draws), axis=-1)).mean(axis=(0, 1))
    np.testing.assert_allclose(p, expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning")
def test_completions_are_tempered_one_by_one() -> None:
    X, y = noisy()
    fitted = model(prediction="plug-in").fit(X, y)
    t = fitted.temperature_
    # Without what comes after the temperature.
    fitted.fitted_ = fitted.fitted_.replaced(calibration=Calibration(t))
    row = np.random.default_rng(0).normal(size=(1, 4))
    row[0, 0] = np.nan
    cells = new_rows(fitted.fitted_, row).cells
    drawn = fitted.model_.drawn_log_probabilities(cells)
    assert drawn.shape == (1, 64, 2)
    expected = np.exp(log_softmax(t * drawn, axis=-1)).mean(axis=1)
    error = fitted.model_.predict(cells, t)[1].max()
    np.testing.assert_allclose(fitted.predict_proba(row), expected, atol=10 * error)
    of_draws = fitted.uncertainty(row)["probability"].to_numpy()
    np.testing.assert_allclose(of_draws, expected, atol=10 * error)


@pytest.mark.parametrize("average", [True, False])
def test_draws_for_the_temperature_have_the_mean_that_is_predicted(average: bool) -> None:
    X, y = noisy()
    X[::7, 1] = np.nan
    fitted = model(calibrate=False, prediction="average" if average else "plug-in").fit(X, y)
    rows = new_rows(fitted.fitted_, X).cells
    drawn = fitted.model_.drawn_log_probabilities(rows)
    found, whole = np.exp(drawn).mean(axis=1), np.isfinite(X).all(axis=1)
    np.testing.assert_allclose(found[whole], fitted.predict_proba(X)[whole], atol=0.01)
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=0.03)


def test_folds_are_those_that_were_given() -> None:
    X, y = noisy()
    folds = stratified_folds(np.searchsorted(["high", "low"], y), 4, seed=3)
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(4)]
    chosen = model(cv=splits).fit(X, y)
    assert chosen.temperature_ != model().fit(X, y).temperature_
    assert chosen.temperature_ == model(cv=splits).fit(X, y).temperature_
    with pytest.raises(ValueError, match="cv must be at least 2 folds"):
        model(cv=1).fit(X, y)


def test_rows_of_several_possible_classes_are_not_scored() -> None:
    """They teach in every fold but their own; a set of one class is a label."""
    X, y = noisy()
    certain = np.stack([y == "high", y == "low"], axis=1)
    as_sets, as_labels = model().fit(X, certain), model().fit(X, (y == "low").astype(int))
    assert as_sets.temperature_ == pytest.approx(as_labels.temperature_, rel=1e-9)


def three_kinds(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    kinds = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * np.eye(3)[kinds][:, :2], kinds


def test_sets_of_two_classes_teach_and_are_not_scored() -> None:
    X, kinds = three_kinds()
    allowed = np.eye(3, dtype=bool)[kinds]
    allowed[:30] |= np.eye(3, dtype=bool)[(kinds[:30] + 1) % 3]
    unsure, sure = model().fit(X, allowed), model().fit(X[30:], kinds[30:])
    assert np.abs(np.log(unsure.temperature_ / sure.temperature_)) < 0.7
    assert unsure.temperature_ != 1


def test_a_class_that_never_stands_alone_is_no_obstacle() -> None:
    X, kinds = three_kinds()
    allowed = np.eye(3, dtype=bool)[kinds]
    allowed[kinds == 2, 1] = True  # never the third class alone
    assert model().fit(X, allowed).temperature_ != 1
    allowed |= np.eye(3, dtype=bool)[(kinds + 1) % 3]
    allowed[kinds == 2, 1] = False
    assert (allowed.sum(axis=1) == 2).all()
    with pytest.warns(UserWarning, match="holds out no labelled row"):
        assert model().fit(X, allowed).temperature_ == 1


@pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning")
def test_novelty_knows_no_temperature() -> None:
    X, y = noisy()
    X[::5, 1] = np.nan
    fitted = model().fit(X, y)
    assert fitted.temperature_ != 1
    np.testing.assert_allclose(fitted.uncertainty(X)["log_density"], fitted.score_samples(X))

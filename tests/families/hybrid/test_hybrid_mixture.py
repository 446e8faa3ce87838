"""HybridMixtureClassifier against closed forms, and the invariances that a classifier has."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import log_softmax

from bayesrbf import HybridMixtureClassifier, MixtureDensity, MixturePrior, load
from bayesrbf.base.artefact import ArtefactError, load_state, save_state
from tests.cases import generative
from tests.fit.class_tables import CLASSES, iris, table

# ---- what it is


def test_one_tied_component_on_complete_rows_is_linear_discriminant_analysis() -> None:
    X, y = iris()
    model = generative(shared_covariance=True, tol=1e-12).fit(X, y)
    n, d, c = len(X), X.shape[1], 3
    freedom, kappa, counts = 0.3 * d, 0.1, np.bincount(y)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    means = np.array([X[y == k].sum(axis=0) + kappa * centre for k in range(c)])
    means /= (counts + kappa)[:, None]
    scatter = sum((X[y == k] - means[k]).T @ (X[y == k] - means[k]) for k in range(c))
    scatter = scatter + kappa * (means - centre).T @ (means - centre)
    covariance = (scatter + (freedom + c) * np.diag(scale**2)) / (n + freedom + c)
    priors = (counts + 1) / (n + c)
    slopes = np.linalg.solve(covariance, means.T)
    scores = X @ slopes - 0.5 * np.sum(means.T * slopes, axis=0) + np.log(priors)
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), atol=1e-8)


def test_class_log_probabilities_are_those_of_one_density_a_class() -> None:
    X, y = iris()
    prior = MixturePrior(degrees_of_freedom=1e-8, mean_precision=1e-8)
    model = generative(prior=prior, tol=1e-12).fit(X, y)
    densities = [MixtureDensity(prior=prior, tol=1e-12).fit(X[y == k]) for k in range(3)]
    # The prior's centre is the table's, so the two agree only as far as G = 1 row of it allows.
    joint = np.column_stack([d.score_samples(X) for d in densities])
    agree = model.predict(X) == joint.argmax(axis=1)
    assert agree.mean() > 0.97


@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
def test_one_class_is_a_density() -> None:
    X, _ = iris(0.2)
    with_classes = generative(2, random_state=0).fit(X, np.ones(len(X)))
    density = MixtureDensity(2, random_state=0).fit(X)
    np.testing.assert_array_equal(with_classes.score_samples(X), density.score_samples(X))
    np.testing.assert_array_equal(with_classes.predict_proba(X), np.ones((len(X), 1)))
    np.testing.assert_array_equal(with_classes.predict(X), np.ones(len(X)))


def test_quality_on_iris_with_holes() -> None:
    X, y = iris(0.3)
    fold = np.arange(len(y)) % 2 == 0
    model = generative(shared_covariance=True).fit(X[fold], y[fold])
    assert model.score(X[~fold], y[~fold]) > 0.88


@pytest.mark.slow
def test_different_numbers_of_components() -> None:
    X, y = table()
    model = generative(
        {"calm": 2, "gale": 1, "storm": 1}, covariance_type="diag", random_state=0
    ).fit(X, y)
    posterior = model.posterior_["posterior"]
    assert posterior.sizes["mixture_component"] == 4
    of_component = model.posterior_["constant_data"]["component_label"]
    assert of_component.to_numpy().tolist() == ["calm", "calm", "gale", "storm"]
    assert model.transform(X).shape == (len(X), 4)
    assert "weights" not in posterior  # a class's only component has the weight 1 in every draw
    np.testing.assert_allclose(posterior["weights_0"].sum(), 1)
    with pytest.raises(ValueError, match="'gale'"):
        generative({"calm": 2, "storm": 1}).fit(X, y)


def test_probabilities_are_responsibilities_summed_over_a_class() -> None:
    X, y = table()
    model = generative(2, covariance_type="diag", random_state=0).fit(X, y)
    by_class = model.transform(X).reshape(len(X), 3, 2).sum(axis=2)
    np.testing.assert_allclose(model.predict_proba(X), by_class, atol=1e-12)


# ---- invariances


def test_a_class_of_weight_zero_does_not_exist() -> None:
    X, y = table()
    model = generative().fit(X, y, sample_weight=(y != "gale").astype(float))
    assert model.classes_.tolist() == ["calm", "storm"]
    other = generative().fit(X[y != "gale"], y[y != "gale"])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))


def containers() -> list[tuple[Any, Any]]:
    X, y = table()
    plain = X.to_numpy(dtype=object)
    polars = pl.DataFrame({name: X[name].replace({np.nan: None}).tolist() for name in X})
    return [
        (plain, y.tolist()),
        (plain.tolist(), pd.Series(y, dtype="category")),
        (polars, pl.Series(y.tolist())),
    ]


@pytest.mark.parametrize("index", range(3))
def test_containers_give_the_same_bits(index: int) -> None:
    X, y = table()
    expected = generative().fit(X, y).predict_proba(X)
    other_X, other_y = containers()[index]
    model = generative().fit(other_X, other_y)
    np.testing.assert_array_equal(model.predict_proba(other_X), expected)
    assert model.predict(other_X).tolist() == CLASSES[expected.argmax(axis=1)].tolist()


# ---- labels


@pytest.mark.parametrize("hidden", [None, np.nan, "?"])
def test_whatever_hides_a_label_hides_it(hidden: object) -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.4
    expected = generative().fit(X, np.where(some, None, y)).predict_proba(X)
    marked = y.copy()
    marked[some] = hidden
    unlabelled = hidden if isinstance(hidden, str) else None
    model = generative(unlabelled=unlabelled).fit(X, marked)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.filterwarnings("ignore:.*takes the label -1 for a class")
def test_minus_one_is_a_class_unless_it_is_said_to_hide() -> None:
    X, y = iris()
    y = np.where(y == 0, -1, y)
    assert generative().fit(X, y).classes_.tolist() == [-1, 1, 2]
    assert generative(unlabelled=-1).fit(X, y).classes_.tolist() == [1, 2]


def test_unlabelled_rows_at_weight_zero_are_not_there() -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.5
    semi = generative(unlabelled_weight=0.0).fit(X, np.where(some, None, y))
    supervised = generative().fit(X[~some], y[~some])
    np.testing.assert_array_equal(semi.predict_proba(X[~some]), supervised.predict_proba(X[~some]))


def test_unlabelled_weight_is_a_row_weight_of_the_unlabelled() -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.5
    hidden = np.where(some, None, y)
    one = generative(unlabelled_weight=0.25).fit(X, hidden)
    full = generative(unlabelled_weight=1.0)
    full.fit(X, hidden, sample_weight=np.where(some, 0.25, 1.0))
    np.testing.assert_array_equal(one.predict_proba(X), full.predict_proba(X))


def test_a_row_without_a_label_counts_as_a_column_does() -> None:
    X, y = table()
    hidden = np.where(np.random.default_rng(0).random(len(y)) < 0.5, None, y)
    model = generative().fit(X, hidden)
    assert model.unlabelled_weight_ == 1 / X.shape[1]
    asked = generative(unlabelled_weight=1 / X.shape[1]).fit(X, hidden)
    np.testing.assert_array_equal(model.predict_proba(X), asked.predict_proba(X))


def test_unlabelled_rows_help_where_the_model_is_right() -> None:
    rng = np.random.default_rng(0)
    codes = np.arange(600) % 2
    X = rng.normal(size=(600, 5)) + 1.5 * codes[:, None]
    hidden = np.where(np.arange(600) < 12, codes, np.nan)
    alone = generative(shared_covariance=True).fit(X[:12], codes[:12])
    helped = generative(shared_covariance=True).fit(X, hidden)

    def loss(model: HybridMixtureClassifier) -> float:
        log_p = model.predict_log_proba(X[12:])
        return float(-log_p[np.arange(588), codes[12:]].mean())

    assert loss(helped) < 0.7 * loss(alone)


# ---- density, samples, cells


def test_samples_come_with_their_classes() -> None:
    X, y = table()
    model = generative(shared_covariance=True, random_state=0).fit(X, y)
    drawn, labels = model.sample(4000)
    assert list(drawn) == list(X)
    shares = [(labels == label).mean() for label in CLASSES]
    expected = model.posterior_["posterior"]["class_probabilities"].to_numpy()[0, 0]
    np.testing.assert_allclose(shares, expected, atol=4.9 * 0.5 / np.sqrt(4000))
    assert model.score(drawn, labels) > 0.7
    _, storms = model.sample(5, label="storm")
    assert set(storms) == {"storm"}
    moved = generative(class_prior=[0.98, 0.01, 0.01], random_state=0).fit(X, y)
    assert (moved.sample(500)[1] == "calm").mean() > 0.9
    with pytest.raises(ValueError, match="received 'tornado'"):
        model.sample(5, label="tornado")


# ---- the artefact


def unchecked[F](fit: F, **fields: object) -> F:
    """The fit with other fields, whose types the tests' own checks would refuse."""
    odd = copy(fit)
    vars(odd).update(fields)
    return odd


def test_a_record_with_odd_state_is_refused(tmp_path: Path) -> None:
    X, y = table()
    path = tmp_path / "odd.safetensors"
    generative().fit(X, y).save(path)
    kind, record = load_state(path)
    fit = record["fitted"]
    hot = fit.calibration
    odd = {
        "predict": {"predict": 1},
        "temperature": {"fitted": unchecked(fit, calibration=unchecked(hot, temperature="hot"))},
        "model": {"fitted": unchecked(fit, model=None)},
        "its fit is none": {"fitted": None},
    }
    for name, changes in odd.items():
        save_state(path, kind, record | changes)
        with pytest.raises(ArtefactError, match=name):
            load(path)

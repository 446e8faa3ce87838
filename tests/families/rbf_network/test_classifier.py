"""RBF networks as estimators: what users call, on tables with holes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris, load_wine

import bayesrbf
from bayesrbf import RBFNetworkClassifier
from bayesrbf.fit.asking import new_rows


@pytest.fixture(scope="module")
def flowers() -> tuple[pd.DataFrame, np.ndarray]:
    """Iris with a category, 15 % of the cells and 30 % of the labels hidden."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    X = X.mask(rng.random(X.shape) < 0.15)
    X["size"] = np.where(rng.random(150) < 0.1, None, np.where(y == 2, "big", "small"))
    labels = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    labels[rng.random(150) < 0.3] = None
    return X, labels


@pytest.fixture(scope="module")
def fitted(flowers) -> RBFNetworkClassifier:
    return RBFNetworkClassifier(6, features="responsibility", calibrate=False, random_state=0).fit(
        *flowers
    )


def accuracy(model, flowers) -> float:
    truth = np.array(["setosa", "versicolor", "virginica"], dtype=object)[load_iris().target]
    return float((model.predict(flowers[0]) == truth).mean())


def test_a_table_with_everything(fitted, flowers):
    assert accuracy(fitted, flowers) > 0.9
    assert fitted.converged_
    probabilities = fitted.predict_proba(flowers[0])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)


def test_by_products(fitted, flowers):
    X, _ = flowers
    features = fitted.transform(X)
    assert features.shape == (150, 6)
    np.testing.assert_allclose(features.sum(axis=1), 1)
    assert list(fitted.get_feature_names_out())[:1] == ["rbfnetworkclassifier0"]
    assert fitted.set_output(transform="pandas").transform(X).shape == (150, 6)
    fitted.set_output(transform="default")
    far = X.head(1).assign(**{"petal length (cm)": 100.0})
    assert fitted.score_samples(far)[0] < fitted.score_samples(X).min()
    complete = fitted.impute(X)
    assert not complete.isna().any().any()
    observed = X.notna()
    pd.testing.assert_frame_equal(complete[observed], X[observed], check_dtype=False)
    assert len(fitted.impute(X.head(4), draws=2)) == 2
    rows, labels = fitted.sample(30)
    assert list(rows.columns) == list(X.columns)
    assert set(labels) <= set(fitted.classes_)


def test_the_density_of_rows_does_not_know_the_units(flowers):
    X, y = flowers
    model = RBFNetworkClassifier(3, random_state=0, n_init=1, calibrate=False).fit(X, y)
    metres = X.assign(**{"petal length (cm)": X["petal length (cm)"] / 100})
    other = RBFNetworkClassifier(3, random_state=0, n_init=1, calibrate=False).fit(metres, y)
    np.testing.assert_allclose(other.predict_proba(metres), model.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(
        other.score_samples(metres),
        model.score_samples(X) + np.log(100) * X["petal length (cm)"].notna(),
        atol=1e-3,
    )


def test_exact_zeros(flowers):
    sparse = RBFNetworkClassifier(l1=2.0, n_init=1, calibrate=False, random_state=0).fit(*flowers)
    assert (sparse.coef_ == 0).any()
    assert (sparse.coef_ != 0).any()


def test_unlabelled_rows_teach_the_hidden_layer(flowers):
    X, y = flowers
    known = np.array([label is not None for label in y])
    plain = {"n_init": 1, "calibrate": False, "random_state": 0}
    without = RBFNetworkClassifier(3, unlabelled_weight=0.0, **plain).fit(X, y)
    alone = RBFNetworkClassifier(3, **plain).fit(X[known], y[known])
    np.testing.assert_allclose(without.predict_proba(X), alone.predict_proba(X), atol=1e-9)
    taught = RBFNetworkClassifier(3, **plain).fit(X, y)
    assert taught.score_samples(X[~known]).mean() > alone.score_samples(X[~known]).mean()


def test_prevalence_of_use_and_temperature(fitted, flowers):
    X, y = flowers
    shifted = RBFNetworkClassifier(
        6,
        features="responsibility",
        calibrate=False,
        random_state=0,
        class_prior={"setosa": 0.1, "versicolor": 0.1, "virginica": 0.8},
    ).fit(X, y)
    odds = np.log(shifted.predict_proba(X)) - np.log(fitted.predict_proba(X))
    expected = np.log([0.1, 0.1, 0.8]) - np.log(fitted.fitted_.class_shares)
    np.testing.assert_allclose(odds - odds[:, :1], np.tile(expected - expected[0], (150, 1)))
    calibrated = RBFNetworkClassifier(3, random_state=0, n_init=1, calibrate=True, cv=3).fit(X, y)
    assert calibrated.temperature_ > 0
    assert calibrated.temperature_ != 1


@pytest.mark.slow
def test_a_posterior_and_back_from_a_file(flowers, tmp_path):
    X, y = flowers
    model = RBFNetworkClassifier(2, features="log_density", random_state=0, n_init=1, l2=1.0)
    model.fit(X, y).refine("laplace", draws=50, chains=2)
    assert model.posterior_["posterior"]["coefficients"].dims == (
        "chain",
        "draw",
        "class_label",
        "mixture_component",
    )
    width = model.uncertainty(X.head(5))["sd"]
    assert float(width.min()) > 0
    model.save(tmp_path / "model.safetensors")
    again = bayesrbf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_tree_holds_rows_and_responses_as_the_graph_does(fitted, flowers):
    tree = fitted.posterior_
    assert np.isnan(tree["constant_data"]["x"].to_numpy()[:, 0]).all()
    known = np.array([label is not None for label in flowers[1]])
    observed = tree["observed_data"]["y"]
    np.testing.assert_array_equal(observed["obs"], np.flatnonzero(known))
    np.testing.assert_array_equal(fitted.classes_[observed.to_numpy()], flowers[1][known])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"features": "spline"}, "features=...) must be"),
        ({"features": "kernel"}, "use KernelNetworkClassifier"),
        ({"l2": 0.0}, "needs a proper prior"),
        ({"l1": -1}, "l1=...) must be a finite number"),
        ({"unlabelled_weight": "cv"}, "must be a finite number of at least 0"),
        ({"n_components": 0}, "n_components=...) must be an integer"),
        ({"link": np.inf}, "link=...) must be a finite number"),
        ({"link": -1.0}, "link=...) must be a finite number"),
        ({"kappa": 0.0}, "kappa=...) must be a finite positive number"),
    ],
)
def test_faults_are_told(settings, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        RBFNetworkClassifier(**settings).fit([[0.0], [1.0]], [0, 1])


def test_the_joint_takes_link_and_kappa(flowers, tmp_path):
    model = RBFNetworkClassifier(2, link=5.0, kappa=0.7, calibrate=False, n_init=1, random_state=0)
    model.fit(*flowers).save(tmp_path / "model.safetensors")
    for one in (model, bayesrbf.load(tmp_path / "model.safetensors")):
        assert (one.link, one.kappa) == (5.0, 0.7)
        hyperparameters = one.model_.hyperparameters
        assert (hyperparameters.link, hyperparameters.kappa) == (5.0, 0.7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
def test_degenerate_tables_give_probabilities():
    rng = np.random.default_rng(0)
    tables = {
        "constant": np.column_stack([np.ones(12), rng.normal(size=12)]),
        "empty column": np.column_stack([np.full(12, np.nan), rng.normal(size=12)]),
        "empty row": np.vstack([np.full((1, 2), np.nan), rng.normal(size=(11, 2))]),
        "wide": rng.normal(size=(12, 30)),
        "duplicates": np.repeat(rng.normal(size=(2, 2)), 6, axis=0),
        "huge": 1e8 + 1e-3 * rng.normal(size=(12, 2)),
    }
    for name, X in tables.items():
        y = np.arange(12) % 2
        probabilities = RBFNetworkClassifier(3, random_state=0, n_init=1).fit(X, y).predict_proba(X)
        assert np.isfinite(probabilities).all(), name
    one = RBFNetworkClassifier(2).fit(tables["wide"], np.zeros(12))
    assert one.predict_proba(tables["wide"]).tolist() == [[1.0]] * 12


@pytest.mark.slow
def test_a_map_fit_loads_no_graph():
    code = (
        "import sys, numpy as np; from bayesrbf import RBFNetworkClassifier as C;"
        "X = np.random.default_rng(0).normal(size=(30, 2));"
        "C(2).fit(X, X[:, 0] > 0).predict_proba(X);"
        "assert not {'pymc', 'pytensor', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("features", ["responsibility", "log_density"])
def test_complete_training_rows_and_holes_in_new_ones(features):
    """Features of a row with holes say what no training row has said; completions do not."""
    X, y = load_wine(return_X_y=True)
    settings = {"n_init": 1, "max_iter": 200, "tol": 1e-4, "random_state": 0}
    model = RBFNetworkClassifier(4, features=features, **settings).fit(X[::2], y[::2])
    holes = X[1::2].copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.4] = np.nan
    averaged = model.predict_proba(holes)
    np.testing.assert_allclose(model.predict_proba(holes[3:5]), averaged[3:5], rtol=1e-9)
    tables = np.array([model.predict_proba(table) for table in model.impute(holes, draws=64)])
    off = np.abs(tables.mean(axis=0) - averaged)
    assert off.mean() < 0.02
    assert off.max() < 0.2
    model.fitted_ = model.fitted_.replaced(model=replace(model.model_, integrate=False))
    of_features = model.predict_proba(holes)
    rows = np.arange(len(holes))
    surprise = [-np.log(p[rows, y[1::2]]).mean() for p in (averaged, of_features)]
    assert surprise[0] < surprise[1]


def test_draws_average_over_completions_too():
    X, y = load_wine(return_X_y=True)
    model = RBFNetworkClassifier(
        2, calibrate=False, n_init=1, max_iter=100, tol=1e-4, random_state=0
    )
    model.fit(X[::2, :4], y[::2])
    holes = X[1:8:2, :4].copy()
    holes[1:, 1] = np.nan
    at_point = model.predict_proba(holes)
    log_posterior = model.model_.log_posterior(model.rows_)
    network, theta = model.model_, model.model_.point(log_posterior)
    rows = new_rows(model.fitted_, holes).cells
    said = network.predictor(log_posterior, rows)(theta)
    probabilities = softmax(said.log_probabilities, axis=1)
    np.testing.assert_allclose(probabilities, at_point, atol=0.03)
    np.testing.assert_allclose(probabilities[0], at_point[0], rtol=1e-9)
    np.testing.assert_allclose(
        said.log_density, model.score_samples(holes), rtol=1e-9, err_msg="log p(x_o)"
    )


@pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning")
def test_novelty_of_rows_with_holes_knows_no_temperature() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 2 * rng.normal(size=80) > 0, "high", "low")
    model = RBFNetworkClassifier(3, calibrate=True, n_init=1, random_state=0).fit(X, y)
    assert model.temperature_ < 0.8
    new = X.copy()
    new[:, 1] = np.nan
    assert model.model_.integrate
    np.testing.assert_allclose(model.uncertainty(new)["log_density"], model.score_samples(new))

"""Inside scikit-learn's tools: pipelines, searches, calibration, metadata routing, display."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PowerTransformer
from sklearn.utils import get_tags

from bayesrbf import MixtureDensity
from tests.cases import first_quick, generative


@pytest.fixture
def iris() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return pd.DataFrame(X, columns=list("abcd")), load_iris().target_names[y]


def test_pipeline_with_a_transformer_that_keeps_holes(iris: tuple) -> None:
    X, y = iris
    model = make_pipeline(PowerTransformer(), generative(shared_covariance=True))
    assert model.fit(X, y).score(X, y) > 0.9
    features = Pipeline([("responsibilities", MixtureDensity(3, random_state=0))])
    features.set_output(transform="pandas")
    assert list(features.fit_transform(X)) == [f"mixturedensity{k}" for k in range(3)]


def test_fit_transform_is_fit_then_transform_and_columns_can_be_split(iris: tuple) -> None:
    X, _ = iris
    density = MixtureDensity(2, random_state=0)
    np.testing.assert_array_equal(density.fit_transform(X), clone(density).fit(X).transform(X))
    split = ColumnTransformer([("ab", density, ["a", "b"]), ("cd", density, ["c", "d"])])
    assert split.fit_transform(X).shape == (len(X), 4)


@pytest.mark.slow
def test_grid_search_over_structure(iris: tuple) -> None:
    X, y = iris
    grid = {
        "n_components": [1, 2],
        "covariance_type": ["full", "diag"],
        "shared_covariance": [True, False],
    }
    search = GridSearchCV(
        generative(n_init=1, random_state=0), grid, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.predict_proba(X).shape == (150, 3)
    folds = KFold(3, shuffle=True, random_state=0)
    number = GridSearchCV(MixtureDensity(random_state=0), {"n_components": [1, 2]}, cv=folds)
    assert number.fit(X).best_params_ == {"n_components": 2}


def test_cross_validation_and_external_calibration(iris: tuple) -> None:
    X, y = iris
    model = generative(shared_covariance=True)
    scores = cross_validate(model, X, y, scoring=["accuracy", "neg_log_loss"], cv=3)
    assert scores["test_accuracy"].mean() > 0.85
    assert cross_val_predict(model, X, y, method="predict_log_proba", cv=3).shape == (150, 3)
    calibrated = CalibratedClassifierCV(model, method="temperature", cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_metadata_routing_passes_weights_through(iris: tuple) -> None:
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = generative().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        routed = make_pipeline(PowerTransformer(), model).fit(X, y, sample_weight=weights)
        scores = cross_validate(model, X, y, params={"sample_weight": weights}, cv=3)
        density = MixtureDensity().set_fit_request(sample_weight=True)
        make_pipeline(density, clone(model)).fit(X, y, sample_weight=weights)
    assert np.isfinite(scores["test_score"]).all()
    direct = PowerTransformer().fit_transform(X)
    expected = generative().fit(direct, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.predict_proba(X), expected.predict_proba(direct))


def test_tags_say_what_is_accepted() -> None:
    for estimator in (generative(), MixtureDensity()):
        tags = get_tags(estimator).input_tags
        assert tags.allow_nan
        assert tags.categorical
        assert tags.string
    assert is_classifier(generative())
    assert get_tags(MixtureDensity()).estimator_type == "density_estimator"
    assert not get_tags(MixtureDensity()).target_tags.required


def test_clone_and_pickle(iris: tuple) -> None:
    X, y = iris
    model = generative(n_components={"setosa": 2, "versicolor": 1, "virginica": 1})
    fitted = clone(model).fit(X, y)
    assert not hasattr(clone(fitted), "classes_")
    tree = fitted.posterior_
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.posterior_["posterior"].equals(tree["posterior"])


def test_display_shows_the_fit_and_costs_no_tree(iris: tuple) -> None:
    X, y = iris
    model = generative().fit(X, y)
    assert "temperature_" in model._repr_html_()
    assert "tree" not in vars(model.fitted_)
    assert model.posterior_ is model.posterior_


FAST_PATH = """
import sys
import numpy as np
from bayesrbf import *
from tests.cases import generative
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
X[::5, 1] = np.nan
{}
heavy = ["arviz", "matplotlib", "nutpie", "pymc", "pytensor", "xarray"]
print([name for name in heavy if name in sys.modules])
"""
FITS = {
    "mixture": "generative(calibrate=True, covariance_type='diag').fit(X, y).predict_proba(X)",
    "density": "MixtureDensity(2, covariance_type='diag', random_state=0).fit(X).impute(X)",
    "kernel network": "KernelNetworkClassifier().fit(X, y).predict_proba(X)",
    "RBF network": "RBFNetworkClassifier(2).fit(X, y).predict_proba(X)",
    "sparse mixture": "SDGMClassifier(1, n_init=1).fit(X, y).predict_proba(X)",
    "exemplars": "MedianLVQClassifier(1, sigma=0.5).fit(X, y).predict_proba(X)",
}


@pytest.mark.parametrize("name", first_quick(FITS))
def test_a_point_estimate_loads_no_heavy_library(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FAST_PATH.format(FITS[name])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "[]", run.stdout + run.stderr

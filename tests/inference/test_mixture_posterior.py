"""Methods on a real table with holes: each checked against the others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from bayesrbf import HybridMixtureClassifier
from bayesrbf.inference.diagnose import PosteriorWarning
from tests.cases import generative

pytestmark = pytest.mark.usefixtures("unchecked")

CHAINS, DRAWS = 4, 150


def holes() -> tuple[np.ndarray, np.ndarray]:
    """Every second row of iris with a quarter of its cells hidden."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::2].copy(), y[::2]
    X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    return X, y


def fitted(n_components: int) -> HybridMixtureClassifier:
    X, y = holes()
    return generative(n_components, random_state=0).fit(X, y)


def figures(model: HybridMixtureClassifier) -> pd.Series:
    with warnings.catch_warnings():  # chains this short have too few effective draws
        warnings.simplefilter("ignore", PosteriorWarning)
        return model.diagnose().set_index("row")["value"]


@pytest.fixture(scope="module")
def by_laplace() -> HybridMixtureClassifier:
    return fitted(1).refine("laplace", draws=DRAWS, chains=CHAINS)


@pytest.fixture(scope="module")
def by_nuts() -> HybridMixtureClassifier:
    pytest.importorskip("nutpie", reason="nutpie is an extra")
    return fitted(1).refine("nuts", draws=DRAWS, tune=100, chains=CHAINS)


def test_laplace_is_near_nuts_in_class_probabilities(by_laplace, by_nuts):
    X, _ = holes()
    difference = np.abs(by_laplace.predict_proba(X) - by_nuts.predict_proba(X))
    assert difference.max() < 0.06
    assert difference.mean() < 0.01


def test_intervals_agree(by_laplace, by_nuts):
    X, _ = holes()
    one, two = (model.uncertainty(X) for model in (by_laplace, by_nuts))
    assert np.abs(one["sd"] - two["sd"]).mean() < 0.01
    unsure = two["sd"].to_numpy() > 0.02
    ratio = one["sd"].to_numpy()[unsure] / two["sd"].to_numpy()[unsure]
    assert 0.6 < np.median(ratio) < 1.5


def test_chains_agree(by_nuts):
    found = figures(by_nuts)
    assert found["divergences"] == 0
    assert found["rhat_log_posterior"] < 1.05
    assert found["rhat_class_probabilities"] < 1.05
    assert found["rhat_parameters"] < 1.08


def test_predictions_are_the_mean_of_the_draws(by_laplace):
    X, _ = holes()
    probability = by_laplace.predict_posterior(X)["predictions"]["probability"]
    assert probability.shape == (CHAINS, DRAWS, len(X), 3)
    mean = probability.mean(("chain", "draw"))
    np.testing.assert_allclose(mean, by_laplace.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(by_laplace.uncertainty(X)["probability"], mean, atol=1e-12)


def test_tree_holds_the_posterior_under_the_names_of_the_graph(by_nuts):
    tree = by_nuts.posterior_
    assert set(tree.children) >= {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "observed_data",
        "constant_data",
    }
    posterior = tree["posterior"].to_dataset()
    assert set(posterior.data_vars) == {
        "class_probabilities",
        "means",
        "precision_diagonal",
        "precision_lower",
        "covariances",
    }
    assert posterior["covariances"].dims == (
        "chain",
        "draw",
        "mixture_component",
        "feature",
        "feature_bis",
    )
    covariances = posterior["covariances"].to_numpy()
    np.testing.assert_allclose(covariances, covariances.swapaxes(-1, -2), rtol=1e-9)
    assert not tree["sample_stats"]["diverging"].any()


def test_two_components_are_relabelled_to_the_map():
    X, _ = holes()
    model = fitted(2).refine("laplace", draws=100, chains=2)
    found = figures(model)
    assert found["rhat_parameters"] < 1.1
    weights = model.posterior_["posterior"]["weights"]
    np.testing.assert_allclose(weights.sum("mixture_component"), 3, rtol=1e-12)
    assert np.isfinite(model.uncertainty(X)["epistemic_entropy"]).all()

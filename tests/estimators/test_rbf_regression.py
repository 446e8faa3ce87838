"""RBF networks of numbers: predictions, intervals, units, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_friedman1

import bayesrbf
from bayesrbf import RBFNetworkRegressor
from bayesrbf.numerics.rbf_network.normal_mixture import log_density, quantiles


@pytest.fixture(scope="module")
def friedman():
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = 100 + 10 * y
    y[:10] = np.nan
    return X, y


def test_regression_predicts_and_covers(friedman, tmp_path):
    X, y = friedman
    known = ~np.isnan(y)
    model = RBFNetworkRegressor(4, random_state=0, n_init=1, max_iter=200, tol=1e-4).fit(X, y)
    mean, sd = model.predict(X, return_std=True)
    assert 1 - np.var((y - mean)[known]) / np.var(y[known]) > 0.75
    interval = model.predict_interval(X, prob=0.8)
    inside = ((interval[:, 0] < y) & (y < interval[:, 1]))[known].mean()
    assert 0.7 < inside < 0.95
    np.testing.assert_allclose(interval[:, 1], mean + norm.ppf(0.9) * sd)
    np.testing.assert_allclose(
        model.log_predictive_density(X[known], y[known]), norm.logpdf(y, mean, sd)[known]
    )
    np.testing.assert_allclose(sd, model.noise_sd_)
    np.testing.assert_allclose(
        model.transform(X) @ model.coef_ + model.intercept_, mean, rtol=1e-10
    )
    rows, numbers = model.sample(200)
    assert rows.shape == (200, 10)
    assert abs(numbers.mean() - np.nanmean(y)) < np.nanstd(y) / 2
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        bayesrbf.load(tmp_path / "model.safetensors").predict(X), model.predict(X)
    )


def test_regression_in_other_units(friedman):
    X, y = friedman
    settings = {"n_components": 2, "random_state": 0, "n_init": 1, "max_iter": 300}
    model = RBFNetworkRegressor(**settings).fit(X, y)
    other = RBFNetworkRegressor(**settings).fit(X, -3 * y)
    np.testing.assert_allclose(-other.predict(X) / 3, model.predict(X), rtol=1e-3)
    assert other.noise_sd_ == pytest.approx(3 * model.noise_sd_, rel=1e-2)


def test_a_posterior_of_numbers_is_wider_than_its_noise(friedman):
    X, y = friedman
    model = RBFNetworkRegressor(2, random_state=0, n_init=1, tol=1e-5).fit(X[:60, :3], y[:60])
    model.refine("laplace", draws=50, chains=2)
    mean, sd = model.predict(X[:5, :3], return_std=True)
    assert np.ptp(sd) > 0
    interval = model.predict_interval(X[:5, :3])
    assert np.all((interval[:, 0] < mean) & (mean < interval[:, 1]))
    assert np.isfinite(model.log_predictive_density(X[:5, :3], np.full(5, 240.0))).all()


def test_mixtures_of_normals():
    means, sds = np.array([[0.0, 2.0], [4.0, 2.0]]), np.array([1.0, 0.5])
    for prob in (0.05, 0.5, 0.9):
        found = quantiles(means, sds, prob)
        below = norm.cdf(found, means, sds[:, None]).mean(axis=0)
        np.testing.assert_allclose(below, prob, atol=1e-12)
    expected = np.log(norm.pdf(1.0, means, sds[:, None]).mean(axis=0))
    np.testing.assert_allclose(log_density(np.ones(2), means, sds), expected)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y"),
        ([np.nan, np.nan], "at least one response"),
        ([1.0, np.inf], "infinity"),
    ],
)
def test_responses_that_cannot_be_used(y, words):
    with pytest.raises(ValueError, match=words):
        RBFNetworkRegressor(1).fit([[0.0], [1.0]], y)


def test_an_interval_needs_a_probability(friedman):
    X, y = friedman
    model = RBFNetworkRegressor(1, n_init=1).fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="within"):
        model.predict_interval(X[:2], prob=1.0)


def test_the_tree_holds_the_numbers_as_given(friedman):
    X, y = friedman
    model = RBFNetworkRegressor(1, n_init=1).fit(X[:40], y[:40])
    np.testing.assert_allclose(model.posterior_["observed_data"]["y"].to_numpy(), y[:40])

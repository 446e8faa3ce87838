"""Regression on logarithms: the change of variables by hand, the choice, what is said of signs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

import bayesrbf
from bayesrbf import RBFNetworkRegressor
from bayesrbf.families.rbf_network.fitted import NumberResponses, noise_held_out
from bayesrbf.fit.held_out import HeldOut

SETTINGS = {"n_components": 2, "n_init": 1, "cv": 3, "max_iter": 300, "random_state": 0}


def lognormal(n_obs: int, sd: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two columns, and numbers whose noise grows with their median."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_obs, 2))
    return X, np.exp(0.5 + X @ [0.6, -0.4] + sd * rng.normal(size=n_obs))


def with_gaps(n_obs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with missing cells, hidden numbers and row weights."""
    X, y = lognormal(n_obs)
    rng = np.random.default_rng(4)
    X[rng.random(X.shape) < 0.1] = np.nan
    y[::9] = np.nan
    return X, y, rng.uniform(0.5, 2.0, n_obs)


@pytest.fixture(scope="module")
def pair():
    """A fit of logarithms, and one to the logarithms by hand."""
    X, y, weights = with_gaps(60)
    model = RBFNetworkRegressor(response="log", **SETTINGS).fit(X, y, weights)
    by_hand = RBFNetworkRegressor(**SETTINGS).fit(X, np.log(y), weights)
    return model, by_hand, X, y, weights


def same(found: object, expected: object) -> None:
    """Equal but for where two ascents of one density end."""
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def check_change_of_variables(model, by_hand, X, y) -> None:
    """Quantiles are carried over, and densities over y."""
    same(model.predict(X), np.exp(by_hand._predictive(X).quantile(0.5)))
    for prob in (0.5, 0.99):
        same(model.predict_interval(X, prob), np.exp(by_hand.predict_interval(X, prob)))
    known = ~np.isnan(y)
    logs = by_hand.log_predictive_density(X[known], np.log(y[known])) - np.log(y[known])
    same(model.log_predictive_density(X[known], y[known]), logs)
    told, of_logs = model.uncertainty(X), by_hand.uncertainty(X)
    assert not {"mean", "sd", "sd_of_mean"} & set(told)
    same(told["median"], model.predict(X))
    same(told["sd_of_log"], of_logs["sd"])
    np.testing.assert_allclose(told["sd_of_mean_of_log"], of_logs["sd_of_mean"], atol=1e-5)
    same(told["upper"], np.exp(of_logs["upper"]))


def test_a_fit_is_one_to_the_logarithms_by_hand(pair):
    model, by_hand, X, y, _ = pair
    assert (model.response_, by_hand.response_) == ("log", "identity")
    for name in ("coef_", "intercept_", "noise_sd_", "noise_scale_", "noise_df_"):
        same(getattr(model, name), getattr(by_hand, name))
    check_change_of_variables(model, by_hand, X, y)
    jacobian = -np.nansum(model.rows_.weights * np.log(y))
    same(model.objective_, by_hand.objective_ + jacobian)
    theta = by_hand.model_.point(by_hand.fitted_.log_posterior)
    with_unit = model.fitted_.log_posterior
    without = by_hand.fitted_.log_posterior
    rows = -np.nan_to_num(np.log(y))
    same(with_unit.pointwise(theta), without.pointwise(theta) + rows)
    for jacobian_of_coordinates in (False, True):
        value, gradient = with_unit.value_and_gradient(theta, jacobian_of_coordinates)
        expected, slope = without.value_and_gradient(theta, jacobian_of_coordinates)
        assert value == pytest.approx(expected + jacobian, rel=1e-10)
        np.testing.assert_allclose(gradient, slope, atol=1e-8)


@pytest.mark.slow
def test_draws_are_those_of_the_logarithms(pair):
    model, by_hand, X, y, weights = pair
    models = [
        RBFNetworkRegressor(response=one.response, **SETTINGS)
        .fit(X, target, weights)
        .refine("laplace", draws=10, chains=2, random_state=0)
        for one, target in ((model, y), (by_hand, np.log(y)))
    ]
    check_change_of_variables(*models, X, y)
    trees = [one.posterior_ for one in models]
    known = ~np.isnan(y)
    np.testing.assert_array_equal(trees[0]["observed_data"]["y"], y[known])
    likelihoods = [tree["log_scores"]["objective"].to_numpy() for tree in trees]
    same(likelihoods[0], likelihoods[1] - np.nan_to_num(np.log(y)))


def test_a_file_keeps_what_is_modelled(pair, tmp_path):
    model, _, X, *_ = pair
    model.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    assert loaded.response_ == "log"
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_all_that_is_said_is_positive(pair):
    model, _, X, *_ = pair
    far = np.vstack([X, [[1e8, -1e8], [-1e8, 1e8], [np.nan, np.nan]]])
    interval = model.predict_interval(far, prob=0.999999)
    assert (interval > 0).all()
    assert np.isfinite(interval).all()
    assert (interval[:, 0] <= model.predict(far)).all()
    assert (model.predict(far) <= interval[:, 1]).all()
    assert (model.sample(50)[1] > 0).all()
    density = model.log_predictive_density(X[:3], [0.0, -1.0, np.nan])
    np.testing.assert_array_equal(density, [-np.inf, -np.inf, np.nan])
    with pytest.raises(ValueError, match="needs a response that is modelled itself"):
        model.predict(X, return_std=True)


@pytest.mark.parametrize("sd", [0.05, 0.8])
def test_the_choice_is_that_of_held_out_rows(sd):
    X, y = lognormal(60, sd)
    if sd < 0.1:
        y = 25 + X @ [6.0, -4.0] + 2 * np.random.default_rng(0).normal(size=60)
    assert (y > 0).all()
    chosen = RBFNetworkRegressor(response="auto", **SETTINGS).fit(X, y)
    assert chosen.response_ == ("log" if sd > 0.1 else "identity")
    alone = RBFNetworkRegressor(response=chosen.response_, **SETTINGS).fit(X, y)
    np.testing.assert_array_equal(chosen.predict(X), alone.predict(X))
    assert chosen.noise_df_ == alone.noise_df_
    assert chosen.status_.startswith(alone.status_)
    assert f"took '{chosen.response_}'" in chosen.status_
    once = iter([(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))])
    settings = SETTINGS | {"calibrate": False, "cv": once}
    raw = RBFNetworkRegressor(response="auto", **settings).fit(X, y)
    assert (raw.response_, raw.noise_scale_) == (chosen.response_, 1.0)


@pytest.mark.parametrize("place", [0, 1])
def test_scores_of_both_are_densities_of_the_number_itself(pair, place):
    """By scipy, of Student's t about what other fits said of the rows."""
    model = (pair[0], RBFNetworkRegressor(**SETTINGS).fit(*pair[2:]))[place]
    fitted, rng = model.model_, np.random.default_rng(0)
    labels = rng.integers(fitted.responses.values.size, size=40)
    residuals, weights = rng.standard_t(4, size=40), rng.uniform(0.5, 2.0, 40)
    noise, score = noise_held_out(fitted, HeldOut(residuals, labels, weights))
    y = fitted.responses.values[labels]
    number = np.log(y) if place == 0 else y
    centre, scale = number - model.noise_sd_ * residuals, model.noise_sd_ * noise.scale
    law = student(noise.df, centre, scale)
    slope = 1 / y if place == 0 else 1.0
    assert score == pytest.approx(np.average(np.log(law.pdf(number) * slope), weights=weights))


def test_responses_that_are_not_positive_are_modelled_as_they_are():
    X, y = lognormal(30)
    y[0] = 0.0
    with pytest.raises(ValueError, match=r"needs responses above 0; received 1 .* least 0\."):
        RBFNetworkRegressor(response="log").fit(X, y)
    found = RBFNetworkRegressor(response="auto", **SETTINGS).fit(X, y)
    plain = RBFNetworkRegressor(**SETTINGS).fit(X, y)
    assert (found.response_, found.status_) == ("identity", plain.status_)
    np.testing.assert_array_equal(found.predict(X), plain.predict(X))
    hidden = np.where(y > 0, 1.0, 0.0)
    model = RBFNetworkRegressor(response="log", **SETTINGS).fit(X, y, sample_weight=hidden)
    assert (model.predict(X) > 0).all()
    with pytest.raises(ValueError, match="'identity' or 'log' or 'auto'"):
        RBFNetworkRegressor(response="sqrt").fit(X, y)
    with pytest.warns(UserWarning, match="and 'auto' is 'identity'"):
        one = RBFNetworkRegressor(1, n_init=1, response="auto").fit(X[:3], [1.0, np.nan, np.nan])
    assert one.response_ == "identity"


def test_intervals_of_a_positive_number_end_at_zero():
    X, y = lognormal(40, 1.0)
    model, moved = (RBFNetworkRegressor(**SETTINGS).fit(X, one) for one in (y, y - y.min()))
    plain = model._predictive(X).interval(0.9)
    assert (plain < 0).any()
    np.testing.assert_array_equal(model.predict_interval(X), np.maximum(plain, 0))
    np.testing.assert_array_equal(model.uncertainty(X)["lower"], np.maximum(plain[:, 0], 0))
    np.testing.assert_array_equal(moved.predict_interval(X), moved._predictive(X).interval(0.9))


def test_a_stored_response_without_a_logarithm_is_refused():
    units = bayesrbf.base.rows.Standardisation(np.zeros(1), np.ones(1))
    laws = list(NumberResponses(np.array([-1.0, 2.0]), units, "log_number").__laws__())
    assert [words for holds, words in laws if not holds] == ["responses with logarithms"]


@pytest.mark.slow
def test_intervals_of_noise_that_grows_hold_rows_that_were_not_seen():
    """Where the noise is in proportion, those of the logarithm hold everywhere, others do not."""
    X, y = lognormal(3000, 0.6)
    settings = SETTINGS | {"n_components": 4, "cv": 5}
    new, truth = X[300:], y[300:]
    inside = {}
    for response in ("log", "identity"):
        model = RBFNetworkRegressor(response=response, **settings).fit(X[:300], y[:300])
        lower, upper = model._predictive(new).interval(0.9).T
        held = (lower <= truth) & (truth <= upper)
        large = model.predict(new) > np.quantile(model.predict(new), 0.8)
        inside[response] = held.mean(), held[large].mean()
    np.testing.assert_allclose(inside["log"], 0.9, atol=0.04)
    assert inside["identity"][1] < 0.85

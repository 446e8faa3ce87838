"""RBF networks of numbers: predictions, intervals, units, draws."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.datasets import make_friedman1

import bayesrbf
from bayesrbf import RBFNetworkRegressor
from bayesrbf.families.rbf_network import fitted as network_training
from bayesrbf.families.rbf_network.fitted import LogStudentMixture, fit_network
from bayesrbf.families.rbf_network.posterior import StudentMixture
from bayesrbf.fit.calibration import fit_noise
from bayesrbf.inference.draws import covers

pytestmark = pytest.mark.slow


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
    settings = {"n_init": 1, "max_iter": 200, "tol": 1e-4, "random_state": 0}
    model = RBFNetworkRegressor(4, calibrate=False, **settings).fit(X, y)
    mean, sd = model.predict(X, return_std=True)
    assert 1 - np.var((y - mean)[known]) / np.var(y[known]) > 0.75
    interval = model.predict_interval(X, prob=0.8)
    inside = ((interval[:, 0] < y) & (y < interval[:, 1]))[known].mean()
    assert 0.7 < inside < 0.95
    whole = known & ~np.isnan(X).any(axis=1)
    np.testing.assert_allclose(interval[whole, 1], (mean + norm.ppf(0.9) * sd)[whole])
    np.testing.assert_allclose(
        model.log_predictive_density(X[whole], y[whole]), norm.logpdf(y, mean, sd)[whole]
    )
    np.testing.assert_allclose(sd[whole], model.noise_sd_)
    linear = model.transform(X) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(linear[whole], mean[whole], rtol=1e-10)
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
    whole = X[~np.isnan(X).any(axis=1)]
    np.testing.assert_allclose(-other.predict(whole) / 3, model.predict(whole), rtol=1e-3)
    assert other.noise_sd_ == pytest.approx(3 * model.noise_sd_, rel=1e-2)


def test_a_posterior_of_numbers_is_wider_than_its_noise(friedman):
    X, y = friedman
    model = RBFNetworkRegressor(2, random_state=0, n_init=1, tol=1e-5).fit(X[:60, :3], y[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # whether they cover the posterior or not
        draws = model.refine("laplace", draws=50, chains=2).draws_
    model.fitted_ = model.fitted_.with_draws(replace(draws, attributes={"pareto_k": 0.1}))
    mean, sd = model.predict(X[:5, :3], return_std=True)
    assert np.ptp(sd) > 0
    interval = model.predict_interval(X[:5, :3])
    assert np.all((interval[:, 0] < mean) & (mean < interval[:, 1]))
    assert np.isfinite(model.log_predictive_density(X[:5, :3], np.full(5, 240.0))).all()


def test_an_approximation_that_misses_the_posterior_moves_no_prediction(friedman):
    X, y = friedman
    X = X[:60, :3]
    model = RBFNetworkRegressor(2, random_state=0, n_init=1, tol=1e-5).fit(X, y[:60])
    mode, interval = model.predict(X), model.predict_interval(X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.refine("laplace", draws=50, chains=2)
    told = any("Predictions stay those" in str(one.message) for one in caught)
    assert told is not covers(model.draws_.attributes)
    for pareto_k, moves in ((5.0, False), (0.1, True)):
        about = {**model.draws_.attributes, "pareto_k": pareto_k, "importance_share": 0.1}
        model.fitted_ = model.fitted_.with_draws(replace(model.draws_, attributes=about))
        assert bool(np.abs(model.predict(X) - mode).max() > 0) is moves
        assert bool((model.predict_interval(X) != interval).any()) is moves
        assert (model.uncertainty(X).attrs["point_estimate"] == 1) is not moves
        assert ("refine('nuts')" in model.status_) is not moves
        assert f"pareto_k = {pareto_k:.4g}" in model.status_


def test_mixtures_of_normals():
    means, sds = np.array([[0.0, 2.0], [4.0, 2.0]]), np.array([1.0, 0.5])
    mixture = StudentMixture(means, sds)
    for prob in (0.05, 0.5, 0.9):
        below = norm.cdf(mixture.quantile(prob), means, sds[:, None]).mean(axis=0)
        np.testing.assert_allclose(below, prob, atol=1e-12)
    expected = np.log(norm.pdf(1.0, means, sds[:, None]).mean(axis=0))
    np.testing.assert_allclose(mixture.log_density(np.ones(2)), expected)
    np.testing.assert_allclose(mixture.centre(), [2.0, 2.0])
    np.testing.assert_allclose(mixture.sd(), np.sqrt([4.625, 0.625]))


@pytest.mark.parametrize(
    "predictive",
    [
        StudentMixture(np.tile([[0.0], [4.0]], 4000), np.array([1.0, 0.5])),
        StudentMixture(np.full((1, 4000), 3.0), np.full(1, 0.5), df=5.0),
        LogStudentMixture(np.full((1, 4000), 3.0), np.full(1, 0.5), df=5.0),
    ],
    ids=["normals", "t", "log t"],
)
def test_what_is_said_of_a_number_is_one_distribution(predictive):
    drawn = predictive.draw(np.random.default_rng(0))
    if isinstance(predictive, LogStudentMixture):
        assert np.median(drawn) == pytest.approx(predictive.centre()[0], rel=0.05)
        spread = np.log(drawn)
    else:
        error = predictive.sd()[0] / np.sqrt(drawn.size)
        assert abs(drawn.mean() - predictive.centre()[0]) < 5 * error
        spread = drawn
    assert spread.std() == pytest.approx(predictive.sd()[0], rel=0.1)
    for prob in (0.1, 0.5, 0.8):
        assert (drawn < predictive.quantile(prob)).mean() == pytest.approx(prob, abs=0.04)
    step = 1e-5  # the density is the slope of what the quantiles invert
    ends = [predictive.quantile(0.3 + sign * step)[0] for sign in (-1, 1)]
    middle = predictive.quantile(0.3)
    density = np.exp(predictive.log_density(middle))[0]
    assert 2 * step / (ends[1] - ends[0]) == pytest.approx(density, rel=1e-3)


@pytest.mark.parametrize(("scale", "df"), [(0.5, 60.0), (2.0, 60.0), (1.3, 3.0)])
def test_noise_is_found_again(scale, df):
    residuals = student.rvs(df, scale=scale, size=4000, random_state=1)
    found, tails = fit_noise(residuals, np.ones(4000))
    assert found == pytest.approx(scale, rel=0.05)
    assert (tails < 5) == (df < 5)
    few = residuals[:200]
    twice = fit_noise(few, np.full(200, 2.0))
    np.testing.assert_allclose(fit_noise(np.tile(few, 2), np.ones(400)), twice, rtol=1e-3)


def test_intervals_hold_rows_that_were_not_seen():
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    y -= y.mean()  # no word on intervals of positive numbers
    settings = {"n_components": 4, "random_state": 0, "n_init": 1, "max_iter": 200, "tol": 1e-4}
    shares = {}
    for calibrate in (True, False):
        model = RBFNetworkRegressor(calibrate=calibrate, **settings).fit(X[:120], y[:120])
        lower, upper = model.predict_interval(X[120:]).T
        shares[calibrate] = ((lower < y[120:]) & (y[120:] < upper)).mean()
    assert shares[False] < 0.86
    assert 0.87 < shares[True] < 0.96


def test_a_row_with_holes_is_as_wide_as_what_is_not_known():
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    y -= y.mean()  # no word on intervals of positive numbers
    settings = {"n_components": 4, "random_state": 0, "n_init": 1, "max_iter": 200, "tol": 1e-4}
    model = RBFNetworkRegressor(**settings).fit(X[:200], y[:200])
    holes = X[200:].copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.3] = np.nan
    lower, upper = model.predict_interval(holes).T
    assert 0.86 < ((lower < y[200:]) & (y[200:] < upper)).mean() < 0.96
    mean, sd = model.predict(holes, return_std=True)
    nothing = np.full((1, X.shape[1]), np.nan)
    assert sd.max() <= model.predict(nothing, return_std=True)[1][0] * 1.2
    assert sd.min() > 0.999 * model.predict(X[200:], return_std=True)[1].min()
    # A row is told the same whatever stands beside it.
    np.testing.assert_allclose(model.predict(holes[5:8]), mean[5:8], rtol=1e-12)
    # Completed tables, predicted and averaged, say the same but for their randomness.
    tables = np.array([model.predict(table) for table in model.impute(holes, draws=200)])
    off = np.abs(tables.mean(axis=0) - mean)
    assert (off <= 6 * tables.std(axis=0) / np.sqrt(64) + 1e-9).all()


def test_features_of_holes_are_used_where_they_were_learned(friedman):
    X, y = friedman
    X = X[:, :4].copy()
    X[np.random.default_rng(2).random(X.shape) < 0.4] = np.nan
    model = RBFNetworkRegressor(2, random_state=0, n_init=1, max_iter=100, tol=1e-4).fit(X, y)
    linear = model.transform(X) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), linear, rtol=1e-9)
    sd = model.predict(X, return_std=True)[1]
    np.testing.assert_allclose(sd, sd[0])


def test_calibrated_noise_goes_with_rows_and_weights(friedman):
    X, y = friedman
    X, y = X[10:70, :3], y[10:70]
    settings = {"n_components": 1, "random_state": 0, "n_init": 1}
    weights = np.random.default_rng(0).integers(0, 3, size=60)
    weighted = RBFNetworkRegressor(**settings).fit(X, y, sample_weight=weights)
    repeated = RBFNetworkRegressor(**settings).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert weighted.noise_scale_ == pytest.approx(repeated.noise_scale_, rel=1e-6)
    assert weighted.noise_df_ == pytest.approx(repeated.noise_df_, rel=1e-6)
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    given = RBFNetworkRegressor(cv=splits, **settings).fit(X, y)
    assert given.noise_scale_ == pytest.approx(1.0, abs=0.4)
    assert given.noise_scale_ != weighted.noise_scale_


def half_width(scale: float, df: float) -> float:
    """Of an interval of 90 %."""
    return float(scale * student(df).ppf(0.95))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [8, 1000])
def test_noise_is_that_of_rows_which_no_fit_has_seen(friedman, max_iter):
    """Also where the whole fit came to no end: folds that went on from it would know its rows."""
    X, y = friedman[0][10:70], friedman[1][10:70]
    settings = {"n_components": 1, "n_init": 1, "max_iter": max_iter, "random_state": 0}
    parts = np.arange(60) % 3
    splits = [(np.flatnonzero(parts != k), np.flatnonzero(parts == k)) for k in range(3)]
    model = RBFNetworkRegressor(cv=splits, **settings).fit(X, y)
    assert model.converged_ == (max_iter == 1000)
    off = np.empty(60)
    for train, test in splits:
        fold = RBFNetworkRegressor(calibrate=False, **settings).fit(X[train], y[train])
        off[test] = (y[test] - fold.predict(X[test])) / model.noise_sd_
    expected = half_width(*fit_noise(off, np.ones(60)))
    found = half_width(model.noise_scale_, model.noise_df_)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [8, 1000])
def test_folds_go_on_from_a_fit_that_came_to_its_end(friedman, monkeypatch, max_iter):
    X, y = friedman[0][10:70], friedman[1][10:70]
    starts = []

    def spy(rows, output, specification, prior, settings, start):
        starts.append(start)
        return fit_network(rows, output, specification, prior, settings, start)

    monkeypatch.setattr(network_training, "fit_network", spy)
    settings = {"n_init": 1, "max_iter": max_iter, "cv": 3}
    model = RBFNetworkRegressor(1, **settings).fit(X, y)
    assert model.converged_ == (max_iter == 1000)
    assert len(starts) == 4
    assert starts[0] is None
    assert all((start is not None) == model.converged_ for start in starts[1:])


def test_one_response_cannot_be_held_out():
    with pytest.warns(UserWarning, match="holds out no row with a response"):
        model = RBFNetworkRegressor(1, n_init=1).fit([[0.0], [1.0], [2.0]], [1.0, np.nan, np.nan])
    assert (model.noise_scale_, model.noise_df_) == (1.0, np.inf)
    with pytest.raises(ValueError, match="at least 2 folds"):
        RBFNetworkRegressor(1, cv=1).fit([[0.0], [1.0]], [0.0, 1.0])


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
    observed, known = model.posterior_["observed_data"]["y"], np.flatnonzero(~np.isnan(y[:40]))
    np.testing.assert_array_equal(observed["obs"], known)
    np.testing.assert_allclose(observed, y[known])

"""The variational fit: exact where the posterior is normal, honest where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayesrbf.inference.laplace import approximate
from bayesrbf.inference.variational import (
    FixedDrawObjective,
    VariationalFit,
    advi,
    fit_gaussian,
    fixed_draws,
)
from tests.inference.moments import BOUND, moment_errors
from tests.inference.targets import Gaussian, LogGamma, Mixture, Saddle, Target


def objective_of(target: Target, start: np.ndarray, pairs: int = 16) -> FixedDrawObjective:
    z = fixed_draws(target.dimension, pairs, np.random.default_rng(0))
    return FixedDrawObjective(target, approximate(target, start), z)


def fitted(target: Target, start: np.ndarray, **options: object) -> VariationalFit:
    return fit_gaussian(objective_of(target, start), **options)


@pytest.mark.parametrize("dimension", [1, 7, 8, 20])
def test_fixed_draws_are_centred_and_uncorrelated_in_their_block(dimension):
    z = fixed_draws(dimension, 8, np.random.default_rng(1))
    assert z.shape == (16, dimension)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-15)
    second = z.T @ z / 16
    np.testing.assert_allclose(np.diag(second), 1, rtol=1e-12)
    np.testing.assert_allclose(second[:8, :8], np.eye(min(dimension, 8)), atol=1e-12)


def test_a_normal_posterior_is_found_exactly():
    """Mean; spread of independent coordinates 1/sqrt(P_ii); linear response P^-1; evidence."""
    target = Gaussian()
    fit = fitted(target, np.zeros(5))
    sd = np.sqrt(np.diag(target.covariance))
    np.testing.assert_allclose((fit.mean - target.mean) / sd, 0, atol=1e-6)
    np.testing.assert_allclose(fit.log_sd, -0.5 * np.log(np.diag(target.precision)), atol=1e-6)
    covariance = fit.factor @ fit.factor.T / np.outer(sd, sd)
    np.testing.assert_allclose(covariance, target.covariance / np.outer(sd, sd), atol=1e-6)
    # The density has no constant, so its evidence is that of a normal's exponent. The bound
    # is below it by log det of the correlations of the precision.
    evidence = 0.5 * (5 * np.log(2 * np.pi) + np.linalg.slogdet(target.covariance)[1])
    roots = np.sqrt(np.diag(target.precision))
    gap = -0.5 * np.linalg.slogdet(target.precision / np.outer(roots, roots))[1]
    assert fit.elbo == pytest.approx(evidence - gap, abs=1e-6)
    assert fit.converged
    assert fit.n_indefinite == 0
    assert fit.mean_error < 1e-6  # antithetic draws: no error of the mean


@pytest.mark.parametrize("covariance", ["linear_response", "mean_field"])
def test_draws_of_a_normal_posterior_have_its_moments(covariance):
    target = Gaussian()
    draws = advi(target, np.zeros(5), random_state=1, covariance=covariance)
    truth = target.covariance
    if covariance == "mean_field":
        truth = np.diag(1 / np.diag(target.precision))
        assert np.abs(moment_errors(draws.theta, target.mean, target.covariance)).max() > BOUND
    assert np.abs(moment_errors(draws.theta, target.mean, truth)).max() < BOUND
    assert draws.attributes["covariance"] == covariance
    assert (draws.attributes["pareto_k"] == -np.inf) == (covariance == "linear_response")


def test_log_q_is_the_density_of_the_draws():
    target = LogGamma()
    fit = fitted(target, np.zeros(2), linear_response=False)
    draws = advi(target, np.zeros(2), draws=5, random_state=0, covariance="mean_field")
    sd = np.exp(fit.log_sd)  # independent gammas: other fixed draws give nearly the same
    reference = multivariate_normal(fit.mean, np.diag(sd**2)).logpdf(draws.theta)
    np.testing.assert_allclose(draws.stats["log_q"], reference, atol=0.1)
    values = [[target.value_and_gradient(one)[0] for one in chain] for chain in draws.theta]
    np.testing.assert_array_equal(draws.stats["lp"], values)


def test_the_mean_of_a_skewed_posterior_is_nearer_than_its_mode():
    target = LogGamma(shape=4.0)
    fit = fitted(target, np.zeros(2))
    mode = approximate(target, np.zeros(2)).mode
    assert np.abs(fit.mean - target.mean).max() < 0.1 * np.abs(mode - target.mean).max()
    spread = np.diag(fit.factor @ fit.factor.T)
    np.testing.assert_allclose(spread, np.diag(target.covariance), rtol=0.05)


@pytest.mark.parametrize("target", [Mixture(), LogGamma()], ids=["mixture", "gamma"])
def test_gradient_and_hessian_are_derivatives_of_the_objective(target):
    start = target.start() if isinstance(target, Mixture) else np.zeros(2)
    objective = objective_of(target, start, pairs=4)
    rng = np.random.default_rng(0)
    eta = 0.3 * rng.normal(size=2 * target.dimension)
    step = 1e-5 * rng.normal(size=eta.size)
    rise = objective(eta + step)[0] - objective(eta - step)[0]
    assert 2 * objective(eta)[1] @ step == pytest.approx(rise, rel=1e-6, abs=1e-10)
    bend = objective(eta + step)[1] - objective(eta - step)[1]
    np.testing.assert_allclose(2 * objective.hessian(eta) @ step, bend, rtol=1e-3, atol=1e-9)


def test_linear_response_is_the_derivative_of_the_mean():
    """Tilt the log density by t theta: the mean moves by the covariance times t."""

    class Tilted(LogGamma):
        def value_and_gradient(self, theta, jacobian=True):
            value, slope = super().value_and_gradient(theta, jacobian)
            return value + self.tilt @ theta, slope + self.tilt

    target = Tilted()
    target.tilt = np.zeros(2)
    objective = objective_of(target, np.zeros(2))
    covariance = (lambda factor: factor @ factor.T)(fit_gaussian(objective).factor)
    means = []
    for sign in (1, -1):
        target.tilt = sign * np.array([1e-2, 0.0])
        means.append(fit_gaussian(objective).mean)  # same whitening, same draws
    np.testing.assert_allclose((means[0] - means[1]) / 2e-2, covariance[0], atol=1e-3)


def test_the_reported_error_is_that_over_other_draws():
    target = LogGamma(shape=2.0)
    gaussian = approximate(target, np.zeros(2))
    fits = []
    for seed in range(40):
        z = fixed_draws(2, 8, np.random.default_rng(seed))
        fits.append(fit_gaussian(FixedDrawObjective(target, gaussian, z)))
    sd = np.sqrt(np.diag(target.covariance))
    seen = np.std([fit.mean / sd for fit in fits], axis=0).max()
    told = np.median([fit.mean_error for fit in fits])
    assert 0.5 < told / seen < 2
    assert np.std([fit.elbo for fit in fits]) < 2 * np.median([fit.elbo_error for fit in fits])


def test_a_search_cut_short_is_told():
    target = Mixture()
    short, whole = (
        advi(target, target.start(), draws=30, max_iter=n, random_state=0) for n in (1, 200)
    )
    assert not short.attributes["converged"]
    assert "still rises" in short.attributes["convergence"]
    assert whole.attributes["converged"]
    assert whole.attributes["elbo"] > short.attributes["elbo"]


def test_a_response_without_spread_is_counted_and_bounded():
    """Where the objective curves downwards, a direction has Laplace's spread at most."""

    class Steep(Saddle):
        def value_and_gradient(self, theta, jacobian=True):
            value, slope = super().value_and_gradient(theta, jacobian)
            return 25 * value, 25 * slope

    objective = objective_of(Steep(), np.array([0.0, 1.0]))
    fit = fit_gaussian(objective, max_iter=1)  # still on the ridge between the two wells
    assert fit.n_indefinite == 1
    assert "1 of 2 directions" in fit.curvature
    laplace = objective.gaussian.factor @ objective.gaussian.factor.T
    np.testing.assert_allclose(fit.factor @ fit.factor.T, laplace, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("wall", ["NaN", "overflow", "LinAlgError"])
def test_draws_without_a_density_are_walls_and_the_start_is_narrowed(wall):
    class Walled(LogGamma):
        def value_and_gradient(self, theta, jacobian=True):
            if np.all(np.abs(theta - np.log(2)) <= 0.6):
                return super().value_and_gradient(theta, jacobian)
            if wall == "LinAlgError":
                raise np.linalg.LinAlgError("a covariance is singular")
            far = np.exp(1e4 * np.ones(2)) if wall == "overflow" else np.nan * theta
            return -float(far.sum()), far

    fit = fitted(Walled(), np.full(2, np.log(2)))
    assert np.all(np.isfinite(fit.factor))
    assert np.all(np.exp(fit.log_sd) < 0.6)


def test_a_posterior_that_is_not_covered_shows_in_the_importance_ratios():
    skewed = advi(LogGamma(shape=1.0), np.zeros(2), random_state=0).attributes
    nearly_normal = advi(LogGamma(shape=200.0), np.zeros(2), random_state=0).attributes
    assert skewed["pareto_k"] > 0.7
    assert skewed["importance_share"] < 0.7
    assert nearly_normal["importance_share"] > 0.99


@pytest.mark.slow
def test_resampling_mends_a_skewed_posterior():
    target = LogGamma(shape=20.0)
    plain, mended = (
        advi(
            target,
            np.zeros(2),
            draws=5000,
            random_state=3,
            resample=resample,
            covariance="mean_field",
        )
        for resample in (False, True)
    )
    cubes = [(((d.theta - target.mean) ** 3).mean()) for d in (plain, mended)]
    skews = np.array(cubes) / target.covariance[0, 0] ** 1.5
    assert abs(skews[0]) < 0.05
    assert skews[1] < -0.15  # the truth is polygamma(2, 20) / polygamma(1, 20)^1.5 = -0.23


@pytest.mark.parametrize("factor", [2.0**20, 2.0**-30])
def test_subjects_of_the_coordinates_change_nothing(factor):
    first, second = Gaussian(), Gaussian()
    second.scales = first.scales * factor
    second.mean = first.mean * factor
    second.precision = first.precision / factor**2
    one, two = (advi(target, np.zeros(5), draws=20, random_state=0) for target in (first, second))
    np.testing.assert_allclose(one.theta / first.scales, two.theta / second.scales, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariance": "full"}, "must be one of"),
        ({"pairs": 1}, "at least 2"),
        ({"draws": 0}, "draws"),
        ({"chains": 0}, "chains"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        advi(Gaussian(), np.zeros(5), **options)

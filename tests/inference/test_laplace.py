from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.inference.laplace import approximate, hessian, laplace
from tests.inference.moments import BOUND, moment_errors
from tests.inference.targets import Gaussian, HeavyTailed, LogGamma, Mixture, Saddle


def test_gaussian_is_found_exactly():
    target = Gaussian()
    gaussian = approximate(target, np.zeros(target.dimension))
    sd = np.sqrt(np.diag(target.covariance))
    np.testing.assert_allclose(gaussian.mode / sd, target.mean / sd, atol=1e-7)
    covariance = gaussian.factor @ gaussian.factor.T
    np.testing.assert_allclose(
        covariance / np.outer(sd, sd), target.covariance / np.outer(sd, sd), atol=1e-7
    )
    assert gaussian.n_indefinite == 0


def test_draws_have_the_moments_of_a_gaussian_and_its_ratios_no_tail():
    target = Gaussian()
    draws = laplace(target, np.zeros(target.dimension), random_state=1)
    assert draws.theta.shape == (4, 1000, target.dimension)
    errors = moment_errors(draws.theta, target.mean, target.covariance)
    assert np.abs(errors).max() < BOUND
    assert draws.attributes["pareto_k"] < 0.1
    constant = draws.stats["lp"] - draws.stats["log_q"]
    assert np.ptp(constant) < 1e-6


@pytest.mark.parametrize("defect", ["sd x 1.2", "shifted"])
def test_moment_errors_notice_a_planted_defect(defect):
    target = Gaussian()
    theta = laplace(target, np.zeros(target.dimension), random_state=1).theta
    wrong = {
        "sd x 1.2": target.mean + 1.2 * (theta - target.mean),
        "shifted": theta + 0.2 * np.sqrt(np.diag(target.covariance)),
    }[defect]
    assert np.abs(moment_errors(wrong, target.mean, target.covariance)).max() > BOUND


def test_log_q_is_the_density_of_the_draws():
    target = LogGamma()
    gaussian = approximate(target, np.zeros(2))
    draws = laplace(target, np.zeros(2), draws=5, random_state=0)
    from scipy.stats import multivariate_normal

    reference = multivariate_normal(gaussian.mode, gaussian.factor @ gaussian.factor.T)
    np.testing.assert_allclose(draws.stats["log_q"], reference.logpdf(draws.theta), rtol=1e-9)
    expected = [[target.value_and_gradient(one)[0] for one in chain] for chain in draws.theta]
    np.testing.assert_array_equal(draws.stats["lp"], expected)


def test_mode_is_that_with_jacobian():
    target = LogGamma(shape=4.0, rate=2.0)
    gaussian = approximate(target, np.zeros(2))
    np.testing.assert_allclose(gaussian.mode, np.log(4.0 / 2.0), atol=1e-6)
    np.testing.assert_allclose(gaussian.factor @ gaussian.factor.T, np.eye(2) / 4, atol=1e-6)


def test_heavy_tails_show_in_the_importance_ratios():
    light = laplace(LogGamma(shape=50.0), np.zeros(2), random_state=0)
    heavy = laplace(HeavyTailed(freedom=1.0), np.zeros(5), random_state=0)
    assert light.attributes["pareto_k"] < 0.5
    assert heavy.attributes["pareto_k"] > 0.7


@pytest.mark.slow
def test_resampling_mends_a_skewed_posterior():
    target = LogGamma(shape=4.0)
    plain = laplace(target, np.zeros(2), draws=5000, random_state=3)
    mended = laplace(target, np.zeros(2), draws=5000, random_state=3, resample=True)
    error = [
        np.abs(moment_errors(d.theta, target.mean, target.covariance)).max()
        for d in (plain, mended)
    ]
    assert error[0] > BOUND
    assert error[1] < error[0] / 3
    assert mended.attributes["resampled"] == 1


def test_a_direction_that_curves_upwards_is_counted_and_bounded():
    gaussian = approximate(Saddle(), np.array([0.0, 1.0]))
    assert gaussian.n_indefinite == 1
    spread = np.sqrt(np.diag(gaussian.factor @ gaussian.factor.T))
    np.testing.assert_allclose(spread, [0.5, 1.0], atol=1e-3)  # the curvature at 0 is 4
    assert "1 of 2 directions" in gaussian.sentence


def test_hessian_is_the_derivative_of_the_gradient():
    target = Mixture()
    start = target.start()
    step = 1e-5 * np.random.default_rng(0).normal(size=target.dimension)
    rise = target.value_and_gradient(start + step)[1] - target.value_and_gradient(start - step)[1]
    np.testing.assert_allclose(2 * hessian(target, start) @ step, rise, rtol=1e-4, atol=1e-9)


def test_the_gradient_vanishes_at_the_mode():
    target = Mixture()
    gaussian = approximate(target, target.start())
    _, gradient = target.value_and_gradient(gaussian.mode)
    assert np.abs(gradient @ gaussian.factor).max() < 1e-4


@pytest.mark.parametrize("factor", [2.0**20, 2.0**-30])
def test_subjects_of_the_coordinates_change_no_bit(factor):
    first, second = Gaussian(), Gaussian()
    second.scales = first.scales * factor
    second.mean = first.mean * factor
    second.precision = first.precision / factor**2
    one = laplace(first, np.zeros(5), draws=20, random_state=0)
    two = laplace(second, np.zeros(5), draws=20, random_state=0)
    np.testing.assert_array_equal(one.theta * factor, two.theta)


def test_a_start_of_no_density_is_named():
    with pytest.raises(ValueError, match="finite where the mode search starts"):
        laplace(Gaussian(), np.full(5, np.nan))

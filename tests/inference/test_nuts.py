from __future__ import annotations

import _thread
import itertools
import sys
from functools import cache

import numpy as np
import pytest

from bayesrbf.inference.draws import Draws
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import nuts
from tests.inference.moments import BOUND, errors, moment_errors
from tests.inference.targets import Gaussian, LogGamma, Mixture

pytestmark = pytest.mark.slow

pytest.importorskip("nutpie", reason="nutpie is an extra")


@cache
def of_gaussian() -> Draws:
    return nuts(Gaussian(), np.zeros(5), draws=1000, tune=300, random_state=1)


@cache
def of_gamma() -> Draws:
    return nuts(LogGamma(), np.zeros(2), draws=1000, tune=300, random_state=2)


def test_moments_of_a_gaussian():
    target = Gaussian()
    found = moment_errors(of_gaussian().theta, target.mean, target.covariance)
    assert np.abs(found).max() < BOUND


def test_moments_of_a_skewed_density():
    target = LogGamma()
    found = moment_errors(of_gamma().theta, target.mean, target.covariance)
    assert np.abs(found).max() < BOUND


@pytest.mark.parametrize("defect", ["no jacobian", "sd x 1.2"])
def test_moment_errors_notice_a_planted_defect(defect):
    target = LogGamma()
    theta = of_gamma().theta
    if defect == "no jacobian":
        dropped = LogGamma(shape=target.shape - 1)
        theta = nuts(dropped, np.zeros(2), draws=1000, tune=300, random_state=2).theta
    else:
        theta = target.mean + 1.2 * (theta - target.mean)
    assert np.abs(moment_errors(theta, target.mean, target.covariance)).max() > BOUND


def test_agrees_with_laplace_on_a_gaussian():
    approximation = laplace(Gaussian(), np.zeros(5), draws=4000, random_state=3).theta
    found = errors(of_gaussian().theta, approximation.mean(axis=(0, 1)))
    assert np.abs(found).max() < BOUND


def test_statistics_are_those_of_the_draws():
    draws, target = of_gamma(), LogGamma()
    assert draws.complete
    assert set(draws.stats) == {
        "lp",
        "diverging",
        "tree_depth",
        "reached_max_treedepth",
        "energy",
        "n_steps",
        "acceptance_rate",
        "step_size",
    }
    assert all(values.shape == (4, 1000) for values in draws.stats.values())
    lp = [target.value_and_gradient(one)[0] for one in draws.theta[1, :50]]
    np.testing.assert_allclose(draws.stats["lp"][1, :50], lp, rtol=1e-9)
    assert not draws.stats["diverging"].any()


def test_same_seed_same_bits_and_another_seed_others():
    target = Mixture()
    one, two, three = (
        nuts(target, target.start(), draws=30, tune=50, chains=3, random_state=s) for s in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_array_equal(one.stats["energy"], two.stats["energy"])
    assert not np.array_equal(one.theta, three.theta)


def test_subjects_of_the_coordinates_change_no_bit():
    first, second, factor = Gaussian(), Gaussian(), 2.0**20
    second.scales = first.scales * factor
    second.mean = first.mean * factor
    second.precision = first.precision / factor**2
    one = nuts(first, np.zeros(5), draws=30, tune=50, random_state=0)
    two = nuts(second, np.zeros(5), draws=30, tune=50, random_state=0)
    np.testing.assert_array_equal(one.theta * factor, two.theta)


class Walled(LogGamma):
    """No density beyond a wall, by error, by NaN and by an infinite gradient."""

    def value_and_gradient(self, theta, jacobian=True):
        value, gradient = super().value_and_gradient(theta, jacobian)
        if theta[0] > 2.5:
            raise np.linalg.LinAlgError("not positive definite")
        if theta[1] > 2.5:
            return np.nan, gradient
        if theta[1] < -2.5:
            return value, gradient * np.inf
        return value, gradient


def test_points_without_a_value_are_divergences_and_no_crash():
    target = Walled()
    draws = nuts(target, np.zeros(2), draws=300, tune=100, random_state=0)
    assert np.isfinite(draws.theta).all()
    assert draws.theta.max() <= 2.5
    assert draws.theta[..., 1].min() >= -2.5


class Interrupting(Gaussian):
    """Presses Ctrl-C after some evaluations."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.evaluations, self.after = itertools.count(1), after

    def value_and_gradient(self, theta, jacobian=True):
        if next(self.evaluations) == self.after:
            _thread.interrupt_main()
        return super().value_and_gradient(theta, jacobian)


def test_an_interrupt_returns_what_was_drawn():
    draws = nuts(Interrupting(8000), np.zeros(5), draws=10**5, tune=50, random_state=0, cores=1)
    assert not draws.complete
    chains, n_draws, _ = draws.theta.shape
    assert chains >= 1
    assert 0 < n_draws < 10**5
    assert np.isfinite(draws.theta).all()
    assert all(values.shape == (chains, n_draws) for values in draws.stats.values())


def test_an_interrupt_before_the_first_draw_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        nuts(Interrupting(1000), np.zeros(5), draws=100, tune=10**5, random_state=0, cores=1)


def test_without_nutpie_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(ImportError, match="pip install nutpie"):
        nuts(Gaussian(), np.zeros(5))


@pytest.mark.parametrize("argument", ["draws", "tune", "chains"])
def test_numbers_that_cannot_be_are_named(argument):
    with pytest.raises(ValueError, match=f"{argument}=...\\) must be at least"):
        nuts(Gaussian(), np.zeros(5), **{argument: 0})


def test_one_draw_of_one_chain_is_a_result():
    draws = nuts(Gaussian(), np.zeros(5), draws=1, chains=1, tune=10, random_state=0)
    assert draws.theta.shape == (1, 1, 5)

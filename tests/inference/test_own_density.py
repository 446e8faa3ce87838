"""A density of one's own: three methods are enough, and every default says what it is for."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import Variable
from bayesrbf.fit.trees import to_datatree
from bayesrbf.inference.draws import relabel
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import gibbs

ROWS = np.array([1.0, 2.0, 4.0, 3.0])


class Rate(LogPosterior):
    """Exponential waiting times under a Gamma(2, 1) rate: the posterior is Gamma(6, 11)."""

    variables = (Variable("rate", (), (), "log"),)

    def value_and_gradient(self, theta, jacobian=True):
        if theta[0] > 700:
            raise FloatingPointError("overflow")
        power, pull = 1 + ROWS.size + jacobian, (1 + ROWS.sum()) * np.exp(theta)
        return float(power * theta[0] - pull[0]), power - pull

    def pointwise(self, theta):
        return theta[0] - ROWS * np.exp(theta[0])


def test_three_methods_are_enough():
    target = Rate()
    raw = laplace(target, np.zeros(1), draws=4000, chains=2, random_state=0, resample=True)
    draws = relabel(target, raw, np.zeros(1))
    assert np.exp(draws.theta).mean() == pytest.approx(6 / 11, rel=0.03)
    tree = to_datatree(target, draws)
    assert tree["posterior"]["rate"].shape == (2, 4000)
    assert tree["log_likelihood"]["x"].shape == (2, 4000, 4)


def test_defaults_take_points_one_by_one_and_have_none_where_there_is_no_density():
    target, thetas = Rate(), np.array([[0.0], [-1.0], [800.0]])
    values, gradients = target.values_and_gradients(thetas)
    for i in (0, 1):
        value, gradient = target.value_and_gradient(thetas[i])
        assert values[i] == value
        np.testing.assert_array_equal(gradients[i], gradient)
    assert np.isnan(values[2])
    assert np.isnan(gradients[2]).all()
    np.testing.assert_array_equal(target.log_densities(thetas), values)
    expected = [target.pointwise(theta) for theta in thetas[:2]]
    np.testing.assert_array_equal(target.log_likelihoods(thetas[:2]), expected)
    assert target.prepared_for_many() is target


def test_a_density_without_a_kernel_names_the_method_that_fits():
    with pytest.raises(ValueError, match=r"received a Rate: use refine\('nuts'\)"):
        gibbs(Rate(), np.zeros(1))


def test_exchangeable_components_must_say_how_they_trade_places():
    class Exchangeable(Rate):
        component_class = np.array([0, 0, 1])

    target = Exchangeable()
    for method, arguments in (("component_log_joint", ()), ("permute", (np.array([1, 0, 2]),))):
        with pytest.raises(NotImplementedError, match=f"Exchangeable.*define {method}\\(\\)"):
            getattr(target, method)(np.zeros(1), *arguments)


def test_what_is_missing_is_named_when_the_object_is_made():
    class Without(LogPosterior):
        def pointwise(self, theta):
            return ROWS

    with pytest.raises(TypeError, match=r"value_and_gradient.*variables"):
        Without()

"""The declared graph of an RBF network against its numerics.

Each graph is compiled once, in FAST_COMPILE; what it holds beside the generic test of
tests/inference/test_plug.py are kinks, halves, features and draws.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy.integrate import quad

from bayesrbf.base import names
from bayesrbf.families.rbf_network.posterior import Numbers, RBFNetworkLogPosterior
from bayesrbf.models.densities import elastic_net
from bayesrbf.models.rbf_network import declare_rbf_network
from tests.cases import first_quick, table
from tests.families.rbf_network.rbf_networks import RESPONSE_UNITS, network, random_theta
from tests.models.configurations import assert_close

CASES = {
    "responsibility": {"features": "responsibility"},
    "density": {"features": "density", "covariance_type": "diag", "levels": ()},
    "log density, numbers": {"features": "log_density", "response": "number", "n_features": 1},
    "logarithms": {"response": "log_number", "n_features": 1},
    "one component": {"components": 1, "levels": (), "covariance_type": "spherical"},
}


def declare(target: RBFNetworkLogPosterior, **options: object) -> pm.Model:
    """The graph of a network of the tests, in the user's units."""
    standard = table(target.network.mixture, n_obs=15)
    units = target.prior.mixture.units
    rows = replace(standard, real=units.backward(standard.real))
    output = target._output
    if isinstance(output, Numbers):
        responses = RESPONSE_UNITS.backward(output.targets[:, None])[:, 0]
        if target.network.response == "log_number":
            responses = np.exp(responses)
        options = {"response_units": RESPONSE_UNITS} | options
    else:
        responses = output.labels
    return declare_rbf_network(rows, responses, target.network, target.prior, **options)


@cache
def compiled(case: str):
    target = network(**CASES[case])
    model = declare(target)
    rows = sum(model.logp(vars=model.observed_RVs, sum=False))
    outputs = [model.logp(jacobian=False), model.dlogp(jacobian=False), model.logp(), rows]
    function = model.compile_fn(
        outputs, inputs=model.value_vars, mode="FAST_COMPILE", point_fn=False
    )
    return target, model, function


@pytest.mark.slow
@pytest.mark.parametrize("case", first_quick(CASES))
def test_graph_and_numerics_are_one_density(case):
    target, model, function = compiled(case)
    assert [v.name for v in target.variables] == [rv.name for rv in model.free_RVs]
    shapes = [v.unconstrained_shape for v in target.variables]
    for seed in (1, 2):
        theta = random_theta(target, seed)
        parts = np.split(theta, np.cumsum([int(np.prod(s)) for s in shapes])[:-1])
        point = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        value, gradient, with_jacobian, rows = function(*point)
        found = target.value_and_gradient(theta, jacobian=False)
        assert_close(found[0], value)
        assert_close(found[1], gradient)
        assert_close(target.value_and_gradient(theta)[0], with_jacobian)
        weights = table(target.network.mixture, n_obs=15).weights
        assert_close(weights * target.pointwise(theta), rows)


@pytest.mark.slow
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_halves_are_the_signed_density_up_to_a_constant(l2):
    """Where one half of every weight is zero, and for any values of all else."""
    target = network("responsibility", levels=(), components=2, covariance_type="diag", l2=l2)
    signed, halves = declare(target), declare(target, coefficients="halves")
    assert [rv.name for rv in halves.free_RVs if rv.name.startswith(names.COEFFICIENTS)] == [
        "coefficients_p",
        "coefficients_m",
    ]
    values = [model.compile_logp(jacobian=False, mode="FAST_COMPILE") for model in (signed, halves)]
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(3):
        point = {
            name: value + 0.3 * rng.normal(size=np.shape(value))
            for name, value in signed.initial_point(0).items()
        }
        w = point.pop(names.COEFFICIENTS)
        split = {"coefficients_p": np.maximum(w, 0), "coefficients_m": np.maximum(-w, 0)}
        differences.append(values[1](point | split) - values[0](point | {names.COEFFICIENTS: w}))
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("l1", "l2"), [(1.5, 0.8), (4.0, 0.01)])
def test_the_elastic_net_draws_what_it_says(l1, l2):
    draws = pm.draw(
        elastic_net(np.float64(l1), np.float64(l2), (4000,)), random_seed=1, mode="FAST_COMPILE"
    )

    def moment(power):
        return quad(lambda t: t**power * np.exp(-l1 * t - l2 * t**2 / 2), 0, np.inf)[0]

    for power in (1, 2):
        expected = moment(power) / moment(0)
        error = 5 * np.std(np.abs(draws) ** power) / np.sqrt(draws.size)
        assert np.mean(np.abs(draws) ** power) == pytest.approx(expected, abs=error)
    assert abs(np.mean(draws > 0) - 0.5) < 0.04


@pytest.mark.slow
def test_responses_are_drawn_given_the_rows_that_are_drawn():
    _, model, _ = compiled("responsibility")
    with model:
        drawn = pm.sample_prior_predictive(
            20, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    rows = drawn["prior_predictive"]["x"].to_numpy()
    assert rows.shape[-2] == 15
    responses = drawn["prior_predictive"]["y"].to_numpy()
    assert set(np.unique(responses)) <= {0, 1, 2}
    assert np.unique(rows[..., 1]).size > 100


@pytest.mark.slow
def test_a_number_is_drawn_as_exp_of_its_logarithm():
    drawn = {}
    for response in ("number", "log_number"):
        model = declare(network(response=response, n_features=1, levels=(), components=2))
        drawn[response] = pm.draw(model["y"], 5, random_seed=1, mode="FAST_COMPILE")
    np.testing.assert_allclose(drawn["log_number"], np.exp(drawn["number"]), rtol=1e-10)


def test_what_cannot_be_declared_is_told():
    target = network(l1=0.0)
    with pytest.raises(ValueError, match="needs l1 > 0"):
        declare(target, coefficients="halves")
    with pytest.raises(ValueError, match="class_names must have 3"):
        declare(target, class_names=["a"])

"""Graph, numerics and brute force are three forms of one density.

A pairwise covering array of at most 16 configurations; each graph is compiled
once a session (about 2 s in FAST_COMPILE once the C parts are cached, about 25 s
for the first on a machine) and reused for value, gradient, rows and points.
Budget of tests/models: five minutes on one core.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.expectation import ArrayExpectation
from tests.cases import some_quick
from tests.models.configurations import (
    FACTORS,
    Configuration,
    assert_close,
    assert_same_density,
    at_rest,
    compiled,
    covering_array,
    name_of,
    pairs,
    product,
)
from tests.oracles import log_jacobian

CATEGORICAL_ONLY = Configuration("full", "two", False, True, True, True, True, 0, 2)
CONFIGURATIONS = (*covering_array(), CATEGORICAL_ONLY)
PLANTED = next(c for c in CONFIGURATIONS if c.missing and c.hidden_labels and c.weighted)
SEEDS = (1, 2, 3)

every_configuration = pytest.mark.parametrize(
    "configuration", some_quick(CONFIGURATIONS, PLANTED, CATEGORICAL_ONLY), ids=name_of
)


def test_the_array_covers_every_pair_of_options_within_the_budget() -> None:
    covered = set().union(*map(pairs, covering_array()))
    assert covered == set().union(*map(pairs, product()))
    assert len(CONFIGURATIONS) <= 16
    # All pairs of what the issue names exist: nothing was lost to impossible combinations.
    named = [name for name in FACTORS if name not in ("n_features", "n_classes")]
    for first, second in itertools.combinations(named, 2):
        for pair in itertools.product(FACTORS[first], FACTORS[second]):
            assert ((first, pair[0]), (second, pair[1])) in covered


@every_configuration
def test_the_graph_equals_brute_force(configuration: Configuration) -> None:
    graph, oracle = compiled(configuration), configuration.oracle
    for seed in SEEDS:
        theta = graph.random_theta(configuration, seed)
        point, found = graph.constrained(theta), graph.at(theta)
        expected = oracle.log_posterior(point)
        jacobian = sum(log_jacobian(name, value) for name, value in point.items())
        assert_close(found.value, expected)
        assert_close(found.value_with_jacobian, expected + jacobian)
        weights = configuration.observations.weights
        assert_close(found.rows, weights * oracle.pointwise(point))


@every_configuration
def test_graph_and_numerics_have_the_same_coordinates(configuration: Configuration) -> None:
    model, variables = compiled(configuration).model, configuration.log_posterior.variables
    point = model.initial_point(0)
    lengths = {name: len(values) for name, values in model.coords.items()}
    assert [v.name for v in variables] == [rv.name for rv in model.free_RVs]
    for variable, rv in zip(variables, model.free_RVs, strict=True):
        value = model.rvs_to_values[rv]
        transform = model.rvs_to_transforms[rv]
        assert variable.dims == model.named_vars_to_dims.get(rv.name, ())
        assert variable.shape == tuple(lengths[dim] for dim in variable.dims)
        assert variable.unconstrained_shape == point[value.name].shape
        assert variable.transform == ("identity" if transform is None else transform.name)


@every_configuration
@pytest.mark.parametrize("expectation", [ArrayExpectation, CompiledExpectation])
def test_graph_and_numerics_have_the_same_value_and_gradient(
    configuration: Configuration, expectation: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With either E-step: which one a table gets is a matter of its size and of its use."""
    monkeypatch.setattr(
        "bayesrbf.mixture.expectation.prepare",
        lambda rows, structure, **_: expectation(rows, structure),
    )
    graph, log_posterior = compiled(configuration), configuration.log_posterior
    for seed in SEEDS:
        theta = graph.random_theta(configuration, seed)
        assert_same_density(graph, log_posterior, theta)


@every_configuration
def test_graph_and_numerics_report_the_same_rows_and_deterministics(
    configuration: Configuration,
) -> None:
    graph, log_posterior = compiled(configuration), configuration.log_posterior
    theta = graph.random_theta(configuration, 4)
    expected = graph.at(theta)
    weights = configuration.observations.weights
    assert_close(weights * log_posterior.pointwise(theta), expected.rows)
    found = log_posterior.deterministic(theta)
    assert set(found) == set(expected.deterministic)
    for name, value in expected.deterministic.items():
        assert_close(found[name] / np.max(np.abs(value)), value / np.max(np.abs(value)))
        variable = next(v for v in log_posterior.deterministic_variables if v.name == name)
        assert variable.dims == graph.model.named_vars_to_dims[name]


@every_configuration
def test_numerics_map_points_as_the_oracle_does(configuration: Configuration) -> None:
    graph, log_posterior = compiled(configuration), configuration.log_posterior
    theta = graph.random_theta(configuration, 5)
    expected = graph.constrained(theta)
    found = log_posterior.constrained(theta)
    assert list(found) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
    assert_close(log_posterior.pack(log_posterior.unpack(theta)), theta)


@every_configuration
def test_the_gradient_vanishes_where_em_stands_still(configuration: Configuration) -> None:
    theta, log_posterior = at_rest(configuration), configuration.log_posterior
    found = compiled(configuration).at(theta)
    # In units of the columns: a mean's gradient is per unit of its column.
    np.testing.assert_allclose(found.gradient * log_posterior.scales, 0, atol=1e-7)
    assert np.max(np.abs(found.gradient_with_jacobian * log_posterior.scales)) > 1e-3


def test_a_dropped_jacobian_is_caught() -> None:
    configuration = PLANTED
    graph, log_posterior = compiled(configuration), configuration.log_posterior
    theta = graph.random_theta(configuration, 1)
    value, gradient = log_posterior.value_and_gradient(theta, jacobian=False)
    with pytest.raises(AssertionError):
        assert_close(value, graph.at(theta).value_with_jacobian)
    with pytest.raises(AssertionError):
        assert_close(gradient, graph.at(theta).gradient_with_jacobian)


@pytest.mark.parametrize(
    "defect",
    [
        "missing cell read as 0",
        "label hidden",
        "row dropped",
        "prior twice as wide",
        "prior weaker",
    ],
)
def test_a_planted_defect_is_caught(defect: str) -> None:
    """Each defect in the oracle must be seen: the equalities above can fail."""
    configuration = PLANTED
    graph = compiled(configuration)
    theta = graph.random_theta(configuration, 1)
    point, found = graph.constrained(theta), graph.at(theta)
    oracle = configuration.oracle
    assert_close(found.value, oracle.log_posterior(point))
    rows, prior = oracle.observations, oracle.hyperparameters
    planted = {
        "missing cell read as 0": {"observations": replace(rows, real=np.nan_to_num(rows.real))},
        "label hidden": {"observations": replace(rows, labels=np.full_like(rows.labels, -1))},
        "row dropped": {"observations": rows.take(np.arange(1, rows.n_obs - 1))},
        "prior twice as wide": {"hyperparameters": replace(prior, scale=2 * prior.scale)},
        "prior weaker": {"hyperparameters": replace(prior, degrees_of_freedom=1.0)},
    }[defect]
    with pytest.raises(AssertionError):
        assert_close(found.value, replace(oracle, **planted).log_posterior(point))

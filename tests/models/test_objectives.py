"""Objectives as potentials: the graph and the numerics are one Gibbs posterior."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from bayesrbf.base.priors import Objective
from bayesrbf.mixture.objective import HybridLogPosterior
from tests.models.configurations import (
    Configuration,
    assert_same_density,
    compile_graph,
)

pytestmark = pytest.mark.slow  # graphs take long to compile; test_plug has two of them

EVERYTHING = Configuration("full", "unequal", False, True, True, True, True, 3, 2)
CASES = {
    "blend": (EVERYTHING, Objective("blend", kappa=0.3)),
    "hinge": (
        Configuration("diag", "two", False, True, False, True, True, 3, 2),
        Objective("hinge", margin=3.0),
    ),
    "margin": (
        Configuration("tied", "two", False, False, True, False, False, 1, 2),
        Objective("margin"),
    ),
    "conditional": (
        Configuration("spherical", "one", True, True, True, True, False, 3, 2),
        Objective("conditional"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_graph_equals_the_numerics(name: str) -> None:
    configuration, objective = CASES[name]
    graph = compile_graph(configuration.declare(objective=objective))
    target = HybridLogPosterior(
        configuration.standard_observations,
        configuration.specification,
        configuration.hyperparameters,
        objective,
    )
    for seed in (1, 2):
        assert_same_density(graph, target, graph.random_theta(configuration, seed))


def test_the_likelihood_has_no_potential() -> None:
    assert EVERYTHING.declare(objective=Objective()).potentials == []
    potentials = EVERYTHING.declare(objective=Objective("blend")).potentials
    assert [potential.name for potential in potentials] == ["objective", "prior_power"]


def test_weights_of_rows_are_data_of_the_potential() -> None:
    configuration, objective = CASES["margin"]
    model = configuration.declare(objective=objective)
    with model:
        pm.set_data({"row_weight": np.zeros(configuration.observations.n_obs)})
    [potential] = model.potentials
    point = model.initial_point(0)
    [value] = model.replace_rvs_by_values([potential])
    assert not model.compile_fn(value, mode="FAST_COMPILE")(point).any()


def test_latent_nodes_are_a_likelihoods() -> None:
    with pytest.raises(ValueError, match="objective='hinge': use latent='marginal'"):
        EVERYTHING.declare(objective=Objective("hinge"), latent="explicit")

"""Factors in the graph: its density, its names and its explicit form are those of the numerics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cases import first_quick
from tests.models.configurations import (
    Configuration,
    assert_close,
    assert_same_density,
    compiled,
    name_of,
)


class Factors(Configuration):
    """A configuration whose covariances have two factors."""

    @property
    def specification(self):
        plain = replace(self, covariance_type="full")
        own = Configuration.specification.fget(plain)
        return replace(own, covariance_type="factor", n_factors=2)


CASES = [
    Factors("factor", "two", False, True, True, True, True, 3, 2),
    Factors("factor", "two", True, True, False, False, False, 3, 1),
]


@pytest.mark.parametrize("case", first_quick(CASES), ids=name_of)
def test_graph_and_numerics_are_one_density(case: Factors) -> None:
    graph, target = compiled(case), case.log_posterior
    for seed in (1, 2):
        theta = graph.random_theta(case, seed)
        assert_same_density(graph, target, theta)
        found = graph.at(theta)
        deterministic = target.deterministic(theta)
        for name, value in found.deterministic.items():
            assert_close(deterministic[name], value)
        weights = case.observations.weights
        assert_close(weights * target.pointwise(theta), found.rows)


@pytest.mark.parametrize("case", first_quick(CASES), ids=name_of)
def test_graph_and_numerics_have_the_same_coordinates(case: Factors) -> None:
    model, variables = compiled(case).model, case.log_posterior.variables
    assert [v.name for v in variables] == [rv.name for rv in model.free_RVs]
    lengths = {name: len(values) for name, values in model.coords.items()}
    for variable in variables:
        assert variable.dims == model.named_vars_to_dims[variable.name]
        assert variable.shape == tuple(lengths[dim] for dim in variable.dims)
    assert list(model.coords["loading_entry"]) == ["x0,0", "x1,0", "x1,1", "x2,0", "x2,1"]


def test_the_prior_draws_loadings_of_its_scale() -> None:
    import pymc as pm

    model = compiled(CASES[0]).model
    loadings = pm.draw(model["loadings"], draws=400, random_seed=0, mode="FAST_COMPILE")
    np.testing.assert_allclose(loadings.std(axis=(0, 1)), 1.0, rtol=0.15)

"""Signed statistics: the chain from any function of the log joints to the coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.log_posterior import to_constrained
from bayesrbf.base.rows import Observations
from bayesrbf.mixture import expectation as array_expectation
from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.expectation import ArrayExpectation, prepare
from bayesrbf.mixture.points import (
    DeclaredPrior,
    component_covariances,
    free_variables,
    parameters_of,
)
from bayesrbf.mixture.statistics import sum_by_group
from tests.cases import CLASSES, COVARIANCES, hyperparameters, random_point, structure, table


@pytest.mark.slow
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(("n_features", "levels"), [(3, (2, 3)), (1, ()), (0, (3,))])
def test_gradients_of_any_sign_reach_the_coordinates(
    covariance_type, shared_covariance, classes, n_features, levels
):
    """sum_nk G_nk log p(x_n, k) with missing cells, against central differences."""
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    hyper = hyperparameters(specification)
    rows = prepare(table(specification, n_obs=15), specification)
    gradients = np.random.default_rng(1).normal(size=(15, specification.n_components))
    variables = free_variables(specification)
    theta = np.random.default_rng(2).normal(size=sum(v.size for v in variables))

    def point(at):
        values = to_constrained(variables, at)
        parameters = parameters_of(values, hyper, specification)
        return values, parameters, rows.at(parameters)

    values, parameters, joint = point(theta)
    with_gradients, without = (
        DeclaredPrior(hyper, specification).gradient(values, parameters, joint.statistics(g))
        for g in (gradients, np.zeros_like(gradients))
    )
    step = 1e-5
    numeric = [
        (gradients * (point(theta + h)[2].log_joint - point(theta - h)[2].log_joint)).sum()
        for h in step * np.eye(theta.size)
    ]
    np.testing.assert_allclose(
        with_gradients - without, np.array(numeric) / (2 * step), rtol=1e-6, atol=1e-5
    )


@pytest.mark.parametrize("kept", [0, 10**9], ids=["made again", "kept"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_responsibilities_as_gradients_give_the_e_step(covariance_type, kept, monkeypatch):
    monkeypatch.setattr(array_expectation, "KEPT_CELLS", kept)
    monkeypatch.setattr("bayesrbf.base.rows.IN_CACHE", 50)
    specification = structure(covariance_type, classes=(0, 0), levels=(2, 3))
    rows, parameters = table(specification), random_point(specification)
    expectation = ArrayExpectation(rows, specification)
    joint = expectation.at(parameters)
    np.testing.assert_allclose(
        joint.log_joint, expectation.component_log_joint(parameters), rtol=1e-12
    )
    log_density = np.logaddexp.reduce(joint.log_joint, axis=1, keepdims=True)
    responsibilities = rows.weights[:, None] * np.exp(joint.log_joint - log_density)
    ours, theirs = joint.statistics(responsibilities), expectation.statistics(parameters)
    for name in ("counts", "first", "second"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-11)
    for mine, other in zip(ours.category_counts, theirs.category_counts, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
    assert ours.log_likelihood == pytest.approx(
        (responsibilities * joint.log_joint).sum(), rel=1e-12
    )


def test_no_rows_and_no_cells():
    specification = structure("full", classes=(0, 0))
    parameters = random_point(specification)
    empty = Observations(np.zeros((0, 3)), np.zeros((0, 0), int), np.zeros(0, int), np.zeros(0))
    nothing = prepare(empty, specification).at(parameters).statistics(np.zeros((0, 2)))
    assert nothing.counts.tolist() == [0.0, 0.0]
    hidden = Observations(
        np.full((1, 3), np.nan), np.zeros((1, 0), int), np.zeros(1, int), np.ones(1)
    )
    joint = prepare(hidden, specification).at(parameters)
    np.testing.assert_allclose(joint.log_joint, np.log(parameters.weights)[None], atol=1e-12)
    # Nothing observed: the expected deviation is 0, the expected square the covariance.
    moments = joint.statistics(np.ones((1, 2)))
    np.testing.assert_allclose(moments.first, 0.0, atol=1e-12)
    np.testing.assert_allclose(
        moments.second, component_covariances(parameters, specification), rtol=1e-10
    )


@pytest.mark.parametrize("classes", [(0, 0, 1), (0, 1, 1, 1)])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_kernels_give_the_same_sums(covariance_type, classes, missing):
    specification = structure(covariance_type, False, classes, 4, (3, 2))
    rows = table(specification, n_obs=70, missing=missing)
    rows.real[:20] = np.where(np.arange(4) < 2, rows.real[:20], np.nan)  # a tile of one pattern
    parameters = random_point(specification)
    gradients = np.random.default_rng(3).normal(size=(70, specification.n_components))
    gradients[:9] = 0.0
    ours, theirs = (
        rows_in(rows, specification).at(parameters).statistics(gradients)
        for rows_in in (ArrayExpectation, CompiledExpectation)
    )
    for name in ("counts", "first"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), atol=1e-10)
    second = (sum_by_group(one.second, specification) for one in (theirs, ours))
    np.testing.assert_allclose(*second, atol=1e-10)
    for mine, other in zip(ours.category_counts, theirs.category_counts, strict=True):
        np.testing.assert_allclose(other, mine, atol=1e-11)

"""The declared graph of sparse discriminative mixtures against the numerics."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pymc as pm
import pytest

from bayesrbf import GammaPrecisions, HorseshoePrecisions
from bayesrbf.base.rows import Standardisation
from bayesrbf.families.sdgm.posterior import (
    SDGMLogPosterior,
    learned_specification,
    quadratic_basis,
)
from bayesrbf.families.sdgm.records import CompletedRows, KernelBasis, SDGMSpecification
from bayesrbf.models.sdgm import declare_sdgm

UNITS = Standardisation(np.array([2.0, 1.0]), np.array([1.0, 3.0]))
CLASSES = np.array([0, 0, 1, 2])
PROPORTIONS = np.array([0.3, 0.7, 1.0, 1.0])
COMPONENT = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3])
FEATURE = np.array([0, 1, 3, 2, 4, 0, 1, 3, 4])
ALLOWED = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 0]], dtype=bool
)


def rows(holes: bool) -> CompletedRows:
    sizes = np.array([1, 1, 4, 1, 3, 1, 2]) if holes else np.ones(7, dtype=int)
    points = np.random.default_rng(0).normal(size=(sizes.sum(), 2)) * UNITS.scale + UNITS.location
    weights = np.array([1, 2, 0.5, 1, 1, 1, 3.0])
    return CompletedRows(points, np.cumsum(sizes) - sizes, ALLOWED, weights)


def fixed() -> SDGMSpecification:
    precisions = np.random.default_rng(1).gamma(2, 1, COMPONENT.size)
    return SDGMSpecification(CLASSES, PROPORTIONS, COMPONENT, FEATURE, precisions)


CASES = {
    "primal, holes, fixed": (True, quadratic_basis(2, ()), fixed()),
    "gaussian kernel, gamma": (
        False,
        KernelBasis("gaussian", np.random.default_rng(2).normal(size=(3, 2))),
        learned_specification((0, 1, 1, 2), 4, GammaPrecisions(0.5, 0.7)),
    ),
    "polynomial kernel, holes, horseshoe": (
        True,
        KernelBasis("polynomial", 0.5 * np.random.default_rng(2).normal(size=(3, 2))),
        learned_specification((0, 1, 2), 4, HorseshoePrecisions(0.2, 3.0)),
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


@cache
def compiled(name: str) -> tuple[SDGMLogPosterior, pm.Model, Callable]:
    holes, basis, specification = CASES[name]
    model = declare_sdgm(rows(holes), basis, UNITS, specification)
    function = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    function.set_extra_values({})
    return SDGMLogPosterior(rows(holes), basis, UNITS, specification), model, function


@every_case
def test_value_and_gradient_are_the_graphs(name: str) -> None:
    log_posterior, model, function = compiled(name)
    assert [v.name for v in log_posterior.variables] == [v.name for v in model.free_RVs]
    for seed in range(3):
        theta = 0.7 * np.random.default_rng(seed).normal(size=log_posterior.dimension)
        value, gradient = function(theta)
        found = log_posterior.value_and_gradient(theta)
        np.testing.assert_allclose(found[0], value, rtol=1e-8)  # PyMC's log 2 is a float32
        np.testing.assert_allclose(found[1], gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")
def test_the_gradient_changes_as_the_graphs_hessian_says() -> None:
    log_posterior, model, _ = compiled("primal, holes, fixed")
    theta = np.random.default_rng(3).normal(size=log_posterior.dimension)
    curvature = model.compile_d2logp(negate_output=False, mode="FAST_COMPILE")
    hessian = curvature({"coefficients": theta})
    steps = 1e-5 * np.eye(theta.size)
    above, below = (
        np.array([log_posterior.value_and_gradient(theta + sign * step)[1] for step in steps])
        for sign in (1, -1)
    )
    np.testing.assert_allclose((above - below) / 2e-5, hessian, rtol=1e-6, atol=1e-7)


def test_rows_and_draws_of_the_graph() -> None:
    log_posterior, model, _ = compiled("primal, holes, fixed")
    theta = np.random.default_rng(4).normal(size=log_posterior.dimension)
    by_row = model.compile_logp(model.observed_RVs, sum=False, mode="FAST_COMPILE")
    (found,) = by_row({"coefficients": theta})
    weights = rows(holes=True).weights
    np.testing.assert_allclose(
        found, weights * log_posterior.pointwise(theta), rtol=1e-9, atol=1e-15
    )
    drawn = pm.draw(model["y"], draws=20, random_seed=1, mode="FAST_COMPILE")
    assert drawn.shape == (20, 7, 3)
    assert (drawn.sum(axis=-1) == 1).all()


@pytest.mark.parametrize("defect", ["row dropped", "set read as its first class", "unit lost"])
def test_a_planted_defect_is_caught(defect: str) -> None:
    """The equalities above can fail."""
    holes, basis, specification = CASES["primal, holes, fixed"]
    _, _, function = compiled("primal, holes, fixed")
    theta = np.random.default_rng(0).normal(size=specification.n_weights)
    data, units = rows(holes), UNITS
    if defect == "row dropped":
        data = CompletedRows(
            data.points, data.starts, data.allowed, data.weights * (1, 0, *[1] * 5)
        )
    elif defect == "unit lost":
        units = Standardisation(UNITS.location, np.ones(2))
    else:
        first = np.eye(3, dtype=bool)[data.allowed.argmax(axis=1)]
        data = CompletedRows(data.points, data.starts, first, data.weights)
    found = SDGMLogPosterior(data, basis, units, specification).value_and_gradient(theta)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(found[0], function(theta)[0], rtol=1e-8)


@every_case
def test_permuted_components_have_the_same_density(name: str) -> None:
    log_posterior, _, _ = compiled(name)
    theta = np.random.default_rng(5).normal(size=log_posterior.dimension)
    classes = log_posterior.component_class
    order = np.arange(classes.size)
    for label in np.unique(classes):
        order[classes == label] = order[classes == label][::-1]
    moved = log_posterior.permute(theta, order)
    assert log_posterior.value_and_gradient(moved)[0] == pytest.approx(
        log_posterior.value_and_gradient(theta)[0], rel=1e-12
    )
    np.testing.assert_allclose(
        log_posterior.component_log_joint(moved), log_posterior.component_log_joint(theta)[:, order]
    )
    fixed_precisions = name == "primal, holes, fixed"
    assert (order == np.arange(classes.size)).all() == (fixed_precisions or classes.size == 3)


def test_a_function_is_no_graph() -> None:
    basis = KernelBasis(lambda a, b: a @ b.T, np.zeros((3, 2)))
    with pytest.raises(ValueError, match="'polynomial' or 'gaussian'"):
        declare_sdgm(rows(holes=False), basis, UNITS, fixed())


def test_the_weights_beside_a_horseshoe_are_the_graphs() -> None:
    log_posterior, model, _ = compiled("polynomial kernel, holes, horseshoe")
    theta = np.random.default_rng(6).normal(size=log_posterior.dimension)
    values = log_posterior.constrained(theta)
    point = {
        model.rvs_to_values[model[name]].name: theta_of
        for name, theta_of in {
            "global_scale": np.log(values["global_scale"]),
            "local_scales": np.log(values["local_scales"]),
            "standard_coefficients": values["standard_coefficients"],
        }.items()
    }
    weights = model.compile_fn(
        model.replace_rvs_by_values([model["coefficients"]]),
        inputs=model.value_vars,
        mode="FAST_COMPILE",
    )(point)
    found = log_posterior.deterministic(theta)["coefficients"]
    np.testing.assert_allclose(found, weights[0], rtol=1e-12)
    by_weights = log_posterior.pack(found)
    again = log_posterior.deterministic(by_weights)["coefficients"]
    np.testing.assert_allclose(again, found, rtol=1e-9)

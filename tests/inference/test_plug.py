"""What a family owes to inference, and inference to every family.

The declared graph is the oracle: it shares names and coordinates with the numerics, and
no code. Each graph is compiled once (FAST_COMPILE) for value, gradient and likelihood.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pymc as pm
import pytest

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.fit.model import Description
from bayesrbf.fit.trees import to_datatree
from bayesrbf.inference.draws import Draws, relabel
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import nuts
from bayesrbf.inference.variational import advi
from tests.cases import first_quick
from tests.inference.families import FAMILIES, Family
from tests.models.configurations import assert_close

pytestmark = pytest.mark.usefixtures("unchecked")

SEEDS = (1, 2, 3)
METHODS: dict[str, Callable[..., Draws]] = {
    "laplace": laplace,
    "advi": lambda *given, **options: advi(*given, pairs=2, **options),
    "nuts": lambda *given, **options: nuts(*given, tune=20, **options),
}
CHAINS, DRAWS = 2, 6


@dataclass(frozen=True)
class Plugged:
    """A family and its compiled graph."""

    family: Family
    function: Callable[..., list[np.ndarray]]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def log_posterior(self) -> LogPosterior:
        return self.family.log_posterior

    def graph(self, theta: np.ndarray) -> list[np.ndarray]:
        """Value and gradient without Jacobian, both with it, log likelihood."""
        edges = np.cumsum([int(np.prod(shape)) for shape in self.shapes])[:-1]
        parts = np.split(theta, edges)
        return self.function(*(p.reshape(s) for p, s in zip(parts, self.shapes, strict=True)))

    def random_point(self, seed: int) -> np.ndarray:
        noise = np.random.default_rng(seed).normal(size=self.log_posterior.dimension)
        return self.family.map_point + 0.5 * self.log_posterior.scales * noise


@cache
def compiled(name: str) -> Plugged:
    family = FAMILIES[name]()
    model = family.model
    # Potentials over rows, where there are any, turn the likelihood into a family's objective.
    # So are the copies of a stack's rows; other potentials raise the prior to a power.
    potentials = [
        p
        for p in model.potentials
        if "obs" in model.named_vars_to_dims.get(p.name, ()) or p.name == "copies"
    ]
    rows = [
        *model.logp(vars=model.observed_RVs, sum=False),
        *model.replace_rvs_by_values(potentials),
    ]
    likelihood = sum(term.sum() for term in rows)
    outputs = [
        model.logp(jacobian=False),
        model.dlogp(jacobian=False),
        model.logp(jacobian=True),
        model.dlogp(jacobian=True),
        likelihood,
    ]
    function = model.compile_fn(
        outputs, inputs=model.value_vars, mode="FAST_COMPILE", point_fn=False
    )
    point = model.initial_point(0)
    return Plugged(family, function, tuple(point[value.name].shape for value in model.value_vars))


@pytest.fixture(params=first_quick(FAMILIES))
def plugged(request: pytest.FixtureRequest) -> Plugged:
    return compiled(request.param)


def test_it_is_a_log_posterior_in_the_coordinates_of_the_graph(plugged):
    log_posterior, model = plugged.log_posterior, plugged.family.model
    assert isinstance(log_posterior, LogPosterior)
    assert [v.name for v in log_posterior.variables] == [rv.name for rv in model.free_RVs]
    assert tuple(v.unconstrained_shape for v in log_posterior.variables) == plugged.shapes
    assert sum(v.size for v in log_posterior.variables) == log_posterior.dimension
    assert log_posterior.scales.shape == (log_posterior.dimension,)
    for variable, rv in zip(log_posterior.variables, model.free_RVs, strict=True):
        transform = model.rvs_to_transforms[rv]
        assert variable.transform == ("identity" if transform is None else transform.name)
        assert variable.dims == model.named_vars_to_dims.get(rv.name, ())


@pytest.mark.parametrize("seed", SEEDS)
def test_value_and_gradient_are_those_of_the_graph(plugged, seed):
    theta = plugged.random_point(seed)
    value, gradient, value_jacobian, gradient_jacobian, _ = plugged.graph(theta)
    found = plugged.log_posterior.value_and_gradient(theta, False)
    assert_close(found[0], value)
    assert_close(found[1], gradient)
    found = plugged.log_posterior.value_and_gradient(theta)
    assert_close(found[0], value_jacobian)
    assert_close(found[1], gradient_jacobian)


@pytest.mark.parametrize("jacobian", [False, True])
def test_the_gradient_is_the_difference_of_values(plugged, jacobian):
    theta, scales = plugged.random_point(4), plugged.log_posterior.scales
    _, gradient = plugged.log_posterior.value_and_gradient(theta, jacobian)
    for i, scale in enumerate(scales):
        step = np.zeros(theta.size)
        step[i] = 1e-5 * scale
        above, below = (
            plugged.log_posterior.value_and_gradient(theta + side * step, jacobian)[0]
            for side in (1, -1)
        )
        assert scale * gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-5)


def test_pointwise_sums_to_the_likelihood(plugged):
    theta = plugged.random_point(5)
    pointwise = plugged.log_posterior.pointwise(theta)
    assert pointwise.shape == plugged.family.weights.shape
    beside = plugged.log_posterior.copies_log_likelihoods(theta[None])
    copies = 0.0 if beside is None else beside.sum()
    assert_close(plugged.family.weights @ pointwise + copies, plugged.graph(theta)[4])


def test_log_prior_and_log_likelihood_of_the_tree_are_those_of_the_graph_draw_by_draw(plugged):
    """So ArviZ raises the prior, or the likelihood, of the density that was drawn."""
    log_posterior = plugged.log_posterior
    theta = np.stack([plugged.random_point(seed) for seed in range(4)]).reshape(2, 2, -1)
    lp = log_posterior.log_densities(theta.reshape(4, -1)).reshape(2, 2)
    draws = Draws(theta, {"lp": lp}, "nuts")
    tree = to_datatree(log_posterior, draws, Description(scored="scored"))
    terms = tree["log_likelihood"].to_dataset().data_vars.values()
    likelihood = sum(term.sum(term.dims[2:]) for term in terms)
    if log_posterior.no_prior:
        assert "log_prior" not in tree
    for draw in np.ndindex(2, 2):
        value, _, _, _, expected = plugged.graph(theta[draw])
        assert_close(likelihood.to_numpy()[draw], expected)
        if not log_posterior.no_prior:
            prior = float(tree["log_prior"]["log_prior"][draw])
            np.testing.assert_allclose(prior, value - expected, rtol=1e-8, atol=1e-8)


def test_the_gradient_vanishes_at_the_map_and_only_without_jacobian(plugged):
    theta, scales = plugged.family.map_point, plugged.log_posterior.scales
    without, with_jacobian = plugged.graph(theta)[1], plugged.graph(theta)[3]
    np.testing.assert_allclose(without * scales, 0, atol=1e-6)
    if any(variable.transform != "identity" for variable in plugged.log_posterior.variables):
        assert np.max(np.abs(with_jacobian * scales)) > 1e-3


def test_components_of_a_class_can_trade_places(plugged):
    log_posterior, theta = plugged.log_posterior, plugged.random_point(6)
    classes = np.asarray(log_posterior.component_class)
    order = np.lexsort((-np.arange(classes.size), classes))  # reversed within every class
    moved = log_posterior.permute(theta, order)
    if np.any(order != np.arange(order.size)):
        assert not np.allclose(moved, theta)
    for jacobian in (False, True):
        one, two = (log_posterior.value_and_gradient(t, jacobian)[0] for t in (theta, moved))
        assert one == pytest.approx(two, rel=1e-11)
    np.testing.assert_allclose(
        log_posterior.component_log_joint(moved),
        log_posterior.component_log_joint(theta)[:, order],
        rtol=1e-9,
        atol=1e-9,
    )
    np.testing.assert_allclose(log_posterior.permute(moved, np.argsort(order)), theta, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_layout(plugged, method):
    if method == "nuts":
        pytest.importorskip("nutpie", reason="nutpie is an extra")
    log_posterior, start = plugged.log_posterior, plugged.family.map_point
    raw = METHODS[method](log_posterior, start, draws=DRAWS, chains=CHAINS, random_state=0)
    assert raw.method == method
    assert raw.complete
    assert raw.theta.shape == (CHAINS, DRAWS, log_posterior.dimension)
    expected = [[log_posterior.value_and_gradient(one)[0] for one in chain] for chain in raw.theta]
    np.testing.assert_allclose(raw.stats["lp"], expected, rtol=1e-8, atol=1e-6)
    assert all(stat.shape == (CHAINS, DRAWS) for stat in raw.stats.values())
    assert all(isinstance(value, (int, float, str)) for value in raw.attributes.values())
    tree = to_datatree(log_posterior, relabel(log_posterior, raw, start))
    groups = {"posterior", "sample_stats", "log_likelihood"}
    assert groups <= set(tree.children) <= groups | {"log_prior", "log_scores"}
    posterior = tree["posterior"].to_dataset()
    for variable in (*log_posterior.variables, *log_posterior.deterministic_variables):
        assert posterior[variable.name].dims == ("chain", "draw", *variable.dims)
        assert posterior[variable.name].shape == (CHAINS, DRAWS, *variable.shape)
        assert np.isfinite(posterior[variable.name]).all()


@pytest.mark.parametrize("defect", ["Jacobian dropped", "a row dropped", "prior counted twice"])
def test_the_equalities_can_fail(defect):
    """Planted in the first family: what is compared above would see it."""
    plugged = compiled(next(iter(FAMILIES)))
    theta = plugged.random_point(1)
    value, _ = plugged.log_posterior.value_and_gradient(theta)
    expected, likelihood = plugged.graph(theta)[2], plugged.graph(theta)[4]
    assert_close(value, expected)
    wrong = {
        "Jacobian dropped": plugged.log_posterior.value_and_gradient(theta, False)[0],
        "a row dropped": value - plugged.log_posterior.pointwise(theta).min(),
        "prior counted twice": 2 * value - likelihood,
    }[defect]
    with pytest.raises(AssertionError):
        assert_close(wrong, expected)


def test_the_graph_is_drawn_without_graphviz(
    plugged: Plugged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    model = plugged.family.model
    text = pm.model_to_mermaid(model)
    drawn = set(re.findall(r"^(\w+)\W*\[\1 ~ ", text, re.M))
    assert {node.name for node in (*model.basic_RVs, *model.potentials)} <= drawn

"""Drawing from the declared graph, reading it, and its form with a component a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayesrbf.models.mixture import declare_hybrid_mixture
from tests.models.configurations import Configuration, compiled, covering_array
from tests.oracles import MixtureOracle

FAST = {"mode": "FAST_COMPILE"}
HYBRID = next(
    c
    for c in covering_array()
    if c.missing and c.hidden_labels and c.n_features == 3 and c.n_classes == 2
)
MIXED = Configuration("full", "unequal", False, True, True, True, False, 3, 2)


@pytest.fixture(scope="module")
def prior_predictive() -> xr.DataTree:
    with MIXED.declare(class_names=["no", "yes"]):
        tree = pm.sample_prior_predictive(30, random_seed=0, compile_kwargs=FAST)
    return tree


def test_draws_from_the_prior_are_tables_with_the_same_holes(
    prior_predictive: xr.DataTree,
) -> None:
    table = prior_predictive["prior_predictive"]["x"].to_numpy()[0]
    rows = MIXED.observations
    assert table.shape == (30, rows.n_obs, 1 + 3 + 2)
    assert np.all(np.isfinite(table))
    label, real, codes = table[..., 0], table[..., 1:4], table[..., 4:]
    assert np.all(label[:, rows.labels < 0] == 0)
    assert set(np.unique(label[:, rows.labels >= 0])) == {0.0, 1.0}
    np.testing.assert_array_equal(real == 0, np.broadcast_to(np.isnan(rows.real), real.shape))
    assert np.all(codes[:, rows.codes < 0] == 0)
    for j, size in enumerate(MIXED.specification.levels):
        observed = codes[:, rows.codes[:, j] >= 0, j]
        assert set(np.unique(observed)) == set(range(size))


def test_labelled_rows_draw_their_labels_anew(prior_predictive: xr.DataTree) -> None:
    rows = MIXED.observations
    labels = prior_predictive["prior_predictive"]["x"].to_numpy()[0, :, :, 0]
    shown = labels[:, rows.labels >= 0]
    assert np.all(shown.std(axis=0) > 0)


def test_log_likelihood_has_one_value_a_row_and_equals_the_oracle(
    prior_predictive: xr.DataTree,
) -> None:
    tree = xr.DataTree.from_dict({"posterior": prior_predictive["prior"].to_dataset()})
    model = MIXED.declare(class_names=["no", "yes"])
    with model:
        pm.compute_log_likelihood(tree, progressbar=False, compile_kwargs=FAST)
    found = tree["log_likelihood"]["x"]
    assert found.dims == ("chain", "draw", "obs")
    point = {v.name: tree["posterior"][v.name].to_numpy()[0, 7] for v in model.free_RVs}
    np.testing.assert_allclose(found[0, 7], MIXED.oracle.pointwise(point), rtol=1e-8, atol=1e-12)


def test_draws_have_the_law_of_the_parameters() -> None:
    """Class frequencies, weights, means, covariances and levels of one large table."""
    n = 20_000
    structure = Configuration("full", "unequal", False, False, True, False, False, 3, 2)
    rows = structure.observations.take(np.zeros(n, int))
    model = declare_hybrid_mixture(rows, structure.specification, structure.hyperparameters)
    classes = np.array(structure.specification.component_class)
    truth = {
        "class_probabilities": np.array([0.3, 0.7]),
        "weights_1": np.array([0.2, 0.5, 0.3]),
        "means": structure.units.backward(np.arange(12.0).reshape(4, 3) - 6),
        "precision_diagonal": np.linspace(1, 4, 12).reshape(4, 3),
        "precision_lower": np.linspace(-1, 1, 12).reshape(4, 3),
        "probability_0": np.linspace([0.6, 0.3, 0.1], [0.1, 0.1, 0.8], 4),
        "probability_1": np.linspace([0.9, 0.1], [0.2, 0.8], 4),
    }
    table, covariances = pm.draw(
        [pm.do(model, truth)["x"], pm.do(model, truth)["covariances"]],
        random_seed=5,
        mode="FAST_COMPILE",
    )
    label = table[:, 0].astype(int)
    joint = truth["class_probabilities"][classes] * np.append(1.0, truth["weights_1"])
    assert_z(label == 1, 0.7)
    for c in range(2):
        own, inside = classes == c, label == c
        weight = joint[own] / joint[own].sum()
        mean = weight @ truth["means"][own]
        assert_z(table[inside, 1:4], mean)
        offset = truth["means"][own] - mean
        spread = np.einsum("k,ki,kj->ij", weight, offset, offset)
        second = np.tensordot(weight, covariances[own], 1) + spread
        centred = table[inside, 1:4] - mean
        assert_z(centred[:, :, None] * centred[:, None, :], second)
        for j in range(2):
            levels = weight @ truth[f"probability_{j}"][own]
            assert_z(table[inside, 4 + j, None] == np.arange(levels.size), levels)


def assert_z(sample: np.ndarray, expected: np.ndarray | float) -> None:
    sample = np.asarray(sample, dtype=float)
    errors = (sample.mean(0) - expected) / (sample.std(0) / np.sqrt(len(sample)))
    assert np.max(np.abs(errors)) < 4.9


@pytest.mark.parametrize("defect", ["sd x 1.2", "label swap", "correlation dropped"])
def test_the_test_of_draws_can_fail(defect: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    x[:, 1] += x[:, 0]
    label = rng.random(4000) < 0.7
    moments = {
        "sd x 1.2": ((1.2 * x[:, 0]) ** 2, 1.0),
        "label swap": (~label, 0.7),
        "correlation dropped": (x[:, 0] * rng.permutation(x[:, 1]), 1.0),
    }
    assert_z(x[:, 0] ** 2, 1.0)
    assert_z(label, 0.7)
    assert_z(x[:, 0] * x[:, 1], 1.0)
    with pytest.raises(AssertionError):
        assert_z(*moments[defect])


@pytest.mark.slow
def test_weights_multiply_the_rows_and_can_be_set_to_one() -> None:
    weighted = next(c for c in covering_array() if c.weighted and c.n_features == 3)
    graph = compiled(weighted)
    theta = graph.random_theta(weighted, 1)
    rows = weighted.oracle.pointwise(graph.constrained(theta))
    np.testing.assert_allclose(graph.at(theta).rows, rows * weighted.observations.weights)
    kept = graph.model["row_weight"].get_value()
    try:
        graph.model.set_data("row_weight", np.ones_like(kept))
        np.testing.assert_allclose(graph.at(theta).rows, rows)
    finally:
        graph.model.set_data("row_weight", kept)


@pytest.mark.slow
def test_hiding_a_cell_in_the_mask_is_hiding_it_in_the_table() -> None:
    graph = compiled(HYBRID)
    theta = graph.random_theta(HYBRID, 2)
    point = graph.constrained(theta)
    rows = HYBRID.observations
    hidden = replace(rows, real=rows.real.copy(), labels=np.full_like(rows.labels, -1))
    hidden.real[:, 1] = np.nan
    kept = {name: graph.model[name].get_value() for name in ("cell_observed", "label_observed")}
    cells = kept["cell_observed"].copy()
    cells[:, 1] = 0
    try:
        graph.model.set_data("cell_observed", cells)
        graph.model.set_data("label_observed", np.zeros(rows.n_obs))
        expected = MixtureOracle(hidden, HYBRID.specification, HYBRID.hyperparameters)
        weighted = rows.weights * expected.pointwise(point)
        np.testing.assert_allclose(graph.at(theta).rows, weighted, rtol=1e-9)
    finally:
        for name, value in kept.items():
            graph.model.set_data(name, value)


@pytest.mark.slow
# Importing pymc-extras warns, which must not stop the collection of the other tests.
@pytest.mark.filterwarnings("ignore:better_optimize.constants:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:There are multiple dependent variables")
def test_marginalising_the_explicit_form_gives_the_marginal_form() -> None:
    """A second oracle: pymc-extras sums the components of hidden and known labels alike."""
    from pymc_extras.marginal import marginalize

    explicit = marginalize(MIXED.declare(latent="explicit"), ["z"])
    marginal = compiled(MIXED)
    logp = explicit.compile_fn(
        explicit.logp(), inputs=explicit.value_vars, mode="FAST_COMPILE", point_fn=False
    )
    for seed in (1, 2):
        theta = marginal.random_theta(MIXED, seed)
        by_name = {
            value.name: part
            for value, part in zip(
                marginal.model.value_vars, marginal.split(theta).values(), strict=True
            )
        }
        found = logp(*[by_name[value.name] for value in explicit.value_vars])
        np.testing.assert_allclose(found, marginal.at(theta).value_with_jacobian, rtol=1e-12)


def test_the_explicit_form_draws_tables_with_the_same_holes() -> None:
    with MIXED.declare(latent="explicit"):
        tree = pm.sample_prior_predictive(20, random_seed=0, compile_kwargs=FAST)
    drawn, rows = tree["prior_predictive"], MIXED.observations
    real = drawn["x"].to_numpy()[0]
    np.testing.assert_array_equal(real == 0, np.broadcast_to(np.isnan(rows.real), real.shape))
    component = tree["prior"]["z"].to_numpy()[0]
    label = np.array(MIXED.specification.component_class)[component]
    shown = drawn["row_label"].to_numpy()[0]
    np.testing.assert_array_equal(shown, np.where(rows.labels >= 0, label, 0))
    for j in range(2):
        assert np.all(drawn[f"category_{j}"].to_numpy()[0][:, rows.codes[:, j] < 0] == 0)


def test_the_explicit_form_refuses_weights() -> None:
    weighted = Configuration("full", "two", False, True, False, True, True, 3, 2)
    with pytest.raises(ValueError, match="a row weight other than 1"):
        weighted.declare(latent="explicit")


@pytest.mark.slow
@pytest.mark.parametrize("latent", ["marginal", "explicit"])
def test_the_plate_diagram_names_every_node_edge_and_plate(latent: str) -> None:
    text = pm.model_to_mermaid(MIXED.declare(latent=latent))
    expected = [
        "covariances --> means",
        "precision_lower --> covariances",
        'subgraph "mixture_component (4) x feature (3)"',
        "covariances --> x",
        "means --> x",
    ]
    if latent == "explicit":
        expected += [
            "weights_1 --> z",
            "z --> x",
            "z --> row_label",
            "probability_1 --> category_1",
        ]
    else:
        expected += ["class_probabilities --> x", "probability_1 --> x", "row_weight --> x"]
        expected += ["weights_1 --> x"]
    for line in expected:
        assert line in text

"""The declared density."""

from __future__ import annotations

from dataclasses import replace

import jaxtyping
import numpy as np
import pymc as pm
import pytest

from bayesrbf import MixturePrior
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.models.mixture import declare_hybrid_mixture, declare_mixture
from tests.models.configurations import Configuration, compile_graph
from tests.oracles import MixtureOracle

DENSITY = Configuration("tied", "two", False, True, True, False, False, 3, 1)


def declare(**options: object) -> pm.Model:
    return declare_mixture(
        DENSITY.observations, DENSITY.specification, DENSITY.hyperparameters, **options
    )


@pytest.mark.slow
def test_a_density_is_the_hybrid_of_one_class() -> None:
    density, hybrid = declare(), DENSITY.declare()
    assert [v.name for v in density.free_RVs] == [v.name for v in hybrid.free_RVs]
    assert density.named_vars_to_dims == hybrid.named_vars_to_dims
    point = density.initial_point(0)
    values = [m.compile_logp(mode="FAST_COMPILE")(point) for m in (density, hybrid)]
    assert values[0] == values[1]


def test_names_become_coordinates() -> None:
    model = declare(
        feature_names=["age", "weight", "height"],
        categorical_names=["sex", "smoker"],
        level_names=[["f", "m", "x"], [False, True]],
        obs_names=[f"row {n}" for n in range(12)],
    )
    coords = {dim: list(values) for dim, values in model.coords.items()}
    assert coords["feature"] == coords["feature_bis"] == ["age", "weight", "height"]
    assert coords["precision_entry"] == ["weight,age", "height,age", "height,weight"]
    assert coords["column"] == ["label", "age", "weight", "height", "sex", "smoker"]
    assert coords["level_0"] == ["f", "m", "x"]
    assert coords["level_1"] == [False, True]
    assert coords["obs"][3] == "row 3"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, "feature_names must have 3 entries; received 1"),
        ({"obs_names": ["a"]}, "obs_names must have 12 entries; received 1"),
        ({"level_names": [["a"], ["b"]]}, r"level_names\[0\] must have 3 entries; received 1"),
        ({"level_names": [["a"]]}, "level_names must list the levels of 2 .* received 1"),
    ],
)
def test_what_does_not_fit_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        declare(**options)


def test_an_unknown_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The checked annotations of the test-suite would refuse it before the function does.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"latent must be one of .* received 'hidden'"):
        declare(latent="hidden")


def test_several_classes_are_sent_to_the_hybrid() -> None:
    several = Configuration("full", "one", False, False, False, False, False, 3, 2)
    with pytest.raises(ValueError, match="use declare_hybrid_mixture"):
        declare_mixture(several.observations, several.specification, several.hyperparameters)


def test_rows_of_another_structure_are_refused() -> None:
    other = Configuration("tied", "two", False, True, False, False, False, 3, 1)
    labelled = replace(DENSITY.observations, labels=np.ones(12, int))
    for rows, prior, message in (
        (other.observations, DENSITY.hyperparameters, "observations must have 3 real and 2 cat"),
        (labelled, DENSITY.hyperparameters, "labels must be below n_classes = 1; received 1"),
        (DENSITY.observations, other.hyperparameters, "hyperparameters must be resolved for 3"),
    ):
        with pytest.raises(ValueError, match=message):
            declare_hybrid_mixture(rows, DENSITY.specification, prior)


@pytest.mark.slow
# A simplex of one level has no coordinate, which PyTensor warns of when it differentiates.
@pytest.mark.filterwarnings("ignore:grad method was asked:UserWarning")
def test_a_column_of_one_level_and_a_column_without_a_cell_are_sound() -> None:
    rows = Observations(
        real=np.column_stack([np.arange(4.0), np.full(4, np.nan)]),
        codes=np.array([[0], [0], [-1], [0]]),
        labels=np.zeros(4, int),
        weights=np.ones(4),
    )
    specification = MixtureSpecification(2, (1,), (0,), "full")
    units = Standardisation(np.array([1.5, 0.0]), np.ones(2))
    prior = MixturePrior().resolve(specification, units, (np.ones(1),))
    graph = compile_graph(declare_mixture(rows, specification, prior))
    theta = np.linspace(-1, 1, sum(int(np.prod(shape)) for shape in graph.shapes.values()))
    found = graph.at(theta)
    expected = MixtureOracle(rows, specification, prior).log_posterior(graph.constrained(theta))
    assert float(found.value) == pytest.approx(expected, rel=1e-10)
    assert np.all(np.isfinite(found.gradient))

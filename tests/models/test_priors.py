"""Names, dims, shapes and laws of the free variables."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from bayesrbf.base.rows import MixtureSpecification
from tests.cases import first_quick
from tests.models.configurations import Configuration, covering_array, name_of

every_configuration = pytest.mark.parametrize(
    "configuration", first_quick(covering_array(), number=2), ids=name_of
)


@pytest.mark.parametrize(
    ("classes", "covariance_type", "shared_covariance", "expected"),
    [
        ((0,), "full", False, ("mixture_component",)),
        ((0, 0), "tied", False, ()),
        ((0, 1), "tied", False, ("class_label",)),
        ((0, 1), "tied", True, ()),
        ((0, 1), "diag", False, ("mixture_component",)),
        ((0, 1), "spherical", True, ()),
    ],
)
def test_a_covariance_has_an_axis_where_there_are_several(
    classes: tuple[int, ...],
    covariance_type: str,
    shared_covariance: bool,
    expected: tuple[str, ...],
) -> None:
    assert (
        MixtureSpecification(2, (), classes, covariance_type, shared_covariance).group_dims
        == expected
    )


@every_configuration
def test_every_variable_has_the_shape_of_its_dims(configuration: Configuration) -> None:
    model = configuration.declare()
    for variable in (*model.free_RVs, *model.deterministics, *model.observed_RVs):
        dims = model.named_vars_to_dims.get(variable.name, ())
        expected = tuple(len(model.coords[dim]) for dim in dims)
        assert tuple(variable.shape.eval()) == expected


@pytest.mark.slow
def test_prior_draws_have_the_declared_laws() -> None:
    """Against moments in closed form; 4.9 standard errors, fixed seed."""
    configuration = Configuration("full", "unequal", False, False, True, False, False, 3, 2)
    prior = configuration.hyperparameters
    draws = 3000
    with configuration.declare():
        tree = pm.sample_prior_predictive(
            draws, random_seed=3, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    sample = {name: values.to_numpy()[0] for name, values in tree["prior"].data_vars.items()}
    nu0, scale = prior.degrees_of_freedom, prior.scale
    assert_mean(sample["class_probabilities"], 0.5)
    assert_mean(sample["weights_1"], 1 / 3)
    assert_mean(sample["precision_diagonal"], nu0 + 2)
    assert_mean(sample["precision_lower"], 0.0)
    assert_mean(sample["precision_lower"] ** 2, 1.0)
    concentration = prior.category_concentrations[0]
    assert_mean(sample["probability_0"], concentration / concentration.sum())
    # Given its covariance, kappa0 (mu - m0)' P (mu - m0) is chi-squared with D degrees.
    offset = sample["means"] - prior.location
    precision = np.linalg.inv(sample["covariances"])
    distance = prior.mean_precision * np.einsum("nki,nkij,nkj->nk", offset, precision, offset)
    assert_mean(distance, configuration.n_features)
    # E P = L0 E[A A'] L0', and E[A A'] is diagonal: nu0 + 2 and one more with every row.
    expected = (nu0 + 2 + np.arange(3)) / ((nu0 + 1) * scale**2)
    assert_mean(np.einsum("nkii->nki", precision), expected)


def assert_mean(sample: np.ndarray, expected: np.ndarray | float) -> None:
    errors = (sample.mean(0) - expected) / (sample.std(0) / np.sqrt(len(sample)))
    assert np.max(np.abs(errors)) < 4.9


def test_the_test_of_laws_can_fail() -> None:
    sample = np.random.default_rng(0).gamma(2.5, 2, size=3000)
    assert_mean(sample, 5.0)
    with pytest.raises(AssertionError):
        assert_mean(1.2 * sample, 5.0)

"""Small random tables and points for the laws of the numerics."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from bayesrbf import HybridMixtureClassifier, MixturePrior
from bayesrbf.base.log_posterior import to_constrained
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import (
    COVARIANCE_TYPES,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Standardisation,
)
from bayesrbf.mixture.points import free_variables, parameters_of

COVARIANCES = list(itertools.product(COVARIANCE_TYPES, (False, True)))
CLASSES = {"density": (0, 0), "one each": (0, 1, 2), "unequal": (0, 0, 1, 2, 2, 2)}


def first_quick(cases: Iterable[Any], number: int = 1) -> list[Any]:
    """Cases of one parameter, of which all but the first few are left to make test-all."""
    return [
        case if place < number else pytest.param(case, marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]


def some_quick(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Cases of one parameter, of which all but those that are named are left to make test-all."""
    every = list(cases)
    assert all(one in every for one in quick), quick
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in every]


def generative(*n_components: Any, **settings: Any) -> HybridMixtureClassifier:
    """A class-conditional mixture of the columns as they are, by its likelihood alone."""
    plain = {
        "covariance_type": "full",
        "shared_covariance": False,
        "objective": "likelihood",
        "calibrate": False,
        "column_transforms": None,
    }
    return HybridMixtureClassifier(*n_components, **(plain | settings))


def structure(
    covariance_type: str = "full",
    shared_covariance: bool = False,
    classes: tuple[int, ...] = (0, 0, 1),
    n_features: int = 3,
    levels: tuple[int, ...] = (),
) -> MixtureSpecification:
    """A specification by keywords."""
    return MixtureSpecification(n_features, levels, classes, covariance_type, shared_covariance)


def table(
    specification: MixtureSpecification,
    n_obs: int = 40,
    missing: float = 0.3,
    seed: int = 0,
    hidden: float = 0.3,
) -> Observations:
    """Rows in standard units around one centre a class, with holes and hidden labels."""
    rng = np.random.default_rng(seed)
    n_classes, d = specification.n_classes, specification.n_features
    labels = np.arange(n_obs) % n_classes
    real = rng.normal(size=(n_obs, d)) + rng.normal(size=(n_classes, d))[labels]
    codes = np.column_stack(
        [
            np.empty((n_obs, 0), int),
            *(rng.integers(0, size, n_obs) for size in specification.levels),
        ]
    ).astype(np.intp)
    real[rng.random(real.shape) < missing] = np.nan
    codes[rng.random(codes.shape) < missing] = -1
    if n_classes > 1:
        labels = np.where(rng.random(n_obs) < hidden, -1, labels)
        labels[:n_classes] = np.arange(n_classes)
    return Observations(real, codes, labels, rng.uniform(0.5, 2.0, n_obs))


def hyperparameters(
    specification: MixtureSpecification, location: float = 0.0, scale: float = 1.0
) -> MixtureHyperparameters:
    """The default prior; columns differ in their units when scale is not 1."""
    d = specification.n_features
    units = Standardisation(location + np.arange(d) * location, scale ** np.arange(1.0, d + 1))
    marginals = tuple(np.full(size, 1 / size) for size in specification.levels)
    return MixturePrior().resolve(specification, units, marginals)


def random_point(specification: MixtureSpecification, seed: int = 0) -> MixtureParameters:
    """Parameters in standard units at random coordinates."""
    variables = free_variables(specification)
    rng = np.random.default_rng(seed)
    theta = 0.7 * rng.normal(size=sum(v.size for v in variables))
    values = to_constrained(variables, theta)
    return parameters_of(values, hyperparameters(specification), specification)

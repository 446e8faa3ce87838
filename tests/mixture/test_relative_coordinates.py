"""Coordinates around a start: the start is their origin, and gradients follow."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.mixture.objective import RelativeCoordinates
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import (
    CLASSES,
    COVARIANCES,
    hyperparameters,
    random_point,
    some_quick,
    structure,
    table,
)


@pytest.mark.parametrize("classes", some_quick(CLASSES.values(), CLASSES["unequal"]), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(
    ("n_features", "levels"),
    [
        (3, (2,)),
        pytest.param(1, (), marks=pytest.mark.slow),
        pytest.param(0, (3,), marks=pytest.mark.slow),
    ],
)
def test_gradient_follows_the_change_of_coordinates(
    covariance_type, shared_covariance, classes, n_features, levels
):
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    target = MixtureLogPosterior(
        table(specification), specification, hyperparameters(specification)
    )
    start = random_point(specification, seed=1)
    relative = RelativeCoordinates(target.pack(start), start, specification)
    origin = np.zeros(target.dimension)
    np.testing.assert_allclose(relative.theta(origin), target.pack(start), atol=1e-12)

    rng = np.random.default_rng(2)
    z = 0.3 * rng.normal(size=target.dimension)
    _, slope = target.value_and_gradient(relative.theta(z), jacobian=False)
    carried = relative.gradient(z, slope)
    for step in 1e-5 * rng.normal(size=(6, target.dimension)):
        ahead, _ = target.value_and_gradient(relative.theta(z + step), jacobian=False)
        behind, _ = target.value_and_gradient(relative.theta(z - step), jacobian=False)
        assert 2 * step @ carried == pytest.approx(ahead - behind, rel=1e-6, abs=1e-7)


def test_a_unit_step_of_a_mean_is_one_standard_deviation():
    specification = structure("full", classes=(0, 1))
    start = random_point(specification, seed=3)
    target = MixtureLogPosterior(
        table(specification), specification, hyperparameters(specification)
    )
    relative = RelativeCoordinates(target.pack(start), start, specification)
    place = slice(1, 1 + start.means.size)  # behind the one coordinate of two classes
    for column in range(3):
        z = np.zeros(target.dimension)
        z[place][column] = 1.0
        step = (target.unpack(relative.theta(z)).means - start.means)[0]
        factor = start.precisions_cholesky[0]
        assert step @ factor @ factor.T @ step == pytest.approx(1.0)

"""Many mixtures at once are what each is alone."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.rows import Observations
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.posterior import MixtureLogPosterior, SideBySide, joined
from tests.cases import (
    CLASSES,
    COVARIANCES,
    hyperparameters,
    random_point,
    structure,
    table,
)


def one_by_one(target: MixtureLogPosterior, rows: Observations, thetas: np.ndarray) -> np.ndarray:
    """Log joints by the E-step's own code, a point at a time."""
    expectation = prepare(rows, target.specification)
    units = target.hyperparameters.units
    points = [target.unpack(theta).standardised(units) for theta in thetas]
    return np.stack([expectation.component_log_joint(point) for point in points])


@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(("n_features", "levels"), [(3, (2, 3)), (2, ()), (0, (3,))])
@pytest.mark.parametrize("complete", [True, False])
def test_points_do_not_meddle_with_each_other(
    covariance_type, shared_covariance, classes, n_features, levels, complete, monkeypatch
):
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    rows = table(specification)
    if complete:
        rows = Observations(np.nan_to_num(rows.real), rows.codes, rows.labels, rows.weights)
    hyper = hyperparameters(specification, location=1.0, scale=2.0)
    target = MixtureLogPosterior(rows, specification, hyper)
    thetas = np.random.default_rng(1).normal(size=(5, target.dimension))
    # two points a block, and one in the last
    entries = 2 * len(rows.labels) * len(classes)
    monkeypatch.setattr("bayesrbf.base.rows.AT_ONCE", entries)
    found = SideBySide(rows, target.points).component_log_joints(thetas)
    np.testing.assert_allclose(found, one_by_one(target, rows, thetas), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(("n_features", "levels"), [(3, (2, 3)), (0, (3,))])
def test_points_that_are_joined_are_the_mean_of_their_densities(
    covariance_type, shared_covariance, n_features, levels
):
    specification = structure(covariance_type, shared_covariance, (0, 0, 1), n_features, levels)
    rows = table(specification).unlabelled()
    points = [random_point(specification, seed) for seed in range(3)]
    alone = [prepare(rows, specification).component_log_joint(point) for point in points]
    together, wide = joined(points, specification)
    found = prepare(rows, wide).component_log_joint(together)
    np.testing.assert_allclose(found, np.hstack(alone) - np.log(3), rtol=1e-9, atol=1e-9)


def test_predictions_of_draws_are_those_of_single_points():
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows = table(specification)
    hyper = hyperparameters(specification, location=1.0, scale=2.0)
    target = MixtureLogPosterior(rows, specification, hyper)
    predict = target.predictor(rows)
    thetas = np.random.default_rng(2).normal(size=(7, target.dimension))
    many = predict.at_all(thetas)
    assert many.log_probabilities.shape == (7, rows.n_obs, 2)
    single = [predict(theta) for theta in thetas]
    for part in ("log_probabilities", "log_density"):
        alone = np.stack([getattr(one, part) for one in single])
        np.testing.assert_allclose(getattr(many, part), alone, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(np.exp(many.log_probabilities).sum(axis=2), 1, rtol=1e-12)
    # the log density of an unlabelled row is what the log posterior says of it
    hidden = MixtureLogPosterior(rows.unlabelled(), specification, hyper)
    np.testing.assert_allclose(many.log_density[0], hidden.pointwise(thetas[0]), rtol=1e-10)


def test_no_rows_and_no_points_are_empty():
    specification = structure(levels=(2,))
    rows = table(specification)
    target = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    theta = np.zeros((2, target.dimension))
    none = rows.take(np.zeros(0, dtype=np.intp))
    k = specification.n_components
    assert SideBySide(none, target.points).component_log_joints(theta).shape == (2, 0, k)
    assert SideBySide(rows, target.points).component_log_joints(theta[:0]).shape == (
        0,
        rows.n_obs,
        k,
    )

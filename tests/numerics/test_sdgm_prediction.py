"""Averages over the posterior of the weights against plain Monte Carlo."""

from __future__ import annotations

import numpy as np

from bayesrbf.numerics.sdgm.basis import features, quadratic_basis
from bayesrbf.numerics.sdgm.prediction import class_log_probabilities, predict
from bayesrbf.parameters import Standardisation
from bayesrbf.sdgm_parameters import SDGMParameters

BASIS = quadratic_basis(2, ())
UNITS = Standardisation(np.array([1.0, 0.0]), np.array([2.0, 1.0]))


def parameters(spread: float = 0.5) -> SDGMParameters:
    rng = np.random.default_rng(0)
    root = spread * rng.normal(size=(5, 5))
    return SDGMParameters(
        np.array([0, 0, 1, 2]),
        np.array([0.25, 0.75, 1.0, 1.0]),
        np.array([0, 0, 1, 2, 2]),
        np.array([0, 1, 3, 2, 5]),
        rng.normal(size=5),
        np.ones(5),
        root @ root.T,
    )


def whole(points: np.ndarray):
    return lambda replicate: (points, np.arange(len(points)))


def test_the_average_is_the_mean_over_draws_within_its_stated_error() -> None:
    point = parameters()
    points = np.random.default_rng(1).normal(size=(20, 2))
    found, error = predict(point, BASIS, UNITS, whole(points), average=True)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    draws = np.random.default_rng(2).multivariate_normal(
        point.coefficients, point.covariance, size=200_000
    )
    phi = features(BASIS, UNITS.forward(points))
    logits = np.broadcast_to(np.log(point.proportions), (len(draws), 4)).copy()
    for row in range(3):
        z = logits.copy()
        for h in range(5):
            z[:, point.component[h]] += draws[:, h] * phi[row, point.feature[h]]
        p = np.exp(class_log_probabilities(z, point.component_class))
        noise = np.hypot(p.std(axis=0) / np.sqrt(len(draws)), error[row])
        assert (np.abs(p.mean(axis=0) - found[row]) < 5 * noise).all()
    assert 0 < error.max() < 5e-3


def test_plug_in_is_the_limit_of_no_spread() -> None:
    points = np.random.default_rng(1).normal(size=(7, 2))
    mode, error = predict(parameters(), BASIS, UNITS, whole(points), average=False)
    assert (error == 0).all()
    narrow, _ = predict(parameters(1e-9), BASIS, UNITS, whole(points), average=True)
    np.testing.assert_allclose(narrow, mode, atol=1e-7)
    wide, _ = predict(parameters(), BASIS, UNITS, whole(points), average=True)
    assert np.abs(wide - mode).max() > 0.02


def test_far_points_have_probabilities() -> None:
    points = np.array([[1e300, -1e300], [-1e200, 1e-200]])
    found, _ = predict(parameters(), BASIS, UNITS, whole(points), average=True)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)

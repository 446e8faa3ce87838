"""Averages over the posterior of the weights against plain Monte Carlo."""

from __future__ import annotations

import numpy as np

from bayesrbf.base.rows import Standardisation
from bayesrbf.families.sdgm.fitted import (
    DRAWS,
    REPLICATES,
    drawn_log_probabilities,
    predict,
    replicated_draws,
    weight_draws,
)
from bayesrbf.families.sdgm.posterior import class_log_probabilities, quadratic_basis
from bayesrbf.families.sdgm.records import SDGMModes, SDGMParameters

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


def one(parameters: SDGMParameters) -> SDGMModes:
    return SDGMModes((parameters,), np.ones(1))


def several() -> SDGMModes:
    """Three modes; components and weights differ, and one has no weight."""
    small = SDGMParameters(
        np.array([0, 1, 2]),
        np.ones(3),
        np.array([0, 1]),
        np.array([0, 4]),
        np.array([2.0, -1.0]),
        np.ones(2),
        0.04 * np.eye(2),
    )
    nothing = np.empty(0)
    nowhere = np.empty(0, dtype=np.intp)
    bare = SDGMParameters(
        np.array([0, 1, 2]), np.ones(3), nowhere, nowhere, nothing, nothing, np.empty((0, 0))
    )
    return SDGMModes((parameters(), small, bare), np.array([0.6, 0.3, 0.1]))


def whole(points: np.ndarray):
    return lambda replicate: (points, np.arange(len(points)))


def test_the_average_is_the_mean_over_draws_within_its_stated_error() -> None:
    point = parameters()
    points = np.random.default_rng(1).normal(size=(20, 2))
    found, error = predict(one(point), BASIS, UNITS, whole(points), average=True)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    draws = np.random.default_rng(2).multivariate_normal(
        point.coefficients, point.covariance, size=200_000
    )
    phi = BASIS.at(UNITS.forward(points))
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
    mode, error = predict(one(parameters()), BASIS, UNITS, whole(points), average=False)
    assert (error == 0).all()
    narrow, _ = predict(one(parameters(1e-9)), BASIS, UNITS, whole(points), average=True)
    np.testing.assert_allclose(narrow, mode, atol=1e-7)
    wide, _ = predict(one(parameters()), BASIS, UNITS, whole(points), average=True)
    assert np.abs(wide - mode).max() > 0.02


def test_far_points_have_probabilities() -> None:
    points = np.array([[1e300, -1e300], [-1e200, 1e-200]])
    found, _ = predict(one(parameters()), BASIS, UNITS, whole(points), average=True)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)


def test_an_average_over_modes_has_their_shares() -> None:
    modes, points = several(), np.random.default_rng(1).normal(size=(9, 2))
    found, error = predict(modes, BASIS, UNITS, whole(points), average=True)
    alone = [
        predict(one(mode), BASIS, UNITS, whole(points), average=True) for mode in modes.parameters
    ]
    expected = sum(q * p for q, (p, _) in zip(modes.probabilities, alone, strict=True))
    noise = np.hypot(error, max(e.max() for _, e in alone))
    assert (np.abs(found - expected) < 5 * noise).all()
    assert np.abs(found - alone[0][0]).max() > 0.05
    best, _ = predict(modes.alone, BASIS, UNITS, whole(points), average=True)
    np.testing.assert_allclose(best, alone[0][0], rtol=1e-12)
    plug_in, _ = predict(modes, BASIS, UNITS, whole(points), average=False)
    np.testing.assert_array_equal(
        plug_in, predict(one(parameters()), BASIS, UNITS, whole(points), average=False)[0]
    )


def test_draws_of_modes_are_shared_out_evenly_in_every_replicate() -> None:
    modes = several()
    for replicate in range(REPLICATES):
        drawn = weight_draws(modes, DRAWS, replicate, average=True)
        counts = np.array([len(weights) for weights in drawn.weights])
        assert counts.tolist() == np.bincount(drawn.number, minlength=3).tolist()
        assert counts.sum() == DRAWS
        assert (np.abs(counts - DRAWS * modes.probabilities) <= 2).all()
    theta = replicated_draws(modes)
    for step in (2, 8, 16):  # every so many of them have the same shares
        thinned = np.bincount(theta[:, ::step, 0].astype(int).ravel(), minlength=3)
        np.testing.assert_allclose(thinned / thinned.sum(), modes.probabilities, atol=0.1)
    assert theta.shape == (REPLICATES, DRAWS, 1 + parameters().n_weights)
    for number, mode in enumerate(modes.parameters):
        mine = theta[theta[:, :, 0] == number]
        assert (mine[:, 1 + mode.n_weights :] == 0).all()
        np.testing.assert_allclose(
            mine[:, 1 : 1 + mode.n_weights].mean(axis=0), mode.coefficients, atol=0.15
        )


def test_drawn_log_probabilities_are_those_of_the_average() -> None:
    modes, points = several(), np.random.default_rng(1).normal(size=(9, 2))
    drawn = drawn_log_probabilities(modes, BASIS, UNITS, whole(points), average=True)
    found, error = predict(modes, BASIS, UNITS, whole(points), average=True)
    assert drawn.shape == (9, DRAWS, 3)
    noise = np.sqrt(REPLICATES) * np.maximum(error, 1e-3)
    assert (np.abs(np.exp(drawn).mean(axis=1) - found) < 5 * noise).all()

"""Weights and temperatures of a stack: fixed points, modes, gradients, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.families.stack.posterior import (
    Pool,
    StackLogPosterior,
    fit_pool,
    fit_pools,
    log_pool,
    pool_weights,
    tempered_members,
)
from bayesrbf.fit.held_out import HeldOut
from bayesrbf.models.stack import declare_stack


def held_out(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three members, each less good than the one before it, on weighted rows."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    scores = rng.normal(size=(n, 3, 3))
    scores += np.eye(3)[labels][:, None] * np.array([[3.0], [1.0], [0.0]])
    return log_softmax(scores, axis=2), labels, rng.uniform(0.5, 2.0, n)


def test_weights_are_the_mode_of_pool_and_prior() -> None:
    values, labels, weights = held_out()
    true_class = np.exp(values)[np.arange(60), :, labels]
    pool = pool_weights(true_class, weights)
    assert pool.sum() == pytest.approx(1.0)
    assert (np.diff(pool) < 0).all()

    def objective(w: np.ndarray) -> float:
        return float(weights @ np.log(true_class @ w) + POOL_PRIOR.pseudo_rows * np.log(w).sum())

    rng = np.random.default_rng(1)
    for direction in rng.normal(size=(20, 3)):
        other = pool * np.exp(0.01 * direction)
        assert objective(other / other.sum()) <= objective(pool) + 1e-9


def test_weight_two_is_the_row_twice() -> None:
    values, labels, _ = held_out(10)
    true_class = np.exp(values)[np.arange(10), :, labels]
    twice = pool_weights(np.r_[true_class[:1], true_class], np.ones(11))
    weighted = pool_weights(true_class, np.r_[2.0, np.ones(9)])
    np.testing.assert_allclose(weighted, twice, rtol=1e-10)


def test_without_rows_all_members_weigh_the_same() -> None:
    np.testing.assert_allclose(pool_weights(np.zeros((0, 4)), np.zeros(0)), 0.25)


def test_probabilities_are_tempered_and_kept_from_zero() -> None:
    log_p, temperatures = np.log([[[1 - 1e-30, 1e-30], [0.7, 0.3]]]), np.array([1.0, 2.0])
    sure, other = tempered_members(log_p, temperatures)[0]
    assert sure.sum() == pytest.approx(1.0, abs=1e-15)
    assert sure[1] == pytest.approx(POOL_PRIOR.least, rel=1e-6)
    np.testing.assert_allclose(other, softmax(2 * log_p[0, 1]), atol=3e-6)


def test_a_pool_of_one_member_is_that_member() -> None:
    values, _, _ = held_out()
    members = tempered_members(values[:, :1], np.ones(1))
    np.testing.assert_allclose(np.exp(log_pool(np.ones(1), members)), members[:, 0])


def test_points_are_packed_and_pooled_as_they_are_defined() -> None:
    values, labels, weights = held_out()
    posterior = StackLogPosterior(HeldOut(values, labels, weights))
    pool, inner, outer = np.array([0.6, 0.3, 0.1]), np.array([1.2, 0.5, 0.9]), 1.3
    theta = posterior.pack([Pool(pool, inner, outer)])
    members = softmax(inner[:, None] * values, axis=2)
    mixed = pool @ ((1 - 3 * POOL_PRIOR.least) * members + POOL_PRIOR.least)
    expected = log_softmax(outer * np.log(mixed), axis=1)
    np.testing.assert_allclose(posterior.pooled(values, np.zeros(60), theta), expected, rtol=1e-12)
    own = expected[np.arange(60), labels]
    np.testing.assert_allclose(posterior.pointwise(theta), own, rtol=1e-12)
    # Value, gradient and Jacobian are held to the declared graph by tests/inference/test_plug.py.
    fewer = HeldOut(values[1:], labels[1:], weights[1:])
    change = (
        posterior.value_and_gradient(theta)[0]
        - StackLogPosterior(fewer).value_and_gradient(theta)[0]
    )
    assert change == pytest.approx(weights[0] * own[0])


@pytest.mark.parametrize("signal", [True, False])
def test_pools_are_shrunk_by_their_akaike_weight(signal: bool) -> None:
    values, labels, weights = held_out()
    labels = labels if signal else np.random.default_rng(5).permutation(labels)
    log_shares = np.log(np.bincount(labels, weights) / weights.sum())
    hidden = np.tile([0.0, 0.4], (60, 1))
    rows = HeldOut(values, labels, weights, values[:, None], hidden, log_shares=log_shares)
    pools = [fit_pool(*at_knot, log_shares) for at_knot in rows.at_knots(rows.weights)]
    posterior = StackLogPosterior(rows)
    log_q = posterior.pooled(values, hidden[:, 0], posterior.pack(pools))
    gain = weights @ (log_q[np.arange(60), labels] - log_shares[labels])
    factor = 1 / (1 + np.exp(2 - gain))
    assert factor > 0.99 if signal else factor < 0.3
    shrunk = posterior.pooled(values, hidden[:, 0], posterior.pack(fit_pools(rows)))
    expected = log_softmax(factor * log_q + (1 - factor) * log_shares, axis=1)
    np.testing.assert_allclose(shrunk, expected, rtol=1e-9)


@pytest.mark.parametrize("copies", [0, 2])
def test_log_densities_are_those_of_the_gradient(copies: int) -> None:
    values, labels, weights = held_out()
    rows = HeldOut(values, labels, weights)
    if copies:
        hidden = np.linspace(0, 1, 60 * (1 + copies)).reshape(60, -1)
        more = np.stack([held_out(seed=seed)[0] for seed in range(1, 1 + copies)], axis=1)
        shares = np.log([0.5, 0.3, 0.2])
        rows = HeldOut(values, labels, weights, more, hidden, log_shares=shares)
    posterior = StackLogPosterior(rows)
    thetas = np.random.default_rng(2).normal(size=(4, posterior.dimension))
    expected, _ = posterior.values_and_gradients(thetas)
    np.testing.assert_allclose(posterior.log_densities(thetas), expected, rtol=1e-12)


def test_a_graph_takes_copies_with_their_cells_and_class_shares() -> None:
    values, labels, weights = held_out()
    given = {"member_names": list("abc"), "class_names": list("abc"), "prior": POOL_PRIOR}
    with pytest.raises(ValueError, match="masked, missing_fractions and log_shares together"):
        declare_stack(values, labels, weights, masked=values[:, None], **given)

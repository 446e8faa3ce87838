from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.inference.draws import Draws, best_orders, on_grid, relabel
from bayesrbf.inference.laplace import laplace
from tests.inference.targets import Gaussian, Mixture


@pytest.fixture(scope="module")
def target() -> Mixture:
    return Mixture()


@pytest.fixture(scope="module")
def draws(target: Mixture) -> Draws:
    return laplace(target, target.start(), draws=100, chains=2, random_state=0)


def permuted(target: Mixture, draws: Draws, seed: int) -> Draws:
    """The same draws, the components of each in a random order within their class."""
    rng = np.random.default_rng(seed)
    theta = draws.theta.copy()
    for place in np.ndindex(theta.shape[:2]):
        order = np.concatenate([rng.permutation(3), 3 + rng.permutation(2)])
        theta[place] = target.permute(theta[place], order)
    return replace(draws, theta=theta)


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_the_input_change_no_bit(target, draws, seed):
    shuffled = permuted(target, draws, seed)
    assert np.mean(shuffled.theta != draws.theta) > 0.5
    expected = relabel(target, draws, target.start())
    found = relabel(target, shuffled, target.start())
    np.testing.assert_array_equal(found.theta, expected.theta)


def test_draws_take_the_names_of_the_reference(target, draws):
    shuffled = permuted(target, draws, 0)
    means = relabel(target, shuffled, target.start()).theta[..., 3:]
    assert np.all(np.abs(means - target.centres) < np.abs(means - np.roll(target.centres, 1)))


def test_relabelling_twice_changes_nothing(target, draws):
    once = relabel(target, permuted(target, draws, 1), target.start())
    np.testing.assert_array_equal(relabel(target, once, target.start()).theta, once.theta)


def test_density_and_class_probabilities_do_not_change(target, draws):
    shuffled = permuted(target, draws, 2)
    after = relabel(target, shuffled, target.start())
    for place in itertools.islice(np.ndindex(after.theta.shape[:2]), 20):
        before_value = target.value_and_gradient(shuffled.theta[place])[0]
        assert target.value_and_gradient(after.theta[place])[0] == pytest.approx(before_value)
        np.testing.assert_allclose(
            target.class_log_joint(after.theta[place]),
            target.class_log_joint(shuffled.theta[place]),
            atol=1e-9,
        )


def test_another_reference_renames_all_draws_alike(target, draws):
    order = np.array([2, 0, 1, 4, 3])
    reference = target.permute(target.start(), order)
    renamed = relabel(target, draws, reference).theta
    plain = relabel(target, draws, target.start()).theta
    for place in np.ndindex(plain.shape[:2]):
        np.testing.assert_array_equal(renamed[place], target.permute(plain[place], order))


def test_order_is_the_cheapest_of_all_permutations():
    rng = np.random.default_rng(0)
    classes = np.array([0, 0, 0, 1, 1])
    for _ in range(20):
        q, r = rng.dirichlet(np.ones(5), size=30), rng.dirichlet(np.ones(5), size=30)
        cost = -(np.log(r).T @ q)
        orders = [
            np.array([*a, *b])
            for a in itertools.permutations(range(3))
            for b in itertools.permutations((3, 4))
        ]
        cheapest = min(orders, key=lambda order: cost[order, range(5)].sum())
        np.testing.assert_array_equal(best_orders(q, np.log(r)[None], classes)[0], cheapest)


def test_one_component_a_class_is_left_alone():
    target = Gaussian()
    draws = laplace(target, np.zeros(5), draws=10, random_state=0)
    np.testing.assert_array_equal(relabel(target, draws, np.zeros(5)).theta, draws.theta)


def test_grid_is_fine_and_leaves_identity_coordinates():
    target = Mixture()
    theta = np.random.default_rng(0).normal(size=(7, target.dimension))
    rounded = on_grid(theta, target.variables)
    np.testing.assert_array_equal(rounded[:, 3:], theta[:, 3:])
    np.testing.assert_allclose(rounded, theta, atol=5e-13, rtol=0)
    np.testing.assert_array_equal(on_grid(rounded, target.variables), rounded)
    assert np.any(rounded != theta)

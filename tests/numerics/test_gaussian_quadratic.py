"""Products of cells give what centred rows give, and know where they would not."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.numerics.gaussian import CompleteMoments, FullComponents
from bayesrbf.numerics.gaussian_quadratic import QuadraticComponents, QuadraticMoments, products


def case(d: int, k: int = 3, spread: float = 1.0, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=(50, d)), np.ones(50)])
    factors = np.tril(rng.normal(scale=0.3, size=(k, d, d)))
    factors[:, range(d), range(d)] = rng.uniform(0.5, 2.0, size=(k, d)) / spread
    return rows, rng.normal(size=(k, d)), factors, rng.dirichlet(np.ones(k), size=50).T


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_both_give_the_same_densities_and_moments(d):
    rows, means, factors, shares = case(d)
    plain = CompleteMoments.of(rows, FullComponents(means, factors))
    quadratic = QuadraticMoments.of(products(rows), QuadraticComponents(means, factors))
    np.testing.assert_allclose(quadratic.log_density, plain.log_density, rtol=1e-11)
    sums = []
    for moments in (plain, quadratic):
        first, second = np.ones((3, d)), np.ones((3, d, d))
        moments.add_to(first, second, shares)
        np.testing.assert_allclose(second, second.swapaxes(1, 2), atol=1e-12)
        sums.append((first, second))
    for ours, theirs in zip(sums[1], sums[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("change", ["narrow", "far"])
def test_a_component_whose_sums_would_cancel_is_told(change):
    _, means, factors, _ = case(4)
    assert QuadraticComponents(means, factors).exact
    if change == "narrow":
        factors[1] *= 1e3
    else:
        means[1] += 1e3
    assert not QuadraticComponents(means, factors).exact

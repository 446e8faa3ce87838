"""Products of cells give what centred rows give, and know where they would not."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.mixture.gaussian import (
    CompleteMoments,
    FullComponents,
    QuadraticMoments,
    centred_moments,
    exact,
    products,
    quadratic_forms,
)


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
    forms = quadratic_forms(FullComponents(means, factors))
    quadratic = QuadraticMoments(forms @ products(rows), products(rows))
    np.testing.assert_allclose(quadratic.log_density, plain.log_density, rtol=1e-11)
    first, second = np.zeros((3, d)), np.zeros((3, d, d))
    plain.add_to(first, second, shares)
    ours = centred_moments(quadratic.sums(shares), means)
    np.testing.assert_allclose(ours[0], first, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(ours[1], second, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(ours[1], ours[1].swapaxes(1, 2), atol=1e-12)


@pytest.mark.parametrize("change", ["narrow", "far"])
def test_a_component_whose_sums_would_cancel_is_told(change):
    _, means, factors, _ = case(4)
    assert exact(quadratic_forms(FullComponents(means, factors))).all()
    if change == "narrow":
        factors[1] *= 1e3
    else:
        means[1] += 1e3
    told = exact(quadratic_forms(FullComponents(means, factors)))
    assert told.tolist() == [True, False, True]

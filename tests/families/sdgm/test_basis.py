"""Features: monomials against loops, kernels against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.families.sdgm.posterior import has_all_products, quadratic_basis
from bayesrbf.families.sdgm.records import KernelBasis


def test_quadratic_features_are_the_products() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    products = [x[:, i] * x[:, j] for i in range(3) for j in range(i, 3)]
    expected = np.column_stack([np.ones(5), x, *products])
    np.testing.assert_array_equal(quadratic_basis(3, ()).at(x), expected)
    assert quadratic_basis(3, ()).n_features == 1 + 3 * (3 + 3) // 2


def test_indicators_bring_no_feature_that_is_a_sum_of_others() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 1))
    codes = rng.integers(3, size=200), rng.integers(2, size=200)
    points = np.column_stack([real, np.eye(3)[codes[0]], np.eye(2)[codes[1]]])
    basis = quadratic_basis(1, (3, 2))
    # 1, 6 coordinates, real squared, real x 5 levels, 3 x 2 pairs of levels
    assert basis.n_features == 1 + 6 + 1 + 5 + 6
    values = basis.at(points)
    assert np.unique(values, axis=1).shape[1] == basis.n_features


def test_many_levels_enter_without_products() -> None:
    assert not has_all_products(2, (40, 40))
    assert quadratic_basis(2, (40, 40)).n_features == 1 + 82 + 3
    assert has_all_products(100, ())


def test_kernels_and_the_features_in_use() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    polynomial = KernelBasis("polynomial", z).at(x)
    np.testing.assert_allclose(polynomial[1, 2], (x[1] @ z[1] + 1) ** 2)
    gaussian = KernelBasis("gaussian", z).at(x)
    np.testing.assert_allclose(gaussian[3, 1], np.exp(-0.5 * ((x[3] - z[0]) ** 2).sum()))
    own = KernelBasis(lambda a, b: a @ b.T, z).at(x)
    np.testing.assert_allclose(own[:, 1:], x @ z.T)
    assert (own[:, 0] == 1).all()
    for basis in (KernelBasis("gaussian", z), quadratic_basis(2, ())):
        few = basis.take(np.array([0, 2]))
        np.testing.assert_array_equal(few.at(x), basis.at(x)[:, [0, 2]])


def test_a_kernel_that_is_none_is_refused() -> None:
    z = np.zeros((3, 2))
    with pytest.raises(ValueError, match="shape \\(4, 3\\)"):
        KernelBasis(lambda a, b: a, z).at(np.ones((4, 2)))
    with pytest.raises(ValueError, match="12 values that are not finite"):
        KernelBasis(lambda a, b: a @ b.T + np.nan, z).at(np.ones((4, 2)))
    with pytest.raises(ValueError, match="received 'cubic'"):
        KernelBasis("cubic", z).at(np.ones((4, 2)))

"""The exemplar hidden layer against integrals done numerically, and its output layer's laws."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_softmax
from scipy.stats import norm

from bayesrbf.base.priors import Status
from bayesrbf.base.rows import Observations
from bayesrbf.families.kernel_network.kernels import (
    FARTHEST,
    TILE,
    CellMoments,
    ProductKernel,
    cell_moments,
    eigen_basis,
    relevance_factors,
)
from bayesrbf.families.kernel_network.posterior import (
    INTERCEPT_SD,
    KernelNetworkLogPosterior,
    class_log_probabilities,
    fit_output,
)
from tests.cases import random_point, structure, table

LEVELS = (3, 2)
KERNELS = ("laplace", "gaussian")
SMALLEST_VARIANCE = 1e-13


def cells(n: int = 12, missing: float = 0.4, seed: int = 0) -> CellMoments:
    """Rows whose cells are points, or distributions where they are missing."""
    rng = np.random.default_rng(seed)
    hole = rng.random((n, 3)) < missing
    unknown = rng.random((n, len(LEVELS))) < missing
    columns = [np.eye(size)[rng.integers(0, size, n)] for size in LEVELS]
    for j, size in enumerate(LEVELS):
        columns[j][unknown[:, j]] = rng.dirichlet(np.ones(size), unknown[:, j].sum())
    variance = np.where(hole, rng.uniform(0.01, 2.0, hole.shape), 0.0)
    return CellMoments(rng.normal(size=(n, 3)), variance, np.concatenate(columns, axis=1), unknown)


def kernel(name: str) -> ProductKernel:
    return ProductKernel(name, np.array([0.3, 1.5, 0.05]), np.array([0.7, 2.0]), LEVELS)


def expected_value(name: str, d: float, variance: float, rate: float) -> float:
    """Mean of the factor of one real column under d + N(0, variance), by quadrature."""

    def factor(x: float) -> float:
        return float(np.exp(-rate * abs(x) if name == "laplace" else -0.5 * rate * x**2))

    if variance == 0:
        return factor(d)
    s = np.sqrt(variance)
    halves = [(-12.0, -d / s), (-d / s, 12.0)]  # the kink is an end of both
    return sum(quad(lambda z: factor(d + s * z) * norm.pdf(z), *ends)[0] for ends in halves)


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_expectations_over_missing_cells(name: str) -> None:
    left, right, product = cells(5, seed=1), cells(4, seed=2), kernel(name)
    found = product(left, right)
    edges = np.cumsum([0, *LEVELS])
    for i, j in itertools.product(range(5), range(4)):
        value = 1.0
        for column, rate in enumerate(product.real_rates):
            d = left.mean[i, column] - right.mean[j, column]
            spread = left.variance[i, column] + right.variance[j, column]
            value *= expected_value(name, d, spread, rate)
        for column, rate in enumerate(product.category_rates):
            part = slice(edges[column], edges[column + 1])
            pairs = np.outer(left.probabilities[i, part], right.probabilities[j, part])
            alike = np.eye(LEVELS[column], dtype=bool)
            value *= pairs[alike].sum() + pairs[~alike].sum() * np.exp(-rate)
        np.testing.assert_allclose(found[i, j], value, rtol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_a_certain_cell_is_the_limit_of_an_uncertain_one(name: str) -> None:
    rows, product = cells(missing=0.0), kernel(name)
    blurred = CellMoments(
        rows.mean, rows.variance + SMALLEST_VARIANCE, rows.probabilities, ~rows.unknown
    )
    np.testing.assert_allclose(product.gram(blurred), product.gram(rows), rtol=1e-5)
    far = CellMoments(
        FARTHEST * np.eye(12, 3), rows.variance + 1e-300, rows.probabilities, rows.unknown
    )
    assert np.isfinite(product.gram(far)).all()


@pytest.mark.parametrize("name", KERNELS)
def test_a_gram_matrix_is_all_pairs_and_positive(name: str) -> None:
    rows, product = cells(TILE + 40), kernel(name)
    gram = product.gram(rows)
    np.testing.assert_allclose(gram, product(rows, rows), rtol=1e-12)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)
    assert gram.min() > 0
    assert gram.max() <= 1 + 1e-12
    assert np.linalg.eigvalsh(gram)[0] > -1e-10


@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("rate", [1e2, 1e4])
def test_large_rates_leave_kernel_values_between_0_and_1(name: str, rate: float) -> None:
    """Far cells, one of them missing: a factor is 0 where the other would be infinite."""
    rows = cells(40)
    rows = replace(rows, mean=5 * rows.mean)
    steep = replace(kernel(name), real_rates=np.full(3, rate))
    values = steep(rows, rows)
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()


def test_missing_cells_are_those_of_the_mixture_and_labels_are_not_used() -> None:
    specification = structure("full", True, (0, 1), levels=LEVELS)
    rows, point = table(specification), random_point(specification)
    found = cell_moments(rows, point, specification)
    hole = np.isnan(rows.real)
    np.testing.assert_array_equal(found.mean[~hole], np.clip(rows.real[~hole], -4, 4))
    assert (found.variance[hole] > 0).all()
    assert not found.variance[~hole].any()
    by_column = np.split(found.probabilities, [LEVELS[0]], axis=1)
    for j, part in enumerate(by_column):
        np.testing.assert_allclose(part.sum(axis=1), 1.0)
        seen = rows.codes[:, j] >= 0
        np.testing.assert_array_equal(part[seen], np.eye(LEVELS[j])[rows.codes[seen, j]])
    hidden = Observations(rows.real, rows.codes, np.full(rows.n_obs, -1), rows.weights)
    seen_alike = cell_moments(hidden, point, specification)
    np.testing.assert_allclose(seen_alike.mean, found.mean, rtol=1e-12)
    np.testing.assert_allclose(seen_alike.probabilities, found.probabilities, rtol=1e-12)


def test_relevance_is_one_for_what_tells_and_the_rest_is_shrunk() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    real = np.column_stack([rng.normal(size=200), rng.normal(3.0 * labels)])
    codes = np.column_stack([labels * (rng.random(200) < 0.8), rng.integers(0, 3, 200)])
    rows = Observations(real, codes.astype(np.intp), labels, np.ones(200))
    factors = relevance_factors(rows, (2, 3), 2, 0.8)
    np.testing.assert_allclose(factors[[0, 1, 3]], [0.2, 1.0, 0.2], atol=0.1)
    assert 0.5 < factors[2] < 1
    np.testing.assert_array_equal(relevance_factors(rows, (2, 3), 2, 0.0), 1.0)
    # The gain of a column is the mutual information that SciPy's densities give.
    gain = mutual_information(real[:, 1], labels)
    ratio = mutual_information(real[:, 0], labels) / gain
    assert factors[0] == pytest.approx(0.2 + 0.8 * np.sqrt(max(ratio, 0)), abs=0.05)


def mutual_information(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean log ratio of the class's normal density to the marginal, less chance."""
    by_class = [norm(x[labels == c].mean(), x[labels == c].std()).pdf(x) for c in (0, 1)]
    own = np.where(labels == 0, *by_class)
    return float(np.log(own / (0.5 * by_class[0] + 0.5 * by_class[1])).mean() - 1 / x.size)


def test_features_reproduce_the_kernel_and_lead_with_the_largest_eigenvalue() -> None:
    rows, product = cells(30), kernel("laplace")
    basis, features = eigen_basis(product, rows, 1000)
    np.testing.assert_allclose(features @ features.T, product.gram(rows), atol=1e-5)
    np.testing.assert_allclose(basis.features(rows), features, atol=1e-8)
    few, leading = eigen_basis(product, rows, 4)
    assert few.n_basis == 4
    np.testing.assert_allclose(np.abs(leading), np.abs(features[:, :4]), atol=1e-10)
    assert (np.diff((features**2).sum(axis=0)) <= 0).all()


# ---- the output layer


WEIGHTS = np.linspace(0.5, 2, 40)


def output_layer(n_classes: int, seed: int = 0) -> KernelNetworkLogPosterior:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(40, 5)) * [4.0, 2.0, 1.0, 0.5, 0.1]
    labels = np.r_[np.arange(n_classes), rng.integers(-1, n_classes, 40 - n_classes)]
    return KernelNetworkLogPosterior(features, labels, WEIGHTS, n_classes, 0.3)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_log_posterior_is_that_of_scipy(n_classes: int) -> None:
    layer = output_layer(n_classes)
    theta = np.random.default_rng(1).normal(size=layer.dimension)
    values = layer.constrained(theta)
    logits = layer._features @ values["coefficients"].T + values["intercepts"]
    if n_classes == 2:
        logits = np.column_stack([np.zeros(40), logits])
    log_p = log_softmax(logits, axis=1)
    own = np.array([p[c] if c >= 0 else 0.0 for p, c in zip(log_p, layer._labels, strict=True)])
    expected = WEIGHTS @ own + norm(0, 0.3**-0.5).logpdf(values["coefficients"]).sum()
    expected += norm(0, INTERCEPT_SD).logpdf(values["intercepts"]).sum()
    np.testing.assert_allclose(layer.value_and_gradient(theta)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(layer.pointwise(theta), own, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_gradient_is_that_of_differences(n_classes: int) -> None:
    layer = output_layer(n_classes)
    theta = np.random.default_rng(2).normal(size=layer.dimension)
    gradient = layer.value_and_gradient(theta)[1]
    for i, unit in enumerate(np.eye(theta.size)):
        above, below = (layer.value_and_gradient(theta + h * unit)[0] for h in (1e-5, -1e-5))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_fit_ends_at_the_mode_and_never_falls(n_classes: int) -> None:
    layer = output_layer(n_classes)
    fit = fit_output(layer, tol=1e-6, max_iter=500)
    assert fit.status is Status.CONVERGED
    assert np.abs(layer.value_and_gradient(fit.theta)[1] * layer.scales).max() <= 1e-6
    assert (np.diff(fit.joint) >= 0).all()
    assert fit.joint[-1] == pytest.approx(layer.value_and_gradient(fit.theta)[0])
    assert fit.conditional[-1] == pytest.approx(WEIGHTS @ layer.pointwise(fit.theta))
    assert fit_output(layer, tol=1e-6, max_iter=2).status is not Status.CONVERGED or n_classes == 1


def test_probabilities_sum_to_one_and_the_reference_class_has_logit_zero() -> None:
    layer = output_layer(2)
    theta = np.random.default_rng(3).normal(size=layer.dimension)
    log_p = class_log_probabilities(layer._features, theta, 2)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        log_p[:, 1] - log_p[:, 0], layer._features @ theta[:5] + theta[5], rtol=1e-9, atol=1e-12
    )

"""The criteria of rates equal brute force; learned rates are small for columns of noise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import helmert
from scipy.spatial.distance import squareform
from scipy.special import log_softmax
from scipy.stats import multivariate_normal, norm

from bayesrbf.base.rows import Observations
from bayesrbf.families.kernel_network.kernels import CellMoments, ProductKernel
from bayesrbf.families.kernel_network.rates import (
    CRITERIA,
    RateLogPosterior,
    RateSearch,
    expected_distances,
    learn_rates,
    rate_log_posteriors,
    rates_at,
)
from bayesrbf.families.kernel_network.records import NUGGET, RateRows
from bayesrbf.models.kernel_network import declare_kernel_rates
from tests.cases import first_quick, some_quick

LEVELS = (3, 2)
KERNELS = ("laplace", "gaussian")
N, COLUMNS = 12, 5

every_criterion = pytest.mark.parametrize("criterion", CRITERIA)
every_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])


def cells(n: int = N, missing: float = 0.4, seed: int = 0) -> CellMoments:
    """Rows whose cells are points, or distributions where they are missing."""
    rng = np.random.default_rng(seed)
    hole = rng.random((n, 3)) < missing
    unknown = rng.random((n, len(LEVELS))) < missing
    columns = [np.eye(size)[rng.integers(0, size, n)] for size in LEVELS]
    for j, size in enumerate(LEVELS):
        columns[j][unknown[:, j]] = rng.dirichlet(np.ones(size), unknown[:, j].sum())
    variance = np.where(hole, rng.uniform(0.01, 2.0, hole.shape), 0.0)
    return CellMoments(rng.normal(size=(n, 3)), variance, np.concatenate(columns, axis=1), unknown)


def rows(n_classes: int, weighted: bool = True) -> RateRows:
    """Labelled rows, the shares not quite their own."""
    rng = np.random.default_rng(1)
    labels = np.r_[np.arange(n_classes), rng.integers(0, n_classes, N - n_classes)]
    weights = rng.uniform(0.5, 3.0, N) if weighted else np.ones(N)
    shares = np.bincount(labels, minlength=n_classes) + 0.5
    distances = expected_distances(cells(), LEVELS, "laplace")
    left_out = weights / rng.integers(1, 4, N)
    return RateRows(distances, labels, weights, left_out, shares / shares.sum())


def covariance(of: RateRows) -> np.ndarray:
    kernel = np.exp(-squareform(np.array([0.3, 0.1, 0.5, 0.2, 0.4]) @ of.distances))
    return kernel + NUGGET * np.eye(N)


def responses(of: RateRows) -> np.ndarray:
    """Orthonormal contrasts of the indicators, in units of their root mean square."""
    contrasts = (np.eye(of.shares.size)[of.labels] - of.shares) @ helmert(of.shares.size).T
    return contrasts / np.sqrt(np.average((contrasts**2).mean(axis=1), weights=of.weights))


@pytest.mark.parametrize("name", first_quick(KERNELS))
def test_distances_are_expectations_over_missing_cells(name: str) -> None:
    moments = cells()
    found = np.array([squareform(one) for one in expected_distances(moments, LEVELS, name)])
    edges = np.cumsum([0, *LEVELS])
    for i, j in itertools.combinations(range(N), 2):
        for column in range(3):
            d = moments.mean[i, column] - moments.mean[j, column]
            s = np.sqrt(moments.variance[i, column] + moments.variance[j, column])

            def distance(z: float, d: float = d, s: float = s) -> float:
                x = abs(d + s * z)
                return (x if name == "laplace" else 0.5 * x**2) * norm.pdf(z)

            kink = [] if s == 0 else [-d / s]
            expected = abs(d) if name == "laplace" else 0.5 * d**2
            if s > 0:
                ends = [-12.0, *kink, 12.0]
                expected = sum(quad(distance, *two)[0] for two in itertools.pairwise(ends))
            assert found[column, i, j] == pytest.approx(expected, abs=1e-7)
        for column in range(len(LEVELS)):
            part = slice(edges[column], edges[column + 1])
            pairs = np.outer(moments.probabilities[i, part], moments.probabilities[j, part])
            assert found[3 + column, i, j] == pytest.approx(1 - np.trace(pairs))


@pytest.mark.parametrize("name", KERNELS)
def test_expected_distances_make_a_kernel_at_any_rates(name: str) -> None:
    distances = expected_distances(cells(60, 0.6), LEVELS, name)
    for seed in range(5):
        rates = np.random.default_rng(seed).gamma(0.5, 2.0, COLUMNS)
        kernel = np.exp(-squareform(rates @ distances))
        assert np.linalg.eigvalsh(kernel)[0] > -1e-10


@every_number_of_classes
def test_the_evidence_is_the_log_density_of_the_table_with_its_copies(n_classes: int) -> None:
    of, noise, signal = rows(n_classes), 0.4, 1.7
    of = replace(of, weights=np.r_[3.0, 2.0, np.ones(N - 2)])
    each = np.repeat(np.arange(N), of.weights.astype(int))
    of_copies = signal * covariance(of)[np.ix_(each, each)] + noise * np.eye(each.size)
    expected = multivariate_normal(np.zeros(each.size), of_copies).logpdf(responses(of)[each].T)
    found = CRITERIA["evidence"](covariance(of), noise, signal, of).value
    assert found == pytest.approx(expected.sum(), rel=1e-10)


@every_number_of_classes
def test_leave_one_out_is_what_refits_without_each_row_say(n_classes: int) -> None:
    """One of three equal people, one of two who weigh a half each, and any other row as a whole."""
    of, noise, temperature = rows(n_classes), 0.4, 1.7
    weights = np.r_[3.0, 1.0, 0.5, 2.7, np.ones(N - 4)]
    copies = np.r_[3, 2, np.ones(N - 2, int)]
    of = replace(of, weights=weights, left_out=weights / copies)
    each, parts = np.repeat(np.arange(N), copies), np.repeat(weights / copies, copies)
    gram, total = covariance(of), 0.0
    residuals = np.eye(n_classes)[of.labels] - of.shares
    for left, row in enumerate(each):
        kept = np.delete(each, left)
        among = gram[np.ix_(kept, kept)] + np.diag(noise / np.delete(parts, left))
        predicted = gram[row, kept] @ np.linalg.solve(among, residuals[kept])
        log_p = log_softmax(temperature * predicted + np.log(of.shares))
        total += parts[left] * log_p[of.labels[row]]
    found = CRITERIA["leave-one-out"](gram, noise, temperature, of).value
    assert found == pytest.approx(total, rel=1e-10)


@every_criterion
@pytest.mark.parametrize("n_classes", some_quick([2, 3], 3))
def test_the_graph_is_equal_and_gradients_are_those_of_differences(
    n_classes: int, criterion: str
) -> None:
    of, fixed = rows(n_classes), np.array([0.3, 0.1, 0.5, 0.2, 0.0])
    log_posterior = RateLogPosterior(of, fixed, criterion)
    model = declare_kernel_rates(of, fixed, criterion)
    function = model.logp_dlogp_function(ravel_inputs=True, mode="FAST_COMPILE")
    function.set_extra_values({})
    [rates] = model.replace_rvs_by_values([model["rates"]])
    rates = model.compile_fn(
        rates, inputs=model.value_vars, point_fn=False, on_unused_input="ignore"
    )
    for seed in range(3):
        theta = 0.7 * np.random.default_rng(seed).normal(size=COLUMNS + 3)
        value, gradient = log_posterior.value_and_gradient(theta)
        expected, slope = function(theta)
        assert value == pytest.approx(float(expected), rel=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-9)
        declared = rates(theta[:COLUMNS], *theta[COLUMNS:])
        np.testing.assert_allclose(rates_at(theta, fixed), declared)
        for i, unit in enumerate(1e-5 * np.eye(theta.size)):
            above, below = (log_posterior.value_and_gradient(theta + h)[0] for h in (unit, -unit))
            assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6)


# ---- learned rates


def telling(n: int = 150, weight: float = 1.0) -> Observations:
    """A class in the middle of the first column between another, and columns of noise."""
    real = np.random.default_rng(2).uniform(-1.7, 1.7, (n, 4))
    labels = (np.abs(real[:, 0]) < 0.85).astype(np.intp)
    return Observations(real, np.zeros((n, 0), int), labels, np.full(n, weight))


def learned(
    criterion: str,
    name: str,
    table: Observations,
    seed: int = 0,
    start: tuple[float, ...] = (0.3,) * 4,
) -> np.ndarray:
    none = np.zeros((table.n_obs, 0))
    moments = CellMoments(table.real, np.zeros_like(table.real), none, none.astype(bool))
    kernel = ProductKernel(name, np.array(start), np.zeros(0), ())
    judges = rate_log_posteriors(kernel, moments, table, 2, criterion, seed, RateSearch(4))
    return rates_at(learn_rates(judges, steps=50), kernel.rates)


@every_criterion
@pytest.mark.parametrize("name", KERNELS)
def test_a_column_of_noise_gets_a_small_rate(criterion: str, name: str) -> None:
    rates = learned(criterion, name, telling())
    # The prior of leave-one-out rates holds the columns' factors near 1.
    assert rates[0] > (20 if criterion == "evidence" else 1.6) * rates[1:].max()


@every_criterion
def test_a_column_of_rate_zero_is_no_column(criterion: str) -> None:
    whole = telling()
    found = learned(criterion, "laplace", whole, start=(0.3, 0.3, 0.0, 0.3))
    fewer = replace(whole, real=whole.real[:, [0, 1, 3]])
    expected = learned(criterion, "laplace", fewer, start=(0.3, 0.3, 0.3))
    assert found[2] == 0
    np.testing.assert_allclose(found[[0, 1, 3]], expected, rtol=1e-6)


@every_criterion
def test_a_seed_gives_the_same_rates_and_another_nearly_the_same(criterion: str) -> None:
    first = learned(criterion, "laplace", telling())
    np.testing.assert_array_equal(first, learned(criterion, "laplace", telling()))
    other = learned(criterion, "laplace", telling(), seed=1)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(np.log(first / other), 0, atol=1.0)


@every_criterion
def test_rows_without_a_label_teach_no_rate(criterion: str) -> None:
    whole, first = telling(), np.arange(100)
    hidden = replace(whole, labels=np.where(np.arange(whole.n_obs) < 100, whole.labels, -1))
    np.testing.assert_array_equal(
        learned(criterion, "laplace", hidden), learned(criterion, "laplace", whole.take(first))
    )


@every_criterion
@pytest.mark.parametrize("weight", [1e-8, 1e10])
def test_no_weight_is_too_small_or_too_large(criterion: str, weight: float) -> None:
    rates = learned(criterion, "gaussian", telling(60, weight))
    assert np.isfinite(rates).all()
    assert (rates > 0).all()

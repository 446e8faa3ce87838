"""Cells judged by the rest of their row, against SciPy's own conditionals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture.cells import (
    CellLaw,
    JudgedCells,
    judge_cells,
    leave_one_cell_out,
    masked_cells,
    without,
)
from bayesrbf.mixture.missing import sample
from bayesrbf.mixture.points import component_covariances


def mixture(
    covariance_type: str, levels: tuple[int, ...] = (), d: int = 3, shared_covariance: bool = False
) -> tuple[MixtureSpecification, MixtureParameters]:
    """Two classes, three components."""
    rng = np.random.default_rng(0)
    specification = MixtureSpecification(d, levels, (0, 0, 1), covariance_type, shared_covariance)  # type: ignore[arg-type]
    groups = specification.group_sizes.size
    if specification.shape == "full":
        factors = np.tril(rng.normal(size=(groups, d, d)), -1) * 0.5
        factors += np.eye(d) * rng.uniform(0.7, 1.5, (groups, 1, d))
    else:
        factors = rng.uniform(0.7, 1.5, (groups, d))
    theta = tuple(rng.dirichlet(np.ones(n), size=3) for n in levels)
    point = MixtureParameters(
        np.array([0.3, 0.7]), np.array([0.4, 0.6, 1.0]), rng.normal(size=(3, d)), factors, theta
    )
    return specification, point


def law_of(specification: MixtureSpecification, point: MixtureParameters) -> CellLaw:
    return CellLaw(point, specification, np.asarray, prob=0.8)


def rows(levels: tuple[int, ...] = (), d: int = 3, n: int = 12) -> Observations:
    """Rows with holes, labels known and hidden."""
    rng = np.random.default_rng(1)
    real = np.where(rng.random((n, d)) < 0.3, np.nan, 2 * rng.normal(size=(n, d)))
    codes = np.column_stack(
        [np.zeros((n, 0), dtype=int), *(rng.integers(-1, size, n) for size in levels)]
    )
    return Observations(real, codes, rng.integers(-1, 2, n), np.ones(n))


def by_hand(
    row: Observations, specification: MixtureSpecification, point: MixtureParameters, j: int
) -> tuple[float, float, float, float]:
    """Tail, mean, and central interval of 80 %, each density by SciPy."""
    real, codes, label = row.real[0], row.codes[0], row.labels[0]
    seen = [i for i in np.flatnonzero(~np.isnan(real)) if i != j]
    weights, means, variances = [], [], []
    for k, c in enumerate(specification.component_class):
        covariance = component_covariances(point, specification)[k]
        weight = point.class_probabilities[c] * point.weights[k] * (label < 0 or label == c)
        mean, variance = point.means[k, j], covariance[j, j]
        if seen:
            joint = covariance[np.ix_(seen, seen)]
            weight *= multivariate_normal(point.means[k, seen], joint).pdf(real[seen])
            gain = np.linalg.solve(joint, covariance[seen, j])
            mean = mean + gain @ (real[seen] - point.means[k, seen])
            variance = variance - gain @ covariance[seen, j]
        for i, theta in enumerate(point.category_probabilities):
            weight *= theta[k, codes[i]] if codes[i] >= 0 else 1.0
        weights.append(weight)
        means.append(mean)
        variances.append(variance)
    w, m, v = np.array(weights) / np.sum(weights), np.array(means), np.array(variances)

    def below(x: float) -> float:
        return float(w @ norm.cdf(x, m, np.sqrt(v)))

    lower = brentq(lambda x: below(x) - 0.1, -60.0, 60.0)
    upper = brentq(lambda x: below(x) - 0.9, -60.0, 60.0)
    return 2 * min(below(real[j]), 1 - below(real[j])), float(w @ m), lower, upper


@pytest.mark.parametrize(
    ("covariance_type", "shared_covariance", "levels"),
    [("full", False, ()), ("full", True, (3,)), ("tied", False, ()), ("diag", False, (2, 4))],
)
def test_real_cells_equal_scipy(
    covariance_type: str, shared_covariance: bool, levels: tuple[int, ...]
) -> None:
    specification, point = mixture(covariance_type, levels, shared_covariance=shared_covariance)
    table = rows(levels)
    found = leave_one_cell_out(table, law_of(specification, point))
    for n, j in np.ndindex(table.real.shape):
        if np.isnan(table.real[n, j]):
            assert np.isnan([found.tail[n, j], found.expected[n, j], found.lower[n, j]]).all()
            continue
        expected = by_hand(table.take(np.array([n])), specification, point, j)
        actual = [a[n, j] for a in (found.tail, found.expected, found.lower, found.upper)]
        assert actual == pytest.approx(list(expected), rel=1e-6, abs=1e-8)


def test_level_tails_sum_what_is_as_improbable() -> None:
    specification, point = mixture("diag", (4,), d=1)
    table = rows((4,), d=1, n=30)
    found = leave_one_cell_out(table, law_of(specification, point))
    hidden = leave_one_cell_out(
        replace(table, codes=np.full_like(table.codes, -1)), law_of(specification, point)
    )
    assert np.isnan(hidden.level_log_tail).all()
    for n in np.flatnonzero(table.codes[:, 0] >= 0):
        p = np.array([_level_weight(table, specification, point, n, v) for v in range(4)])
        p /= p.sum()
        own = p[table.codes[n, 0]]
        assert np.exp(found.level_log_tail[n, 0]) == pytest.approx(p[p <= own * (1 + 1e-9)].sum())
        assert found.level_expected[n, 0] == p.argmax()


def _level_weight(
    table: Observations,
    specification: MixtureSpecification,
    point: MixtureParameters,
    n: int,
    level: int,
) -> float:
    """p(row n with another level), up to a constant."""
    total = 0.0
    for k, c in enumerate(specification.component_class):
        if table.labels[n] in (-1, c):
            x, sd = table.real[n, 0], 1 / point.precisions_cholesky[k, 0]
            density = 1.0 if np.isnan(x) else norm.pdf(x, point.means[k, 0], sd)
            weight = point.class_probabilities[c] * point.weights[k] * density
            total += weight * point.category_probabilities[0][k, level]
    return float(total)


def test_tails_of_rows_from_the_model_are_uniform() -> None:
    """Tails are uniform for rows of the model, and not for rows whose cells were shuffled."""

    specification, point = mixture("full")
    table, _ = sample(point, specification, 4000, np.random.default_rng(2))
    tails = leave_one_cell_out(table, law_of(specification, point)).tail.ravel()
    for p in (0.01, 0.1, 0.5):
        assert (tails < p).mean() == pytest.approx(p, abs=4.9 * np.sqrt(p * (1 - p) / 4000))
    rng = np.random.default_rng(3)
    shuffled = np.column_stack([rng.permutation(column) for column in table.real.T])
    wrong = leave_one_cell_out(replace(table, real=shuffled), law_of(specification, point)).tail
    assert (wrong < 0.01).mean() > 0.05


def test_far_cells_have_a_tail_and_no_nan() -> None:
    specification, point = mixture("full")
    table = Observations(
        np.array([[1e6, 0.0, 0.0], [-1e6, np.nan, np.nan]]),
        np.zeros((2, 0), dtype=int),
        np.full(2, -1),
        np.ones(2),
    )
    found = leave_one_cell_out(table, law_of(specification, point))
    assert found.tail[0, 0] == found.tail[1, 0] == 0
    assert np.isfinite(found.log_tail[~np.isnan(table.real)]).all()
    further = leave_one_cell_out(replace(table, real=table.real * 2), law_of(specification, point))
    assert (further.log_tail[[0, 1], 0] < found.log_tail[[0, 1], 0]).all()
    assert np.isfinite(found.expected[~np.isnan(table.real)]).all()


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_cells_left_out_one_at_a_time_are_hidden_cells(covariance_type: str) -> None:
    """The quick way for one cell a time, and the way for any set of cells, are one law."""
    specification, point = mixture(covariance_type, (3, 2))
    table, law = rows((3, 2)), law_of(specification, point)
    found = leave_one_cell_out(table, law)
    for j in range(3):
        hidden = np.zeros(table.real.shape, dtype=bool)
        hidden[:, j] = True
        alone = masked_cells(without(table, hidden, table.codes < -1), table, law)
        np.testing.assert_allclose(alone.log_tail[:, j], found.log_tail[:, j], atol=1e-9)
        np.testing.assert_allclose(alone.expected[:, j], found.expected[:, j], atol=1e-9)
        assert np.isnan(np.delete(alone.log_tail, j, axis=1)).all()
    for j in range(2):
        hidden = np.zeros(table.codes.shape, dtype=bool)
        hidden[:, j] = True
        alone = masked_cells(without(table, np.zeros((12, 3), bool), hidden), table, law)
        np.testing.assert_allclose(
            alone.level_log_tail[:, j], found.level_log_tail[:, j], atol=1e-12
        )
        np.testing.assert_array_equal(alone.level_expected[:, j], found.level_expected[:, j])


def test_an_error_does_not_spoil_the_verdict_on_its_neighbours() -> None:
    """Three columns that are nearly equal: without a second look all cells of the row look odd."""
    factor = np.linalg.cholesky(np.linalg.inv(0.98 * np.ones((3, 3)) + 0.02 * np.eye(3)))
    point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 3)), factor[None], ())
    law = law_of(MixtureSpecification(3, (), (0,)), point)
    real = np.array([[1.0, 1.1, 9.0], [1.0, 1.1, 1.05], [1.0, np.nan, -5.0]])
    table = Observations(real, np.zeros((3, 0), int), np.full(3, -1), np.ones(3))
    first, judged = leave_one_cell_out(table, law), judge_cells(table, law)
    assert (first.tail[0] < 1e-3).all()
    assert (judged.tail[0, :2] > 0.1).all()
    assert judged.tail[0, 2] < 1e-12
    assert judged.expected[0, 2] == pytest.approx(1.05, abs=0.1)
    for name, value in vars(judged).items():
        np.testing.assert_array_equal(value[1], getattr(first, name)[1])
    assert np.isnan(judged.log_tail[2, 1])
    assert isinstance(judged, JudgedCells)

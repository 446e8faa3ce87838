"""The compiled E-step: equal to NumPy's, and the laws of its tiles, codes and threads."""

from __future__ import annotations

import itertools
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.base.compiled import NEGLIGIBLE
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture import compiled as tiles
from bayesrbf.mixture.compiled import LOWEST, PACK_LEVELS, expect, log_tables, pack, unpack_counts
from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.expectation import ArrayExpectation
from bayesrbf.mixture.statistics import Statistics, sum_by_group
from tests.cases import COVARIANCES, random_point, structure, table

LEVELS = (2, 3, 2, 70, 4)
"""Three columns that share a pack, one too wide for any, and one after it."""

FEW = [
    case
    if case in (("full", False), ("diag", True))
    else pytest.param(*case, marks=pytest.mark.slow)
    for case in COVARIANCES
]
CLASSES = {1: (0,), 3: (0, 0, 1), 8: (0, 1, 1, 1, 1, 1, 2, 2)}


def harder(observations: Observations) -> Observations:
    """The rows with one that misses everything, one without weight, one far away."""
    real, codes = observations.real.copy(), observations.codes.copy()
    real[-1:], codes[-1:] = np.nan, -1
    real[:1] *= 30
    weights = observations.weights.copy()
    weights[1:2] = 0.0
    return replace(observations, real=real, codes=codes, weights=weights)


def assert_near(actual: np.ndarray, expected: np.ndarray, rtol: float = 1e-12) -> None:
    """Equal relative to the largest entry."""
    size = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * size)


def assert_same_statistics(
    actual: Statistics,
    expected: Statistics,
    specification: MixtureSpecification,
    rtol: float = 1e-12,
) -> None:
    """Assert that all sums and the log densities of all rows agree."""
    for name in ("counts", "first", "log_likelihood", "pointwise"):
        assert_near(getattr(actual, name), getattr(expected, name), rtol)
    second = (sum_by_group(one.second, specification) for one in (actual, expected))
    assert_near(*second, rtol)
    for ours, theirs in zip(actual.category_counts, expected.category_counts, strict=True):
        assert_near(ours, theirs, rtol)


def assert_bit_equal(actual: Statistics, expected: Statistics) -> None:
    """Assert that all sums and the log densities of all rows agree."""
    for name in ("counts", "first", "second", "pointwise"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))
    assert actual.log_likelihood == expected.log_likelihood
    for ours, theirs in zip(actual.category_counts, expected.category_counts, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def assert_equals_reference(
    specification: MixtureSpecification,
    observations: Observations,
    point: MixtureParameters | None = None,
    rtol: float = 1e-12,
) -> None:
    """Compiled and NumPy E-step agree on statistics and on the log joint."""
    point = random_point(specification) if point is None else point
    ours = CompiledExpectation(observations, specification)
    theirs = ArrayExpectation(observations, specification)
    assert_same_statistics(ours.statistics(point), theirs.statistics(point), specification, rtol)
    assert_near(ours.component_log_joint(point), theirs.component_log_joint(point), rtol)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), FEW)
def test_compiled_equals_numpy(
    covariance_type: str, shared_covariance: bool, missing: float
) -> None:
    for d, k, levels in itertools.product((1, 2, 5, 13), CLASSES, ((), LEVELS)):
        specification = structure(covariance_type, shared_covariance, CLASSES[k], d, levels)
        observations = table(specification, n_obs=150, missing=missing, seed=d)
        if missing:
            observations = harder(observations)
        assert_equals_reference(specification, observations)


@pytest.mark.parametrize("n_features", [4, 5, 6, 7, 30])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_rows_that_belong_to_one_component(n_features: int, missing: float) -> None:
    specification = structure(classes=(0, 0, 0, 1), n_features=n_features, levels=(3,))
    observations = table(specification, 700, missing, seed=1)
    rng = np.random.default_rng(0)
    point = random_point(specification)
    centres = np.array([-1.0, 0.0, 0.1, 1.0])[:, None] * rng.choice([-15.0, 15.0], n_features)
    owner = rng.choice(4, 700, p=[0.05, 0.5, 0.35, 0.1])
    observations = replace(
        observations,
        real=observations.real + centres[owner],
        labels=np.where(rng.random(700) < 0.5, -1, owner // 3),
        weights=np.where(rng.random(700) < 0.1, 0.0, observations.weights),
    )
    point = replace(point, means=point.means + centres)
    log_joint = CompiledExpectation(observations, specification).component_log_joint(point)
    near = log_joint > log_joint.max(axis=1, keepdims=True) + NEGLIGIBLE
    assert 0.2 < near.mean() < 0.8
    assert_equals_reference(specification, observations, point)


@pytest.mark.parametrize("n_obs", [1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 300])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_tile_boundaries(n_obs: int, missing: float) -> None:
    specification = structure(classes=(0, 0), n_features=3, levels=(2, 3))
    assert_equals_reference(specification, table(specification, n_obs, missing, seed=n_obs))


@pytest.mark.parametrize("shape", ["full", "diag"])
def test_categories_alone_and_no_rows(shape: str) -> None:
    specification = structure(shape, classes=(0, 0, 1), n_features=0, levels=LEVELS)
    observations = table(specification, 100)
    assert_equals_reference(specification, observations)
    none = CompiledExpectation(observations.take(np.arange(0)), specification)
    statistics = none.statistics(random_point(specification))
    assert statistics.counts.sum() == 0
    assert statistics.log_likelihood == 0


def test_rows_of_few_patterns_and_of_many() -> None:
    specification = structure(classes=(0, 0, 1), n_features=6)
    observations = table(specification, 900, missing=0.0)
    real = observations.real.copy()
    real[:300, [1, 4]] = np.nan
    real[300:500, :5] = np.nan
    real[500:][np.random.default_rng(0).random((400, 6)) < 0.4] = np.nan
    observations = replace(observations, real=real)
    plan = CompiledExpectation(observations, specification).tiles
    assert ((plan.n_missing > 0) & (plan.pattern >= 0)).any()
    assert ((plan.n_missing > 0) & (plan.pattern < 0)).any()
    assert_equals_reference(specification, observations)


def test_nearly_singular_covariances() -> None:
    specification = structure(classes=(0, 0), n_features=4)
    observations = table(specification, 200, missing=0.3)
    point = random_point(specification)
    stretched = point.precisions_cholesky * np.array([1e5, 1.0, 1.0, 1e-3])[:, None]
    point = replace(point, precisions_cholesky=stretched)
    assert_equals_reference(specification, observations, point, rtol=1e-10)


@pytest.mark.parametrize("width", tiles.WIDTHS)
def test_every_width_gives_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "WIDTHS", (width,))
    specification = structure(classes=(0, 0, 1), n_features=5, levels=(3,))
    observations = table(specification, 300, missing=0.4)
    plan = CompiledExpectation(observations, specification).tiles
    assert plan.cells.shape[2] == width
    assert_equals_reference(specification, observations)


def test_scratch_is_bounded() -> None:
    specification = structure(classes=(0,) * 100, n_features=40)
    observations = table(specification, 300, missing=0.5)
    plan = CompiledExpectation(observations, specification).tiles
    most = plan.n_missing.max()
    per_position = 100 * (most * (most + 1) // 2 + 40)
    assert tiles.WIDEST_WITH_HOLES * per_position > tiles.SCRATCH_CELLS
    assert plan.cells.shape[2] * per_position <= tiles.SCRATCH_CELLS


@pytest.mark.parametrize(("shape", "missing"), [("full", 0.0), ("full", 0.3), ("diag", 0.3)])
def test_threads_change_no_bit(shape: str, missing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "CHUNK_WORK", 20_000.0)
    specification = structure(shape, classes=(0, 0, 1), n_features=4, levels=(3, 2))
    observations = table(specification, 2_000, missing)
    point = random_point(specification)
    alone = CompiledExpectation(observations, specification, n_threads=1)
    assert len(alone._chunks) == tiles.MAX_CHUNKS + 1
    for n_threads in (2, 4):
        together = CompiledExpectation(observations, specification, n_threads=n_threads)
        for _ in range(3):
            assert_bit_equal(together.statistics(point), alone.statistics(point))
        np.testing.assert_array_equal(
            together.component_log_joint(point), alone.component_log_joint(point)
        )
    assert_equals_reference(specification, observations)


def test_threads_neither_travel_nor_survive_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "CHUNK_WORK", 20_000.0)
    specification = structure(classes=(0, 0), n_features=4)
    expectation = CompiledExpectation(table(specification, 2_000), specification, n_threads=2)
    point = random_point(specification)
    before = expectation.statistics(point)
    copy = pickle.loads(pickle.dumps(expectation))
    assert_bit_equal(copy.statistics(point), before)
    pool = expectation._pool
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert_bit_equal(expectation.statistics(point), before)
    assert expectation._pool is not pool


def test_the_order_of_rows_does_not_matter() -> None:
    specification = structure(n_features=4, levels=(3, 2))
    observations = table(specification, 500)
    point = random_point(specification)
    order = np.random.default_rng(1).permutation(500)
    straight = CompiledExpectation(observations, specification).statistics(point)
    shuffled = CompiledExpectation(observations.take(order), specification).statistics(point)
    expected = replace(straight, pointwise=straight.pointwise[order])
    assert_same_statistics(shuffled, expected, specification)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_a_weight_is_a_number_of_rows(covariance_type: str) -> None:
    specification = structure(covariance_type, n_features=4, levels=(3,))
    observations = table(specification, 200)
    point = random_point(specification)
    times = np.random.default_rng(2).integers(0, 4, 200)
    weighted = replace(observations, weights=times.astype(float))
    repeated = replace(observations, weights=np.ones(200)).take(np.repeat(np.arange(200), times))
    once = CompiledExpectation(weighted, specification).statistics(point)
    each = CompiledExpectation(repeated, specification).statistics(point)
    once = replace(once, pointwise=np.repeat(once.pointwise, times))
    assert_same_statistics(once, each, specification)


def test_labels_restrict_components() -> None:
    specification = structure(classes=(0, 1, 1, 2), n_features=2)
    observations = table(specification, 90, hidden=0.0)
    only_second = observations.take(observations.labels == 1)
    statistics = CompiledExpectation(only_second, specification).statistics(
        random_point(specification)
    )
    assert statistics.counts[[0, 3]].sum() == 0
    np.testing.assert_allclose(statistics.counts.sum(), only_second.weights.sum(), rtol=1e-12)


@pytest.mark.parametrize("size", [1e3, 1e30, 1e160])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_rows_far_away_leave_no_nan(covariance_type: str, missing: float, size: float) -> None:
    specification = structure(covariance_type, classes=(0, 0), n_features=3)
    observations = table(specification, 70, missing)
    real = observations.real.copy()
    real[::10] *= size
    far = replace(observations, real=real)
    point = random_point(specification)
    compiled = CompiledExpectation(far, specification)
    statistics = compiled.statistics(point)
    assert np.isfinite(statistics.pointwise).all()
    assert (compiled.component_log_joint(point) >= LOWEST).all()
    np.testing.assert_allclose(statistics.counts.sum(), far.weights.sum(), rtol=1e-12)
    if size < 1e100:
        assert np.isfinite(statistics.second).all()
        expected = ArrayExpectation(far, specification).statistics(point)
        assert_same_statistics(statistics, expected, specification, rtol=1e-10)


def test_probabilities_of_zero() -> None:
    specification = structure("diag", classes=(0, 0), n_features=0, levels=(2,))
    point = random_point(specification)
    point = replace(
        point,
        weights=np.array([1.0, 0.0]),
        category_probabilities=(np.array([[1.0, 0.0], [0.5, 0.5]]),),
    )
    codes = np.array([[0], [1], [-1]])
    rows = Observations(np.empty((3, 0)), codes, np.zeros(3, int), np.ones(3))
    statistics = CompiledExpectation(rows, specification).statistics(point)
    np.testing.assert_allclose(statistics.pointwise[[0, 2]], 0.0, atol=1e-15)
    assert statistics.pointwise[1] < 0.9 * LOWEST
    np.testing.assert_allclose(statistics.counts, [2.5, 0.5])  # the impossible row is shared


@pytest.mark.parametrize("by_pattern", [True, False])
def test_tiles_hold_every_row_once(by_pattern: bool) -> None:
    specification = structure("full" if by_pattern else "diag", n_features=5)
    observations = table(specification, 400)
    packed = np.arange(400, dtype=np.int32)[:, None]
    plan = tiles.plan_tiles(observations, packed, specification)
    used = np.arange(plan.rows.shape[1]) < plan.sizes[:, None]
    assert sorted(plan.rows[used]) == list(range(400))
    np.testing.assert_array_equal(plan.weights[used], observations.weights[plan.rows[used]])
    assert (plan.weights[~used] == 0).all()
    np.testing.assert_array_equal(plan.codes[:, 0, :], plan.rows)
    cells = plan.cells.transpose(0, 2, 1)
    np.testing.assert_array_equal(cells, observations.real[plan.rows])
    assert (observations.labels[plan.rows] == observations.labels[plan.rows[:, :1]]).all()
    missing = np.isnan(cells)
    if by_pattern:
        assert (missing.sum(axis=2) == plan.n_missing[:, None]).all()
        same = (missing == missing[:, :1]).all(axis=(1, 2))
        np.testing.assert_array_equal(plan.pattern >= 0, same)
    edges = tiles.balanced_chunks(plan, specification)
    assert edges[0] == 0
    assert edges[-1] == plan.n_tiles
    assert (np.diff(edges) >= 0).all()


def test_more_columns_than_bits_of_a_word() -> None:
    specification = structure(classes=(0,), n_features=70)
    observations = table(specification, 60, missing=0.02)
    plan = tiles.plan_tiles(observations, np.empty((60, 0), np.int32), specification)
    missing = np.isnan(plan.cells).transpose(0, 2, 1)
    same = (missing == missing[:, :1]).all(axis=(1, 2))
    np.testing.assert_array_equal(plan.pattern >= 0, same)
    point = random_point(specification)
    mild = np.eye(70) + 0.02 * np.tril(point.precisions_cholesky, -1)
    assert_equals_reference(specification, observations, replace(point, precisions_cholesky=mild))


def test_packs_are_small_and_say_what_they_hold() -> None:
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(-1, n, 200) for n in LEVELS])
    packing = pack(codes, LEVELS)
    assert packing.codes.shape[1] < len(LEVELS)
    assert len(packing.members) <= max(PACK_LEVELS, max(LEVELS) + 1) * packing.codes.shape[1]
    probabilities = tuple(rng.dirichlet(np.ones(n), 3) for n in LEVELS)
    classes, weights = rng.dirichlet(np.ones(3), 2)
    constants, by_code = log_tables(classes, weights, probabilities, packing.members)
    np.testing.assert_allclose(constants, np.log(classes) + np.log(weights), rtol=1e-12)
    log_joint = by_code[packing.codes].sum(axis=1)
    expected = np.zeros((200, 3))
    for column, p in enumerate(probabilities):
        seen = codes[:, column] >= 0
        expected[seen] += np.log(p[:, codes[seen, column]].T)
    np.testing.assert_allclose(log_joint, expected, rtol=1e-12)
    counts = np.bincount(packing.codes.ravel(), minlength=len(packing.members))
    by_level = np.zeros((1, sum(LEVELS)))
    unpack_counts(counts[:, None].astype(float), packing.members, by_level)
    singles = [np.bincount(codes[codes[:, j] >= 0, j], minlength=n) for j, n in enumerate(LEVELS)]
    np.testing.assert_array_equal(by_level[0], np.concatenate(singles))


def test_nothing_is_compiled_for_parameters_that_are_read_only() -> None:
    """Those of a loaded model are; compiling for them took as long as a first fit."""
    specification = structure(levels=(3,))
    observations, point = table(specification, 20), random_point(specification)
    expectation = CompiledExpectation(observations, specification)
    before = expectation.statistics(point)
    n_compiled = len(expect.signatures)
    for name in ("class_probabilities", "weights", "means", "precisions_cholesky"):
        getattr(point, name).flags.writeable = False
    assert_bit_equal(expectation.statistics(point), before)
    assert len(expect.signatures) == n_compiled

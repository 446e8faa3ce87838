"""Newton's method and the whitening that makes the dual form as small as its rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.base.priors import Status
from bayesrbf.families.sdgm import evidence as mode_search
from bayesrbf.families.sdgm import evidence as sdgm_ard
from bayesrbf.families.sdgm.evidence import (
    EvidenceProblem,
    Settings,
    State,
    factor_features,
    find_mode,
    inverse_curvature,
    maximise_evidence,
    spread_of_components,
)
from bayesrbf.families.sdgm.posterior import (
    complete_curvature,
    expect,
    quadratic_basis,
    to_logits,
    weight_gradient,
)
from bayesrbf.families.sdgm.records import CompletedRows, KernelBasis

N = 60


def rows(seed: int = 0, n: int = N) -> CompletedRows:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    inside = (points**2).sum(axis=1) + 0.4 * rng.normal(size=n) < 1.4
    return CompletedRows(
        points, np.arange(n), np.eye(2, dtype=bool)[inside.astype(int)], np.ones(n)
    )


def start(n_features: int, seed: int = 1) -> State:
    rng = np.random.default_rng(seed)
    n_weights = 3 * n_features
    return State(
        np.array([0, 0, 1, 1]),
        np.array([0.3, 0.7, 0.5, 0.5]),
        np.repeat(np.arange(3), n_features),
        np.tile(np.arange(n_features), 3),
        0.1 * rng.normal(size=n_weights),
        rng.gamma(2.0, 1.0, n_weights),
    )


def dual(data: CompletedRows) -> np.ndarray:
    return KernelBasis("polynomial", data.points).at(data.points)


def test_a_rise_that_rounding_hides_is_taken() -> None:
    """A step of 1e-9 raises the log posterior by 1e-18: no sum of rows shows it."""
    data, rng = rows(), np.random.default_rng(0)
    problem = EvidenceProblem(data, factor_features(dual(data), True))
    state = start(problem.factored.features.shape[1])
    whitened, labels = state.whitened(problem.factored), problem.labels(state.component_class)
    proportions = np.log(state.proportions)
    place = whitened.coordinates(state.coefficients)
    for _ in range(2):
        place = find_mode(
            whitened.designs, labels, proportions, place, tol=1e-24, max_steps=200
        ).coordinates
    for _ in range(20):
        near = place + 1e-9 * rng.normal(size=place.size)
        found = find_mode(whitened.designs, labels, proportions, near, tol=1e-22, max_steps=200)
        np.testing.assert_allclose(found.coordinates, place, atol=1e-11)


def test_the_mode_has_no_gradient_and_the_reduced_mode_is_the_same() -> None:
    """The rank of the kernel's features is 6: 61 weights a component become 6 coordinates."""
    data = rows()
    phi = dual(data)
    state = start(phi.shape[1])
    found = []
    for reduce in (True, False):
        problem = EvidenceProblem(data, factor_features(phi, reduce))
        whitened, labels = state.whitened(problem.factored), problem.labels(state.component_class)
        mode = find_mode(
            whitened.designs,
            labels,
            np.log(state.proportions),
            whitened.coordinates(state.coefficients),
            tol=1e-20,
            max_steps=200,
        )
        weights = whitened.weights(mode.coordinates)
        designs = tuple(phi[:, state.feature[state.component == k]] for k in range(4))
        expectation = expect(labels, to_logits(designs, weights, np.log(state.proportions)))
        pull = weight_gradient(designs, expectation.logit_gradient) - state.precisions * weights
        np.testing.assert_allclose(pull, 0, atol=1e-6)
        curvature = complete_curvature(designs, labels, expectation) + np.diag(state.precisions)
        inverse, log_determinant = inverse_curvature(curvature)
        mine, mine_determinant = inverse_curvature(
            complete_curvature(whitened.designs, labels, mode.expectation)
            + np.eye(mode.coordinates.size)
        )
        shared = log_determinant - np.log(state.precisions).sum()
        assert mine_determinant == pytest.approx(shared, rel=1e-7)
        np.testing.assert_allclose(whitened.covariance(mine), inverse, atol=1e-7)
        gamma = 1 - state.precisions * np.diag(inverse)
        blocks, again = spread_of_components(whitened.designs, labels, mode.expectation, wide=False)
        assert again == mine_determinant
        np.testing.assert_allclose(whitened.determined(blocks), gamma, atol=1e-7)
        found.append((mode.coordinates.size, weights, mode.log_posterior))
    assert found[0][0] == 18
    assert found[1][0] == 183
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-7)
    assert found[0][2] == pytest.approx(found[1][2], abs=1e-8)


def test_every_step_climbs_from_a_point_that_curves_upwards() -> None:
    data = rows()
    phi = quadratic_basis(2, ()).at(data.points)
    state = start(phi.shape[1])
    problem = EvidenceProblem(data, factor_features(phi, reduce=False))
    whitened, labels = state.whitened(problem.factored), problem.labels(state.component_class)
    here, values = whitened.coordinates(30 * state.coefficients), []
    for _ in range(12):
        mode = find_mode(
            whitened.designs, labels, np.log(state.proportions), here, tol=1e-12, max_steps=1
        )
        here = mode.coordinates
        values.append(mode.log_posterior)
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0] + 1


@pytest.mark.parametrize("wide", [False, True])
def test_type_two_ends_where_the_updates_stand_still(
    wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide or not: what is left when the rest has settled has one curvature."""
    if wide:
        monkeypatch.setattr(mode_search, "WIDE", 0.0)
    data = rows(n=150)
    phi = quadratic_basis(2, ()).at(data.points)
    state = replace(start(6), precisions=np.ones(18))
    problem = EvidenceProblem(data, factor_features(phi, reduce=False))
    run = maximise_evidence(problem, state, Settings(tol=1e-7, max_iter=3000, alpha_max=1e5))
    assert run.status is Status.CONVERGED
    found = run.parameters
    assert 0 < found.n_weights < 18
    assert run.n_indefinite == 0
    np.testing.assert_allclose(
        np.bincount(found.component_class, weights=found.proportions), 1.0, rtol=1e-12
    )
    designs = tuple(phi[:, found.feature[found.component == k]] for k in range(found.n_components))
    labels = problem.labels(found.component_class)
    logits = to_logits(designs, found.coefficients, np.log(found.proportions))
    expectation = expect(labels, logits)
    pull = (
        weight_gradient(designs, expectation.logit_gradient) - found.precisions * found.coefficients
    )
    np.testing.assert_allclose(pull, 0, atol=1e-7)
    complete = complete_curvature(designs, labels, expectation) + np.diag(found.precisions)
    gamma = 1 - found.precisions * np.diag(np.linalg.inv(complete))
    np.testing.assert_allclose(gamma / found.coefficients**2, found.precisions, rtol=1e-3)
    assert len(run.trace.evidence) == len(run.trace.n_weights) == len(run.trace.n_components)


@pytest.mark.parametrize("max_iter", [1, 500])
def test_weights_beyond_memory_are_refused_however_a_run_ends(
    max_iter: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a run leaves its wide phase, at rest or out of updates."""
    monkeypatch.setattr(mode_search, "WIDE", 0.0)
    data = rows(n=150)
    phi = quadratic_basis(2, ()).at(data.points)
    problem = EvidenceProblem(data, factor_features(phi, reduce=False))
    state = replace(start(6), precisions=np.ones(18))
    monkeypatch.setattr(mode_search, "MAX_COORDINATES", 2)
    with pytest.raises(ValueError, match="weights are left, beyond the 2"):
        maximise_evidence(problem, state, Settings(tol=1e-3, max_iter=max_iter, alpha_max=1e5))


def test_without_weights_there_is_nothing_to_climb() -> None:
    data = rows()
    phi = quadratic_basis(2, ()).at(data.points)
    none = np.empty(0)
    nowhere = np.empty(0, dtype=np.intp)
    state = State(np.array([0, 1]), np.ones(2), nowhere, nowhere, none, none)
    problem = EvidenceProblem(data, factor_features(phi, reduce=False))
    run = maximise_evidence(problem, state, Settings(tol=1e-3, max_iter=5, alpha_max=1e5))
    assert run.status is Status.CONVERGED
    assert run.log_posterior == pytest.approx(N * np.log(0.5))


@pytest.mark.parametrize("precision", [0.01, 1.0, 300.0])
@pytest.mark.parametrize(("s", "q"), [(2.0, 3.0), (50.0, 7.5), (0.3, 0.7)])
def test_the_jump_is_the_maximum_of_the_evidence(precision: float, s: float, q: float) -> None:
    """One weight with the others held: log evidence in the sparsity s and the quality q."""
    grid = np.exp(np.linspace(-15, 15, 300_001))
    evidence = 0.5 * (np.log(grid / (grid + s)) + q**2 / (grid + s))
    determined, weight = s / (precision + s), q / (precision + s)
    best = sdgm_ard._best(precision, determined, precision * weight**2)
    assert np.log(best) == pytest.approx(np.log(grid[evidence.argmax()]), abs=2e-4)
    no_better = np.sqrt(0.9 * s) / (precision + s)
    assert sdgm_ard._best(precision, determined, precision * no_better**2) == np.inf


def test_jumps_end_where_the_slow_steps_end(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows(n=150)
    phi = quadratic_basis(2, ()).at(data.points)
    problem = EvidenceProblem(data, factor_features(phi, reduce=False))
    state = replace(start(6), precisions=np.ones(18))
    ends = []
    for settled in (sdgm_ard.SETTLED, -1.0):
        monkeypatch.setattr(sdgm_ard, "SETTLED", settled)
        ends.append(
            maximise_evidence(problem, state, Settings(tol=1e-5, max_iter=3000, alpha_max=1e5))
        )
    fast, slow = ends
    assert fast.status is slow.status is Status.CONVERGED
    assert len(fast.trace.evidence) <= len(slow.trace.evidence)
    assert fast.parameters.feature.tolist() == slow.parameters.feature.tolist()
    np.testing.assert_allclose(
        np.log(fast.parameters.precisions), np.log(slow.parameters.precisions), atol=0.01
    )

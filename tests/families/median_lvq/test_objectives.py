"""Exemplars: scores are values, searches rise, names and order do not matter."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bayesrbf import MedianLVQPrior
from bayesrbf.base.priors import Status
from bayesrbf.families.median_lvq.objectives import (
    ConditionalLikelihood,
    MarginSum,
    MovingExemplars,
    Objective,
    class_log_joint,
    class_margins,
)
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, SigmaPrior
from bayesrbf.families.median_lvq.search import (
    SearchSettings,
    climb,
    fit_exemplars,
    objective_of,
    point_of,
    random_exemplars,
    sweeps,
)
from tests.families.median_lvq.exemplar_tables import PRIOR, SIGMAS, moved, table

OBJECTIVES = [
    objective_of(table(), Prototypes(classes), sigma)
    for classes in ((0, 0, 1, 2, 2, 2), (0, 1, 2))
    for sigma in (*SIGMAS.values(), 0.05)  # the last so narrow that kernels would underflow
]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_score_is_the_value_after_the_swap(objective: Objective) -> None:
    start = random_exemplars(objective.rows, objective.prototypes, np.random.default_rng(1))
    for prototype, label in enumerate(objective.prototypes.classes):
        scores = objective.scorer(start).scores(prototype)
        values = [
            objective.value(moved(start, prototype, row))
            for row in objective.rows.candidates[label]
        ]
        np.testing.assert_allclose(scores, values, rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_values_are_what_a_loop_over_rows_gives(objective: Objective) -> None:
    rows, classes = objective.rows, np.asarray(objective.prototypes.classes)
    exemplars = random_exemplars(rows, objective.prototypes, np.random.default_rng(2))
    total = 0.0
    for n in np.flatnonzero(rows.labels >= 0):
        d, own = rows.values[n, exemplars], classes == rows.labels[n]
        if objective.sigma is None:
            near, far = d[own].min(), d[~own].min()
            total += rows.weights[n] * (far - near) / (far + near)
        else:
            logs = -d / objective.sigma**2
            total += rows.weights[n] * (logsumexp(logs[own]) - logsumexp(logs))
    if isinstance(objective, ConditionalLikelihood) and objective.prior:
        z = (np.log(objective.sigma) - PRIOR.location) / PRIOR.spread
        total -= z**2 / 2 + np.log(objective.sigma * PRIOR.spread * np.sqrt(2 * np.pi))
    assert objective.value(exemplars) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_where_the_bound_rises_the_objective_rises(objective: Objective) -> None:
    """And nothing rises above the best swap."""
    start = random_exemplars(objective.rows, objective.prototypes, np.random.default_rng(3))
    bound = objective.bound(start)
    for prototype, label in enumerate(objective.prototypes.classes):
        at = np.searchsorted(objective.rows.candidates[label], start[prototype])
        lower, exact = bound.scores(prototype), objective.scorer(start).scores(prototype)
        better = lower > lower[at] + 1e-9
        assert np.all(exact[better] > exact[at])


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_sweep_moves_by_the_scores(objective: Objective, drawn: bool) -> None:
    """In one compiled call or turn by turn, whether columns are kept or made anew."""
    rng = np.random.default_rng(5)
    start = random_exemplars(objective.rows, objective.prototypes, rng)
    order = rng.permutation(start.size)
    uniforms = rng.random(start.size) if drawn else None
    for prepare in (objective.scorer, objective.bound):
        moved = prepare(start).sweep(start, order, uniforms=uniforms)
        by_turn = MovingExemplars.sweep(prepare(start), start, order, uniforms=uniforms)
        assert moved.tolist() == by_turn.tolist()
        anew = replace(objective, rows=replace(objective.rows))
        anew.rows.__dict__["to_candidates"] = None
        scorers = [getattr(one, prepare.__name__)(start) for one in (objective, anew)]
        for prototype in range(start.size):
            scores = [scorer.scores(prototype) for scorer in scorers]
            np.testing.assert_allclose(*scores, rtol=1e-11)
        assert scorers[1].sweep(start, order, uniforms=uniforms).tolist() == moved.tolist()


def test_a_move_must_gain_more_than_rounding() -> None:
    objective = OBJECTIVES[0]
    start = random_exemplars(objective.rows, objective.prototypes, np.random.default_rng(6))
    order = np.arange(start.size)
    gain = objective.scorer(start).scores(0).max() - objective.value(start)
    assert gain > 0
    for tolerance, stays in ((1.01 * gain, True), (0.99 * gain, False)):
        moved = objective.scorer(start).sweep(start, order[:1], tolerance=tolerance)
        assert np.array_equal(moved, start) == stays


@given(
    seed=st.integers(0, 10_000),
    per_class=st.integers(1, 3),
    kind=st.sampled_from(sorted(SIGMAS)),
    width=st.floats(0.2, 3),
)
@settings(max_examples=40)
def test_swaps_are_never_below_the_generalised_em(
    seed: int, per_class: int, kind: str, width: float
) -> None:
    rows = table(20, 2, seed)
    prototypes = Prototypes((0,) * per_class + (1,) * per_class)
    objective = objective_of(rows, prototypes, width if kind == "rslvq" else SIGMAS[kind])
    start = random_exemplars(rows, prototypes, np.random.default_rng(seed))
    by_em = [objective.value(start)]
    found, exemplars, ended = sweeps(objective, start, by_em, 100, bounded=True)
    parameters, trace, status = climb(objective, start, 100)
    ends = (point_of(found, exemplars), by_em, ended), (parameters, trace.log_posterior, status)
    for point, way, how in ends:
        assert how is Status.CONVERGED
        assert np.all(np.diff(way) >= -1e-10 * np.abs(way[1:]))
        final = objective_of(rows, prototypes, point.sigma)
        if kind != "sampled":
            assert final.value(point.exemplars) == pytest.approx(way[-1], rel=1e-10)
    assert trace.log_posterior[-1] >= by_em[-1] - 1e-12


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_no_single_swap_betters_the_end(sigma: SigmaPrior | float | None) -> None:
    rows, prototypes = table(), Prototypes((0, 0, 1, 1, 2))
    fit = fit_exemplars(rows, prototypes, sigma, SearchSettings(n_init=3))
    objective = objective_of(rows, prototypes, fit.parameters.sigma)
    end = objective.value(fit.parameters.exemplars)
    for prototype in range(prototypes.number):
        scores = objective.scorer(fit.parameters.exemplars).scores(prototype)
        assert scores.max() <= end + 1e-9 * abs(end)


def test_wider_kernels_are_searched_first() -> None:
    """Each width begins where the last one ended, and only the last one is told."""
    rows, prototypes, wider = table(), Prototypes((0, 0, 1, 1, 2)), (3.0, 1.2)
    fit = fit_exemplars(rows, prototypes, 0.5, SearchSettings(n_init=1), wider=wider)
    at = random_exemplars(rows, prototypes, np.random.default_rng(0))
    for width in wider:
        at = climb(objective_of(rows, prototypes, width), at, 100)[0].exemplars
    assert fit.trace.log_posterior[0] == objective_of(rows, prototypes, 0.5).value(at)
    alone = fit_exemplars(rows, prototypes, 0.5, SearchSettings(), start=at)
    assert fit.parameters.exemplars.tolist() == alone.parameters.exemplars.tolist()
    assert fit.parameters.sigma == 0.5


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_names_of_classes_do_not_matter(sigma: SigmaPrior | float | None) -> None:
    rows, names, numbers = table(hidden=0), np.array([2, 0, 1]), np.array([2, 1, 3])
    renamed = Dissimilarities(
        rows.values,
        names[rows.labels],
        rows.weights,
        tuple(rows.candidates[c] for c in np.argsort(names)),
    )
    fits = [
        fit_exemplars(
            table_,
            Prototypes(tuple(np.repeat(np.arange(3), counts).tolist())),
            sigma,
            SearchSettings(),
        )
        for table_, counts in ((rows, numbers), (renamed, numbers[np.argsort(names)]))
    ]
    assert sorted(fits[0].parameters.exemplars) == sorted(fits[1].parameters.exemplars)
    np.testing.assert_allclose(fits[0].trace.log_posterior, fits[1].trace.log_posterior, rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_prototypes_of_a_class_are_exchangeable(objective: Objective) -> None:
    exemplars = random_exemplars(objective.rows, objective.prototypes, np.random.default_rng(4))
    other = exemplars.copy()
    for part in objective.prototypes.class_slices:
        other[part] = other[part][::-1]
    assert objective.value(exemplars) == pytest.approx(objective.value(other), rel=1e-13)


def test_float32_and_integers_are_judged_in_float64() -> None:
    rows = table()
    exact = Dissimilarities(np.round(rows.values * 16), rows.labels, rows.weights, rows.candidates)
    for dtype in (np.float32, np.uint16):
        other = Dissimilarities(
            exact.values.astype(dtype), rows.labels, rows.weights, rows.candidates
        )
        for sigma in (3.0, None):
            start = np.array([0, 1, 2])
            scores = [
                objective_of(table_, Prototypes((0, 1, 2)), sigma).scorer(start).scores(1)
                for table_ in (exact, other)
            ]
            np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("sigma", [1e-40, 1e40, 0.5, None, PRIOR])
@pytest.mark.parametrize("values", ["zero", "twins", "huge", "far"])
def test_degenerate_tables_stay_finite(sigma: SigmaPrior | float | None, values: str) -> None:
    rows = table(12, 2, hidden=0)
    matrix = {
        "zero": np.zeros((12, 12)),
        "twins": np.repeat(np.repeat(rows.values[:6, :6], 2, 0), 2, 1),
        "huge": rows.values * 1e150,
        "far": np.where(np.arange(12) == 3, 1e9, rows.values),
    }[values]
    odd = Dissimilarities(matrix, rows.labels, rows.weights, rows.candidates)
    prototypes = Prototypes((0, 0, 1))
    fit = fit_exemplars(odd, prototypes, sigma, SearchSettings())
    assert np.all(np.isfinite(fit.trace.log_posterior))
    columns = matrix[:, fit.parameters.exemplars]
    joint = (
        class_margins(columns, prototypes)
        if fit.parameters.sigma is None
        else class_log_joint(columns, prototypes, fit.parameters.sigma)
    )
    assert np.all(np.isfinite(joint))


def test_a_twin_of_a_row_changes_no_score_of_the_others() -> None:
    """Weight two is the row twice."""
    rows = table(15, 2, hidden=0)
    again = np.append(np.arange(15), 4)
    twice = Dissimilarities(
        rows.values[again][:, again],
        rows.labels[again],
        np.ones(16),
        tuple(np.flatnonzero(rows.labels[again] == c) for c in range(2)),
    )
    heavy = Dissimilarities(rows.values, rows.labels, 1.0 + (np.arange(15) == 4), rows.candidates)
    for sigma in (0.7, None):
        exemplars = np.array([0, 1])
        for prototype in range(2):
            scores = [
                objective_of(table_, Prototypes((0, 1)), sigma).scorer(exemplars).scores(prototype)
                for table_ in (heavy, twice)
            ]
            np.testing.assert_allclose(scores[0], scores[1][: scores[0].size], rtol=1e-12)


def test_one_class_and_more_prototypes_than_rows() -> None:
    rows = table(4, 1, hidden=0)
    for sigma in SIGMAS.values():
        fit = fit_exemplars(rows, Prototypes((0,) * 6), sigma, SearchSettings())
        assert fit.status is Status.CONVERGED


def test_max_iter_is_told() -> None:
    fit = fit_exemplars(table(40), Prototypes((0, 0, 1, 1, 2, 2)), 0.5, SearchSettings(max_iter=1))
    assert fit.status is Status.MAX_ITER
    assert fit.trace.n_iter == 2


def test_the_scale_is_the_median_of_distinct_rows() -> None:
    values = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 9.0, 0.0]])
    candidates = (np.arange(3),)
    rows = Dissimilarities(values, np.zeros(3, int), np.ones(3), candidates)
    assert rows.scale == 3.5
    assert Dissimilarities(0 * values, np.zeros(3, int), np.ones(3), candidates).scale == 1
    assert MedianLVQPrior(1.0, 2.0).resolve(4.0) == SigmaPrior(float(np.log(2)), 1.0)


def test_a_table_travels_without_what_can_be_made_again() -> None:
    rows = table()
    alone, values = len(pickle.dumps(rows)), rows.to_candidates
    assert values is not None
    assert len(pickle.dumps(rows)) == alone
    again = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(again.to_candidates, values)
    assert again.labelled.tolist() == rows.labelled.tolist()


def test_records_refuse_what_is_no_prior_and_no_order() -> None:
    with pytest.raises(ValueError, match=r"MedianLVQPrior.spread must be finite and greater"):
        MedianLVQPrior(spread=0.0)
    with pytest.raises(ValueError, match=r"in order from 0, such as \(0, 0, 1\)"):
        Prototypes((1, 0))


def test_margins_are_those_of_the_objective() -> None:
    rows, prototypes = table(hidden=0), Prototypes((0, 1, 1, 2))
    exemplars = np.array([0, 1, 5, 2])
    margins = class_margins(rows.values[:, exemplars], prototypes)
    own = margins[rows.labelled, rows.labels[rows.labelled]]
    np.testing.assert_allclose(MarginSum(rows, prototypes).pointwise(exemplars), own)
    nearest = rows.values[:, exemplars].argmin(axis=1)
    assert margins.argmax(axis=1).tolist() == np.array([0, 1, 1, 2])[nearest].tolist()

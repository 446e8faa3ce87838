"""Exemplars: scores are values, searches rise, and Gibbs draws the enumerated posterior."""

from __future__ import annotations

import itertools

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from bayesrbf.exemplars import Dissimilarities, MedianLVQPrior, Prototypes, SigmaPrior
from bayesrbf.numerics.median_lvq.exemplars import class_log_joint, class_margins
from bayesrbf.numerics.median_lvq.likelihood import ConditionalLikelihood
from bayesrbf.numerics.median_lvq.margin import MarginSum
from bayesrbf.numerics.median_lvq.objective import Objective
from bayesrbf.numerics.median_lvq.posterior import MedianLVQLogPosterior
from bayesrbf.numerics.median_lvq.sampling import ExemplarSweep, slice_step
from bayesrbf.numerics.median_lvq.search import (
    climb,
    fit_exemplars,
    objective_of,
    random_exemplars,
)
from bayesrbf.results import Status

PRIOR = SigmaPrior(-0.3, 0.5)
SIGMAS = {"rslvq": 0.7, "sampled": PRIOR, "glvq": None}


def table(
    n_obs: int = 30, n_classes: int = 3, seed: int = 0, hidden: int = 3, heaviest: float = 2.0
) -> Dissimilarities:
    """Asymmetric, no metric, weighted; hidden rows are candidates of every class."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_obs, 2))
    values = ((points[:, None] - points) ** 2).sum(-1) * (1 + rng.random((n_obs, n_obs)))
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_obs - n_classes)])
    labels[n_obs - hidden :] = -1
    candidates = tuple(np.flatnonzero((labels == c) | (labels < 0)) for c in range(n_classes))
    return Dissimilarities(values, labels, rng.uniform(0.25, 1, n_obs) * heaviest, candidates)


def moved(exemplars: np.ndarray, prototype: int, row: int) -> np.ndarray:
    result = exemplars.copy()
    result[prototype] = row
    return result


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
    ends = {name: climb(objective, start, name, 100) for name in ("swap", "gem")}
    for parameters, trace, status in ends.values():
        assert status is Status.CONVERGED
        rises = np.diff(trace.log_posterior)
        assert np.all(rises >= -1e-10 * np.abs(trace.log_posterior[1:]))
        final = objective_of(rows, prototypes, parameters.sigma)
        if kind != "sampled":
            assert final.value(parameters.exemplars) == pytest.approx(
                trace.log_posterior[-1], rel=1e-10
            )
    assert ends["swap"][1].log_posterior[-1] >= ends["gem"][1].log_posterior[-1] - 1e-12


@pytest.mark.parametrize("sigma", SIGMAS.values(), ids=SIGMAS)
def test_no_single_swap_betters_the_end(sigma: SigmaPrior | float | None) -> None:
    rows, prototypes = table(), Prototypes((0, 0, 1, 1, 2))
    fit = fit_exemplars(rows, prototypes, sigma, rng=np.random.default_rng(0), n_init=3)
    objective = objective_of(rows, prototypes, fit.parameters.sigma)
    end = objective.value(fit.parameters.exemplars)
    for prototype in range(prototypes.number):
        scores = objective.scorer(fit.parameters.exemplars).scores(prototype)
        assert scores.max() <= end + 1e-9 * abs(end)
    assert fit.trace.log_posterior[-1] == fit.restarts.max()
    assert fit.restarts.shape == (3,)


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
            rng=np.random.default_rng(0),
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
    for optimizer in ("swap", "gem"):
        fit = fit_exemplars(
            odd, prototypes, sigma, rng=np.random.default_rng(0), optimizer=optimizer
        )
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
        fit = fit_exemplars(rows, Prototypes((0,) * 6), sigma, rng=np.random.default_rng(0))
        assert fit.status is Status.CONVERGED


def test_max_iter_is_told() -> None:
    fit = fit_exemplars(
        table(40), Prototypes((0, 0, 1, 1, 2, 2)), 0.5, rng=np.random.default_rng(0), max_iter=1
    )
    assert fit.status is Status.MAX_ITER
    assert fit.trace.n_iter == 2


def test_the_scale_is_the_median_of_distinct_rows() -> None:
    values = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 9.0, 0.0]])
    candidates = (np.arange(3),)
    rows = Dissimilarities(values, np.zeros(3, int), np.ones(3), candidates)
    assert rows.scale == 3.5
    assert Dissimilarities(0 * values, np.zeros(3, int), np.ones(3), candidates).scale == 1
    assert MedianLVQPrior(1.0, 2.0).resolve(4.0) == SigmaPrior(float(np.log(2)), 1.0)


def test_records_refuse_what_is_no_prior_and_no_order() -> None:
    with pytest.raises(ValueError, match=r"MedianLVQPrior.spread must be finite and greater"):
        MedianLVQPrior(spread=0.0)
    with pytest.raises(ValueError, match=r"in order from 0, such as \(0, 0, 1\)"):
        Prototypes((1, 0))


# ---- the posterior


def enumerated(
    log_posterior: MedianLVQLogPosterior, log_sigmas: np.ndarray
) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """All exemplars, and their joint probabilities with a fine grid of log sigma."""
    rows, classes = log_posterior.rows, log_posterior.prototypes.classes
    states = list(itertools.product(*[rows.candidates[c].tolist() for c in classes]))
    logs = np.array(
        [
            [
                log_posterior.value_and_gradient(np.array([*state, u]))[0]
                if isinstance(log_posterior.sigma, SigmaPrior)
                else log_posterior.value_and_gradient(np.array(state, float))[0]
                for u in log_sigmas
            ]
            for state in states
        ]
    )
    joint = np.exp(logs - logs.max())
    return states, joint / joint.sum()


def chain(log_posterior: MedianLVQLogPosterior, n_draws: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta = np.array([c[0] for c in candidates_of(log_posterior)], float)
    if isinstance(log_posterior.sigma, SigmaPrior):
        theta = np.append(theta, log_posterior.sigma.location)
    draws = np.empty((n_draws, theta.size))
    kernel = log_posterior.markov_kernel().adapted(draws)
    for draw in range(n_draws):
        draws[draw] = theta = kernel.sweep(theta, rng)
    return draws


def candidates_of(log_posterior: MedianLVQLogPosterior) -> list[np.ndarray]:
    classes = log_posterior.prototypes.classes
    return [log_posterior.rows.candidates[c] for c in classes]


def z_of(draws: np.ndarray, expected: float) -> float:
    """Standardised difference of a mean, by means of batches, which are nearly independent."""
    batches = draws.reshape(20, -1).mean(axis=1)
    return float((batches.mean() - expected) / max(batches.std(ddof=1) / np.sqrt(20), 1e-12))


SMALL = MedianLVQLogPosterior(
    table(8, 2, seed=5, hidden=1, heaviest=0.8), Prototypes((0, 1, 1)), PRIOR
)
GRID = np.linspace(PRIOR.location - 4.5 * PRIOR.spread, PRIOR.location + 4.5 * PRIOR.spread, 37)
N_DRAWS = 1200


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shape checks off: they take longer than a sweep; other tests run with them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def exact() -> tuple[list[tuple[int, ...]], np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        return enumerated(SMALL, GRID)


def differences(exact: tuple[list[tuple[int, ...]], np.ndarray], draws: np.ndarray) -> np.ndarray:
    """z of the marginals of every exemplar and of log sigma, and of products of the two."""
    states, joint = exact
    table_, shares = np.array(states), joint.sum(axis=1)
    found = []
    for prototype, candidates in enumerate(candidates_of(SMALL)):
        for row in candidates:
            here = table_[:, prototype] == row
            if shares[here].sum() > 0.02:
                found.append(z_of(draws[:, prototype] == row, shares[here].sum()))
    found.append(z_of(draws[:, -1], joint.sum(axis=0) @ GRID))
    found.append(z_of(draws[:, -1] ** 2, joint.sum(axis=0) @ GRID**2))
    best = int(shares.argmax())
    at_best = np.all(draws[:, :-1] == table_[best], axis=1)
    found.append(z_of(at_best, shares[best]))
    found.append(z_of(at_best * draws[:, -1], joint[best] @ GRID))
    return np.abs(found)


@pytest.mark.usefixtures("unchecked")
def test_gibbs_draws_the_enumerated_posterior(exact) -> None:
    assert differences(exact, chain(SMALL, N_DRAWS, seed=1)).max() < 4.9


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("defect", ["row", "prior", "likelihood"])
def test_the_comparison_sees_a_planted_defect(exact, defect: str) -> None:
    rows = SMALL.rows
    weights = {"row": rows.weights * (np.arange(8) != 2), "likelihood": rows.weights * 3}
    broken = MedianLVQLogPosterior(
        Dissimilarities(
            rows.values, rows.labels, weights.get(defect, rows.weights), rows.candidates
        ),
        SMALL.prototypes,
        SigmaPrior(PRIOR.location, 2 * PRIOR.spread) if defect == "prior" else PRIOR,
    )
    assert differences(exact, chain(broken, N_DRAWS // 2, seed=1)).max() > 4.9


def test_a_sweep_leaves_the_posterior_invariant() -> None:
    """Exactly: the transition matrix of exemplars under a fixed width, from all states."""
    fixed = MedianLVQLogPosterior(SMALL.rows, SMALL.prototypes, 0.7)
    states, joint = enumerated(fixed, np.zeros(1))
    shares, index = joint[:, 0], {state: i for i, state in enumerate(states)}
    likelihood = fixed.likelihood(0.7)
    for prototype, candidates in enumerate(candidates_of(fixed)):
        following = np.zeros_like(shares)
        for state, share in zip(states, shares, strict=True):
            scores = likelihood.scorer(np.array(state)).scores(prototype)
            conditional = np.exp(scores - scores.max())
            for row, p in zip(candidates.tolist(), conditional / conditional.sum(), strict=True):
                to = (*state[:prototype], row, *state[prototype + 1 :])
                following[index[to]] += share * p
        np.testing.assert_allclose(following, shares, rtol=1e-10)


def test_first_sweeps_are_of_a_flatter_posterior() -> None:
    flat = SMALL.markov_kernel()
    np.testing.assert_allclose(flat.rows.weights, 0.25 * SMALL.rows.weights)
    exact = flat.adapted(np.zeros((1, 4)))
    assert exact == ExemplarSweep(SMALL.rows, SMALL.prototypes, PRIOR)
    assert exact.adapted(np.zeros((1, 4))) is exact


def test_a_slice_draws_its_density() -> None:
    rng, draws = np.random.default_rng(0), np.empty(8000)
    for n in range(draws.size):
        start = draws[n - 1] if n else 0.0
        draws[n] = slice_step(lambda x: -0.5 * (x - 1) ** 2 / 4, start, 1.0, rng)
    assert abs(z_of(draws, 1.0)) < 4.9
    assert abs(z_of((draws - 1) ** 2, 4.0)) < 4.9


def test_coordinates_go_there_and_back() -> None:
    theta = np.array([0.0, 1.0, 7.0, 0.3])
    np.testing.assert_allclose(SMALL.pack(SMALL.unpack(theta)), theta, rtol=1e-15)
    values = SMALL.constrained(np.stack([theta, theta]))
    assert values["exemplars"].tolist() == [[0, 1, 7], [0, 1, 7]]
    np.testing.assert_allclose(values["sigma"], np.exp(0.3))
    order = np.array([0, 2, 1])
    assert SMALL.permute(theta, order).tolist() == [0.0, 7.0, 1.0, 0.3]
    assert SMALL.value_and_gradient(np.array([1.0, 1.0, 7.0, 0.3]))[0] == -np.inf


def test_the_slope_along_sigma_is_that_of_the_value() -> None:
    for jacobian in (True, False):
        theta, step = np.array([0.0, 1.0, 7.0, 0.3]), np.array([0.0, 0.0, 0.0, 1e-5])
        ahead, behind = (
            SMALL.value_and_gradient(theta + sign * step, jacobian)[0] for sign in (1, -1)
        )
        slope = SMALL.value_and_gradient(theta, jacobian)[1]
        assert slope[-1] == pytest.approx((ahead - behind) / 2e-5, rel=1e-7)
        assert not slope[:-1].any()


def test_rows_add_up_to_the_likelihood() -> None:
    theta = np.array([0.0, 1.0, 7.0, 0.3])
    rows = SMALL.pointwise(theta)
    assert rows[SMALL.rows.labels < 0].tolist() == [0.0]
    likelihood = ConditionalLikelihood(SMALL.rows, SMALL.prototypes, SMALL.width(theta))
    total = likelihood.value(SMALL.exemplars(theta))
    assert SMALL.rows.weights @ rows == pytest.approx(total, rel=1e-12)


def test_margins_are_those_of_the_objective() -> None:
    rows, prototypes = table(hidden=0), Prototypes((0, 1, 1, 2))
    exemplars = np.array([0, 1, 5, 2])
    margins = class_margins(rows.values[:, exemplars], prototypes)
    own = margins[rows.labelled, rows.labels[rows.labelled]]
    np.testing.assert_allclose(MarginSum(rows, prototypes).pointwise(exemplars), own)
    nearest = rows.values[:, exemplars].argmin(axis=1)
    assert margins.argmax(axis=1).tolist() == np.array([0, 1, 1, 2])[nearest].tolist()

"""Exemplars: Gibbs draws the enumerated posterior, over the coordinates of the graph."""

from __future__ import annotations

import itertools

import jaxtyping
import numpy as np
import pytest

from bayesrbf.families.median_lvq.objectives import ConditionalLikelihood
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, SigmaPrior
from bayesrbf.families.median_lvq.search import ExemplarSweep, MedianLVQLogPosterior, slice_step
from tests.families.median_lvq.exemplar_tables import PRIOR, table


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
    np.testing.assert_allclose(flat.posterior.rows.weights, 0.25 * SMALL.rows.weights)
    exact = flat.adapted(np.zeros((1, 4)))
    assert exact == ExemplarSweep(SMALL)
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

"""How probable a restart is: the evidence less what each active precision costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

from bayesrbf import SDGMClassifier, table
from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.families.sdgm import evidence as ard_fit
from bayesrbf.families.sdgm.evidence import (
    MIN_PRECISION,
    MIN_PROBABILITY,
    EvidenceProblem,
    Run,
    Settings,
    State,
    _initial_specification,
    factor_features,
    log_masses,
    log_volume,
    maximise_evidence,
    probable_modes,
)
from bayesrbf.families.sdgm.posterior import quadratic_basis
from bayesrbf.families.sdgm.records import CompletedRows

ALPHA_MAX = 1e5


def a_run() -> tuple[EvidenceProblem, Run]:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(80, 1))
    second = points[:, 0] + 0.5 * rng.normal(size=80) > 0
    rows = CompletedRows(points, np.arange(80), np.eye(2, dtype=bool)[second * 1], np.ones(80))
    phi = quadratic_basis(1, ()).at(points)
    places = np.zeros(3, dtype=np.intp), np.arange(3)
    start = State(np.array([0, 1]), np.ones(2), *places, np.zeros(3), np.ones(3))
    problem = EvidenceProblem(rows, factor_features(phi, reduce=False))
    run = maximise_evidence(problem, start, Settings(tol=1e-4, max_iter=500, alpha_max=ALPHA_MAX))
    return problem, run


def test_a_weight_must_earn_its_precision() -> None:
    _, run = a_run()
    cost = -log_volume(np.ones(1), ALPHA_MAX)
    more = np.append(run.determined, 1.0)
    for gain, kept in ((0.9 * cost, 0), (1.1 * cost, 1)):
        larger = replace(run, determined=more, evidence=run.evidence + gain)
        assert log_masses([run, larger], ALPHA_MAX).argmax() == kept
        assert log_masses([larger, run], ALPHA_MAX).argmax() == 1 - kept


def test_ends_that_say_the_same_are_one_mode() -> None:
    problem, run = a_run()
    other = replace(
        run, parameters=replace(run.parameters, coefficients=-run.parameters.coefficients)
    )
    modes = probable_modes(problem, [other, run, run], np.array([-2.0, -1.0, -1.1]))
    assert modes.parameters == (run.parameters, other.parameters)
    np.testing.assert_allclose(modes.probabilities, [1 / (1 + np.exp(-1)), 1 / (1 + np.e)])
    assert modes.best is run.parameters
    assert modes.alone.parameters == (run.parameters,)
    little = np.array([np.log(MIN_PROBABILITY) - 0.1, 0.0])
    assert probable_modes(problem, [other, run], little).parameters == (run.parameters,)


def test_components_that_change_places_are_one_mode() -> None:
    problem, run = a_run()
    found = run.parameters
    split = [
        replace(
            found,
            component_class=np.array([0, 0, 1]),
            proportions=np.array([*shares, 1.0]),
            component=np.full(found.n_weights, used),
        )
        for used, shares in ((0, (0.3, 0.7)), (1, (0.7, 0.3)))
    ]
    runs = [replace(run, parameters=parameters) for parameters in split]
    modes = probable_modes(problem, runs, np.zeros(2))
    assert modes.parameters == (split[0],)
    np.testing.assert_array_equal(modes.probabilities, [1.0])


def test_the_volume_is_that_of_the_integral_over_the_precision() -> None:
    """One weight with a normal likelihood: the integral over log alpha can be done."""
    estimate, spread = 3.0, 0.1

    def log_evidence(log_alpha: float) -> float:
        variance = spread**2 + np.exp(-log_alpha)
        return -0.5 * float(np.log(2 * np.pi * variance) + estimate**2 / variance)

    best = -np.log(estimate**2 - spread**2)
    low, high = np.log(MIN_PRECISION), np.log(ALPHA_MAX)
    relative = lambda x: np.exp(log_evidence(x) - log_evidence(best))  # noqa: E731
    area = quad(relative, low, high, points=[best], limit=200)[0] / (high - low)
    gamma = 1 - spread**2 * np.exp(best) / (1 + spread**2 * np.exp(best))
    assert log_volume(np.array([gamma]), ALPHA_MAX) == pytest.approx(np.log(area), abs=0.35)


def test_no_weight_takes_more_than_the_whole_prior() -> None:
    assert log_volume(np.empty(0), ALPHA_MAX) == 0
    assert log_volume(np.zeros(3), ALPHA_MAX) == 0
    assert log_volume(np.ones(2), MIN_PRECISION / 10) == 0
    assert log_volume(np.ones(2), ALPHA_MAX) == 2 * log_volume(np.ones(1), ALPHA_MAX) < -2


def counts_of(specification: MixtureSpecification) -> list[int]:
    return np.bincount(specification.component_class).tolist()


def test_restarts_begin_with_fewer_components_in_turn() -> None:
    whole = MixtureSpecification(2, (), (0, 0, 0, 0, 0, 1, 2, 2))
    initial = [counts_of(_initial_specification(whole, restart)) for restart in range(16)]
    half, quarter, one = [3, 1, 1], [2, 1, 1], [1, 1, 1]
    fewer = [half, quarter, one, [5, 1, 2]]
    assert initial == [each for less in fewer for each in ([5, 1, 2],) * 2 + (less,) * 2]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mixture_of_many_is_not_less_probable_than_one_of_few() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.repeat([0, 1], 60)
    X[y == 1] += 1.2
    settings = {"form": "kernel", "random_state": 0}
    few = SDGMClassifier(1, **settings).fit(X, y)
    many = SDGMClassifier(4, n_init=8, **settings).fit(X, y)
    rows, _ = table.distinct(many.rows_)
    restarts = many._fit_rows(rows, many.model_.sets, many.fitted_.table, many.seed_)[1].restarts
    assert restarts.size == 8
    np.testing.assert_allclose(restarts[6:], few.objective_, atol=0.05)
    assert many.n_components_ <= 4


@pytest.mark.slow
def test_the_winner_of_a_race_goes_on_with_its_own_components(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many rows: the restarts see some of them, and the chosen one is run again with all."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    X[y == 1] += 1.2
    whole = SDGMClassifier(1, random_state=0).fit(X, y)
    monkeypatch.setattr(ard_fit, "RACE_ROWS", 80)
    monkeypatch.setattr(  # one component a class
        ard_fit, "log_masses", lambda runs, alpha_max: 50.0 * (np.arange(8) == 6)
    )
    raced = SDGMClassifier(4, n_init=8, random_state=0).fit(X, y)
    assert raced.n_components_ == 2
    assert raced.objective_ == pytest.approx(whole.objective_, abs=0.05)
    np.testing.assert_array_equal(raced.mode_probabilities_, [1.0])

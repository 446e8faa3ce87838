"""A weight is a weight, copies of a row are one, and groups stay on one side of every split."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import bayesrbf
from bayesrbf.base.rows import Observations
from bayesrbf.fit.held_out import split_rows
from bayesrbf.reading.notes import ColumnWarning
from bayesrbf.table.order import copies_of, subjects_of

COIN = np.log(2)
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "stack": lambda: bayesrbf.StackedClassifier(random_state=0),
    "mixture": lambda: bayesrbf.HybridMixtureClassifier(random_state=0),
    "kernel network": lambda: bayesrbf.KernelNetworkClassifier(random_state=0),
    "RBF network": lambda: bayesrbf.RBFNetworkClassifier(3, n_init=1, random_state=0),
    "exemplars": lambda: bayesrbf.MedianLVQClassifier(calibrate=True, random_state=0),
    "sparse mixture": lambda: bayesrbf.SDGMClassifier(1, n_init=1, calibrate=True, random_state=0),
}
SLOW = ("stack", "RBF network", "sparse mixture")
SLOW_MARKS = {name: [pytest.mark.slow] * (name in SLOW) for name in CLASSIFIERS}
CASES = [(name, 0) for name in CLASSIFIERS] + [("stack", seed) for seed in (1, 2)]
every_classifier, each_classifier = (
    pytest.mark.parametrize(
        ("name", "seed"), [pytest.param(*case, marks=SLOW_MARKS[case[0]]) for case in cases]
    )
    for cases in (CASES, CASES[: len(CLASSIFIERS)])
)
"""On several tables of a stack, and where the law is exact, on one."""


def noise(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels that no column tells."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)), rng.integers(0, 2, n)


def loss_of_a_coin(p: np.ndarray) -> float:
    """Mean log loss of probabilities where labels are coins."""
    return float(-np.log(p).mean())


@every_classifier
def test_a_weight_moved_slightly_moves_no_probability(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(150, 4)), rng.normal(size=(300, 4))
    y = (rng.random(150) < 1 / (1 + np.exp(2.4 - X[:, 0]))).astype(int)
    # A sparse mixture keeps weights or drops them: a step, at which some table always stands.
    slightly = 1e-6 if name == "sparse mixture" else 1e-3
    p = [
        CLASSIFIERS[name]().fit(X, y, np.where(y == 1, weight, 1.0)).predict_proba(new)
        for weight in (9, 9 + slightly)
    ]
    np.testing.assert_allclose(*p, atol=1e-3)


@each_classifier
def test_weights_are_relative(name: str, seed: int) -> None:
    X, y = noise(seed=seed)
    new, _ = noise(500, seed=seed + 1)
    weights = np.random.default_rng(seed + 2).uniform(0.5, 2, 60)
    one = CLASSIFIERS[name]().fit(X, y, weights)
    other = CLASSIFIERS[name]().fit(X, y, 1000 * weights)
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), atol=1e-3)
    assert other.temperature_ == pytest.approx(one.temperature_, rel=0.1)
    plain = CLASSIFIERS[name]().fit(X, y)
    assert plain.temperature_ == CLASSIFIERS[name]().fit(X, y, np.full(60, 10.0)).temperature_


@each_classifier
def test_rows_that_stand_there_three_times_teach_as_often_as_once(name: str, seed: int) -> None:
    X, y = noise(seed=seed)
    new, _ = noise(500, seed=seed + 1)
    with pytest.warns(ColumnWarning, match="120 rows equal an earlier row in every cell"):
        thrice = CLASSIFIERS[name]().fit(np.tile(X, (3, 1)), np.tile(y, 3))
    once = CLASSIFIERS[name]().fit(X, y)
    np.testing.assert_allclose(thrice.predict_proba(new), once.predict_proba(new), atol=1e-6)
    findings = {one.row: one for one in thrice.fitted_.findings()}
    assert findings["copies"].value == 120


@each_classifier
def test_copies_are_a_weight(name: str, seed: int) -> None:
    """Some rows have copies, and others do not."""
    X, y = noise(seed=seed)
    counts = np.random.default_rng(seed + 3).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        repeated = CLASSIFIERS[name]().fit(X[rows], y[rows]).predict_proba(X)
    weighted = CLASSIFIERS[name]().fit(X, y, counts).predict_proba(X)
    np.testing.assert_allclose(repeated, weighted, atol=1e-6)


@every_classifier
def test_groups_are_on_one_side_of_every_split(name: str, seed: int) -> None:
    """Patients who look alike each time, and whose label is a coin."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(40), 4)
    X = np.repeat(rng.normal(size=(40, 3)), 4, axis=0) + 0.05 * rng.normal(size=(160, 3))
    y = np.repeat(rng.integers(0, 2, 40), 4)
    new = rng.normal(size=(500, 3))
    plain = CLASSIFIERS[name]().fit(X, y).predict_proba(new)
    grouped = CLASSIFIERS[name]().fit(X, y, groups=patient).predict_proba(new)
    assert loss_of_a_coin(grouped) < loss_of_a_coin(plain)
    if (
        seed == 0
    ):  # the luck of forty coins, which count four times each, differs from table to table
        assert loss_of_a_coin(grouped) < 0.72
    with pytest.raises(ValueError, match=r"groups=\.\.\.\) must name a group for each of the 160"):
        CLASSIFIERS[name]().fit(X, y, groups=patient[1:])


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW_MARKS[n]) for n in CLASSIFIERS])
def test_noise_is_answered_as_noise(name: str) -> None:
    model = CLASSIFIERS[name]().fit(*noise())
    assert loss_of_a_coin(model.predict_proba(noise(500, seed=1)[0])) < 0.72


@pytest.mark.slow
def test_a_stack_answers_several_tables_of_noise_as_noise() -> None:
    """Half of the labels are heads: a share that is off by luck would cost nats of its own."""
    y, new = np.arange(60) % 2, noise(500, seed=100)[0]
    losses = [
        loss_of_a_coin(CLASSIFIERS["stack"]().fit(noise(seed=seed)[0], y).predict_proba(new))
        for seed in range(10)
    ]
    assert np.mean(losses) < 0.72
    assert max(losses) < 0.76


def test_no_split_parts_a_unit_and_people_are_dealt_one_by_one() -> None:
    rng = np.random.default_rng(0)
    real = np.tile(rng.normal(size=(30, 2)), (3, 1))
    levels = rng.integers(0, 2, (90, 1))
    nothing = np.zeros((90, 0))
    labels = rng.integers(-1, 2, 90)  # copies with both labels, and without one
    copies = Observations(real, np.zeros((90, 0), int), labels, np.ones(90))
    copies = Observations(**{**vars(copies), "subjects": subjects_of(copies_of(copies))})
    for train, test in split_rows(5, copies, np.arange(90), 0):
        assert not {*map(tuple, train.real)} & {*map(tuple, test.real)}
    people = Observations(nothing, levels, labels, np.ones(90))
    assert subjects_of(copies_of(people)) is None
    folds = list(split_rows(5, people, np.arange(90), 0))
    assert sum(test.weights.sum() for _, test in folds) == (labels >= 0).sum()
    for train, test in folds:
        assert {*test.codes[:, 0]} <= {*train.codes[:, 0]}


def test_splits_are_the_same_in_any_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(60, 2))[rng.integers(0, 60, 100)]
    rows = Observations(
        real, np.zeros((100, 0), int), rng.integers(-1, 3, 100), rng.uniform(0.5, 2, 100)
    )
    groups = rng.integers(0, 60, 100)
    order = rng.permutation(100)
    of = [
        Observations(**{**vars(one), "subjects": subjects_of(copies_of(one), of_rows)})
        for one, of_rows in ((rows, groups), (rows.take(order), groups[order]))
    ]
    parts = [list(split_rows(4, one, np.arange(100), 0)) for one in of]
    for pair in zip(*parts, strict=True):
        for one, other in zip(*pair, strict=True):
            np.testing.assert_array_equal(one.real, other.real)
            np.testing.assert_allclose(one.weights, other.weights)


def test_the_bootstrap_weighs_the_rows_of_a_unit_together() -> None:
    X, y = noise()
    y = np.where(np.arange(60) % 2, y, 1 - y)
    model = CLASSIFIERS["kernel network"]().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        thrice = clone(model).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    spread = [
        one.refine("bootstrap", draws=20).uncertainty(X[:20])["sd"].mean().item()
        for one in (model, thrice)
    ]
    assert spread[1] == pytest.approx(spread[0], rel=1e-6)


def test_splits_that_are_given_are_taken_as_they_are() -> None:
    X, y = noise()
    X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    halves = np.arange(60), np.arange(60, 120)
    with pytest.warns(ColumnWarning, match="60 rows equal"):
        model = bayesrbf.KernelNetworkClassifier(cv=[halves, halves[::-1]], random_state=0).fit(
            X, y
        )
    assert model.temperature_ > 1  # each row taught its copy

"""Cells that are missing for a reason: what a stack makes of it, and of which cells."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import beta, expit, log_softmax

from bayesrbf import StackedClassifier, load
from bayesrbf.base.priors import MixturePrior
from bayesrbf.families.stack.missingness import (
    OTHER_REASONS,
    Missingness,
    MissingPatterns,
    evident_columns,
    fit_missingness,
    fit_patterns,
)
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.held_out import HeldOut
from bayesrbf.mixture.fitted import Solver
from bayesrbf.table import encode, hide, learn_columns

MEMBERS = ["laplace_evidence", "normal_blend"]


def ordered(
    n_rows: int, told: bool, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Rows as they are and as they were measured; a test is rarely made of the healthy."""
    rng = np.random.default_rng(seed)
    y = rng.random(n_rows) < 0.4
    whole = pd.DataFrame(rng.normal(size=(n_rows, 4)) + y[:, None] * [1.0, 0.5, 0, 0])
    whole = whole.add_prefix("x").assign(kind=np.where(rng.random(n_rows) < 0.5, "a", "b"))
    chance = np.where(y, 0.15, 0.6)[:, None] if told else 0.4
    missing = rng.random(whole.shape) < chance
    missing[:, 3] = False
    return whole, whole.mask(missing), np.where(y, "ill", "healthy")


def mean_loss(model: StackedClassifier, X: pd.DataFrame, y: np.ndarray) -> float:
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(p).mean())


@pytest.fixture(scope="module")
def patterns() -> MissingPatterns:
    """Four columns with evidence, the last two missing together, and one that is never missing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    missing = rng.random((300, 5)) < np.where(labels, 0.1, 0.7)[:, None]
    missing[:, 3], missing[:, 4] = missing[:, 2], False
    X = np.where(missing, np.nan, rng.normal(size=(300, 5)))
    columns = learn_columns(X)
    rows = replace(encode(X, columns), labels=labels)
    solver = Solver(3, 40, 1e-3, 0)
    return fit_patterns(rows, columns, evident_columns(rows, columns)[1], 2, MixturePrior(), solver)


@pytest.fixture(scope="module")
def told() -> StackedClassifier:
    _, holes, y = ordered(150, told=True)
    return StackedClassifier(MEMBERS, cv=3, random_state=0).fit(holes, y)


def test_evidence_and_familiarity_are_sums_over_all_patterns(patterns: MissingPatterns) -> None:
    structure, parameters = patterns.mixture.specification, patterns.mixture.parameters
    of_class = parameters.class_probabilities

    def probability(indicators: tuple[int, ...], label: int) -> float:
        total = 0.0
        for k, own in enumerate(structure.component_class):
            if own == label:
                shares = zip(parameters.category_probabilities, indicators, strict=True)
                total += parameters.weights[k] * np.prod([levels[k, m] for levels, m in shares])
        return total

    some = list(itertools.product((-1, 0, 1), repeat=4))
    asked = np.column_stack([some, np.zeros(len(some), int)])
    evidence, familiarity = patterns.log_evidence(asked), patterns.familiarity(asked)
    everything = list(itertools.product((0, 1), repeat=4))
    for pattern, log_evidence, familiar in zip(some, evidence, familiarity, strict=True):
        alike = [
            m for m in everything if all(a in (-1, b) for a, b in zip(pattern, m, strict=True))
        ]
        of_alike = np.array([sum(probability(m, c) for m in alike) for c in range(2)])
        p = float(of_class @ of_alike)
        np.testing.assert_allclose(np.exp(log_evidence), of_alike / p, rtol=1e-6)
        k, n = pattern.count(1), 5 - pattern.count(-1)
        by_chance = OTHER_REASONS * beta(k + 1, n - k + 1)
        expected = (1 - OTHER_REASONS) * p / ((1 - OTHER_REASONS) * p + by_chance)
        assert familiar == pytest.approx(expected, rel=1e-6)


def test_patterns_that_training_never_had_are_unfamiliar(patterns: MissingPatterns) -> None:
    usual, torn, never_missing, hidden, empty = patterns.familiarity(
        np.array([[1, 0, 1, 1, 0], [1, 0, 1, 0, 0], [1, 0, 1, 1, 1], [-1] * 5, [1, 1, 1, 1, -1]])
    )
    assert usual > 0.9
    assert torn < 0.8  # the third and the fourth are always missing together
    assert never_missing == hidden == empty == 0


def test_the_fit_is_that_of_a_regression_on_the_evidence(patterns: MissingPatterns) -> None:
    rng = np.random.default_rng(1)
    n = 20_000
    log_q = log_softmax(rng.normal(size=(n, 2)), axis=1)
    evidence = rng.normal(size=(n, 2))
    log_p = log_softmax(0.6 * log_q + [0.5, -0.5] + 0.8 * evidence, axis=1)
    labels = (rng.random(n) < np.exp(log_p[:, 1])).astype(int)
    held = HeldOut(log_q, labels, np.ones(n), folds=np.arange(n) % 5)
    unfitted = Missingness(patterns, 1.0, np.zeros(2), 0.0, evidence, np.ones(n))
    found, gain, error = fit_missingness(unfitted, held, log_q, always=False)
    assert found.temperature == pytest.approx(0.6, abs=0.05)
    assert found.exponent == pytest.approx(0.8, abs=0.05)
    assert np.diff(found.offsets) == pytest.approx(-1.0, abs=0.1)
    assert gain > 10 * error
    expected = found.given_patterns(log_q, evidence)
    np.testing.assert_allclose(np.exp(expected).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.reported_held_out(log_q), expected)  # all are familiar
    # Evidence that says the opposite of the truth is left out, and so is that of noise.
    for wrong in (-evidence, rng.normal(size=(n, 2))):
        left = fit_missingness(replace(unfitted, evidence=wrong), held, log_q, always=False)[0]
        assert left.exponent < 0.02


def test_a_class_that_was_never_held_out_keeps_its_probability(patterns: MissingPatterns) -> None:
    log_q = log_softmax(np.random.default_rng(0).normal(size=(50, 2)), axis=1)
    offsets = np.array([0.3, np.nan])
    some = Missingness(patterns, 0.5, offsets, 1.0, np.ones((50, 2)), np.ones(50))
    np.testing.assert_allclose(some.given_patterns(log_q, np.ones((50, 2))), log_q, rtol=1e-12)


def test_indicators_are_evidence_where_held_out_rows_gain() -> None:
    _, holes, y = ordered(1_200, told=True)
    rows, new = slice(200), slice(200, None)
    cv, ignorable = (
        StackedClassifier("smooth", cv=3, missingness=way, random_state=0).fit(holes[rows], y[rows])
        for way in ("cv", "ignorable")
    )
    assert cv.model_.missingness.exponent > 0.3
    assert ignorable.model_.missingness is None
    assert mean_loss(cv, holes[new], y[new]) < mean_loss(ignorable, holes[new], y[new]) - 0.05
    assert "tells of the label (+" in cv.status_
    assert "'x3'" not in cv.status_
    shares = holes[rows].isna().groupby(y[rows]).mean()
    named = re.findall(r"'(\w+)' is missing", cv.status_)
    assert len(named) == 3
    for name in named:
        assert (
            f"'{name}' is missing in {100 * shares.loc['healthy', name]:.0f} % of 'healthy'"
            in cv.status_
        )


def test_indicators_tell_next_to_nothing_where_cells_are_missing_at_random() -> None:
    _, holes, y = ordered(1_150, told=False, seed=2)
    rows, new = slice(150), slice(150, None)
    cv, ignorable = (
        StackedClassifier("smooth", cv=3, missingness=way, random_state=0).fit(holes[rows], y[rows])
        for way in ("cv", "ignorable")
    )
    assert cv.members_ == ignorable.members_
    assert cv.columns_ == ignorable.columns_
    assert mean_loss(cv, holes[new], y[new]) < mean_loss(ignorable, holes[new], y[new]) + 0.005


def test_where_no_row_can_be_held_out_indicators_tell_nothing() -> None:
    _, holes, _ = ordered(12, told=True)
    alone = np.array(["ill", "well"] + [None] * 10, dtype=object)
    for way in ("cv", "informative"):
        stack = StackedClassifier("smooth", missingness=way, random_state=0)
        with pytest.warns(UserWarning, match="holds out no labelled row"):
            stack.fit(holes, alone)
        assert stack.model_.missingness is None


def test_without_enough_missing_cells_there_is_no_evidence() -> None:
    whole, holes, y = ordered(90, told=False)
    informative = StackedClassifier("smooth", cv=2, missingness="informative", random_state=0)
    assert sorted(informative.fit(holes, y).model_.missingness.patterns.evident) == [0, 1, 2, 4]
    assert informative.fit(whole, y).model_.missingness is None
    few = whole.copy()
    few.loc[:3, "x0"] = np.nan
    assert informative.fit(few, y).model_.missingness is None


def test_an_empty_cell_was_not_measured_and_a_hidden_one_is_unknown(
    told: StackedClassifier,
) -> None:
    whole, _, _ = ordered(40, told=True, seed=1)
    columns, ill = told.columns_, list(told.classes_).index("ill")
    cells = np.zeros(whole.shape, bool)
    cells[:, 2] = True  # it tells nothing but by not being measured
    rows = new_rows(told.fitted_, whole).cells
    hidden = np.exp(told.fitted_.class_log_probabilities(hide(rows, cells, columns)))[:, ill]
    empty = told.predict_proba(whole.mask(cells))[:, ill]
    assert (empty < hidden).all()
    assert (hidden - empty).mean() > 0.02
    everything = hide(rows, np.ones_like(cells), columns)
    shares = np.exp(told.fitted_.class_log_probabilities(everything))[0]
    _, _, y = ordered(150, told=True)
    np.testing.assert_allclose(shares, [(y == label).mean() for label in told.classes_], atol=1e-6)


def test_the_order_of_columns_does_not_matter_and_a_file_says_the_same(
    told: StackedClassifier, tmp_path: Path
) -> None:
    _, holes, y = ordered(150, told=True)
    turned = holes[holes.columns[::-1]]
    other = StackedClassifier(MEMBERS, cv=3, random_state=0).fit(turned, y)
    expected = told.predict_proba(holes)
    np.testing.assert_allclose(other.predict_proba(turned), expected, rtol=0, atol=1e-6)
    path = tmp_path / "told.brbf"
    told.save(path)
    np.testing.assert_array_equal(load(path).predict_proba(holes), expected)
    assert load(path).model_.message == told.model_.message
    assert load(path).status_ == told.status_


def test_the_graph_of_the_pool_weighs_rows_as_the_numerics_do(told: StackedClassifier) -> None:
    graph, pool = told.declare(), told.model_.pool_posterior
    assert told.model_.held.missing_fraction.any()
    point = graph.initial_point()
    theta = np.concatenate([np.ravel(point[one.name]) for one in graph.value_vars])
    value = graph.compile_logp(mode="FAST_COMPILE")(point)
    assert value == pytest.approx(pool.value_and_gradient(theta)[0], rel=1e-9)
    drawn = told.refine(draws=20, chains=1).uncertainty(ordered(5, told=True)[1])
    assert (drawn["lower"] <= drawn["probability"]).all()
    assert pool.n_members == len(MEMBERS)


def with_copies(
    values: np.ndarray, labels: np.ndarray, hidden: np.ndarray, shares: np.ndarray
) -> HeldOut:
    """Rows of which members say the same with more cells masked."""
    fractions = np.column_stack([hidden, hidden + 0.3])
    given = values, labels, np.ones(labels.size), values[:, None], fractions
    return HeldOut(*given, log_shares=shares)


def said_and_labels(told: bool, n: int = 3000) -> tuple[HeldOut, np.ndarray]:
    """What one member says rightly of cells; holes depend on the cells, or on the label too."""
    rng = np.random.default_rng(2)
    p = expit(2 * rng.normal(size=n))
    labels = (rng.random(n) < p).astype(int)
    hidden = np.where(rng.random(n) < (np.where(labels, 0.8, 0.2) if told else p), 0.5, 0.0)
    values, shares = np.log(np.column_stack([1 - p, p]))[:, None], np.log([0.5, 0.5])
    return with_copies(values, labels, hidden, shares), p


def test_weights_take_from_holes_what_they_tell_beside_the_cells() -> None:
    for of_label in (False, True):
        held, p = said_and_labels(of_label)
        for hidden in (0.0, 0.5):
            rows = held.missing_fraction == hidden
            weighted = np.average(held.labels[rows], weights=held.ignorable_weights[rows])
            assert weighted == pytest.approx(p[rows].mean(), abs=0.02), (of_label, hidden)
            plain = held.labels[rows].mean() - p[rows].mean()
            assert (abs(plain) > 0.1) == of_label  # without weights, the labels tell it
        assert (abs(held.ignorable_weights - 1).mean() < 0.1) != of_label
        for label in (0, 1):  # no class share moves
            rows = held.labels == label
            assert held.ignorable_weights[rows].sum() == pytest.approx(held.weights[rows].sum())
    # Members count evidence several times where more is known: that is no sign, either.
    held, _ = said_and_labels(told=False)
    rng = np.random.default_rng(3)
    hidden = np.where(rng.random(held.labels.size) < 0.5, 0.5, 0.0)
    odds = rng.normal(-2, 1.5, hidden.size)
    labels = (rng.random(hidden.size) < expit(odds)).astype(int)
    sure = np.where(hidden > 0, 1.0, 8.0) * (odds + 1.4) - 1.4  # log odds of the shares
    values = -np.logaddexp(0, np.column_stack([sure, -sure]))[:, None]
    shares = np.log(np.bincount(labels) / labels.size)
    found = with_copies(values, labels, hidden, shares).ignorable_weights
    assert abs(found - 1).mean() < 0.1
    complete = replace(held, missing_fractions=np.zeros_like(held.missing_fractions))
    np.testing.assert_array_equal(complete.ignorable_weights, held.weights)


def test_evidence_is_of_columns_with_missing_and_measured_cells() -> None:
    _, holes, _ = ordered(60, told=True)
    holes = holes.assign(never=np.nan, scarce=np.where(np.arange(60) < 4, 1.0, np.nan))
    columns = learn_columns(holes)
    some, evident = evident_columns(encode(holes, columns), columns)
    assert [columns.names[i] for i in some[evident]] == ["x0", "x1", "x2", "kind"]
    assert columns.names.index("never") not in some

"""Cells that are missing for a reason: what a stack makes of it, and of which cells."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import beta

from bayesrbf import StackedClassifier, load
from bayesrbf.app.check import check
from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.masks import BY_CHANCE, Reasons, fit_reasons
from bayesrbf.fit.asking import new_rows
from bayesrbf.mixture.fitted import Solver
from bayesrbf.table import encode, hide, learn_columns, with_many_holes, with_masks

MEMBERS = ["laplace_evidence", "normal_blend", "normal_masks"]


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
def reasons() -> Reasons:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    masks = (rng.random((300, 4)) < np.where(labels, 0.1, 0.7)[:, None]).astype(np.intp)
    masks[:, 3] = masks[:, 2]  # missing together
    rows = Observations(np.zeros((300, 2)), masks, labels, np.ones(300))
    return fit_reasons(rows, 4, 2, MixturePrior(), Solver(3, 40, 1e-3, 0))


@pytest.fixture(scope="module")
def told() -> StackedClassifier:
    _, holes, y = ordered(150, told=True)
    return StackedClassifier(MEMBERS, cv=3, random_state=0).fit(holes, y)


def test_evidence_is_that_of_sums_over_all_patterns(reasons: Reasons) -> None:
    structure, parameters = reasons.masks.specification, reasons.masks.parameters
    of_class = parameters.class_probabilities

    def probability(masks: tuple[int, ...], label: int) -> float:
        total = 0.0
        for k, own in enumerate(structure.component_class):
            if own == label:
                shares = zip(parameters.category_probabilities, masks, strict=True)
                total += parameters.weights[k] * np.prod([levels[k, m] for levels, m in shares])
        return total

    patterns = list(itertools.product((-1, 0, 1), repeat=4))
    found = reasons.log_evidence(np.array(patterns))
    everything = list(itertools.product((0, 1), repeat=4))
    for pattern, log_evidence in zip(patterns, found, strict=True):
        alike = [
            m for m in everything if all(a in (-1, b) for a, b in zip(pattern, m, strict=True))
        ]
        missing = [
            m for m in everything if all(b for a, b in zip(pattern, m, strict=True) if a == 1)
        ]
        p_all = sum(of_class[c] * probability(m, c) for m in alike for c in range(2))
        k, n = pattern.count(1), 4 - pattern.count(-1)
        chance = BY_CHANCE * beta(k + 1, n - k + 1)
        w = chance / ((1 - BY_CHANCE) * p_all + chance)
        of_missing = [sum(probability(m, c) for m in missing) for c in range(2)]
        expected = (1 - w) * np.array(of_missing) / (of_class @ of_missing) + w
        np.testing.assert_allclose(np.exp(log_evidence), expected, rtol=1e-6)


def test_what_is_measured_says_nothing_and_unusual_patterns_next_to_nothing(
    reasons: Reasons,
) -> None:
    measured = np.array([[0, 0, 0, 0], [0, -1, 0, -1]])
    np.testing.assert_allclose(reasons.log_evidence(measured), 0, atol=1e-12)
    usual, torn = np.abs(reasons.log_evidence(np.array([[1, 0, 1, 1], [1, 0, 1, 0]]))).max(axis=1)
    assert torn < usual / 3  # the last two columns are always missing together


def test_masks_stay_where_rows_held_out_gain() -> None:
    _, holes, y = ordered(1_200, told=True)
    rows, new = slice(200), slice(200, None)
    cv, ignorable = (
        StackedClassifier("smooth", cv=3, missingness=way, random_state=0).fit(holes[rows], y[rows])
        for way in ("cv", "ignorable")
    )
    assert "normal_masks" in cv.members_
    assert "normal_masks" not in ignorable.members_
    assert mean_loss(cv, holes[new], y[new]) < mean_loss(ignorable, holes[new], y[new]) - 0.02
    assert "tells of the label (+" in cv.status_
    assert "is missing in" in cv.status_
    assert "'x3'" not in cv.status_
    shares = holes[rows].isna().groupby(y[rows]).mean()
    for name in re.findall(r"'(\w+)' is missing", cv.status_):
        assert (
            f"'{name}' is missing in {100 * shares.loc['healthy', name]:.0f} % of 'healthy'"
            in cv.status_
        )


def test_masks_leave_where_cells_are_missing_at_random_and_leave_nothing_behind() -> None:
    _, holes, y = ordered(150, told=False, seed=2)
    cv, ignorable = (
        StackedClassifier("smooth", cv=3, missingness=way, random_state=0).fit(holes, y)
        for way in ("cv", "ignorable")
    )
    assert "tells too little" in cv.status_
    assert cv.members_ == ignorable.members_
    assert not cv.columns_.masked
    np.testing.assert_array_equal(cv.predict_proba(holes), ignorable.predict_proba(holes))


def test_masks_leave_where_no_row_can_be_held_out() -> None:
    _, holes, _ = ordered(12, told=True)
    alone = np.array(["ill", "well"] + [None] * 10, dtype=object)
    for way in ("cv", "informative"):
        stack = StackedClassifier("smooth", missingness=way, random_state=0)
        with pytest.warns(UserWarning, match="no labelled row could be held out"):
            stack.fit(holes, alone)
        assert ("normal_masks" in stack.members_) == (way == "informative")


def test_informative_keeps_masks_and_without_holes_there_are_none() -> None:
    whole, holes, y = ordered(90, told=False)
    informative = StackedClassifier("smooth", cv=2, missingness="informative", random_state=0)
    assert "normal_masks" in informative.fit(holes, y).members_
    assert informative.columns_.masked == (0, 1, 2, 4)
    assert "normal_masks" not in informative.fit(whole, y).members_
    few = whole.copy()
    few.loc[:3, "x0"] = np.nan
    assert "normal_masks" not in informative.fit(few, y).members_


def test_complete_rows_are_answered_as_without_masks(told: StackedClassifier) -> None:
    whole, _, _ = ordered(40, told=True, seed=1)
    rows = new_rows(told.fitted_, whole).cells
    unknown = replace(rows, codes=np.where(np.arange(rows.codes.shape[1]) > 0, -1, rows.codes))
    one, other = (told.model_.members.log_probabilities(some) for some in (rows, unknown))
    np.testing.assert_allclose(one, other)


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


def test_a_question_about_hidden_cells_moves_no_mask(told: StackedClassifier) -> None:
    _, holes, _ = ordered(3, told=True, seed=2)
    answers = told.explain(holes)
    rows = new_rows(told.fitted_, holes).cells
    nothing = hide(rows, np.ones(holes.shape, bool), told.columns_)
    log_p = told.fitted_.class_log_probabilities(nothing)
    odds = log_p - np.log1p(-np.exp(log_p))
    np.testing.assert_allclose(answers["base"], odds, atol=1e-6)
    summed = answers["base"] + answers["shapley"].sum("column")
    np.testing.assert_allclose(summed, answers["log_odds"], atol=1e-6)


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
    assert load(path).model_.masks == told.model_.masks


def test_the_graph_of_the_pool_has_the_member(told: StackedClassifier) -> None:
    graph, pool = told.declare(), told.model_.pool_posterior
    assert "normal_masks" in graph.coords["member"]
    point = graph.initial_point()
    theta = np.concatenate([np.ravel(point[one.name]) for one in graph.value_vars])
    value = graph.compile_logp(mode="FAST_COMPILE")(point)
    assert value == pytest.approx(pool.value_and_gradient(theta)[0], rel=1e-9)
    drawn = told.refine(draws=20, chains=1).uncertainty(ordered(5, told=True)[1])
    assert (drawn["lower"] <= drawn["probability"]).all()
    assert pool.n_members == len(MEMBERS)


def test_novelty_and_filled_cells_are_of_cells_and_not_of_holes(told: StackedClassifier) -> None:
    rows = new_rows(told.fitted_, ordered(20, told=False, seed=3)[1]).cells
    codes = rows.codes.copy()
    codes[:, 1:] = 1 - codes[:, 1:]
    other, density = replace(rows, codes=codes), told.model_.density
    np.testing.assert_allclose(density.log_density(other), density.log_density(rows), atol=1e-9)
    np.testing.assert_allclose(
        density.class_log_joint(other), density.class_log_joint(rows), atol=1e-9
    )


def test_relevance_is_of_the_columns_and_not_of_their_masks(told: StackedClassifier) -> None:
    names = list(ordered(1, told=True)[0])
    assert told.relevance_.index.tolist() == names
    assert told.relevance_.columns.tolist() == ["laplace_evidence"]


def test_masks_are_of_columns_with_holes_and_cells() -> None:
    _, holes, _ = ordered(60, told=True)
    holes = holes.assign(never=np.nan, scarce=np.where(np.arange(60) < 4, 1.0, np.nan))
    columns = learn_columns(holes)
    rows = encode(holes, columns)
    masked = with_many_holes(rows, columns)
    assert [masked.names[i] for i in masked.masked] == ["x0", "x1", "x2", "kind"]
    missing = with_masks(rows, masked).codes[:, -4:]
    np.testing.assert_array_equal(missing, holes[["x0", "x1", "x2", "kind"]].isna())


@pytest.mark.parametrize(
    ("missingness", "members"), [("ignorable", MEMBERS), ("informative", MEMBERS[:2])]
)
def test_members_and_missingness_that_contradict_each_other_are_refused(
    missingness: str, members: list[str]
) -> None:
    _, holes, y = ordered(60, told=True)
    model = StackedClassifier(members, missingness=missingness)
    with pytest.raises(ValueError, match=r"'normal_masks'.*or pass missingness='cv'"):
        model.fit(holes, y)


def test_check_says_that_fewer_cells_are_missing_where_they_count(told: StackedClassifier) -> None:
    _, _, y = ordered(150, told=True)
    new, _, _ = ordered(100, told=True, seed=5)
    remarks = [one.sentence for one in check(told, new).remarks if one.topic == "missing"]
    assert len(remarks) == 4
    assert all("a sign of the label" in one for one in remarks)
    plain = StackedClassifier(MEMBERS[:2], cv=3, random_state=0).fit(ordered(150, True)[1], y)
    assert not [one for one in check(plain, new).remarks if one.topic == "missing"]

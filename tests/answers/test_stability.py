"""Stability under bootstrap samples: every figure by another way, and planted defects."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import bayesrbf
from bayesrbf.answers.performance import THRESHOLDS, spline_basis
from bayesrbf.answers.stability import EventStability, Stability

GROUPS = np.repeat(np.arange(40), 5)


def table(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three columns, one of which tells the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < expit(1.5 * X[:, 0] - 0.5), "sick", "well")


@pytest.fixture(scope="module")
def found() -> Stability:
    return bayesrbf.stability(
        LogisticRegression(), *table(), refits=30, event="sick", threshold=0.3
    )


@pytest.fixture(scope="module")
def sick(found: Stability) -> EventStability:
    (one,) = found.events
    return one


class Recording(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the rows that it is fitted to, whose numbers are the first column."""

    seen: ClassVar[list[tuple[np.ndarray, Any]]] = []

    def fit(self, X: np.ndarray, y: np.ndarray, groups: Any = None) -> Self:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        self.seen.append((X[:, 0].astype(int), groups))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.tile(self.shares_, (len(X), 1))


class Frail(Recording):
    """A classifier that cannot be fitted to a sample without the first row."""

    def fit(self, X: np.ndarray, y: np.ndarray, groups: Any = None) -> Self:
        if not (X[:, 0] == 0).any():
            raise ValueError("The first row\nis absent.")
        return super().fit(X, y, groups)


def recorded(groups: Any = None, model: Any = None) -> list[tuple[np.ndarray, Any]]:
    """Rows of all fits, that to all rows first, and the groups that were handed on."""
    Recording.seen.clear()
    numbers = np.arange(200.0)[:, None]
    bayesrbf.stability(model or Recording(), numbers, table()[1], refits=10, groups=groups)
    return list(Recording.seen)


def torn(samples: list[tuple[np.ndarray, Any]]) -> int:
    """Samples in which rows of a group are not equally frequent."""
    counts = [np.bincount(rows, minlength=200).reshape(40, 5) for rows, _ in samples]
    return sum(bool((one != one[:, :1]).any()) for one in counts)


# What is refitted.


def test_refits_are_those_of_a_plain_bootstrap(found: Stability) -> None:
    X, y = table()
    rng, model = np.random.default_rng(0), LogisticRegression()
    for refit in found.refits:
        rows = rng.integers(len(y), size=len(y))
        np.testing.assert_allclose(refit, clone(model).fit(X[rows], y[rows]).predict_proba(X))
    np.testing.assert_allclose(found.probabilities, model.fit(X, y).predict_proba(X))


def test_the_first_fit_has_all_rows_and_others_have_as_many_with_replacement() -> None:
    (whole, _), *samples = recorded()
    assert whole.tolist() == list(range(200))
    assert {rows.size for rows, _ in samples} == {200}
    distinct = [np.unique(rows).size / 200 for rows, _ in samples]
    assert np.mean(distinct) == pytest.approx(1 - np.exp(-1), abs=0.03)


def test_whole_groups_are_drawn_and_torn_ones_are_found() -> None:
    assert torn(recorded(GROUPS)) == 0
    assert torn(recorded([f"patient {one}" for one in GROUPS])) == 0
    assert torn(recorded()) == 10  # planted: the same rows without their groups


def test_copies_of_a_row_are_one_group_of_a_recipe_that_takes_groups() -> None:
    assert all(np.array_equal(rows, groups) for rows, groups in recorded())
    for rows, groups in recorded(GROUPS):
        pairs = np.unique(np.column_stack([GROUPS[rows], groups]), axis=0)
        assert pairs.shape == (np.unique(groups).size, 2) == (np.unique(GROUPS[rows]).size, 2)


def test_every_sample_has_every_class() -> None:
    y = np.array(["a"] * 50 + ["b", "c"])
    numbers = np.arange(52.0)[:, None]
    Recording.seen.clear()
    bayesrbf.stability(Recording(), numbers, y, refits=20)
    assert [set(y[rows]) for rows, _ in Recording.seen] == [{"a", "b", "c"}] * 21
    with pytest.raises(ValueError, match="have every class"):
        bayesrbf.stability(Recording(), numbers, np.maximum(np.arange(52) - 27, 0), refits=2)


def test_refits_that_fail_are_counted_and_left_out() -> None:
    numbers, y = np.arange(200.0)[:, None], table()[1]
    found = bayesrbf.stability(Frail(), numbers, y, refits=20)
    rng = np.random.default_rng(0)
    absent = sum(0 not in rng.integers(200, size=200) for _ in range(20))
    assert 0 < absent == len(found.failures) < 20
    assert len(found.refits) == len(found.events[0].curves) - 1 == 20 - absent
    assert f"{absent} more failed, first with: The first row is absent." in str(found)


def test_a_recipe_that_never_succeeds_on_samples_is_an_error() -> None:
    class Once(Recording):
        def fit(self, X: np.ndarray, y: np.ndarray, groups: Any = None) -> Self:
            if np.unique(X[:, 0]).size < len(X):
                raise ValueError("copies")
            return super().fit(X, y)

    with pytest.raises(ValueError, match=r"none of 5 refits succeeded\. copies"):
        bayesrbf.stability(Once(), np.arange(200.0)[:, None], table()[1], refits=5)


def test_an_estimator_of_the_package_learns_from_rows_without_labels_and_cells() -> None:
    X, y = table(90)
    X[::7, 1], y = np.nan, np.where(np.arange(90) % 6 == 0, "?", y)
    model = bayesrbf.HybridMixtureClassifier(unlabelled="?", calibrate=True, random_state=0)
    found = bayesrbf.stability(model, X, y, refits=2, threshold=0.4)
    rows = np.random.default_rng(0).integers(90, size=90)
    with pytest.warns(UserWarning, match="equal an earlier row"):  # of samples it is no news
        by_hand = clone(model).fit(X[rows], y[rows], groups=rows).predict_proba(X)
    np.testing.assert_array_equal(found.refits[0], by_hand)
    (one,), known = found.events, y != "?"
    p, acted = one.refits[0][known], one.refits[0][known] >= 0.4
    net = np.mean(acted & (y[known] == "well")) - np.mean(acted & (y[known] == "sick")) * 2 / 3
    assert p.size < one.refits.shape[1] == 90
    assert one.net_benefits[1, 39] == pytest.approx(net)


# The figures.


def test_figures_of_a_row_are_those_of_loops_over_its_refits(sick: EventStability) -> None:
    for i in range(0, 200, 23):
        p, others = sick.probability[i], sorted(sick.refits[:, i].tolist())
        assert sick.error[i] == pytest.approx(sum(abs(q - p) for q in others) / 30)
        crossed = [q for q in others if (q < 0.3) == (p >= 0.3)]
        assert sick.changes[i] == pytest.approx(len(crossed) / 30)
        for end, place in zip(sick.interval[:, i], (0.025 * 29, 0.975 * 29), strict=True):
            low, part = int(place), place % 1
            assert end == pytest.approx(others[low] * (1 - part) + others[low + 1] * part)
        assert sick.width[i] == pytest.approx(sick.interval[1, i] - sick.interval[0, i])
    means = [sum(every) / 200 for every in (sick.error, sick.width, sick.changes)]
    assert list(sick.figures.values()) == pytest.approx(means)
    assert 0 < means[2] < sick.changes.max()


def test_net_benefit_is_that_of_counted_decisions(sick: EventStability) -> None:
    y = table()[1] == "sick"
    for p, curve in zip([sick.probability, *sick.refits], sick.net_benefits, strict=True):
        for at in (4, 29, 70):
            t = THRESHOLDS[at]
            hits, false = int((y & (p >= t)).sum()), int((~y & (p >= t)).sum())
            assert curve[at] == pytest.approx(hits / 200 - false / 200 * t / (1 - t))


def test_calibration_of_a_refit_is_a_regression_on_the_rows_of_the_table(
    sick: EventStability,
) -> None:
    y = table()[1] == "sick"
    for p, curve in ((sick.probability, sick.curves[0]), (sick.refits[5], sick.curves[6])):
        assert curve is not None
        x = logit(p)
        knots = np.quantile(x, (0.05, 0.275, 0.5, 0.725, 0.95), method="inverted_cdf")
        fit = sm.GLM(y, spline_basis(x, knots), family=sm.families.Binomial()).fit()
        at = fit.predict(spline_basis(logit(curve.probability), knots))
        np.testing.assert_allclose(curve.observed, at, atol=0.03)  # a weak prior holds the bend
        assert curve.ici == pytest.approx(np.abs(fit.fittedvalues - p).mean(), abs=0.01)
    assert len(sick.curves) == len(sick.net_benefits) == 31


def test_refits_of_a_logistic_regression_spread_as_its_standard_errors_say() -> None:
    """The mean distance of a normal from its centre is its deviation times sqrt(2 / pi)."""
    X, y = table(600)
    model = LogisticRegression(C=np.inf)
    one = bayesrbf.stability(model, X, y, refits=200, event="well").events[0]
    design = sm.add_constant(X)
    exact = sm.GLM((y == "well").astype(float), design, family=sm.families.Binomial()).fit()
    error = np.sqrt(np.einsum("ij,jk,ik->i", design, exact.cov_params(), design))
    p = one.probability
    expected = error * p * (1 - p) * np.sqrt(2 / np.pi)
    assert one.error.mean() == pytest.approx(expected.mean(), rel=0.15)
    width = 2 * 1.96 * error * p * (1 - p)
    assert one.width.mean() == pytest.approx(width.mean(), rel=0.15)


def test_an_unstable_recipe_is_told_from_a_stable_one() -> None:
    kinds = [
        bayesrbf.stability(model, *table(), refits=20).events[0]
        for model in (DummyClassifier(), LogisticRegression(C=0.01), DecisionTreeClassifier())
    ]
    for figures in zip(*(one.figures.items() for one in kinds), strict=True):
        (name, constant), (_, ridge), (_, tree) = figures
        assert constant < 0.2, name
        assert 2 * ridge < tree, name


def test_what_always_says_the_same_is_stable() -> None:
    model = DummyClassifier(strategy="uniform")
    found = bayesrbf.stability(model, *table(), refits=5)
    one = found.events[0]
    assert list(one.figures.values()) == [0, 0, 0]
    assert one.curves == (None,) * 6


def test_two_classes_mirror_each_other_and_three_are_events_each() -> None:
    X, y = table()
    one, other = (
        bayesrbf.stability(LogisticRegression(), X, y, refits=5, event=event).events[0]
        for event in ("sick", "well")
    )
    np.testing.assert_allclose(one.error, other.error)
    np.testing.assert_allclose(one.width, other.width)
    usual = bayesrbf.stability(LogisticRegression(), X, y, refits=5)
    assert [event.event for event in usual.events] == ["well"]
    three = np.where(X[:, 1] > 1, "odd", y)
    found = bayesrbf.stability(LogisticRegression(), X, three, refits=5)
    assert [event.event for event in found.events] == ["odd", "sick", "well"]
    errors = [np.abs(found.refits - found.probabilities)[..., c].mean() for c in range(3)]
    assert found.largest is found.events[int(np.argmax(errors))]


def test_the_record_is_told_in_figures(found: Stability, sick: EventStability) -> None:
    first, event, *lines = str(found).splitlines()
    assert first == "30 refits on bootstrap samples of 200 rows"
    assert event == "sick, at 0.3; intervals of 95 %"
    told = [line.strip().rsplit(maxsplit=1) for line in lines]
    assert [name for name, _ in told] == list(sick.figures)
    assert [float(x) for _, x in told] == pytest.approx(list(sick.figures.values()), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"refits": 1}, "refits=...) must be an integer of at least 2; received 1"),
        ({"threshold": 1.0}, "threshold=...) must be a number strictly between 0 and 1"),
        ({"level": 0.0}, "level=...) must be a number strictly between 0 and 1"),
        ({"event": "dead"}, "received 'dead', and y has sick, well"),
        ({"groups": [1, 2]}, "must name a group for each of the 200 rows"),
        ({"groups": ["a"] * 200}, "must name at least two groups"),
    ],
)
def test_bad_requests_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        bayesrbf.stability(LogisticRegression(), *table(), **options)


def test_rows_and_labels_must_fit_together() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="inconsistent numbers"):
        bayesrbf.stability(LogisticRegression(), X[:-1], y)

"""Decisions at given costs: the cheapest, how sure the draws are of it, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
)
from tests.cases import generative
from tests.fit.class_tables import CLASSES, table

COSTS = pd.DataFrame(
    {"sail": [0.0, 4.0, 50.0], "reef": [1.0, 0.5, 20.0], "harbour": [3.0, 3.0, 3.0]}, index=CLASSES
)


@cache
def mixture(inference: str = "map") -> HybridMixtureClassifier:
    return generative(n_init=1, random_state=0, inference=inference).fit(*table())


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    return rng.normal(size=(80, 2)) + y[:, None], np.array(["sick", "well"])[y]


@cache
def network() -> KernelNetworkClassifier:
    return KernelNetworkClassifier(n_basis=10, random_state=0).fit(*two_classes()).refine(draws=40)


def test_no_decision_is_expected_to_cost_less() -> None:
    frame = table(n=25, seed=1)[0]
    told, p = mixture().decide(frame, COSTS), mixture().predict_proba(frame)
    for row in range(25):
        costs = {d: sum(p[row, c] * COSTS[d].iloc[c] for c in range(3)) for d in COSTS}
        best = min(costs, key=lambda d: costs[d])
        one = told.isel(obs=row)
        assert one["best"] == best
        assert float(one["cost"]) == pytest.approx(costs[best])
        for decision, cost in costs.items():
            assert float(one["expected_cost"].sel(decision=decision)) == pytest.approx(cost)
    assert np.isnan(told["probability_best"]).all()
    assert set(told["best"].to_numpy()) == set(COSTS)
    assert "refer" not in told


def test_a_cost_for_each_class_is_what_a_mistake_costs() -> None:
    frame, (one, *others) = table(n=25, seed=1)[0], CLASSES
    matrix = pd.DataFrame(1.0 - np.eye(3), CLASSES, CLASSES)
    matrix.loc[one] *= 20.0
    told, whole = (mixture().decide(frame, costs) for costs in ({one: 20}, matrix))
    for name in ("best", "cost", "expected_cost"):
        np.testing.assert_array_equal(told[name], whole[name])
    assert told["best"].isin(CLASSES).all()
    worth = [mixture().acquire_cells(frame, loss=loss)["gain"] for loss in ({one: 20}, matrix)]
    np.testing.assert_array_equal(*worth)
    for costs, said in (
        ({"no class": 2.0}, "look at 'no class'"),
        ({one: 0.0}, "above 0; received 0.0"),
        ({one: 2.0, others[0]: {one: 1.0}}, "throughout|for every class"),
    ):
        with pytest.raises(ValueError, match=said):
            mixture().decide(frame, costs)


def test_frames_mappings_and_arrays_say_the_same() -> None:
    frame = table(n=10, seed=1)[0].set_index(pd.Index(range(5, 15)))
    told = mixture().decide(frame, COSTS)
    assert told["obs"].to_numpy().tolist() == list(range(5, 15))
    shuffled = COSTS.loc[["storm", "calm", "gale"]]
    assert told.identical(mixture().decide(frame, shuffled))
    assert told.identical(mixture().decide(frame, COSTS.to_dict(orient="index")))
    array = mixture().decide(frame, COSTS.to_numpy())
    np.testing.assert_array_equal(array["expected_cost"], told["expected_cost"])
    assert array["decision"].to_numpy().tolist() == CLASSES.tolist()
    two = mixture().decide(frame, COSTS.to_numpy()[:, :2])
    assert two["decision"].to_numpy().tolist() == [0, 1]


def test_a_row_is_referred_where_that_is_cheaper() -> None:
    frame = table(n=40, seed=1)[0]
    told = mixture().decide(frame, COSTS, reject=1.0)
    np.testing.assert_array_equal(told["refer"], told["cost"] > 1.0)
    assert 0 < told["refer"].mean() < 1


def test_mistakes_of_two_classes_are_a_threshold_of_scikit_learn() -> None:
    """At costs a and b the answer changes where ``p = a / (a + b)``."""
    X, y = two_classes()
    model = network()
    costs = {"sick": {"sick": 0, "well": 9}, "well": {"sick": 1, "well": 0}}
    best = model.decide(X, costs)["best"].to_numpy()
    fixed = FixedThresholdClassifier(
        model, threshold=0.1, pos_label="sick", response_method="predict_proba"
    )
    np.testing.assert_array_equal(fixed.fit(X, y).predict(X), best)
    assert (best != model.predict(X)).any()


def test_scikit_learn_tunes_a_threshold_of_these_classifiers() -> None:
    X, y = two_classes()

    def gain(truth: np.ndarray, answer: np.ndarray) -> float:
        counts = confusion_matrix(truth, answer, labels=["sick", "well"])
        return float(-(3 * counts[0, 1] + counts[1, 0]))

    scorer = make_scorer(gain)
    model = KernelNetworkClassifier(n_basis=10, random_state=0)
    tuned = TunedThresholdClassifierCV(model, scoring=scorer, cv=2, random_state=0).fit(X, y)
    assert tuned.best_threshold_ > 0.5  # to be well, where missing a sick one is dear
    assert (tuned.predict(X) == "sick").sum() > (network().predict(X) == "sick").sum()


def test_draws_say_how_sure_the_decision_is() -> None:
    """Where the mean over the draws is delivered, they are counted as they are."""
    frame = table(n=25, seed=1)[0]
    model = mixture("laplace")
    told = model.decide(frame, COSTS)
    draws = model.predict_posterior(frame)["predictions"]["probability"].to_numpy()
    p = draws.reshape(-1, *draws.shape[2:])
    cheapest = COSTS.columns.to_numpy()[(p @ COSTS.to_numpy()).argmin(axis=-1)]
    counted = (cheapest == told["best"].to_numpy()).mean(axis=0)
    np.testing.assert_allclose(told["probability_best"], counted, atol=1e-12)
    assert counted.min() < 0.95


def test_draws_around_a_calibrated_point_mostly_agree_with_it() -> None:
    """What is delivered is the median of the draws; so half of them decide as it does."""
    X, _ = two_classes()
    told = network().decide(X, [[0, 3], [1, 0]])  # at a probability of a quarter, where rows lie
    assert (told["probability_best"] >= 0.5).all()
    assert told["probability_best"].min() < 0.7
    unsure = network().uncertainty(X, prob=0.5)
    inside = (unsure["lower"] < 0.25) & (unsure["upper"] > 0.25)
    sure = ~inside.sel(label="sick")
    assert (told["probability_best"].to_numpy()[sure] >= 0.74).all()


def test_draws_at_another_prevalence_weigh_what_they_say_of_the_row() -> None:
    frame, y = table()
    prior = np.array([0.2, 0.2, 0.6])
    model = generative(n_init=1, random_state=0, inference="laplace", class_prior=prior)
    model.fit(frame, y)
    new = table(n=10, seed=1)[0]
    told = model.decide(new, COSTS)
    plain = mixture("laplace").predict_posterior(new)["predictions"]["probability"].to_numpy()
    p = plain.reshape(-1, 10, 3) * prior / np.bincount(np.searchsorted(CLASSES, y)) * len(y)
    cheapest = (p @ COSTS.to_numpy()).argmin(axis=-1)
    best = [COSTS.columns.get_loc(name) for name in told["best"].to_numpy()]
    counted = np.average(cheapest == best, axis=0, weights=p.sum(axis=-1))
    np.testing.assert_allclose(told["probability_best"], counted, atol=1e-9)


def test_margins_decide_once_they_are_calibrated() -> None:
    X, y = two_classes()
    assert not hasattr(MedianLVQClassifier(objective="glvq", calibrate=False), "decide")
    model = MedianLVQClassifier(2, objective="glvq", calibrate=True, random_state=0).fit(X, y)
    told = model.decide(X, 1 - np.eye(2))
    np.testing.assert_array_equal(told["best"], model.predict(X))
    assert np.isnan(told["probability_best"]).all()


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (COSTS.rename(index={"gale": "gust"}), r"every class of .* look at 'gust'"),
        (COSTS.iloc[:2], r"every class of .* look at 'storm'"),
        (COSTS.iloc[[0, 0, 1, 2]], "the class 'calm' twice"),
        (COSTS.iloc[:, [0, 0]], "the decision 'sail' twice"),
        # Costs of classes alone are taken since they are what --cost takes: not some of both kinds.
        (
            {"calm": 1.0, "gale": {"go": 2.0}, "storm": {"go": 3.0}},
            "received 1.0 for the class 'calm'",
        ),
        (
            {"calm": {"go": 1}, "gale": {"go": 1, "stay": 2}, "storm": {"go": 2}},
            r"same decisions.*\['stay'\] for the class 'gale'",
        ),
        ({"calm": {}, "gale": {}, "storm": {}}, "one at least"),
        (COSTS.mask(COSTS == 20.0), "of 'reef' for the class 'storm' must be a finite number"),
        (np.ones((2, 3)), r"one row for each of the classes .* received shape \(2, 3\)"),
        (np.ones(3), r"received shape \(3,\)"),
        ([[0, 1], [1, 0], [1, np.inf]], r"\[2, 1\] must be a finite number; received"),
        ([["a", 1], [1, 0], [1, 1]], r"\[0, 0\] must be a finite number; received"),
    ],
)
def test_costs_that_cannot_be_used_are_named(costs: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mixture().decide(table(n=3)[0], costs)


def test_a_cost_of_rejecting_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"decide\(reject=...\) must be a finite number"):
        mixture().decide(table(n=3)[0], COSTS, reject=np.nan)

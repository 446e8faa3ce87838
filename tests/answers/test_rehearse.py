"""A rehearsal: coverage by brute force, a planted defect, and a model that stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.ensemble import RandomForestClassifier

import bayesrbf.answers.rehearse as stage
from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
    rehearse,
)
from tests.cases import generative
from tests.fit.class_tables import table

QUICK: dict[str, Any] = {"teachers": ["boosting"], "n_repeats": 1, "draws": 40}


def mixture(**changes: Any) -> HybridMixtureClassifier:
    return generative(shared_covariance=True, random_state=0, **changes)


def test_coverage_is_what_counting_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(60)
    y = np.where(np.arange(60) % 7 == 0, None, y)
    known = np.array([label is not None for label in y])
    plays = []
    draw = stage.drawn_labels

    def noted(truth: np.ndarray, *given: Any) -> np.ndarray:
        plays.append((truth, draw(truth, *given)))
        return plays[-1][1]

    monkeypatch.setattr(stage, "drawn_labels", noted)
    found = rehearse(mixture(), X, y, **QUICK)
    ((truth, labels),) = plays
    drawn = y.copy()
    drawn[known] = np.unique(y[known].astype(str))[labels]
    again = mixture().fit(X, drawn).refine("laplace", draws=40)
    for level in stage.LEVELS:
        rows = again.uncertainty(X, prob=level)
        lower, upper = rows["lower"].to_numpy()[known], rows["upper"].to_numpy()[known]
        count = sum(
            lower[n, c] <= truth[n, c] <= upper[n, c]
            for n in range(len(truth))
            for c in range(truth.shape[1])
        )
        assert found["coverage"].sel(level=level).item() == pytest.approx(count / truth.size)
        assert found["width"].sel(level=level).item() == pytest.approx((upper - lower).mean())


class Shrunken(HybridMixtureClassifier):
    """A defect: intervals of a tenth of their width."""

    def uncertainty(self, X: object, prob: float = 0.9, **options: Any) -> xr.Dataset:
        rows = super().uncertainty(X, prob, **options)
        ends = {
            end: rows["probability"] + (rows[end] - rows["probability"]) / 10
            for end in ("lower", "upper")
        }
        return rows.assign(ends)


def test_intervals_shrunken_to_a_tenth_are_seen() -> None:
    X, y = table(60)
    whole = rehearse(mixture(), X, y, **QUICK)
    shrunken = rehearse(Shrunken(**mixture().get_params()), X, y, **QUICK)
    np.testing.assert_allclose(shrunken["width"], whole["width"] / 10)
    assert shrunken["overall_coverage"][-1] < whole["overall_coverage"][-1] / 2


def test_the_sentence_is_that_of_the_widest_intervals() -> None:
    X, y = table(60)
    found = rehearse(mixture(), X, y, **QUICK)
    held = 100 * float(found["overall_coverage"].sel(level=0.9))
    assert found.attrs["sentence"].startswith(f"90 % intervals held the truth {held:.0f} times")


def test_a_rehearsal_leaves_nothing_behind() -> None:
    X, y = table(60)
    unfitted = mixture()
    rehearse(unfitted, X, y, **QUICK)
    assert vars(unfitted) == vars(mixture())
    fitted = mixture().fit(X, y).refine("laplace", draws=40)
    before = dict(vars(fitted))
    rehearse(fitted, X, y, **QUICK)
    assert vars(fitted) == before


@pytest.mark.slow
def test_the_model_stays_and_its_own_method_is_rehearsed() -> None:
    X, y = table(60)
    model = mixture().fit(X, y).refine("bootstrap", draws=20)
    before, draws = model.predict_proba(X), model.draws_
    assert rehearse(model, X, y, **QUICK | {"draws": 5}).attrs["method"] == "bootstrap"
    assert model.draws_ is draws
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert rehearse(model, X, y, inference="laplace", **QUICK).attrs["method"] == "laplace"


def test_seeds_reproduce() -> None:
    X, y = table(60)
    first, again = (rehearse(mixture(), X, y, **QUICK) for _ in range(2))
    xr.testing.assert_identical(first, again)
    other = rehearse(mixture(), X, y, random_state=1, **QUICK)
    assert not np.array_equal(first["width"], other["width"])


def test_all_teachers_take_holes_levels_and_hidden_labels() -> None:
    X, y = table(60)
    y = pd.Series(y).where(np.arange(60) % 5 > 0)
    found = rehearse(mixture(), X, y, n_repeats=1, draws=20)
    assert found["teacher"].to_numpy().tolist() == ["trees", "boosting", "process"]
    assert "three other models" in found.attrs["sentence"]
    assert found["coverage"].notnull().all()


def test_no_teacher_is_of_the_models_own_kind() -> None:
    X, y = table(30)
    with pytest.raises(ValueError, match=r"KernelNetworkClassifier .* received \['process'\]"):
        rehearse(KernelNetworkClassifier(), X, y, teachers=["process"])
    stack = StackedClassifier(extra=[("other forest", RandomForestClassifier())])
    with pytest.raises(ValueError, match="StackedClassifier"):
        rehearse(stack, X, y, teachers=["trees"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_repeats": 0}, "at least 1; received 0"),
        ({"inference": "map"}, "inference=...\\) must be 'laplace'"),
        ({"teachers": "trees"}, "sequence out of"),
        ({"teachers": []}, "sequence out of"),
    ],
)
def test_what_cannot_be_rehearsed_is_told_first(changes: dict[str, Any], words: str) -> None:
    X, y = table(30)
    with pytest.raises(ValueError, match=words):
        rehearse(mixture(), X, y, **changes)


def test_a_method_that_cannot_draw_is_refused_before_any_teacher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bayesrbf.answers.teachers.TEACHERS", {})  # nothing is there to be fitted
    X, y = table(30)
    for model, method in (
        (StackedClassifier(), "gibbs"),
        (MedianLVQClassifier(), "laplace"),
    ):
        with pytest.raises(ValueError, match=rf"for this classifier; received '{method}'"):
            rehearse(model, X, y, inference=method)


def test_two_classes_need_two_labelled_rows() -> None:
    X, _ = table(30)
    with pytest.raises(ValueError, match=r"two labelled rows each; .*'calm': 29, 'gale': 1"):
        rehearse(mixture(), X, np.array(["calm"] * 29 + ["gale"]))


FAMILIES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "kernel network": (KernelNetworkClassifier(random_state=0), "laplace", {}),
    "exemplars": (MedianLVQClassifier(1, random_state=0), "gibbs", {}),
    "RBF network": (RBFNetworkClassifier(2, n_init=1, random_state=0), "laplace", {}),
    "sparse mixture": (
        SDGMClassifier(1, n_init=1, prediction="single-mode", random_state=0), "laplace", {},
    ),
    "stack": (StackedClassifier(random_state=0), "laplace", {}),
}  # fmt: skip
LONG = {"RBF network", "sparse mixture", "stack"}


@pytest.mark.parametrize(
    ("family", "n_classes"),
    [
        pytest.param(name, 2 + place % 2, marks=[pytest.mark.slow] * (name in LONG))
        for place, name in enumerate(FAMILIES)
    ],
)
@pytest.mark.filterwarnings("ignore:SDGMClassifier. .* rows without a label teach nothing")
def test_every_family_rehearses_holes_levels_and_hidden_labels(family: str, n_classes: int) -> None:
    model, method, options = FAMILIES[family]
    X, y = table(70, missing=0.15)
    y = np.where((y == "storm") & (n_classes == 2), "gale", y)
    hidden = pd.Series(y).where(np.arange(70) % 6 > 0)
    found = rehearse(model, X, hidden, inference=method, **QUICK | {"draws": 20} | options)
    assert found.attrs["method"] == method
    for name in ("coverage", "width", "overall_coverage"):
        assert ((found[name] > 0) & (found[name] <= 1)).all()
    assert (np.diff(found["overall_width"]) > 0).all()
    assert (np.diff(found["overall_coverage"]) >= 0).all()

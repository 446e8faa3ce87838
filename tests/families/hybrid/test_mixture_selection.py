"""Mixtures that choose components, shapes and what missing cells tell, by rows held out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity
from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.families.hybrid.selection import open_shapes
from bayesrbf.fit.calibration import Selection
from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import encode, with_masks
from tests.cases import generative


def clusters(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One class around 0, the other one in two clusters beside it."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, n)
    X = np.array([-4.0, 0.0, 4.0])[place, None] + rng.normal(0, 0.5, (n, 1))
    return X, np.where(place == 1, "middle", "ends")


def telling_holes(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Columns that say nothing, in which cells of one class are missing more often."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 3))
    X[rng.random(X.shape) < np.where(y, 0.5, 0.1)[:, None]] = np.nan
    return X, y


@pytest.mark.parametrize(("gain", "wins"), [(0.0, False), (0.05, False), (0.5, True)])
def test_a_candidate_must_beat_its_own_noise(gain: float, wins: bool) -> None:
    noise = np.random.default_rng(0).normal(0, 1, 50)
    scores = np.stack([np.full(50, -1.0), gain - 1 + noise - noise.mean()])
    selection = Selection(("first", "later"), scores, np.ones(50), margin=1.0)
    assert selection.chosen == ("later" if wins else "first")
    assert selection.gain(1, 0) == pytest.approx((gain, noise.std() / 50**0.5))


def test_more_components_win_where_a_class_has_two_clusters() -> None:
    X, y = clusters()
    model = HybridMixtureClassifier("cv", objective="likelihood", random_state=0, cv=3).fit(X, y)
    assert model.candidates_[0].n_components == (3, 3)
    assert model.model_.specification.n_components == 6
    single = X[:, 0] > 0
    model.fit(X[y != "middle"], single[y != "middle"])
    assert model.candidates_[0].n_components == (1, 1)


def test_holes_are_read_where_they_tell_something(tmp_path) -> None:
    X, y = telling_holes()
    settings = {"random_state": 0, "cv": 3, "calibrate": True}
    model = generative(missingness="cv", **settings).fit(X, y)
    assert model.candidates_[0].informative
    asked = generative(missingness="informative", **settings).fit(X, y)
    assert [one.informative for one in asked.candidates_] == [True]
    np.testing.assert_array_equal(model.score_samples(X), asked.score_samples(X))
    np.testing.assert_array_equal(model.rows_.codes, asked.rows_.codes)
    assert model.columns_ == asked.columns_
    model.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    assert loaded.candidates_ == model.candidates_
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    blind = np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, np.nan_to_num(X))
    model.fit(blind, y)
    ignorable = generative(**settings).fit(blind, y)
    assert not model.candidates_[0].informative
    assert [one.informative for one in model.candidates_[1:]] == [True]
    np.testing.assert_array_equal(model.predict_proba(blind), ignorable.predict_proba(blind))


def test_only_what_the_table_has_is_judged() -> None:
    X, y = clusters(60)
    open_all = {"missingness": "cv", "unlabelled_weight": "cv", "cv": 2, "random_state": 0}
    model = generative(**open_all).fit(X, y)
    assert {one.informative for one in model.candidates_} == {False}
    assert model.columns_.masked == ()
    X[0], hidden = np.nan, np.where(np.arange(60) % 4, y, None)
    model.fit(X, hidden)
    assert {one.informative for one in model.candidates_} == {False, True}
    assert {one.unlabelled_weight for one in model.candidates_} == {0.0, 1.0}


def test_without_a_question_no_row_is_held_out() -> None:
    X, y = clusters(60)
    (alone,) = generative(cv="no splitter", random_state=0).fit(X, y).candidates_
    assert np.isnan(alone.log_score)
    assert alone.n_components == (1, 1)
    (alone,) = generative(calibrate=True, random_state=0).fit(X, y).candidates_
    assert alone.log_score < 0


def test_shared_covariances_are_tried_with_one_component_where_that_is_open() -> None:
    asked = MixtureSpecification(2, (), (0, 1))
    options = {"open_type": True, "more_components": (0, 0, 1, 1)}
    shapes = open_shapes(asked, open_sharing=True, **options)
    assert [(s.n_components, s.covariance_type, s.shared_covariance) for s in shapes] == [
        (2, "full", True),
        (2, "diag", True),
        (2, "full", False),
        (2, "diag", False),
        (4, "full", False),
        (4, "diag", False),
    ]
    shared_covariance = MixtureSpecification(2, (), (0, 1), shared_covariance=True)
    assert all(
        s.shared_covariance for s in open_shapes(shared_covariance, open_sharing=False, **options)
    )
    categories = MixtureSpecification(0, (2,), (0, 1))
    assert [s.n_components for s in open_shapes(categories, open_sharing=True, **options)] == [2, 4]


@pytest.mark.parametrize("point_masses", [False, True])
def test_masks_beside_rows_are_those_that_are_read(point_masses: bool) -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, np.nan], "b": ["x", None, "y"], "c": [1.0, np.nan, 2.0]})
    plain = learn_columns(X, categorical_features=["b", "c"])
    if point_masses:
        plain = replace(plain, point_masses=((0.0,),))
    masked = plain.with_masks
    found, expected = with_masks(encode(X, plain), masked), encode(X, masked)
    np.testing.assert_array_equal(found.codes, expected.codes)
    np.testing.assert_array_equal(found.real, expected.real)


@pytest.mark.parametrize("name", ["n_components", "covariance_type", "prior"])
def test_auto_is_now_cv(name: str) -> None:
    with pytest.raises(ValueError, match=rf"MixtureDensity\({name}=...\).*'cv'.*'auto'"):
        MixtureDensity().set_params(**{name: "auto"}).fit(np.eye(3))

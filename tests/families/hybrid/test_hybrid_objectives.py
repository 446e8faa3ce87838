"""Hybrid mixtures under every objective: holes, weights, dials, hidden labels, files."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import bayesrbf
from bayesrbf import (
    Blend,
    ConditionalLikelihood,
    Hinge,
    HybridMixtureClassifier,
    Margin,
    MixturePrior,
)
from bayesrbf.base.priors import Objective
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.families.hybrid.objectives import WORDS, MixtureObjective
from bayesrbf.families.hybrid.selection import Setting, Task, choose, open_weights
from bayesrbf.fit.held_out import HeldOut, split_rows
from bayesrbf.mixture.fitted import Solver
from tests.cases import generative

OBJECTIVES = ("conditional", "margin", "blend", "hinge")
QUICK = {"n_init": 1, "random_state": 0}
SHORT = {name: replace(WORDS[name], max_iter=15) for name in OBJECTIVES}


def table(n_obs: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two real and one categorical column with holes; three classes."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_obs) % 3
    real = rng.normal(size=(n_obs, 2)) * [1, 20] + np.column_stack([labels, 15.0 * labels])
    kind = np.where(rng.random(n_obs) < 0.3, "x", np.array(["x", "y", "z"])[labels])
    frame = pd.DataFrame({"a": real[:, 0], "b": real[:, 1], "kind": kind})
    for column, share in (("a", 0.2), ("b", 0.2), ("kind", 0.1)):
        frame.loc[rng.random(n_obs) < share, column] = np.nan
    return frame, np.array(["no", "so", "yes"])[labels]


def model(objective: str | MixtureObjective, **arguments: object) -> HybridMixtureClassifier:
    """A quick fit of an objective, or of a word for one of few iterations."""
    return generative(objective=SHORT.get(objective, objective), **{**QUICK, **arguments})


def asked_solver(classifier: HybridMixtureClassifier) -> Solver:
    """How a classifier asks to be fitted."""
    return classifier._solver(classifier.seed_)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_holes_categories_and_unequal_components(objective):
    X, y = table()
    classifier = model(objective, n_components={"no": 1, "so": 2, "yes": 3}).fit(X, y)
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert classifier.score(X, y) > 0.6
    nothing = X.iloc[:1].copy()
    nothing.loc[:, ["a", "b"]] = np.nan
    nothing["kind"] = None
    np.testing.assert_allclose(
        classifier.predict_proba(nothing)[0],
        classifier.posterior_["posterior"]["class_probabilities"][0, 0],
        atol=1e-9,
    )


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_are_rows(objective):
    X, y = table(60)
    twice = (np.arange(60) % 3 == 0) + 1.0  # the usual weight is 1, whoever is a copy
    doubled = X.loc[np.repeat(X.index, twice.astype(int))]
    expected = model(objective).fit(doubled, np.repeat(y, twice.astype(int))).predict_proba(X)
    found = model(objective).fit(X, y, sample_weight=twice).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    ghosts = pd.concat([X, X.assign(a=1e3)])
    weights = np.repeat([1.0, 0.0], 60)
    found = model(objective).fit(ghosts, np.tile(y, 2), sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(found, model(objective).fit(X, y).predict_proba(X), atol=1e-7)


def test_the_end_of_the_dial_is_the_likelihood():
    X, y = table()
    likelihood = generative(random_state=0, tol=1e-10).fit(X, y).predict_proba(X)
    for objective in (Blend(1), Hinge(0)):
        end = generative(random_state=0, tol=1e-10, objective=objective).fit(X, y)
        np.testing.assert_allclose(end.predict_proba(X), likelihood, atol=1e-4)


def test_objectives_about_labels_raise_what_they_are_about():
    X, y = table()
    codes = np.unique(y, return_inverse=True)[1]

    def log_loss(classifier: HybridMixtureClassifier) -> float:
        chosen = classifier.fit(X, y).predict_log_proba(X)[np.arange(y.size), codes]
        return -float(chosen.mean())

    losses = [log_loss(model(Blend(kappa, max_iter=100))) for kappa in (1, 0.3, 0.1)]
    assert losses == sorted(losses, reverse=True)
    assert log_loss(model(ConditionalLikelihood(max_iter=100))) < losses[-1]


def test_a_fit_that_stops_as_told_does_not_warn_and_says_so(recwarn):
    X, y = table(60)
    classifier = model(Margin(max_iter=3)).fit(X, y)
    assert not [w for w in recwarn if w.category is ConvergenceWarning]
    assert "as it was told to" in classifier.status_
    assert not classifier.converged_
    assert classifier.n_iter_ == 4


def test_a_fit_says_what_rows_without_a_label_gained_out_of_fold():
    """The figure is the difference of the scores that the weight was chosen by."""
    X, y = table(90)
    hidden = y.astype(object)
    hidden[np.random.default_rng(0).random(90) < 0.5] = None
    open_weight = {"unlabelled_weight": "cv", "calibrate": True, "cv": 3}
    classifier = model("blend", **open_weight).fit(X, hidden)
    said = classifier.status_.partition("Rows without a label, counted ")[2]
    everything = model("blend", unlabelled_weight=1.0).fit(X, hidden)
    task = Task(MixturePrior(), asked_solver(classifier), True, column_transforms=None)
    structure = classifier.model_.specification
    objective = Objective("blend", kappa=classifier.kappa_)
    open_weight = {"open_dial": False, "unlabelled_weight": None, "n_columns": 3}
    settings = [Setting(*pair, structure) for pair in open_weights(objective, **open_weight)]
    splits = split_rows(3, everything.rows_, everything.row_indices_, classifier.seed_)
    choice = choose(task, splits, settings, classifier.classes_, calibrate=True)
    assert [setting.unlabelled_weight for setting in settings] == [0.0, 1 / 3, 1.0]
    none, *counted = (score for _, score in choice.judged)
    gain = max(counted) - none
    assert f"{gain:+.3f} ± " in said
    assert choice.unlabelled.endswith(said)


def test_nothing_is_said_of_rows_without_a_label_where_there_are_none():
    X, y = table(60)
    status = model("blend", unlabelled_weight="cv", cv=3).fit(X, y).status_
    assert "without a label" not in status


@pytest.mark.slow
def test_cross_validation_takes_the_setting_of_the_best_score():
    X, y = table(90)
    classifier = model(Blend("cv", max_iter=15), calibrate=True, cv=3).fit(X, y)
    task = Task(MixturePrior(), asked_solver(classifier))
    structure = classifier.model_.specification
    open_dial = {"open_dial": True, "unlabelled_weight": 1.0, "n_columns": 3}
    settings = [Setting(*pair, structure) for pair in open_weights(Objective("blend"), **open_dial)]

    def splits():
        return split_rows(3, classifier.rows_, classifier.row_indices_, classifier.seed_)

    together = choose(task, splits(), settings, classifier.classes_, calibrate=True)
    for index in (0, 3):
        alone = choose(task, splits(), [settings[index]], classifier.classes_, calibrate=True)
        assert alone.judged[0][1] == pytest.approx(together.judged[index][1], rel=1e-12)
    assert together.setting == max(together.judged, key=lambda pair: pair[1])[0]
    assert classifier.kappa_ == together.setting.objective.kappa
    assert classifier.temperature_ == together.calibration.temperature
    fixed = model(Blend(classifier.kappa_, max_iter=15)).fit(X, y)
    np.testing.assert_array_equal(classifier.score_samples(X), fixed.score_samples(X))


def test_the_shape_of_the_covariances_follows_the_rows() -> None:
    """Classes that differ in their correlations alone need a full covariance each."""
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    z = rng.normal(size=(160, 2))
    X = np.column_stack([z[:, 0], np.where(y, 0.9, -0.9) * z[:, 0] + 0.4 * z[:, 1]])
    open_both = {"covariance_type": "cv", "shared_covariance": "cv", "random_state": 0, "cv": 3}
    found = generative(**open_both).fit(X, y)
    assert (found.covariance_type_, found.shared_covariance_) == ("full", False)
    assert (found.covariance_type, found.shared_covariance) == ("cv", "cv")
    plain = generative(random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), plain.predict_proba(X))
    X = rng.normal(size=(160, 8)) + 0.4 * y[:, None]  # one law, shifted
    found = generative(**open_both, calibrate=True).fit(X, y)
    assert found.shared_covariance_
    asked = {
        "covariance_type": found.covariance_type_,
        "shared_covariance": True,
        "random_state": 0,
        "cv": 3,
    }
    alone = generative(**asked, calibrate=True).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), alone.predict_proba(X))
    shared_covariance = generative(
        covariance_type="cv", shared_covariance=True, random_state=0
    ).fit(X, y)
    assert shared_covariance.shared_covariance_


def test_the_shape_is_chosen_before_the_dial() -> None:
    X, y = table(90)
    blend = Blend("cv", max_iter=15)
    found = model(blend, covariance_type="cv", shared_covariance="cv", cv=3).fit(X, y)
    asked = {
        "covariance_type": found.covariance_type_,
        "shared_covariance": found.shared_covariance_,
        "cv": 3,
    }
    alone = model(blend, **asked).fit(X, y)
    assert alone.kappa_ == found.kappa_
    np.testing.assert_array_equal(found.predict_proba(X), alone.predict_proba(X))


def test_a_table_of_categories_has_no_shape_to_choose() -> None:
    X, y = table(60)
    open_both = {"covariance_type": "cv", "shared_covariance": "cv", "random_state": 0}
    found = generative(**open_both).fit(X[["kind"]], y)
    plain = generative(random_state=0).fit(X[["kind"]], y)
    np.testing.assert_array_equal(
        found.predict_proba(X[["kind"]]), plain.predict_proba(X[["kind"]])
    )


def test_the_weight_of_unlabelled_rows_follows_what_they_are_worth():
    """Rows of the same law help; rows of another law do not, and are dropped."""
    rng = np.random.default_rng(3)
    labels = np.arange(400) % 2
    X = rng.normal(size=(400, 6)) + 3.0 * labels[:, None] * np.array([1, 1, 0, 0, 0, 0])
    y = labels.astype(float)
    y[24:] = np.nan
    helped = generative(unlabelled_weight="cv", random_state=0).fit(X, y)
    assert helped.unlabelled_weight_ > 0
    X[24:] = 3 * rng.standard_t(1.5, size=(376, 6))
    spoiled = generative(unlabelled_weight="cv", random_state=0).fit(X, y)
    assert spoiled.unlabelled_weight_ == 0
    assert spoiled.rows_.n_obs == spoiled.row_indices_.size == 24
    dropped = generative(unlabelled_weight=0, random_state=0).fit(X, y)
    np.testing.assert_allclose(spoiled.predict_proba(X[:24]), dropped.predict_proba(X[:24]))


def test_settings_weigh_hidden_labels_only():
    rows = Observations(
        np.zeros((3, 1)), np.empty((3, 0), int), np.array([0, -1, 1]), np.array([1.0, 2.0, 3.0])
    )
    for weight, expected in ((1.0, [1, 2, 3]), (0.25, [1, 0.5, 3]), (0.0, [1, 3])):
        setting = Setting(Objective(), weight, MixtureSpecification(1, (), (0, 1)))
        np.testing.assert_array_equal(setting.weigh(rows).weights, expected)


def test_a_score_at_the_best_temperature_is_no_worse():
    joint = np.random.default_rng(0).normal(scale=9, size=(50, 3))
    held_out = HeldOut(joint, np.arange(50) % 3, np.ones(50))
    raw = held_out.log_scores().mean()
    assert held_out.log_scores(held_out.temperature).mean() > raw
    assert raw < 0


@pytest.mark.parametrize(
    "objective",
    [Hinge(margin=3.0, max_iter=15), Blend(0.2, max_iter=15)],
    ids=lambda objective: objective.constants.name,
)
def test_a_file_holds_the_objective(objective, tmp_path):
    X, y = table(60)
    classifier = model(objective).fit(X, y)
    classifier.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert loaded.model_.objective == classifier.model_.objective
    assert loaded.objective == objective
    point = classifier.model_.point(classifier.model_.log_posterior(classifier.rows_))
    value, _ = classifier.model_.log_posterior(classifier.rows_).value_and_gradient(point)
    assert loaded.model_.log_posterior(loaded.rows_).value_and_gradient(point)[0] == value


@pytest.mark.slow
def test_a_gibbs_posterior_is_drawn_and_has_intervals():
    X, y = table(60)
    classifier = model(Blend(max_iter=100), covariance_type="diag").fit(X, y)
    classifier.refine("laplace", draws=100, random_state=0)
    sure = classifier.uncertainty(X.iloc[:5])
    assert np.all(sure["sd"] > 0)
    with pytest.raises(ValueError, match="needs objective='likelihood'"):
        classifier.refine("gibbs")


@pytest.mark.parametrize(
    "arguments", [{"objective": "mcl"}, {"unlabelled_weight": "auto"}], ids=repr
)
def test_arguments_without_meaning_are_named(arguments):
    X, y = table(30)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        generative(**arguments).fit(X, y)


def test_an_objective_of_another_kind_is_a_type_error():
    with pytest.raises(TypeError, match=r"objective=...\) must be an objective, such as Blend\(\)"):
        generative(objective=Objective("blend")).fit(*table(30))


@pytest.mark.parametrize(
    ("kind", "constants"),
    [
        (Blend, {"kappa": "auto"}),
        (Blend, {"kappa": 1.5}),
        (Blend, {"kappa": True}),
        (Hinge, {"weight": -1}),
        (Hinge, {"weight": np.inf}),
        (Hinge, {"margin": "cv"}),
        (Margin, {"margin": np.nan}),
        (ConditionalLikelihood, {"max_iter": 0}),
        (Blend, {"max_iter": 20.0}),
    ],
    ids=repr,
)
def test_constants_without_meaning_are_named(kind, constants):
    ((name, value),) = constants.items()
    said = re.escape(f"{kind.__name__}.{name} must be") + ".*" + re.escape(f"received {value!r}.")
    with pytest.raises(ValueError, match=said):
        kind(**constants)


def test_a_word_is_the_object_with_its_defaults():
    X, y = table(60)
    for word, objective in WORDS.items():
        assert objective.constants.name == word
        plain = generative(objective=objective, random_state=0, n_init=1)
        same = clone(plain).set_params(objective=word)
        if word in ("blend", "likelihood"):
            found = plain.fit(X, y).predict_proba(X)
            np.testing.assert_array_equal(found, same.fit(X, y).predict_proba(X))


def test_objectives_work_with_scikit_learn():
    X, y = table(60)
    classifier = model(Blend(0.2, max_iter=15), covariance_type="diag")
    copied = clone(classifier)
    assert copied.objective == classifier.objective
    assert pickle.loads(pickle.dumps(classifier)).objective == classifier.objective
    assert "kappa=0.2" in repr(classifier)
    grid = {"objective": [Blend(1.0, max_iter=5), Hinge(4.0, max_iter=5), "likelihood"]}
    search = GridSearchCV(classifier, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_["objective"] in grid["objective"]
    assert search.best_estimator_.objective == search.best_params_["objective"]
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_a_solver_follows_a_blend_for_sixty_iterations():
    assert Solver(1, 1, 0.0, 0, Objective("blend")).most_steps == 60
    assert Solver(1, 1, 0.0, 0, Objective("hinge")).most_steps == 200
    specification = MixtureSpecification(1, (), (0, 1))
    assert (
        Task(MixturePrior(), Solver(1, 1, 0.0, 0)).begin(
            Observations(np.zeros((1, 1)), np.empty((1, 0), int), np.zeros(1, int), np.ones(1)),
            specification,
            0,
        )
        is None
    )

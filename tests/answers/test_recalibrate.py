"""An update by labelled rows: its law, its fit, its uncertainty, and what stays as it was."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

import bayesrbf
from bayesrbf import (
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
    explain_interval,
    recalibrate,
)
from bayesrbf.base import names
from bayesrbf.base.artefact import ArtefactError
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.updates import (
    INTERCEPT_SD,
    SCALES,
    SLOPE_SD,
    after_update,
    fit_update,
    row_digests,
)
from tests.cases import generative, some_quick
from tests.forgeries import forge

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning"),
]

FAMILIES: dict[str, Callable[[], Any]] = {
    "mixture": lambda: generative(n_init=1, random_state=0),
    "mixture, calibrated": lambda: generative(n_init=1, calibrate=True, cv=2, random_state=0),
    "mixture, other prior": lambda: generative(
        n_init=1, class_prior=(0.2, 0.3, 0.5), random_state=0
    ),
    "RBF network": lambda: RBFNetworkClassifier(2, n_init=1, cv=2, random_state=0),
    "kernel network": lambda: KernelNetworkClassifier(n_basis=5, random_state=0),
    "sparse mixture": lambda: SDGMClassifier(1, n_init=1, companion_components=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(n_prototypes=2, cv=2, random_state=0),
    "stack": lambda: StackedClassifier(["laplace", "normal"], cv=2, random_state=0),
}
METHOD = {"exemplars": "gibbs"}
QUICK = ("mixture", "mixture, other prior", "kernel network", "stack")


def population(n: int, shares: tuple[float, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three classes in two columns, some cells missing."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    X = rng.normal(size=(n, 2)) + 1.5 * np.eye(3)[y][:, :2]
    X[::7, 1] = np.nan
    return X, np.array(["a", "b", "c"], dtype=object)[y]


@cache
def fitted(name: str) -> Any:
    """A family with draws."""
    X, y = population(90, (0.3, 0.3, 0.4), 0)
    return FAMILIES[name]().fit(X, y).refine(METHOD.get(name, "laplace"), draws=200)


def local(n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Rows of another population."""
    return population(n, (0.7, 0.2, 0.1), 1)


def said(n: int, seed: int = 0, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Class log probabilities of rows, and class shares."""
    shares = np.arange(1.0, n_classes + 1)
    log_q = np.random.default_rng(seed).normal(size=(n, n_classes)) + np.log(shares)
    return log_softmax(log_q, axis=1), np.log(shares / shares.sum())


def drawn(log_q: np.ndarray, seed: int) -> np.ndarray:
    """A label of every row."""
    return (
        (np.exp(log_q) / np.exp(log_q).sum(axis=1, keepdims=True))
        .cumsum(axis=1)
        .__lt__(np.random.default_rng(seed).random((len(log_q), 1)))
        .sum(axis=1)
    )


# ---- the fit


@pytest.mark.parametrize("method", ["intercept", "slope"])
def test_known_intercepts_and_slope_are_found(method):
    truth = np.array([0.4, -0.6, 0.2, -0.3 if method == "slope" else 0.0])
    log_q, log_shares = said(20_000)
    labels = drawn(after_update(log_q, log_shares, truth), 1)
    found, covariance = fit_update(log_q, labels, np.ones(labels.size), log_shares, method)
    free = truth != 0
    errors = np.sqrt(np.diag(covariance))[free]
    assert np.all(np.abs(found - truth)[free] < 4 * np.minimum(errors, 0.05))
    assert found[~free].sum() == 0
    assert found[:-1].sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", ["intercept", "slope"])
@pytest.mark.parametrize(("n", "shift"), [(30, 0.0), (30, 2.5), (300, 2.5)])
def test_two_classes_are_a_penalised_logistic_regression(method, n, shift):
    log_q, log_shares = said(n, n_classes=2)
    log_odds, start = log_q[:, 1] - log_q[:, 0], log_shares[1] - log_shares[0]
    rng = np.random.default_rng(n)
    y, weights = (rng.random(n) < expit(log_odds + shift)).astype(int), rng.uniform(1, 2, n)

    def loss(point: np.ndarray, scale: float) -> float:
        a, b = point[0], 1 + (point[1] if method == "slope" else 0.0)
        eta = start + a + b * (log_odds - start)
        fit = weights @ (y * eta - np.logaddexp(0, eta))
        # Two intercepts of which one is minus the other: a is their difference.
        penalty = a**2 / (2 * 2 * (INTERCEPT_SD * scale) ** 2)
        return -fit + penalty + (b - 1) ** 2 / (2 * (SLOPE_SD * scale) ** 2)

    found, covariance = fit_update(log_q, y, weights, log_shares, method)
    modes = [minimize(loss, np.zeros(2), args=(one,), tol=1e-10).x for one in SCALES]
    apart = [abs(found[1] - found[0] - mode[0]) + abs(found[2] - mode[1]) for mode in modes]
    assert min(apart) < 1e-4
    # A great shift is not held back, where rows show it.
    assert (SCALES[int(np.argmin(apart))] > 1) == (shift > 0 and n == 300) or n == 30
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert variance < 2 * (INTERCEPT_SD * max(SCALES)) ** 2


def test_weights_are_rows_and_the_order_of_rows_and_classes_does_not_matter():
    log_q, log_shares = said(60)
    labels = drawn(log_q, 2)
    weights = np.where(np.arange(60) % 3, 1.0, 2.0)
    found = fit_update(log_q, labels, weights, log_shares, "slope")
    copies = np.repeat(np.arange(60), weights.astype(int))
    twice = fit_update(log_q[copies], labels[copies], np.ones(copies.size), log_shares, "slope")
    order = np.random.default_rng(0).permutation(60)
    mixed = fit_update(log_q[order], labels[order], weights[order], log_shares, "slope")
    for other in (twice, mixed):
        np.testing.assert_allclose(found[0], other[0], atol=1e-9)
        np.testing.assert_allclose(found[1], other[1], atol=1e-9)
    renamed = np.array([2, 0, 1])
    turned = fit_update(
        log_q[:, renamed], np.argsort(renamed)[labels], weights, log_shares[renamed], "slope"
    )
    np.testing.assert_allclose(turned[0], found[0][[*renamed, 3]], atol=1e-8)


def test_the_choice_by_folds_does_not_depend_on_the_order_of_rows():
    model = fitted("mixture")
    X, y = local(60)
    order = np.random.default_rng(1).permutation(60)
    one, other = recalibrate(model, X, y), recalibrate(model, X[order], y[order])
    assert one.updates_[0].sentence == other.updates_[0].sentence
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-9)


def test_the_richer_update_is_taken_only_where_it_is_better():
    model = fitted("mixture")
    X, _ = population(400, (0.3, 0.3, 0.4), 5)
    log_q, classes = model.predict_log_proba(X), model.classes_
    # Chance alone is better by a standard error in some draws, and not in most.
    as_it_was = [recalibrate(model, X, classes[drawn(log_q, seed)]) for seed in range(5)]
    assert [one.updates_[0].method for one in as_it_was].count("none") >= 3
    for update in (one.updates_[0] for one in as_it_was):
        if update.method == "none":
            assert "no update is called for" in update.sentence
        else:  # better than none itself, however it was reached
            gain, error = re.findall(
                update.method + r" ([+-][0-9.]+) ± ([0-9.]+)", update.sentence
            )[0]
            assert float(gain) >= float(error)
    log_shares = np.log(model.fitted_.class_shares)
    for method, truth in {
        "intercept": np.array([0.8, -0.4, -0.4, 0.0]),
        "slope": np.array([0.5, -0.5, 0.0, -0.6]),
    }.items():
        labels = classes[drawn(after_update(log_q, log_shares, truth), 7)]
        assert recalibrate(model, X, labels).updates_[0].method == method


# ---- the model


@pytest.mark.parametrize("name", some_quick(FAMILIES, *QUICK))
def test_every_answer_about_classes_is_updated_alike(name, tmp_path):
    model, (X, y) = fitted(name), local()
    before = model.predict_proba(X)
    updated = recalibrate(model, X, y, "slope")
    (update,) = updated.updates_
    shares = model.fitted_.shares_of_use
    # The formula, once more.
    ratio = (before / shares) ** (update.slope - 1)
    expected = before * np.exp(update.intercepts) * ratio
    expected /= expected.sum(axis=1, keepdims=True)
    p = updated.predict_proba(X)
    np.testing.assert_allclose(p, expected, atol=1e-9)
    assert np.abs(p - before).max() > 0.02
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.updates_ == ()
    np.testing.assert_array_equal(updated.predict(X), updated.classes_[p.argmax(axis=1)])
    told = updated.uncertainty(X)
    np.testing.assert_allclose(told["probability"], p, atol=1e-9)
    costs = updated.decide(X, {"a": 5.0})["expected_cost"]
    np.testing.assert_allclose(costs.sel(decision="a"), p[:, 1] + p[:, 2], atol=1e-9)
    explained = updated.explain(X[:2])
    np.testing.assert_allclose(explained["log_odds"], logit(p[:2]), atol=1e-6)
    assert explained["shapley"].sum("column").to_numpy() == pytest.approx(
        (explained["log_odds"] - explained["base"]).to_numpy(), abs=1e-6
    )
    if model.model_.density is not None:
        np.testing.assert_array_equal(updated.novelty(X), model.novelty(X))
        np.testing.assert_array_equal(updated.score_samples(X), model.score_samples(X))
    # What it stands for now is what the local rows are, on average.
    np.testing.assert_allclose(update.shares, p.mean(axis=0), atol=1e-9)
    updated.save(tmp_path / "model.safetensors")
    again = bayesrbf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(X), p)
    assert again.updates_[0].sentence == update.sentence
    np.testing.assert_array_equal(again.uncertainty(X)["lower"], told["lower"])


@pytest.mark.parametrize("name", some_quick(FAMILIES, *QUICK))
def test_rows_have_the_digests_of_equal_rows(name):
    """Whether they were read at the fit, for an update or as new rows, in any order."""
    model, (X, y) = fitted(name), local(40)
    (update,) = recalibrate(model, X, y, "slope").updates_
    columns = model.fitted_.table.columns
    again = row_digests(new_rows(model.fitted_, X[::-1]).cells, columns)
    np.testing.assert_array_equal(again[::-1], update.row_digests)
    same = new_rows(model.fitted_, population(90, (0.3, 0.3, 0.4), 0)[0]).cells
    trained = row_digests(same, columns)
    assert set(trained.tolist()) == set(row_digests(model.fitted_.rows, columns).tolist())
    assert not set(trained.tolist()) & set(update.row_digests.tolist())


def test_a_file_of_a_version_without_digests_is_read(tmp_path):
    model, (X, y) = fitted("mixture"), local(40)
    updated, path = recalibrate(model, X, y, "slope"), tmp_path / "model"
    updated.save(path)

    def forget(header, manifest):
        records = manifest["state"]["dict"]["fitted"]["record"][1]["updates"]["tuple"]
        del records[0]["record"][1]["row_digests"]

    forge(path, forget)
    again = bayesrbf.load(path)
    assert again.updates_[0].row_digests.size == 0
    np.testing.assert_array_equal(again.predict_proba(X), updated.predict_proba(X))

    def truncate(header, manifest):
        forget(header, manifest)
        records = manifest["state"]["dict"]["fitted"]["record"][1]["updates"]["tuple"]
        del records[0]["record"][1]["n_rows"]

    updated.save(path)
    forge(path, truncate)
    with pytest.raises(ArtefactError, match=r"lacks fields of a .*: n_rows.*fit again"):
        bayesrbf.load(path)


def test_a_file_with_digests_of_some_rows_is_refused(tmp_path):
    updated = recalibrate(fitted("mixture"), *local(40), "slope")
    (update,) = updated.updates_
    some = replace(update, row_digests=update.row_digests[1:])
    updated.fitted_ = updated.fitted_.replaced(updates=(some,))
    updated.save(tmp_path / "model")
    with pytest.raises(ArtefactError, match="a digest of every row, or none"):
        bayesrbf.load(tmp_path / "model")


@pytest.mark.parametrize("name", ["mixture", "stack"])
def test_none_leaves_all_answers_as_they_were(name):
    model, (X, y) = fitted(name), local()
    same = recalibrate(model, X, y, "none")
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    for figure in ("lower", "upper", "sd"):
        np.testing.assert_array_equal(same.uncertainty(X)[figure], model.uncertainty(X)[figure])
    assert "80 labelled rows" in same.updates_[0].sentence


@pytest.mark.parametrize("name", ["mixture", "stack"])
def test_intervals_count_the_uncertainty_about_the_update(name):
    model, (X, y) = fitted(name), local(40)
    updated = recalibrate(model, X, y, "slope")
    sure = replace(updated.updates_[0], covariance=np.zeros((4, 4)))
    certain = recalibrate(model, X, y, "slope")
    certain.fitted_ = certain.fitted_.replaced(updates=(sure,))
    wide, narrow = (one.uncertainty(X)["sd"].to_numpy() for one in (updated, certain))
    assert wide.mean() > 1.01 * narrow.mean()
    assert np.mean(wide > narrow) > 0.8
    # Draws keep the probability that is given out inside.
    told = updated.uncertainty(X)
    assert bool((told["lower"] <= told["probability"]).all())


def test_the_uncertainties_of_model_and_update_add_up():
    X, y = population(400, (0.5, 0.5, 0.0), 0)
    model = KernelNetworkClassifier(n_basis=5, random_state=0).fit(X, y).refine(draws=2000)
    updated = recalibrate(model, *population(40, (0.8, 0.2, 0.0), 1), "slope")
    (update,) = updated.updates_

    def log_odds(one: Any) -> np.ndarray:
        drawn = one.predict_posterior(X[1:60])["predictions"]["probability"].to_numpy()
        return logit(drawn[..., 1]).reshape(-1, drawn.shape[2])

    own, both = log_odds(model), log_odds(updated)
    slope = 1 + np.random.default_rng(0).normal(0, np.sqrt(update.covariance[2, 2]), 10_000)
    evidence = own.mean(axis=0) - np.subtract(*update.log_shares[::-1])
    design = np.column_stack([-np.ones(59), np.ones(59), evidence])
    of_update = np.einsum("ni,ij,nj->n", design, update.covariance, design)
    expected = (update.slope**2 + slope.var()) * own.var(axis=0) + of_update
    np.testing.assert_allclose(both.var(axis=0), expected, rtol=0.15)


def test_the_parts_of_an_interval_name_the_update():
    model, (X, y) = fitted("stack"), local(40)
    updated = recalibrate(model, X, y, "slope")
    before, told = explain_interval(model, X[:8]), explain_interval(updated, X[:8])
    *stages, label_noise = before["uncertainty_component"].to_numpy()
    assert told["uncertainty_component"].to_numpy().tolist() == [*stages, names.UPDATE, label_noise]
    width = (told["component_upper"] - told["component_lower"]).sel(
        uncertainty_component=names.UPDATE
    )
    assert bool((width > 0).all())
    alone = told["component_upper"] - told["component_lower"]
    assert width.mean() < alone.sel(uncertainty_component=names.LABELS_HELD_OUT).mean()


def test_updates_follow_each_other_and_prevalences_follow_an_update():
    model, (X, y) = fitted("mixture"), local()
    once = recalibrate(model, X, y, "slope")
    other = population(60, (0.1, 0.1, 0.8), 4)
    twice = recalibrate(once, *other, "intercept")
    first, second = twice.updates_
    assert first is once.updates_[0]
    np.testing.assert_array_equal(
        twice.predict_proba(X), np.exp(second.applied(once.predict_log_proba(X)))
    )
    sd = [one.uncertainty(X)["sd"].mean().item() for one in (once, twice)]
    assert np.isfinite(sd).all()
    # Bayes' rule from what the update stands for to the new frequencies.
    p = once.predict_proba(X)
    shift = once.estimate_prior(other[0])
    once.adapt_prior(other[0])
    np.testing.assert_allclose(shift["trained"], first.shares, atol=1e-12)
    expected = p * shift["probability"].to_numpy() / first.shares
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(once.predict_proba(X), expected, atol=1e-9)
    assert shift["probability"].to_numpy()[2] > 0.5


def test_a_refit_is_the_fit_of_both_tables():
    frame = ["x", "y"]
    X, y = population(90, (0.3, 0.3, 0.4), 0)
    here, there = local(30)
    table, new = pd.DataFrame(X, columns=frame), pd.DataFrame(here, columns=frame)
    model = FAMILIES["mixture"]().fit(table, y)
    refit = recalibrate(model, new, there, "refit", training=(table[["y", "x"]], y))
    both = FAMILIES["mixture"]().fit(pd.concat([table, new]), np.append(y, there))
    turned = refit.predict_proba(new[["y", "x"]])
    np.testing.assert_allclose(turned, both.predict_proba(new), atol=1e-3)
    assert refit.updates_[0].method == "refit"
    assert refit.draws_ is None
    drawn = recalibrate(fitted("mixture"), here, there, "refit", training=(X, y))
    assert drawn.draws_ is not None
    chosen = recalibrate(model, new, there, training=(table, y), folds=3)
    assert "refit" in chosen.updates_[0].sentence


def test_rows_without_label_or_weight_do_not_count():
    model, (X, y) = fitted("mixture"), local(40)
    some = recalibrate(model, X[:30], y[:30], "slope")
    hidden = y.copy()
    hidden[30:] = None
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    for other in (
        recalibrate(model, X, hidden, "slope"),
        recalibrate(model, X, y, "slope", sample_weight=weights),
    ):
        assert other.updates_[0].n_rows == 30
        np.testing.assert_allclose(other.predict_proba(X), some.predict_proba(X), atol=1e-9)


def test_what_cannot_be_used_is_refused_in_words():
    model, (X, y) = fitted("mixture"), local(20)
    with pytest.raises(ValueError, match="'z', which is no class"):
        recalibrate(model, X, np.where(y == "a", "z", y))
    with pytest.raises(ValueError, match="must be 'cv' or one of"):
        recalibrate(model, X, y, "both")
    with pytest.raises(ValueError, match="needs the training table"):
        recalibrate(model, X, y, "refit")
    with pytest.raises(ValueError, match="is for 'cv' and 'refit'"):
        recalibrate(model, X, y, "slope", training=(X, y))
    with pytest.raises(ValueError, match="must have the classes"):
        recalibrate(model, X, y, training=(X, np.where(y == "c", "d", y)))
    with pytest.raises(ValueError, match="at least 2 labelled rows"):
        recalibrate(model, X[:1], y[:1])
    with pytest.raises(ValueError, match="at least 2; received 1"):
        recalibrate(model, X, y, folds=1)
    with pytest.raises(ValueError, match="must be a classifier"):
        recalibrate(MixtureDensity(1).fit(X), X, y)  # type: ignore[type-var]


def test_a_class_without_a_local_row_keeps_a_probability():
    model, (X, y) = fitted("mixture"), local(60)
    seen = y != "c"
    p = recalibrate(model, X[seen], y[seen], "slope").predict_proba(X)
    assert p.min() > 0
    assert p[:, 2].mean() < model.predict_proba(X)[:, 2].mean()


def test_extreme_probabilities_do_not_break_an_update():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    X = rng.normal(size=(100, 1)) + 100.0 * y[:, None]
    model = generative(1, random_state=0).fit(X, y).refine()
    rows = new_rows(model.fitted_, X).cells
    assert np.exp(model.fitted_.class_log_probabilities(rows)).min() < 1e-14
    updated = recalibrate(model, X, np.roll(y, 5), "slope")
    assert np.isfinite(updated.predict_log_proba(X)).all()
    assert 0 < updated.updates_[0].slope < 1

"""Intervals of one kind of model that count how wrong a stack says it may be."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
    load,
)
from bayesrbf.base.arrays import MIN_DISPUTED_PROBABILITY
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack import model_uncertainty as beside
from bayesrbf.families.stack.fitted import SeenByPool
from bayesrbf.families.stack.intervals import ErrorOfRows
from bayesrbf.families.stack.model_uncertainty import ModelUncertainty
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.chain import Chain
from tests.cases import generative

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "mixture": lambda: HybridMixtureClassifier(covariance_type="diag", cv=3, random_state=0),
    "uncalibrated mixture": lambda: generative(random_state=0),
    "RBF network": lambda: RBFNetworkClassifier(random_state=0),
    "kernel network": lambda: KernelNetworkClassifier(random_state=0),
    "sparse mixture": lambda: SDGMClassifier(1, n_init=1, random_state=0),
}
SLOW = ("uncalibrated mixture", "RBF network", "kernel network", "sparse mixture")


def table(n: int = 90, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two classes whose border no mixture of one Gaussian a class has, a level, and holes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.normal(size=n)})
    X["level"] = pd.Categorical(rng.choice(["low", "high"], n))
    y = np.where((X["a"] > 0) == (X["b"] > 0), "yes", "no")
    X.loc[::7, "c"] = np.nan
    return X, y


@cache
def refined(name: str, model_uncertainty: str | None = "pool") -> Any:
    """A refined classifier; who changes it takes a copy."""
    model = CLASSIFIERS[name]().fit(*table())
    return model.refine("laplace", model_uncertainty=model_uncertainty, draws=60, random_state=0)


@pytest.fixture(scope="module")
def mixture() -> HybridMixtureClassifier:
    return refined("mixture")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.slow if one in SLOW else ()) for one in CLASSIFIERS],
)
def test_probabilities_stay_and_intervals_change(name: str) -> None:
    X, _ = table(50, seed=1)
    alone, model = refined(name, None), refined(name)
    bare, counted = alone.uncertainty(X), model.uncertainty(X)
    p = bare["probability"].to_numpy()
    np.testing.assert_allclose(counted["probability"], p, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    assert (counted["sd"] != bare["sd"]).any()
    assert bare.attrs["assumes_model"] == 1
    assert counted.attrs["assumes_model"] == 0
    assert "if the model is right" in bare["lower"].attrs["description"]
    assert "if the model is right" not in counted["lower"].attrs["description"]
    costs = np.array([[0, 1], [5, 0]])
    best, sure = model.decide(X, costs), alone.decide(X, costs)
    np.testing.assert_array_equal(best["best"], sure["best"])
    assert (best["probability_best"] != sure["probability_best"]).any()


@pytest.mark.slow
def test_a_kind_that_is_wrong_misses_less() -> None:
    """One Gaussian a class cannot know whether two signs agree; the stack beside it does."""
    X, _ = table(400, seed=10)
    truth = ((X["a"] > 0) == (X["b"] > 0)).to_numpy(float)
    missed = {None: 0.0, "pool": 0.0}
    for seed in range(3):
        model = HybridMixtureClassifier(1, random_state=0).fit(*table(seed=seed))
        for model_uncertainty in missed:
            model.refine("laplace", model_uncertainty=model_uncertainty, draws=200, random_state=0)
            told = model.uncertainty(X)
            lower, upper = (told[end].to_numpy()[:, 1] for end in ("lower", "upper"))
            missed[model_uncertainty] += np.maximum(
                np.maximum(lower - truth, truth - upper), 0
            ).mean()
    assert missed["pool"] < 0.75 * missed[None]


def given(fit: Any, point: np.ndarray) -> Chain:
    """The chain of a classifier that says the same of every row, doubted by the pool."""
    chain = fit.interval_chain
    (error,) = (one for one in chain.stages if isinstance(one, ModelUncertainty))
    return replace(
        chain, source=replace(chain.source, point=lambda _: point), stages=(error,), use=()
    )


@pytest.mark.parametrize("sure", [0.98, 1 - 1e-12])
def test_others_who_contradict_make_it_less_sure(
    mixture: HybridMixtureClassifier, monkeypatch: pytest.MonkeyPatch, sure: float
) -> None:
    """However sure it is: the lower end falls as the others move away."""
    fit = mixture.fitted_
    uncertainty, rows = fit.model_uncertainty, new_rows(fit, table(3)[0]).cells
    assert uncertainty is not None
    point = np.log(np.array([[sure, 1 - sure]] * 3))
    ends = []
    for others in (sure, 0.5, 1 - sure):
        pool = np.log(np.array([[others, 1 - others]] * 3))
        monkeypatch.setattr(SeenByPool, "log_p", pool)
        ends.append(given(fit, point).summary(rows, 0.9).lower[:, 0])
    assert (ends[0] > ends[1]).all()
    assert (ends[1] > ends[2]).all()


def test_centre_and_width_share_a_scale_where_disputes_end(
    mixture: HybridMixtureClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log odds of the width end at a probability of 1e-4, so those of the centre do."""
    fit = mixture.fitted_
    uncertainty, rows = fit.model_uncertainty, new_rows(fit, table(3)[0]).cells
    assert uncertainty is not None
    monkeypatch.setattr(SeenByPool, "log_p", np.log(np.array([[0.9, 0.1]] * 3)))
    ends = []
    for rest in (1e-4, 1e-9):
        point = np.log(np.array([[1 - rest, rest]] * 3))
        ends.append(replace(given(fit, point), label_noise=None).summary(rows, 0.9).upper[:, 1])
    assert (ends[0] > 2e-4).all()
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-2)


def test_draws_come_before_the_pool_and_rows_that_none_judges_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A method that is none is refused at once; two rows, of which none is held out, have draws."""
    model = KernelNetworkClassifier(random_state=0).fit(*table(30))
    monkeypatch.setattr(beside, "fit_stack", None)
    with pytest.raises(ValueError, match="Gibbs sampling needs"):
        model.refine("gibbs", model_uncertainty="pool")
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        two = HybridMixtureClassifier(1, random_state=0).fit([[0.0], [1.0]], ["a", "b"])
        two.refine("laplace", model_uncertainty="pool", draws=10)
    assert (two.uncertainty([[0.5]])["upper"] > 0.5).all()


def test_its_own_splits_hold_rows_out_of_the_pool() -> None:
    X, y = table()
    half = np.arange(90) < 45
    splits = [(np.flatnonzero(half), np.flatnonzero(~half))]
    model = HybridMixtureClassifier(1, cv=splits, random_state=0).fit(X, y)
    model.refine("laplace", model_uncertainty="pool", draws=10)
    assert model.fitted_.model_uncertainty.pool.held.labels.size == 45


def test_draws_are_moved_by_the_error_of_the_pool_and_towards_it(
    mixture: HybridMixtureClassifier,
) -> None:
    fit, X = mixture.fitted_, table(20, seed=2)[0]
    rows, uncertainty = new_rows(fit, X).cells, mixture.fitted_.model_uncertainty
    assert uncertainty is not None
    n_draws = fit.interval_chain.n_draws
    last = [isinstance(one, ModelUncertainty) for one in fit.interval_chain.stages].index(True)
    walk = replace(fit.interval_chain, stages=fit.interval_chain.stages[: last + 1]).on(rows)
    values = uncertainty.pool.members.log_probabilities(rows)
    beside = uncertainty.pool
    coordinates, pool = beside.error_coordinates(values, beside.missing_fraction(rows))
    error = beside.pool_error(n_draws, fit.table.seed, fit.rows).at(coordinates, rows.codes)
    point, pool = (
        np.maximum(p, np.log(MIN_DISPUTED_PROBABILITY))
        for p in (fit.class_log_probabilities(rows), pool)
    )
    factors = np.random.default_rng([fit.table.seed, 4]).standard_normal(n_draws)
    for draw in (0, 7, 59):
        moves = error.draws(np.array([draw]))[0] + factors[draw] * (pool - point)
        found = walk.at(np.array([draw])).log_p[0]
        np.testing.assert_allclose(found, log_softmax(point + moves, axis=1), atol=1e-6)


def of_pool(fit: Any, rows: Observations) -> tuple[np.ndarray, ErrorOfRows]:
    """Log probabilities of the pool less those of the classifier, and its error."""
    pool = fit.model_uncertainty.pool
    seen, n_draws = SeenByPool(pool, rows), fit.interval_chain.n_draws
    error = seen.error_under(pool.pool_error(n_draws, fit.table.seed, fit.rows))
    return seen.log_p - fit.class_log_probabilities(rows), error


def test_nobody_doubts_a_row_without_a_cell(mixture: HybridMixtureClassifier) -> None:
    X = table(2)[0]
    X[["a", "b", "c"]], X["level"] = np.nan, pd.Categorical([None, None], ["low", "high"])
    rows = new_rows(mixture.fitted_, X, holes=True).cells
    apart, error = of_pool(mixture.fitted_, rows)
    assert (error.variance == 0).all()
    assert np.abs(apart).max() < 0.1


def test_blocks_of_rows_and_of_draws_change_nothing(mixture: HybridMixtureClassifier) -> None:
    X, _ = table(40, seed=3)
    whole = mixture.uncertainty(X)
    small = mixture.uncertainty(X, memory=20_000)
    np.testing.assert_allclose(small["upper"], whole["upper"], atol=1e-12)
    assert mixture.fitted_.interval_chain.thinned(10).numbers.shape == (1, 10)


def test_a_file_says_the_same(mixture: HybridMixtureClassifier, tmp_path: Path) -> None:
    X, _ = table(20, seed=3)
    mixture.save(tmp_path / "model.safetensors")
    read = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.uncertainty(X)["lower"], mixture.uncertainty(X)["lower"])
    assert read.uncertainty(X).attrs["assumes_model"] == 0


def test_draws_anew_forget_it(mixture: HybridMixtureClassifier) -> None:
    X, _ = table(20, seed=3)
    alone = refined("mixture", None)
    again = copy(mixture).refine("laplace", draws=60, random_state=0)
    np.testing.assert_array_equal(again.uncertainty(X)["lower"], alone.uncertainty(X)["lower"])
    of_graph = copy(mixture)
    of_graph.use_posterior(of_graph.posterior_)
    assert of_graph.uncertainty(X).attrs["assumes_model"] == 1


@pytest.mark.slow
def test_subjects_and_order_change_nothing(mixture: HybridMixtureClassifier) -> None:
    X, y = table()
    scaled = X.assign(a=1000 * X["a"] + 5)[["level", "b", "a", "c"]]
    model = CLASSIFIERS["mixture"]().fit(scaled, y)
    model.refine("laplace", model_uncertainty="pool", draws=60, random_state=0)
    rows = new_rows(model.fitted_, scaled[:20]).cells
    apart, error = of_pool(model.fitted_, rows)
    same, of_same = of_pool(mixture.fitted_, new_rows(mixture.fitted_, X[:20]).cells)
    np.testing.assert_allclose(apart, same, atol=1e-6)
    np.testing.assert_allclose(error.variance, of_same.variance, atol=1e-4)


def test_class_shares_of_use_move_both(mixture: HybridMixtureClassifier) -> None:
    """By Bayes' rule on what is delivered; ends move with it."""
    X, _ = table(20, seed=4)
    fit = mixture.fitted_.at_prevalence(np.array([0.9, 0.1]))
    moved, before = replace_fit(mixture, fit).uncertainty(X), mixture.uncertainty(X)
    odds = [u["probability"][:, 1] / u["probability"][:, 0] for u in (moved, before)]
    ratio = odds[0].to_numpy() / odds[1].to_numpy()
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    ends = [u["upper"].to_numpy()[:, 1] for u in (moved, before)]
    assert ends[0].mean() < ends[1].mean() - 0.05


def replace_fit(model: Any, fit: Any) -> Any:
    """The estimator with another fit."""
    other = copy(model)
    other.fitted_ = replace(fit)
    return other


@pytest.mark.parametrize(
    "make",
    [
        lambda: StackedClassifier(random_state=0),
        lambda: MedianLVQClassifier(1, random_state=0),
    ],
)
def test_where_there_is_nothing_to_compare_it_says_so(make: Callable[[], Any]) -> None:
    X, y = table(40)
    model = make().fit(X[["a", "b"]], y)
    with pytest.raises(ValueError, match=r"model_uncertainty='pool'\) takes mixtures"):
        model.refine(model_uncertainty="pool")
    assert model.draws_ is None


def test_other_words_are_refused(mixture: HybridMixtureClassifier) -> None:
    with pytest.raises(ValueError, match=r"model_uncertainty=...\) must be None or 'pool'"):
        mixture.refine(model_uncertainty="members")

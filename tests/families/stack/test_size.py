"""What a stack keeps of its refits predicts as the whole; memory does not grow with rows."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.datasets import load_wine

import bayesrbf
from bayesrbf import table as table_of_rows
from bayesrbf.base.arrays import single_digits
from bayesrbf.base.artefact import pack
from bayesrbf.base.hidden_share import missing_share
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.families.stack import fitted as fitted_stack
from bayesrbf.families.stack.intervals import disagreed
from bayesrbf.families.stack.members import FittedMembers
from bayesrbf.fit.asking import new_rows
from bayesrbf.mixture.maps import fit_half_rank
from tests.cases import first_quick
from tests.mutations import fitted, table

MODEL = "stack with draws"


def test_draws_at_once_say_what_each_says_alone() -> None:
    """Against the formulas draw by draw and member by member, at rows less usual than any."""
    model, X = fitted(MODEL)
    rows, refits, stack = new_rows(model.fitted_, X).cells, model.fitted_.details, model.model_
    refits = replace(refits, usual=replace(refits.usual, excess=refits.usual.excess + 50.0))
    log_posterior, hidden = stack.pool_posterior, missing_share(rows)
    posterior = refits.class_posterior(stack, model.rows_, model.draws_, np.zeros(2), 0)
    predictor = replace(posterior.predictor(rows), moves=None)
    moved = predictor.disagreement
    assert moved.spread.max() > 1.2
    assert np.ptp(moved.relative_shift) > 0  # rows have holes, and those with more are shifted less
    numbers = posterior.theta[0]
    said = predictor.at_all(numbers)
    density = stack.companion.log_density(rows)
    np.testing.assert_array_equal(said.log_density, np.tile(density, (len(numbers), 1)))
    for number, own in enumerate(model.draws_.theta[0]):
        values = refits.members[number % len(refits.members)].log_probabilities(rows)
        temperatures = log_posterior.of_rows(hidden, own).member_temperatures
        members = softmax(temperatures[:, :, None] * values, axis=2)
        members = (1 - 2 * POOL_PRIOR.least) * members + POOL_PRIOR.least
        expected = disagreed(
            np.log(members),
            log_posterior.pooled(values, hidden, own),
            refits.factors[number],
            refits.shifts[number],
            moved.spread,
            moved.relative_shift,
        )
        np.testing.assert_allclose(said.log_probabilities[number], expected, atol=1e-12)
    alone = stack.predictor(log_posterior, rows)(model.draws_.theta[0, 0])
    expected = log_posterior.pooled(
        stack.members.log_probabilities(rows), hidden, model.draws_.theta[0, 0]
    )
    np.testing.assert_allclose(alone.log_probabilities, expected, atol=1e-12)


def test_every_member_and_refit_predicts_a_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted(MODEL)
    predicted: list[FittedMembers] = []
    predict = FittedMembers.log_probabilities

    def spied(members: FittedMembers, rows: Observations) -> np.ndarray:
        predicted.append(members)
        return predict(members, rows)

    monkeypatch.setattr(FittedMembers, "log_probabilities", spied)
    found = model.uncertainty(X)
    assert list(map(id, predicted)) == [
        id(one) for one in (model.model_.members, *model.fitted_.details.members)
    ]
    np.testing.assert_array_equal(found["probability"], model.predict_proba(X))


def test_what_is_kept_of_a_refit_predicts_as_the_whole() -> None:
    X, y = table("mixed")
    model = bayesrbf.StackedClassifier(cv=2, random_state=0).fit(X, y)
    rows, members = new_rows(model.fitted_, X).cells, model.model_.members
    np.testing.assert_allclose(
        members.condensed.log_probabilities(rows), members.log_probabilities(rows), atol=1e-10
    )
    kernels = [
        one.model for one in members.condensed.own if one.name.startswith(("laplace", "gaussian"))
    ]
    assert len(kernels) > 1
    assert all(model.n_features == 1 for model in kernels)


@pytest.mark.parametrize("kind", first_quick(["mixed", "real"]))
def test_members_in_single_precision_predict_as_the_whole_and_take_less(kind: str) -> None:
    X, y = table(kind)
    model = bayesrbf.StackedClassifier(cv=2, random_state=0).fit(X, y)
    rows = new_rows(model.fitted_, X).cells
    settings = model._settings(model.fitted_.table)
    whole = settings.fit(settings.training(table_of_rows.distinct(model.rows_)[0], 0))
    rounded = whole.rounded
    np.testing.assert_allclose(
        rounded.log_probabilities(rows), whole.log_probabilities(rows), atol=1e-5
    )
    for members in (rounded, model.model_.members, whole.condensed.rounded):
        for one in members.own:
            if one.name.startswith(("laplace", "gaussian")):
                held = one.model.basis.projection
                np.testing.assert_array_equal(held, held.astype(np.float32))
    sizes = [
        sum(strip.nbytes for strip in pack(list(of.own))[1].values()) for of in (rounded, whole)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    maps = [{id(one.columns) for one in of.own} for of in (rounded, whole)]
    assert len(maps[0]) == len(maps[1])  # what members see alike is still made once


def test_digits_are_those_of_single_precision_where_it_has_them() -> None:
    values = np.array([0.1, -0.0, 1e300, -1e-300, np.pi])
    found = single_digits(values)
    np.testing.assert_array_equal(found, [np.float32(0.1), 0, 1e300, -1e-300, np.float32(np.pi)])
    assert not np.signbit(found[1])


def test_rounded_knots_still_rise() -> None:
    cells = np.array([[1.0], [1.0 + 1e-12], [2.0], [3.0]])
    maps = fit_half_rank(Standardisation(np.zeros(1), np.ones(1)), cells, np.ones(4))
    rounded = maps.rounded
    np.testing.assert_array_equal(rounded.knots, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(rounded.forward(cells[2:]), maps.forward(cells[2:]), atol=1e-6)


@pytest.mark.slow
def test_a_model_of_170_rows_with_intervals_takes_two_megabytes(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:170]
    model = bayesrbf.StackedClassifier(random_state=0).fit(X[chosen], y[chosen])
    model.refine("bootstrap").save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size <= 2 * 2**20


def test_equal_arrays_and_records_are_stored_once_and_shared(tmp_path: Path) -> None:
    model, X = fitted(MODEL)
    size = (model.save(tmp_path / "once"), (tmp_path / "once").stat().st_size)[1]
    again = bayesrbf.load(tmp_path / "once")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.draws_ is not None
    doubled = bayesrbf.load(tmp_path / "once")
    refits = again.fitted_.details
    doubled.fitted_ = doubled.fitted_.replaced(details=replace(refits, members=refits.members * 2))
    doubled.save(tmp_path / "twice")
    assert (tmp_path / "twice").stat().st_size < size + 100


def test_kernels_share_their_companion_after_loading(tmp_path: Path) -> None:
    X, y = table("mixed")
    model = bayesrbf.StackedClassifier(("laplace", "laplace_short"), cv=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    first, second = bayesrbf.load(tmp_path / "m").model_.members.own
    assert first.columns is second.columns
    assert first.model.companions is second.model.companions


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted("stack")
    whole = model.predict_proba(X)
    monkeypatch.setattr("bayesrbf.base.rows.AT_ONCE", 5 * fitted_stack.NUMBERS_A_ROW)
    np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-12)


@pytest.mark.slow
def test_memory_of_predicting_is_bounded() -> None:
    """Beside answer and encoded table, a hundred thousand rows take no more than ten thousand."""
    X, y = table("real")
    model = bayesrbf.StackedClassifier(cv=2, random_state=0).fit(X, y)
    cells = np.random.default_rng(0).normal(size=(100_000, 2))
    cells[::7, 0] = np.nan
    peaks = []
    for n_rows in (10_000, 100_000):
        rows = pd.DataFrame(cells[:n_rows], columns=["a", "b"])
        tracemalloc.start()
        model.predict_proba(rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(f"peaks {peaks[0] / 2**20:.1f} and {peaks[1] / 2**20:.1f} MiB")
    assert peaks[1] - peaks[0] < 12 * (cells.nbytes * 0.9)


def test_what_is_prepared_from_a_stack_is_not_pickled_and_its_refits_are_those_of_its_fit() -> None:
    X, y = table("real")
    prior = bayesrbf.MixturePrior(mean_precision=0.5)
    model = bayesrbf.StackedClassifier(("normal",), cv=2, prior=prior, random_state=0).fit(X, y)
    stack = model.model_
    vars(stack).pop("pool_posterior")
    bare = len(pickle.dumps(stack))
    point = stack.fitted_point
    assert len(pickle.dumps(stack)) == bare
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack)).fitted_point, point)
    model.refine("bootstrap", draws=2, refits=2)
    expected = model.draws_.theta
    model.set_params(members="default", prior=None).refine("bootstrap", draws=2, refits=2)
    np.testing.assert_array_equal(model.draws_.theta, expected)

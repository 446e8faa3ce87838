"""What a stack keeps of its members predicts as the whole; memory does not grow with rows."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_wine

import bayesrbf
from bayesrbf import table as table_of_rows
from bayesrbf.base.arrays import single_digits
from bayesrbf.base.artefact import pack
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.families.stack.members import FittedMembers
from bayesrbf.fit.asking import new_rows
from bayesrbf.mixture.transforms import fit_half_rank
from tests.cases import first_quick
from tests.mutations import fitted, table

MODEL = "stack with draws"


def test_draws_at_once_say_what_each_says_alone() -> None:
    """Against the formula, draw by draw: the pool, moved by the error."""
    model, X = fitted(MODEL)
    rows, stack = new_rows(model.fitted_, X).cells, model.model_
    chain, numbers = model.fitted_.chain, model.fitted_.chain.numbers.ravel()
    said = replace(chain, stages=chain.stages[:1], use=()).on(rows).at(numbers)
    density = stack.companion.log_density(rows)
    np.testing.assert_array_equal(said.log_density, np.tile(density, (len(numbers), 1)))
    values, hidden = stack.members.log_probabilities(rows), stack.missing_fraction(rows)
    coordinates, pool = stack.error_coordinates(
        values, hidden, lambda log_q: stack.reported(log_q, rows)
    )
    error = stack.pool_error(len(numbers), model.seed_, model.fitted_.rows).at(
        coordinates, rows.codes
    )
    for number in numbers:
        own = [
            one @ np.append(z[: one.shape[1] - 2], z[-2:])
            for one, z in zip(error.coefficients, error.numbers[number], strict=True)
        ]
        expected = log_softmax(pool + np.stack(own, axis=1) / np.sqrt(2), axis=1)
        np.testing.assert_allclose(said.log_p[number], expected, atol=1e-12)


def test_every_member_predicts_a_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted(MODEL)
    predicted: list[FittedMembers] = []
    predict = FittedMembers.log_probabilities

    def spied(members: FittedMembers, rows: Observations) -> np.ndarray:
        predicted.append(members)
        return predict(members, rows)

    monkeypatch.setattr(FittedMembers, "log_probabilities", spied)
    found = model.uncertainty(X)
    assert list(map(id, predicted)) == [id(model.model_.members)]
    np.testing.assert_allclose(found["probability"], model.predict_proba(X), rtol=1e-12)


def test_what_is_kept_of_members_predicts_as_the_whole() -> None:
    X, y = table("mixed")
    model = bayesrbf.StackedClassifier(missingness="ignorable", cv=2, random_state=0).fit(X, y)
    settings = model._settings(model.fitted_.table)
    rows = new_rows(model.fitted_, X).cells
    members = settings.fit(settings.training(table_of_rows.distinct(model.rows_)[0], 0))
    np.testing.assert_allclose(
        members.condensed.log_probabilities(rows), members.log_probabilities(rows), atol=1e-10
    )
    kernels = [
        one.model
        for one in members.condensed.fitted
        if one.name.startswith(("laplace", "gaussian"))
    ]
    assert len(kernels) > 1
    assert all(model.n_features == 1 for model in kernels)
    np.testing.assert_allclose(
        model.model_.members.log_probabilities(rows), members.log_probabilities(rows), atol=1e-5
    )


@pytest.mark.parametrize("kind", first_quick(["mixed", "real"]))
def test_members_in_single_precision_predict_as_the_whole_and_take_less(kind: str) -> None:
    X, y = table(kind)
    model = bayesrbf.StackedClassifier(missingness="ignorable", cv=2, random_state=0).fit(X, y)
    rows = new_rows(model.fitted_, X).cells
    settings = model._settings(model.fitted_.table)
    whole = settings.fit(settings.training(table_of_rows.distinct(model.rows_)[0], 0))
    rounded = whole.rounded
    np.testing.assert_allclose(
        rounded.log_probabilities(rows), whole.log_probabilities(rows), atol=1e-5
    )
    for members in (rounded, model.model_.members, whole.condensed.rounded):
        for one in members.fitted:
            if one.name.startswith(("laplace", "gaussian")):
                held = one.model.basis.projection
                np.testing.assert_array_equal(held, held.astype(np.float32))
    sizes = [
        sum(strip.nbytes for strip in pack(list(of.fitted))[1].values()) for of in (rounded, whole)
    ]
    assert sizes[0] < 0.6 * sizes[1]
    transforms = [{id(one.columns) for one in of.fitted} for of in (rounded, whole)]
    assert len(transforms[0]) == len(transforms[1])  # what members see alike is still made once


def test_digits_are_those_of_single_precision_where_it_has_them() -> None:
    values = np.array([0.1, -0.0, 1e300, -1e-300, np.pi])
    found = single_digits(values)
    np.testing.assert_array_equal(found, [np.float32(0.1), 0, 1e300, -1e-300, np.float32(np.pi)])
    assert not np.signbit(found[1])


def test_rounded_knots_still_rise() -> None:
    cells = np.array([[1.0], [1.0 + 1e-12], [2.0], [3.0]])
    transforms = fit_half_rank(Standardisation(np.zeros(1), np.ones(1)), cells, np.ones(4))
    rounded = transforms.rounded
    np.testing.assert_array_equal(rounded.knots, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(rounded.forward(cells[2:]), transforms.forward(cells[2:]), atol=1e-6)


@pytest.mark.slow
def test_a_model_of_170_rows_with_intervals_takes_a_megabyte(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:170]
    model = bayesrbf.StackedClassifier(random_state=0).fit(X[chosen], y[chosen])
    model.refine().save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size <= 2**20


def test_equal_arrays_and_records_are_stored_once() -> None:
    model, _ = fitted(MODEL)
    members = list(model.model_.members.fitted)
    sizes = [sum(strip.nbytes for strip in pack(of)[1].values()) for of in (members, members * 2)]
    assert sizes[0] == sizes[1]


def test_kernels_share_their_companion_after_loading(tmp_path: Path) -> None:
    X, y = table("mixed")
    model = bayesrbf.StackedClassifier(("laplace", "laplace_short"), cv=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    first, second = bayesrbf.load(tmp_path / "m").model_.members.fitted
    assert first.columns is second.columns
    assert first.model.companions is second.model.companions


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = fitted("stack")
    whole = model.predict_proba(X)
    monkeypatch.setattr("bayesrbf.fit.chain.BLOCK", 5)
    np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-12)


@pytest.mark.slow
def test_memory_of_predicting_is_bounded() -> None:
    """Beside answer and encoded table, a hundred thousand rows take no more than ten thousand."""
    X, y = table("real")
    model = bayesrbf.StackedClassifier(missingness="ignorable", cv=2, random_state=0).fit(X, y)
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


def test_what_is_prepared_from_a_stack_is_not_pickled() -> None:
    X, y = table("real")
    prior = bayesrbf.MixturePrior(mean_precision=0.5)
    model = bayesrbf.StackedClassifier(("normal",), cv=2, prior=prior, random_state=0).fit(X, y)
    stack = model.model_
    vars(stack).pop("pool_posterior")
    bare = len(pickle.dumps(stack))
    point = stack.fitted_point
    assert len(pickle.dumps(stack)) == bare
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack)).fitted_point, point)

"""Companions of kernels: mixtures that fill missing cells together, and the rates of all folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf import MixturePrior, StackedClassifier
from bayesrbf.base.rows import Observations
from bayesrbf.families.kernel_network.fitted import Companions, fit_companion, fit_companions
from bayesrbf.families.kernel_network.kernels import CellMoments, averaged
from bayesrbf.fit.held_out import numbered_folds, split_rows
from bayesrbf.mixture.fitted import component_class
from bayesrbf.table.order import distinct
from tests.fit.class_tables import table

LEVELS, N_CLASSES = (3, 2), 3
FIELDS = ("mean", "variance", "probabilities", "unknown")


def rows(n: int = 90, missing: float = 0.3, seed: int = 0) -> Observations:
    """Distinct rows of three classes, three reals and two categories, with holes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n)
    real = rng.normal(size=(n, 3)) + labels[:, None] * [1.0, 0.5, 0.0]
    real[:, 1] += 0.8 * real[:, 0]
    codes = np.column_stack([(labels + (rng.random(n) < 0.3)) % 3, rng.integers(0, 2, n)])
    real[rng.random(real.shape) < missing] = np.nan
    codes[rng.random(codes.shape) < missing] = -1
    labels[::7] = -1
    return distinct(Observations(real, codes, labels, np.ones(n)))[0]


def fitted(some: Observations, levels: tuple[int, ...] = LEVELS) -> Companions:
    return fit_companions(some, levels, N_CLASSES, MixturePrior(), 0)


def assert_alike(one: CellMoments, other: CellMoments, atol: float = 0.0) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=atol)


def test_the_average_has_the_moments_of_an_equal_mixture() -> None:
    """Draws of a cell from one distribution in three, each as often."""
    rng = np.random.default_rng(0)
    means, sds = np.array([-1.0, 0.5, 2.0]), np.array([0.3, 1.0, 0.2])
    several = [
        CellMoments(
            np.array([[m, 7.0]]), np.array([[s**2, 0.0]]), np.eye(3)[[j]], np.array([[True]])
        )
        for j, (m, s) in enumerate(zip(means, sds, strict=True))
    ]
    found = averaged(several)
    drawn = (means[:, None] + sds[:, None] * rng.normal(size=(3, 200_000))).ravel()
    assert found.mean[0, 0] == pytest.approx(drawn.mean(), abs=0.01)
    assert found.variance[0, 0] == pytest.approx(drawn.var(), abs=0.02)
    assert (found.mean[0, 1], found.variance[0, 1]) == (7.0, 0.0)
    np.testing.assert_allclose(found.probabilities, 1 / 3)


def test_one_companion_three_times_is_that_companion() -> None:
    some = rows()
    for mixture in fitted(some).mixtures:
        once, thrice = Companions((mixture,)), Companions((mixture,) * 3)
        assert_alike(thrice.cells(some), once.cells(some), atol=1e-12)


def test_there_are_three_where_a_cell_is_missing_and_else_one() -> None:
    whole = rows(missing=0.0)
    assert len(fitted(whole).mixtures) == 1
    real, codes = whole.real.copy(), whole.codes.copy()
    real[0, 0], codes[0, 0] = np.nan, -1
    for hole in (replace(whole, real=real), replace(whole, codes=codes)):
        structures = [one.specification.component_class for one in fitted(hole).mixtures]
        assert structures == [(0, 1, 2), component_class(hole, N_CLASSES, 4), (0, 0, 0)]


def test_the_first_is_the_companion_that_stands_alone() -> None:
    some = rows()
    alone = fit_companion(some, LEVELS, tuple(range(N_CLASSES)), MixturePrior(), 0)
    np.testing.assert_array_equal(alone.parameters.means, fitted(some).first.parameters.means)
    assert len({id(one) for one in fitted(some).mixtures}) == 3


def test_observed_cells_stay_and_missing_ones_differ_from_companion_to_companion() -> None:
    some = rows()
    companions = fitted(some)
    cells = companions.cells(some)
    standard, holes = companions.first.standardise(some).real, np.isnan(some.real)
    np.testing.assert_array_equal(cells.mean[~holes], standard[~holes])
    assert (cells.variance[~holes] == 0).all()
    assert (cells.variance[holes] > 0).all()
    each = [Companions((one,)).cells(some).mean[holes] for one in companions.mixtures]
    assert np.abs(each[0] - each[1]).max() > 0.05
    assert np.abs(each[0] - each[2]).max() > 0.05


def test_labels_teach_two_companions_and_the_third_none() -> None:
    some = rows()
    turned = distinct(replace(some, labels=np.where(some.labels >= 0, 2 - some.labels, -1)))[0]
    hidden = distinct(some.unlabelled())[0]
    first, second, third = (Companions((one,)).cells(some) for one in fitted(some).mixtures)
    without = [Companions((one,)).cells(some) for one in fitted(hidden).mixtures]
    assert_alike(without[2], third, atol=1e-10)
    assert np.abs(without[0].mean - first.mean).max() > 0.01
    assert np.abs(without[1].mean - second.mean).max() > 0.01
    # What a row's own cells may hold is not read off its label.
    assert_alike(fitted(some).cells(turned.unlabelled()), fitted(some).cells(turned))


def test_what_is_said_of_rows_held_out_comes_from_the_other_rows() -> None:
    X, y = table(60)
    own = ["laplace", "mixture", "mixture_blend", "gaussian_loo"]
    model = StackedClassifier(own, cv=3, random_state=0).fit(X, y)
    folds = numbered_folds(
        split_rows(3, model.rows_, model.row_indices_, model.seed_), model.classes_
    )
    settings, said = model._settings(model.fitted_.table), []
    for fold, train, test in folds:
        members = settings.fit(settings.training(train, fold + 1))
        assert len(members.fitted[0].model.companions.mixtures) == 3
        said.append(members.log_probabilities(test))
    np.testing.assert_allclose(np.concatenate(said), model.model_.held.values, atol=1e-10)
    # The check can fail: members that have seen all rows say something else.
    memory = settings.fit(settings.training(distinct(model.rows_)[0], fold + 1))
    assert np.abs(memory.log_probabilities(test) - said[-1])[:, 1].max() > 1e-3


def test_kernels_of_a_stack_share_their_companions_and_a_complete_table_has_one() -> None:
    X, y = table(60)
    whole = X.assign(wind=1.0 * np.arange(60), pressure=X["pressure"].fillna(0.0), sky="grey")
    for cells, number in ((X, 3), (whole, 1)):
        model = StackedClassifier(["laplace", "laplace_short"], cv=2, random_state=0).fit(cells, y)
        one, other = (member.model.companions for member in model.model_.members.fitted)
        assert one is other
        assert len(one.mixtures) == number

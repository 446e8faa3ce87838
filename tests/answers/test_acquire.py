"""What a measurement is worth, against sums over levels and integrals on a grid."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.special import xlogy

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    StackedClassifier,
    acquire_labels,
)
from tests.cases import generative, some_quick
from tests.fit.class_tables import CLASSES, iris, table
from tests.fit.test_point_masses import spiked

COSTS = pd.DataFrame(
    {"sail": [0.0, 4.0, 50.0], "reef": [1.0, 0.5, 20.0], "harbour": [3.0, 3.0, 3.0]}, index=CLASSES
)
PRIOR = {"calm": 0.2, "gale": 0.3, "storm": 0.5}


@cache
def mixture(**options: Any) -> HybridMixtureClassifier:
    return generative(n_init=1, random_state=0, **options).fit(*table())


def entropies(p: np.ndarray) -> np.ndarray:
    return -xlogy(p, p).sum(axis=1)


def least_costs(p: np.ndarray) -> np.ndarray:
    return (p @ COSTS.to_numpy()).min(axis=1)


def filled(row: pd.DataFrame, column: str, values: Any) -> pd.DataFrame:
    """One row as often as there are values, with these in one column."""
    rows = pd.concat([row] * len(values), ignore_index=True)
    rows[column] = pd.Series(values, rows.index, row[column].dtype)
    return rows


def rows() -> pd.DataFrame:
    """Rows that miss all, some and nothing."""
    frame = table(n=6, missing=0.0, seed=5)[0]
    frame.iloc[0, :] = [np.nan, np.nan, None]
    frame.iloc[1, 0], frame.iloc[2, 2], frame.iloc[3, 1] = np.nan, None, np.nan
    frame.iloc[4, [0, 2]] = [np.nan, None]
    return frame


@pytest.mark.parametrize("class_prior", some_quick([None, PRIOR], PRIOR))
@pytest.mark.parametrize(("loss", "uncertainty"), [(None, entropies), (COSTS, least_costs)])
def test_gains_are_brute_force(class_prior: Any, loss: Any, uncertainty: Any) -> None:
    model = (
        mixture()
        if class_prior is None
        else generative(n_init=1, random_state=0, class_prior=class_prior).fit(*table())
    )
    X = rows()
    gain = model.acquire_cells(X, loss=loss)["gain"].to_pandas()
    np.testing.assert_array_equal(gain.isna(), X.notna())
    before = uncertainty(model.predict_proba(X))
    grids = {"wind": np.linspace(-12, 16, 4001), "pressure": 1e5 + np.linspace(-4e3, 4e3, 4001)}
    for n in range(len(X)):
        row = X.iloc[[n]]
        for column in X.columns[X.iloc[n].isna()]:
            law = model.conditional(row, column)
            if column == "sky":
                p = law.probabilities("sky").iloc[0]
                after = p.to_numpy() @ uncertainty(
                    model.predict_proba(filled(row, "sky", list(p.index)))
                )
            else:
                cells = filled(row, column, grids[column])
                density = np.exp(model.conditional(cells, column).log_density(cells).to_numpy())
                assert trapezoid(density, grids[column]) == pytest.approx(1, abs=1e-6)
                after = trapezoid(density * uncertainty(model.predict_proba(cells)), grids[column])
            error = 4e-3 if loss is None else 0.06  # costs up to 50 have corners
            assert gain.loc[n, column] == pytest.approx(before[n] - after, abs=error)


@pytest.mark.parametrize("loss", [None, COSTS])
@pytest.mark.parametrize(
    "options", [{}, {"class_prior": (0.2, 0.3, 0.5)}, {"column_transforms": "power"}]
)
def test_the_gain_of_ones_own_density_is_not_negative(loss: Any, options: Any) -> None:
    X = table(n=150, missing=0.5, seed=3)[0]
    gain = mixture(**options).acquire_cells(X, loss=loss)["gain"].to_numpy()
    assert np.nanmin(gain) > -2e-3
    assert np.nanmax(gain) > 0.3


@pytest.mark.filterwarnings("ignore:Column 'x0' alone tells 40 rows")  # x1 stands there twice
def test_a_column_that_tells_nothing_of_the_class_gains_nothing() -> None:
    """Both classes have the same cells in it, and components know no other dependence."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(40, 1))
    telling = rng.normal(size=(80, 1)) + np.repeat([0.0, 2.0], 40)[:, None]
    X = np.hstack([telling, np.vstack([one, one])])
    y = np.repeat([0, 1], 40)
    model = generative(covariance_type="diag", n_init=1, random_state=0).fit(X, y)
    gain = model.acquire_cells([[np.nan, np.nan], [1.0, np.nan]])["gain"].to_numpy()
    np.testing.assert_allclose(gain[:, 1], 0, atol=1e-9)
    assert gain[0, 0] > 0.1


def test_atoms_counts_and_ordered_levels_can_be_measured() -> None:
    X = spiked(holes=0.0)
    y = (X[:, 1] > 1.2).astype(int)
    model = generative(
        n_init=1, random_state=0, point_masses="auto", column_transforms="power"
    ).fit(X, y)
    row = np.array([[np.nan, np.nan]])
    before = entropies(model.predict_proba(row))
    grid = np.linspace(-3.0, 60.0, 20_001)
    grid = grid[grid != 0]
    cells = np.column_stack([grid, np.full(grid.size, np.nan)])
    density = np.exp(model.conditional(cells, 0).log_density(cells).to_numpy())
    at_zero = model.conditional(row).probabilities(0)[0.0].iloc[0]
    after = trapezoid(density * entropies(model.predict_proba(cells)), grid)
    after += at_zero * entropies(model.predict_proba(np.array([[0.0, np.nan]])))
    gain = model.acquire_cells(row)["gain"].to_numpy()
    assert gain[0, 0] == pytest.approx(float((before - after)[0]), abs=0.01)


def test_the_best_cell_pays_for_itself() -> None:
    model, X = mixture(), rows()
    plain = model.acquire_cells(X)
    gain = plain["gain"].to_pandas()
    assert plain["best"].to_numpy()[5] == ""
    assert np.isnan(plain["best_price"].to_numpy()[5])
    assert list(plain["best"].to_numpy()[:5]) == list(gain.iloc[:5].idxmax(axis=1))
    prices = {"wind": 10.0, "sky": 1.0}
    told = model.acquire_cells(X, prices)
    assert told["gain"].sel(column="pressure").isnull().all()
    per_price = gain[list(prices)] / pd.Series(prices)
    asked = per_price.notna().any(axis=1)
    assert list(told["best"].to_numpy()[asked]) == list(per_price[asked].idxmax(axis=1))
    assert list(told["best_price"].to_numpy()[asked]) == [
        prices[column] for column in told["best"].to_numpy()[asked]
    ]
    assert told["best"].to_numpy()[3] == ""  # only pressure is missing there
    worth = model.acquire_cells(X, loss=COSTS)["gain"].to_pandas()
    dear = model.acquire_cells(X, worth.max().max() + 1, COSTS)
    assert set(dear["best"].to_numpy()) == {""}
    some = model.acquire_cells(X, [0.5, 0.0, 0.2], COSTS)
    less = (worth - [0.5, 0.0, 0.2]).iloc[0]
    assert some["best"].to_numpy()[0] == (less.idxmax() if less.max() > 0 else "")
    assert model.acquire_cells(X, pd.Series(prices)).identical(told)


@pytest.mark.parametrize(
    "maker",
    [
        lambda: KernelNetworkClassifier(n_basis=5, random_state=0),
        pytest.param(
            # A cell that the model asks for moves no indicator; one that a user fills in does.
            lambda: StackedClassifier(
                ["laplace", "normal"], cv=2, missingness="ignorable", random_state=0
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_classifier_with_another_density_asks_it_for_the_cell(maker: Any) -> None:
    model, X = maker().fit(*table()), rows()
    gain = model.acquire_cells(X)["gain"].to_pandas()
    row = X.iloc[[2]]
    p = model.conditional(row).probabilities("sky").iloc[0]
    after = p.to_numpy() @ entropies(model.predict_proba(filled(row, "sky", list(p.index))))
    before = entropies(model.predict_proba(row))
    assert gain.loc[2, "sky"] == pytest.approx(float(before[0] - after), abs=1e-9)
    assert gain.loc[0].max() > 0.1


def test_gains_are_averaged_over_as_many_draws_as_asked_for() -> None:
    model, X = (
        generative(n_init=1, random_state=0).fit(*table()).refine("laplace", draws=90),
        rows(),
    )
    assert model.draws_ is not None
    theta = model.draws_.theta.reshape(-1, model.draws_.theta.shape[-1])
    few = copy(model)
    kept = theta[[0, len(theta) // 2, len(theta) - 1]]
    draws = replace(model.draws_, theta=kept[None], stats={"lp": np.zeros((1, 3))})
    few.fitted_ = model.fitted_.replaced(draws=draws)
    assert model.acquire_cells(X, draws=3).identical(few.acquire_cells(X))
    apart = (
        model.acquire_cells(X, draws=30)["gain"] - model.acquire_cells(X, draws=len(theta))["gain"]
    )
    assert 0 < np.abs(apart).max() < 0.05
    with pytest.raises(
        ValueError, match=r"acquire_cells\(draws=...\) must be an integer of at least 1"
    ):
        model.acquire_cells(X, draws=0)


def test_columns_that_were_never_observed_are_not_suggested() -> None:
    X, y = table()
    X = X.assign(empty=np.nan)
    told = generative(n_init=1, random_state=0).fit(X, y).acquire_cells(X.iloc[:5])
    assert told["gain"].sel(column="empty").isnull().all()


def test_the_label_of_a_row_tells_what_the_draws_disagree_about() -> None:
    X, y = iris(0.1)
    model = generative(n_init=1, random_state=0).fit(X[::3], y[::3])
    with pytest.raises(ValueError, match="call its refine"):
        acquire_labels(model, X)
    model.refine("laplace", draws=60, chains=2)
    told = acquire_labels(model, X)["gain"].to_numpy()
    drawn = model.predict_posterior(X)["predictions"]["probability"].to_numpy()
    p = drawn.reshape(-1, *drawn.shape[2:])
    expected = entropies(p.mean(axis=0)) - np.mean([entropies(one) for one in p], axis=0)
    np.testing.assert_allclose(told, expected, atol=1e-9)
    assert told.max() > 0.01
    assert (told > -1e-12).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"costs": {"rain": 1.0}}, "must name columns of the table.*'rain'"),
        ({"costs": [1.0, 2.0]}, "each of the 3 columns; received 2"),
        ({"costs": {"wind": -1.0}}, "'wind' must be a finite number of at least 0"),
        ({"costs": np.inf}, "finite number of at least 0"),
        (
            {"loss": {"calm": {"sail": 1}}},
            r"acquire_cells\(loss=...\) must have one row for every class",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mixture().acquire_cells(rows(), **arguments)


def test_who_has_no_density_measures_nothing() -> None:
    assert not hasattr(MedianLVQClassifier(random_state=0).fit(*iris()), "acquire_cells")

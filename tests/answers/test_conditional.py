"""The distribution of cells given others, against densities, integrals and sums of its own."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import cumulative_trapezoid, trapezoid
from scipy.stats import multivariate_normal, norm

import bayesrbf
from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkRegressor,
    StackedClassifier,
)
from bayesrbf.base.rows import COVARIANCE_TYPES
from bayesrbf.mixture.points import component_covariances
from tests import kinds
from tests.cases import first_quick, generative, some_quick
from tests.families.hybrid.density_tables import mixed_frame, real_table
from tests.fit.class_tables import iris, table
from tests.fit.test_point_masses import spiked
from tests.kinds import share as share

HOLED = np.array([[2.0, np.nan, np.nan], [np.nan, 90.0, 0.6], [np.nan, np.nan, np.nan]])
MILD = np.array([1.0, 1e-2, 1e3])
"""Factors of columns, so that SciPy still can invert their covariances."""
MAPPED = {"column_transforms": "power", "random_state": 0}


def positive() -> np.ndarray:
    """Two clusters in three skewed columns."""
    return np.exp(real_table() / [4.0, 4e3, 4e-4])


def reals(covariance_type: str = "full", **arguments: Any) -> MixtureDensity:
    options = {"random_state": 0, **arguments}
    return MixtureDensity(2, covariance_type=covariance_type, **options).fit(real_table() * MILD)


def many(model: Any, rows: np.ndarray, n: int, **options: Any) -> np.ndarray:
    """Draws of rows, first axis: n copies of every row drawn in few tables."""
    tables = model.conditional(np.tile(rows, (n // 5, 1)), **options).sample(5, seed=3)
    return np.concatenate(tables).reshape(-1, *rows.shape)


def components(model: MixtureDensity, row: np.ndarray) -> list[tuple[float, np.ndarray, Any]]:
    """Weight, mean and covariance of the missing cells under every component, by SciPy."""
    mixture = model.model_
    point = mixture.parameters.in_units(mixture.units)
    seen, hidden = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    found = []
    every = component_covariances(point, mixture.specification)
    for k, covariance in enumerate(every):
        mean = point.means[k]
        weight, centre, spread = point.weights[k], mean[hidden], covariance[np.ix_(hidden, hidden)]
        if seen.size:
            joint, cross = covariance[np.ix_(seen, seen)], covariance[np.ix_(hidden, seen)]
            weight = weight * multivariate_normal(mean[seen], joint).pdf(row[seen])
            centre = centre + cross @ np.linalg.solve(joint, row[seen] - mean[seen])
            spread = spread - cross @ np.linalg.solve(joint, cross.T)
        found.append((weight, centre, spread))
    total = sum(weight for weight, _, _ in found)
    return [(weight / total, centre, spread) for weight, centre, spread in found]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_it_is_the_mixture_of_the_components_conditionals(covariance_type: str) -> None:
    model = reals(covariance_type)
    told = model.conditional(HOLED)
    values = np.array([[2.0, 70.0, 0.4], [5.5, 90.0, 0.6], [6.0, 80.0, 0.3]])
    log_density = told.log_density(values)
    mean, sd, median = told.mean(), told.sd(), told.quantile(0.3)
    for n, row in enumerate(HOLED):
        hidden = np.isnan(row)
        parts = components(model, row)
        by_hand = sum(w * multivariate_normal(m, c).pdf(values[n, hidden]) for w, m, c in parts)
        assert log_density[n] == pytest.approx(np.log(by_hand), abs=1e-8)
        centre = sum(w * m for w, m, _ in parts)
        spread = sum(w * (np.diag(c) + (m - centre) ** 2) for w, m, c in parts)
        np.testing.assert_allclose(mean.to_numpy()[n, hidden], centre, rtol=1e-9)
        np.testing.assert_allclose(sd.to_numpy()[n, hidden], np.sqrt(spread), rtol=1e-8)
        for place, column in enumerate(np.flatnonzero(hidden)):
            under = sum(
                w * norm.cdf(median.to_numpy()[n, column], m[place], np.sqrt(c[place, place]))
                for w, m, c in parts
            )
            assert under == pytest.approx(0.3, abs=1e-8)
    for figures in (mean, sd, median):
        np.testing.assert_array_equal(figures.isna(), ~np.isnan(HOLED))


def density_on_grid(model: Any, row: np.ndarray, column: int, grid: np.ndarray) -> np.ndarray:
    """Density of one cell of a row on a grid, every cell of it a row of its own."""
    rows = np.repeat(row[None], grid.size, axis=0)
    values = rows.copy()
    values[:, column] = grid
    return np.exp(model.conditional(rows, [column]).log_density(values).to_numpy())


@pytest.mark.parametrize("hidden", some_quick([np.nan, 1.0], 1.0))
def test_a_mapped_cell_has_the_moments_and_quantiles_of_its_density(hidden: float) -> None:
    """The cell itself is not used where its column is named, and the others may have holes."""
    model = MixtureDensity(2, **MAPPED).fit(positive())
    row = np.array([hidden, 9.0, np.nan])
    grid = np.linspace(-20.0, 120.0, 140_001)
    density = density_on_grid(model, row, 0, grid)
    assert trapezoid(density, grid) == pytest.approx(1, abs=1e-4)
    told = model.conditional(row[None], [0])
    mean = trapezoid(grid * density, grid)
    assert told.mean().iloc[0, 0] == pytest.approx(mean, rel=2e-3)
    sd = np.sqrt(trapezoid((grid - mean) ** 2 * density, grid))
    assert told.sd().iloc[0, 0] == pytest.approx(sd, rel=0.02)
    under = cumulative_trapezoid(density, grid, initial=0)
    for q in (0.02, 0.5, 0.9):
        assert np.interp(told.quantile(q).iloc[0, 0], grid, under) == pytest.approx(q, abs=1e-4)


def test_a_cell_with_atoms_has_masses_and_a_density() -> None:
    model = MixtureDensity(2, point_masses="auto", **MAPPED).fit(spiked())
    rows = np.array([[np.nan, -1.0], [np.nan, 1.2], [np.nan, 4.0]])
    told = model.conditional(rows)
    masses = told.probabilities("x0")
    assert list(masses) == ["another value", 0.0]
    np.testing.assert_allclose(masses.sum(axis=1), 1)
    at_zero = told.log_density(np.where(np.isnan(rows), 0.0, rows))
    np.testing.assert_allclose(np.log(masses[0.0]), at_zero, rtol=1e-9)
    grid = np.linspace(-3.0, 60.0, 12_001)
    grid = grid[grid != 0]
    drawn = many(model, rows, 4000)[:, :, 0]
    for n, row in enumerate(rows):
        density, mass = density_on_grid(model, row, 0, grid), masses[0.0][n]
        assert trapezoid(density, grid) + mass == pytest.approx(1, abs=1e-4)
        mean = trapezoid(grid * density, grid)
        assert told.mean()["x0"][n] == pytest.approx(mean, rel=0.02)
        variance = trapezoid((grid - mean) ** 2 * density, grid) + mass * mean**2
        assert told.sd()["x0"][n] == pytest.approx(np.sqrt(variance), rel=0.05)
        assert (drawn[:, n] == 0).mean() == pytest.approx(mass, abs=4 * 0.5 / 4000**0.5)
        below = trapezoid(density[grid < 0], grid[grid < 0])
        inside = below + 0.5 * mass
        assert told.quantile(inside)["x0"][n] == 0
        above = told.quantile(below + mass + 0.25 * (1 - below - mass))["x0"][n]
        assert (drawn[:, n] <= above).mean() == pytest.approx(
            below + mass + 0.25 * (1 - below - mass), abs=0.04
        )


def test_levels_are_enumerated() -> None:
    """Every pair of levels of a row that misses two, one by one; they sum to one."""
    frame = mixed_frame()
    model = MixtureDensity(2, random_state=0).fit(frame)
    rows = frame.assign(colour=None, member=None).iloc[:8]
    told = model.conditional(rows, ["colour", "member"])
    log_given = model.score_samples(rows)
    total = np.zeros(8)
    by_level = {level: np.zeros(8) for level in ("blue", "green", "red")}
    for colour, member in product(by_level, (False, True)):
        values = rows.assign(colour=colour, member=member)
        p = np.exp(told.log_density(values))
        np.testing.assert_allclose(p, np.exp(model.score_samples(values) - log_given), rtol=1e-9)
        total += p
        by_level[colour] += p
    np.testing.assert_allclose(total, 1, rtol=1e-9)
    found = told.probabilities("colour")
    assert list(found) == list(by_level)
    np.testing.assert_allclose(found, pd.DataFrame(by_level), rtol=1e-9)
    assert list(told.mean()) == []
    drawn = np.stack([one["colour"] for one in told.sample(400, seed=0)], axis=1)
    for level, p in by_level.items():
        np.testing.assert_allclose((drawn == level).mean(axis=1), p, atol=4 * 0.5 / 400**0.5)


def test_samples_have_the_quantiles() -> None:
    model = reals()
    told = model.conditional(HOLED)
    drawn = many(model, HOLED, 4000)
    np.testing.assert_array_equal(drawn[0][~np.isnan(HOLED)], HOLED[~np.isnan(HOLED)])
    for q in (0.1, 0.5, 0.9):
        under = (drawn <= told.quantile(q).to_numpy()).mean(axis=0)[np.isnan(HOLED)]
        np.testing.assert_allclose(under, q, atol=4 * np.sqrt(q * (1 - q) / 4000))
    both = drawn[:, 0, 1:]
    parts = components(model, HOLED[0])
    centre = sum(w * m for w, m, _ in parts)
    spread = sum(w * (c + np.outer(m - centre, m - centre)) for w, m, c in parts)
    scale = np.sqrt(np.diag(spread))
    found = np.cov((both / scale).T)
    np.testing.assert_allclose(found, spread / np.outer(scale, scale), atol=0.1)
    one, same, other = (told.sample(2, seed=seed)[1] for seed in (3, 3, 4))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("covariance_type", first_quick(["full", "tied", "diag"]))
def test_figures_of_every_kind_are_those_of_its_draws(covariance_type: str, share: object) -> None:
    """Rounded counts, directions on a circle, levels of an order and a kind that a user wrote."""
    X = kinds.table(150, planted=True)[0].drop(columns="woken")
    asked = kinds.KINDS_OF | {"fat": "share", "seen": "real"}
    X["seen"] = np.exp(X["size"] - 1)  # a skewed column, which a power straightens
    model = MixtureDensity(2, covariance_type=covariance_type, column_kinds=asked, **MAPPED).fit(X)
    rows, n = X.iloc[:2], 4000
    copies = pd.concat([rows] * (n // 20), ignore_index=True)
    for column in ("hour", "visits", "pain", "size", "fat", "seen"):
        law = model.conditional(rows, column)
        tables = model.conditional(copies, column).sample(20, seed=1)
        drawn = np.concatenate([one[column].to_numpy() for one in tables]).reshape(n, -1)
        if column == "pain":
            found = [(drawn == level).mean(axis=0) for level in kinds.PAIN]
            np.testing.assert_allclose(law.probabilities("pain").T, found, atol=0.03)
            ranks = np.argmax(drawn[..., None] == np.array(kinds.PAIN), axis=-1)
            levels = law.quantile(0.5)[column].map(kinds.PAIN.index)
            np.testing.assert_array_equal(levels, np.median(ranks, axis=0))
            continue
        mean, sd = law.mean()[column], law.sd()[column]
        if column == "hour":
            around = np.exp(2j * np.pi * drawn / 24).mean(axis=0)
            off = np.angle(around / np.exp(2j * np.pi * mean / 24)) * 24 / (2 * np.pi)
            np.testing.assert_array_less(abs(off), 4 * sd / n**0.5)
            spread = np.sqrt(-2 * np.log(abs(around))) * 24 / (2 * np.pi)
        else:
            spread = drawn.std(axis=0)
            np.testing.assert_array_less(abs(drawn.mean(axis=0) - mean), 4 * spread / n**0.5)
            for q in (0.1, 0.5, 0.9):
                end = law.quantile(q)[column].to_numpy()
                noise = 4 * np.sqrt(q * (1 - q) / n)
                assert ((drawn < end).mean(axis=0) < q + noise).all()
                assert ((drawn <= end).mean(axis=0) > q - noise).all()
        np.testing.assert_allclose(sd, spread, rtol=0.06)


MAKERS: dict[str, Any] = {
    "mixture": lambda: generative(n_init=1, random_state=0),
    "at another prevalence": lambda: generative(
        n_init=1, random_state=0, class_prior=[0.05, 0.05, 0.9]
    ),
    "calibrated": lambda: HybridMixtureClassifier(n_init=1, cv=2, random_state=0),
    "with point masses": lambda: generative(
        n_init=1, random_state=0, point_masses="auto", column_transforms="power"
    ),
    "informative": lambda: generative(n_init=1, random_state=0, missingness="informative"),
    "kernel": lambda: KernelNetworkClassifier(n_basis=5, random_state=0),
    "stack": lambda: StackedClassifier(["laplace", "normal"], cv=2, random_state=0),
}


@pytest.mark.parametrize("name", first_quick(MAKERS, 3))
def test_it_fills_as_impute_does_and_is_a_difference_of_log_densities(name: str) -> None:
    X, y = table()
    model = MAKERS[name]().fit(X, y)
    rows = X.iloc[:20]
    told, filled = model.conditional(rows), model.impute(rows)
    assert len(told.sample(3)) == len(model.impute(rows, draws=3)) == 3
    mean = told.mean()
    for column in mean:
        hole = rows[column].isna()
        np.testing.assert_allclose(mean[column][hole], filled[column][hole], rtol=1e-7)
        assert mean[column][~hole].isna().all()
    hole = rows["sky"].isna()
    assert list(told.probabilities("sky")[hole].idxmax(axis=1)) == list(filled["sky"][hole])
    if name != "informative":  # a filled row would say that its cells were not missing
        expected = model.score_samples(filled) - model.score_samples(rows)
        np.testing.assert_allclose(told.log_density(filled), expected, atol=1e-8)


def test_a_mask_is_hidden_with_its_cell() -> None:
    X, y = table()
    model = MAKERS["informative"]().fit(X, y)
    rows = X.dropna().iloc[:5]
    holes = rows.assign(wind=np.nan)
    named, missing = model.conditional(rows, "wind").mean(), model.conditional(holes).mean()
    assert (abs(named - missing) > 1e-6).to_numpy().any()  # that it was missing tells something
    same = generative(n_init=1, random_state=0).fit(X, y)
    one, other = same.conditional(rows, "wind").mean(), same.conditional(holes).mean()
    np.testing.assert_array_equal(one, other)


def test_draws_of_the_parameters_are_averaged() -> None:
    X, y = iris(0.2)
    model = generative(n_init=1, random_state=0).fit(X, y).refine("laplace", draws=20, chains=2)
    rows = X[np.isnan(X).any(axis=1)][:6]
    told = model.conditional(rows, draws=5)
    values, mean, square, levels = np.nan_to_num(rows, nan=3.0), 0.0, 0.0, 0.0
    for point in told.points:
        one = bayesrbf.ConditionalDistribution(
            told.asked, told.columns, told.given, told.mixture, (point,), told.rows, told.seed
        )
        mean = mean + one.mean() / 5
        square = square + (one.sd() ** 2 + one.mean() ** 2) / 5
        levels = levels + np.exp(one.log_density(values)) / 5
    np.testing.assert_allclose(told.mean(), mean, rtol=1e-9)
    np.testing.assert_allclose(told.sd(), np.sqrt(square - mean**2), rtol=1e-6)
    np.testing.assert_allclose(told.log_density(values), np.log(levels), atol=1e-9)
    hole = np.isnan(rows)
    drawn = many(model, rows, 3000, draws=5)
    under = (drawn <= told.quantile(0.8).to_numpy()).mean(axis=0)[hole]
    np.testing.assert_allclose(under, 0.8, atol=0.04)
    with pytest.raises(ValueError, match="needs draws of the posterior"):
        generative(n_init=1, random_state=0).fit(X, y).conditional(rows, draws=5)


def test_it_answers_in_the_container_and_with_the_index_of_the_table() -> None:
    X, y = table()
    X.index = [f"row {n}" for n in range(len(X))]
    model = generative(n_init=1, random_state=0).fit(X, y)
    told = model.conditional(X)
    for answer in (told.mean(), told.sd(), told.quantile(0.5), told.probabilities("sky")):
        assert list(answer.index) == list(X.index)
    assert list(told.quantile(0.5)) == ["wind", "pressure"]
    drawn = told.sample(2)
    assert [type(one) for one in drawn] == [pd.DataFrame] * 2
    pd.testing.assert_index_equal(drawn[0].index, X.index)
    assert (drawn[0].dtypes == X.dtypes).all()
    assert not drawn[0].isna().any().any()
    complete = X.dropna()
    nothing = model.conditional(complete)
    assert nothing.mean().shape == (len(complete), 0)
    np.testing.assert_array_equal(nothing.log_density(complete), 0)
    pd.testing.assert_frame_equal(nothing.sample(1)[0], complete)
    polars = pl.DataFrame({name: X[name].replace({np.nan: None}).tolist() for name in X})
    assert isinstance(model.conditional(polars).sample(1)[0], pl.DataFrame)


def test_every_column_at_once_is_the_marginal() -> None:
    X, y = table()
    model = generative(n_init=1, random_state=0).fit(X, y)
    complete = X.dropna().iloc[:4]
    told = model.conditional(complete, X.columns)
    np.testing.assert_allclose(told.log_density(complete), model.score_samples(complete), atol=1e-9)
    assert told.mean().nunique().eq(1).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model, X: model.conditional(X, ["rain"]), "'rain', which X does not have"),
        (lambda model, X: model.conditional(X, 7), "7, which X does not have"),
        (lambda model, X: model.conditional(X, draws=0), "draws=.* integer of at least 1"),
        (lambda model, X: model.conditional(X).quantile(1.0), "between 0 and 1"),
        (lambda model, X: model.conditional(X).sample(0), "at least 1"),
        (lambda model, X: model.conditional(X).probabilities("wind"), "no levels"),
        (lambda model, X: model.conditional(X, "wind").probabilities("sky"), "is given; name it"),
        (lambda model, X: model.conditional(X).log_density(X.iloc[:3]), "90 rows"),
        (lambda model, X: model.conditional(X).log_density(X.fillna({"sky": "z"})), "not seen"),
    ],
)
def test_what_cannot_be_answered_is_refused(call: Any, words: str) -> None:
    X, y = table()
    model = generative(n_init=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=words):
        call(model, X)


def test_who_has_no_density_has_no_conditionals() -> None:
    X, y = iris()
    assert not hasattr(MedianLVQClassifier(random_state=0).fit(X, y), "conditional")
    model = RBFNetworkRegressor(3, random_state=0).fit(X[:, :3], X[:, 3])
    holes = np.array([[5.0, np.nan, 1.5]])
    found = model.conditional(holes).mean().iloc[0, 0]
    assert found == pytest.approx(model.impute(holes)[0, 1])


def test_a_distribution_is_printed_in_words() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(50, 9, 80), "sex": rng.choice(["f", "m"], 80)})
    density = MixtureDensity(2, random_state=0).fit(X)
    holes = X.set_index(pd.Index([f"P{i}" for i in range(80)]))
    holes.iloc[2:12, 0] = None
    holes.iloc[2, 1] = None
    given = density.conditional(holes)
    lines = str(given).splitlines()
    assert lines[0] == "ConditionalDistribution of 11 cells in 10 of 80 rows, at the fitted point"
    mean, sd = given.mean()["age"]["P2"], given.sd()["age"]["P2"]
    level = given.probabilities("sex").loc["P2"]
    likely = f"sex {level.idxmax()} ({level.max():.2f})"
    assert lines[1] == f"  P2: age {mean:.4g} ± {sd:.2g}, {likely}"
    assert [line.split(":")[0] for line in lines[2:9]] == [f"  P{i}" for i in range(3, 10)]
    assert lines[9] == "  ... and 2 more rows"
    assert str(density.conditional(X)).endswith("0 cells in 0 of 80 rows, at the fitted point")

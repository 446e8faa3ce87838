"""Columns with point masses: one law of point masses and a density, in graph and numerics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity, predictive_check
from bayesrbf.fit.asking import new_rows
from bayesrbf.mixture.cells import cell_law, leave_one_cell_out
from tests.cases import generative, some_quick
from tests.fit.test_column_transforms import at_a_draw

GRID = np.linspace(-3.0, 60.0, 60_001)


def spiked(n: int = 300, seed: int = 0, holes: float = 0.15) -> np.ndarray:
    """A column that is 0 or log-normal, by the group of a row, and one that tells the group."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    zero = rng.random(n) < np.where(group, 0.7, 0.1)
    X = np.column_stack(
        [np.where(zero, 0.0, np.exp(rng.normal(group, 0.5, n))), rng.normal(2.5 * group, 1.0, n)]
    )
    X[rng.random(X.shape) < holes] = np.nan
    return X


def density(**arguments: Any) -> MixtureDensity:
    options = {"column_transforms": "power", "random_state": 0} | arguments
    return MixtureDensity(2, point_masses="auto", **options)


@pytest.fixture(scope="module")
def fitted() -> MixtureDensity:
    return density().fit(spiked())


def beside(values: np.ndarray, other: float) -> np.ndarray:
    """Rows of cells of the spiked column and one cell of the other."""
    return np.column_stack([values, np.full(np.shape(values), other)])


def law(model: MixtureDensity, other: float) -> tuple[np.ndarray, float]:
    """Density of the spiked column on the grid, and mass at zero, given the other cell."""
    whole = model.score_samples(beside(np.array([np.nan]), other))
    on_grid = np.exp(model.score_samples(beside(GRID[GRID != 0], other)) - whole)
    return on_grid, float(np.exp(model.score_samples(beside(np.array([0.0]), other)) - whole)[0])


@pytest.mark.parametrize("other", some_quick([-1.0, 1.2, 4.0], 1.2))
def test_mass_and_density_add_up_and_fill_the_cell(fitted: MixtureDensity, other: float) -> None:
    on_grid, at_zero = law(fitted, other)
    x = GRID[GRID != 0]
    assert trapezoid(on_grid, x) + at_zero == pytest.approx(1, abs=1e-4)
    filled = fitted.impute(beside(np.array([np.nan]), other))[0, 0]
    assert filled == pytest.approx(trapezoid(x * on_grid, x), rel=0.02)
    drawn = np.array(fitted.impute(beside(np.full(4000, np.nan), other), draws=1)[0])[:, 0]
    assert (drawn == 0).mean() == pytest.approx(at_zero, abs=4 * 0.5 / 4000**0.5)


@pytest.mark.parametrize("cell", some_quick([0.0, 0.4, 3.0, 12.0], 0.0, 3.0))
@pytest.mark.parametrize("other", some_quick([-1.0, 2.0], 2.0))
def test_a_cell_is_judged_by_the_law_given_the_rest(
    fitted: MixtureDensity, cell: float, other: float
) -> None:
    rows = new_rows(fitted.fitted_, beside(np.array([cell]), other)).cells
    mixture = fitted.model_
    found = leave_one_cell_out(mixture.standardise(rows), cell_law(mixture, fitted.columns_, 0.8))
    on_grid, at_zero = law(fitted, other)
    x = GRID[GRID != 0]
    below = trapezoid(np.where(x <= cell, on_grid, 0.0), x) + (at_zero if cell >= 0 else 0.0)
    above = trapezoid(np.where(x >= cell, on_grid, 0.0), x) + (at_zero if cell <= 0 else 0.0)
    assert found.tail[0, 0] == pytest.approx(min(1.0, 2 * min(below, above)), rel=0.02, abs=2e-3)
    mean = trapezoid(x * on_grid, x)
    assert found.expected[0, 0] == pytest.approx(mean, rel=0.03)
    for end, share in ((found.lower[0, 0], 0.1), (found.upper[0, 0], 0.9)):
        under = trapezoid(np.where(x < end, on_grid, 0.0), x)
        jump = at_zero if end == pytest.approx(0.0, abs=1e-6) else 0.0  # any share up to its own
        under += at_zero if end > 1e-6 else 0.0
        assert under - 2e-3 <= share <= under + jump + 2e-3
    assert np.isnan(
        found.level_log_tail
    ).all()  # at which point mass a cell is, is no cell of its own
    assert (found.level_expected == -1).all()


def test_tails_of_the_models_own_rows_are_at_least_uniform(fitted: MixtureDensity) -> None:
    """At a point mass the tail counts the whole mass, so small tails are rarer than their size."""
    rows = new_rows(fitted.fitted_, fitted.sample(4000)).cells
    mixture = fitted.model_
    found = leave_one_cell_out(mixture.standardise(rows), cell_law(mixture, fitted.columns_, 0.8))
    for level in (0.05, 0.2, 0.5):
        error = 3 * (level * (1 - level) / 4000) ** 0.5
        assert (found.tail[:, 0] <= level).mean() < level + error
        assert (found.tail[:, 1] <= level).mean() == pytest.approx(level, abs=error)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        density(),
        density(covariance_type="diag", column_transforms=None),
        generative(1, point_masses="auto", random_state=0),
    ],
    ids=["mapped", "diag", "classes"],
)
def test_the_graph_and_the_numerics_are_one_density(model: MixtureDensity) -> None:
    X = spiked(60)
    model.fit(X, np.arange(60) % 2)
    assert model.point_masses_
    graph = model.declare()
    theta, point = at_a_draw(model, graph)
    value, _ = model.fitted_.log_posterior.value_and_gradient(theta)
    assert graph.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(value, rel=1e-10)


def test_atoms_are_named_with_their_shares(fitted: MixtureDensity) -> None:
    seen = spiked()[:, 0]
    share = float((seen == 0).sum() / (~np.isnan(seen)).sum())
    assert fitted.point_masses_ == {"x0": {0.0: pytest.approx(share)}}
    assert (
        MixtureDensity(point_masses="auto", random_state=0).fit(spiked()[:, 1:]).point_masses_ == {}
    )


def test_samples_have_the_atom_as_often_as_the_table(fitted: MixtureDensity) -> None:
    drawn = fitted.sample(20_000)[:, 0]
    assert (drawn == 0).mean() == pytest.approx(fitted.point_masses_["x0"][0.0], abs=0.02)
    assert not np.isnan(drawn).any()


def test_a_cell_whose_mask_is_drawn_has_no_point_mass() -> None:
    X = spiked(200, holes=0.3)
    drawn = density(missingness="informative").fit(X).sample(5000)
    missing = np.isnan(drawn[:, 0]).mean()
    assert missing == pytest.approx(np.isnan(X[:, 0]).mean(), abs=0.05)


def test_a_table_without_atoms_is_fitted_as_without_looking() -> None:
    X = spiked()[:, 1:]
    plain = MixtureDensity(2, column_transforms="power", random_state=0).fit(X)
    np.testing.assert_array_equal(density().fit(X).score_samples(X), plain.score_samples(X))


def test_weights_are_rows() -> None:
    X = spiked(120)
    weights = np.random.default_rng(1).integers(0, 3, 120)
    weighed = density().fit(X, sample_weight=weights)
    repeated = density().fit(np.repeat(X, weights, axis=0))
    assert weighed.point_masses_ == repeated.point_masses_ != {}
    np.testing.assert_allclose(weighed.score_samples(X), repeated.score_samples(X), rtol=1e-9)


def test_classifier_and_file(tmp_path: Any) -> None:
    X = spiked(120)
    y = (np.nan_to_num(X[:, 1]) > 1.2).astype(int)
    model = HybridMixtureClassifier(point_masses="auto", random_state=0).fit(X, y)
    turned = HybridMixtureClassifier(point_masses="auto", random_state=0).fit(X[:, ::-1], y)
    np.testing.assert_allclose(model.predict_proba(X), turned.predict_proba(X[:, ::-1]), rtol=1e-6)
    model.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    assert loaded.point_masses_ == model.point_masses_ != {}
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.impute(X), model.impute(X))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["laplace", "gibbs"])
def test_draws_and_predictive_tables_know_the_point_masses(method: str) -> None:
    X = spiked(80)
    model = density().fit(X).refine(method, draws=50)
    checked = predictive_check(model, 20)["posterior_predictive"].to_dataset()
    seen = X[:, 0]
    share = (seen == 0).sum() / (~np.isnan(seen)).sum()
    assert float((checked["x0 is"] == 1).mean()) == pytest.approx(share, abs=0.1)
    for table in model.impute(X, draws=3):
        assert not np.isnan(table).any()

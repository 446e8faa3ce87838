"""Transforms of the columns: densities stay those of the user's cells, in graph and numerics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy.integrate import trapezoid
from scipy.special import logsumexp

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity, predictive_check
from bayesrbf.base import names
from bayesrbf.base.log_posterior import slices
from bayesrbf.base.names import COLUMN_POWERS
from bayesrbf.base.priors import PowerTransforms

GRID = np.sinh(np.linspace(-8.0, 9.0, 60_001))
"""Numbers from -1,500 to 4,000, close together near 0."""


def skewed(n: int = 80, seed: int = 0, holes: float = 0.2) -> np.ndarray:
    """Columns of a log-normal, a normal and a left-skewed law, tied together."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.5], [0.0, 0.0, 0.9]])
    X = np.column_stack([np.exp(z[:, 0]), 3 + 0.1 * z[:, 1], -50 * np.exp(0.7 * z[:, 2])])
    X[rng.random(X.shape) < holes] = np.nan
    return X


def labels(X: np.ndarray) -> np.ndarray:
    """Classes that the first column tells apart, some hidden."""
    y = np.where(np.nan_to_num(X[:, 0], nan=1.0) > 1, 1.0, 0.0)
    y[::5] = np.nan
    return y


def at_a_draw(model: bayesrbf.MixtureDensity, graph: pm.Model) -> tuple[np.ndarray, dict]:
    """Coordinates near the fit, as the numerics and as a graph take them."""
    log_posterior = model.fitted_.log_posterior
    fitted = model.model_.point(log_posterior)
    theta = fitted + 0.1 * np.random.default_rng(1).normal(size=fitted.size)
    start = graph.initial_point()
    point = {
        value.name: theta[place].reshape(start[value.name].shape)
        for (_, place), value in zip(
            slices(log_posterior.variables),
            map(graph.rvs_to_values.get, graph.free_RVs),
            strict=True,
        )
    }
    return theta, point


def test_a_mapped_density_integrates_to_one() -> None:
    density = MixtureDensity(2, column_transforms="power", random_state=0).fit(skewed()[:, :1])
    x = GRID
    assert trapezoid(np.exp(density.score_samples(x[:, None])), x) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        MixtureDensity(2, column_transforms="power", random_state=0),
        pytest.param(
            MixtureDensity(2, covariance_type="diag", column_transforms="power", random_state=0),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            HybridMixtureClassifier(
                1, shared_covariance=True, objective="blend", unlabelled_weight=1.0, random_state=0
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            HybridMixtureClassifier(
                2, shared_covariance=True, column_transforms="power", random_state=0
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["full", "diag", "blend", "likelihood"],
)
def test_the_graph_and_the_numerics_are_one_density(model: MixtureDensity) -> None:
    X = skewed(30)
    model.fit(X, labels(X))
    graph = model.declare()
    theta, point = at_a_draw(model, graph)
    value, _ = model.fitted_.log_posterior.value_and_gradient(theta)
    assert graph.compile_logp(mode="FAST_COMPILE")(point) == pytest.approx(value, rel=1e-10)


def test_a_graph_with_powers_of_one_is_the_graph_without_maps() -> None:
    X = skewed(30)
    transforms = MixtureDensity(column_transforms="power", random_state=0).fit(X).model_.transforms
    plain = MixtureDensity(random_state=0).fit(X)
    one = replace(plain.model_, transforms=transforms).declare(plain.rows_, plain.fitted_.axes)
    with one:
        pm.set_data({COLUMN_POWERS: np.ones(3)})
    none = plain.declare()
    _, point = at_a_draw(plain, none)
    found, expected = (graph.compile_logp(mode="FAST_COMPILE")(point) for graph in (one, none))
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_the_explicit_graph_summed_over_components_is_the_density() -> None:
    X = skewed(12)
    model = MixtureDensity(2, column_transforms="power", random_state=0).fit(X)
    graph = model.declare(latent="explicit")
    parameters = model.model_.start
    point = graph.initial_point()
    _, moved = at_a_draw(model, model.declare())
    point |= moved
    of_rows = graph.compile_fn(
        graph.logp([graph["z"], graph["x"]], sum=False),
        inputs=graph.value_vars,
        mode="FAST_COMPILE",
    )
    joint = [sum(of_rows({**point, "z": np.full(12, k)})) for k in range(parameters.weights.size)]
    theta, _ = at_a_draw(model, model.declare())
    np.testing.assert_allclose(
        logsumexp(joint, axis=0), model.fitted_.log_posterior.pointwise(theta), rtol=1e-9
    )


def test_filled_cells_are_means_of_the_conditional_density_in_the_users_units() -> None:
    X = skewed(200)
    model = MixtureDensity(2, column_transforms="power", random_state=0).fit(X)
    row = np.array([[np.nan, 3.05, -20.0]])
    low, high = np.nanmin(X[:, 0]), np.nanmax(X[:, 0])
    low, high = low - 0.5 * (high - low), high + 0.5 * (high - low)
    joint = np.exp(
        model.score_samples(np.column_stack([GRID, np.tile(row[:, 1:], (GRID.size, 1))]))
    )
    expected = trapezoid(np.clip(GRID, low, high) * joint, GRID) / trapezoid(joint, GRID)
    filled = model.impute(row)
    assert filled[0, 0] == pytest.approx(expected, rel=1e-2)
    np.testing.assert_array_equal(filled[0, 1:], row[0, 1:])
    drawn = np.array(model.impute(np.tile(row, (2000, 1)), draws=1)[0])[:, 0]
    assert abs(drawn.mean() - filled[0, 0]) < 4 * drawn.std() / 2000**0.5
    assert ((drawn >= low - 1e-9) & (drawn <= high + 1e-9)).all()


def test_samples_have_the_quantiles_of_the_training_rows() -> None:
    powers = np.array([0.4, 1.0, 1.7])
    law = PowerTransforms(np.zeros(3), np.ones(3), powers, np.full(3, -3.0), np.full(3, 3.0))
    X = law.backward(np.random.default_rng(0).normal(size=(2000, 3)))
    drawn = MixtureDensity(column_transforms="power", random_state=0).fit(X).sample(20_000)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    for column in range(3):
        np.testing.assert_allclose(
            np.quantile(drawn[:, column], levels),
            np.quantile(X[:, column], levels),
            atol=0.15 * X[:, column].std(),
        )


def test_a_change_of_units_shifts_the_log_density() -> None:
    X = skewed()
    factors = np.array([4.0, 0.5, -2.0])
    plain = MixtureDensity(2, column_transforms="power", random_state=0).fit(X)
    scaled = MixtureDensity(2, column_transforms="power", random_state=0).fit(X * factors)
    observed = ~np.isnan(X)
    expected = plain.score_samples(X) - observed @ np.log(np.abs(factors))
    np.testing.assert_allclose(scaled.score_samples(X * factors), expected, atol=1e-3)


def test_maps_follow_the_columns_and_the_file(tmp_path) -> None:
    X = skewed()
    model = HybridMixtureClassifier(column_transforms="power", random_state=0).fit(X, labels(X))
    turned = HybridMixtureClassifier(column_transforms="power", random_state=0).fit(
        X[:, ::-1], labels(X)
    )
    np.testing.assert_allclose(model.score_samples(X), turned.score_samples(X[:, ::-1]), rtol=1e-9)
    model.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.impute(X), model.impute(X))


def test_skewed_columns_have_a_denser_law_behind_maps() -> None:
    train, test = skewed(300, seed=1), skewed(300, seed=2)
    plain, mapped = (
        MixtureDensity(column_transforms=transforms, random_state=0).fit(train).score(test)
        for transforms in (None, "power")
    )
    assert mapped > plain + 0.3


@pytest.mark.slow
@pytest.mark.parametrize("method", ["laplace", "gibbs"])
def test_draws_and_predictive_tables_are_in_the_users_units(method: str) -> None:
    X = skewed(60)
    model = (
        MixtureDensity(column_transforms="power", random_state=0).fit(X).refine(method, draws=50)
    )
    assert names.MEANS in model.posterior_[names.POSTERIOR]
    checked = predictive_check(model, 20)
    drawn = checked["posterior_predictive"].to_dataset()
    for column, name in enumerate(drawn.data_vars):
        seen = X[:, column][~np.isnan(X[:, column])]
        assert abs(float(drawn[name].median()) - np.median(seen)) < seen.std()
    np.testing.assert_allclose(
        model.fitted_.log_posterior.pointwise(model.model_.point(model.fitted_.log_posterior)),
        model.score_samples(X),
        rtol=1e-9,
    )

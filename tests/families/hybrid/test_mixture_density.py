"""MixtureDensity against closed forms, SciPy, and the invariances that a density has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bayesrbf import MixtureDensity, MixturePrior
from bayesrbf.base.rows import COVARIANCE_TYPES
from tests.cases import some_quick
from tests.families.hybrid.density_tables import CONTAINERS, mixed_frame, point, real_table


def marginal_normal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Log density of the observed cells of one row."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    scale = np.sqrt(np.diag(covariance))[seen]  # SciPy takes a mix of units for singular
    normal = stats.multivariate_normal(
        mean[seen] / scale, covariance[np.ix_(seen, seen)] / np.outer(scale, scale)
    )
    return float(normal.logpdf(x[seen] / scale) - np.log(scale).sum())


def log_component_densities(density: MixtureDensity, X: np.ndarray) -> np.ndarray:
    """log w_k + log p(x_o | k) by SciPy, row by row."""
    found = point(density)
    k = density.n_components
    covariances = np.broadcast_to(found["covariances"], (k, *found["covariances"].shape[-2:]))
    weights = found.get("weights", np.ones(1))
    return np.array(
        [
            [
                np.log(weights[j]) + marginal_normal(x, found["means"][j], covariances[j])
                for j in range(k)
            ]
            for x in X
        ]
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("missing", some_quick([0.0, 0.4], 0.4))
def test_log_density_and_responsibilities_equal_scipy(covariance_type: str, missing: float) -> None:
    X = real_table(60, missing)
    density = MixtureDensity(2, covariance_type=covariance_type, random_state=0).fit(X)
    joint = log_component_densities(density, X)
    np.testing.assert_allclose(density.score_samples(X), logsumexp(joint, axis=1), rtol=1e-9)
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(density.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_array_equal(density.predict(X), density.predict_proba(X).argmax(axis=1))
    np.testing.assert_array_equal(density.transform(X), density.predict_proba(X))
    assert density.score(X) == pytest.approx(density.score_samples(X).mean())


def test_density_integrates_to_one() -> None:
    X = real_table(60)[:, 1:2]
    density = MixtureDensity(2, random_state=0).fit(X)
    grid = np.linspace(X.min() - 20e3, X.max() + 20e3, 20_001)[:, None]
    mass = np.exp(density.score_samples(grid)).sum() * (grid[1, 0] - grid[0, 0])
    assert mass == pytest.approx(1, abs=1e-6)


def test_level_probabilities_sum_to_one_over_a_categorical_table() -> None:
    X = np.array([["a", "u"], ["a", "v"], ["b", "v"], ["c", None]], dtype=object)
    density = MixtureDensity(2, random_state=0).fit(X)
    cells = [[a, b] for a in "abc" for b in "uv"]
    assert np.exp(density.score_samples(cells)).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("covariance_type", "freedom"), [("full", 3.0), ("diag", 2.0)])
def test_one_component_on_complete_rows_is_the_closed_form(
    covariance_type: str, freedom: float
) -> None:
    X = real_table(50)
    weights = np.random.default_rng(3).uniform(0.5, 3, 50)
    density = MixtureDensity(covariance_type=covariance_type, tol=1e-12).fit(
        X, sample_weight=weights
    )
    mean = np.average(X, axis=0, weights=weights)
    scatter = (weights[:, None] * (X - mean)).T @ (X - mean)
    n, strength = weights.sum(), freedom + 1
    if covariance_type == "diag":
        scatter = np.diag(np.diag(scatter))
    expected = (scatter + strength * np.diag(np.diag(scatter)) / n) / (n + strength)
    found = point(density)
    np.testing.assert_allclose(found["means"][0], mean, rtol=1e-10)
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        found["covariances"].reshape(3, 3) / np.outer(scale, scale),
        expected / np.outer(scale, scale),
        atol=1e-9,
    )


def test_nested_models() -> None:
    X, prior = real_table(80, 0.2), MixturePrior(degrees_of_freedom=4.0)
    scores = {
        kind: MixtureDensity(covariance_type=kind, prior=prior, tol=1e-12).fit(X)
        for kind in COVARIANCE_TYPES
    }
    np.testing.assert_allclose(
        scores["full"].score_samples(X), scores["tied"].score_samples(X), rtol=1e-9
    )
    assert scores["full"].score(X) > scores["diag"].score(X) + 0.05
    only = MixtureDensity(prior=prior, covariance_type="diag", tol=1e-12).fit(X[:, :1])
    both = MixtureDensity(prior=prior, covariance_type="spherical", tol=1e-12).fit(X[:, :1])
    np.testing.assert_allclose(only.score_samples(X[:, :1]), both.score_samples(X[:, :1]))


def test_change_of_units_shifts_the_log_density() -> None:
    X = real_table(60, 0.2)
    factor = np.array([2.0, 1024.0, 0.25])
    before = MixtureDensity(2, random_state=0).fit(X)
    after = MixtureDensity(2, random_state=0).fit(X * factor)
    seen = ~np.isnan(X)
    np.testing.assert_allclose(
        after.score_samples(X * factor), before.score_samples(X) - seen @ np.log(factor), rtol=1e-9
    )


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_weight_two_is_the_row_twice_in_any_order(covariance_type: str) -> None:
    X = mixed_frame()
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = X.loc[X.index.repeat(weights)].sample(frac=1, random_state=0)
    density = MixtureDensity(2, covariance_type=covariance_type, random_state=0)
    weighted = clone(density).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(
        weighted.predict_proba(X), clone(density).fit(repeated).predict_proba(X)
    )


def test_weight_zero_is_the_row_removed_even_with_a_level_of_its_own() -> None:
    X = mixed_frame()
    extended = pd.concat(
        [X, pd.DataFrame({"height": [1e9], "colour": ["violet"], "weight": [np.nan]})]
    )
    weights = np.r_[np.ones(len(X)), 0.0]
    one = MixtureDensity(random_state=0).fit(extended, sample_weight=weights)
    other = MixtureDensity(random_state=0).fit(X)
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(X))


def test_scaled_weights_weaken_the_prior_and_nothing_else() -> None:
    X = real_table(60)
    light = MixtureDensity().fit(X, sample_weight=np.full(60, 2e-6))
    heavy = MixtureDensity().fit(X, sample_weight=np.full(60, 9e5))
    assert np.isfinite(light.score_samples(X)).all()
    correlation = point(light)["covariances"][0] / np.outer(X.std(axis=0), X.std(axis=0))
    np.testing.assert_allclose(correlation, np.eye(3), atol=1e-3)
    np.testing.assert_allclose(point(heavy)["covariances"][0], np.cov(X.T, ddof=0), rtol=1e-6)


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_give_the_same_bits(container: str) -> None:
    frame = mixed_frame()
    X = CONTAINERS[container](frame)
    expected = MixtureDensity(2, random_state=0).fit(frame).score_samples(frame)
    np.testing.assert_array_equal(
        MixtureDensity(2, random_state=0).fit(X).score_samples(X), expected
    )


def test_more_restarts_never_lower_the_bound() -> None:
    X = real_table(60, 0.2)
    few = MixtureDensity(3, n_init=1, random_state=0).fit(X)
    many = MixtureDensity(3, n_init=3, random_state=0).fit(X)
    assert many.objective_ >= few.objective_


def test_a_fit_that_stops_early_says_so() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        density = MixtureDensity(3, max_iter=2, random_state=0).fit(real_table())
    assert not density.converged_
    assert "max_iter" in density.status_
    assert MixtureDensity().fit(real_table()).converged_


def test_names_of_responsibilities_and_set_output() -> None:
    X = mixed_frame()
    density = MixtureDensity(2, random_state=0).set_output(transform="pandas").fit(X)
    out = density.transform(X)
    assert list(out) == ["mixturedensity0", "mixturedensity1"]
    assert list(out) == list(density.get_feature_names_out())
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=0, atol=1e-12)

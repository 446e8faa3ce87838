"""Estimators under covariance_type="factor": fits, inference, files, words."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from bayesrbf import HybridMixtureClassifier, MixtureDensity, load
from bayesrbf.estimators.mixture import wide_tables
from bayesrbf.estimators.mixture.wide_tables import warn_where_slow
from bayesrbf.numerics.mixture.mixture_points import component_covariances
from bayesrbf.records.mixture import Observations
from tests.cases import first_quick

RNG = np.random.default_rng(0)
LOADINGS = RNG.normal(size=(8, 2)) * 2.0
TRUE = LOADINGS @ LOADINGS.T + np.eye(8)


def rows(n_obs: int, seed: int, missing: float = 0.2) -> np.ndarray:
    """Rows of two factors and a diagonal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_obs, 2)) @ LOADINGS.T + rng.normal(size=(n_obs, 8))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def density(**options: object) -> MixtureDensity:
    return MixtureDensity(covariance_type="factor", n_factors=2, random_state=0, **options)


def moments(fitted: MixtureDensity) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the first component, in the user's units."""
    point = fitted.model_.parameters.in_units(fitted.model_.units)
    return point.means[0], component_covariances(point, fitted.model_.specification)[0]


def test_two_factors_are_found_and_beat_other_shapes_on_new_rows() -> None:
    train, test = rows(150, 1), rows(400, 2)
    fitted = density().fit(train)
    _, covariance = moments(fitted)
    assert np.abs(covariance - TRUE).max() < 0.25 * TRUE.max()
    for other in ("full", "diag"):
        peer = MixtureDensity(covariance_type=other, random_state=0).fit(train)
        assert fitted.score(test) > peer.score(test)
    drawn = np.cov(fitted.sample(20_000).T)
    np.testing.assert_allclose(drawn, covariance, atol=0.05 * covariance.max())


def test_cells_are_imputed_by_the_regression_on_the_others() -> None:
    fitted = density().fit(rows(300, 1))
    mean, covariance = moments(fitted)
    X = rows(5, 3, missing=0.0)
    X[:, :3] = np.nan
    slopes = np.linalg.solve(covariance[3:, 3:], covariance[3:, :3]).T
    expected = mean[:3] + (X[:, 3:] - mean[3:]) @ slopes.T
    np.testing.assert_allclose(fitted.impute(X)[:, :3], expected, rtol=1e-6)
    surprise = fitted.surprise(rows(20, 4))
    assert np.nanmax(surprise["log_tail"].values) <= 0


@pytest.mark.parametrize("inference", first_quick(["laplace", "advi", "gibbs", "bootstrap"]))
@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
def test_every_inference_finds_the_covariance(inference: str) -> None:
    options = {"draws": 30} if inference == "bootstrap" else {"draws": 100, "chains": 2}
    fitted = density().fit(rows(300, 1)).refine(inference, **options)
    covariances = fitted.posterior_.posterior["covariances"].values.reshape(-1, 8, 8)
    deviation = np.abs(covariances.mean(axis=0) - TRUE) / np.sqrt(
        np.outer(np.diag(TRUE), np.diag(TRUE))
    )
    assert deviation.max() < 0.35
    assert covariances.std(axis=0).min() > 0


def test_a_fitted_density_comes_back_from_its_file(tmp_path: Path) -> None:
    X = rows(60, 1)
    fitted = density(n_components=2).fit(X)
    fitted.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    assert again.posterior_.identical(fitted.posterior_)


@pytest.mark.parametrize("objective", ["likelihood", "blend"])
def test_a_classifier_has_factors_in_every_class(objective: str) -> None:
    X, y = np.concatenate([rows(60, 1), rows(60, 2) + 1.5]), np.repeat([0, 1], 60)
    options = {"covariance_type": "factor", "n_factors": 2, "objective": objective}
    fitted = HybridMixtureClassifier(tied=False, random_state=0, **options).fit(X, y)
    assert fitted.covariance_type_ == "factor"
    assert fitted.score(X, y) > 0.8
    assert fitted.model_.parameters.precisions_cholesky.shape == (2, 8, 1, 3)


def test_auto_components_keep_the_factors_that_were_asked_for() -> None:
    fitted = MixtureDensity("cv", covariance_type="factor", random_state=0).fit(rows(60, 1))
    assert {(one.covariance_type, one.n_factors) for one in fitted.candidates_} == {("factor", 5)}
    chosen = MixtureDensity(covariance_type="cv", random_state=0).fit(rows(60, 1))
    assert {one.covariance_type for one in chosen.candidates_} == {"full", "diag"}


def test_a_number_of_factors_without_factors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"n_factors=.* is for covariance_type='factor'"):
        MixtureDensity(n_factors=3).fit(rows(20, 1))


def wide(n_columns: int, n_obs: int) -> Observations:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(n_obs, n_columns))
    real[rng.random(real.shape) < 0.3] = np.nan
    none = np.zeros((n_obs, 0), dtype=int)
    return Observations(real, none, np.zeros(n_obs, int), np.ones(n_obs))


def test_many_columns_with_many_patterns_are_told_where_the_cliff_is() -> None:
    many = wide(wide_tables.MANY_COLUMNS, wide_tables.MANY_PATTERNS)
    for shape in ("full", "tied", "cv"):
        with pytest.warns(UserWarning, match=r"500 patterns.*covariance_type='factor'"):
            warn_where_slow("MixtureDensity", shape, many)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ("factor", "diag", "spherical"):
            warn_where_slow("MixtureDensity", shape, many)
        warn_where_slow("MixtureDensity", "full", many.take(np.arange(499)))
        warn_where_slow("MixtureDensity", "full", wide(59, 900))

"""A density fills holes and draws rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesrbf import MixtureDensity
from tests.families.hybrid.density_tables import CONTAINERS, mixed_frame, point, real_table


def test_imputation_is_the_conditional_mean_and_leaves_observed_cells_alone() -> None:
    X = real_table(60, 0.3)
    density = MixtureDensity().fit(X)
    filled = density.impute(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    found = point(density)
    mean, covariance = found["means"][0], found["covariances"][0]
    for row, full in zip(X, filled, strict=True):
        o = ~np.isnan(row)
        gain = covariance[np.ix_(~o, o)] @ np.linalg.pinv(covariance[np.ix_(o, o)], rcond=1e-30)
        np.testing.assert_allclose(full[~o], mean[~o] + gain @ (row[o] - mean[o]), rtol=1e-7)


def test_imputation_of_frames_keeps_container_names_and_levels() -> None:
    X = mixed_frame()
    filled = MixtureDensity(2, random_state=0).fit(X).impute(X)
    assert isinstance(filled, pd.DataFrame)
    assert list(filled) == list(X)
    assert not filled.isna().any().any()
    assert set(filled["colour"]) <= {"red", "blue", "green"}
    for name in X:
        seen = X[name].notna()
        assert (filled[name][seen] == X[name][seen]).all()
    polars = CONTAINERS["polars"](X)
    assert isinstance(MixtureDensity(random_state=0).fit(polars).impute(polars), pl.DataFrame)


def test_drawn_imputations_scatter_around_the_conditional_mean() -> None:
    X = real_table(40, 0.3)
    density = MixtureDensity(random_state=0).fit(X)
    draws = np.array(density.impute(X, draws=400))
    assert draws.shape == (400, *X.shape)
    hidden = np.isnan(X)
    assert (draws[:, ~hidden] == X[~hidden]).all()
    spread = draws[:, hidden].std(axis=0)
    assert (spread > 0).all()
    z = (draws[:, hidden].mean(axis=0) - density.impute(X)[hidden]) / (spread / 20)
    assert abs(z.mean()) < 4.9 / np.sqrt(1 + hidden.sum() / 3)
    assert np.abs(z).max() < 4.9
    with pytest.raises(ValueError, match="at least 1; received 0"):
        density.impute(X, draws=0)


def test_samples_have_the_moments_of_the_density_and_the_container_of_fit() -> None:
    X = real_table(200)
    density = MixtureDensity(random_state=0).fit(X)
    drawn = density.sample(20_000)
    found = point(density)
    error = (drawn.mean(axis=0) - found["means"][0]) / (drawn.std(axis=0) / np.sqrt(20_000))
    assert np.abs(error).max() < 4.9
    np.testing.assert_allclose(
        np.cov(drawn.T) / found["covariances"][0], np.ones((3, 3)), atol=0.15
    )
    frame = mixed_frame()
    assert list(MixtureDensity().fit(frame).sample(3)) == list(frame)
    with pytest.raises(ValueError, match="received 0"):
        density.sample(0)


def test_informative_missingness_is_learnt_and_sampled() -> None:
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (200, 2)), rng.normal(6, 1, (200, 2))]
    X[200:, 1][rng.random(200) < 0.9] = np.nan
    density = MixtureDensity(2, missingness="informative", random_state=0).fit(X)
    hidden_first = density.predict_proba([[np.nan, np.nan]])[0]
    high = density.predict([[6.0, 6.0]])[0]
    assert hidden_first[high] > 0.95
    drawn = density.sample(2000)
    share = np.isnan(drawn[drawn[:, 0] > 3, 1]).mean()
    assert 0.85 < share < 0.95
    assert np.isnan(drawn[drawn[:, 0] < 2.5, 1]).mean() < 0.05

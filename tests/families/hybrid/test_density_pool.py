"""A pool of densities: shares by held-out density, side by side a mixture again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayesrbf
from bayesrbf import MixtureDensity
from bayesrbf.base.rows import COVARIANCE_TYPES
from bayesrbf.families.hybrid import density as density_pool
from bayesrbf.families.hybrid.density import stacking_shares
from tests.families.hybrid.test_density_choice import clusters

POOL = MixtureDensity(
    "cv", covariance_type="cv", prior="cv", column_transforms="power", pool=6, random_state=0
)


def test_a_pool_is_the_mean_of_its_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    monkeypatch.setattr(
        density_pool, "side_by_side", lambda alone, found: parts.extend(found) or alone
    )
    X = clusters()
    POOL.fit(X)
    monkeypatch.undo()
    rows = POOL.rows_
    density = clone(POOL).fit(X)
    mapped = density.model_.transforms.applied(rows)
    told = [np.log(share) + mixture.log_density(mapped) for share, mixture in parts]
    np.testing.assert_allclose(density.model_.log_density(rows), np.logaddexp.reduce(told))
    assert sum(share for share, _ in parts) == pytest.approx(1)
    assert {len(mixture.specification.component_class) for _, mixture in parts} > {2}


def test_shares_are_those_of_the_best_held_out_density() -> None:
    rng = np.random.default_rng(0)
    log_density, weights = rng.normal(size=(2, 40)), rng.random(40)
    found = stacking_shares(log_density, weights)
    grid = np.linspace(0, 1, 1001)[:, None]
    told = np.log(grid * np.exp(log_density[0]) + (1 - grid) * np.exp(log_density[1])) @ weights
    assert abs(found[0] - grid[told.argmax(), 0]) < 0.005


def test_a_pool_does_not_depend_on_the_order_of_rows_and_columns() -> None:
    X = clusters()
    rows, columns = np.random.default_rng(1).permutation(len(X)), [2, 0, 1]
    straight = clone(POOL).fit(X).score_samples(X)
    mixed = clone(POOL).fit(X[rows][:, columns]).score_samples(X[:, columns])
    np.testing.assert_allclose(straight, mixed)


def test_everything_can_be_asked_of_a_pool(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(clusters(), columns=list("abc"))
    X["d"] = rng.choice(["u", "v"], len(X))
    X["a"] = X["a"].where(rng.random(len(X)) < 0.7, 0.0)
    density = clone(POOL).set_params(point_masses="auto", trim=True).fit(X)
    assert density.point_masses_.keys() == {"a"}
    shares = [one.share for one in density.candidates_]
    assert sum(shares) == pytest.approx(1)
    assert max(shares) < 1
    assert density.impute(X).notna().all(axis=None)
    assert np.isfinite(density.conditional(X).quantile(0.5)["a"][X["a"].isna()]).all()
    assert (density.surprise(X)["log_tail"].fillna(0) <= 0).all()
    assert density.novelty(X).max() <= 1
    assert density.dependence()["information"].shape == (5, 5)  # and the point masses
    assert len(density.sample(5)) == 5
    density.save(tmp_path / "density.safetensors")
    again = bayesrbf.load(tmp_path / "density.safetensors")
    np.testing.assert_array_equal(again.score_samples(X), density.score_samples(X))
    assert again.candidates_ == density.candidates_


@pytest.mark.parametrize("shape", COVARIANCE_TYPES)
def test_every_shape_can_stand_side_by_side(shape: Any) -> None:
    X = clusters()
    asked = MixtureDensity(2, covariance_type=shape, n_init=1, random_state=0)
    one, pool = clone(asked).fit(X), asked.set_params(pool=3).fit(X)
    assert abs(pool.score(X) - one.score(X)) < 0.5
    assert pool.transform(X).shape[1] == 6


def test_a_pool_has_no_posterior_to_draw_from() -> None:
    with pytest.raises(ValueError, match="no refine"):
        MixtureDensity(pool=2, random_state=0).fit(clusters()).refine()

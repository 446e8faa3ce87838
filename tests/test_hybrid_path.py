"""The path along the dial: its ends are known fits, its figures those of held-out rows."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf import (
    Hinge,
    hybrid_path,
)
from bayesrbf.plots import plot_hybrid_path
from tests.cases import generative


def table(n_obs: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Skewed classes: a Gaussian each is wrong, so that the dial matters."""
    rng = np.random.default_rng(0)
    y = np.arange(n_obs) % 2
    X = np.column_stack([rng.exponential(size=n_obs) * (1 + y) + y, rng.normal(size=n_obs)])
    X[::9, 1] = np.nan
    return X, np.array(["a", "b"])[y]


def test_figures_are_those_of_fits_that_did_not_see_the_rows():
    X, y = table()
    halves = np.arange(90) < 45
    splits = [(np.flatnonzero(halves), np.flatnonzero(~halves))]
    estimator = generative(objective="blend", cv=splits, random_state=0)
    path = hybrid_path(X, y, estimator=estimator, values=[1.0, 0.2])
    assert dict(path.sizes) == {"kappa": 2, "fold": 1}
    likelihood = generative(random_state=0).fit(X[halves], y[halves])
    log_p = likelihood.predict_log_proba(X[~halves])
    codes = np.unique(y[~halves], return_inverse=True)[1]
    chosen = log_p[np.arange(45), codes]
    found = path.isel(kappa=0, fold=0)
    assert float(found["log_score"]) == pytest.approx(chosen.mean(), abs=1e-3)
    assert float(found["margin"]) == pytest.approx(
        (chosen - log_p[np.arange(45), 1 - codes]).mean(), abs=1e-2
    )
    assert float(found["error"]) == pytest.approx(1 - likelihood.score(X[~halves], y[~halves]))
    density = likelihood.score_samples(X[~halves]).mean()
    assert float(found["log_density"]) == pytest.approx(density, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["blend", "hinge"])
def test_the_dial_buys_discrimination_with_density(objective):
    X, y = table(180)
    estimator = generative(objective=objective, cv=3, random_state=0)
    path = hybrid_path(X, y, estimator=estimator)
    means = path.mean("fold")
    assert means["log_density"][0] > means["log_density"][-1]
    assert means["calibrated_log_score"].max() > means["calibrated_log_score"][0]
    assert np.all(path["calibrated_log_score"] >= path["log_score"] - 0.05)
    assert estimator.get_params()["cv"] == 3
    assert not hasattr(estimator, "classes_")


def test_a_path_is_drawn_with_its_folds():
    X, y = table()
    estimator = generative(objective=Hinge(max_iter=5), cv=2, random_state=0)
    path = hybrid_path(X, y, estimator=estimator, values=[0.0, 1.0, 4.0])
    axes = plot_hybrid_path(path)
    assert [ax.get_xlabel() for ax in axes] == ["hinge_weight"] * 4
    [means] = axes[1].containers[0][:1]
    np.testing.assert_allclose(means.get_ydata(), path["error"].mean("fold"))
    assert len(axes[0].containers) == 2  # raw and calibrated


def test_what_has_no_dial_and_what_holds_nothing_out_are_named():
    X, y = table()
    with pytest.raises(ValueError, match="objective='margin'"):
        hybrid_path(X, y, estimator=generative(objective="margin"))
    one_each = [int(np.flatnonzero(y == label)[0]) for label in np.unique(y)]
    with pytest.raises(ValueError, match="label more rows"):
        hybrid_path(X[one_each], y[one_each], estimator=generative(objective="blend"))
    missing = [(np.flatnonzero(y == "a"), np.flatnonzero(y == "b"))]
    with pytest.raises(ValueError, match="have no row of class 'b'"):
        hybrid_path(X, y, estimator=generative(objective="blend", cv=missing))

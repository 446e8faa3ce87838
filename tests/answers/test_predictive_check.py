"""Tables drawn from the declared graph beside the real one, as ArviZ reads them."""

from __future__ import annotations

from collections.abc import Iterator

import arviz_stats
import numpy as np
import pandas as pd
import pytensor
import pytest
import xarray as xr

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    predictive_check,
)
from tests.cases import first_quick, generative


@pytest.fixture(scope="module", autouse=True)
def quickly() -> Iterator[None]:
    """Graphs are compiled without what makes them fast: a table is drawn a few times."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def fitted() -> tuple[HybridMixtureClassifier, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60).astype(float)
    frame = pd.DataFrame(
        {
            "a/b": rng.normal(3.0 * y, 1.0),
            "colour": np.where(rng.random(60) < 0.3 + 0.4 * y, "red", "blue"),
            "label": rng.normal(size=60),
        }
    )
    frame.loc[::4, "a/b"] = np.nan
    frame.loc[1::5, "colour"] = None
    y[::7] = np.nan
    model = generative(random_state=0, inference="laplace")
    return model.fit(frame, y), frame, y


@pytest.fixture(scope="module")
def check(fitted) -> xr.DataTree:
    return predictive_check(fitted[0], 60)


def test_every_column_keeps_its_own_rows(fitted, check):
    _, frame, y = fitted
    observed = check["observed_data"]
    assert list(observed.data_vars) == ["label", "a_b", "label_", "colour"]
    np.testing.assert_array_equal(observed["a_b"], frame["a/b"].dropna())
    np.testing.assert_array_equal(observed["label_"], frame["label"])
    np.testing.assert_array_equal(observed["label"], y[~np.isnan(y)].astype(int))
    assert observed["colour"].sizes["obs_3"] == frame["colour"].notna().sum()
    assert observed["colour"].dtype.kind == check["posterior_predictive"]["label"].dtype.kind == "i"
    for name, drawn in check["posterior_predictive"].data_vars.items():
        assert drawn.dims[2:] == observed[name].dims
        assert np.isfinite(drawn).all()


def test_drawn_columns_look_like_the_real_ones(check):
    drawn, observed = check["posterior_predictive"], check["observed_data"]
    for name in observed.data_vars:
        means = drawn[name].mean(drawn[name].dims[2:]).to_numpy().ravel()
        # a model of the right family puts the real mean inside its own replications
        assert means.min() < float(observed[name].mean()) < means.max()


def test_leave_one_out_ranks_read_it(check):
    values = arviz_stats.loo_pit(check, var_names=["a_b"])["a_b"].to_numpy()
    assert ((values >= 0) & (values <= 1)).all()
    # 45 uniform values: their mean is within 4.9 standard errors of a half
    assert abs(values.mean() - 0.5) < 4.9 / np.sqrt(12 * values.size)


def test_the_prior_is_wider_and_has_no_likelihood(fitted, check):
    prior = predictive_check(fitted[0], 30, prior=True)
    assert set(prior.children) == {"prior_predictive", "observed_data"}
    wide = float(prior["prior_predictive"]["a_b"].std())
    assert wide > 1.2 * float(check["posterior_predictive"]["a_b"].std())


@pytest.mark.parametrize("objective", first_quick(["conditional", "blend"]))
def test_an_objective_has_posterior_tables_and_no_prior_ones(objective, fitted):
    _, frame, y = fitted
    model = generative(objective=objective, inference="laplace", random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match=r"'objective'.*objective='likelihood'"):
        predictive_check(model, prior=True)
    with pytest.warns(UserWarning, match="Potentials"):
        whole = predictive_check(model, 10)["log_likelihood"]["label_"]
    assert whole.sizes["obs_2"] == y.size
    if objective == "conditional":
        assert (whole.to_numpy()[..., np.isnan(y)] == 0).all()


def test_a_density_has_no_labels_to_check():
    rows = np.random.default_rng(0).normal(size=(20, 2))
    density = MixtureDensity(1, random_state=0, inference="laplace").fit(rows)
    found = predictive_check(density, 10)
    assert list(found["posterior_predictive"].data_vars) == ["x0", "x1"]


def test_a_row_without_a_cell_is_in_no_column():
    rows = np.random.default_rng(0).normal(size=(20, 2))
    rows[3] = rows[5, 0] = np.nan
    density = MixtureDensity(random_state=0, inference="laplace").fit(rows)
    found = predictive_check(density, 10)
    assert found["log_likelihood"]["x0"].sizes["obs_1"] == 18
    assert found["log_likelihood"]["x1"].sizes["obs_2"] == 19


def test_no_table_is_an_error(fitted):
    with pytest.raises(ValueError, match="must be at least 1; received 0"):
        predictive_check(fitted[0], 0)


def test_a_graph_of_labels_draws_no_table(fitted):
    _, frame, y = fitted
    for model in (KernelNetworkClassifier(n_basis=5), MedianLVQClassifier(sigma=1.0)):
        with pytest.raises(ValueError, match=r"the graph of a .* has labels alone"):
            predictive_check(model.fit(frame, y))

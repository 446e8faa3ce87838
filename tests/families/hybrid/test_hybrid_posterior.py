"""The mixture classifier with draws: predictions, checks, diagnosis, the graph beside it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone

from bayesrbf import HybridMixtureClassifier
from bayesrbf.inference.diagnose import PosteriorWarning
from tests.cases import generative
from tests.fit.class_tables import CLASSES, table


def test_a_point_estimate_never_pretends_to_know_its_uncertainty() -> None:
    X, y = table()
    model = generative().fit(X, y)
    with pytest.warns(UserWarning, match="refine"):
        found = model.uncertainty(X)
    assert np.isnan(found["sd"]).all()
    assert np.isnan(found["epistemic_entropy"]).all()
    np.testing.assert_allclose(found["probability"], model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(found["log_density"], model.score_samples(X), rtol=1e-9)
    assert model.posterior_.attrs["point_estimate"] == 1
    assert model.diagnose()["row"].tolist() == ["map_converged", "draws"]


@pytest.fixture(scope="module")
def refined() -> HybridMixtureClassifier:
    X, y = table()
    y[::4] = None
    model = generative(
        shared_covariance=True, calibrate=True, class_prior=[0.2, 0.3, 0.5], random_state=0
    )
    return model.fit(X, y).refine("laplace", draws=40)


def mean_of_draws(refined: HybridMixtureClassifier, probability: xr.DataArray) -> xr.DataArray:
    """Mean at the shares of training, moved to those of use: a weighted mean of moved draws."""
    ratio = np.exp(refined.fitted_.log_ratio)
    weight = 1 / (probability / ratio).sum("label")
    return (weight * probability).mean(("chain", "draw")) / weight.mean(("chain", "draw"))


def test_draws_lie_around_what_the_calibrated_fit_says(
    refined: HybridMixtureClassifier,
) -> None:
    X, _ = table(seed=5)
    tree = refined.predict_posterior(X)
    probability = tree["predictions"]["probability"]
    assert probability.dims == ("chain", "draw", "obs", "label")
    assert probability["label"].to_numpy().tolist() == CLASSES.tolist()
    given = refined.predict_proba(X)
    np.testing.assert_allclose(np.exp(refined.predict_log_proba(X)), given, atol=1e-12)
    assert np.abs(mean_of_draws(refined, probability) - given).mean() < 0.05
    found = refined.uncertainty(X, prob=0.5)
    np.testing.assert_allclose(found["probability"], given, atol=1e-12)
    inside = (probability >= found["lower"]) & (probability <= found["upper"])
    assert 0.4 < inside.mean() < 0.6
    assert (found["total_entropy"] >= found["aleatoric_entropy"]).all()
    assert (found["epistemic_entropy"] > 0).any()


def test_draws_at_the_fit_predict_as_the_fit(refined: HybridMixtureClassifier) -> None:
    X, _ = table(seed=5)
    fitted = clone(refined)
    X_train, y_train = table()
    y_train[::4] = None
    fitted.fit(X_train, y_train)
    at_point = fitted.predict_posterior(X)["predictions"]["probability"].to_numpy()
    np.testing.assert_allclose(at_point[0, 0], fitted.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(refined.predict_proba(X), fitted.predict_proba(X))


def test_predictive_checks_have_labels_of_the_classes(refined: HybridMixtureClassifier) -> None:
    X, y = table(seed=5)
    y[:10] = None
    tree = refined.predict_posterior(X, y)
    drawn, truth = tree["posterior_predictive"]["y"], tree["observed_data"]["y"]
    assert drawn.sizes["obs"] == truth.sizes["obs"] == len(y) - 10
    assert (CLASSES[truth.to_numpy()] == y[10:]).all()
    share = (drawn == 0).mean(("chain", "draw")).to_numpy()
    expected = tree["predictions"]["probability"].mean(("chain", "draw")).to_numpy()[10:, 0]
    assert np.abs(share - expected).max() < 4.9 * 0.5 / np.sqrt(160)
    with pytest.raises(ValueError, match="'tornado', which is no class"):
        refined.predict_posterior(X[10:11], ["tornado"])


def test_probabilities_of_draws_are_thinned(refined: HybridMixtureClassifier) -> None:
    X, _ = table(seed=5)
    whole = refined.predict_posterior(X)["predictions"]["probability"]
    affordable = whole.nbytes // 4
    with pytest.warns(UserWarning, match="one draw in 4 is kept"):
        thinned = refined.predict_posterior(X, memory=affordable)["predictions"]["probability"]
    np.testing.assert_allclose(thinned, whole[:, ::4], rtol=1e-12)
    in_blocks, at_once = refined.uncertainty(X, memory=5_000), refined.uncertainty(X)
    np.testing.assert_allclose(in_blocks["upper"], at_once["upper"], rtol=1e-10)


def test_diagnosis_speaks_of_class_probabilities(refined: HybridMixtureClassifier) -> None:
    with pytest.warns(PosteriorWarning, match="ess_parameters.*ask for more draws"):
        found = refined.diagnose()
    rows = {"map_converged", "pareto_k", "rhat_class_probabilities", "map_difference", "elpd_loo"}
    assert rows <= set(found["row"])


def test_draws_of_another_sampler_are_taken_and_named_as_in_the_fit() -> None:
    X, y = table()
    model = generative(2, covariance_type="diag", random_state=0).fit(X, y)
    model.refine("laplace", draws=20)
    expected, tree = model.predict_proba(X), model.posterior_
    swapped = tree["posterior"].to_dataset().copy(deep=True)
    order = [1, 0, 2, 3, 4, 5]
    for name in swapped.data_vars:
        if "mixture_component" in swapped[name].dims:
            swapped[name] = swapped[name].isel(mixture_component=order).variable
    swapped["weights_0"] = swapped["weights_0"].isel(mixture_component_0=[1, 0]).variable
    foreign = xr.DataTree.from_dict({"posterior": swapped})
    other = clone(model).fit(X, y).use_posterior(foreign)
    np.testing.assert_allclose(other.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_allclose(
        other.posterior_["posterior"]["means"], tree["posterior"]["means"], rtol=1e-9
    )
    np.testing.assert_allclose(
        other.posterior_["sample_stats"]["lp"], tree["sample_stats"]["lp"], rtol=1e-9
    )
    with pytest.raises(ValueError, match="needs draws of 'means'"):
        other.use_posterior(xr.DataTree.from_dict({"posterior": swapped.drop_vars("means")}))
    fewer = swapped.isel(feature=[0])
    with pytest.raises(ValueError, match=r"'means' of shape \(6, 2\).*received \(6, 1\)"):
        other.use_posterior(xr.DataTree.from_dict({"posterior": fewer}))


def test_the_declared_graph_has_the_variables_of_the_posterior() -> None:
    X, y = table()
    model = generative(2, random_state=0, covariance_type="diag").fit(X, y)
    graph, posterior = model.declare(), model.posterior_["posterior"]
    for variable in graph.free_RVs:
        assert variable.name in posterior
        assert graph.named_vars_to_dims[variable.name] == posterior[variable.name].dims[2:]
    assert "z" in {v.name for v in model.declare(latent="explicit").free_RVs}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* in the unit of training:UserWarning")
def test_more_rows_take_away_epistemic_uncertainty_in_proportion_and_far_rows_have_more_of_it() -> (
    None
):
    """Four times the rows leave about a quarter of it, whatever the rows are like."""

    def spread(n: int) -> tuple[float, float]:
        rng = np.random.default_rng(n)
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, 2)) + y[:, None]
        model = generative(random_state=0).fit(X, y).refine("laplace", draws=500)
        new = np.random.default_rng(0).normal(size=(200, 2)) + 0.5
        known = model.uncertainty(new)["epistemic_entropy"].to_numpy()
        off = model.uncertainty(new[:50] + np.array([6.0, -6.0]))["epistemic_entropy"].to_numpy()
        return float(known.mean()), float(off.mean())

    known, off = np.array([spread(n) for n in (60, 240, 960)]).T
    falls = known[:-1] / known[1:]
    assert ((falls > 2.5) & (falls < 6.5)).all()
    assert (off > 2 * known).all()

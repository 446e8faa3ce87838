"""A density with draws, and the graph beside it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from bayesrbf import MixtureDensity
from bayesrbf.inference import laplace
from bayesrbf.inference.diagnose import PosteriorWarning
from tests.families.hybrid.density_tables import mixed_frame, real_table


def test_the_tree_is_made_when_asked_for_and_then_stored() -> None:
    density = MixtureDensity(2, random_state=0).fit(real_table(missing=0.2))
    assert "objective_" in density._repr_html_()
    assert "tree" not in vars(density.fitted_)
    tree = density.posterior_
    assert density.posterior_ is tree
    assert tree.attrs["point_estimate"] == 1
    assert set(tree.children) >= {"posterior", "log_likelihood", "observed_data", "constant_data"}
    X = real_table(missing=0.2)
    told = ~np.isnan(X).all(axis=1)  # a row without a cell tells nothing, and is not among them
    assert not told.all()
    np.testing.assert_allclose(
        tree["log_likelihood"]["x"].to_numpy()[0, 0], density.score_samples(X)[told], atol=1e-9
    )
    path = tree["optimiser_path"]["log_posterior"].to_numpy()
    assert path.size == density.n_iter_
    assert path[-1] == density.objective_ == path.max()
    density.fit(real_table(seed=5))
    assert density.posterior_ is not tree
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = MixtureDensity().posterior_


def test_refined_density_keeps_its_fit_and_draws_around_it() -> None:
    X = real_table(80, 0.2)
    density = MixtureDensity(random_state=0).fit(X)
    before = density.score_samples(X)
    density.refine("laplace", draws=100)
    np.testing.assert_array_equal(density.score_samples(X), before)
    means = density.posterior_["posterior"]["means"]
    assert means.sizes["chain"] * means.sizes["draw"] == 400
    z = (means.mean(("chain", "draw")) - means.median(("chain", "draw"))) / means.std()
    assert np.abs(z).max() < 0.5
    with pytest.warns(PosteriorWarning, match="ess_parameters"):
        found = density.diagnose()
    assert {"pareto_k", "elpd_loo"} <= set(found["row"])
    first, second = density.impute(X, draws=2)
    assert (first[np.isnan(X)] != second[np.isnan(X)]).all()
    with pytest.raises(ValueError, match="or 'nuts' or 'bootstrap'; received 'metropolis'"):
        density.refine("metropolis")


@pytest.mark.slow
def test_nuts_and_the_gaussian_agree_where_there_is_much_data() -> None:
    X = real_table(300)[:, :1]
    density = MixtureDensity(random_state=0).fit(X)
    gaussian = density.refine("laplace", draws=200).posterior_["posterior"]["means"]
    sampled = density.refine("nuts", draws=200, tune=200, chains=2).posterior_
    assert sampled.attrs["inference"] == "nuts"
    means = sampled["posterior"]["means"]
    error = float(gaussian.std()) / np.sqrt(100)  # at least 100 effective draws
    assert abs(float(means.mean() - gaussian.mean())) < 4.9 * np.sqrt(2) * error
    assert 0.7 < float(means.std() / gaussian.std()) < 1.4


def test_inference_at_fit_is_refine_after_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "laplace", partial(laplace.laplace, draws=50))
    X = real_table(30)[:, :1]
    one = MixtureDensity(inference="laplace", random_state=0).fit(X).impute([[np.nan]], draws=5)
    two = MixtureDensity(random_state=0).fit(X).refine("laplace").impute([[np.nan]], draws=5)
    np.testing.assert_array_equal(one, two)


def test_the_declared_graph_has_the_variables_of_the_posterior() -> None:
    density = MixtureDensity(2, random_state=0).fit(mixed_frame())
    model = density.declare()
    posterior = density.posterior_["posterior"]
    for variable in model.free_RVs:
        assert variable.name in posterior
        assert model.named_vars_to_dims[variable.name] == posterior[variable.name].dims[2:]
    for dim, names in model.coords.items():
        if dim in posterior.coords:
            assert list(map(str, names)) == list(map(str, posterior[dim].to_numpy()))

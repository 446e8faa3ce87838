"""What users call ArviZ for, on the tree of every family."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from arviz_stats import psense_summary

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
    load,
)
from bayesrbf.fit import model as replicates
from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import encode
from bayesrbf.table.order import copies_of
from tests.cases import generative

N = 40
CODES = np.arange(N) % 3
Y = np.array(["calm", "gale", "storm"], dtype=object)[CODES]
HIDDEN = np.where(np.arange(N) == 5, None, Y)
X = np.random.default_rng(0).normal(size=(N, 2)) + 2 * CODES[:, None] * [1.0, 0.5]
HOLES = np.where((np.arange(N) % 9 == 0)[:, None] & [False, True], np.nan, X)
NUMBERS = X[:, 0] + np.random.default_rng(1).normal(size=N)

FAMILIES: dict[str, tuple[Callable[[], Any], str]] = {
    "mixture": (lambda: generative(random_state=0).fit(HOLES, HIDDEN), "laplace"),
    "tied mixture by Gibbs": (
        lambda: generative(covariance_type="tied", unlabelled_weight=1.0, random_state=0).fit(
            HOLES, HIDDEN
        ),
        "gibbs",
    ),
    "hinge": (
        lambda: generative(
            {"calm": 2, "gale": 1, "storm": 1}, objective="hinge", random_state=0
        ).fit(HOLES, HIDDEN),
        "laplace",
    ),
    "density": (lambda: MixtureDensity(2, random_state=0).fit(HOLES), "laplace"),
    "RBF network": (lambda: RBFNetworkClassifier(random_state=0).fit(HOLES, Y), "laplace"),
    "RBF regression": (lambda: RBFNetworkRegressor(random_state=0).fit(X, NUMBERS), "laplace"),
    "sparse mixture": (
        lambda: SDGMClassifier(1, n_init=1, calibrate=False, random_state=0).fit(HOLES, Y),
        "laplace",
    ),
    "kernel network": (
        lambda: KernelNetworkClassifier(random_state=0).fit(HOLES, HIDDEN),
        "laplace",
    ),
    "exemplars": (
        lambda: MedianLVQClassifier(2, sigma="sample", random_state=0).fit(X, HIDDEN),
        "gibbs",
    ),
    "stack": (lambda: StackedClassifier(random_state=0).fit(HOLES, Y), "laplace"),
}
QUICK = ("mixture",)
BOOTSTRAPPED = ("mixture", "sparse mixture")
EVERY = [
    pytest.param((name, way), marks=() if name in QUICK else pytest.mark.slow, id=f"{name} {way}")
    for name, (_, method) in FAMILIES.items()
    for way in ((method, "bootstrap") if name in BOOTSTRAPPED else (method,))
]
TREES = ("mixture", "hinge", "density", "RBF regression", "exemplars", "stack")
of_every_form = pytest.mark.parametrize(
    "fitted", [one for one in EVERY if one.values[0][0] in TREES], indirect=True
)
"""ArviZ reads names, dimensions and groups: trees of other families have those of one of these."""


@pytest.fixture(scope="module", params=EVERY)
def fitted(request: pytest.FixtureRequest) -> Any:
    name, method = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of convergence, and of a rough Gaussian
        model = FAMILIES[name][0]()
        sizes = {"draws": 40} if method == "bootstrap" else {"draws": 60, "chains": 2}
        return model.refine(method, random_state=0, **sizes)


@pytest.fixture(autouse=True)
def advice_is_no_failure() -> Iterator[None]:
    """ArviZ warns of few draws, of a weight that is always one, and of plots for reals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
    plt.close("all")


def smallest(tree: xr.DataTree) -> dict[str, Any]:
    """The variable of fewest entries and a few of them: a plot has at most 40 panels."""
    posterior = tree["posterior"].to_dataset()
    name = min(posterior.data_vars, key=lambda name: posterior[name].size)
    dims = [dim for dim in posterior[name].dims if dim not in ("chain", "draw")]
    return {"var_names": [name], "coords": {d: posterior[d].to_numpy()[:2].tolist() for d in dims}}


def scores(tree: xr.DataTree) -> xr.DataTree:
    """The tree with every score of a row by itself where ArviZ reads log likelihoods."""
    terms = tree["log_likelihood"].to_dataset()
    others = tree["log_scores"].to_dataset() if "log_scores" in tree else xr.Dataset()
    if set(others) - {"y"} or "copies" in terms:  # of weighted rows the terms are no scores
        return tree.assign(log_likelihood=xr.DataTree(others))
    return tree.assign(log_likelihood=xr.DataTree(terms.merge(others)))


def scored(tree: xr.DataTree) -> list[str]:
    """Names of the scores; the first is that of the posterior itself."""
    return list(map(str, scores(tree)["log_likelihood"].data_vars))


STATISTICS: dict[str, Callable[[xr.DataTree], object]] = {
    **{name: getattr(az, name) for name in ("ess", "extract")},
    "compare": lambda tree: [
        az.compare({"one": scores(tree), "same": scores(tree)}, var_name=name)
        for name in scored(tree)
    ],
}
PLOTS = ("plot_trace_dist", "plot_forest")


def assert_drawn() -> None:
    """There is a figure with something in it."""
    assert any(axes.has_data() for axes in plt.gcf().axes)


@of_every_form
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(fitted, name):
    assert STATISTICS[name](fitted.posterior_) is not None


@of_every_form
@pytest.mark.parametrize("name", PLOTS)
def test_plots(fitted, name):
    getattr(az, name)(fitted.posterior_, **smallest(fitted.posterior_))
    assert_drawn()


def test_sensitivity_to_the_prior_needs_no_argument(fitted):
    tree = fitted.posterior_
    if fitted.fitted_.log_posterior.no_prior or fitted.draws_.method == "bootstrap":
        assert "log_prior" not in tree
        return
    found = psense_summary(tree)
    assert np.isfinite(found[["prior", "likelihood"]].to_numpy()).any()
    numbers = {name: tree[name].to_dataset().sizes["draw"] for name in ("log_prior", "posterior")}
    assert len(set(numbers.values())) == 1


def test_plot_of_tail_shapes(fitted):
    for name in scored(fitted.posterior_):
        az.plot_khat(az.loo(scores(fitted.posterior_), var_name=name, pointwise=True))
        assert_drawn()


def test_a_summary_has_a_line_for_every_number_of_a_draw(fitted):
    posterior = fitted.posterior_["posterior"].to_dataset()
    draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    lines = sum(variable.size // draws for variable in posterior.data_vars.values())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of a number that no draw moves
        assert len(az.summary(fitted.posterior_)) == lines


def test_the_file_gives_back_the_tree(fitted, tmp_path: Path):
    fitted.posterior_.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf") as read:
        xr.testing.assert_equal(read.load(), fitted.posterior_)


def test_diagnose_says_what_arviz_says(fitted):
    found = {one.row: one for one in fitted.fitted_.findings()}
    if fitted.draws_.method == "bootstrap":  # whose draws are none of the posterior
        assert "elpd_loo" not in found
        return
    own = scored(fitted.posterior_)[0]
    expected = az.loo(scores(fitted.posterior_), var_name=own, pointwise=True)
    assert found["elpd_loo"].value == pytest.approx(expected.elpd, rel=1e-9)
    assert found["p_loo"].value == pytest.approx(expected.p, rel=1e-6)
    n_bad = int((~(expected.pareto_k <= expected.good_k)).sum())  # NaN is no good tail
    assert found["loo_bad_rows"].value == n_bad
    assert not (found["loo_bad_rows"].good and n_bad)
    if "pareto_k" in found and not found["pareto_k"].good:
        assert not found["loo_bad_rows"].good
    twice = dict.fromkeys(("one", "same"), scores(fitted.posterior_))
    compared = az.compare(twice, var_name=own, round_to="none")
    assert compared["elpd"].iloc[0] == pytest.approx(found["elpd_loo"].value, rel=1e-9)


@of_every_form
@pytest.mark.parametrize("name", ["plot_ppc_dist", "plot_ppc_pava"])
@pytest.mark.parametrize("training", [True, False])
def test_predictive_plots_find_their_groups(fitted, name, training):
    if not hasattr(fitted, "classes_"):
        pytest.skip("no classes to draw")
    check = fitted.posterior_ if training else fitted.predict_posterior(X, Y)
    assert set(check["posterior_predictive"].data_vars) == set(check["observed_data"].data_vars)
    options = {"data_type": "categorical"} if name == "plot_ppc_pava" else {}
    getattr(az, name)(check, **options)
    assert_drawn()


def test_training_rows_are_drawn_beside_their_own_labels(fitted):
    if isinstance(fitted, MixtureDensity):
        pytest.skip("nothing but cells to draw")
    tree = fitted.posterior_
    drawn, truth = tree["posterior_predictive"]["y"], tree["observed_data"]["y"]
    rows = truth["obs"].to_numpy()
    assert drawn["obs"].to_numpy().tolist() == rows.tolist()
    if not hasattr(fitted, "classes_"):
        np.testing.assert_allclose(truth, NUMBERS)
        off = (drawn.mean(("chain", "draw")) - fitted.predict(X)) / drawn.std(("chain", "draw"))
        assert np.abs(off).max() < 4.9 / np.sqrt(drawn.sizes["chain"] * drawn.sizes["draw"])
        return
    assert (fitted.classes_[truth.to_numpy()] == Y[rows]).all()
    said = fitted.predict_posterior(X)["predictions"]["probability"].to_numpy()[:, :, rows]
    agreed = float((drawn == truth).mean())  # by chance, a sum of independent draws
    expected = np.take_along_axis(said, truth.to_numpy()[None, None, :, None], -1).mean()
    assert abs(agreed - expected) < 4.9 * 0.5 / np.sqrt(drawn.size)


def test_of_many_rows_and_draws_some_are_drawn(monkeypatch):
    model = KernelNetworkClassifier(random_state=0, class_prior=[0.8, 0.1, 0.1]).fit(X, HIDDEN)
    monkeypatch.setattr(replicates, "MAX_DRAWN", 3 * replicates.MIN_TABLES * 20)
    drawn = model.refine(draws=100, chains=2).posterior_["posterior_predictive"]["y"]
    assert dict(drawn.sizes) == {"chain": 2, "draw": 25, "obs": 20}
    assert drawn["draw"].to_numpy().tolist() == list(range(0, 100, 4))
    # the shares are those of training and not of use
    assert abs((drawn == 0).mean() - 1 / 3) < 0.15


def test_the_tree_is_there_once_there_is_a_fit_and_a_look_makes_none():
    model = SDGMClassifier(1, n_init=1, random_state=0)
    assert not hasattr(model, "posterior_")
    for change in (lambda: model.fit(X, Y), lambda: model.refine(draws=30)):
        change()
        assert "status_" in dir(model)
        model._repr_html_()
        assert "tree" not in vars(model.fitted_)
        assert model.posterior_ is vars(model.fitted_)["tree"]


@pytest.mark.slow
def test_what_is_scored_has_its_name():
    joint = generative(random_state=0).fit(X, Y).refine(draws=40)
    blend = HybridMixtureClassifier(calibrate=False, random_state=0).fit(X, Y).refine(draws=40)
    one = KernelNetworkClassifier(random_state=0).fit(X, Y).refine(draws=40)
    other = SDGMClassifier(1, n_init=1, calibrate=False, random_state=0).fit(X, Y).refine(draws=40)
    hinge = generative(objective="hinge", random_state=0).fit(X, Y)
    density = MixtureDensity(random_state=0).fit(X)
    conditional = generative(objective="conditional", random_state=0).fit(X, Y)
    of_names = {
        ("x_y", "y"): joint,
        ("objective", "y"): blend,
        ("x",): density,
        ("y",): conditional,
        ("objective",): hinge,
    }
    for expected, model in of_names.items():
        assert tuple(scored(model.posterior_)) == expected
    trees = {"kernel network": one.posterior_, "sparse mixture": other.posterior_}
    whole = {"joint": scores(joint.posterior_), "blend": scores(blend.posterior_)}
    assert len(az.compare({**trees, **whole}, var_name="y")) == 4
    for name, tree in whole.items():
        with pytest.raises(TypeError) as refused:
            az.compare({**trees, name: tree})
        assert "Found several log likelihood arrays" in str(refused.value.__cause__)
        with pytest.raises(TypeError, match="trying to compute ELPD from model"):
            az.compare({**trees, name: tree}, var_name=scored(tree)[0])
    with pytest.raises(TypeError, match="trying to compute ELPD from model"):
        az.compare({**trees, "hinge": hinge.posterior_}, var_name="y")


@pytest.mark.parametrize("objective", ["likelihood", "conditional", "blend", "network"])
def test_y_is_what_a_label_adds(objective):
    """So weights of 1 / p(y | x) leave out the label of a row and keep its cells."""
    if objective == "network":
        model: Any = RBFNetworkClassifier(1, n_init=1, calibrate=False, random_state=0)
    else:
        model = generative(objective=objective, random_state=0)
    model.fit(HOLES, HIDDEN)
    fit, theta = model.fitted_, model.fitted_.point
    without = fit.model.log_posterior(fit.rows.unlabelled())
    expected = fit.log_posterior.pointwise(theta) - without.pointwise(theta)
    found = fit.log_posterior.label_log_likelihoods(theta[None])
    np.testing.assert_allclose(found[0], expected, atol=1e-10)
    told = scores(model.posterior_)["log_likelihood"]["y"]
    np.testing.assert_allclose(told[0, 0], np.delete(expected, 5), atol=1e-10)
    if objective != "network":
        p = model.predict_proba(HOLES)[np.arange(N), CODES]
        np.testing.assert_allclose(np.exp(told[0, 0]), np.delete(p, 5), atol=1e-10)


@pytest.mark.slow
def test_a_label_of_which_every_draw_is_sure_is_scored():
    many = np.random.default_rng(0).normal(size=(N, 40)) + 6 * CODES[:, None]
    joint = generative(covariance_type="diag", random_state=0).fit(many, Y).refine(draws=100)
    other = KernelNetworkClassifier(random_state=0).fit(many, Y).refine(draws=100)
    told = joint.posterior_["log_scores"]["y"]
    assert told.sizes["obs"] == N
    assert float(np.abs(told).min("obs").max()) < 1e-290
    assert np.isfinite(az.loo(scores(joint.posterior_), var_name="y").elpd)
    trees = {"joint": scores(joint.posterior_), "kernel network": other.posterior_}
    assert len(az.compare(trees, var_name="y")) == 2


def test_a_hidden_label_is_not_scored():
    labelled = [row for row in range(N) if row != 5]
    for model in (KernelNetworkClassifier(random_state=0), generative(random_state=0)):
        told = scores(model.fit(X, HIDDEN).refine(draws=40).posterior_)["log_likelihood"]
        assert told["obs"].to_numpy().tolist() == labelled
    assert told["x_y"]["row"].to_numpy().tolist() == list(range(N))


@pytest.mark.slow
def test_rows_with_copies_have_a_likelihood_each_and_are_left_out_together(tmp_path: Path):
    """Whatever a model made of copies: the same rows in the same order."""
    order = np.random.default_rng(2).permutation(np.r_[np.arange(N), np.arange(12), 3, 3])
    cells, labels = X[order].round(1), Y[order]
    models = {
        "kernel network": KernelNetworkClassifier(random_state=0),
        "exemplars": MedianLVQClassifier(2, sigma="sample", random_state=0),
        "gower": MedianLVQClassifier(2, metric="gower", sigma="sample", random_state=0),
        "stack": StackedClassifier(["laplace", "normal"], cv=3, random_state=0),
    }
    trees = {}
    for name, model in models.items():
        method = "gibbs" if name in ("exemplars", "gower") else "laplace"
        model.fit(cells, labels).refine(method, draws=60, chains=2, random_state=0)
        model.save(tmp_path / name)
        model = load(tmp_path / name)
        trees[name] = model.posterior_
        scored = trees[name]["log_likelihood"]["y"]
        assert scored["obs"].to_numpy().tolist() == list(range(labels.size))
        found = {one.row: one.value for one in model.fitted_.findings()}
        once = trees[name].copy()
        copies = xr.DataArray(copies_of(encode(cells, learn_columns(cells))), dims="obs")
        once["log_likelihood"] = xr.DataTree(
            xr.Dataset({"y": scored.groupby(copies.rename("copy")).sum().rename(copy="obs")})
        )
        assert found["elpd_loo"] == pytest.approx(az.loo(once).elpd, rel=1e-9)
        if name in ("exemplars", "gower"):
            twins = np.flatnonzero(order == 3)
            assert (scored.isel(obs=twins) == scored.isel(obs=twins[0])).all()
    assert len(az.compare(trees, var_name="y")) == len(models)
    rows, places = models["stack"].fitted_.table.copies
    held = models["stack"].model_.held
    np.testing.assert_array_equal(models["stack"].classes_[held.labels[places]], labels[rows])
    np.testing.assert_array_equal(np.bincount(places), held.weights)

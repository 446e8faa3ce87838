from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr

from bayesrbf.base.names import COMPONENT
from bayesrbf.base.priors import Trace
from bayesrbf.fit.model import Description
from bayesrbf.fit.trees import from_datatree, predictions, to_datatree
from bayesrbf.inference.draws import Draws, point
from bayesrbf.inference.laplace import laplace
from tests.inference.targets import Mixture


@pytest.fixture(scope="module")
def target() -> Mixture:
    return Mixture()


@pytest.fixture(scope="module")
def draws(target: Mixture) -> Draws:
    return laplace(target, target.start(), draws=7, chains=3, random_state=0)


@pytest.fixture(scope="module")
def tree(target: Mixture, draws: Draws) -> xr.DataTree:
    return to_datatree(
        target,
        draws,
        Description(
            coords={
                COMPONENT: [f"k{k}" for k in range(5)],
                "obs": np.arange(60) + 100,
                "elsewhere": [1, 2, 3],
            },
            observed={"x": (("obs", "column"), target.rows[:, None])},
            constant={
                "row_weight": (("obs",), np.ones(60)),
                "component_class": ((COMPONENT,), np.array([*["no"] * 3, "yes", "yes"], object)),
            },
        ),
        trace=Trace(np.array([-3.0, -2.0, -1.5])),
    )


def test_groups_are_those_of_arviz_and_the_way_of_the_optimiser(tree):
    assert set(tree.children) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "log_prior",
        "observed_data",
        "constant_data",
        "optimiser_path",
    }
    assert tree["optimiser_path"]["log_posterior"].to_numpy().tolist() == [-3.0, -2.0, -1.5]


def test_variables_have_the_values_and_dims_of_the_graph(tree, target, draws):
    posterior = tree["posterior"].to_dataset()
    assert posterior["means"].dims == ("chain", "draw", COMPONENT)
    assert posterior["weights_1"].dims == ("chain", "draw", "mixture_component_1")
    np.testing.assert_array_equal(posterior["means"], draws.theta[..., 3:])
    np.testing.assert_allclose(posterior["weights_0"].sum("mixture_component_0"), 1)
    np.testing.assert_array_equal(
        posterior["weights"], target.deterministic(draws.theta)["weights"]
    )


def test_coordinates_come_along_their_dims_and_no_others(tree):
    posterior = tree["posterior"].to_dataset()
    assert set(posterior.coords) <= set(posterior.dims)
    known = tree["constant_data"].to_dataset()
    assert posterior.sel(mixture_component=known["component_class"] == "yes")["means"].shape == (
        3,
        7,
        2,
    )
    assert "elsewhere" not in posterior.coords
    assert "obs" not in posterior.coords
    assert tree["log_likelihood"]["obs"].to_numpy()[0] == 100


def test_log_likelihood_is_unweighted_and_by_row(tree, target, draws):
    values = tree["log_likelihood"]["x"]
    assert values.dims == ("chain", "draw", "obs")
    np.testing.assert_allclose(values[2, 3], target.pointwise(draws.theta[2, 3]), rtol=1e-10)


def test_attributes_are_text_and_numbers(tree):
    for node in tree.subtree:
        assert all(type(value) in (str, int, float) for value in node.attrs.values())
    assert tree.attrs["inference"] == "laplace"
    assert tree.attrs["point_estimate"] == 0
    assert "pareto_k" in tree["posterior"].attrs


def test_a_point_is_one_draw_that_says_so(target):
    tree = to_datatree(target, point(target, target.start()))
    assert dict(tree["posterior"].sizes)["chain"] == dict(tree["posterior"].sizes)["draw"] == 1
    assert tree.attrs["inference"] == "map"
    assert tree.attrs["point_estimate"] == 1
    value = target.value_and_gradient(target.start())[0]
    assert tree["sample_stats"]["lp"].item() == value


@pytest.mark.parametrize("compressed", [False, True])
def test_netcdf_gives_back_what_it_got(tree, tmp_path, compressed):
    path = tmp_path / "posterior.nc"
    encoding = {"/posterior": {"means": {"zlib": True}}} if compressed else None
    tree.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    with xr.open_datatree(path, engine="h5netcdf") as read:
        xr.testing.assert_identical(read.load(), tree)


def test_a_log_likelihood_too_large_is_thinned_and_said_so(target, draws, tree):
    row_bytes = target.pointwise(draws.theta[0, 0]).nbytes
    with pytest.warns(UserWarning, match="one draw in 3 is evaluated"):
        thinned = to_datatree(target, draws, memory=3 * 3 * row_bytes)
    group = thinned["log_likelihood"]
    assert group["draw"].to_numpy().tolist() == [0, 3, 6]
    everything = tree["log_likelihood"]["x"].to_numpy()
    np.testing.assert_array_equal(group["x"].to_numpy(), everything[:, ::3])


def test_draws_come_back_from_their_tree(target, draws, tree):
    found = from_datatree(tree, target, {COMPONENT: tree["posterior"][COMPONENT].to_numpy()})
    np.testing.assert_allclose(found.theta, draws.theta, atol=1e-9)
    np.testing.assert_allclose(found.stats["lp"], draws.stats["lp"], rtol=1e-9)


def test_a_tree_of_another_model_is_told_what_is_wrong(target, tree):
    posterior = tree["posterior"].to_dataset()
    cases = {
        "needs a group 'posterior'": {"prior": posterior},
        "'weights_0' over the dims": {"posterior": posterior.rename(mixture_component_0="column")},
        "'mixture_component' of 'means' to be": {
            "posterior": posterior.assign_coords(mixture_component=list("abcde"))
        },
        "inside the support": {
            "posterior": posterior.assign(weights_0=posterior["weights_0"] * np.inf)
        },
    }
    names = {COMPONENT: tree["posterior"][COMPONENT].to_numpy()}
    for message, groups in cases.items():
        with pytest.raises(ValueError, match=message), np.errstate(invalid="ignore"):
            from_datatree(xr.DataTree.from_dict(groups), target, names)


def test_names_of_the_wrong_number_are_an_error(target, draws):
    with pytest.raises(ValueError, match=r"_component' must have shape \(5,\).*received \(4,\)"):
        to_datatree(target, draws, Description({COMPONENT: list("abcd")}))


def test_names_of_mixed_kinds_become_text(target, draws):
    tree = to_datatree(target, draws, Description({COMPONENT: [1, "b", None, 2.5, "e"]}))
    assert tree["posterior"][COMPONENT].to_numpy().tolist() == ["1", "b", "None", "2.5", "e"]


def test_predictions_have_their_rows_beside_them():
    probabilities = np.random.default_rng(0).dirichlet(np.ones(2), size=(2, 5, 4))
    tree = predictions(
        probabilities,
        labels=["no", "yes"],
        rows=list("abcd"),
        constant={"x": (("obs", "column"), np.zeros((4, 3)))},
        thinning=10,
    )
    assert tree["predictions"]["probability"].dims == ("chain", "draw", "obs", "label")
    assert tree["predictions"]["draw"].to_numpy().tolist() == [0, 10, 20, 30, 40]
    assert tree["predictions_constant_data"]["obs"].to_numpy().tolist() == list("abcd")
    chosen = tree["predictions"]["probability"].sel(label="yes", obs="c")
    np.testing.assert_array_equal(chosen, probabilities[:, :, 2, 1])


def test_no_plotting_library_is_loaded():
    assert "arviz" not in vars(sys.modules["bayesrbf.fit.trees"])

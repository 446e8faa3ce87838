"""What columns tell of each other and of the class, as a user meets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesrbf import KernelNetworkClassifier, MedianLVQClassifier, MixtureDensity, StackedClassifier
from tests.cases import generative
from tests.families.hybrid.density_tables import mixed_frame
from tests.fit.class_tables import iris, table


def test_two_normal_columns_tell_what_their_correlation_says() -> None:
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]], size=4000)
    density = MixtureDensity().fit(X * [1.0, 1e3, 1e-3])
    told = density.dependence()
    assert told["column"].to_numpy().tolist() == ["x0", "x1", "x2"]
    assert float(told["coefficient"].sel(column="x0", column_bis="x1")) == pytest.approx(
        0.8, abs=0.02
    )
    assert float(told["coefficient"].sel(column="x0", column_bis="x2")) < 0.1
    assert np.isnan(told["lower"]).all()
    assert np.isnan(np.diagonal(told["information"])).all()


def test_columns_stand_as_the_graph_has_them() -> None:
    frame = mixed_frame()
    told = MixtureDensity(2, missingness="informative", random_state=0).fit(frame).dependence()
    masks = [f"{name} is missing" for name in frame]
    assert told["column"].to_numpy().tolist() == ["height", "weight", "colour", "member", *masks]
    known = told["information"].sel(column="height", column_bis=["weight", "colour", "member"])
    assert (known > 0.1).all()


def test_intervals_hold_the_fit_and_the_class_is_a_column() -> None:
    frame, y = table()
    model = generative(n_init=1, random_state=0, inference="laplace").fit(frame, y)
    told = model.dependence(draws=20)
    assert told["column"].to_numpy().tolist() == ["label", "wind", "pressure", "sky"]
    off = ~np.eye(4, dtype=bool)
    lower, fitted, upper = (told[n].to_numpy()[off] for n in ("lower", "information", "upper"))
    assert (lower <= fitted).all()
    assert (fitted <= upper).all()
    assert (lower < upper).all()
    narrow = model.dependence(prob=0.5, draws=20)
    assert (narrow["lower"].to_numpy()[off] >= lower).all()
    assert told.identical(model.dependence(draws=20))


def test_a_class_that_is_nearly_certain_leaves_little_to_tell() -> None:
    frame, y = table()
    even = generative(n_init=1, class_prior=[1 / 3] * 3, random_state=0).fit(frame, y).dependence()
    rare = {"calm": 0.98, "gale": 0.01, "storm": 0.01}
    sure = generative(n_init=1, class_prior=rare, random_state=0).fit(frame, y).dependence()
    entropy = -sum(p * np.log(p) for p in rare.values())
    told = sure["information"].sel(column="label").drop_sel(column_bis="label")
    assert (told < entropy).all()
    assert (told < even["information"].sel(column="label").drop_sel(column_bis="label")).all()


@pytest.mark.parametrize(
    "maker",
    [
        lambda: KernelNetworkClassifier(n_basis=5, random_state=0),
        lambda: StackedClassifier(["normal"], cv=2, random_state=0),
    ],
)
def test_who_has_a_density_beside_it_asks_that(maker: Any) -> None:
    frame, y = table()
    model = maker().fit(frame, y)
    told = model.dependence()
    assert told["column"].to_numpy().tolist() == ["label", "wind", "pressure", "sky"]
    assert (told["information"].sel(column="label").drop_sel(column_bis="label") > 0.1).all()
    drawn = model.refine("laplace", draws=4).dependence()
    assert drawn.identical(told)
    assert np.isnan(drawn["lower"]).all()


def test_who_has_no_density_has_no_dependence() -> None:
    assert not hasattr(MedianLVQClassifier(random_state=0).fit(*iris()), "dependence")


@pytest.mark.parametrize(("argument", "value"), [("prob", 1.0), ("draws", 0)])
def test_arguments_that_cannot_be_used_are_named(argument: str, value: float) -> None:
    density = MixtureDensity().fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match=rf"dependence\({argument}=...\) must be"):
        density.dependence(**{argument: value})

"""The picture of a sparse discriminative mixture."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf import SDGMClassifier
from bayesrbf.plots.sdgm import plot_sdgm


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_rows_boundaries_and_components_are_drawn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (np.abs(X[:, 0]) > 0.8).astype(int)  # two sides: two components, or one wide one
    model = SDGMClassifier(2, n_init=2, random_state=0).fit(X, y)
    shares = model.component_probabilities(X)
    assert shares.shape == (150, model.n_components_)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    by_class = np.stack(
        [shares[:, model.component_classes() == c].sum(axis=1) for c in model.classes_], axis=1
    )
    plug_in = model.set_params(prediction="plug-in").predict_proba(X)
    np.testing.assert_allclose(by_class, plug_in, rtol=1e-9)
    X[3, 0] = np.nan
    _, given = plt.subplots()
    axes = plot_sdgm(model, X, y, ax=given)
    assert axes is given
    drawn = sum(len(c.get_offsets()) for c in axes.collections if hasattr(c, "get_sizes"))
    assert drawn >= 149
    assert axes.get_title() == f"{model.n_weights_} weights, {model.n_components_} components"


def test_more_columns_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = SDGMClassifier(1, n_init=1).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="fitted to 3"):
        plot_sdgm(model, X, X[:, 0] > 0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_is_drawn_under_its_names(library: str) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    y = points[:, 0] > 0
    X = pytest.importorskip(library).DataFrame({"left": points[:, 0], "up": points[:, 1]})
    axes = plot_sdgm(SDGMClassifier(1, n_init=1, random_state=0).fit(X, y), X, y)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("left", "up")
    plain = plot_sdgm(SDGMClassifier(1, n_init=1, random_state=0).fit(points, y), points, y)
    for mine, theirs in zip(axes.collections, plain.collections, strict=True):
        for one, other in zip(mine.get_paths(), theirs.get_paths(), strict=True):
            np.testing.assert_allclose(one.vertices, other.vertices)

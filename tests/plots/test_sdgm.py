"""The picture of a sparse discriminative mixture."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.contour import QuadContourSet
from scipy.special import softmax

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf import SDGMClassifier
from bayesrbf.plots import plot_sdgm


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_rows_boundaries_and_components_are_drawn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (np.abs(X[:, 0]) > 0.8).astype(int)  # two sides: two components, or one wide one
    model = SDGMClassifier(2, n_init=2, calibrate=False, random_state=0).fit(X, y)
    shares = model.component_probabilities(X)
    assert shares.shape == (150, model.n_components_)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    by_class = np.stack(
        [shares[:, model.component_classes_ == c].sum(axis=1) for c in model.classes_], axis=1
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


class Halves:
    """Two classes, above and below; that above has a component on either side."""

    n_features_in_, columns_ = 2, SimpleNamespace(names=("across", "up"))
    n_weights_, n_components_ = 5, 3
    classes_ = np.array(["below", "above"])

    @property
    def component_classes_(self) -> np.ndarray:
        return self.classes_[[0, 1, 1]]

    def component_probabilities(self, X: np.ndarray) -> np.ndarray:
        logits = np.column_stack([-X[:, 1], X[:, 1] - X[:, 0], X[:, 1] + X[:, 0]])
        return softmax(3 * logits, axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        shares = self.component_probabilities(X)
        return np.column_stack([shares[:, 0], shares[:, 1:].sum(axis=1)])


def test_a_border_between_components_is_drawn_once_and_in_its_class_alone() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    axes = plot_sdgm(Halves(), X, np.where(X[:, 1] > 0, "above", "below"))
    contours = [one for one in axes.collections if isinstance(one, QuadContourSet)]
    between = contours[2:]  # those of the two classes come first
    assert len(between) == 1
    vertices = np.concatenate([path.vertices for path in between[0].get_paths()])
    np.testing.assert_allclose(vertices[:, 0], 0.0, atol=1e-3)
    boundary = np.concatenate([path.vertices for path in contours[0].get_paths()])
    middle = boundary[np.abs(boundary[:, 0]).argmin(), 1]
    assert vertices[:, 1].min() > middle - 0.05
    assert vertices[:, 1].max() > 0.9


def test_more_columns_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = SDGMClassifier(1, n_init=1, calibrate=False).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="fitted to 3"):
        plot_sdgm(model, X, X[:, 0] > 0)


@pytest.mark.slow
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

"""The picture of reasons shows what the table of reasons says."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf import MedianLVQClassifier
from bayesrbf.plots import plot_exemplars


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_images_stand_beside_the_image_to_be_explained() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 3][:80], y[y < 3][:80]
    model = MedianLVQClassifier(1, metric="sqeuclidean", sigma=20.0).fit(X[:60], y[:60])
    reasons = model.responsible_exemplars(X[60:])
    axes = plot_exemplars(reasons, X[60:], X[:60], row=4, image_shape=(8, 8))
    mine = reasons[reasons["row"] == 4]
    assert len(axes) == 1 + len(mine)
    np.testing.assert_array_equal(axes[0].images[0].get_array().ravel(), X[64])
    for ax, exemplar, label in zip(axes[1:], mine["exemplar"], mine["label"], strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array().ravel(), X[exemplar])
        assert ax.get_title().startswith(f"{label}: ")
        assert f"training row {exemplar}" in ax.get_xlabel()


def test_cells_are_written_and_what_differs_is_bold() -> None:
    train = pd.DataFrame({"size": [1.0, 2.0, np.nan], "colour": ["red", "blue", "red"]})
    train[[f"more {i}" for i in range(15)]] = 0.5
    reasons = pd.DataFrame(
        {
            "row": [0, 0],
            "exemplar": [2, 1],
            "label": ["yes", "no"],
            "dissimilarity": [0.0, 1.0],
            "responsibility": [0.75, 0.25],
        }
    )
    _, given = plt.subplots(1, 3)
    axes = plot_exemplars(reasons, train.iloc[[2]], train, axes=given)
    assert list(axes) == list(given)
    words = [{text.get_text(): text.get_fontweight() for text in ax.texts} for ax in axes]
    assert words[1] == words[0]
    assert set(words[0].values()) == {"normal"}
    assert words[2]["size 2"] == words[2]["colour blue"] == "bold"
    assert words[2]["more 3 0.5"] == "normal"
    assert "and 5 more" in words[2]
    with pytest.raises(ValueError, match="must be a row of the explanation; received 7"):
        plot_exemplars(reasons, train, train, row=7)

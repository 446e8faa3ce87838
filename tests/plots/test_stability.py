"""The pictures of stability show the record."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

mpl.use("agg")

import matplotlib.pyplot as plt

import bayesrbf
from bayesrbf.plots import plot_stability


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_four_pictures_show_the_refits_and_the_fit_to_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    event = bayesrbf.stability(LogisticRegression(), X, y, refits=4, threshold=0.4).events[0]
    _, given = plt.subplots(1, 4)
    drawn = plot_stability(event, axes=given)
    assert drawn.tolist() == given.tolist()
    cloud, lower, upper = drawn[0].lines[:3]
    pairs = np.column_stack([cloud.get_xdata(), cloud.get_ydata()]).reshape(4, 60, 2)
    np.testing.assert_array_equal(pairs[2], np.column_stack([event.probability, event.refits[2]]))
    np.testing.assert_array_equal([lower.get_ydata(), upper.get_ydata()], event.interval)
    assert drawn[2].lines[1].get_xdata() == [0.4, 0.4]
    np.testing.assert_array_equal(drawn[2].lines[0].get_ydata(), event.changes)
    curves = [None if one is None else one.observed for one in event.curves]
    np.testing.assert_array_equal([line.get_ydata() for line in drawn[1].lines[1:]], curves)
    benefits = [line.get_ydata() for line in drawn[3].lines]
    np.testing.assert_array_equal(benefits, event.net_benefits)
    assert drawn[1].lines[1].get_color() == drawn[3].lines[0].get_color() == "black"
    assert drawn[3].get_ylim()[1] > np.max(benefits)


def test_a_recipe_without_curves_is_drawn_and_too_few_axes_are_refused() -> None:
    from sklearn.dummy import DummyClassifier

    y = np.arange(30) % 2
    event = bayesrbf.stability(DummyClassifier(), np.zeros((30, 1)), y, refits=2).events[0]
    drawn = plot_stability(event)
    assert len(drawn[1].lines) == 1
    with pytest.raises(ValueError, match="axes must be 4"):
        plot_stability(event, axes=drawn[:2])

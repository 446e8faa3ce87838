"""Pictures show the given numbers on the given axes."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf.plots import plot_missing, plot_reliability


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def simulated(n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), 300)
    return p, (p.cumsum(1)[:, :-1] < rng.random((300, 1))).sum(1)


def test_reliability_draws_every_class_where_it_is_told() -> None:
    p, labels = simulated()
    _, axes = plt.subplots(1, 3)
    drawn = plot_reliability(p, np.array(["a", "b", "c"])[labels], axes=axes)
    assert list(drawn) == list(axes)
    for ax, name in zip(drawn, "abc", strict=True):
        line = ax.get_lines()[1]
        assert np.all((line.get_ydata() >= 0) & (line.get_ydata() <= 1))
        assert ax.get_xlabel().endswith(name)
        assert np.corrcoef(line.get_xdata(), line.get_ydata())[0, 1] > 0.9


def test_any_sequence_of_axes_and_sizes_is_taken_and_too_few_axes_are_refused() -> None:
    p, labels = simulated()
    _, axes = plt.subplots(1, 3)
    assert list(plot_reliability(p, labels, axes=list(axes))) == list(axes)
    size = plot_missing([[1.0, np.nan]], figsize=[3.0, 4.0]).figure.get_size_inches()
    assert size.tolist() == [3, 4]
    with pytest.raises(ValueError, match="axes must be 3, one for each class; received 2"):
        plot_reliability(p, labels, axes=list(axes[:2]))


def test_reliability_leaves_rows_without_label_out() -> None:
    p, labels = simulated()
    hidden = np.where(np.arange(300) < 100, np.nan, labels)
    with_hidden = plot_reliability(p, hidden)[0].get_lines()[1].get_ydata()
    without = plot_reliability(p[100:], labels[100:])[0].get_lines()[1].get_ydata()
    assert np.array_equal(with_hidden, without)


def test_reliability_names_wrong_shapes() -> None:
    p, labels = simulated()
    with pytest.raises(ValueError, match="one column for each of the 3 classes"):
        plot_reliability(p[:, :2], labels)


def test_missing_marks_exactly_the_holes() -> None:
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", None, "y"]})
    ax = plot_missing(table, figsize=(2.0, 2.0))
    assert ax.images[0].get_array().tolist() == table.isna().to_numpy().tolist()
    assert ax.figure.get_size_inches().tolist() == [2, 2]

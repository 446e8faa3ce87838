"""The picture of a rehearsal shows its figures, a line a teacher and one of all."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf.answers.rehearse import LEVELS, to_dataset
from bayesrbf.plots import plot_rehearsal

TEACHERS = ("trees", "boosting", "process")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def half_lengths(container: object) -> np.ndarray:
    """Half lengths of the bars of a line."""
    bars = container.lines[2][0].get_segments()  # type: ignore[attr-defined]
    return np.array([(high - low)[1] / 2 for low, high in bars])


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_lines_are_coverages_and_bars_their_errors(n_repeats: int) -> None:
    rng = np.random.default_rng(0)
    figures = rng.random((2, 3, n_repeats, 3))
    found = to_dataset(figures[0], figures[1], TEACHERS, "laplace")
    _, given = plt.subplots()
    ax = plot_rehearsal(found, ax=given)
    assert ax is given
    drawn = {container.get_label(): container for container in ax.containers}
    assert list(drawn) == [*TEACHERS, "all"]
    for name in TEACHERS:
        one = found.sel(teacher=name)
        x, y = drawn[name].lines[0].get_data()
        np.testing.assert_array_equal(x, LEVELS)
        np.testing.assert_array_equal(y, one["coverage"])
        errors = np.zeros(3) if n_repeats == 1 else one["coverage_error"].to_numpy()
        np.testing.assert_allclose(half_lengths(drawn[name]), errors, atol=1e-12)
    np.testing.assert_array_equal(drawn["all"].lines[0].get_ydata(), found["overall_coverage"])
    np.testing.assert_allclose(half_lengths(drawn["all"]), found["overall_error"], atol=1e-12)
    diagonal = ax.lines[0]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [*TEACHERS, "all"]
    assert len({tuple(mpl.colors.to_rgb(c.lines[0].get_color())) for c in drawn.values()}) == 4


def test_a_figure_of_its_own_has_the_size_asked_for() -> None:
    figures = np.full((1, 1, 3), 0.5)
    ax = plot_rehearsal(to_dataset(figures, figures, ("trees",), "laplace"), figsize=(3.0, 2.0))
    assert ax.figure.get_size_inches().tolist() == [3, 2]

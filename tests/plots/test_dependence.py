"""The matrix of dependence shows the fitted coefficients, and below what the draws are sure of."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

mpl.use("agg")

import matplotlib.pyplot as plt

from bayesrbf.plots import plot_dependence


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def found(lower: float) -> xr.Dataset:
    information = np.where(np.eye(3, dtype=bool), np.nan, 0.5)
    both, names = ("column", "column_bis"), ["label", "a", "b"]
    values = {
        "information": information,
        "coefficient": np.sqrt(1 - np.exp(-2 * information)),
        "lower": np.where(np.eye(3, dtype=bool), np.nan, lower),
    }
    coords = {"column": names, "column_bis": names}
    return xr.Dataset({name: (both, value) for name, value in values.items()}, coords=coords)


def test_the_lower_half_is_what_the_draws_are_sure_of() -> None:
    _, given = plt.subplots()
    ax = plot_dependence(found(0.1), ax=given)
    assert ax is given
    shown = np.asarray(ax.images[0].get_array())
    assert shown[0, 2] == pytest.approx(np.sqrt(1 - np.exp(-1.0)))
    assert shown[2, 0] == pytest.approx(np.sqrt(1 - np.exp(-0.2)))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["label", "a", "b"]


def test_without_draws_both_halves_are_the_fit() -> None:
    shown = np.asarray(plot_dependence(found(np.nan)).images[0].get_array())
    assert shown[2, 0] == shown[0, 2]

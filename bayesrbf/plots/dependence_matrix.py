"""A picture of how much columns tell of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bayesrbf.plots.probabilities import Size

if TYPE_CHECKING:
    import xarray as xr


def plot_dependence(
    dependence: xr.Dataset,
    *,
    ax: Axes | None = None,
    figsize: Size | None = None,
) -> Axes:
    """A matrix of the coefficients of dependence, from 0 to 1.

    Above the diagonal is the fitted coefficient. Below it is the coefficient at the lower end of
    the interval; without draws, the fitted one again.

    Parameters
    ----------
    dependence : xarray.Dataset
        What ``dependence()`` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.
    """
    fitted = dependence["coefficient"].to_numpy()
    sure = np.sqrt(-np.expm1(-2 * dependence["lower"].to_numpy()))
    below = np.tri(len(fitted), k=-1, dtype=bool)
    shown = np.where(below & ~np.isnan(sure), sure, fitted)
    if ax is None:
        side = 2.2 + 0.32 * len(fitted)
        _, ax = plt.subplots(figsize=figsize or (side + 0.8, side), layout="constrained")
    image = ax.imshow(shown, cmap="cividis", vmin=0, vmax=1)
    names, places = dependence["column"].to_numpy().tolist(), range(len(fitted))
    ax.set_xticks(places, names, rotation=90)
    ax.set_yticks(places, names)
    ax.figure.colorbar(image, ax=ax, label="coefficient of dependence")
    return ax

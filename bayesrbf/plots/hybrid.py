"""Pictures of the dial between density and discrimination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

if TYPE_CHECKING:
    import xarray as xr

PANELS: Final = {
    "log_score": "log score (nats)",
    "error": "error (share of rows)",
    "margin": "margin (nats)",
    "log_density": "log density (nats)",
}
"""What is drawn of a path, and how its axis is called."""
COLOUR: Final = "#0072b2"
CALIBRATED: Final = "#d55e00"


def plot_hybrid_path(
    path: xr.Dataset,
    *,
    axes: np.ndarray | None = None,
    figsize: tuple[float, float] | None = None,
) -> np.ndarray:
    """Held-out figures along the dial of a hybrid mixture.

    Parameters
    ----------
    path : xarray.Dataset
        What :func:`bayesrbf.hybrid_path` returned.
    axes : ndarray of Axes, optional
        Four of them; new ones by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    ndarray of Axes
        Log score (raw, and dashed at the best temperature), error, margin and log
        density: means over the folds, with one standard error; the likelihood is left.

    Examples
    --------
    >>> import xarray as xr
    >>> figures = {name: (("kappa", "fold"), np.ones((2, 3))) for name in PANELS}
    >>> path = xr.Dataset(figures, coords={"kappa": [1.0, 0.1]}, attrs={"dial": "kappa"})
    >>> [ax.get_xlabel() for ax in plot_hybrid_path(path)]
    ['kappa', 'kappa', 'kappa', 'kappa']
    """
    dial = path.attrs["dial"]
    if axes is None:
        size = figsize or (12.0, 3.2)
        _, axes = plt.subplots(1, len(PANELS), figsize=size, layout="constrained")
    steps = path[dial].to_numpy()
    # Zero has no logarithm; the dial's other steps run over decades.
    places = np.arange(steps.size)
    for ax, (name, label) in zip(np.ravel(axes), PANELS.items(), strict=True):
        _draw(ax, places, path[name], COLOUR, "-")
        if name == "log_score" and "calibrated_log_score" in path:
            _draw(ax, places, path["calibrated_log_score"], CALIBRATED, "--")
        ax.set(xlabel=dial, ylabel=label)
        ax.set_xticks(places, [f"{step:g}" for step in steps], rotation=60)
    return axes


def _draw(ax: Axes, places: np.ndarray, values: xr.DataArray, colour: str, line: str) -> None:
    """Means over folds with one standard error."""
    figures = values.to_numpy()
    error = np.zeros(len(figures))
    if figures.shape[1] > 1:
        error = figures.std(axis=1, ddof=1) / np.sqrt(figures.shape[1])
    ax.errorbar(
        places, figures.mean(axis=1), error, color=colour, linestyle=line, marker="o", markersize=3
    )

"""A picture of a rehearsal: what intervals promise, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from bayesrbf.plots.colours import PALETTE

if TYPE_CHECKING:
    import xarray as xr


def plot_rehearsal(
    rehearsal: xr.Dataset, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None
) -> Axes:
    """Coverage of intervals by their level and by the teacher that made the truth.

    Parameters
    ----------
    rehearsal : xarray.Dataset
        What ``rehearse(X, y)`` of a classifier returned.
    ax : Axes, optional
        Where to draw; new by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    Axes
        On the dashed diagonal intervals hold what they promise, below it they are too narrow.
        Black is the mean of all fits; bars are one standard error, where there are repeats.
    """
    if ax is None:
        _, ax = plt.subplots(figsize=figsize or (4.6, 4.4), layout="constrained")
    levels = rehearsal["level"].to_numpy()
    ax.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1)
    for teacher, colour in zip(rehearsal["teacher"].to_numpy(), PALETTE, strict=False):
        one = rehearsal.sel(teacher=teacher)
        ax.errorbar(
            levels,
            one["coverage"].to_numpy(),
            one["coverage_error"].fillna(0.0).to_numpy(),
            color=colour,
            marker="o",
            markersize=4,
            linewidth=1,
            label=str(teacher),
        )
    ax.errorbar(
        levels,
        rehearsal["overall_coverage"].to_numpy(),
        rehearsal["overall_error"].fillna(0.0).to_numpy(),
        color="black",
        marker="s",
        markersize=5,
        linewidth=2,
        label="all",
    )
    ax.set(
        xlabel="probability inside the interval",
        ylabel="share of truths that it held",
        xlim=(0, 1),
        ylim=(0, 1.02),
        aspect="equal",
    )
    ax.legend(title="labels drawn from", frameon=False, loc="upper left")
    return ax

"""Pictures of probabilities, missing cells and rehearsals."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bayesrbf.posterior.calibration import calibration
from bayesrbf.table import encode_labels

if TYPE_CHECKING:
    import xarray as xr


PALETTE: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#5b4a9c",
    "#444b52",
    "#8c6d31",
    "#7a1f3d",
)
"""Colours that people with any colour vision can distinguish (after Okabe and Ito)."""


Size = Sequence[float]
"""Width and height in inches."""
GivenAxes = Sequence[Axes] | np.ndarray
"""Axes to draw in, one for each picture."""


def plot_reliability(
    probabilities: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_bins: int = 10,
    axes: GivenAxes | None = None,
    figsize: Size | None = None,
) -> np.ndarray:
    """Observed frequency against predicted probability, one picture per class in sorted order.

    Take held-out probabilities: on training rows the picture is too good. Every class must occur in
    ``y``; rows without a label are left out. ``n_bins`` is the largest number of groups of rows. A
    calibrated classifier lies within a bar nine times in ten.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0], size=200)
    >>> y = (rng.random(200) < p[:, 1]).astype(int)
    >>> len(plot_reliability(p, y))
    2
    """
    p = np.asarray(probabilities, dtype=np.float64)
    classes, labels = encode_labels(y)
    if p.ndim != 2 or p.shape[1] != classes.size:
        raise ValueError(
            f"probabilities must have one column for each of the {classes.size} classes of y; "
            f"received shape {p.shape}."
        )
    labelled = labels >= 0
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)[labelled]
    result = calibration(p[labelled], labels[labelled], weights, n_bins=n_bins)
    if axes is None:
        size = figsize or (3.2 * classes.size, 3.4)
        _, axes = plt.subplots(1, classes.size, figsize=size, squeeze=False, layout="constrained")
    drawn = flat(axes, classes.size, "class")
    for ax, name, curve, colour in zip(drawn, classes, result.curves, cycle(PALETTE), strict=False):
        ax.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1)
        ax.vlines(curve.predicted, curve.lower, curve.upper, color="0.8", linewidth=6)
        ax.plot(curve.predicted, curve.observed, "o-", color=colour, markersize=4)
        ax.set(xlabel=f"predicted probability of {name}", ylabel="observed share", aspect="equal")
    return drawn


def plot_doubt(
    uncertainty: xr.Dataset, *, ax: Axes | None = None, figsize: Size | None = None
) -> Axes:
    """Every row by the two parts of its entropy, coloured by the most probable class.

    Far right: the classes overlap. Far up: there are too few such rows. ``uncertainty`` is what
    ``uncertainty(X)`` of a classifier with a posterior returned; ValueError for a point estimate,
    which cannot separate the two.
    """
    if uncertainty.attrs["point_estimate"]:
        raise ValueError(
            "plot_doubt needs a posterior, and this dataset is of a point estimate; call "
            "refine('laplace') before uncertainty(X)."
        )
    ax = _new(ax, figsize)
    best = uncertainty["probability"].to_numpy().argmax(1)
    labels = uncertainty["label"].to_numpy()
    for c, (label, colour) in enumerate(zip(labels, cycle(PALETTE), strict=False)):
        rows = uncertainty.isel(obs=best == c)
        x, y = rows["aleatoric_entropy"].to_numpy(), rows["epistemic_entropy"].to_numpy()
        ax.scatter(x, y, s=14, alpha=0.6, color=colour, label=str(label))
    ax.set(xlabel="aleatoric entropy (nats)", ylabel="epistemic entropy (nats)")
    ax.legend(title="most probable", frameon=False)
    return ax


def plot_missing(X: Any, *, ax: Axes | None = None, figsize: Size | None = None) -> Axes:
    """Missing cells of a table in dark, rows down and columns across.

    >>> ax = plot_missing([[1.0, np.nan], [2.0, 3.0]])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1']
    """
    from bayesrbf.table.containers import missing_cells, read_cells

    cells = read_cells(X)
    holes = np.column_stack([missing_cells(column) for column in cells.columns])
    ax = _new(ax, figsize)
    ax.imshow(holes, aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks(range(holes.shape[1]), cells.names, rotation=60, ha="right")
    ax.set(ylabel="row")
    return ax


def _new(ax: Axes | None, figsize: Size | None) -> Axes:
    """The given axes, or new ones."""
    return plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def flat(axes: Any, pictures: int, of: str) -> np.ndarray:
    """Axes of any shape as an array of one dimension; ValueError where they are too few."""
    drawn = np.asarray(axes, dtype=object).ravel()
    if drawn.size < pictures:
        raise ValueError(f"axes must be {pictures}, one for each {of}; received {drawn.size}.")
    return drawn


def plot_rehearsal(
    rehearsal: xr.Dataset, *, ax: Axes | None = None, figsize: Size | None = None
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
        of_teacher = rehearsal.sel(teacher=teacher)
        ax.errorbar(
            levels,
            of_teacher["coverage"].to_numpy(),
            of_teacher["coverage_error"].fillna(0.0).to_numpy(),
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

"""Pictures of probabilities, of tables and of held-out figures along a dial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bayesrbf.plots.colours import PALETTE
from bayesrbf.posterior.calibration import calibration
from bayesrbf.table import encode_labels

if TYPE_CHECKING:
    import xarray as xr
from typing import TYPE_CHECKING, Final

Size = tuple[float, float]

PANELS: Final = {
    "log_score": "log score (nats)",
    "error": "error (share of rows)",
    "margin": "margin (nats)",
    "log_density": "log density (nats)",
}
"""Variables of a path that are drawn, and the labels of their axes."""
COLOUR: Final = "#0072b2"
CALIBRATED: Final = "#d55e00"


def plot_reliability(
    probabilities: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    n_bins: int = 10,
    axes: np.ndarray | None = None,
    figsize: Size | None = None,
) -> np.ndarray:
    """Observed frequency against predicted probability, one picture per class.

    Parameters
    ----------
    probabilities : array-like of shape (n_obs, n_classes)
        Class probabilities, classes in sorted order; held-out ones, or the picture flatters.
    y : array-like of shape (n_obs,)
        True labels; every class must occur. Rows without a label are left out.
    sample_weight : array-like of shape (n_obs,), optional
        Row weights, at least 0.
    n_bins : int
        Most groups of rows.
    axes : ndarray of Axes, optional
        One for every class; new ones by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    ndarray of Axes
        One per class. Bars are where a calibrated classifier lies nine times in ten.

    Raises
    ------
    ValueError
        If the classes of ``y`` and the columns of ``probabilities`` differ in number.

    Examples
    --------
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
    known = labels >= 0
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)[known]
    found = calibration(p[known], labels[known], weights, n_bins=n_bins)
    if axes is None:
        size = figsize or (3.2 * classes.size, 3.4)
        _, axes = plt.subplots(1, classes.size, figsize=size, squeeze=False, layout="constrained")
    drawn = np.asarray(axes, dtype=object).ravel()
    for ax, name, curve, colour in zip(drawn, classes, found.curves, _colours(), strict=False):
        ax.plot([0, 1], [0, 1], color="0.5", linestyle="--", linewidth=1)
        ax.vlines(curve.predicted, curve.lower, curve.upper, color="0.8", linewidth=6)
        ax.plot(curve.predicted, curve.observed, "o-", color=colour, markersize=4)
        ax.set(xlabel=f"predicted probability of {name}", ylabel="observed share", aspect="equal")
    return drawn


def plot_doubt(
    uncertainty: xr.Dataset, *, ax: Axes | None = None, figsize: Size | None = None
) -> Axes:
    """Every row by the two parts of its entropy.

    Parameters
    ----------
    uncertainty : xarray.Dataset
        What ``uncertainty(X)`` of a classifier with a posterior returned.
    ax : Axes, optional
        Where to draw; new by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    Axes
        Right: the classes overlap. Up: too few rows like it. Coloured by the most probable
        class.

    Raises
    ------
    ValueError
        If the dataset comes from a point estimate, which cannot tell the two apart.
    """
    if uncertainty.attrs["point_estimate"]:
        raise ValueError(
            "plot_doubt needs a posterior, and this dataset is of a point estimate; call "
            "refine('laplace') before uncertainty(X)."
        )
    ax = _new(ax, figsize)
    best = uncertainty["mean"].to_numpy().argmax(1)
    for c, (label, colour) in enumerate(
        zip(uncertainty["label"].to_numpy(), _colours(), strict=False)
    ):
        rows = uncertainty.isel(obs=best == c)
        x, y = rows["aleatoric_entropy"].to_numpy(), rows["epistemic_entropy"].to_numpy()
        ax.scatter(x, y, s=14, alpha=0.6, color=colour, label=str(label))
    ax.set(xlabel="aleatoric entropy (nats)", ylabel="epistemic entropy (nats)")
    ax.legend(title="most probable", frameon=False)
    return ax


def plot_missing(X: Any, *, ax: Axes | None = None, figsize: Size | None = None) -> Axes:
    """Missing cells of a table, rows down and columns across.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_obs, n_columns)
        A table.
    ax : Axes, optional
        Where to draw; new by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    Axes
        Missing cells are dark.

    Examples
    --------
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


def _colours() -> list[str]:
    """Enough colours for many classes."""
    return list(PALETTE) * 50


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

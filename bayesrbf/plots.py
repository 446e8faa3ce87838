"""Pictures for a notebook: probabilities, stability, missing cells, rehearsals, exemplars.

ArviZ draws the posterior: ``az.plot_trace_dist(model.posterior_)`` and the like take it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, cycle
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
import narwhals.stable.v2 as nw
import numpy as np
from matplotlib.axes import Axes
from sklearn.utils import _safe_indexing

from bayesrbf.answers.performance import THRESHOLDS
from bayesrbf.answers.scores import calibration
from bayesrbf.table.encode import encode_labels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrbf.answers.stability import EventStability
    from bayesrbf.families.sdgm.classifier import SDGMClassifier

__all__ = [
    "plot_dependence",
    "plot_exemplars",
    "plot_missing",
    "plot_rehearsal",
    "plot_reliability",
    "plot_sdgm",
    "plot_stability",
]


# Pictures of probabilities, missing cells and rehearsals.


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


def plot_missing(X: Any, *, ax: Axes | None = None, figsize: Size | None = None) -> Axes:
    """Missing cells of a table in dark, rows down and columns across.

    >>> ax = plot_missing([[1.0, np.nan], [2.0, 3.0]])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['x0', 'x1']
    """
    from bayesrbf.table.containers import missing_cells, read_cells

    cells = read_cells(X)
    holes = np.column_stack([missing_cells(column) for column in cells.columns])
    if ax is None:
        ax = plt.subplots(figsize=figsize, layout="constrained")[1]
    ax.imshow(holes, aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks(range(holes.shape[1]), cells.names, rotation=60, ha="right")
    ax.set(ylabel="row")
    return ax


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


def plot_stability(
    event: EventStability, *, axes: GivenAxes | None = None, figsize: Size | None = None
) -> np.ndarray:
    """Refits of a recipe beside the fit to all rows, in four pictures of an event.

    Parameters
    ----------
    event : record
        One of the ``events`` that ``bayesrbf.stability(model, X, y)`` returned.
    axes : sequence of Axes, optional
        Where to draw, four; new by default.
    figsize : tuple of float, optional
        Size of a new figure in inches.

    Returns
    -------
    ndarray of Axes
        Prediction instability: each probability by a refit, and the ends of the instability
        intervals; calibration of the refits on the rows of the table; share of the refits that
        decide a row otherwise; net benefit of the refits. Black is the fit to all rows.
    """
    if axes is None:
        size = figsize or (8.4, 8.0)
        _, axes = plt.subplots(2, 2, figsize=size, layout="constrained")
    drawn = flat(axes, 4, "picture")
    p = event.probability
    pale = {"color": PALETTE[0], "alpha": 0.15}
    dots: dict[str, Any] = {"linestyle": "", "rasterized": True}
    drawn[0].plot(np.tile(p, len(event.refits)), event.refits.ravel(), marker=",", **pale, **dots)
    for end in event.interval:
        drawn[0].plot(p, end, marker=".", color=PALETTE[1], markersize=3, **dots)
    for ax in drawn[:2]:
        ax.plot([0, 1], [0, 1], color="black", linestyle="--", linewidth=1)
    drawn[2].plot(p, event.changes, marker=".", color=PALETTE[0], **dots)
    drawn[2].axvline(event.threshold, color="0.5", linestyle="--", linewidth=1)
    styles = [{"color": "black", "zorder": 3}, *[pale] * len(event.refits)]
    for curve, benefit, style in zip(event.curves, event.net_benefits, styles, strict=True):
        if curve is not None:
            drawn[1].plot(curve.probability, curve.observed, **style)
        drawn[3].plot(THRESHOLDS, benefit, **style)
    # The floor keeps an axis where no threshold has a benefit.
    highest = max(event.net_benefits.max(), 1e-3)
    drawn[3].set_ylim(-0.25 * highest, 1.1 * highest)
    quantity = f"probability of {event.event}"
    across = (quantity, quantity, quantity, f"{quantity} from which one acts")
    upwards = ("by the refits", "observed share", "refits that decide otherwise", "net benefit")
    for ax, x, y in zip(drawn, across, upwards, strict=False):
        ax.set(xlabel=x, ylabel=y)
    return drawn


# Pictures of sparse discriminative mixtures in two dimensions.


GRID: Final = 150  # Points of the picture along each axis.
AXIS_MARGIN: Final = 0.1  # Space around the rows on every side, as a fraction of their range.


def plot_sdgm(
    model: SDGMClassifier,
    X: Any,
    y: Any,
    *,
    ax: Axes | None = None,
    figsize: Size | None = None,
) -> Axes:
    """Rows by class, decision boundary, and borders between the components of each class.

    The model has two real columns; rows with missing cells or without a class of the fit are left
    out. A solid line is where the most probable class changes, a dashed one where the most probable
    component of a class does. Both lines, and the counts in the title, are those of the most
    probable mode.

    >>> from bayesrbf import SDGMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = (X**2).sum(axis=1) < 1.4
    >>> model = SDGMClassifier(1, n_init=1, random_state=0).fit(X, y)
    >>> plot_sdgm(model, X, y).get_title()
    '4 weights, 2 components'
    """
    if model.n_features_in_ != 2:
        raise ValueError(
            "plot_sdgm draws a model of two columns; this one was fitted to "
            f"{model.n_features_in_}."
        )
    axes = ax if ax is not None else plt.subplots(figsize=figsize, layout="constrained")[1]
    points, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    whole = np.isfinite(points).all(axis=1)
    for position, label in enumerate(model.classes_):
        in_class = whole & (labels == label)
        colour = PALETTE[position % len(PALETTE)]
        left, right = points[in_class].T
        axes.scatter(left, right, s=12, color=colour, alpha=0.6, linewidths=0, label=str(label))
    across, up = (_line(column) for column in points[whole].T)
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    _draw_boundaries(axes, model, grid, _like(X, grid.reshape(-1, 2)))
    axes.set_title(
        f"{_counted(model.n_weights_, 'weight')}, {_counted(model.n_components_, 'component')}"
    )
    first, second = model.columns_.names
    axes.set_xlabel(first)
    axes.set_ylabel(second)
    axes.legend(title="class", framealpha=0.8)
    return axes


def _counted(count: int, noun: str) -> str:
    """A count and its noun.

    >>> _counted(1, "weight"), _counted(2, "weight")
    ('1 weight', '2 weights')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _line(column: np.ndarray) -> np.ndarray:
    """Points along an axis, a little beyond the rows."""
    low, high = column.min(), column.max()
    beyond = AXIS_MARGIN * (high - low or 1.0)
    return np.linspace(low - beyond, high + beyond, GRID)


def _like(X: Any, rows: np.ndarray) -> Any:
    """Rows as a frame like X, in its library and with its names, if X is a frame."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return rows
    named = dict(zip(frame.columns, rows.T, strict=True))
    return nw.from_dict(named, backend=frame.implementation).to_native()


def _draw_boundaries(axes: Axes, model: SDGMClassifier, grid: np.ndarray, rows: Any) -> None:
    """Lines between classes, and between components within each class."""
    shape = grid.shape[:2]
    by_class = model.predict_proba(rows)
    best = by_class.argmax(axis=1)
    for position in range(model.classes_.size):
        best_other = np.delete(by_class, position, axis=1).max(axis=1, initial=0.0)
        margin = (by_class[:, position] - best_other).reshape(shape)
        axes.contour(grid[..., 0], grid[..., 1], margin, levels=[0.0], colors="#222222")
    by_component = model.component_probabilities(rows)
    classes = model.component_classes_
    for position, label in enumerate(model.classes_):
        within = by_component[:, classes == label]
        for first, other in combinations(within.T, 2):  # a border drawn twice would not look dashed
            shown = (best == position) & (np.maximum(first, other) == within.max(axis=1))
            lead = np.where(shown, first - other, np.nan)
            if shown.any() and np.nanmin(lead) < 0 < np.nanmax(lead):
                axes.contour(
                    grid[..., 0],
                    grid[..., 1],
                    lead.reshape(shape),
                    levels=[0.0],
                    colors=PALETTE[position % len(PALETTE)],
                    linestyles="dashed",
                )


# A picture of how much columns tell of each other.


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
    names, ticks = dependence["column"].to_numpy().tolist(), range(len(fitted))
    ax.set_xticks(ticks, names, rotation=90)
    ax.set_yticks(ticks, names)
    ax.figure.colorbar(image, ax=ax, label="coefficient of dependence")
    return ax


# Pictures of the exemplars behind a prediction.


WRITTEN_CELLS: Final = 12  # Most cells of a row that are written out.
MAX_LETTERS: Final = 26  # Most letters of a line with a cell and its column.


def plot_exemplars(
    explanation: pd.DataFrame,
    X: Any,
    X_train: Any,
    *,
    row: int = 0,
    image_shape: tuple[int, int] | None = None,
    axes: GivenAxes | None = None,
    figsize: Size | None = None,
) -> np.ndarray:
    """A row, and beside it the exemplars of its prediction by responsibility; a colour a class.

    ``explanation`` is what ``responsible_exemplars(X)`` of a :class:`bayesrbf.MedianLVQClassifier`
    returned. For dissimilarities that came as a matrix, ``X`` and ``X_train`` are what they were
    made from: rows of numbers, texts or pixels. Rows with an ``image_shape`` (height, width) are
    drawn as images. Otherwise the cells are written out, in bold where they differ from the row,
    numbers by more than a standard deviation of the training rows.

    >>> import pandas as pd
    >>> explanation = pd.DataFrame({
    ...     "row": [0, 0], "exemplar": [1, 0], "label": ["b", "a"],
    ...     "dissimilarity": [0.1, 2.0], "responsibility": [0.9, 0.1]})
    >>> axes = plot_exemplars(explanation, [[1.0, 2.0]], [[5.0, 2.0], [1.0, 3.0]])
    >>> [ax.get_title() for ax in axes]
    ['row 0', 'b: 90 %', 'a: 10 %']
    """
    reasons = explanation[explanation["row"] == row]
    if reasons.empty:
        raise ValueError(
            f"plot_exemplars(row=...) must be a row of the explanation; received {row!r}."
        )
    if axes is None:
        size = figsize or (2.2 * (len(reasons) + 1), 2.8)
        _, axes = plt.subplots(1, len(reasons) + 1, figsize=size, layout="constrained")
    drawn = flat(axes, len(reasons) + 1, "picture")
    names, explained = _cells(X, row)
    classes = sorted(explanation["label"].unique().tolist(), key=str)
    spreads = [] if image_shape else _spreads(X_train)

    def draw(ax: Axes, cells: np.ndarray) -> None:
        ax.set_xticks([])
        ax.set_yticks([])
        if image_shape is not None:
            ax.imshow(cells.astype(float).reshape(image_shape), cmap="Greys")
        else:
            _draw_cells(ax, names, cells, list(map(_unlike, cells, explained, spreads)))

    draw(drawn[0], explained)
    drawn[0].set_title(f"row {row}", fontsize="medium")
    for ax, reason in zip(drawn[1:], reasons.itertuples(index=False), strict=False):
        colour = PALETTE[classes.index(reason.label) % len(PALETTE)]
        draw(ax, _cells(X_train, int(reason.exemplar))[1])
        ax.set_title(
            f"{reason.label}: {reason.responsibility:.0%}".replace("%", " %"),
            color=colour,
            fontsize="medium",
        )
        ax.set_xlabel(
            f"training row {reason.exemplar}, d = {reason.dissimilarity:.3g}", fontsize="small"
        )
        for spine in ax.spines.values():
            spine.set(edgecolor=colour, linewidth=1 + 4 * reason.responsibility)
    return drawn


def _cells(rows: Any, row: int) -> tuple[list[str], np.ndarray]:
    """Names of the columns, where there are any, and the cells of one row."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    names = list(map(str, frame.columns)) if isinstance(frame, nw.DataFrame) else []
    cells = np.asarray(_safe_indexing(rows, [row]), dtype=object).ravel()
    return names or [""] * cells.size, cells


def _spreads(rows: Any) -> list[float]:
    """Standard deviation of every column of numbers; 0 of any other."""
    table = np.asarray(rows, dtype=object)
    spreads = []
    for column in table.reshape(len(table), -1).T:
        numbers = all(isinstance(cell, Real) for cell in column)
        values = column.astype(float) if numbers else np.empty(0)
        values = values[~np.isnan(values)]
        spreads.append(float(np.std(values)) if values.size else 0.0)
    return spreads


def _unlike(cell: Any, other: Any, spread: float) -> bool:
    """Whether two cells differ; two missing cells are equal."""
    holes = (cell != cell, other != other)
    if any(holes):
        return not all(holes)
    return bool(abs(cell - other) > spread) if spread > 0 else bool(cell != other)


def _draw_cells(ax: Axes, names: list[str], cells: np.ndarray, bold: list[bool]) -> None:
    """A row as lines of text."""
    height = 1 / (WRITTEN_CELLS + 2)
    lines = [
        f"{name} {cell:.4g}" if isinstance(cell, float | np.floating) else f"{name} {cell}"
        for name, cell in zip(names, cells, strict=True)
    ]
    if cells.size > WRITTEN_CELLS:
        lines = [*lines[:WRITTEN_CELLS], f"and {cells.size - WRITTEN_CELLS} more"]
        bold = [*bold, False]
    for position, (line, strong) in enumerate(zip(lines, bold, strict=False)):
        text = line.strip()
        ax.text(
            0.04,
            1 - (position + 1) * height,
            text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}…",
            fontsize="x-small",
            fontweight="bold" if strong and position < WRITTEN_CELLS else "normal",
        )

"""Pictures of sparse discriminative mixtures in two dimensions."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
import narwhals.stable.v2 as nw
import numpy as np
from matplotlib.axes import Axes

from bayesrbf.plots.probabilities import PALETTE, Size

if TYPE_CHECKING:
    from bayesrbf.estimators.sdgm.classifier import SDGMClassifier

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
        own = whole & (labels == label)
        colour = PALETTE[position % len(PALETTE)]
        left, right = points[own].T
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
    """Rows as a frame with the names and the library of X, if X is a frame."""
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
        others = np.delete(by_class, position, axis=1).max(axis=1, initial=0.0)
        margin = (by_class[:, position] - others).reshape(shape)
        axes.contour(grid[..., 0], grid[..., 1], margin, levels=[0.0], colors="#222222")
    by_component, classes = model.component_probabilities(rows), model.component_classes_
    for position, label in enumerate(model.classes_):
        mine = by_component[:, classes == label]
        for one, other in combinations(mine.T, 2):  # a border drawn twice would not look dashed
            shown = (best == position) & (np.maximum(one, other) == mine.max(axis=1))
            lead = np.where(shown, one - other, np.nan)
            if shown.any() and np.nanmin(lead) < 0 < np.nanmax(lead):
                axes.contour(
                    grid[..., 0],
                    grid[..., 1],
                    lead.reshape(shape),
                    levels=[0.0],
                    colors=PALETTE[position % len(PALETTE)],
                    linestyles="dashed",
                )

"""Pictures of the exemplars behind a prediction."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
import narwhals.stable.v2 as nw
import numpy as np
from matplotlib.axes import Axes
from sklearn.utils import _safe_indexing

from bayesrbf.plots.probabilities import PALETTE, GivenAxes, Size, flat

if TYPE_CHECKING:
    import pandas as pd

WRITTEN_CELLS: Final = 12  # Most cells of a row that are written out.
MOST_LETTERS: Final = 26  # Most letters of a line with a cell and its column.


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
    """Whether a cell differs from another; two missing cells do not."""
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
        lines, bold = (
            [*lines[:WRITTEN_CELLS], f"and {cells.size - WRITTEN_CELLS} more"],
            [*bold, False],
        )
    for place, (line, strong) in enumerate(zip(lines, bold, strict=False)):
        text = line.strip()
        ax.text(
            0.04,
            1 - (place + 1) * height,
            text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…",
            fontsize="x-small",
            fontweight="bold" if strong and place < WRITTEN_CELLS else "normal",
        )

"""Figures 1 and 3 of Hayashi (2021): boundaries of classes and of components, drawn anew."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from bayesrbf.datasets import load_table
from bayesrbf.estimators.sdgm.classifier import SDGMClassifier
from bayesrbf.plots import plot_sdgm
from bayesrbf.reproduce import sdgm_synthetic

DRAWN_STARTS: Final = (2, 4, 8, 20)
"""Components a class at the start of the panels of figure 3."""
PANEL: Final = 4.0
"""Width and height in inches."""

Panel = tuple[str, SDGMClassifier, object, object]
"""Title, fit, rows and labels."""


def draw(folder: Path, *, quick: bool = False) -> list[Path]:
    """Draw what is not there yet.

    Parameters
    ----------
    folder : Path
        Where pictures are kept.
    quick : bool
        Figure 1 alone, from one start.

    Returns
    -------
    list of Path
        The pictures, whether they are new or not.
    """
    pictures: dict[Path, Callable[[], list[Panel]]] = {
        folder / "sdgm_figure_1.svg": partial(boundaries, n_init=1 if quick else 8)
    }
    if not quick:
        pictures[folder / "sdgm_figure_3.svg"] = initial_components
    for file, panels in pictures.items():
        if not file.exists():
            _save(panels(), file)
    return list(pictures)


def boundaries(n_init: int = 8) -> list[Panel]:
    """Panels of figure 1: one component a class, three of them, and what sparsity leaves.

    Parameters
    ----------
    n_init : int
        Number of restarts.

    Returns
    -------
    list of Panel
        On Ripley's table.
    """
    train = load_table("ripley_synth_train")
    one_mode = partial(SDGMClassifier, prediction="single-mode", n_init=n_init, random_state=0)
    models = {
        "one component a class": one_mode(1),
        # other restarts begin with fewer
        "three, before any is pruned": one_mode(3, n_init=1, max_iter=1),
        "three at the start, sparse": one_mode(3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the second stops at once
        return [
            (title, model.fit(train.X, train.y), train.X, train.y)
            for title, model in models.items()
        ]


def initial_components() -> list[Panel]:
    """Panels of figure 3: boundaries by the number of components at the start.

    Returns
    -------
    list of Panel
        On the chequerboard of appendix B.
    """
    return [
        (f"{2 * start} components at the start", *sdgm_synthetic.fitted(start, seed=0))
        for start in DRAWN_STARTS
    ]


def _save(panels: Sequence[Panel], file: Path) -> None:
    """One row of panels."""
    size = (PANEL * len(panels), PANEL)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (title, model, X, y) in zip(axes, panels, strict=True):
        plot_sdgm(model, X, y, ax=ax)
        ax.set_title(f"{title}:\n{ax.get_title()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)

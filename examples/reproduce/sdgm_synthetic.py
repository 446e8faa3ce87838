"""The chequerboard of appendix B and figures 1 and 3 of Hayashi (2021), computed anew.

The chequerboard has eight normal components a class; its table says how many are left of those at
the start. The figures show boundaries of classes and of components.

See Hayashi, Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR; appendix B.
The squares' centres and spread are those of the authors' program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from bayesrbf import SDGMClassifier
from bayesrbf.datasets import load_table
from bayesrbf.plots import plot_sdgm
from reproduce.cells import Cell, Figures, print_table

CENTRES: Final = (-0.75, -0.25, 0.25, 0.75)
SPREAD: Final = 0.125
N_EACH: Final = 20  # Training rows of each of the 16 squares.
N_EACH_NEW: Final = 100  # Test rows of each of the 16 squares.
STARTS: Final = (2, 4, 8, 12, 16, 20)  # Components a class at the start.
TABLES: Final = 5  # Number of drawn tables, each with its own seed.
N_INIT: Final = 4
SHOWN: Final = (
    ("train_error", "error, trained %"),
    ("error", "error, new %"),
    ("components", "components"),
    ("weights", "weights"),
    ("share", "of all weights %"),
)

DRAWN_STARTS: Final = (2, 4, 8, 20)  # Components a class at the start of the panels of figure 3.
PANEL: Final = 4.0  # Width and height in inches.

Panel = tuple[str, SDGMClassifier, object, object]  # Title, fit, rows and labels.


def chequerboard(
    n_each: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "obs 2"], Int[np.ndarray, " obs"]]:
    """Draw the table of appendix B: 16 squares of rows, whose neighbours differ in class.

    >>> X, y = chequerboard(20, np.random.default_rng(0))
    >>> X.shape, np.bincount(y).tolist()
    ((320, 2), [160, 160])
    """
    across, up = (axis.reshape(-1) for axis in np.indices((4, 4)))
    centres = np.array(CENTRES)[np.column_stack([across, up])]
    squares = np.repeat(np.arange(16), n_each)
    X = rng.normal(centres[squares], SPREAD)
    return X, ((across + up) % 2)[squares]


def cells(
    starts: tuple[int, ...] = STARTS, tables: int = TABLES, n_init: int = N_INIT
) -> Iterator[Cell]:
    """Cells of appendix B for these components a class at the start, tables and restarts.

    A cell has errors in %, the components and weights that are left, and their share of all weights
    in %.
    """
    for n_components in starts:
        for seed in range(tables):
            name = f"chequerboard/{n_components}/{seed}"
            yield Cell(name, partial(_figures, n_components, seed, n_init))


def fitted(
    n_components: int, seed: int, n_init: int = N_INIT
) -> tuple[SDGMClassifier, np.ndarray, np.ndarray]:
    """A fit in the kernel form, with one mode as published, and its table, both from ``seed``."""
    X, y = chequerboard(N_EACH, np.random.default_rng(seed))
    model = SDGMClassifier(
        n_components,
        form="kernel",
        prediction="single-mode",
        calibrate=False,
        n_init=n_init,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y), X, y


def _figures(n_components: int, seed: int, n_init: int) -> Figures:
    """One fit: errors, and what is left."""
    model, X, y = fitted(n_components, seed, n_init)
    X_new, y_new = chequerboard(N_EACH_NEW, np.random.default_rng([seed, 1]))
    return {
        "train_error": 100 * float(np.mean(model.predict(X) != y)),
        "error": 100 * float(np.mean(model.predict(X_new) != y_new)),
        "components": model.n_components_,
        "weights": model.n_weights_,
        "share": 100 * model.n_weights_ / ((2 * n_components - 1) * (y.size + 1)),
    }


def print_synthetic(figures: Mapping[str, Figures], console: Console | None = None) -> None:
    """Print means over the tables, a row a number of components at the start.

    Figures of cells of other modules are ignored.
    """
    found: dict[int, list[Figures]] = {}
    for name, values in figures.items():
        if name.startswith("chequerboard/"):
            found.setdefault(int(name.split("/")[1]), []).append(values)
    rows = [
        [str(2 * start), *(f"{_mean(values, name):.1f}" for name, _ in SHOWN)]
        for start, values in found.items()
    ]
    header = ["components at the start", *(title for _, title in SHOWN)]
    print_table("A chequerboard of 16 components (appendix B)", header, rows, console)


def _mean(figures: list[Figures], name: str) -> float:
    """Mean of one figure."""
    return float(np.mean([float(values[name]) for values in figures]))


def draw(folder: Path, *, quick: bool = False) -> list[Path]:
    """Draw the missing pictures and return the paths of all.

    A quick run draws figure 1 alone, from one start.
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
    """Panels of figure 1 on Ripley's table: one component a class, three, and the sparse fit."""
    train = load_table("ripley_synth_train")
    one_mode = partial(SDGMClassifier, prediction="single-mode", n_init=n_init, random_state=0)
    models = {
        "one component a class": one_mode(1),
        # other restarts begin with fewer
        "three, before any is pruned": one_mode(3, n_init=1, max_iter=1),
        "three at the start, sparse": one_mode(3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the second fit stops at once
        return [
            (title, model.fit(train.X, train.y), train.X, train.y)
            for title, model in models.items()
        ]


def initial_components() -> list[Panel]:
    """Panels of figure 3 on the chequerboard, by the number of components at the start."""
    return [
        (f"{2 * start} components at the start", *fitted(start, seed=0)) for start in DRAWN_STARTS
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

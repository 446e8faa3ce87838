"""A chequerboard of eight normal components a class: what is left of many, after Hayashi (2021).

References
----------
.. [1] Hayashi, Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR;
   appendix B. The squares' centres and spread are those of the authors' program.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

from bayesrbf.estimators.sdgm.classifier import SDGMClassifier
from bayesrbf.reproduce.cells import Cell, Figures, print_table

CENTRES: Final = (-0.75, -0.25, 0.25, 0.75)
SPREAD: Final = 0.125
N_EACH: Final = 20
"""Rows of each of the 16 squares to learn from."""
N_EACH_NEW: Final = 100
"""Rows of each of the 16 squares to predict."""
STARTS: Final = (2, 4, 8, 12, 16, 20)
"""Components a class at the start."""
TABLES: Final = 5
"""Tables that are drawn anew."""
N_INIT: Final = 4
SHOWN: Final = (
    ("train_error", "error, trained %"),
    ("error", "error, new %"),
    ("components", "components"),
    ("weights", "weights"),
    ("share", "of all weights %"),
)


def chequerboard(
    n_each: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "obs 2"], Int[np.ndarray, " obs"]]:
    """Draw the table of appendix B.

    Parameters
    ----------
    n_each : int
        Rows of each of the 16 squares.
    rng : numpy.random.Generator
        Source of chance.

    Returns
    -------
    X : ndarray of shape (16 n_each, 2)
        Rows.
    y : ndarray of shape (16 n_each,)
        Classes: neighbours differ.

    Examples
    --------
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
    """Cells of appendix B.

    Parameters
    ----------
    starts : tuple of int
        Components a class at the start.
    tables : int
        Number of tables.
    n_init : int
        Number of restarts.

    Yields
    ------
    Cell
        Errors in %, components and weights that are left, their share of all weights in %.
    """
    for n_components in starts:
        for seed in range(tables):
            name = f"chequerboard/{n_components}/{seed}"
            yield Cell(name, partial(_figures, n_components, seed, n_init))


def fitted(
    n_components: int, seed: int, n_init: int = N_INIT
) -> tuple[SDGMClassifier, np.ndarray, np.ndarray]:
    """A fit in the kernel form, one mode as published, and the table that it was fitted to.

    Parameters
    ----------
    n_components : int
        Components a class at the start.
    seed : int
        Seed of the table and of the fit.
    n_init : int
        Number of restarts.

    Returns
    -------
    model : SDGMClassifier
        The fit.
    X : ndarray of shape (n_obs, 2)
        Rows.
    y : ndarray of shape (n_obs,)
        Classes.
    """
    X, y = chequerboard(N_EACH, np.random.default_rng(seed))
    model = SDGMClassifier(
        n_components, form="kernel", prediction="single-mode", n_init=n_init, random_state=seed
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
    """Show means over the tables, a row a number of components at the start.

    Parameters
    ----------
    figures : mapping of str to mapping
        Figures of the cells; others than this module's are passed over.
    console : Console, optional
        Where they are shown; stdout by default.
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

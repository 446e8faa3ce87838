"""Sparse discriminative Gaussian mixtures beside Gaussian processes, after Hayashi (2021).

Errors and non-zero weights of table 1 on the official splits, the chequerboard of appendix B,
figures 1 and 3, and table 2's rows on MNIST where PyTorch is installed. The seeds and splits
are those of the stored tables.

See Hayashi, Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR; tables 1
and 2, figures 1 and 3, appendix B.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import SDGMClassifier
from bayesrbf.datasets import data_folder, load_table
from reproduce import published, sdgm_synthetic
from reproduce.cells import Cell, Figures, print_table, run_cells

TABLES: Final = tuple(published.SDGM_1)
SCORES: Final[Mapping[str, tuple[str, int, published.Published]]] = {
    "error": ("Error in % (table 1)", 1, published.SDGM_1),
    "log_loss": ("Log loss in nats", 3, published.NONE),
    "weights": ("Non-zero weights (table 1); rows of the process", 1, published.SDGM_1_WEIGHTS),
}
"""Title, digits and the paper's figures."""
Form = Literal["primal", "kernel"]
FORMS: Final[tuple[Form, ...]] = ("primal", "kernel")


@dataclass(frozen=True)
class Use:
    """How the probabilities of a fit are made."""

    # Over all modes that the restarts found, or at the most probable one.
    prediction: Literal["average", "single-mode"] = "average"
    calibrate: bool = False  # With a temperature.


USES: Final[Mapping[str, Use]] = {
    "": Use("single-mode"),
    ", modes": Use(),
    ", modes, calibrated": Use(calibrate=True),
}
"""Suffixes of a form's name: one mode, as published, or all of them."""
SEEDS: Final = 5  # Seeds of the restarts on the one split of Ripley's table.


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: Float[np.ndarray, "train column"]
    y: Int[np.ndarray, " train"]
    X_new: Float[np.ndarray, "test column"]
    y_new: Int[np.ndarray, " test"]


def run(
    folder: Path, *, quick: bool = False, images: int = 60_000, console: Console | None = None
) -> None:
    """Compute the cells that are not stored, print every table and draw the figures.

    A stopped run goes on in ``folder``. A quick run has one split of the smallest table, one start,
    one chequerboard and no images; otherwise the fit learns from ``images`` of MNIST.
    """
    file = folder / ("sdgm_quick.jsonl" if quick else "sdgm.jsonl")
    tables = ("titanic",) if quick else TABLES
    n_splits = {table: 1 if quick else len(splits(table)) for table in tables}
    compared = {table: cells_of(table, n_splits[table], 1 if quick else 8) for table in tables}
    columns = [column for group in compared.values() for column in group.values()]
    # One split of every table before the next: a stopped run has results for each table.
    cells = [cell for row in zip_longest(*columns) for cell in row if cell is not None]
    cells += sdgm_synthetic.cells((2,), 1, 1) if quick else sdgm_synthetic.cells()
    with_images = not quick and find_spec("torch") is not None
    if with_images:
        from reproduce import sdgm_images

        cells += sdgm_images.cells(images)
    figures = run_cells(cells, file, console)
    _print_compared(compared, figures, console)
    sdgm_synthetic.print_synthetic(figures, console)
    shown = console or Console()
    for picture in sdgm_synthetic.draw(folder, quick=quick):
        shown.print(f"Drawn: {picture}", soft_wrap=True)
    if with_images:
        _print_images(figures, images, shown)
    elif not quick:
        shown.print(
            "Table 2 is left out: it needs PyTorch, which 'bayesrbf\\[torch]' brings, and "
            "it is not installed.",
            soft_wrap=True,
        )


def _print_images(figures: Mapping[str, Figures], n_images: int, console: Console) -> None:
    """Print table 2's rows on MNIST."""
    rows = []
    for name, values in figures.items():
        table, n_features, head, *_ = name.split("/")
        if table != "mnist":
            continue
        shown = [f"{values['error']:.2f}", f"{values['log_loss']:.3f}"]
        weights = f"{values['weights']} of {values['all_weights']}"
        rows.append([f"{n_features} features, {head}", *shown, weights])
    title = f"MNIST, {n_images} images (table 2)"
    header = ["", "error %", "log loss", "weights"]
    print_table(title, header, rows, console, published.SDGM_2)


@cache
def splits(table: str) -> tuple[Split, ...]:
    """All splits of a table in the order of the file; Ripley's only one is repeated a seed."""
    if table == "ripley":
        train, test = load_table("ripley_synth_train"), load_table("ripley_synth_test")
        one = Split(train.X.to_numpy(), _codes(train.y), test.X.to_numpy(), _codes(test.y))
        return (one,) * SEEDS
    with np.load(data_folder() / f"raetsch_{table}.npz") as file:
        X, y, parts = file["x"], file["y"], list(zip(file["train"], file["test"], strict=True))
    X, y = X.astype(np.float64), y.astype(np.int64)
    return tuple(Split(X[a], y[a], X[b], y[b]) for a, b in parts)


def _codes(labels: object) -> Int[np.ndarray, " obs"]:
    """Labels that are written as whole numbers."""
    return np.asarray(labels).astype(np.int64)


Group = dict[str, list[Cell]]  # Cells of one table by method, a cell a split.


def cells_of(table: str, n_splits: int, n_init: int) -> Group:
    """Both forms, each with every use, and a Gaussian process."""
    group = {
        f"{form}{suffix}": [
            Cell(
                f"{table}/{form}{suffix}/{n_init}/{i}", partial(_sdgm, table, i, form, n_init, use)
            )
            for i in range(n_splits)
        ]
        for suffix, use in USES.items()
        for form in FORMS
    }
    process = range(1 if table == "ripley" else n_splits)
    return group | {
        "process": [Cell(f"{table}/process/{i}", partial(_process, table, i)) for i in process]
    }


def _sdgm(table: str, index: int, form: Form, n_init: int, use: Use) -> Figures:
    """One split: error, mean log loss, and what is left in the modes that are used."""
    split, model = splits(table)[index], _fitted(table, index, form, n_init, use.calibrate)
    model.set_params(prediction=use.prediction)
    many = use.prediction == "average"
    return _scores(model.predict_proba(split.X_new), model.classes_, split) | {
        "weights": int(model.mode_n_weights_.sum()) if many else model.n_weights_,
        "modes": model.mode_n_weights_.size if many else 1,
    }


@lru_cache(maxsize=len(FORMS))
def _fitted(table: str, index: int, form: Form, n_init: int, calibrate: bool) -> SDGMClassifier:
    """A fit that several uses share; its temperature is that of an average."""
    split = splits(table)[index]
    model = SDGMClassifier(form=form, calibrate=calibrate, n_init=n_init, random_state=index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(split.X, split.y)


def _process(table: str, index: int) -> Figures:
    """A Gaussian process with one length scale; every row counts as a weight."""
    split = splits(table)[index]
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(1.0, (1e-2, 1e3))
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
    scores = _scores(model.predict_proba(split.X_new), model.classes_, split)
    return scores | {"weights": split.y.size}


def _scores(
    probabilities: Float[np.ndarray, "test label"], classes: np.ndarray, split: Split
) -> dict[str, float | int | str]:
    """Error in % and mean log loss in nats."""
    truth = np.searchsorted(classes, split.y_new)
    own = np.maximum(probabilities[np.arange(truth.size), truth], 1e-12)
    error = 100 * np.mean(probabilities.argmax(axis=1) != truth)
    return {"error": float(error), "log_loss": float(-np.log(own).mean())}


def _mean(figures: Mapping[str, Figures], cells: Sequence[Cell], name: str, digits: int) -> str:
    """Mean of one figure over the computed splits, and their number if some are missing."""
    found = [float(figures[cell.name][name]) for cell in cells if cell.name in figures]
    if not found:
        return "-"
    mean = f"{np.mean(found):.{digits}f}"
    return mean if len(found) == len(cells) else f"{mean} ({len(found)})"


def _print_compared(
    groups: Mapping[str, Group], figures: Mapping[str, Figures], console: Console | None
) -> None:
    """Print table 1, once a score."""
    header = ["", *next(iter(groups.values()))]
    for score, (title, digits, paper) in SCORES.items():
        rows = [
            [table, *(_mean(figures, cells, score, digits) for cells in group.values())]
            for table, group in groups.items()
        ]
        print_table(title, header, rows, console, paper)

"""Tables of the experiments on hybrid mixtures, their splits, and hidden cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, train_test_split

from bayesrbf.datasets import data_folder, load_table

N_FOLDS: Final = 5
COMPONENTS: Final = 50
"""Principal components of images."""
PIXELS: Final = ("mnist", "usps")
"""Tables of images as pixels."""
DIAGONAL_50: Final = "mnist50, diagonal"
"""MNIST in principal components again, for the many diagonal components of the thesis."""
IMAGES: Final = (*PIXELS, "mnist50", DIAGONAL_50)
"""Tables of images: as pixels, and in principal components."""
USPS_TEST: Final = 3_000
"""Test images of USPS: as many as the thesis has, drawn from both parts of the table."""
Mechanism = Literal["MCAR", "MAR", "NMAR"]
"""Whether a cell is hidden by chance, by the row's first feature (which stays), or by its value."""


@dataclass(frozen=True)
class Split:
    """Training and test rows; hidden test cells are NaN."""

    X: Float[np.ndarray, "train feature"]
    y: Int[np.ndarray, " train"]
    X_new: Float[np.ndarray, "test feature"]
    y_new: Int[np.ndarray, " test"]

    def first(self, n_train: int) -> Split:
        """The split with at most ``n_train`` training rows, the first of them."""
        return replace(self, X=self.X[:n_train], y=self.y[:n_train])

    def hidden(self, share: float, mechanism: Mechanism, seed: int) -> Split:
        """The split with a share of its test cells hidden."""
        return replace(self, X_new=with_holes(self.X_new, share, mechanism, seed))


def splits(name: str) -> Iterator[Split]:
    """The splits of a table: its own where it has one, else five stratified folds.

    ``"mnist50"`` and ``"mnist50, diagonal"`` are both 50 principal components of the training rows.
    """
    if name in IMAGES:
        yield _images(name)
        return
    if name == "segment":
        train, test = load_table("segment_train"), load_table("segment_test")
        classes = np.unique(train.y)
        yield Split(
            train.X.to_numpy(float),
            np.searchsorted(classes, train.y),
            test.X.to_numpy(float),
            np.searchsorted(classes, test.y),
        )
        return
    table = load_table(name)
    X, y = table.X.to_numpy(float), np.unique(table.y, return_inverse=True)[1]
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    for train_rows, test_rows in folds.split(X, y):
        yield Split(X[train_rows], y[train_rows], X[test_rows], y[test_rows])


def _images(name: str) -> Split:
    """Images as pixels, or in the principal components of their training rows."""
    file_name = name.removesuffix(", diagonal").removesuffix("50")
    with np.load(data_folder() / f"{file_name}.npz") as file:
        X, X_new = (file[f"x_{part}"].astype(float) for part in ("train", "test"))
        y, y_new = (file[f"y_{part}"].astype(np.intp) for part in ("train", "test"))
    X, X_new = X.reshape(len(X), -1), X_new.reshape(len(X_new), -1)
    if name == "usps":
        X, X_new, y, y_new = train_test_split(
            np.concatenate([X, X_new]),
            np.concatenate([y, y_new]),
            test_size=USPS_TEST,
            stratify=np.concatenate([y, y_new]),
            random_state=0,
        )
    if name in PIXELS:
        return Split(X, y, X_new, y_new)
    directions = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(X[:20_000])
    return Split(directions.transform(X), y, directions.transform(X_new), y_new)


def with_holes(
    X: Float[np.ndarray, "row feature"], share: float, mechanism: Mechanism, seed: int
) -> Float[np.ndarray, "row feature"]:
    """Hide a share of the cells, in [0, 1) on average.

    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> holes = with_holes(X, 0.3, "NMAR", seed=1)
    >>> float(np.isnan(holes).mean().round(1))
    0.3
    >>> bool(np.nanmean(holes) < X.mean() - 0.1)
    True
    """
    rng = np.random.default_rng(seed)
    ranks = X.argsort(axis=0).argsort(axis=0) / max(len(X) - 1, 1)
    lift = {"MCAR": np.full(X.shape, 0.5), "MAR": ranks[:, :1] + 0 * X, "NMAR": ranks}[mechanism]
    # The probability rises with the rank, from 0 to twice the share or from 2 share - 1 to 1.
    low = max(0.0, 2 * share - 1)
    chances = low + 2 * (share - low) * lift
    hidden = rng.random(X.shape) < chances
    if mechanism == "MAR":
        hidden[:, 0] = False
    return np.where(hidden, np.nan, X)

"""Tables of the benchmarks: how each is put together, split and spoilt; and a drawn one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from bayesrbf.datasets import Dataset, data_folder, hide_cells, load_table

IN_PARTS = ("adult", "horse_colic", "ripley_synth", "segment", "vowel")
MAX_ROWS = 700
FEWER_ROWS = {"segment": 210, "raetsch_titanic": 150} | dict.fromkeys(
    (
        "raetsch_breast_cancer",
        "raetsch_image",
        "raetsch_waveform",
        "raetsch_banana",
        "raetsch_flare_solar",
        "raetsch_splice",
        "ripley_synth",
    ),
    300,
)
"""Training rows of tables that would be easy, or slow, with more."""
HIDDEN = 0.3


def load(name: str) -> Dataset:
    """A whole table, its published parts put together."""
    if name.startswith("raetsch_"):
        arrays = np.load(data_folder() / f"{name}.npz")
        X = pd.DataFrame(arrays["x"].astype(float))
        X.columns = [f"x{i}" for i in range(X.shape[1])]
        return Dataset(name, X, np.where(arrays["y"] > 0, "+1", "-1").astype(object))
    if name not in IN_PARTS:
        return load_table(name)
    parts = [load_table(f"{name}_{part}") for part in ("train", "test")]
    X = pd.concat([part.X for part in parts], ignore_index=True)
    return Dataset(name, X, np.concatenate([part.y for part in parts]))


@dataclass(frozen=True)
class Split:
    """Training and test rows of one table; labels are codes."""

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    y_new: np.ndarray


def split(name: str, seed: int, holes: bool) -> Split:
    """Stratified halves of at most 700 rows; with holes, 30 % of all cells are hidden."""
    data = load(name)
    X = hide_cells(data.X, HIDDEN, np.random.default_rng(seed)) if holes else data.X
    _, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
    n_train = min(FEWER_ROWS.get(name, MAX_ROWS), y.size // 2)
    n_test = min(MAX_ROWS, y.size - n_train)
    X, X_new, y, y_new = train_test_split(
        X, y, train_size=n_train, test_size=n_test, random_state=seed, stratify=y
    )
    return Split(X, y, X_new, y_new)


def mixed(n_rows: int, n_reals: int, n_categories: int, seed: int) -> pd.DataFrame:
    """Columns that three hidden factors move, some skew, some rounded; 5 % of the cells missing."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_rows, 3))
    columns: dict[str, np.ndarray] = {}
    for j in range(n_reals):
        x = factors @ rng.normal(size=3) + rng.normal(size=n_rows)
        x = (np.exp(x / 2), np.round(10 * x), x, x)[j % 4]
        columns[f"r{j}"] = np.where(rng.random(n_rows) < 0.05, np.nan, np.round(x, 3))
    for j in range(n_categories):
        levels = rng.integers(2, 7)
        scores = factors @ rng.normal(size=(3, levels)) + rng.gumbel(size=(n_rows, levels))
        cells = np.array([f"v{i}" for i in range(levels)], object)[scores.argmax(1)]
        cells[rng.random(n_rows) < 0.05] = None
        columns[f"c{j}"] = cells
    bad = rng.random(n_rows) < 1 / (1 + np.exp(1 - factors @ [1.5, -1, 0.5]))
    return pd.DataFrame(columns).assign(target=np.where(bad, "bad", "good"))

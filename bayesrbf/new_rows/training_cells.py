"""The cells that an estimator was fitted to, new cells beside them, and how usual both are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf.estimators.mixture.density import MixtureDensity
from bayesrbf.estimators.warning import ColumnWarning
from bayesrbf.table import Columns, as_frame, decode
from bayesrbf.table.containers import read_cells
from bayesrbf.table.levels import as_levels

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.estimators.estimator import Estimator

NOVEL_ROW: Final = 0.99
"""Novelty above which a row is called novel; of the model's own rows 1 in 100 has more."""
DRIFT_FOLDS: Final = 5
DRIFT_COMPONENTS: Final = 3


def loaded[E: Estimator](estimator: E | str | PathLike[str]) -> E:
    """A fitted estimator as it was given, or read from the file that ``save`` wrote."""
    if isinstance(estimator, str | PathLike):
        from bayesrbf.estimators.saving import load

        loaded_estimator: E = load(estimator)
        return loaded_estimator
    return estimator


def training_cells(estimator: Estimator) -> pd.DataFrame:
    """The cells that an estimator was fitted to, which its file has, as a frame."""
    columns, rows = estimator.columns_, estimator.model_.training_cells(estimator.rows_)
    like = pd.DataFrame(columns=list(columns.names))
    cells: pd.DataFrame = decode(rows.real, rows.codes, columns, like)
    levels = zip(columns.categorical_positions, columns.levels, rows.codes.T, strict=False)
    for position, of_column, codes in levels:
        cells[columns.names[position]] = np.array([*of_column, None], dtype=object)[codes]
    return cells


def named_cells(X: Any, columns: Columns) -> pd.DataFrame:
    """The cells of any table as floats or levels, None where missing; with names of training.

    Levels are called as in training, however the table writes them.
    """
    cells, frame = read_cells(X), as_frame(X)
    if not cells.has_names and len(cells.columns) != len(columns.names):
        raise ValueError(
            f"X has {len(cells.columns)} columns and no names, and the estimator was fitted to "
            f"{len(columns.names)} columns; give as many, or a frame with their names."
        )
    pandas = frame is not None and frame.implementation.is_pandas()
    index = frame.to_native().index if frame is not None and pandas else None
    names = cells.names if cells.has_names else columns.names
    named = dict(zip(names, cells.columns, strict=True))
    for position, name in enumerate(names):
        if name in columns.levels_of:
            named[name] = as_levels(cells.of_levels(position), columns.levels_of[name])
    return pd.DataFrame(named, index)


def as_trained(cells: pd.DataFrame, columns: Columns) -> object:
    """Cells as the estimator takes them: without names where it was fitted without."""
    return cells if columns.has_names else cells.to_numpy(dtype=object)


def observed_reals(column: pd.Series) -> np.ndarray:
    """Observed cells of a real column."""
    cells: np.ndarray = column.dropna().to_numpy(dtype=float)
    return cells


@dataclass(frozen=True)
class UsualCells:
    """Judgements of a density: each cell given the rest of its row, and the novelty of rows."""

    cells: xr.Dataset
    novelty: Float[np.ndarray, " obs"]

    @property
    def surprise(self) -> Float[np.ndarray, "obs column"]:
        """How surprising each cell is given the rest of its row, in nats; NaN where missing."""
        surprise: Float[np.ndarray, "obs column"] = -self.cells["log_tail"].to_numpy()
        return surprise


def judge_both(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns
) -> tuple[UsualCells, UsualCells]:
    """Judge old rows by densities fitted without their fold, and new rows by that of all old ones.

    Levels that only one fold has are missing there.
    """
    import xarray as xr

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has categories")  # that a fold alone has
        warnings.simplefilter("ignore", ColumnWarning)  # the fit of the estimator said so
        fold = np.random.default_rng(0).permutation(len(old)) % min(DRIFT_FOLDS, len(old))
        parts = [
            _judged(_density(old[fold != number], columns), old[fold == number])
            for number in np.unique(fold)
        ]
        order = np.argsort(np.argsort(fold, kind="stable"))
        held_out = UsualCells(
            xr.concat([part.cells for part in parts], dim="obs").isel(obs=order),
            np.concatenate([part.novelty for part in parts])[order],
        )
        return held_out, _judged(_density(old, columns), new)


def _density(table: pd.DataFrame, columns: Columns) -> MixtureDensity:
    """A density of the cells, for which labels do not matter."""
    return MixtureDensity(
        DRIFT_COMPONENTS,
        column_maps="power",
        atoms="auto",
        n_init=1,
        max_iter=200,
        tol=1e-4,
        categorical_features=[columns.names[place] for place in columns.categorical_positions],
        random_state=0,
    ).fit(table)


def _judged(density: MixtureDensity, rows: pd.DataFrame) -> UsualCells:
    """Cells and rows under a density."""
    return UsualCells(density.surprise(rows), density.novelty(rows))

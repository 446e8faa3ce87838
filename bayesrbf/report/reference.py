"""The training table of a fitted model, and what a density says of its rows held out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf.estimators.mixture.density import MixtureDensity
from bayesrbf.report.density import columns_of
from bayesrbf.table import Columns, decode

if TYPE_CHECKING:
    import xarray as xr

N_FOLDS: Final = 5
COMPONENTS: Final = 3


@dataclass(frozen=True)
class Judged:
    """What a density says of rows."""

    cells: xr.Dataset
    novelty: Float[np.ndarray, " obs"]

    @property
    def surprise(self) -> Float[np.ndarray, "obs column"]:
        """How surprising each cell is given the rest of its row, in nats; NaN where missing."""
        found: Float[np.ndarray, "obs column"] = -self.cells["log_tail"].to_numpy()
        return found


def training_table(model: Any) -> pd.DataFrame:
    """The cells that a model was fitted to, which its file holds."""
    columns, source = columns_of(model), getattr(model.model_, "source", None)
    # Exemplars hold the rows that new ones are compared with.
    rows = model.rows_ if source is None else source.cells
    like = pd.DataFrame(columns=list(columns.names))
    found: pd.DataFrame = decode(rows.real, rows.codes, columns, like, rows.further)
    return found


def judge_both(old: pd.DataFrame, new: pd.DataFrame, columns: Columns) -> tuple[Judged, Judged]:
    """Old rows, each by a density fitted without its fold, and new rows by that of all old ones."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has categories")  # that a fold alone has
        return _judged_both(old, new, columns)


def _judged_both(old: pd.DataFrame, new: pd.DataFrame, columns: Columns) -> tuple[Judged, Judged]:
    """The same; levels that only one fold has are missing there."""
    fold = np.random.default_rng(0).permutation(len(old)) % min(N_FOLDS, len(old))
    parts = []
    for one in np.unique(fold):
        density = _density(old[fold != one], columns)
        parts.append((np.flatnonzero(fold == one), _judged(density, old[fold == one])))
    order = np.argsort(np.concatenate([rows for rows, _ in parts]))
    held_out = Judged(
        _joined([part.cells for _, part in parts]).isel(obs=order),
        np.concatenate([part.novelty for _, part in parts])[order],
    )
    return held_out, _judged(_density(old, columns), new)


def _joined(cells: list[xr.Dataset]) -> xr.Dataset:
    """Rows of several folds."""
    import xarray as xr

    return xr.concat(cells, dim="obs")


def _density(table: pd.DataFrame, columns: Columns) -> MixtureDensity:
    """A density of the cells, for which labels do not matter."""
    categorical = [columns.names[place] for place in columns.categorical_positions]
    return MixtureDensity(
        COMPONENTS,
        column_maps="power",
        atoms="auto",
        n_init=1,
        max_iter=200,
        tol=1e-4,
        categorical_features=categorical,
        random_state=0,
    ).fit(table)


def _judged(density: MixtureDensity, rows: pd.DataFrame) -> Judged:
    """Cells and rows under a density."""
    return Judged(density.surprise(rows), density.novelty(rows))

"""Many real columns: how many factors they are given, and where full covariances become slow."""

from __future__ import annotations

from typing import Final

import numpy as np

from bayesrbf.estimators.warning import warn
from bayesrbf.records.mixture import Observations

N_FACTORS: Final = 5
"""Where no number is given."""
MANY_COLUMNS: Final = 60
MANY_PATTERNS: Final = 500
"""Columns and patterns of missing cells from which full covariances are slow."""


def factors_asked(owner: str, covariance_type: str, n_factors: int | None) -> int:
    """Number of factors of a shape; 0 for shapes without.

    Examples
    --------
    >>> factors_asked("MixtureDensity", "factor", None)
    5
    """
    if covariance_type == "factor":
        return N_FACTORS if n_factors is None else int(n_factors)
    if n_factors is not None:
        raise ValueError(
            f"{owner}(n_factors=...) is for covariance_type='factor'; received "
            f"n_factors={n_factors!r} with covariance_type={covariance_type!r}."
        )
    return 0


def warn_where_slow(owner: str, covariance_type: str, rows: Observations) -> None:
    """Say where full covariances meet many columns with many patterns of missing cells."""
    holes = np.isnan(rows.real)
    if covariance_type in ("diag", "spherical", "factor") or holes.shape[1] < MANY_COLUMNS:
        return
    patterns = len(np.unique(np.packbits(holes[holes.any(axis=1)], axis=1), axis=0))
    if patterns >= MANY_PATTERNS:
        warn(
            f"{owner}: full covariances of {holes.shape[1]} real columns cost the cube of a row's "
            f"missing cells for each of {patterns} patterns of these, row by row and component by "
            "component: covariance_type='factor' takes a fraction of the time."
        )

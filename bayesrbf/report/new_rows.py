"""What is said of new rows that are unlike the training table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import binom

from bayesrbf.report.words import clipped, number, plural

NOVEL: Final = 0.99
"""Novelty above which a row is called novel; of the model's own rows 1 in 100 has more."""
CHANCE: Final = 0.01
"""Probability below which so many novel rows are more than chance brings."""
FACTOR: Final = 3.0
"""Ratio of a number to what was expected from which it is told as a factor."""


def novelty_of_rows(model: Any, X: pd.DataFrame, novelty: np.ndarray) -> str:
    """How many rows are unlike the training table, and the column that is odd most often.

    Empty where they are no more than chance brings, or nothing is known of rows.
    """
    novel = np.flatnonzero(novelty > NOVEL)
    if binom.sf(len(novel) - 1, len(X), 1 - NOVEL) > CHANCE:
        return ""
    verb = "is" if len(novel) == 1 else "are"
    said = f"{len(novel)} of {plural(len(X), 'row')} {verb} unlike the training table"
    if not hasattr(model, "surprise"):
        return f"{said}."
    cells = model.surprise(X.iloc[novel])
    odd = cells["stands_out"].to_numpy()
    if not odd.any():
        return f"{said}: no single cell, but how cells go together."
    place = int(odd.sum(axis=0).argmax())
    name, rows = X.columns[place], np.flatnonzero(odd[:, place])
    factor = ""
    if pd.api.types.is_numeric_dtype(X[name]):
        expected = cells["expected"].to_numpy()[rows, place].astype(float)
        factor = _factor(X[name].to_numpy(dtype=float)[novel[rows]], expected)
    return f"{said}: {clipped(name, 30)} stands out in {len(rows)} of them{factor}."


def _factor(cells: np.ndarray, expected: np.ndarray) -> str:
    """How many times too large or small numbers are; empty where that is not what is wrong."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.median(cells / expected))
    if not ratio > 0 or 1 / FACTOR < ratio < FACTOR:
        return ""
    size, way = (ratio, "large") if ratio > 1 else (1 / ratio, "small")
    return f", about {number(size)} times too {way}"

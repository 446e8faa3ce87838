"""Rows with fewer cells than nearly all training rows are told of by `predict`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bayesrbf.app.predict import BlockPredictions
from bayesrbf.app.report.options import ANYTHING

pytestmark = pytest.mark.filterwarnings("ignore:The model was fitted to a point")


def made(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Four columns, of which every training row knows three at least."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    y = np.where(X["a"] + X["b"] + rng.normal(size=n) > 0, "sick", "well")
    return X.mask(np.arange(n)[:, None] % 8 == np.arange(4)), y


def told(model: object, rows: pd.DataFrame, blocks: int = 1) -> str:
    scored = BlockPredictions(model, ANYTHING)
    for _ in scored.over(rows.iloc[some] for some in np.array_split(np.arange(len(rows)), blocks)):
        pass
    return scored.fewer_cells()


@pytest.mark.slow
@pytest.mark.parametrize("make", [StackedClassifier, HybridMixtureClassifier])
def test_rows_with_fewer_cells_are_counted_whatever_the_blocks(make: type) -> None:
    X, y = made(96, seed=0)
    model = make(random_state=0).fit(X, y)
    new, _ = made(40, seed=1)
    assert told(model, new) == ""
    new.loc[:4, ["a", "b"]] = np.nan
    new.loc[7, ["a", "b", "c"]] = np.nan
    said = told(model, new)
    assert said.startswith("6 of 40 rows have fewer cells than 99 in 100 training rows: 3 of 4")
    assert "as few as 1" in said
    assert "is calibrated for that" in said
    assert told(model, new, blocks=3) == said


def test_without_that_calibration_it_is_said_so() -> None:
    X, y = made(96, seed=0)
    model = HybridMixtureClassifier(calibrate=False, random_state=0).fit(X, y)
    new, _ = made(10, seed=1)
    new.loc[0, ["a", "b", "c"]] = np.nan
    said = told(model, new)
    assert said.startswith("1 of 10 rows has fewer cells")
    assert "not calibrated for that" in said

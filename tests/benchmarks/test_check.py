"""What ``bayesrbf check`` finds: nothing in the other half of a table, and what was planted in it.

A calibrated mixture is fitted to a random half of each table, three times; the other half is held
against it as it is, and with one thing planted. Columns, levels and rows are drawn at random.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.datasets import load_table
from bayesrbf.report.check import check_rows
from bayesrbf.report.new_rows import NewRows

TABLES = (
    "iris",
    "wine",
    "crabs",
    "hepatitis",
    "heart_cleveland",
    "house_votes84",
    "breast_cancer",
    "sonar",
    "credit_approval",
    "vehicle",
)
Planted = Callable[[pd.DataFrame, np.ndarray, np.random.Generator], pd.DataFrame | None]


def numbers(X: pd.DataFrame) -> list[str]:
    """Real columns with more than five values, most of them not 0."""
    reals = X.select_dtypes("number")
    return [c for c in reals if (X[c].dropna() != 0).mean() > 0.5 and X[c].nunique() > 5]


def times(factor: float) -> Planted:
    """One column in other units."""

    def plant(X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame | None:
        if not numbers(X):
            return None
        name = rng.choice(numbers(X))
        return X.assign(**{name: factor * X[name]})

    return plant


def exchange(X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame | None:
    """Two real columns exchanged."""
    if len(numbers(X)) < 2:
        return None
    one, other = rng.choice(numbers(X), 2, replace=False)
    return X.assign(**{one: X[other], other: X[one]})


def new_level(X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame | None:
    """A new level in every tenth row of a categorical column."""
    names = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    if not names:
        return None
    name, rows = rng.choice(names), rng.choice(len(X), len(X) // 10, replace=False)
    return X.assign(**{name: X[name].where(~np.isin(np.arange(len(X)), rows), "new level")})


def shifted(X: pd.DataFrame, y: np.ndarray, rng: np.random.Generator) -> pd.DataFrame | None:
    """Of two classes 20 % of the second; 60 % where there were fewer than 35."""
    classes = np.unique(y)
    if classes.size != 2:
        return None
    one, zero = (np.flatnonzero(y == classes[c]) for c in (1, 0))
    share = 0.2 if one.size >= 0.35 * y.size else 0.6
    n = int(min(one.size / share, zero.size / (1 - share)))
    k = int(n * share)
    rows = [rng.choice(one, k, replace=False), rng.choice(zero, n - k, replace=False)]
    return X.iloc[np.concatenate(rows)].reset_index(drop=True)


PLANTED: dict[str, tuple[Planted, set[str]]] = {
    "nothing": (lambda X, y, rng: X, set()),
    "factor 10": (times(10.0), {"unit", "cells", "rows"}),
    "factor 1000": (times(1000.0), {"unit", "cells", "rows"}),
    "exchanged": (exchange, {"exchanged", "unit", "cells", "rows"}),
    "new level": (new_level, {"levels"}),
    "prevalence": (shifted, {"classes"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_check(name: str) -> None:
    data = load_table(name)
    found: dict[str, list[str]] = {what: [] for what in PLANTED}
    for split in range(3):
        order = np.random.default_rng(split).permutation(len(data.X))
        old, new = (np.sort(half) for half in np.array_split(order, [len(order) // 2]))
        X = data.X.iloc[new].reset_index(drop=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = HybridMixtureClassifier(random_state=0).fit(data.X.iloc[old], data.y[old])
            for what, (plant, _) in PLANTED.items():
                table = plant(X, data.y[new], np.random.default_rng(split))
                if table is not None:
                    remarks = check_rows(model, NewRows(table, (), ()))
                    found[what].append(" ".join(sorted({r.topic for r in remarks if r.found})))
    print(f"\n| {name} |", end="")
    for what, (_, right) in PLANTED.items():
        quiet = what == "nothing"
        hits = sum(bool(set(one.split()) & right) or (quiet and not one) for one in found[what])
        print(f" {hits} of {len(found[what])} |" if found[what] else " |", end="", flush=True)
    print(f"\n  {found}")

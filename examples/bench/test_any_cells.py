"""The probability given any set of cells: fitted to complete rows, asked of rows with fewer cells.

Cells of new rows are hidden at random, or all but the most and the least telling columns, or a
block of columns that go together; or rows are complete, where 30 % were hidden at fit. Beside the
log loss stands the mean probability of the rarest class over its share. *Stack, one pool* is the
stack whose weights and temperatures do not know of hidden cells. Some tables have a class that was
thinned out to 7 % of the rows.

``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose, ``BAYESRBF_SEEDS`` sets the number of splits
(1). Results are kept as they come.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import mutual_info_classif
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bayesrbf.families.stack.posterior import fit_pools
from bench.figures import show
from bench.stack_tables import CHOSEN, FRESH, Split, load
from bench.test_real_tables import numbers_for
from bench.test_stack import chosen, forest, logistic
from tests.measured import Cell, part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "1"))
RARE: Final = ("adult", "raetsch_german", "credit_approval", "vehicle", "vowel")
"""Tables of which one class is thinned out."""
SHARE, RAREST = 0.07, ", rare"
ONE_POOL: Final = "stack, one pool"
COMPLETE: Final = 0.6
"""Share of rows without a hole from which a table counts as complete: the others are left out."""
SHARES: Final = (0.0, 0.3, 0.6, 0.8, 0.95)
MOST_ROWS: Final = 600
NEW_ROWS: Final = 400
HIDDEN_AT_FIT: Final = 0.3
RIDDLED: Final = ("hepatitis", "horse_colic", "house_votes84", "pima_uci_missing", "soybean")
TABLES: Final = tuple(
    name for name in (*CHOSEN, *FRESH, *(name + RAREST for name in RARE)) if name not in RIDDLED
)


def complete(name: str, seed: int) -> Split | None:
    """Halves of the complete rows of a table; None where most rows have holes."""
    data = load(name.removesuffix(RAREST))
    whole = data.X.notna().all(axis=1).to_numpy()
    if whole.mean() < COMPLETE:
        return None
    X, y = data.X[whole], np.asarray(data.y, dtype=str)[whole]
    rng = np.random.default_rng(seed)
    if name.endswith(RAREST):
        names, counts = np.unique(y, return_counts=True)
        y = np.where(y == names[counts.argmin()], "rare", "other")
        rare = rng.permutation(np.flatnonzero(y == "rare"))
        some = rare[: max(12, int((y == "other").sum() * SHARE / (1 - SHARE)))]
        rows = np.sort(np.r_[np.flatnonzero(y == "other"), some])
        X, y = X.iloc[rows], y[rows]
    _, codes = np.unique(y, return_inverse=True)
    n_train = min(MOST_ROWS, codes.size // 2)
    n_new = min(NEW_ROWS, codes.size - n_train)
    X, X_new, y, y_new = train_test_split(
        X, codes, train_size=n_train, test_size=n_new, random_state=seed, stratify=codes
    )
    return Split(X.reset_index(drop=True), y, X_new.reset_index(drop=True), y_new)


def patterns(data: Split, seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """New rows with cells hidden, by the name of the pattern."""
    rng = np.random.default_rng(seed)
    X, n_columns = data.X_new, data.X_new.shape[1]
    for share in SHARES:
        yield f"{share:.0%}", X.mask(rng.random(X.shape) < share)
    codes = data.X.apply(lambda c: c if c.dtype.kind in "fiu" else c.astype("category").cat.codes)
    telling = np.argsort(mutual_info_classif(codes, data.y, random_state=seed))
    together = codes.corr("spearman").abs().fillna(0).to_numpy()
    block = np.argsort(-together[together.sum(axis=1).argmax()])[: max(1, n_columns // 3)]
    for what, places in {
        "most telling alone": telling[-1:],
        "two most telling": telling[-2:],
        "least telling alone": telling[:1],
        "two least telling": telling[:2],
        "a block hidden": np.setdiff1d(np.arange(n_columns), block),
    }.items():
        yield what, X.mask(~np.isin(np.arange(n_columns), places)[None].repeat(len(X), axis=0))


def one_pool(model: StackedClassifier) -> StackedClassifier:
    """The stack with weights and temperatures that do not know of hidden cells."""
    held = replace(model.model_.held, masked=None)
    pooled = replace(model.model_, pool=fit_pools(held)[0], emptier=(), held=held)
    model.fitted_ = model.fitted_.replaced(model=pooled)
    return model


def boosting(seed: int) -> HistGradientBoostingClassifier:
    """Boosting that has a side for missing cells in every split."""
    return HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.05, categorical_features="from_dtype", random_state=seed
    )


class Categories:
    """A classifier that is given texts as categories of the training rows."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Categories:
        self.levels = {
            name: sorted(column.dropna().unique(), key=str)
            for name, column in X.items()
            if column.dtype.kind not in "fiub"
        }
        self.model.fit(self.read(X), y)
        return self

    def read(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(
            **{name: pd.Categorical(X[name], levels) for name, levels in self.levels.items()}
        )

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        found: np.ndarray = self.model.predict_proba(self.read(X))
        return found


class Shares:
    """The class shares of training, whatever the row."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Shares:
        self.shares = np.bincount(y) / y.size
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.tile(self.shares, (len(X), 1))


CONTESTANTS: Final[dict[str, Callable[[int], Any]]] = {
    "stack": lambda seed: StackedClassifier(random_state=seed),
    ONE_POOL: lambda seed: StackedClassifier(random_state=seed),
    "lite": lambda seed: StackedClassifier("lite", random_state=seed),
    "mixture": lambda seed: HybridMixtureClassifier(random_state=seed),
    "kernel network": lambda seed: KernelNetworkClassifier(random_state=seed),
    "forest": lambda seed: numbers_for(forest(seed)),
    "boosting": lambda seed: Categories(boosting(seed)),
    "logistic regression": lambda seed: numbers_for(logistic(seed)),
    "class shares": lambda seed: Shares(),
}


SECOND: Final = tuple(name for name in CONTESTANTS if name != ONE_POOL)
"""What is fitted a second time, with holes."""


def figures(name: str, model: str, seed: int) -> dict[str, Cell]:
    """Log loss of every pattern, and the mean probability of the rarest class over its share."""
    data = complete(name, seed)
    if data is None:
        return {}
    result = judged_of(fit(name, model, seed, 0.0), data, patterns(data, seed))
    if model in SECOND:
        holes = fit(name, model, seed, HIDDEN_AT_FIT)
        result |= judged_of(holes, data, [("holes at fit, none here", data.X_new)])
    return result


def judged_of(
    fitted: Any, data: Split, shown: Iterable[tuple[str, pd.DataFrame]]
) -> dict[str, Cell]:
    """What is judged of a model on new rows under some patterns."""
    rarest, result = np.bincount(data.y).argmin(), dict[str, Cell]()
    for pattern, X in shown:
        p = np.clip(fitted.predict_proba(X), 1e-12, 1)
        result[pattern] = float(-np.log(p[np.arange(len(X)), data.y_new]).mean())
        result[f"rarest, {pattern}"] = float(p[:, rarest].mean() / (data.y == rarest).mean())
    return result


@lru_cache(maxsize=2)
def fit(name: str, model: str, seed: int, hidden: float) -> Any:
    """A model fitted to a table of which a share of the cells is hidden."""
    if model == ONE_POOL:
        return one_pool(copy(fit(name, "stack", seed, hidden)))
    data = complete(name, seed)
    assert data is not None  # who asks has seen it
    gone = np.random.default_rng([seed, 1]).random(data.X.shape) < hidden
    return CONTESTANTS[model](seed).fit(data.X.mask(gone), data.y)


def test_any_cells(data_folder: object) -> None:
    rows = []
    for name in chosen(TABLES, "BAYESRBF_TABLES"):
        for seed in range(SEEDS):
            for model in chosen(CONTESTANTS, "BAYESRBF_METHODS"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    key = {"table": name, "seed": seed, "model": model}
                    rows.append(
                        part(
                            "any_cells",
                            key,
                            lambda k=key: figures(k["table"], k["model"], k["seed"]),
                        )
                    )
    results = pd.DataFrame(rows).dropna(subset=["0%"])
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no complete table")
    tables = results.groupby(["model", "table"], sort=False).mean(numeric_only=True)
    means = tables.drop(columns="seed").groupby("model", sort=False).mean()
    losses = means[[name for name in means if not name.startswith("rarest")]]
    ratios = means[[name for name in means if name.startswith("rarest")]]
    counts = {
        "tables": (results["table"].nunique(), len(TABLES)),
        "models": (results["model"].nunique(), len(CONTESTANTS)),
    }
    show("any_cells/losses", losses, counts=counts)
    show(
        "any_cells/rarest",
        ratios.rename(columns=lambda name: name.removeprefix("rarest, ")),
        2,
        counts,
    )
    if {"stack", "class shares"} <= set(losses.index):
        assert (losses.loc["stack"] < losses.loc["class shares"] + 0.005).all()

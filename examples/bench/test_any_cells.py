"""The probability given any set of cells: fitted to complete rows, asked of rows with fewer cells.

Cells of new rows are hidden at random, or all but the most or the least telling column, or a block
of columns that go together; or rows are complete, where 30 % were hidden at fit. Beside the
log loss stands the mean probability of the rarest class over its share. *Stack, one pool* is the
stack whose weights and temperatures do not know of hidden cells. Some tables have a class that was
thinned out to 7 % of the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.feature_selection import mutual_info_classif
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bayesrbf.families.stack.posterior import fit_pools
from bench.figures import Row, at_most, show
from bench.peers import (
    GENTLE,
    Boosting,
    Doubled,
    Imputed,
    Refitted,
    Shares,
    forest,
    logistic,
)
from bench.tables import Split, load

RAREST: Final = ", rare"
SHARE: Final = 0.07
"""Of the rows, for the rarest class of a table whose rarest class is thinned out."""
TABLES: Final = (
    "heart_cleveland",
    "credit_approval",
    "adult",
    "glass",
    "sonar",
    "vehicle",
    "raetsch_german",
    "iris",
    "wine",
    "breast_cancer",
    "raetsch_thyroid",
    "raetsch_image",
    "raetsch_waveform",
    "vowel",
    "crabs",
    *(name + RAREST for name in ("adult", "raetsch_german", "credit_approval", "vehicle")),
)
SHARES: Final = (0.0, 0.3, 0.6, 0.8, 0.95)
MAX_ROWS: Final = 600
NEW_ROWS: Final = 400
HIDDEN_AT_FIT: Final = 0.3


def complete(name: str) -> Split:
    """Halves of the complete rows of a table."""
    data = load(name.removesuffix(RAREST))
    whole = data.X.notna().all(axis=1).to_numpy()
    X, y = data.X[whole], np.asarray(data.y, dtype=str)[whole]
    rng = np.random.default_rng(0)
    if name.endswith(RAREST):
        names, counts = np.unique(y, return_counts=True)
        y = np.where(y == names[counts.argmin()], "rare", "other")
        rare = rng.permutation(np.flatnonzero(y == "rare"))
        some = rare[: max(12, int((y == "other").sum() * SHARE / (1 - SHARE)))]
        rows = np.sort(np.r_[np.flatnonzero(y == "other"), some])
        X, y = X.iloc[rows], y[rows]
    _, codes = np.unique(y, return_inverse=True)
    n_train = min(MAX_ROWS, codes.size // 2)
    n_new = min(NEW_ROWS, codes.size - n_train)
    X, X_new, y, y_new = train_test_split(
        X, codes, train_size=n_train, test_size=n_new, random_state=0, stratify=codes
    )
    return Split(X.reset_index(drop=True), y, X_new.reset_index(drop=True), y_new)


def patterns(data: Split) -> Iterator[tuple[str, pd.DataFrame]]:
    """New rows with cells hidden, by the name of the pattern."""
    rng = np.random.default_rng(0)
    X, n_columns = data.X_new, data.X_new.shape[1]
    for share in SHARES:
        yield f"{share:.0%}", X.mask(rng.random(X.shape) < share)
    codes = data.X.apply(lambda c: c if c.dtype.kind in "fiu" else c.astype("category").cat.codes)
    telling = np.argsort(mutual_info_classif(codes, data.y, random_state=0))
    together = codes.corr("spearman").abs().fillna(0).to_numpy()
    block = np.argsort(-together[together.sum(axis=1).argmax()])[: max(1, n_columns // 3)]
    for what, places in {
        "most telling alone": telling[-1:],
        "least telling alone": telling[:1],
        "a block hidden": np.setdiff1d(np.arange(n_columns), block),
    }.items():
        yield what, X.mask(~np.isin(np.arange(n_columns), places)[None].repeat(len(X), axis=0))


def one_pool(stack: StackedClassifier) -> StackedClassifier:
    """The stack with weights and temperatures that do not know of hidden cells."""
    model = copy(stack)
    held = replace(model.model_.held, masked=None, missing_fractions=None, log_shares=None)
    pooled = replace(model.model_, pool=fit_pools(held)[0], knot_pools=(), held=held)
    model.fitted_ = model.fitted_.replaced(model=pooled)
    return model


CONTESTANTS: Final[dict[str, Callable[[int], Any]]] = {
    "stack": lambda seed: StackedClassifier(random_state=seed),
    "mixture": lambda seed: HybridMixtureClassifier(random_state=seed),
    "kernel network": lambda seed: KernelNetworkClassifier(random_state=seed),
    "random forest": forest,
    "gradient boosting": lambda seed: Boosting(seed, **GENTLE),
    "logistic regression": logistic,
    "boosting, rows doubled with cells hidden": Doubled,
    "logistic regression, a refit a pattern": lambda _: Refitted(),
    "logistic regression, 5 imputations": lambda _: Imputed(),
    "class shares": lambda _: Shares(),
}


def judged(model: Any, data: Split, rows: Iterator[tuple[str, pd.DataFrame]]) -> Row:
    """Log loss of every pattern, and the mean probability of the rarest class over its share."""
    rarest, result = np.bincount(data.y).argmin(), Row()
    for pattern, X in rows:
        p = np.clip(model.predict_proba(X), 1e-12, 1)
        result[pattern] = float(-np.log(p[np.arange(len(X)), data.y_new]).mean())
        result[f"rarest, {pattern}"] = float(p[:, rarest].mean() / (data.y == rarest).mean())
    return result


def results(name: str) -> Iterator[Row]:
    """Every contestant on one table."""
    data = complete(name)
    gone = np.random.default_rng([0, 1]).random(data.X.shape) < HIDDEN_AT_FIT
    for model, make in CONTESTANTS.items():
        fitted = make(0).fit(data.X, data.y)
        found = judged(fitted, data, patterns(data))
        with_holes = make(0).fit(data.X.mask(gone), data.y)
        found |= judged(with_holes, data, iter([("holes at fit, none here", data.X_new)]))
        yield {"table": name, "model": model, **found}
        if model == "stack":
            found = judged(one_pool(fitted), data, patterns(data))
            yield {"table": name, "model": "stack, one pool", **found}


def test_any_cells(data_folder: object) -> None:
    rows: list[Row] = []
    for name in TABLES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows += results(name)
        print(name, flush=True)
    found = pd.DataFrame(rows).set_index(["model", "table"])
    means = found.groupby("model", sort=False).mean()
    ratios = means.filter(like="rarest, ")
    losses = means.drop(columns=ratios.columns)
    show("any_cells/losses", losses)
    show("any_cells/rarest", ratios.rename(columns=lambda name: name.removeprefix("rarest, ")), 2)
    at_most((found.loc["stack"] - found.loc["class shares"])[losses.columns], 0.005)

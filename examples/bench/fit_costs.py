"""Works whose CPU time and memory test_fit_cost measures, each in a process of its own.

It imports nothing but public names, so that an older checkout can be measured by it, too.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split

from bayesrbf import HybridMixtureClassifier, MixtureDensity, StackedClassifier
from bayesrbf.datasets import data_folder, load_table
from bench.peers import GENTLE, Boosting
from bench.tables import load, split

Table = tuple[Any, np.ndarray]
HALF: Final = "cc18_half.npz"
ADULT: Final = (2_000, 8_000, 32_000, 48_842)


def genes(name: str, n_columns: int | None = None) -> Table:
    """Two thirds of the rows of a table of genes, the first of its columns."""
    parts = (name,) if name == "colon" else (f"{name}_train", f"{name}_test")
    tables = [load_table(part) for part in parts]
    X = pd.concat([one.X.loc[:, ~one.X.columns.str.startswith("extra_")] for one in tables])
    y = np.concatenate([np.asarray(one.y) for one in tables])
    some, _, labels, _ = train_test_split(
        X.to_numpy(float), y, train_size=2 / 3, random_state=0, stratify=y
    )
    return some[:, :n_columns], labels


def made(n_rows: int, n_columns: int, n_classes: int) -> Table:
    """Classes that differ in three hidden directions, rows in random order."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_rows)
    hidden = rng.normal(size=(n_rows, 3)) + rng.normal(size=(n_classes, 3))[y]
    return hidden @ rng.normal(size=(3, n_columns)) + rng.normal(size=(n_rows, n_columns)), y


def published() -> list[str]:
    """Names of the tables of cc18_half."""
    return sorted({name.split("|")[0] for name in np.load(data_folder() / HALF).files})


def fold_of(name: str) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """The first of five folds of a published table: rows of the fit, then new ones."""
    arrays = np.load(data_folder() / HALF)
    X, y = pd.DataFrame(arrays[f"{name}|X"].astype(float)), arrays[f"{name}|y"].astype(int)
    for column in arrays[f"{name}|c"]:
        X[column] = pd.Categorical(X[column])
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    return X.iloc[train], y[train], X.iloc[test], y[test]


def of_table(name: str) -> dict[str, float]:
    """CPU seconds of a fit to a published table and its log loss, and those of a forest."""
    X, y, X_new, y_new = fold_of(name)
    told: dict[str, float] = {}
    stack, forest = StackedClassifier(random_state=0), RandomForestClassifier(500, random_state=0)
    for label, model, read in (("", stack, lambda cells: cells), ("forest ", forest, codes)):
        cells = read(X)
        told[f"{label}seconds"] = cpu(lambda: model.fit(cells, y))  # noqa: B023
        p = np.maximum(model.predict_proba(read(X_new)), 1e-6)
        true = np.searchsorted(model.classes_, y_new)
        told[f"{label}log loss"] = float(-np.log(p[np.arange(true.size), true]).mean())
    return told


def codes(X: pd.DataFrame) -> pd.DataFrame:
    """Numbers, and categories as their codes."""
    return X.apply(lambda column: column.cat.codes if column.dtype == "category" else column)


def of_adult(n_rows: int) -> dict[str, float]:
    """CPU seconds of a fit to rows of adult, and over those of boosting with 300 small trees."""
    data = load("adult")
    y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)[1]
    chosen = np.random.default_rng(0).permutation(y.size)[:n_rows]
    X, y = data.X.iloc[chosen], y[chosen]
    seconds = cpu(lambda: StackedClassifier(random_state=0).fit(X, y))
    rival = cpu(lambda: Boosting(0, **(GENTLE | {"max_iter": 300})).fit(X, y))
    return {"seconds": seconds, "over boosting": seconds / rival}


def of_intervals() -> dict[str, float]:
    """CPU seconds of the draws of a stack over those of the fit."""
    data = split("heart_cleveland", 0, False)
    model = StackedClassifier(random_state=0)
    fit = cpu(lambda: model.fit(data.X, data.y))
    draws = cpu(model.refine)
    return {"seconds": draws, "over the fit": draws / fit}


def fitted(table: Table) -> dict[str, float]:
    """CPU seconds of a fit to a table."""
    return {"seconds": cpu(lambda: StackedClassifier(random_state=0).fit(*table))}


def cpu(call: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def of_file(name: str, workers: int = 0) -> dict[str, float]:
    """CPU seconds of a fit to a million rows of a Parquet file, on workers of Dask if wanted."""
    X, y = made(1_000_000, 10, 2)
    models: dict[str, Any] = {
        "stack": StackedClassifier(random_state=0),
        "mixture": HybridMixtureClassifier(3, objective="likelihood", random_state=0),
        "density": MixtureDensity(8, random_state=0),
    }
    labels = () if name == "density" else ("label",)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        columns = [f"x{j}" for j in range(X.shape[1])]
        table = pd.DataFrame(X, columns=columns).assign(label=y.astype(str))
        table = table if labels else table.drop(columns="label")
        table.to_parquet(path, row_group_size=131_072)
        del X, y, table
        if not workers:
            return {"seconds": cpu(lambda: models[name].fit(str(path), *labels))}
        import dask.dataframe
        from distributed import Client, LocalCluster

        before = of_children()
        alone = {"threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(workers, **alone) as cluster, Client(cluster):
            blocks = dask.dataframe.read_parquet(path, split_row_groups=True)
            seconds = cpu(lambda: models[name].fit(blocks, *labels))
        return {"seconds": seconds + of_children() - before}


def of_children() -> float:
    """CPU seconds of the processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


WORKS: Final[dict[str, Callable[[], dict[str, float]]]] = {
    **{f"colon, 41 x {d:,}": lambda d=d: fitted(genes("colon", d)) for d in (100, 400, 2000)},  # type: ignore[misc]
    "leukemia, 48 x 7,129": lambda: fitted(genes("leukemia")),
    **{f"made, 300 x {d}": lambda d=d: fitted(made(300, d, 2)) for d in (100, 500)},  # type: ignore[misc]
    **{f"made, 1,600 x {d}, 10 classes": lambda d=d: fitted(made(1600, d, 10)) for d in (6, 64)},  # type: ignore[misc]
    "made, 1,000,000 x 10": lambda: fitted(made(1_000_000, 10, 2)),
    **{
        f"1,000,000 x 10 of Parquet, {name}": lambda name=name: of_file(name)  # type: ignore[misc]
        for name in ("stack", "mixture", "density")
    },
    **{
        f"1,000,000 x 10, two workers of Dask, {name}": lambda name=name: of_file(name, 2)  # type: ignore[misc]
        for name in ("mixture", "density")
    },
    "made, 1,600 x 64, 100 classes": lambda: fitted(made(1600, 64, 100)),
    **{f"adult, {n:,} rows": lambda n=n: of_adult(n) for n in ADULT},  # type: ignore[misc]
    "`refine()`, heart_cleveland": of_intervals,
}


def main(name: str) -> None:
    """Print what a work took, as JSON."""
    warnings.simplefilter("ignore")
    StackedClassifier(random_state=0).fit(*made(60, 3, 2))  # loads what is compiled
    told = WORKS[name]() if name in WORKS else of_table(name)
    told["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])

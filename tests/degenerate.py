"""Degenerate tables through every family and method: a right answer, or an error with a name.

``python -m tests.degenerate 3`` tries three seeds and prints what became of each cell of the grid.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesrbf

PACKAGE = Path(bayesrbf.__file__).parent
ROWS = 24
RIGHT, NAMED = "a right answer", "a named error"

Table = tuple[Any, np.ndarray]


def plain(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes three standard deviations apart in each of three columns; one row has a hole."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["no", "yes"], ROWS // 2)
    X = rng.normal(size=(ROWS, 3)) + 3.0 * (y == "yes")[:, None]
    X[1, 1] = np.nan
    return X, y


def columns(added: Callable[[np.ndarray, np.random.Generator], np.ndarray], seed: int) -> Table:
    """A plain table beside columns that are made from it."""
    X, y = plain(seed)
    more = added(X, np.random.default_rng(seed))
    return np.column_stack([X, more]), y


def one_row_class(seed: int) -> Table:
    X, y = plain(seed)
    return X, np.append("alone", y[1:])


def every_class_one_row(seed: int) -> Table:
    X, _ = plain(seed)
    return X[::6], np.array(["a", "b", "c", "d"])


def fifty_classes(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(50), 2)
    X = rng.normal(size=(100, 2)) + 8.0 * np.column_stack([codes % 7, codes // 7])
    return X, np.array([f"class {code:02}" for code in codes])


def one_class(seed: int) -> Table:
    X, y = plain(seed)
    return X, np.full(ROWS, y[0])


def without(rows: slice, columns: slice, seed: int) -> Table:
    """A plain table in which some cells are missing."""
    X, y = plain(seed)
    X[rows, columns] = np.nan
    return X, y


def some_rows(rows: np.ndarray, seed: int) -> Table:
    """Some rows of a plain table, in place of all."""
    X, y = plain(seed)
    return X[rows], y[rows]


def level_in_every_row(seed: int) -> Table:
    X, y = plain(seed)
    return pd.DataFrame(X, columns=list("abc")).assign(key=[f"id {i}" for i in range(ROWS)]), y


def with_cell(value: float, seed: int) -> Table:
    X, y = plain(seed)
    X[2, 0] = value
    return X, y


def of_size(factor: float, seed: int, offset: float = 0.0) -> Table:
    X, y = plain(seed)
    return X * factor + offset, y


def booleans(seed: int) -> Table:
    X, y = plain(seed)
    return X > 1.5, y


def read_only(X: np.ndarray) -> np.ndarray:
    X.flags.writeable = False
    return X


TABLES: dict[str, Callable[[int], Table]] = {
    "constant column": partial(columns, lambda X, rng: np.full(ROWS, 7.5)),
    "constant column of 1e8": partial(columns, lambda X, rng: np.full(ROWS, 1e8)),
    "collinear columns": partial(columns, lambda X, rng: X[:, :2] @ [[1.0], [-2.0]]),
    "duplicated columns": partial(columns, lambda X, rng: X),
    "all-missing column": partial(columns, lambda X, rng: np.full(ROWS, np.nan)),
    "column of one cell": partial(
        columns, lambda X, rng: np.append(1.0, np.full(ROWS - 1, np.nan))
    ),
    "more columns than rows": partial(columns, lambda X, rng: rng.normal(size=(ROWS, 27))),
    "class of one row": one_row_class,
    "every class one row": every_class_one_row,
    "fifty classes": fifty_classes,
    "one class": one_class,
    "one row": partial(some_rows, np.array([3])),
    "two rows": partial(some_rows, np.array([3, -3])),
    "every row six times": partial(some_rows, np.repeat([3, 4, -3, -4], 6)),
    "all rows equal": partial(some_rows, np.zeros(ROWS, int)),
    "row without a cell": partial(without, slice(3, 4), slice(None)),
    "column that a class lacks": partial(without, slice(ROWS // 2), slice(1)),
    "level in every row": level_in_every_row,
    "booleans": booleans,
    "cells beside 1e8": partial(of_size, 1.0, offset=1e8),
    "cell of 1e300": partial(with_cell, 1e300),
    "cell of 1e150": partial(with_cell, 1e150),
    "cell of 1e-300": partial(with_cell, 1e-300),
    "cells of size 1e300": partial(of_size, 1e300),
    "cells of size 1e-300": partial(of_size, 1e-300),
}

SINGLE = np.float32
SAME: dict[str, Callable[[np.ndarray], tuple[Any, Any]]] = {
    "float32": lambda X: (X.astype(SINGLE), X.astype(SINGLE).astype(float)),
    "big-endian": lambda X: (X.astype(">f8"), X),
    "read-only": lambda X: (read_only(X.copy()), X),
    "Fortran": lambda X: (np.asfortranarray(X), X),
    "strided": lambda X: (np.repeat(X, 2, axis=0)[::2], X),
}
"""Another array of the same numbers, and the usual one: the answers must be equal."""

Fit = Callable[[Any, np.ndarray, int], Any]


def fit(
    kind: type, X: Any, y: np.ndarray, seed: int, sample_weight: Any = None, **options: Any
) -> Any:
    return kind(random_state=seed, **options).fit(X, y, sample_weight=sample_weight)


def refined(method: str, how: dict[str, Any], family: Fit, X: Any, y: np.ndarray, seed: int) -> Any:
    return family(X, y, seed).refine(method, **how)


def regression(X: Any, y: np.ndarray, seed: int) -> Any:
    numbers = np.unique(y, return_inverse=True)[1] + np.random.default_rng(seed).normal(size=len(y))
    return fit(bayesrbf.RBFNetworkRegressor, X, numbers, seed, n_components=2, n_init=1)


FAMILIES: dict[str, Fit] = {
    "density": partial(fit, bayesrbf.MixtureDensity, n_components=2),
    "mixture": partial(fit, bayesrbf.HybridMixtureClassifier),
    "full mixture": partial(
        fit,
        bayesrbf.HybridMixtureClassifier,
        n_components=2,
        covariance_type="full",
        objective="likelihood",
        calibrate=False,
    ),
    "more components than rows": partial(
        fit,
        bayesrbf.HybridMixtureClassifier,
        n_components=50,
        covariance_type="tied",
        n_init=1,
        cv=2,
    ),
    "kernel network": partial(fit, bayesrbf.KernelNetworkClassifier),
    "RBF network": partial(fit, bayesrbf.RBFNetworkClassifier, n_components=2, n_init=1, cv=2),
    "RBF regression": regression,
    "sparse discriminative mixture": partial(fit, bayesrbf.SDGMClassifier, n_init=1, cv=2),
    "exemplars": partial(fit, bayesrbf.MedianLVQClassifier),
    "stack": partial(fit, bayesrbf.StackedClassifier, cv=2),
}
FEW: dict[str, dict[str, Any]] = {
    "laplace": {"draws": 6},
    "advi": {"draws": 6},
    "gibbs": {"draws": 3, "tune": 4, "chains": 2},
    "nuts": {"draws": 3, "tune": 10, "chains": 2},
    "bootstrap": {"draws": 3},
}
SAMPLED = {
    "density": ("laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "mixture": ("laplace", "advi", "nuts", "bootstrap"),
    "full mixture": ("laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "kernel network": ("laplace", "advi", "nuts", "bootstrap"),
    "RBF network": ("laplace", "advi", "nuts", "bootstrap"),
    "RBF regression": ("laplace", "advi", "nuts", "bootstrap"),
    "sparse discriminative mixture": ("laplace", "advi", "nuts", "bootstrap"),
    "exemplars": ("gibbs",),
    "stack": ("laplace", "nuts"),
}
SMALLER: dict[str, Fit] = FAMILIES | {
    "kernel network": partial(fit, bayesrbf.KernelNetworkClassifier, n_exemplars=10)
}
"""Fifty classes of a hundred exemplars are 5,000 weights, which no grid has time to draw."""
METHODS: dict[str, Fit] = FAMILIES | {
    f"{name}, {method}": partial(refined, method, FEW[method], SMALLER[name])
    for name, methods in SAMPLED.items()
    for method in methods
}


def answer(model: Any, X: Any) -> dict[str, np.ndarray]:
    """What a fitted model says of rows."""
    wanted = ("predict_proba", "score_samples", "predict")
    return {name: np.asarray(getattr(model, name)(X)) for name in wanted if hasattr(model, name)}


def wrong(said: dict[str, np.ndarray], y: np.ndarray, telling: bool) -> str:
    """What an answer lacks; empty if it is right."""
    for name, values in said.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return f"{name} is not finite"
    if "predict_proba" in said:
        p = said["predict_proba"]
        if (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > 1e-12:
            return "probabilities that are none"
        if telling and np.mean(said["predict"] == y) < 0.8:
            return f"{np.mean(said['predict'] == y):.0%} of the rows are told right"
    return ""


def tried(work: Callable[[], str]) -> str:
    """Outcome of a trial: what is wrong with its answer, or the error that it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return work() or RIGHT
        except (ValueError, TypeError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            ours = PACKAGE in Path(last.filename).parents
            checked = "sklearn" in last.filename and "validation" in last.filename
            if type(error) in (ValueError, TypeError) and (ours or checked):
                return NAMED
            return f"{type(error).__name__} from {Path(last.filename).name}: {error}"
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} from {Path(last.filename).name}: {error}"


UNTOLD = (
    "class of one row",
    "every class one row",
    "fifty classes",
    "one row",
    "two rows",
    "level in every row",
    "booleans",
    "more columns than rows",
)
"""Tables whose own rows need not be told right."""


def degenerate(method: str, table: str, seed: int) -> str:
    """Outcome of one method on one table."""
    X, y = TABLES[table](seed)

    def work() -> str:
        model = METHODS[method](X, y, seed)
        telling = hasattr(model, "classes_") and table not in UNTOLD and ", " not in method
        return wrong(answer(model, X), y, telling)

    return tried(work)


def same(method: str, kind: str, seed: int) -> str:
    """Outcome of one method on another array of the same numbers."""
    X, y = plain(seed)
    other, usual = SAME[kind](X)

    def work() -> str:
        expected = answer(METHODS[method](usual, y, seed), usual)
        found = answer(METHODS[method](other, y, seed), other)
        equal = all(np.array_equal(found[name], value) for name, value in expected.items())
        return "" if equal else "the answer is another"

    return tried(work)


def grid(seeds: int, methods: list[str], every: int = 1) -> Iterator[tuple[str, str]]:
    """Method and table, and the outcome; the next method takes the tables that one left out."""
    for method in methods:
        some = slice(list(METHODS).index(method) % every, None, every)
        for seed in range(seeds):
            for table in list(TABLES)[some]:
                yield f"{method}, {table}, seed {seed}", degenerate(method, table, seed)
            for kind in list(SAME)[some]:
                yield f"{method}, {kind}, seed {seed}", same(method, kind, seed)


def counted(cells: Iterator[tuple[str, str]]) -> tuple[Counter[str], list[str]]:
    """Number of each outcome, and in words those that are neither right nor named."""
    counts: Counter[str] = Counter()
    through = []
    for cell, outcome in cells:
        good = outcome in (RIGHT, NAMED)
        counts[outcome if good else "other"] += 1
        if not good:
            through.append(f"{cell}: {outcome}")
    return counts, through


def main(seeds: int = 1, *chosen: str) -> int:
    """Print the outcomes of every method."""
    wrong = 0
    for method in chosen or METHODS:
        counts, through = counted(grid(seeds, [method]))
        wrong += len(through)
        print(f"{method}: {dict(counts)}", *through, sep="\n    ", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2]), *sys.argv[2:]))

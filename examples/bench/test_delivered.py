"""Is what is given out after any ``refine`` as good as the point, and within its interval?

For every classifier and method: log loss on new rows of what is delivered less that of the point
estimate, in nats, and the share of cells (a row and a class) that lie outside their own interval of
90 %. Rows of real tables with their own labels, some of each half to learn from and to judge by.

``BAYESRBF_TABLES``, ``BAYESRBF_METHODS`` (such as ``mixture``) and ``BAYESRBF_INFERENCE`` choose
(beginnings of names, with commas), ``BAYESRBF_SEEDS`` sets the number of splits (3). Results are
kept as they come.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pandas as pd

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.base.arrays import log_loss
from bench.figures import Row, show
from bench.stack_tables import CHOSEN, FRESH, Split, split
from bench.test_stack import chosen
from tests.cases import generative
from tests.measured import part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
TRAINING, TESTED = 200, 300
WORSE, OUTSIDE = 0.001, 0.0
"""What delivered probabilities may lose in the mean, in nats, and the share outside."""
QUICK = ("laplace", "bootstrap", "advi", "nuts")
CLASSIFIERS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "mixture": (HybridMixtureClassifier, QUICK),
    "mixture, likelihood": (generative, ("laplace", "gibbs", "bootstrap", "advi", "nuts")),
    "network": (partial(RBFNetworkClassifier, n_init=2), QUICK),
    "network, untempered": (partial(RBFNetworkClassifier, n_init=2, calibrate=False), QUICK),
    "kernel": (KernelNetworkClassifier, QUICK),
    "exemplars": (partial(MedianLVQClassifier, calibrate=False), ("gibbs", "laplace")),
    "sdgm": (partial(SDGMClassifier, n_init=1), QUICK),
    "lite": (partial(StackedClassifier, "lite"), ("laplace", "bootstrap", "nuts")),
    "stack": (StackedClassifier, ("laplace", "bootstrap", "nuts")),
}
"""Classifiers and the methods that draw from them, the fast ones first."""


def some(name: str, seed: int) -> Split:
    """A few rows of both halves of a table."""
    data = split(name, seed, False)
    learnt, new = slice(TRAINING), slice(TESTED)
    return Split(data.X[learnt], data.y[learnt], data.X_new[new], data.y_new[new])


def results() -> Iterator[Row]:
    """Every classifier and method on every split: fast methods first, then splits, then tables."""
    for place in range(max(len(methods) for _, methods in CLASSIFIERS.values())):
        for seed in range(SEEDS):
            for name in chosen((*CHOSEN, *FRESH), "BAYESRBF_TABLES"):
                data = cache(partial(some, name, seed))
                for classifier in chosen(CLASSIFIERS, "BAYESRBF_METHODS"):
                    methods = CLASSIFIERS[classifier][1][place : place + 1]
                    for method in chosen(methods, "BAYESRBF_INFERENCE"):
                        key = {"model": classifier, "method": method, "table": name, "seed": seed}
                        yield part(
                            "delivered", key, lambda key=key, data=data: figures(data(), **key)
                        )


def figures(data: Split, model: str, method: str, table: str, seed: int) -> Row:
    """What is lost against the point, and the share of cells outside their interval."""
    fitted = CLASSIFIERS[model][0](random_state=seed)
    seen = [label in set(data.y) for label in data.y_new]
    X, y = data.X_new[seen], data.y_new[seen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(data.X, data.y)
        codes = fitted.classes_.searchsorted(y)
        point = fitted.predict_proba(X)
        fitted.refine(method)
        delivered, told = fitted.predict_proba(X), fitted.uncertainty(X)
    lower, upper = told["lower"].to_numpy(), told["upper"].to_numpy()
    return {
        "worse": float(log_loss(delivered, codes).mean() - log_loss(point, codes).mean()),
        "outside": float(((delivered < lower) | (upper < delivered)).mean()),
    }


def test_what_is_delivered(data_folder: object) -> None:
    found = pd.DataFrame(results())
    by_table = found.groupby(["model", "method", "table"], sort=False)[["worse", "outside"]].mean()
    by_method = by_table.groupby(["model", "method"], sort=False)
    told = by_method.mean()
    told["s.e."], told["tables"] = by_method["worse"].sem(), by_method.size()
    counts = {
        "tables": (found["table"].nunique(), len(CHOSEN) + len(FRESH)),
        "splits": (SEEDS, 3),
        "pairs of a classifier and a method": (
            len(told), sum(len(methods) for _, methods in CLASSIFIERS.values())
        ),
    }  # fmt: skip
    show("delivered", told, 5, counts, commits=found["commit"])
    assert (told["worse"] <= WORSE).all()
    assert (told["outside"] <= OUTSIDE).all()

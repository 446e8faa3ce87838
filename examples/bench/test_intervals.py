"""Do intervals of class probabilities hold the truth, of complete rows and given any set of cells?

Complete rows are those of real tables, with labels of teachers of other families, so that the truth
is known at every row (``teachers.py``). Rows of which p(y | any cells) is known are drawn from
Gaussian copulas of real tables, with labels of a teacher (``copulas.py``); models are fitted to
complete rows, then cells of new rows are hidden. Each table has one teacher, in turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import expit, logit, rel_entr
from sklearn.linear_model import LogisticRegression

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bench import copulas
from bench.copulas import Copula
from bench.figures import Row, show
from bench.peers import numbers_for
from bench.teachers import TEACHERS, Taught, probabilities, rows_of, taught

LEVELS: Final = (0.5, 0.8, 0.9)
ROWS: Final = 200
REFITS: Final = 30
SMALLEST: Final = 1e-4
"""Probabilities are held this far from 0 and 1 before their log odds are taken."""
DEVIATIONS: Final = (0.674, 1.282, 1.645)
"""Half widths of normal intervals at the levels, in standard deviations."""
TABLES: Final = (
    "breast_cancer",
    "glass",
    "heart_cleveland",
    "heart_statlog",
    "hepatitis",
    "iris",
    "pima_uci_missing",
    "raetsch_thyroid",
    "ripley_synth",
    "vehicle",
    "vowel",
    "wine",
)
OF_COPULAS: Final = (
    "iris",
    "wine",
    "raetsch_thyroid",
    "pima_uci_missing",
    "glass",
    "vehicle",
    "breast_cancer",
    "raetsch_waveform",
)
NEW_ROWS: Final = 150
SHARES: Final = (0.0, 0.3, 0.6, 0.8, 0.95)


@dataclass(frozen=True)
class Said:
    """What a model says about new rows.

    ``delivered`` is (obs, label). ``ends`` has the lower and upper ends at every level: (level, 2,
    obs, label).
    """

    delivered: np.ndarray
    ends: np.ndarray


Contestant = Callable[[Taught], Said]


def ours(make: Callable[..., Any], method: str, **options: object) -> Contestant:
    """A classifier of this package, with intervals by draws of a method."""

    def say(data: Taught) -> Said:
        model = make(random_state=0).fit(data.X, data.y).refine(method, **options)
        told = [model.uncertainty(data.X_new, prob=level) for level in LEVELS]
        ends = [[one["lower"].to_numpy(), one["upper"].to_numpy()] for one in told]
        return Said(model.predict_proba(data.X_new), np.array(ends))

    return say


def bootstrapped(data: Taught) -> Said:
    """Logistic regression and its refits to rows drawn with replacement.

    Their spread in log odds is scaled by one factor, so that intervals of 90 % hold the truth about
    as often as they say: no user could do that.
    """
    rng = np.random.default_rng(0)
    n_obs, n_classes = len(data.y), data.truth.shape[1]

    def fitted(rows: np.ndarray) -> np.ndarray:
        model = numbers_for(LogisticRegression(max_iter=2000))
        p = np.zeros(data.truth.shape)
        seen = np.isin(np.arange(n_classes), data.y[rows])
        p[:, seen] = model.fit(data.X.iloc[rows], data.y[rows]).predict_proba(data.X_new)
        return p

    point = fitted(np.arange(n_obs))
    refits = np.array([fitted(rng.integers(n_obs, size=n_obs)) for _ in range(REFITS)])
    centre = log_odds(point)
    spread = np.maximum((log_odds(refits) - centre).std(axis=0), 1e-9)
    errors = np.abs(log_odds(data.truth) - centre) / spread
    spread *= np.quantile(errors, LEVELS[-1]) / DEVIATIONS[-1]
    return Said(
        point, np.array([expit([centre - z * spread, centre + z * spread]) for z in DEVIATIONS])
    )


def log_odds(p: np.ndarray) -> np.ndarray:
    """Log odds of every class against all others."""
    return logit(np.clip(p, SMALLEST, 1 - SMALLEST))


CONTESTANTS: Final[dict[str, Contestant]] = {
    "stack": ours(StackedClassifier, "bootstrap"),
    "mixture, beside other kinds": ours(HybridMixtureClassifier, "laplace", model_doubt="pool"),
    "mixture": ours(HybridMixtureClassifier, "laplace"),
    "kernel network": ours(KernelNetworkClassifier, "laplace"),
    "logistic regression, bootstrap, scaled": bootstrapped,
}


def judge(said: Said, truth: np.ndarray) -> Row:
    """Coverage by level, width, divergence; of two classes only the second counts."""
    some = slice(1, None) if truth.shape[1] == 2 else slice(None)
    lower, upper = said.ends[:, 0, :, some], said.ends[:, 1, :, some]
    held = (lower <= truth[:, some]) & (truth[:, some] <= upper)
    return {
        **{f"{level:.0%}": float(held[k].mean()) for k, level in enumerate(LEVELS)},
        "width": float((upper - lower)[-1].mean()),
        "divergence": divergence(truth, said.delivered),
    }


def divergence(truth: np.ndarray, p: np.ndarray) -> float:
    """Mean Kullback-Leibler divergence of predictions from the truth, in nats."""
    return float(rel_entr(truth, np.clip(p, 1e-12, 1)).sum(axis=1).mean())


def rows_for(place: int, table: str) -> Taught:
    """Rows of a table with labels drawn from its teacher; every class has a row to learn from."""
    X, y = rows_of(table)
    truth = probabilities([*TEACHERS][place % len(TEACHERS)], X, y)
    drawn = (taught(X, truth, ROWS, seed) for seed in range(100))
    return next(data for data in drawn if data is not None)


def complete() -> Iterator[Row]:
    """Every contestant on every table."""
    for place, table in enumerate(TABLES):
        data = rows_for(place, table)
        for model, say in CONTESTANTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield {"table": table, "model": model, **judge(say(data), data.truth)}
        print(table, flush=True)


def test_intervals(data_folder: object) -> None:
    rows = pd.DataFrame(complete())
    by_model = rows.drop(columns="table").groupby("model", sort=False)
    told = by_model.mean()
    told.insert(3, "se of 90%", by_model["90%"].sem())
    told.insert(4, "lowest table", by_model["90%"].min())
    show("intervals/complete", told)
    assert told.loc["stack", "90%"] + 2 * told.loc["stack", "se of 90%"] > 0.9


FAMILIES: Final[dict[str, Callable[..., Any]]] = {
    "stack": StackedClassifier,
    "mixture": HybridMixtureClassifier,
}


def masks(n_columns: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Which cells are hidden, by the name of the pattern."""
    u = rng.random((NEW_ROWS, n_columns))
    for share in SHARES:
        yield f"{share:.0%}", u < share
    yield "one column alone", u != u.min(axis=1, keepdims=True)


def of_any_cells(model: str, copula: Copula) -> Iterator[Row]:
    """What is judged of one model on one table, a pattern of hidden cells at a time."""
    rng = np.random.default_rng(0)
    scores = copula.scores(ROWS + NEW_ROWS, rng)
    p = copula.probabilities(scores[:ROWS])
    y = (p.cumsum(axis=1) > rng.random((ROWS, 1))).argmax(axis=1)
    present = np.unique(y)  # A class that no row has is left out of what is judged.
    X = copula.cells(scores)
    fitted = FAMILIES[model](random_state=0).fit(X[:ROWS], y).refine("bootstrap")
    some = slice(1, None) if present.size == 2 else slice(None)
    for pattern, hidden in masks(X.shape[1], rng):
        truth = copula.given(scores[ROWS:], hidden, rng)[:, present]
        truth /= truth.sum(axis=1, keepdims=True)
        said = fitted.uncertainty(X[ROWS:].mask(hidden), prob=LEVELS[-1])
        lower, upper = (said[end].to_numpy()[:, some] for end in ("lower", "upper"))
        delivered = said["probability"].to_numpy()
        rarest = truth.mean(axis=0).argmin()
        yield {
            "model": model,
            "cells hidden": pattern,
            "90%": float(((lower <= truth[:, some]) & (truth[:, some] <= upper)).mean()),
            "width": float((upper - lower).mean()),
            "divergence": divergence(truth, delivered),
            "rarest class": float(delivered[:, rarest].mean() / truth[:, rarest].mean()),
        }


def test_intervals_of_any_cells(data_folder: object) -> None:
    rows: list[Row] = []
    for place, table in enumerate(OF_COPULAS):
        teacher = [*copulas.TEACHERS][place % len(copulas.TEACHERS)]
        copula = Copula.of(table, teacher)
        for model in FAMILIES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += of_any_cells(model, copula)
        print(table, teacher, flush=True)
    by_pattern = pd.DataFrame(rows).groupby(["model", "cells hidden"], sort=False)
    told = by_pattern.mean()
    told.insert(1, "se of 90%", by_pattern["90%"].sem())
    show("intervals/any_cells", told)
    held = told.loc["stack"]
    assert (held["90%"] + 2 * held["se of 90%"] > 0.9).all(), held

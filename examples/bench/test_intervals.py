"""Do intervals of class probabilities hold the truth, of complete rows and given any set of cells?

The truth is known in four ways. Cells of a cross-table of many rows have a frequency
(``frequencies.py``). Normal columns with labels of a formula have their law given any cells
(``truths.py``). Complete rows of real tables have labels of teachers of other families
(``teachers.py``). Rows of which p(y | any cells) is known are drawn from Gaussian copulas of real
tables, with labels of a teacher (``copulas.py``); models are fitted to complete rows, then cells of
new rows are hidden. Each table has one teacher, in turn. There and on real tables, a stack is also
asked with one member more: a stand-in for a pretrained model.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bench import copulas
from bench.copulas import Copula
from bench.figures import Row, at_least, at_most, show
from bench.frequencies import LEAST, Cells, CrossTable
from bench.peers import InContext, codes_for, logistic, numbers_for
from bench.tables import split
from bench.teachers import TEACHERS, Taught, probabilities, rows_of, taught
from bench.truths import TRUTHS, Truth

LEVELS: Final = (0.5, 0.8, 0.9)
LEAST_HELD: Final = 0.88
"""Of truths, by intervals of 90 %."""
ROWS: Final = 200
REFITS: Final = 30
DRAWS: Final = 200
MISS: Final = 20
"""Price of a miss in the interval score of 90 %: 2 over the share that may lie outside."""
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


Ask = Callable[[pd.DataFrame], Said]
Contestant = Callable[[pd.DataFrame, np.ndarray], Ask]
"""Fits rows with labels, and is then asked about new ones."""


def ours(make: Callable[..., Any], method: str, **options: object) -> Contestant:
    """A classifier of this package, with intervals by draws of a method."""

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        model = make(random_state=0).fit(X, y).refine(method, **options)

        def ask(X_new: pd.DataFrame) -> Said:
            told = [model.uncertainty(X_new, prob=level) for level in LEVELS]
            ends = [[one["lower"].to_numpy(), one["upper"].to_numpy()] for one in told]
            return Said(told[0]["probability"].to_numpy(), np.array(ends))

        return ask

    return fit


def of_draws(point: np.ndarray, draws: np.ndarray) -> Said:
    """Intervals between quantiles of draws."""
    tails = [[(1 - level) / 2, (1 + level) / 2] for level in LEVELS]
    return Said(point, np.quantile(draws, tails, axis=0))


def bootstrapped(X: pd.DataFrame, y: np.ndarray) -> Ask:
    """Logistic regression and its refits to rows drawn with replacement.

    Its penalty is chosen once, with all rows.
    """
    rng, n_classes = np.random.default_rng(0), y.max() + 1
    penalty = float(logistic(0).fit(X, y)[-1].C_)

    def fitted(rows: np.ndarray) -> Callable[[pd.DataFrame], np.ndarray]:
        chosen = LogisticRegression(C=penalty, max_iter=1000)
        model = numbers_for(chosen).fit(X.iloc[rows], y[rows])
        seen = np.unique(y[rows])
        return lambda X_new: np.eye(n_classes)[seen].T @ model.predict_proba(X_new).T

    def drawn() -> np.ndarray:
        rows = rng.integers(y.size, size=y.size)
        return drawn() if np.bincount(y[rows], minlength=n_classes).min() < 5 else rows

    point, refits = fitted(np.arange(y.size)), [fitted(drawn()) for _ in range(REFITS)]
    return lambda X_new: of_draws(point(X_new).T, np.array([one(X_new).T for one in refits]))


def normal(prior_sd: float | None) -> Contestant:
    """Logistic regression with normal weights; draws from the normal law around their mode.

    Columns have unit scale. Flat priors make it maximum likelihood with the delta method; None: the
    standard deviation is chosen by held-out log loss.
    """

    def fit(X: pd.DataFrame, y: np.ndarray) -> Ask:
        variance = float(logistic(0).fit(X, y)[-1].C_) if prior_sd is None else prior_sd**2
        model = numbers_for(LogisticRegression(C=variance, max_iter=5000)).fit(X, y)
        columns, mode = model[:-1], model[-1]
        weights = np.c_[mode.intercept_, mode.coef_]
        cells = with_constant(columns.transform(X))
        p = model.predict_proba(X)[:, -len(weights) :]
        curvature = p[:, :, None] * (np.eye(len(weights)) - p[:, None])
        information = np.einsum("ncd,ni,nj->cidj", curvature, cells, cells)
        information = information.reshape(weights.size, weights.size)
        covariance = np.linalg.pinv(information + np.eye(weights.size) / variance)
        rng = np.random.default_rng(0)
        draws = rng.multivariate_normal(weights.ravel(), covariance, DRAWS, method="eigh")

        def ask(X_new: pd.DataFrame) -> Said:
            new = with_constant(columns.transform(X_new))
            eta = np.einsum("sci,ni->snc", draws.reshape(-1, *weights.shape), new)
            if eta.shape[2] == 1:
                eta = np.concatenate([np.zeros_like(eta), eta], axis=2)
            return of_draws(model.predict_proba(X_new), softmax(eta, axis=2))

        return ask

    return fit


def with_constant(cells: np.ndarray) -> np.ndarray:
    """Cells behind a column of ones."""
    return np.column_stack([np.ones(len(cells)), cells])


def venn_abers(X: pd.DataFrame, y: np.ndarray) -> Ask:
    """Venn-Abers predictors of two classes around a logistic regression, rows out of fold.

    An interval is between the isotonic fits with the new row in the one class and in the other. It
    has no level: it stands for all of them.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_predict(logistic(0), X, y, cv=folds, method="predict_proba")[:, 1]
    model = logistic(0).fit(X, y)

    def isotonic(score: float, label: int) -> float:
        curve = IsotonicRegression().fit(np.append(scores, score), np.append(y, label))
        return float(curve.predict([score])[0])

    def ask(X_new: pd.DataFrame) -> Said:
        new = model.predict_proba(X_new)[:, 1]
        low, high = np.array([[isotonic(one, label) for label in (0, 1)] for one in new]).T
        p = high / (1 - low + high)
        ends = np.stack([np.c_[1 - high, low], np.c_[1 - low, high]])
        return Said(np.c_[1 - p, p], np.stack([ends] * len(LEVELS)))

    return ask


FREQUENCY_ROWS: Final = (100, 200, 400, 800)
FREQUENCY_DRAWS: Final = 4
ENOUGH: Final = 20
"""Rows of a cell whose frequency is taken for a probability: that of fewer is itself chance."""
LEAST_OF_A_TABLE: Final = 0.75
"""Of the frequencies of such cells of every cross-table, by intervals of 90 %."""
STACK: Final[dict[str, Contestant]] = {"stack": ours(StackedClassifier, "laplace")}
PEERS: Final[dict[str, Contestant]] = {
    "logistic regression, delta method": normal(100.0),
    "logistic regression, bootstrap": bootstrapped,
    "Bayesian logistic regression": normal(None),
}
CONTESTANTS: Final[dict[str, Contestant]] = (
    STACK
    | {
        "mixture, beside other kinds": ours(HybridMixtureClassifier, "laplace", model_doubt="pool"),
        "mixture": ours(HybridMixtureClassifier, "laplace"),
        "kernel network": ours(KernelNetworkClassifier, "laplace"),
    }
    | PEERS
)

OF_FREQUENCIES: Final = STACK | PEERS | {"Venn-Abers": venn_abers}


def judge(said: Said, truth: np.ndarray) -> Row:
    """Coverage by level, width, interval score, divergence; of two classes the second counts.

    The score of an interval of 90 % is its width and 20 times what the truth lies outside.
    """
    some = slice(1, None) if truth.shape[1] == 2 else slice(None)
    lower, upper = said.ends[:, 0, :, some], said.ends[:, 1, :, some]
    held = (lower <= truth[:, some]) & (truth[:, some] <= upper)
    width = (upper - lower)[-1]
    outside = np.maximum(lower[-1] - truth[:, some], truth[:, some] - upper[-1])
    return {
        **{f"{level:.0%}": float(held[k].mean()) for k, level in enumerate(LEVELS)},
        "width": float(width.mean()),
        "score": float((width + MISS * np.maximum(outside, 0)).mean()),
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
        for model, fit in CONTESTANTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = fit(data.X, data.y)(data.X_new)
            yield {"table": table, "model": model, **judge(said, data.truth)}
        print(table, flush=True)


def test_intervals(data_folder: object) -> None:
    rows = pd.DataFrame(complete())
    by_model = rows.drop(columns="table").groupby("model", sort=False)
    told = by_model.mean()
    told.insert(3, "se of 90%", by_model["90%"].sem())
    told.insert(4, "lowest table", by_model["90%"].min())
    show("intervals/complete", told)
    at_least(rows.loc[rows["model"] == "stack", "90%"], LEAST_HELD)


def by_frequency() -> Iterator[Row]:
    """Every contestant on cells of cross-tables, complete and with one column hidden."""
    for table in LEAST:
        whole = CrossTable.of(table)
        views = list(whole.cells())
        for n, draw in itertools.product(FREQUENCY_ROWS, range(FREQUENCY_DRAWS)):
            X, y = whole.drawn(n, np.random.default_rng([n, draw]))
            for model, fit in OF_FREQUENCIES.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ask = fit(X, y)
                    for hidden, cells in views:
                        about = {"table": table, "model": model, "rows": n, "draw": draw}
                        about["hidden"] = "no column" if hidden is None else "one column"
                        yield about | judge_cells(ask(cells.X), cells)
        print(table, flush=True)


def judge_cells(said: Said, cells: Cells) -> Row:
    """What is judged of the cells of a cross-table, each cell alike, and coverage by rows."""
    truth = np.column_stack([1 - cells.frequency, cells.frequency])
    found = judge(said, truth)
    lower, upper = said.ends[-1, :, :, 1]
    held = (lower <= cells.frequency) & (cells.frequency <= upper)
    error = np.abs(said.delivered[:, 1] - cells.frequency).mean()
    kept = {name: found[name] for name in ("90%", "width", "score")}
    kept["90%, 20 rows"] = float(held[cells.size >= ENOUGH].mean())
    return kept | {"90%, by rows": float(cells.share @ held), "error": float(error)}


def test_intervals_by_frequency(data_folder: object) -> None:
    rows = pd.DataFrame(by_frequency())
    of_fit = rows.groupby(["table", "model", "rows", "draw", "hidden"], sort=False).mean()
    of_table = of_fit.groupby(["table", "model", "rows", "hidden"], sort=False).mean()
    means = of_table.groupby(["model", "hidden"], sort=False).mean()
    columns = ["90%", "90%, 20 rows", "90%, by rows", "width", "error", "score"]
    show("intervals/frequencies", means[columns])
    stack = of_table.xs("stack", level="model")
    by_rows = stack.groupby(["hidden", "rows"], sort=False)[columns].mean()
    by_rows["width over error"] = by_rows["width"] / by_rows["error"]
    show("intervals/by_rows", by_rows)
    cells = stack["90%, 20 rows"].unstack("rows").reorder_levels(["hidden", "table"]).sort_index()
    show("intervals/cross_tables", cells.rename(columns="{} rows".format), 2)
    fits = of_fit.xs("stack", level="model")["90%, 20 rows"].unstack("hidden")
    for _, of_one in fits.groupby("table"):
        at_least(of_one["no column"], LEAST_OF_A_TABLE)


TRUTH_ROWS: Final = 300
TRUTH_FITS: Final = 4
ASKED: Final = 200
OF_TRAINING: Final = 0.3
"""Share of the cells of training that are hidden in half of the fits."""
LEAST_OF_A_TRUTH: Final = 0.85
MOST_SCORE: Final = {"no training cell": 0.31, "30%": 0.38}
"""Interval score over the five patterns of holes, by what is hidden of training."""


def of_truth(name: str, truth: Truth, seed: int, hidden_of_training: float) -> Iterator[Row]:
    """What is judged of a stack on rows of known law, a pattern of hidden columns at a time."""
    rng = np.random.default_rng([seed, 7])
    X, y = truth.drawn(TRUTH_ROWS, rng)
    X_new, _ = truth.drawn(ASKED, rng)
    X = X.mask(rng.random(X.shape) < hidden_of_training)
    ask = STACK["stack"](X, y)
    about = {"truth": name, "of training": "30%" if hidden_of_training else "no training cell"}
    for pattern, hidden in truth.patterns():
        whole = np.isin(np.arange(X.shape[1]), hidden)
        told = judge(ask(X_new.mask(np.tile(whole, (ASKED, 1)))), truth.given(X_new, hidden))
        yield about | {"hidden": pattern} | {name: told[name] for name in ("90%", "width", "score")}


@pytest.mark.parametrize("share", [0.0, OF_TRAINING])
def test_intervals_of_hidden_columns(share: float) -> None:
    """Of rows with a telling column and without, by their formula."""
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, truth in TRUTHS.items():
            for seed in range(TRUTH_FITS):
                rows += of_truth(name, truth, seed, share)
            print(name, flush=True)
    found = pd.DataFrame(rows)
    of_training = str(found.pop("of training")[0])
    some = "hidden_columns" if share == 0 else "hidden_columns_of_training"
    told = found[found["hidden"] != "nothing"]
    by_truth = told.drop(columns="hidden").groupby("truth", sort=False)
    show(f"intervals/{some}", found.drop(columns="truth").groupby("hidden", sort=False).mean())
    show(f"intervals/{some}_by_truth", by_truth.mean())
    by_fit = told["90%"].groupby([told["truth"], np.arange(len(told)) // 5], sort=False).mean()
    for _, fits in by_fit.groupby("truth"):
        at_least(fits, LEAST_OF_A_TRUTH)
    at_most(by_truth["score"].mean(), MOST_SCORE[of_training])


FAMILIES: Final[dict[str, Contestant]] = {
    "stack": ours(StackedClassifier, "laplace"),
    "mixture": ours(HybridMixtureClassifier, "bootstrap"),
}


def masks(
    n_columns: int, rng: np.random.Generator, shares: Sequence[float]
) -> Iterator[tuple[str, np.ndarray]]:
    """Which cells are hidden, by the name of the pattern."""
    u = rng.random((NEW_ROWS, n_columns))
    for share in shares:
        yield f"{share:.0%}", u < share
    yield "one column alone", u != u.min(axis=1, keepdims=True)


def of_any_cells(
    model: str, fit: Contestant, copula: Copula, shares: Sequence[float] = SHARES
) -> Iterator[Row]:
    """What is judged of one model on one table, a pattern of hidden cells at a time."""
    rng = np.random.default_rng(0)
    scores = copula.scores(ROWS + NEW_ROWS, rng)
    y = copula.labels(scores[:ROWS], rng)
    present = np.unique(y)  # A class that no row has is left out of what is judged.
    X = copula.cells(scores)
    ask = fit(X[:ROWS], y)
    for pattern, hidden in masks(X.shape[1], rng, shares):
        truth = copula.given(scores[ROWS:], hidden, rng)[:, present]
        truth /= truth.sum(axis=1, keepdims=True)
        said = ask(X[ROWS:].mask(hidden))
        judged, delivered = judge(said, truth), said.delivered
        rarest = truth.mean(axis=0).argmin()
        yield {
            "model": model,
            "cells hidden": pattern,
            **{key: judged[key] for key in ("90%", "width", "score", "divergence")},
            "rarest class": float(delivered[:, rarest].mean() / truth[:, rarest].mean()),
        }


def by_table(found: pd.DataFrame, value: str) -> pd.DataFrame:
    """A value by table, a column for each pattern of hidden cells."""
    return found.pivot_table(value, "table", "cells hidden", sort=False)


def of_copulas() -> Iterator[tuple[str, Copula]]:
    """Every table with the teacher whose turn it is."""
    for place, table in enumerate(OF_COPULAS):
        yield table, Copula.of(table, [*copulas.TEACHERS][place % len(copulas.TEACHERS)])


def test_intervals_of_any_cells(data_folder: object) -> None:
    rows: list[Row] = []
    for table, copula in of_copulas():
        for model, fit in FAMILIES.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += ({"table": table} | row for row in of_any_cells(model, fit, copula))
        print(table, flush=True)
    found = pd.DataFrame(rows)
    by_pattern = found.drop(columns="table").groupby(["model", "cells hidden"], sort=False)
    told = by_pattern.mean()
    told.insert(1, "se of 90%", by_pattern["90%"].sem())
    show("intervals/any_cells", told)
    at_least(by_table(found[found["model"] == "stack"], "90%"), LEAST_HELD)


REAL: Final = ("sonar", "glass", "heart_statlog", "pima_uci_missing")
FEW_SHARES: Final = (0.0, 0.3, 0.7)
EARLIER_ROWS: Final = 600
"""Rows of the same law that the better stand-in has in its context."""


def stack_with(**settings: Any) -> Callable[..., Any]:
    """The default stack with a stand-in for a pretrained model as one more member."""
    return partial(StackedClassifier, extra=[("stand-in", codes_for(InContext(**settings)))])


def pooled(table: str) -> Iterator[Row]:
    """Halves of a real table: a stand-in, the stack, and the stack with it."""
    data = split(table, 0, holes=False)
    u = np.random.default_rng(0).random(data.X_new.shape)
    rows: list[Row] = [{"table": table, "cells hidden": f"{share:.0%}"} for share in FEW_SHARES]
    alone = codes_for(InContext()).fit(data.X, data.y)
    for what, make in {"stack": StackedClassifier, "with it": stack_with()}.items():
        start = time.process_time()
        model = make(random_state=0).fit(data.X, data.y)
        seconds = time.process_time() - start
        model.refine()
        for row, share in zip(rows, FEW_SHARES, strict=True):
            X = data.X_new.mask(u < share)
            told = model.uncertainty(X)
            row["loss, it alone"] = loss(alone.predict_proba(X), data.y_new)
            row[f"loss, {what}"] = loss(told["probability"].to_numpy(), data.y_new)
            row[f"width, {what}"] = float((told["upper"] - told["lower"]).mean())
            row[f"seconds, {what}"] = seconds
    yield from ({**row, "weight": float(model.weights_[-1])} for row in rows)


def loss(p: np.ndarray, y: np.ndarray) -> float:
    """Mean log loss in nats."""
    return float(-np.log(np.clip(p[np.arange(y.size), y], 1e-12, 1)).mean())


def test_a_pretrained_member(data_folder: object) -> None:
    """What a stand-in for a pretrained model does to losses and intervals of the default stack."""
    rows: list[Row] = []
    told: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in REAL:
            rows += pooled(table)
        for table, copula in of_copulas():
            rng = np.random.default_rng(1)
            earlier = copula.scores(EARLIER_ROWS, rng)
            more = copula.cells(earlier).to_numpy(), copula.labels(earlier, rng)
            makes = {
                "stack": StackedClassifier,
                "with the stand-in": stack_with(),
                f"with one of {EARLIER_ROWS} rows more": stack_with(pretraining=more),
            }
            for model, make in makes.items():
                asked = of_any_cells(model, ours(make, "laplace"), copula, FEW_SHARES)
                told += ({"table": table} | row for row in asked)
            print(table, flush=True)
    losses = pd.DataFrame(rows)
    kinds = ("loss", "width", "seconds")
    columns = ["table", "cells hidden", "loss, it alone", "weight"]
    columns[3:3] = [f"{kind}, {what}" for kind in kinds for what in ("stack", "with it")]
    show("pretrained/tables", losses[columns], dict.fromkeys(columns[-3:], 2))
    found = pd.DataFrame(told)
    by_model = found.drop(columns="table").groupby(["model", "cells hidden"], sort=False)
    means = by_model.mean().drop(columns="rarest class")
    means.insert(1, "se of 90%", by_model["90%"].sem())
    show("pretrained/intervals", means)
    losses["more"] = losses["loss, with it"] - losses["loss, stack"]
    at_most(by_table(losses, "more"), 0.01)
    for _, of_model in found.groupby("model"):
        at_least(by_table(of_model, "90%"), LEAST_HELD)

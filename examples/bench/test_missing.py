"""What holes do to answers and to filled cells, by the reason why cells are missing.

Three cells in ten are hidden at fit and at predict. Completely at random: each with the same
chance. At random: a third of the columns stays, and the chance of the other cells rises with the
mean of these. Not at random: the chance of a cell rises with the cell itself. Each table is split
once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import HybridMixtureClassifier, MixtureDensity, StackedClassifier
from bayesrbf.base.arrays import log_loss
from bayesrbf.datasets import hide_cells
from bench.density_scores import crps
from bench.figures import at_least, at_most, show
from bench.peers import chosen_logistic
from bench.tables import load, split

TABLES = ("breast_cancer", "glass", "iris", "raetsch_thyroid", "vehicle", "wine")
SHARE, SLOPE, DRAWS = 0.3, 3.0, 50
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "mixture": HybridMixtureClassifier,
    "mixture, informative": partial(HybridMixtureClassifier, missingness="informative"),
    "stack": StackedClassifier,
    "medians and indicators, logistic": lambda random_state: make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
        chosen_logistic(),
    ),
}


def completely_at_random(z: np.ndarray) -> np.ndarray:
    """The same score for every cell."""
    return np.zeros(z.shape)


def at_random(z: np.ndarray) -> np.ndarray:
    """The mean of the columns that stay; minus infinity for their own cells."""
    score = np.repeat(z[:, ::3].mean(axis=1, keepdims=True), z.shape[1], axis=1)
    score[:, ::3] = -np.inf
    return score


def not_at_random(z: np.ndarray) -> np.ndarray:
    """The cell itself."""
    return z


MECHANISMS = {
    "completely at random": completely_at_random,
    "at random": at_random,
    "not at random": not_at_random,
}


def chances(score: np.ndarray) -> np.ndarray:
    """Chances of cells to be hidden that rise with their scores; their mean is the share."""

    def excess(shift: float) -> float:
        return float(expit(SLOPE * score + shift).mean()) - SHARE

    return expit(SLOPE * score + brentq(excess, -50, 50))


def test_holes_by_their_reason(data_folder: object) -> None:
    answers, cells = [], []
    for name in TABLES:
        data = split(name, 0, False)
        whole = pd.concat([data.X, data.X_new]).astype(float)
        z = ((whole - whole.mean()) / whole.std().replace(0, 1)).to_numpy()
        complete = {"reason": "nothing is missing", "table": name}
        losses = classified(data.X, data.y, {"log loss": (data.X_new, data.y_new)})
        answers += [{**complete, **one} for one in losses]
        for reason, scored in MECHANISMS.items():
            hidden = np.random.default_rng(0).random(z.shape) < chances(scored(z))
            masked = whole.mask(hidden)
            holes, new = masked.iloc[: len(data.X)], masked.iloc[len(data.X) :]
            tables = {"log loss": (new, data.y_new), "complete rows": (data.X_new, data.y_new)}
            told = {"reason": reason, "table": name}
            answers += [{**told, **one} for one in classified(holes, data.y, tables)]
            truth = whole.iloc[len(data.X) :]
            cells.append({**told, **filled(holes, new, truth, whole.std())})
        print(name, flush=True)
    losses = pd.DataFrame(answers).groupby(["classifier", "reason"], sort=False)
    fillings = pd.DataFrame(cells).drop(columns="table").set_index("reason")
    for score, name in {"log loss": "same", "complete rows": "complete"}.items():
        show(f"missing/{name}", losses[score].mean().unstack("classifier", sort=False).dropna())
    show("missing/cells", fillings.groupby("reason", sort=False).mean())
    at_least(fillings.loc["completely at random", "inside 90 %"], 0.85)
    for reason in MECHANISMS:
        of_reason = fillings.loc[reason]
        at_most(of_reason["error"] - of_reason["error of medians"], 0.0)


def classified(
    X: pd.DataFrame, y: np.ndarray, tables: dict[str, tuple[pd.DataFrame, np.ndarray]]
) -> list[dict[str, Any]]:
    """Log losses of every classifier on new rows."""
    return [
        {
            "classifier": name,
            **{
                told: float(log_loss(model.predict_proba(X_new), y_new).mean())
                for told, (X_new, y_new) in tables.items()
            },
        }
        for name, make in CLASSIFIERS.items()
        for model in [make(random_state=0).fit(X, y)]
    ]


def filled(
    X: pd.DataFrame, X_new: pd.DataFrame, truth: pd.DataFrame, spread: pd.Series
) -> dict[str, float]:
    """How far what a density says of hidden cells is from what was hidden, in column deviations."""
    density = MixtureDensity("cv", covariance_type="cv", column_transforms="power", random_state=0)
    given = density.fit(X).conditional(X_new)
    hidden = X_new.isna().to_numpy()

    def deviations(table: pd.DataFrame) -> np.ndarray:
        asked = table.reindex(columns=truth.columns)  # columns without a hole are not told
        return (((asked - truth) / spread.replace(0, 1)).to_numpy())[hidden]

    drawn = np.stack([deviations(one) for one in given.sample(DRAWS, seed=0)])
    off = deviations(given.mean())
    lower, upper = deviations(given.quantile(0.05)), deviations(given.quantile(0.95))
    medians = (((X.median() - truth) / spread.replace(0, 1)).to_numpy())[hidden]
    return {
        "error": float(np.sqrt(np.mean(off**2))),
        "CRPS": float(crps(drawn, np.zeros(drawn.shape[1])).mean()),
        "mean of filled less true": float(off.mean()),
        "inside 90 %": float(np.mean((lower <= 0) & (upper >= 0))),
        "error of medians": float(np.sqrt(np.mean(medians**2))),
    }


# Whether it tells anything that a cell is missing: the stack with and without missing indicators.


WITH_HOLES = (
    "ckd",
    "support2",
    "heart_h",
    "labor",
    "audiology",
    "horse_colic",
    "hepatitis",
    "soybean",
    "pima_uci_missing",
)
COMPLETE = ("heart_statlog", "glass", "sonar", "vehicle")
FOLDS, NEW_ROWS, MADE_ROWS = 3, 1_500, (150, 400)
WAYS = ("ignorable", "cv")


@dataclass(frozen=True)
class Part:
    """Training rows with holes, and new rows of several kinds; p is the truth of a made table."""

    X: pd.DataFrame
    y: np.ndarray
    new: dict[str, pd.DataFrame]
    y_new: np.ndarray
    p: np.ndarray | None = None


def real_parts(name: str, n_rows: int, holes: bool) -> Iterator[Part]:
    """Folds of a table, or a part of a large one; with ``holes``, 30 % of its cells are hidden."""
    data = load(name)
    y = np.asarray(data.y, dtype=str)
    names, counts = np.unique(y, return_counts=True)
    often = np.isin(y, names[counts >= FOLDS])
    X, y = data.X[often].reset_index(drop=True), y[often]
    X = hide_cells(X, SHARE, np.random.default_rng(0)) if holes else X
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)
    if n_rows:
        order = np.random.default_rng(0).permutation(y.size)
        splits = iter([(order[:n_rows], order[n_rows : n_rows + NEW_ROWS])])
    for train, test in splits:
        same = X.iloc[test]
        more = hide_cells(same, SHARE, np.random.default_rng(1))
        yield Part(X.iloc[train], y[train], {"same": same, "more": more}, y[test])


def made_parts(n_rows: int) -> Iterator[Part]:
    """Eight normal columns, two cells in five missing at random."""
    for seed in range(FOLDS):
        rng = np.random.default_rng(seed)
        y = (rng.random(n_rows + NEW_ROWS) < 0.4).astype(int)
        centres = np.array([1, 1, 0.5, 0.5, 0, 0, 0, 0]) / 2
        Z = rng.normal(size=(y.size, 8)) + y[:, None] * centres
        missing = rng.random(Z.shape) < 0.4
        whole = pd.DataFrame(Z).add_prefix("x")
        odds = np.where(missing, 0, centres * (Z - centres / 2)).sum(axis=1) + np.log(0.4 / 0.6)
        holes = whole.mask(missing)
        new = {
            "same": holes,
            "more": hide_cells(holes, SHARE, np.random.default_rng(1)),
            "complete": whole,
        }
        new = {kind: rows[n_rows:] for kind, rows in new.items()}
        yield Part(holes[:n_rows], y[:n_rows], new, y[n_rows:], expit(odds[n_rows:]))


def judged(part: Part, missingness: str) -> dict[str, np.ndarray | float]:
    """Log loss of every new row of each kind, seconds, width and coverage of intervals of 90 %."""
    start = process_time()
    model = StackedClassifier(missingness=missingness, random_state=0).fit(part.X, part.y)
    found: dict[str, np.ndarray | float] = {"seconds": process_time() - start}
    labels = np.searchsorted(model.classes_, part.y_new)
    for kind, rows in part.new.items():
        found[kind] = log_loss(model.predict_proba(rows), labels)
    told = model.refine().uncertainty(part.new["same"])
    lower, upper = told["lower"].to_numpy()[:, -1], told["upper"].to_numpy()[:, -1]
    found["width"] = upper - lower
    if part.p is not None:
        found["inside"] = ((lower <= part.p) & (part.p <= upper)).astype(float)
    return found


def test_indicators(data_folder: object) -> None:
    tables: dict[str, Iterable[Part]] = {}
    for name in WITH_HOLES:
        for n_rows in (600, 3_000) if name == "support2" else (0,):
            tables[f"{name} {n_rows}" if n_rows else name] = real_parts(name, n_rows, False)
    for name in COMPLETE:
        tables[f"{name}, holes at random"] = real_parts(name, 0, True)
    for n_rows in MADE_ROWS:
        tables[f"made {n_rows}, holes at random"] = made_parts(n_rows)
    rows, lost = list[dict[str, object]](), dict[str, pd.Series]()
    for name, parts in tables.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of levels that a fold has not seen
            each = [[judged(part, way) for way in WAYS] for part in parts]
        ignorable, cv = (
            {key: np.concatenate([np.atleast_1d(one[key]) for one in of_way]) for key in of_way[0]}
            for of_way in zip(*each, strict=True)
        )
        more = pd.Series(cv["same"] - ignorable["same"])
        row: dict[str, object] = {"table": name, "log loss": ignorable["same"].mean()}
        row |= {"cv": more.mean(), "s.e. cv": more.sem()}
        if name.split()[0] in WITH_HOLES:
            lost[name] = more
        for kind in ("more", "complete"):
            row[f"cv, {kind}"] = (cv[kind] - ignorable[kind]).mean() if kind in cv else np.nan
        row["width"], row["cv width"] = ignorable["width"].mean(), cv["width"].mean()
        row["inside"] = ignorable["inside"].mean() if "inside" in cv else np.nan
        row["cv inside"] = cv["inside"].mean() if "inside" in cv else np.nan
        row["cv time"] = cv["seconds"].sum() / ignorable["seconds"].sum()
        rows.append(row)
        print(name, flush=True)
    show("missing/indicators", pd.DataFrame(rows).set_index("table"), 4)
    at_most(pd.Series([more.mean() for more in lost.values()]), 0.0)
    for more in lost.values():
        at_most(more, 0.002)

"""What holes do to answers and to filled cells, by the reason why cells are missing.

Three cells in ten are hidden at fit and at predict. Completely at random: each with the same
chance. At random: a third of the columns stays, and the chance of the other cells rises with the
mean of these. Not at random: the chance of a cell rises with the cell itself. Each table is split
once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import HybridMixtureClassifier, MixtureDensity, StackedClassifier
from bayesrbf.base.arrays import log_loss
from bench.density_scores import crps
from bench.figures import show
from bench.tables import split

TABLES = ("breast_cancer", "glass", "iris", "raetsch_thyroid", "vehicle", "wine")
SHARE, SLOPE, DRAWS = 0.3, 3.0, 50
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "mixture": HybridMixtureClassifier,
    "mixture, informative": partial(HybridMixtureClassifier, missingness="informative"),
    "stack": StackedClassifier,
    "medians and indicators, logistic": lambda random_state: make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
        LogisticRegression(max_iter=5_000),
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
    fillings = pd.DataFrame(cells).drop(columns="table").groupby("reason", sort=False).mean()
    for score, name in {"log loss": "same", "complete rows": "complete"}.items():
        show(f"missing/{name}", losses[score].mean().unstack("classifier", sort=False).dropna())
    show("missing/cells", fillings)
    assert fillings.loc["completely at random", "inside 90 %"] > 0.85
    assert (fillings["error"] < fillings["error of medians"]).all()


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
    density = MixtureDensity("cv", covariance_type="cv", column_maps="power", random_state=0)
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

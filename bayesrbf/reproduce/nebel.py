"""Median LVQ on five tables of dissimilarities: exemplars searched, drawn, and their rivals.

After Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity
data, ESANN, table 1: repeated ten-fold cross-validation, prototypes counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist, squareform
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from bayesrbf.datasets import data_folder, load_table
from bayesrbf.estimators.median_lvq.classifier import MedianLVQClassifier
from bayesrbf.reproduce.cells import Cell, Figures, print_table, run_cells
from bayesrbf.reproduce.rivals import ClippedKernelSVC, LabelledPropagation

LEAST: Final = 1e-6
"""Probabilities are held above this in log losses, which may be infinite else."""


@dataclass(frozen=True)
class Compared:
    """Rows by their dissimilarities.

    Attributes
    ----------
    values : ndarray of shape (n_obs, n_obs)
        Dissimilarities.
    labels : ndarray of shape (n_obs,)
        Class codes.
    """

    values: Float[np.ndarray, "obs obs"]
    labels: Int[np.ndarray, " obs"]


@dataclass(frozen=True)
class Experiment:
    """One table of the paper.

    Attributes
    ----------
    load : callable
        Gives its rows.
    per_class : int
        Prototypes of every class.
    heavy : tuple of str
        Methods that would take hours on it.
    """

    load: Callable[[], Compared]
    per_class: int
    heavy: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """How much is computed.

    Attributes
    ----------
    repeats : int
        Number of cross-validations.
    folds : int
        Folds of each.
    draws : int
        Draws of a chain, after half as many that are thrown away.
    tables : tuple of str
        Names of the experiments.
    """

    repeats: int
    folds: int
    draws: int
    tables: tuple[str, ...]


def chromosomes() -> Compared:
    """Band patterns of 4,400 chromosomes of 22 kinds, by weighted edit distance.

    Returns
    -------
    Compared
        The rows.
    """
    halves = np.load(data_folder() / "chromosomes_editdist.npz")["d2"]
    return Compared(squareform(halves) / 2, _codes(load_table("chromosomes_copenhagen").y))


def aural_sonar() -> Compared:
    """One hundred sonar echoes that people compared, twice one less their similarity.

    Returns
    -------
    Compared
        The rows.
    """
    stored = np.load(data_folder() / "sim_aural_sonar.npz")
    return Compared(2 * (1 - stored["similarity"]), _codes(stored["y"]))


def votes() -> Compared:
    """Votes of 435 members of the House, by the share that differ; no vote is a vote.

    Returns
    -------
    Compared
        The rows.
    """
    table = load_table("house_votes84")
    codes = np.stack([_codes(table.X[name].fillna("?")) for name in table.X], axis=1)
    return Compared(cdist(codes, codes, "hamming"), _codes(table.y))


def sonar() -> Compared:
    """Echoes of mines and rocks, by squared Euclidean distance of 60 energies.

    Returns
    -------
    Compared
        The rows.
    """
    table = load_table("sonar")
    X = table.X.to_numpy()
    return Compared(cdist(X, X, "sqeuclidean"), _codes(table.y))


def digits() -> Compared:
    """Images of 1,797 digits, by squared Euclidean distance of their pixels.

    Returns
    -------
    Compared
        The rows.
    """
    table = load_table("digits")
    X = table.X.to_numpy()
    return Compared(cdist(X, X, "sqeuclidean"), _codes(table.y))


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "aural sonar": Experiment(cache(aural_sonar), 5),
    "votes": Experiment(cache(votes), 10),
    "sonar": Experiment(cache(sonar), 5),
    "digits": Experiment(cache(digits), 3),
    "chromosomes": Experiment(cache(chromosomes), 3, ("gibbs", "affinity propagation")),
}
FULL: Final = Plan(10, 10, 500, tuple(EXPERIMENTS))
QUICK: Final = Plan(1, 2, 40, ("aural sonar",))


def methods(per_class: int, plan: Plan, seed: int) -> dict[str, Any]:
    """Every contestant, by name.

    Parameters
    ----------
    per_class : int
        Prototypes of every class.
    plan : Plan
        How much is computed.
    seed : int
        Seed of everything random.

    Returns
    -------
    dict of str to estimator
        Classifiers of precomputed dissimilarities.
    """
    exemplars = partial(
        MedianLVQClassifier, per_class, metric="precomputed", random_state=seed, n_init=2
    )
    neighbours = KNeighborsClassifier(metric="precomputed")
    return {
        "RSLVQ, swaps": exemplars(),
        "RSLVQ, generalised EM": exemplars(optimizer="gem"),
        "GLVQ, swaps": exemplars(objective="glvq"),
        "GLVQ, generalised EM": exemplars(objective="glvq", optimizer="gem"),
        "gibbs": exemplars(sigma="sample"),
        "k-NN": GridSearchCV(neighbours, {"n_neighbors": [1, 3, 5, 9, 15]}, cv=5),
        "SVM, clipped": GridSearchCV(ClippedKernelSVC(), {"C": [1.0, 10.0, 100.0]}, cv=5),
        "affinity propagation": LabelledPropagation(seed),
    }


def cells(plan: Plan, seed: int) -> Iterator[Cell]:
    """Every fold of every method on every table.

    Parameters
    ----------
    plan : Plan
        How much is computed.
    seed : int
        Seed of folds and methods.

    Yields
    ------
    Cell
        Error, log loss (of methods that give probabilities), prototypes, seconds.
    """
    for repeat in range(plan.repeats):
        for table in plan.tables:
            experiment = EXPERIMENTS[table]
            for name in methods(experiment.per_class, plan, seed):
                if name in experiment.heavy:
                    continue
                for fold in range(plan.folds):
                    yield Cell(
                        f"{table}/{name}/{repeat}/{fold}",
                        partial(_fold, table, name, plan, seed + repeat, fold),
                    )


def _fold(table: str, name: str, plan: Plan, seed: int, fold: int) -> Figures:
    """Fit to the other folds, judge on this."""
    experiment = EXPERIMENTS[table]
    rows = experiment.load()
    splitter = StratifiedKFold(plan.folds, shuffle=True, random_state=seed)
    train, test = list(splitter.split(rows.labels, rows.labels))[fold]
    model = methods(experiment.per_class, plan, seed)[name]
    start = time.perf_counter()
    model.fit(rows.values[np.ix_(train, train)], rows.labels[train])
    if name == "gibbs":
        model.refine(draws=plan.draws, tune=plan.draws // 2, chains=2)
    seconds = time.perf_counter() - start
    new = rows.values[np.ix_(test, train)]
    figures: dict[str, float | int | str] = {
        "error": float(np.mean(model.predict(new) != rows.labels[test])),
        "seconds": round(seconds, 3),
    }
    if hasattr(model, "exemplars_"):
        figures["prototypes"] = len(model.exemplars_)
    if hasattr(model, "predict_proba"):
        p = np.maximum(model.predict_proba(new), LEAST)
        figures["log_loss"] = float(
            log_loss(rows.labels[test], p / p.sum(axis=1, keepdims=True), labels=model.classes_)
        )
    return figures


def run(out: Path, *, quick: bool, seed: int) -> None:
    """Compute what is not there, and print the table.

    Parameters
    ----------
    out : Path
        Folder of the figures.
    quick : bool
        Two folds of the smallest table, to see that it runs.
    seed : int
        Seed of everything random.
    """
    plan = QUICK if quick else FULL
    file = out / ("nebel-quick.jsonl" if quick else "nebel.jsonl")
    figures = run_cells(list(cells(plan, seed)), file)
    for title, name, digits_, factor in (
        ("Error in %, mean over folds", "error", 1, 100.0),
        ("Log loss in nats", "log_loss", 3, 1.0),
        ("Prototypes", "prototypes", 0, 1.0),
        ("Seconds of a fit", "seconds", 2, 1.0),
    ):
        rows = summary(figures, plan, name, digits_, factor)
        print_table(title, ["method", *plan.tables], rows)


def summary(
    figures: Mapping[str, Figures], plan: Plan, name: str, decimals: int, factor: float
) -> list[list[str]]:
    """One figure of every method and table, mean over repeats and folds.

    Parameters
    ----------
    figures : mapping of str to mapping
        Figures of the cells.
    plan : Plan
        Which tables there are.
    name : str
        Name of the figure.
    decimals : int
        Digits behind the point.
    factor : float
        What it is multiplied by.

    Returns
    -------
    list of list of str
        A row a method that has the figure; a dash where a table has none.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for cell, values in figures.items():
        table, method, *_ = cell.split("/")
        if name in values:
            found.setdefault(method, {}).setdefault(table, []).append(float(values[name]))
    return [
        [
            method,
            *[
                f"{factor * np.mean(by_table[table]):.{decimals}f}" if table in by_table else "-"
                for table in plan.tables
            ],
        ]
        for method, by_table in found.items()
    ]


def _codes(labels: Any) -> Int[np.ndarray, " obs"]:
    """Positions of labels among their sorted values."""
    return np.unique(np.asarray(labels), return_inverse=True)[1]

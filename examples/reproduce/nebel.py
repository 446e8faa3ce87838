"""Median LVQ on five tables of dissimilarities: exemplars searched, exemplars drawn, and baselines.

After Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity data,
ESANN, table 1: repeated ten-fold cross-validation, prototypes counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from bayesrbf import MedianLVQClassifier
from reproduce import published
from reproduce.cells import Cell, Figures, Found, print_table, run_cells, side_by_side
from reproduce.dissimilarity_methods import (
    Categories,
    ClassDirections,
    ClippedKernelSVC,
    Compared,
    LabelledPropagation,
    LeadingDirections,
    aural_sonar,
    categories_of_votes,
    chromosomes,
    digits,
    sonar,
    votes,
)
from reproduce.generalised_em import GeneralisedEM

MIN_PROBABILITY: Final = (
    1e-6  # Lower bound of probabilities in log losses, which may be infinite otherwise.
)


@dataclass(frozen=True)
class Experiment:
    """One table of the paper."""

    load: Callable[[], Compared | Categories]
    per_class: int  # Prototypes.
    heavy: tuple[str, ...] = ()  # Methods that would take hours on this table.
    most_repeats: int = 10  # Of the cross-validation.
    fronts: tuple[TransformerMixin, ...] = ()
    """Transformers of the dissimilarities, one of which is chosen by cross-validation inside the
    training rows; empty: dissimilarities as they are."""


@dataclass(frozen=True)
class Plan:
    """How much is computed."""

    repeats: int  # Number of cross-validations.
    folds: int  # Of each.
    draws: int  # Per chain, after half as many of warm-up.
    tables: tuple[str, ...]  # Names of the experiments.


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "aural sonar": Experiment(cache(aural_sonar), 5),
    "aural sonar, 3 a class": Experiment(cache(aural_sonar), 3),
    "aural sonar, 3 a class, directions": Experiment(
        cache(aural_sonar), 3, fronts=tuple(map(LeadingDirections, (3, 5, 8)))
    ),
    "aural sonar, 3 a class, class directions": Experiment(
        cache(aural_sonar), 3, fronts=(ClassDirections(),)
    ),
    "votes": Experiment(cache(votes), 10),
    "votes, value differences": Experiment(cache(categories_of_votes), 10),
    "sonar": Experiment(cache(sonar), 5),
    "digits": Experiment(cache(digits), 3, most_repeats=2),
    "chromosomes": Experiment(cache(chromosomes), 3, ("affinity propagation",), most_repeats=1),
}
FULL: Final = Plan(10, 10, 200, tuple(EXPERIMENTS))
QUICK: Final = Plan(1, 2, 40, ("aural sonar",))


def methods(experiment: Experiment, seed: int) -> dict[str, Any]:
    """Classifiers of precomputed dissimilarities, by name."""
    exemplars = partial(
        MedianLVQClassifier,
        experiment.per_class,
        metric="precomputed",
        calibrate=False,
        random_state=seed,
        n_init=2,
    )
    by_em = partial(GeneralisedEM, experiment.per_class, n_init=2, random_state=seed)
    neighbours = KNeighborsClassifier(metric="precomputed")
    contestants = {
        "RSLVQ, swaps": exemplars(),
        "RSLVQ, generalised EM": by_em(),
        "GLVQ, swaps": exemplars(objective="glvq"),
        "GLVQ, generalised EM": by_em(objective="glvq"),
        "gibbs": exemplars(sigma="sample"),
        "k-NN": GridSearchCV(neighbours, {"n_neighbors": [1, 3, 5, 9, 15]}, cv=5),
        "SVM, clipped": ClippedKernelSVC(),
        "affinity propagation": LabelledPropagation(seed),
    }
    if not experiment.fronts:
        return contestants
    first, *others = experiment.fronts
    behind = {name: make_pipeline(first, model) for name, model in contestants.items()}
    if not others:
        return behind
    choice = {type(first).__name__.lower(): experiment.fronts}
    return {name: GridSearchCV(model, choice, cv=5) for name, model in behind.items()}


def cells(plan: Plan, seed: int) -> Iterator[Cell]:
    """Every fold of every method on every table.

    A cell has error, log loss (of methods that give probabilities), prototypes and seconds.
    """
    for repeat in range(plan.repeats):
        for table in plan.tables:
            experiment = EXPERIMENTS[table]
            if repeat >= experiment.most_repeats:
                continue
            for name in methods(experiment, seed):
                if name in experiment.heavy:
                    continue
                for fold in range(plan.folds):
                    yield Cell(
                        f"{table}/{name}/{repeat}/{fold}",
                        partial(_fold, table, name, plan, seed + repeat, fold),
                    )


def _fold(table: str, name: str, plan: Plan, seed: int, fold: int) -> Figures:
    """Fit to the other folds and judge on this one."""
    experiment = EXPERIMENTS[table]
    rows = experiment.load()
    splitter = StratifiedKFold(plan.folds, shuffle=True, random_state=seed)
    train, test = list(splitter.split(rows.labels, rows.labels))[fold]
    model = methods(experiment, seed)[name]
    known, new = rows.split(train, test)
    start = time.perf_counter()
    model.fit(known, rows.labels[train])
    chosen = getattr(model, "best_estimator_", model)
    exemplars = chosen[-1] if isinstance(chosen, Pipeline) else chosen
    if name == "gibbs":
        exemplars.refine(draws=plan.draws, tune=plan.draws // 2, thin=1, chains=2, cores=1)
    seconds = time.perf_counter() - start
    figures: dict[str, float | int | str] = {
        "error": float(np.mean(model.predict(new) != rows.labels[test])),
        "seconds": round(seconds, 3),
    }
    if hasattr(exemplars, "exemplars_"):
        figures["prototypes"] = len(exemplars.exemplars_)
    if hasattr(model, "predict_proba"):
        p = np.maximum(model.predict_proba(new), MIN_PROBABILITY)
        figures["log_loss"] = float(
            log_loss(rows.labels[test], p / p.sum(axis=1, keepdims=True), labels=model.classes_)
        )
    return figures


def run(out: Path, *, quick: bool, seed: int) -> None:
    """Compute the cells that are not stored and print the table, after Ctrl-C from what there is.

    A quick run has two folds of the smallest table.
    """
    plan = QUICK if quick else FULL
    file = out / ("nebel-quick.jsonl" if quick else "nebel.jsonl")
    figures = run_cells(list(cells(plan, seed)), file)
    for title, name, digits_, factor, paper in (
        ("Error in %, mean over folds (table 1)", "error", 1, 100.0, published.NEBEL),
        ("Log loss in nats", "log_loss", 3, 1.0, published.NONE),
        ("Prototypes (table 1)", "prototypes", 0, 1.0, published.NEBEL_PROTOTYPES),
        ("Seconds of a fit", "seconds", 2, 1.0, published.NONE),
    ):
        header, rows = summary(figures, name, digits_, factor)
        print_table(title, header, rows, published=paper)


def summary(
    figures: Mapping[str, Figures], name: str, decimals: int, factor: float
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one figure, times ``factor``: means over repeats and folds.

    Columns are methods that have the figure; a dash stands where a method was not run.
    """
    found: Found = {}
    for cell, values in figures.items():
        table, method, *_ = cell.split("/")
        if name in values:
            found.setdefault((table, method), []).append(float(values[name]))
    return side_by_side(found, lambda values: f"{factor * np.mean(values):.{decimals}f}")

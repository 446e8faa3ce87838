"""Generative and discriminative training of RBF networks, after Ferreira and Figueiredo (2006).

Error on Ripley's mixture (the official split) and on the sex of crabs (80 rows to learn from, 120
to predict). EM-LR, its hard link, and growth by that link are compared with centres that are found
first and an output layer that is fitted to them. The paper has seven components and growth by two
up to 15 on Ripley's mixture, crabs by their raw measures, one bounded Newton step of the output
layer a round, and no prior in the M-step.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Float
from rich.console import Console
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import RBFNetworkClassifier
from bayesrbf.datasets import data_folder, load_table
from reproduce import published
from reproduce.alternation import AlternatingNetwork
from reproduce.caetano import compared
from reproduce.cells import Cell, Figures, print_table, run_cells

WIDTH: Final = 4  # Components of the hidden layer; growth ends with at most twice as many.
ROUNDS, QUICK_ROUNDS = 200, 3
MEASURES: Final = ("FL", "RW", "CL", "CW", "BD")

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Training and test rows, then their classes."""


class GaussianFeatures(TransformerMixin, BaseEstimator):
    """Gaussian features with centres that are found without the classes.

    Either clusters with one width for all ("kmeans"), or the components of a mixture ("em").
    """

    def __init__(self, by: Literal["kmeans", "em"] = "em", random_state: int = 0) -> None:
        self.by = by
        self.random_state = random_state

    def fit(self, X: Float[np.ndarray, "obs column"], y: object = None) -> Self:
        """Find the centres, without the classes."""
        if self.by == "em":
            self.mixture_ = GaussianMixture(
                WIDTH, reg_covar=1e-3, random_state=self.random_state
            ).fit(X)
            return self
        clusters = KMeans(WIDTH, n_init=4, random_state=self.random_state).fit(X)
        self.centres_ = clusters.cluster_centers_
        self.width_ = float(np.sqrt(clusters.inertia_ / X.size))
        return self

    def transform(self, X: Float[np.ndarray, "obs column"]) -> Float[np.ndarray, "obs component"]:
        """Values of the features: 1 at a centre of a cluster, or the density of a component."""
        if self.by == "em":
            # The joint density of row and component, divided by the component's weight.
            joint = self.mixture_.score_samples(X)[:, None] + np.log(
                np.maximum(self.mixture_.predict_proba(X), 1e-300)
            )
            return np.exp(joint - np.log(self.mixture_.weights_))
        return np.exp(-0.5 * cdist(X, self.centres_, "sqeuclidean") / self.width_**2)


def methods(seed: int, rounds: int) -> dict[str, Any]:
    """Classifiers by name; ``rounds`` limits an alternation between changes of its components."""
    network = partial(
        AlternatingNetwork,
        covariance_type="full",
        l2=1e-3,
        max_iter=rounds,
        tol=1e-4,
        random_state=seed,
    )
    centres = {by: GaussianFeatures(by, seed) for by in ("kmeans", "em")}
    squares = RidgeClassifier(1e-6)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=5000))
    return {
        "KMeans + LS": make_pipeline(StandardScaler(), centres["kmeans"], squares),
        "EM + LS": make_pipeline(StandardScaler(), centres["em"], squares),
        "EM + LR": make_pipeline(StandardScaler(), centres["em"], logistic),
        "EM-LR": network(WIDTH, scheme="em_lr"),
        "EM-LR-Link": network(WIDTH, scheme="em_lr_link"),
        "EM-LR-Link-K": network(2, scheme="em_lr_link_k", grow=(1, 2 * WIDTH)),
        "joint": RBFNetworkClassifier(
            WIDTH,
            features="responsibility",
            covariance_type="full",
            calibrate=False,
            random_state=seed,
        ),
    }


def parts(table: str, seed: int) -> Parts:
    """Training and test rows, then classes: the official split, or 80 and 120 crabs.

    Crabs are given by principal components of variance one, of the training rows, because all five
    measures mostly tell the size.
    """
    if table == "ripley":
        known, new = load_table("ripley_synth_train"), load_table("ripley_synth_test")
        return known.X.to_numpy(), new.X.to_numpy(), known.y, new.y
    frame = pd.read_csv(data_folder() / "crabs.csv")
    X, y = frame[list(MEASURES)].to_numpy(dtype=float), frame["extra_sex"].to_numpy(dtype=object)
    X, X_new, y, y_new = train_test_split(X, y, train_size=80, stratify=y, random_state=seed)
    components = PCA(whiten=True).fit(X)
    return components.transform(X), components.transform(X_new), y, y_new


def run(
    folder: Path, *, quick: bool = False, seeds: int = 10, console: Console | None = None
) -> None:
    """Compute the cells that are not stored in ``folder`` and print the table.

    A stopped run goes on where it was. A quick run has one seed on the smaller table.
    """
    file = folder / ("ferreira-quick.jsonl" if quick else "ferreira.jsonl")
    names = ("crabs",) if quick else ("ripley", "crabs")
    plan = list(cells(names, 1, QUICK_ROUNDS) if quick else cells(names, seeds, ROUNDS))
    figures = run_cells(plan, file, console)
    header, rows = compared(figures, "ferreira", "error", 1)
    print_table("Error in %", header, rows, console, published.FERREIRA)


def cells(names: tuple[str, ...], seeds: int, rounds: int) -> Iterator[Cell]:
    """Every table, method and seed."""
    for seed in range(seeds):
        for table in names:
            for method in methods(seed, rounds):
                yield Cell(
                    f"ferreira/{table}/{method}/{seed}", partial(_fit, table, method, seed, rounds)
                )


def _fit(table: str, method: str, seed: int, rounds: int) -> Figures:
    """One fit, judged on the test rows."""
    X, X_new, y, y_new = parts(table, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joint fits that did not converge
        model = methods(seed, rounds)[method].fit(X, y)
    return {"error": 100 * float(np.mean(model.predict(X_new) != y_new))}

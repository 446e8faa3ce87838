"""Generative and discriminative training of RBF networks, after Ferreira and Figueiredo (2006).

Error on Ripley's mixture (the official split) and on the sex of crabs (80 rows to learn from,
120 to predict): EM-LR, its hard link, and growth by that link, beside centres that are found
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

from bayesrbf.datasets import data_folder, load_table
from bayesrbf.estimators.rbf_network.classifier import RBFNetworkClassifier
from bayesrbf.reproduce import published
from bayesrbf.reproduce.caetano import compared
from bayesrbf.reproduce.cells import Cell, Figures, print_table, run_cells

WIDTH: Final = 4
"""Components of the hidden layer, and the most that growth ends with is twice that."""
ROUNDS, QUICK_ROUNDS = 200, 3
MEASURES: Final = ("FL", "RW", "CL", "CW", "BD")

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows to learn from and to predict, and their classes."""


class GaussianFeatures(TransformerMixin, BaseEstimator):
    """Bells about centres that are found without the classes.

    Parameters
    ----------
    by : {"kmeans", "em"}
        Clusters and one width for all; or the components of a mixture.
    random_state : int
        Seed of the starts.
    """

    def __init__(self, by: Literal["kmeans", "em"] = "em", random_state: int = 0) -> None:
        self.by = by
        self.random_state = random_state

    def fit(self, X: Float[np.ndarray, "obs column"], y: object = None) -> Self:
        """Find the centres.

        Parameters
        ----------
        X : ndarray of shape (n_obs, n_columns)
            Rows.
        y : object
            Classes play no part.

        Returns
        -------
        self
            The fitted transformer.
        """
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
        """Heights of the bells.

        Parameters
        ----------
        X : ndarray of shape (n_obs, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            1 at a centre by clusters, the density by a mixture.
        """
        if self.by == "em":
            # The joint of row and component over the component's weight.
            joint = self.mixture_.score_samples(X)[:, None] + np.log(
                np.maximum(self.mixture_.predict_proba(X), 1e-300)
            )
            return np.exp(joint - np.log(self.mixture_.weights_))
        return np.exp(-0.5 * cdist(X, self.centres_, "sqeuclidean") / self.width_**2)


def methods(seed: int, rounds: int) -> dict[str, Any]:
    """Contestants, by name.

    Parameters
    ----------
    seed : int
        Seed of the starts.
    rounds : int
        Most rounds of an alternation between two changes of its components.

    Returns
    -------
    dict of str to estimator
        Classifiers of reals.
    """
    network = partial(
        RBFNetworkClassifier,
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
        "joint": RBFNetworkClassifier(WIDTH, covariance_type="full", random_state=seed),
    }


def parts(table: str, seed: int) -> Parts:
    """Rows to learn from and to predict.

    Parameters
    ----------
    table : {"ripley", "crabs"}
        The official split, the same for every seed; or 80 of 200 rows.
    seed : int
        Seed of the split.

    Returns
    -------
    tuple of ndarray
        As scikit-learn's ``train_test_split`` has them; crabs by the principal components of
        the rows to learn from, of variance one each, for all five measures tell the size.
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
    """Compute what is not there yet and print the table.

    Parameters
    ----------
    folder : Path
        Where figures are kept; a run that was stopped goes on there.
    quick : bool
        One seed on the smaller table.
    seeds : int
        Number of seeds otherwise.
    console : Console, optional
        Where the table is printed; stdout by default.
    """
    file = folder / ("ferreira-quick.jsonl" if quick else "ferreira.jsonl")
    names = ("crabs",) if quick else ("ripley", "crabs")
    plan = list(_cells(names, 1, QUICK_ROUNDS) if quick else _cells(names, seeds, ROUNDS))
    figures = run_cells(plan, file, console)
    header, rows = compared(figures, "ferreira", "error", 1)
    print_table("Error in %", header, rows, console, published.FERREIRA)


def _cells(names: tuple[str, ...], seeds: int, rounds: int) -> Iterator[Cell]:
    """Every fit."""
    for seed in range(seeds):
        for table in names:
            for method in methods(seed, rounds):
                yield Cell(
                    f"ferreira/{table}/{method}/{seed}",
                    partial(_fit, table, method, seed, rounds),
                )


def _fit(table: str, method: str, seed: int, rounds: int) -> Figures:
    """One fit, judged on the other rows."""
    X, X_new, y, y_new = parts(table, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # alternations that have not come to rest
        model = methods(seed, rounds)[method].fit(X, y)
    return {"error": 100 * float(np.mean(model.predict(X_new) != y_new))}

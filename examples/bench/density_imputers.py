"""Imputers in the density's benchmark: chained equations, and a Gaussian copula."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.density_exchange import (
    SEED,
    Answer,
    Array,
    Task,
    deviations,
    holes,
    numbers,
)

DRAWS = 20
TABLES = 5
"""Completed tables of miceforest, which learns each by itself."""


def shares(drawn: Array, n_levels: int) -> Array:
    """Level probabilities from draws (draw, cell), half a draw added to every level."""
    counts = (drawn[..., None] == np.arange(n_levels)).sum(axis=0) + 0.5
    return counts / counts.sum(axis=1, keepdims=True)


def miceforest_hidden(task: Task) -> Answer:
    """Chained equations by boosted trees with predictive mean matching.

    It is given the new rows beside the training rows: version 6.0.5 counts no iteration of what it
    calls new data, and hands back where these began.
    """
    import pandas as pd
    from miceforest import ImputationKernel

    reals = np.concatenate([task["train_real"], task["test_real"]])
    both = pd.DataFrame(reals).add_prefix("r")
    for j, column in enumerate(np.concatenate([task["train_codes"], task["test_codes"]]).T):
        levels = np.unique(column[column >= 0])
        both[f"c{j}"] = pd.Categorical(np.where(column < 0, np.nan, column), categories=levels)
    matching = {f"r{j}": "normal" for j in range(reals.shape[1])}
    # Of levels, its neighbours in log odds fail where a tree is certain: they are drawn.
    matching |= {f"c{j}": "fast" for j in range(len(task["levels"]))}
    begun = time.process_time()
    kernel = ImputationKernel(
        both, num_datasets=TABLES, mean_match_strategy=matching, random_state=SEED
    )
    kernel.mice(4, num_threads=1)
    cpu = time.process_time() - begun
    new = len(task["train_real"])
    tables = [kernel.complete_data(dataset)[new:] for dataset in range(TABLES)]
    real, code = holes(task)
    n_levels = int(task["levels"].max(initial=1))
    draws = np.array([[t[f"r{j}"].iloc[i] for i, j in real] for t in tables])
    levels = np.array([[int(t[f"c{j}"].iloc[i]) for i, j in code] for t in tables])
    probabilities = np.zeros((len(code), n_levels))
    for j in np.unique(code[:, 1]):
        of_column = np.flatnonzero(code[:, 1] == j)
        k = int(task["levels"][j])
        probabilities[of_column, :k] = shares(levels[:, of_column], k)
    return {"draws": draws, "probabilities": probabilities, "cpu": cpu}


def gcimpute_hidden(task: Task) -> Answer:
    """A Gaussian copula of the reals and the categories of two levels."""
    from gcimpute.gaussian_copula import GaussianCopula

    vars(np)["round_"] = np.round  # its name in NumPy 1, for which gcimpute 0.0.4 was written
    two = task["levels"] == 2

    def cells(part: str) -> Array:
        return numbers(task[f"{part}_real"], task[f"{part}_codes"][:, two], task["levels"][two])

    begun = time.process_time()
    copula = GaussianCopula(random_state=SEED, verbose=0)
    n_reals = task["train_real"].shape[1]
    ordinal = list(range(n_reals, n_reals + int(two.sum())))
    # Kinds are told, for it takes reals with ties for ordinals; an empty list is refused.
    copula.fit(cells("train"), continuous=list(range(n_reals)), ordinal=ordinal or None)
    cpu = time.process_time() - begun
    new = cells("test")
    np.random.seed(SEED)  # noqa: NPY002  it draws from the global generator
    drawn = copula.sample_imputation(new, num=DRAWS)
    real, _ = holes(task)
    return {"draws": drawn[real[:, 0], real[:, 1]].T, "cpu": cpu}


def iterative_hidden(task: Task) -> Answer:
    """Chained Bayesian ridge regressions of reals and indicators of levels."""
    train, test = (
        numbers(task[f"{part}_real"], task[f"{part}_codes"], task["levels"])
        for part in ("train", "test")
    )
    begun = time.process_time()
    imputer = iterative(sample_posterior=True).fit(train)
    cpu = time.process_time() - begun
    real, _ = holes(task)
    draws = [imputer.transform(test)[real[:, 0], real[:, 1]] for _ in range(DRAWS)]
    return {"draws": np.array(draws), "cpu": cpu}


def iterative(**settings: Any) -> Any:
    """scikit-learn's imputer."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(max_iter=5, keep_empty_features=True, random_state=SEED, **settings)


def iterative_errors(task: Task) -> Answer:
    """Residuals of every real column given the others, in standard deviations."""
    real, codes = task["test_real"], task["test_codes"]
    cells = numbers(real, codes, task["levels"])
    imputer = iterative().fit(cells)
    residuals = np.empty(real.shape)
    for j in range(real.shape[1]):
        without = cells.copy()
        without[:, j] = np.nan
        residuals[:, j] = real[:, j] - imputer.transform(without)[:, j]
    return deviations(residuals, codes)

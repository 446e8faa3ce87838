"""What scikit-learn says of the tasks of the density's benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.ensemble import IsolationForest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.density_models import Answer, Array
from bench.density_tables import Cells, Task

SEED, DRAWS = 0, 20


def numbers(cells: Cells, levels: Array) -> Array:
    """Reals and one column of 0 and 1 for every level but the first; missing stays missing."""
    columns = [cells.real]
    for column, n_levels in zip(cells.codes.T, levels, strict=True):
        found = (column[:, None] == np.arange(1, n_levels)).astype(float)
        columns.append(np.where(column[:, None] < 0, np.nan, found))
    return np.column_stack(columns)


def deviations(real: Array, codes: Array) -> Answer:
    """Column by column: distance from the mean in standard deviations, and rarity of a level."""
    z = np.abs(real - np.nanmean(real, axis=0)) / np.nanstd(real, axis=0)
    return {"real": -log_ndtr(-z) - np.log(2), "codes": rarity(codes)}


def rarity(codes: Array) -> Array:
    """Minus log frequency of every cell's level."""
    found = np.full(codes.shape, np.nan)
    for j, column in enumerate(codes.T):
        known = column >= 0
        found[known, j] = -np.log(np.bincount(column[known]) / known.sum())[column[known]]
    return found


def imputer(**settings: Any) -> IterativeImputer:
    """Chained Bayesian ridge regressions of reals and indicators of levels."""
    return IterativeImputer(max_iter=5, keep_empty_features=True, random_state=SEED, **settings)


def iterative_hidden(task: Task) -> Answer:
    """Draws of hidden reals."""
    train, test = (numbers(cells, task.levels) for cells in (task.train, task.test))
    begun = time.process_time()
    model = imputer(sample_posterior=True).fit(train)
    cpu = time.process_time() - begun
    real, _ = task.holes
    draws = [model.transform(test)[real[:, 0], real[:, 1]] for _ in range(DRAWS)]
    return {"draws": np.array(draws), "cpu": cpu}


def iterative_errors(task: Task) -> Answer:
    """Residuals of every real column given the others, in standard deviations."""
    real, cells = task.test.real, numbers(task.test, task.levels)
    model = imputer().fit(cells)
    residuals = np.empty(real.shape)
    for j in range(real.shape[1]):
        without = cells.copy()
        without[:, j] = np.nan
        residuals[:, j] = real[:, j] - model.transform(without)[:, j]
    return deviations(residuals, task.test.codes)


def z_score_errors(task: Task) -> Answer:
    """What a look at every column by itself finds."""
    return deviations(task.test.real, task.test.codes)


def prepared(task: Task) -> tuple[Array, Array]:
    """Medians for holes, 0 and 1 for levels, unit variance."""
    steps = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    train, test = (numbers(cells, task.levels) for cells in (task.train, task.test))
    return steps.fit_transform(train), steps.transform(test)


def lof_novelty(task: Task) -> Answer:
    """LocalOutlierFactor as it comes."""
    train, test = prepared(task)
    return {"score": -LocalOutlierFactor(novelty=True).fit(train).score_samples(test)}


def forest_novelty(task: Task) -> Answer:
    """IsolationForest with more trees."""
    train, test = prepared(task)
    model = IsolationForest(n_estimators=300, random_state=SEED).fit(train)
    return {"score": -model.score_samples(test)}


def searched(model: object, grid: dict[str, Any], task: Task) -> Answer:
    """The best of a grid by held-out density, in the units of the table."""
    train, test = task.train.real + task.train_jitter, task.test.real + task.test_jitter
    mean, sd = train.mean(axis=0), train.std(axis=0)
    best = GridSearchCV(model, grid, cv=3).fit((train - mean) / sd).best_estimator_
    return {"log_density": best.score_samples((test - mean) / sd) - np.log(sd).sum()}


def gaussian_mixture_reals(task: Task) -> Answer:
    """Components, shape and floor of a GaussianMixture."""
    grid = {
        "n_components": [1, 2, 3, 5],
        "covariance_type": ["full", "tied", "diag"],
        "reg_covar": [1e-4, 1e-2, 1e-1],
    }
    return searched(GaussianMixture(random_state=SEED, n_init=2), grid, task)


def kernel_density_reals(task: Task) -> Answer:
    """The bandwidth of a KernelDensity."""
    return searched(KernelDensity(), {"bandwidth": np.geomspace(0.05, 2, 20)}, task)


PEERS: dict[str, dict[str, Callable[[Task], Answer]]] = {
    "hidden": {"IterativeImputer": iterative_hidden},
    "reals": {"GaussianMixture": gaussian_mixture_reals, "KernelDensity": kernel_density_reals},
    "errors": {"z-score": z_score_errors, "IterativeImputer": iterative_errors},
    "novelty": {"LocalOutlierFactor": lof_novelty, "IsolationForest": forest_novelty},
}

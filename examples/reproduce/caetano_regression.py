"""RBF network regressors beside a Gaussian process and a Bayesian linear regression."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from scipy.stats import norm
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import RBFNetworkRegressor
from bayesrbf.datasets import hide_cells, load_table
from reproduce.cells import Cell, Figures

DRAWN: Final = 300  # Rows of a generated table.
PROB: Final = 0.9  # Probability of the intervals.


@dataclass(frozen=True)
class Numbers:
    """A table with a real response; missing cells are NaN."""

    X: Float[np.ndarray, "obs column"]
    y: Float[np.ndarray, " obs"]


def _diabetes(seed: int) -> Numbers:
    """Progression of the disease after a year; the table of scikit-learn."""
    return Numbers(*load_diabetes(return_X_y=True))


def _glass(seed: int) -> Numbers:
    """Refractive index of glass from its eight oxides, in units of 0.001."""
    X = load_table("glass").X
    return Numbers(X.drop(columns="RI").to_numpy(), 1000 * (X["RI"].to_numpy() - 1.5))


def _pima(seed: int) -> Numbers:
    """Body mass index from the other measurements of the Pima; half of insulin is missing."""
    X = load_table("pima_uci_missing").X
    X = X[X["mass"].notna()]
    return Numbers(X.drop(columns="mass").to_numpy(), X["mass"].to_numpy())


def _friedman1_with_holes(seed: int) -> Numbers:
    """Friedman's first generator with a fifth of the cells hidden."""
    X, y = make_friedman1(DRAWN, noise=1.0, random_state=seed)
    return Numbers(hide_cells(X, 0.2, np.random.default_rng(seed)), y)


TABLES: Final[Mapping[str, Callable[[int], Numbers]]] = {
    "diabetes": _diabetes,
    "glass: RI": _glass,
    "pima: mass": _pima,
    "friedman 1": lambda seed: Numbers(*make_friedman1(DRAWN, noise=1.0, random_state=seed)),
    "friedman 1, holes": _friedman1_with_holes,
    "friedman 2": lambda seed: Numbers(*make_friedman2(DRAWN, noise=50.0, random_state=seed)),
    "friedman 3": lambda seed: Numbers(*make_friedman3(DRAWN, noise=0.1, random_state=seed)),
}


def methods(seed: int) -> dict[str, Any]:
    """Regressors by name; the baselines see medians in place of missing cells.

    ``predict`` returns a standard deviation as well.
    """
    kernel = ConstantKernel(1.0) * RBF(3.0) + WhiteKernel(0.1)
    filled = (SimpleImputer(strategy="median"), StandardScaler())
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    return {
        "RBF network": RBFNetworkRegressor(random_state=seed),
        "RBF network, full": RBFNetworkRegressor(covariance_type="full", random_state=seed),
        "GP": make_pipeline(*filled, process),
        "BayesianRidge": make_pipeline(*filled, BayesianRidge()),
    }


def cells(names: tuple[str, ...], seeds: int) -> Iterator[Cell]:
    """Random halves of every table.

    A cell has the error over the standard deviation of the responses, the negative log density per
    response in that unit, and the coverage of the intervals in %.
    """
    for seed in range(seeds):
        for name in names:
            for method in methods(seed):
                yield Cell(f"regression/{name}/{method}/{seed}", partial(_fit, name, method, seed))


def _fit(name: str, method: str, seed: int) -> Figures:
    """Fit to one half and judge on the other."""
    data = TABLES[name](seed)
    X, X_new, y, y_new = train_test_split(data.X, data.y, test_size=0.5, random_state=seed)
    model = methods(seed)[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # length scales stop at a bound
        mean, sd = model.fit(X, y).predict(X_new, return_std=True)
    if hasattr(model, "predict_interval"):
        with warnings.catch_warnings():
            # The thesis has no logarithms: its intervals may reach below a positive response.
            warnings.filterwarnings("ignore", ".*intervals? reach")
            lower, upper = model.predict_interval(X_new, PROB).T
        log_density = model.log_predictive_density(X_new, y_new)
    else:
        half = norm.ppf((1 + PROB) / 2) * sd
        lower, upper = mean - half, mean + half
        log_density = norm.logpdf(y_new, mean, sd)
    spread = float(y_new.std())
    return {
        "error": float(np.sqrt(np.mean((mean - y_new) ** 2))) / spread,
        "surprise": -float(np.mean(log_density)) - float(np.log(spread)),
        "coverage": 100 * float(np.mean((lower <= y_new) & (y_new <= upper))),
    }

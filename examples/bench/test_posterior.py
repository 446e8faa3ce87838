"""Four chains of 1,500 on iris and wine with holes: do they agree, and is Laplace near?

``BAYESRBF_CHAINS`` chooses lines of the table, by beginnings of their names without blanks
("iris,K=1"), with colons.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

from bayesrbf.inference.diagnose import PosteriorWarning
from bench.figures import show
from tests.cases import generative

TABLES = {"iris": load_iris, "wine": load_wine}
BOUNDS = {
    "rhat_log_posterior": 1.01,
    "rhat_class_probabilities": 1.01,
    "rhat_parameters": 1.02,
    "divergences": 0.5,
}
SHOWN = {
    "rhat_log_posterior": "R-hat of the log posterior",
    "rhat_class_probabilities": "of class probabilities",
    "rhat_parameters": "of relabelled parameters",
    "Laplace to NUTS": "Laplace to NUTS",
}


APART = "wine, K = 2, NUTS"
"""Its chains need not agree."""


def sampled(name: str, n_components: int) -> pd.Series:
    """Figures of both methods on a table with a quarter of its cells hidden."""
    X, y = TABLES[name](return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    model = generative(n_components, random_state=0).fit(X, y)
    at_map = model.predict_proba(X)
    seconds, probabilities = {}, {}
    for method, options in {"laplace": {}, "nuts": {"draws": 1500, "tune": 1000}}.items():
        start = time.perf_counter()
        model.refine(method, chains=4, **options)
        seconds[method] = time.perf_counter() - start
        probabilities[method] = model.predict_proba(X)
    with warnings.catch_warnings():  # the figures are judged below
        warnings.simplefilter("ignore", PosteriorWarning)
        found = model.diagnose().set_index("row")["value"]
    further = {
        "MAP to NUTS": np.abs(at_map - probabilities["nuts"]).max(),
        "Laplace to NUTS": np.abs(probabilities["laplace"] - probabilities["nuts"]).max(),
        "time, NUTS / Laplace": seconds["nuts"] / seconds["laplace"],
    }
    return pd.concat([found[list(BOUNDS)], pd.Series(further)])


def gibbs_on_two_modes() -> pd.Series:
    """Agreement of Gibbs chains on wine, two components a class."""
    X, y = load_wine(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    model = generative(2, random_state=0).fit(X, y)
    model.refine("gibbs", chains=4, draws=1500)
    with warnings.catch_warnings():  # the figures are judged below
        warnings.simplefilter("ignore", PosteriorWarning)
        found = model.diagnose().set_index("row")["value"]
    return found[[row for row in BOUNDS if row in found]]


def test_four_long_chains_agree() -> None:
    """NUTS where it mixes, NUTS and Gibbs where there are two modes.

    Wine, K = 2: ten odd rows of one class have a component of their own, or have none. A sampler
    that follows gradients stays in either mode for hundreds of draws, and whether its chains agree
    is up to luck; the jumps of Gibbs chains cross.
    """
    lines = {
        f"{name}, K = {n}, NUTS": partial(sampled, name, n)
        for name, n in (("iris", 1), ("iris", 2), ("wine", 1))
    }
    lines |= {"wine, K = 2, Gibbs": gibbs_on_two_modes, APART: partial(sampled, "wine", 2)}
    begin = tuple(os.environ.get("BAYESRBF_CHAINS", "").split(":"))
    found = {
        line: make() for line, make in lines.items() if line.replace(" ", "").startswith(begin)
    }
    told = pd.DataFrame(found).T.reindex(columns=list(SHOWN)).rename(columns=SHOWN)
    show("posterior/four_chains", told, 4, {"lines": (len(told), len(lines))})
    for line, figures in found.items():
        bounds = {"divergences": 0.5} if line == APART else BOUNDS
        assert all(figures[row] < bound for row, bound in bounds.items() if row in figures), line

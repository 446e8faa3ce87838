"""From call to posterior: every method of ours beside what PyMC's users have.

Each table is split into stratified halves; the estimator is fitted to one, and class
probabilities of the other are compared with those of a long run of NUTS. Theirs includes
declaring and compiling the graph, as a user waits for it. ``BAYESRBF_TABLES`` and
``BAYESRBF_METHODS`` choose (beginnings of the names in the dictionaries below, with commas);
``BAYESRBF_LIMIT`` is the number of seconds after which a method is given up (600);
``BAYESRBF_SEEDS`` the number of splits over which log scores are averaged (10).
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import NoReturn

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier
from bayesrbf.base.arrays import log_loss
from bayesrbf.datasets import hide_cells, hide_labels, load_table
from bayesrbf.inference.diagnose import effective_draws
from bench.figures import show
from tests.cases import generative

# A graph of a table of one's own is compiled anew: nothing is taken from earlier runs.
os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={tempfile.mkdtemp()}"

SEED, CHAINS, DRAWS, TUNE = 0, 4, 500, 500
LIMIT = int(os.environ.get("BAYESRBF_LIMIT", "600"))
SPLITS = int(os.environ.get("BAYESRBF_SEEDS", "10"))
SMALLEST = 1e-6
"""Probabilities are clipped here, so that one confident miss is not infinite."""


@dataclass(frozen=True)
class Case:
    """A table and how it is spoilt."""

    table: str
    n_components: int = 1
    cells: float = 0.0
    labels: float = 0.0

    def halves(self, seed: int = SEED) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
        """Training rows and labels, test rows and class codes."""
        rng = np.random.default_rng(seed)
        data = load_table(self.table)
        X = hide_cells(data.X, self.cells, rng) if self.cells else data.X
        classes, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
        X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        labels = classes[y]
        return X, hide_labels(labels, self.labels, rng) if self.labels else labels, X_new, y_new


CASES = {
    "iris": Case("iris"),
    "wine": Case("wine"),
    "breast cancer, K = 2": Case("breast_cancer", n_components=2),
    "pima, its own holes": Case("pima_uci_missing"),
    "heart, half of the labels hidden": Case("heart_statlog", labels=0.5),
}

Rival = Callable[[HybridMixtureClassifier], xr.DataTree]


def nutpie_on_graph(model: HybridMixtureClassifier) -> xr.DataTree:
    import nutpie

    compiled = nutpie.compile_pymc_model(model.declare())
    return nutpie.sample(
        compiled, draws=DRAWS, tune=TUNE, chains=CHAINS, seed=SEED, progress_bar=False
    )


def pymc_sample(model: HybridMixtureClassifier) -> xr.DataTree:
    import pymc as pm

    size = {"draws": DRAWS, "tune": TUNE, "chains": CHAINS}
    with model.declare():
        return pm.sample(**size, nuts_sampler="pymc", random_seed=SEED, progressbar=False)


def pymc_advi(model: HybridMixtureClassifier) -> xr.DataTree:
    import pymc as pm

    with model.declare():
        fit = pm.fit(method="advi", random_seed=SEED, progressbar=False)
        return fit.sample(CHAINS * DRAWS, random_seed=SEED)


def extras_laplace(model: HybridMixtureClassifier) -> xr.DataTree:
    import pymc_extras as pmx

    # Draws one by one: a weight that is constant loses its axes when they are vectorised.
    options = {"vectorize_draws": False, "random_seed": SEED, "progressbar": False}
    return pmx.fit_laplace(model=model.declare(), draws=CHAINS * DRAWS, **options)


SIZE = {"chains": CHAINS, "draws": DRAWS}
OURS: dict[str, dict[str, object]] = {
    "laplace": {"method": "laplace", **SIZE},
    "laplace, resampled": {"method": "laplace", "resample": True, **SIZE},
    "advi": {"method": "advi", **SIZE},
    "advi, mean field": {"method": "advi", "covariance": "mean_field", **SIZE},
    "gibbs": {"method": "gibbs", **SIZE},
    "nuts": {"method": "nuts", "tune": TUNE, **SIZE},
}
RIVALS: dict[str, Rival] = {
    "nutpie on the graph": nutpie_on_graph,
    "pm.sample": pymc_sample,
    "pm.fit(method='advi')": pymc_advi,
    "pmx.fit_laplace": extras_laplace,
}


class GivenUpError(Exception):
    """A method takes too long; not a TimeoutError, which means something to nutpie's callers."""


def chosen(variable: str, names: list[str]) -> list[str]:
    """Names that an environment variable picks by their beginnings; all without it."""
    picked = os.environ.get(variable)
    if picked is None:
        return names
    return [name for name in names if name.startswith(tuple(picked.split(",")))]


@contextmanager
def limited() -> Iterator[None]:
    """Give up after a while: what takes ten minutes has lost."""

    def give_up(signum: int, frame: FrameType | None) -> NoReturn:
        raise GivenUpError(f"more than {LIMIT} s")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def attempts() -> Iterator[tuple[str, Callable[[HybridMixtureClassifier], object]]]:
    """What every method does to a fitted estimator, chosen ones only."""
    everything = {name: partial(HybridMixtureClassifier.refine, **o) for name, o in OURS.items()}
    for name in chosen("BAYESRBF_METHODS", [*everything, *RIVALS]):
        yield name, everything.get(name) or RIVALS[name]


def log_score(p: np.ndarray, y: np.ndarray) -> float:
    """Mean log probability of the true classes."""
    clipped = np.maximum(p, SMALLEST)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return -float(log_loss(clipped, y).mean())


def contest(case: Case) -> Iterator[dict[str, object]]:
    """Figures of the MAP and of every method on one table."""
    X, y, X_new, y_new = case.halves()

    def fitted() -> HybridMixtureClassifier:
        return generative(case.n_components, unlabelled_weight=1.0, random_state=SEED).fit(X, y)

    def figures(p: np.ndarray) -> dict[str, float]:
        change = np.abs(p - reference)
        return {"largest": change.max(), "mean": change.mean(), "log score": log_score(p, y_new)}

    long = {"draws": 4 * DRAWS, "tune": 2 * TUNE, "chains": CHAINS, "random_state": SEED + 1}
    reference = fitted().refine("nuts", **long).predict_proba(X_new)
    start = time.perf_counter()
    model = fitted()
    seconds = time.perf_counter() - start
    yield {"method": "map", "seconds": seconds, **figures(model.predict_proba(X_new))}
    for name, attempt in attempts():
        model, start = fitted(), time.perf_counter()
        try:
            with limited():
                made = attempt(model)
        except Exception as error:  # a rival that gives up is a line of the table
            late = time.perf_counter() - start >= LIMIT  # compiled code may wrap what says so
            why = f"more than {LIMIT} s" if late else f"{type(error).__name__}: {error}"[:60]
            yield {"method": name, "outcome": why}
            continue
        seconds = time.perf_counter() - start
        if isinstance(made, xr.DataTree):
            model.use_posterior(made)
        draws = model.draws_
        effective = min(effective_draws(draws.theta, kind) for kind in ("bulk", "tail"))
        yield {
            "method": name,
            "seconds": seconds,
            "ESS/s": effective / seconds,
            **figures(model.predict_proba(X_new)),
            "outcome": outcome(draws),
        }


def outcome(draws: object) -> str:
    """What the method says of itself."""
    parts = []
    if "pareto_k" in draws.attributes:
        parts.append(f"k = {draws.attributes['pareto_k']:.2f}")
    if "diverging" in draws.stats:
        parts.append(f"{int(draws.stats['diverging'].sum())} divergences")
    return ", ".join(parts)


# Giving up may fall into a callback of compiled code, which cannot pass it on at once.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", chosen("BAYESRBF_TABLES", list(CASES)))
def test_from_call_to_posterior(name: str, data_folder: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = pd.DataFrame(contest(CASES[name])).set_index("method")
    digits = {"seconds": 4, "largest": 4, "mean": 4, "log score": 4, "ESS/s": 1}
    told = results[[*digits, "outcome"]].astype(object).where(results.notna(), None)
    show(f"engine/{slug(name)}", told, digits, {"methods": (len(told), len(OURS | RIVALS) + 1)})
    ours = results.index.intersection(OURS)
    assert results.loc[ours, "seconds"].notna().all(), "a method of ours failed"


def slug(name: str) -> str:
    """A table's name as part of a file's."""
    return re.sub(r"\W+", "_", name)


def scores_of(case: Case, seed: int) -> dict[str, float]:
    """Log scores of the MAP and of every method of ours on one split."""
    X, y, X_new, y_new = case.halves(seed)
    model = generative(case.n_components, unlabelled_weight=1.0, random_state=seed).fit(X, y)
    scores = {"map": log_score(model.predict_proba(X_new), y_new)}
    for name in chosen("BAYESRBF_METHODS", list(OURS)):
        model.refine(**OURS[name], random_state=seed)
        scores[name] = log_score(model.predict_proba(X_new), y_new)
    return scores


def test_no_posterior_scores_worse_than_the_map(data_folder: object) -> None:
    """Over splits: the score of a single one is up to a row or two."""
    names = chosen("BAYESRBF_TABLES", list(CASES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = {
            (name, seed): scores_of(CASES[name], seed) for name in names for seed in range(SPLITS)
        }
    scores = pd.DataFrame(rows).T
    gains = scores.sub(scores["map"], axis=0).drop(columns="map")
    means = scores.groupby(level=0, sort=False).mean()
    of_table = gains.groupby(level=0, sort=False)
    told = of_table.mean().map("{:.3f}".format) + of_table.sem().map(" ({:.3f})".format)
    told.insert(0, "MAP", means["map"])
    counts = {"tables": (len(names), len(CASES)), "splits": (SPLITS, 10)}
    show("engine/log_scores", told.rename_axis("table"), counts=counts)
    assert (means.mean() >= means["map"].mean()).all()

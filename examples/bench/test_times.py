"""Times: an EM iteration and a whole fit beside scikit-learn, and what users wait for.

Ratios are of medians of contestants that take turns in one run: the machine may be busy, but it is
so for both. Seconds of a model are CPU seconds of one thread, those of commands are of processes of
their own. ``test_quality.py`` has the seconds of fits beside a forest's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bayesrbf import HybridMixtureClassifier, MixtureDensity, MixturePrior, StackedClassifier
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Standardisation,
)
from bayesrbf.datasets import load_table
from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.expectation import ArrayExpectation
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.points import component_covariances
from bench.figures import Row, show
from bench.tables import split
from tests.measured import ROOT

TURNS: Final = 5
KERNELS: Final = {"compiled": CompiledExpectation, "NumPy": ArrayExpectation}
APART, OVERLAPPING = 2.0, 0.2
"""Deviation of the centres in units of the noise: a row belongs to one component, or to all."""
BESIDE_SKLEARN: Final = (
    ("compiled", "full", APART, 100_000, 10),
    ("compiled", "full", APART, 100_000, 50),
    ("compiled", "full", OVERLAPPING, 20_000, 50),
    ("compiled", "full", APART, 10_000, 10),
    ("compiled", "full", APART, 1_000, 10),
    ("compiled", "diag", APART, 100_000, 10),
    ("NumPy", "full", APART, 100_000, 10),
)
"""E-step, covariances, centres, rows, columns."""
HOLES: Final = ((100_000, 10, 0.05), (100_000, 10, 0.2), (20_000, 30, 0.5))
"""Rows, columns, share of missing cells."""
K: Final = 8
FITTED: Final = (
    "iris",
    "wine",
    "breast_cancer",
    "glass",
    "sonar",
    "hepatitis",
    "heart_cleveland",
    "credit_approval",
)
FITS: Final = 11
STOPPING: Final = (1e-3, 1e-6)
"""Rise of the log likelihood a row at which both stop: the default of scikit-learn, and ours."""
MAX_STEPS: Final = 10_000

Iteration = Callable[[], float]
"""An E-step and an M-step; gives the log likelihood per row."""


def seconds_each(iterate: Iteration) -> float:
    """Mean seconds over a tenth of a second of iterations, at least one."""
    repeats = 0
    start = time.perf_counter()
    while repeats == 0 or time.perf_counter() - start < 0.1:
        iterate()
        repeats += 1
    return (time.perf_counter() - start) / repeats


def medians(contestants: dict[str, tuple[int | None, Iteration]]) -> dict[str, float]:
    """Median seconds of each iteration under so many BLAS threads.

    Everyone warms up at every turn: threads of BLAS that have nothing left to do keep a
    processor busy for a while, at the cost of who comes next.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(TURNS):
        for name, (threads, iterate) in contestants.items():
            with threadpool_limits(threads, "blas"):
                seconds_each(iterate)
                times[name].append(seconds_each(iterate))
    return {name: float(np.median(seconds)) for name, seconds in times.items()}


def ours(
    observations: Observations,
    specification: MixtureSpecification,
    point: MixtureParameters,
    kernels: str = "compiled",
) -> Iteration:
    """The package's iteration at a point."""
    d, n = specification.n_features, observations.n_obs
    prior = MixturePrior().resolve(specification, Standardisation(np.zeros(d), np.ones(d)), ())
    expectation = KERNELS[kernels](observations, specification)

    def iterate() -> float:
        statistics = expectation.statistics(point)
        laws_of(specification).mode(statistics, point, prior)
        return statistics.log_likelihood / n

    return iterate


def clusters(
    shape: str, n_obs: int, d: int, missing: float, spread: float = APART
) -> tuple[Observations, MixtureSpecification, MixtureParameters]:
    """Rows around eight centres in standard units, and their true parameters."""
    rng = np.random.default_rng(0)
    centres = spread * rng.normal(size=(K, d))
    real = centres[rng.integers(0, K, n_obs)] + rng.normal(size=(n_obs, d))
    location, scale = real.mean(axis=0), real.std(axis=0)
    real = (real - location) / scale
    real[rng.random(real.shape) < missing] = np.nan
    observations = Observations(
        real, np.empty((n_obs, 0), np.intp), np.zeros(n_obs, np.intp), np.ones(n_obs)
    )
    factors = np.tile(
        np.diag(scale) if shape == "full" else scale, (K, *[1] * (2 - (shape != "full")))
    )
    point = MixtureParameters(
        np.ones(1), np.full(K, 1 / K), (centres - location) / scale, factors, ()
    )
    return observations, MixtureSpecification(d, (), (0,) * K, shape), point


def log_likelihood(
    real: np.ndarray, point: MixtureParameters, specification: MixtureSpecification
) -> float:
    """Mean log density of the observed cells, row by row and component by component."""
    moments = list(zip(point.means, component_covariances(point, specification), strict=True))
    total = 0.0
    for row in real:
        seen = ~np.isnan(row)
        logs = [
            multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
            for mean, covariance in moments
        ]
        total += logsumexp(logs, b=point.weights)
    return total / len(real)


def sklearn_iteration(real: np.ndarray, shape: str, point: MixtureParameters) -> Iteration:
    """scikit-learn's iteration at the same point."""
    mixture = GaussianMixture(K, covariance_type=shape)

    def iterate() -> float:
        mixture.weights_, mixture.means_ = point.weights, point.means
        mixture.precisions_cholesky_ = point.precisions_cholesky  # diagonal in either layout
        log_likelihood, log_shares = mixture._e_step(real)
        mixture._m_step(real, log_shares)
        return float(log_likelihood)

    return iterate


def test_iteration_beside_sklearn() -> None:
    """scikit-learn runs with BLAS at the better of one and all threads."""
    lines: list[Row] = []
    for kernels, shape, spread, n_obs, d in BESIDE_SKLEARN:
        observations, specification, point = clusters(shape, n_obs, d, 0.0, spread)
        mine = ours(observations, specification, point, kernels)
        theirs = sklearn_iteration(observations.real, shape, point)
        np.testing.assert_allclose(mine(), theirs(), rtol=1e-9)
        seconds = medians({"ours": (1, mine), "one": (1, theirs), "all": (None, theirs)})
        lines.append(
            {
                "E-step": kernels,
                "covariances": shape,
                "centres": "apart" if spread == APART else "overlapping",
                "rows": n_obs,
                "columns": d,
                "scikit-learn / bayesrbf": min(seconds["one"], seconds["all"]) / seconds["ours"],
            }
        )
    show("times/sklearn", lines, 2)


def test_price_of_holes() -> None:
    lines: list[Row] = []
    for n_obs, d, missing in HOLES:
        rows, specification, point = clusters("full", n_obs, d, missing)
        some = rows.take(np.arange(50))
        np.testing.assert_allclose(
            ours(some, specification, point)(),
            log_likelihood(some.real, point, specification),
            rtol=1e-9,
        )
        with_holes = ours(rows, specification, point)
        complete = ours(*clusters("full", n_obs, d, 0.0))
        seconds = medians({"complete": (1, complete), "holes": (1, with_holes)})
        lines.append(
            {
                "rows": n_obs,
                "columns": d,
                "missing": missing,
                "with holes / complete": seconds["holes"] / seconds["complete"],
            }
        )
    show("times/holes", lines, 2)


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """Least CPU seconds of some calls on one thread: threads that wait for another count, too."""
    taken = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for _ in range(repeats):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return min(taken)


def test_fit_beside_sklearn(data_folder: object) -> None:
    """Three full components of complete reals, from one start to one rise of the log likelihood."""
    lines: list[Row] = []
    for name in FITTED:
        reals = load_table(name).X.select_dtypes("number").dropna()
        X = StandardScaler().fit_transform(reals)
        for tol in STOPPING:
            mine = MixtureDensity(3, n_init=1, tol=tol, max_iter=MAX_STEPS, random_state=0)
            theirs = GaussianMixture(3, tol=tol, max_iter=MAX_STEPS, random_state=0)
            pairs = [
                (seconds(lambda: mine.fit(X)), seconds(lambda: theirs.fit(X)))  # noqa: B023
                for _ in range(FITS)
            ]
            our_time, their_time = np.median(pairs[1:], axis=0)
            lines.append(
                {
                    "table": name,
                    "rows": len(X),
                    "columns": X.shape[1],
                    "rise a row": f"{tol:g}",
                    "ms (bayesrbf)": 1e3 * our_time,
                    "scikit-learn / bayesrbf": their_time / our_time,
                    "iterations (bayesrbf)": mine.n_iter_,
                    "iterations (scikit-learn)": theirs.n_iter_,
                }
            )
    show("times/fit_sklearn", lines, 2)


def test_time_of_intervals(data_folder: object) -> None:
    """A stack of 200 rows of heart_cleveland: a fit, its intervals, an answer with its interval.

    Last, a fit of the default mixture to the same rows.
    """
    data = split("heart_cleveland", 0, False)
    X, y = pd.concat([data.X, data.X_new[:49]]), np.append(data.y, data.y_new[:49])
    row = data.X_new[50:51]
    model = StackedClassifier(random_state=0)
    seconds(lambda: StackedClassifier(random_state=0).fit(X[:60], y[:60]))
    steps = {
        "`fit`": lambda: model.fit(X, y),
        "`refine()`": lambda: model.refine(),
        "`predict_proba` of a row": lambda: model.predict_proba(row),
        "`uncertainty` of a row, the first time": lambda: model.uncertainty(row),
        "`uncertainty` of a row, later": lambda: model.uncertainty(row),
        "`fit` of a mixture": lambda: HybridMixtureClassifier(random_state=0).fit(X, y),
    }
    rows = [{"": step, "CPU seconds": seconds(call)} for step, call in steps.items()]
    show("times/intervals", rows, 2)


def questions(model: Any, X: pd.DataFrame) -> Iterator[tuple[str, Callable[[], object]]]:
    """What can be asked of rows."""
    costs = {label: {"treat": 1.0 - label, "wait": 5.0 * label} for label in model.classes_}
    yield "predict_proba", lambda: model.predict_proba(X)
    yield "uncertainty", lambda: model.uncertainty(X)
    yield "decide", lambda: model.decide(X, costs)
    yield "explain, by orders", lambda: model.explain(X, exact=1)
    yield "acquire_cells", lambda: model.acquire_cells(X)
    yield "impute", lambda: model.impute(X)
    yield "surprise", lambda: model.surprise(X)
    yield "novelty", lambda: model.novelty(X)


def test_time_of_questions(data_folder: object) -> None:
    """Milliseconds a row, 20 rows at once, with draws; 30 % of the cells are hidden."""
    data = split("heart_cleveland", 0, holes=True)
    rows, told = data.X_new[:20], {}
    for name, model, method in (
        ("mixture", HybridMixtureClassifier(random_state=0), "laplace"),
        ("stack", StackedClassifier(random_state=0), "laplace"),
    ):
        model.fit(data.X, data.y).refine(method)
        told[name] = {
            f"`{what}`": 1000 * seconds(ask, 3) / len(rows) for what, ask in questions(model, rows)
        }
    show("times/questions", pd.DataFrame(told), 2)


FIRST_FIT: Final = """
from sklearn.datasets import load_iris
from bayesrbf import StackedClassifier
X, y = load_iris(return_X_y=True)
X[::7, 0] = float("nan")
StackedClassifier(random_state=0).fit(X, y)
"""
"""Rows with missing cells go through all kernels."""
SAVE: Final = FIRST_FIT.replace("StackedClassifier(", "model = StackedClassifier(") + (
    "model.save('model.safetensors')\n"
)
LOAD: Final = """
import bayesrbf
bayesrbf.load("model.safetensors").predict_proba([[5.0, 3.0, 1.0, 0.2]])
"""


def run(folder: Path, kernels: Path, *words: object) -> float:
    """CPU seconds of a process and those that it starts; compiled kernels are kept in a folder."""
    mine = {name: value for name, value in os.environ.items() if name != "LOKY_MAX_CPU_COUNT"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, words)],
        cwd=folder,
        env={**mine, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(kernels)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_wait(data_folder: object, tmp_path: Path) -> None:
    data = load_table("heart_cleveland")
    data.X.assign(target=np.asarray(data.y, dtype=str)).to_csv(tmp_path / "heart.csv", index=False)
    kernels, lines = tmp_path / "kernels", list[Row]()
    report = ("-m", "bayesrbf", "report", "heart.csv", "--target", "target", "--out", "report")
    demo = ("-m", "bayesrbf", "demo", "--out", "demo")
    works: dict[str, tuple[object, ...]] = {
        "a process that fits a stack to iris, nothing compiled": ("-c", FIRST_FIT),
        "the same later": ("-c", SAVE),
        "a process that loads it and predicts a row": ("-c", LOAD),
        "`bayesrbf report`, heart_cleveland": report,
        "`bayesrbf demo`": demo,
    }
    for work, words in works.items():
        lines.append({"work": work, "CPU seconds": run(tmp_path, kernels, *words)})
        print(lines[-1], flush=True)
    show("times/wait", lines, 1)

"""Time of a sweep against the number of rows, of swaps against the generalised EM, and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from bayesrbf.families.median_lvq.objectives import ConditionalLikelihood
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes
from bayesrbf.families.median_lvq.search import climb, random_exemplars, sweeps
from bench.figures import show
from reproduce import nebel
from tests.measured import COST

SIZES = (500, 1000, 2000, 4000)
MOST_MEMORY = 4.0
"""GiB that a fit of 20,000 rows may take."""

LARGE = """
import resource, numba, numpy as np
from bayesrbf import MedianLVQClassifier
rng = np.random.default_rng(0)
y = np.arange(20_000) % 20
X = rng.normal(size=(20_000, 2)) + 3 * y[:, None]
{given}
options = dict(sigma=1.0, calibrate=False, n_init=1, max_iter=2, random_state=0)
model = MedianLVQClassifier(1, metric={metric}, **options)
model.fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
COMPILED = "numba.njit(lambda a, b: ((a - b) ** 2).sum())"
MATRIX = """
D = np.empty((20_000, 20_000), np.float32)
for start in range(0, 20_000, 500):
    D[start:start + 500] = ((X[start:start + 500, None] - X) ** 2).sum(-1)
X = D
"""


def table(n_obs: int, n_classes: int = 10) -> ConditionalLikelihood:
    """Three prototypes a class on overlapping blobs."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_obs) % n_classes
    points = rng.normal(size=(n_obs, 5)) + 1.5 * np.eye(n_classes, 5)[labels]
    values = ((points[:, None] - points) ** 2).sum(-1)
    candidates = tuple(np.flatnonzero(labels == c) for c in range(n_classes))
    rows = Dissimilarities(values, labels, np.ones(n_obs), candidates)
    classes = tuple(np.repeat(np.arange(n_classes), 3).tolist())
    return ConditionalLikelihood(rows, Prototypes(classes), float(np.sqrt(0.2 * rows.scale)))


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def one_by_one(objective: ConditionalLikelihood, exemplars: np.ndarray, prototype: int) -> list:
    """What the matrix expression replaces."""
    values = []
    for row in objective.rows.candidates[objective.prototypes.classes[prototype]]:
        exemplars[prototype] = row
        values.append(objective.value(exemplars))
    return values


def test_time_against_rows_and_against_the_generalised_em() -> None:
    lines = []
    for n_obs in SIZES:
        objective = table(n_obs)
        start = random_exemplars(objective.rows, objective.prototypes, np.random.default_rng(1))
        by_em = [objective.value(start)]
        em_seconds = seconds(lambda: sweeps(objective, start, by_em, 100, bounded=True))  # noqa: B023
        begun = time.perf_counter()
        _, swaps, _ = climb(objective, start, 100)
        swap_seconds = time.perf_counter() - begun
        scorer = objective.scorer(start)
        scorer.scores(0)  # compiles, and makes what is kept between turns
        update = seconds(lambda: scorer.scores(0))  # noqa: B023
        loop = seconds(lambda: one_by_one(objective, start.copy(), 0))  # noqa: B023
        lines.append(
            {
                "rows": n_obs,
                "update (ms)": 1e3 * update,
                "loop / update": loop / update,
                "gem (s)": em_seconds,
                "swap (s)": swap_seconds,
                "gem sweeps": len(by_em) - 1,
                "swap sweeps": swaps.n_iter - 1,
                "gem (nats)": by_em[-1],
                "swap (nats)": swaps.log_posterior[-1],
            }
        )
    figures = pd.DataFrame(lines).set_index("rows")
    show("median_lvq/time", figures, 2, about=COST)
    assert np.all(figures["swap (nats)"] >= figures["gem (nats)"])
    assert np.all(figures["loop / update"] > 2)


METRICS = {"matrix": "'precomputed'", "name": "'sqeuclidean'", "function": COMPILED}


def test_twenty_thousand_rows_fit_into_memory() -> None:
    rows = [{"metric": name, "GiB": memory_of(metric)} for name, metric in METRICS.items()]
    show("median_lvq/memory", rows, 2, about=COST)
    assert max(row["GiB"] for row in rows) < MOST_MEMORY


def memory_of(metric: str) -> float:
    """GiB of a process that fits 20,000 rows."""
    script = LARGE.format(metric=metric, given=MATRIX if "precomputed" in metric else "")
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    return float(run.stdout)


def test_light_tables_of_the_paper(data_folder: object) -> None:
    """One ten-fold cross-validation; ``bayesrbf reproduce nebel`` does ten, and all tables."""
    plan = nebel.Plan(1, 10, 150, ("aural sonar", "votes"))
    figures = {cell.name: cell.compute() for cell in nebel.cells(plan, seed=0)}
    errors, losses = (
        _frame(*nebel.summary(figures, name, 3, 1.0)) for name in ("error", "log_loss")
    )
    show("median_lvq/errors", errors)
    show("median_lvq/losses", losses)
    assert errors.loc["votes", "RSLVQ, swaps"] <= 0.065
    assert (losses["gibbs"] <= losses["RSLVQ, swaps"] + 0.02).all()


def _frame(header: list[str], rows: list[list[str]]) -> pd.DataFrame:
    """A summary as numbers."""
    return pd.DataFrame(rows, columns=header).set_index("").astype(float)

"""Updates of a model by labelled rows of another population: log loss by the number of rows.

Five columns tell of a class that one row in five has. A model is fitted to 500 rows. The new
population has nothing else, more of the class, half of what the cells tell, or a column that tells
the opposite. The log loss is that of 4000 further rows of it. What each update changes is the mean
over 12 training tables and five drawings of local rows of each; that of a refit over five, of one
drawing.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesrbf import RBFNetworkClassifier, StackedClassifier, recalibrate
from bayesrbf.base.arrays import log_scores
from bayesrbf.fit.updates import METHODS
from bench.figures import at_most, show

EFFECTS = np.array([1.2, -0.8, 0.5, 0.3, 0.0])
INTERCEPT = -1.8
SHIFTS: dict[str, tuple[float, np.ndarray]] = {
    "none": (INTERCEPT, EFFECTS),
    "prevalence": (INTERCEPT + 1.0, EFFECTS),
    "slope": (INTERCEPT, EFFECTS / 2),
    "one column": (INTERCEPT, EFFECTS * [1, -1, 1, 1, 1]),
}
"""Intercept and effects of the columns in the new population."""
ROWS = (20, 50, 100, 200, 500)
N_TABLES, N_LOCAL, N_REFITS, N_TRAINING, N_NEW = 12, 5, 5, 500, 4000
MIN_DIFFERENCE = 0.003
"""Nats that an update may lose by chance where nothing has changed."""


def drawn(n: int, shift: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a population and their labels."""
    intercept, effects = SHIFTS[shift]
    X = rng.normal(size=(n, EFFECTS.size))
    return X, (rng.random(n) < expit(intercept + X @ effects)).astype(int)


def changes(model, training, shift: str, n: int, seed: int, refits: bool) -> dict[str, float]:
    """Log loss of the model as it was, and what every update adds to it."""
    rng = np.random.default_rng([seed, n])
    (X, y), (X_new, y_new) = drawn(n, shift, rng), drawn(N_NEW, shift, rng)
    log_q = model.predict_log_proba(X_new)
    before = -log_scores(log_q, y_new).mean()
    found = {"none": before}
    for method in (*METHODS[1:-1], "cv"):
        (update,) = recalibrate(model, X, y, method).updates_
        found[method] = -log_scores(update.applied(log_q), y_new).mean() - before
    if refits:
        refit = recalibrate(model, X, y, "refit", training=training)
        found["refit"] = -log_scores(refit.predict_log_proba(X_new), y_new).mean() - before
    return found


def test_updates() -> None:
    lines = []
    for seed in range(N_TABLES):
        training = drawn(N_TRAINING, "none", np.random.default_rng(seed))
        model = RBFNetworkClassifier(5, n_init=1, cv=3, random_state=0).fit(*training)
        for shift, n, local in product(SHIFTS, ROWS, range(N_LOCAL)):
            told = {"model": "RBF network", "shift": shift, "rows": n}
            refits = local == 0 and seed < N_REFITS
            place = seed * N_LOCAL + local
            lines.append(told | changes(model, training, shift, n, place, refits))
        if seed < N_REFITS:
            stack = StackedClassifier(random_state=0).fit(*training)
            told = {"model": "stack", "shift": "prevalence", "rows": 100}
            lines += [
                told | changes(stack, training, "prevalence", 100, seed * N_LOCAL + local, False)
                for local in range(N_LOCAL)
            ]
        print(seed, flush=True)
    found = pd.DataFrame(lines)
    by_case = found.groupby(["model", "shift", "rows"], sort=False)
    means = by_case.mean()
    means.insert(list(means).index("cv") + 1, "se", by_case["cv"].sem())
    show("updates/by_rows", means, dict.fromkeys(list(means)[1:], 4))
    gained = found[found["model"] == "RBF network"]
    for _, of_case in gained.groupby(["shift", "rows"]):
        at_most(of_case["cv"], MIN_DIFFERENCE)
    for _, of_rows in gained.groupby("rows"):
        at_most(of_rows["cv"], 0.0)

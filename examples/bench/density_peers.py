"""What others say of the tasks of the density's benchmark: a program of an environment of its own.

``python -m bench.density_peers TASKS ANSWERS METHODS`` reads one file of arrays a task
and writes one a task and method. It knows nothing of this package. A peer that is not installed, or
that fails, is named in ``ANSWERS/absent.json`` with the reason, and the others go on.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from bench.density_exchange import (
    SEED,
    Answer,
    Array,
    Task,
    deviations,
    numbers,
)
from bench.density_imputers import (
    gcimpute_hidden,
    iterative_errors,
    iterative_hidden,
    miceforest_hidden,
)
from bench.density_lace import lace_errors, lace_hidden, lace_novelty, lace_reals


def z_score_errors(task: Task) -> Answer:
    """What a look at every column by itself finds."""
    return deviations(task["test_real"], task["test_codes"])


def prepared(task: Task) -> tuple[Array, Array]:
    """Medians for holes, 0 and 1 for levels, unit variance."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = (
        numbers(task[f"{part}_real"], task[f"{part}_codes"], task["levels"])
        for part in ("train", "test")
    )
    steps = make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )
    return steps.fit_transform(train), steps.transform(test)


def lof_novelty(task: Task) -> Answer:
    """scikit-learn's LocalOutlierFactor as it comes."""
    from sklearn.neighbors import LocalOutlierFactor

    train, test = prepared(task)
    return {"score": -LocalOutlierFactor(novelty=True).fit(train).score_samples(test)}


def forest_novelty(task: Task) -> Answer:
    """scikit-learn's IsolationForest as it comes, with more trees."""
    from sklearn.ensemble import IsolationForest

    train, test = prepared(task)
    model = IsolationForest(n_estimators=300, random_state=SEED).fit(train)
    return {"score": -model.score_samples(test)}


def scaled(task: Task) -> tuple[Array, Array, float]:
    """Jittered training and new rows in standard deviations, and the log volume of the units."""
    train = task["train_real"] + task["train_jitter"]
    test = task["test_real"] + task["test_jitter"]
    mean, sd = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / sd, (test - mean) / sd, float(np.log(sd).sum())


def gaussian_mixture_reals(task: Task) -> Answer:
    """scikit-learn's GaussianMixture; components, shape and floor by held-out density."""
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import GridSearchCV

    train, test, volume = scaled(task)
    grid = {
        "n_components": [1, 2, 3, 5, 8],
        "covariance_type": ["full", "tied", "diag"],
        "reg_covar": [1e-4, 1e-3, 1e-2, 1e-1],
    }
    search = GridSearchCV(GaussianMixture(random_state=SEED, n_init=2), grid, cv=3)
    return {"log_density": search.fit(train).best_estimator_.score_samples(test) - volume}


def kernel_density_reals(task: Task) -> Answer:
    """scikit-learn's KernelDensity, bandwidth by held-out density."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KernelDensity

    train, test, volume = scaled(task)
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 2, 20)}, cv=3)
    return {"log_density": search.fit(train).best_estimator_.score_samples(test) - volume}


PEERS: dict[str, dict[str, Callable[[Task], Answer]]] = {
    "hidden": {
        "Lace": lace_hidden,
        "miceforest": miceforest_hidden,
        "gcimpute": gcimpute_hidden,
        "IterativeImputer": iterative_hidden,
    },
    "reals": {
        "Lace": lace_reals,
        "GaussianMixture": gaussian_mixture_reals,
        "KernelDensity": kernel_density_reals,
    },
    "errors": {
        "Lace": lace_errors,
        "z-score": z_score_errors,
        "IterativeImputer": iterative_errors,
    },
    "novelty": {
        "Lace": lace_novelty,
        "LocalOutlierFactor": lof_novelty,
        "IsolationForest": forest_novelty,
    },
}


def main(tasks: Path, answers: Path, methods: tuple[str, ...]) -> None:
    """Answer every task; keep the reasons of those that cannot."""
    absent = []
    for path in sorted(tasks.glob("*.npz")):
        task = dict(np.load(path))
        for name, answer in PEERS[str(task["kind"])].items():
            if methods and not name.startswith(methods):
                continue
            begun = time.perf_counter()
            try:
                part = answers / "part"  # who waits for answers sees none that is half written
                with part.open("wb") as file:
                    np.savez(file, **answer(task))
                part.rename(answers / f"{path.stem}__{name}.npz")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a failure is a result; a panic of Rust is no Exception
                reason = f"{type(error).__name__}: {error}"[:200]
                absent.append({"task": path.stem, "model": name, "reason": reason})
            took = time.perf_counter() - begun
            print(f"{path.stem} {name} {took:.1f} s", flush=True)
    (answers / "absent.json").write_text(json.dumps(absent, indent=1))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), Path(sys.argv[2]), tuple(filter(None, sys.argv[3].split(","))))

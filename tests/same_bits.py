"""What families and methods say under one seed, in a process of its own: ``python -m`` this, FILE.

The environment sets threads and the hash seed; the answers are stored in FILE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BLAS = "OPENBLAS_NUM_THREADS"
NUMBA = "NUMBA_NUM_THREADS"
KERNELS = "NUMBA_CACHE_DIR"

THREADS: dict[str, dict[str, str]] = {
    "1 thread": {NUMBA: "1", BLAS: "1", "LOKY_MAX_CPU_COUNT": "1"},
    "2 threads": {NUMBA: "2", BLAS: "2", "LOKY_MAX_CPU_COUNT": "2", "PYTHONHASHSEED": "7"},
    "4 threads": {NUMBA: "4", BLAS: "4", "LOKY_MAX_CPU_COUNT": "4", "PYTHONHASHSEED": "8"},
    "2 processes": {NUMBA: "2", BLAS: "1", "PROCESSES": "2", "LOKY_MAX_CPU_COUNT": "2"},
}
"""Environments whose answers must be bit-equal; ``PROCESSES`` are those of chains and folds."""

QUICK = ("density, gibbs", "mixture", "exemplars", "kernel network, laplace")


def many_rows() -> dict[str, np.ndarray]:
    """Rows enough that threads share them, in kernels and in BLAS."""
    import bayesrbf

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    X = rng.normal(size=(20_000, 3)) + 2.0 * y[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    density = bayesrbf.MixtureDensity(2, covariance_type="full", max_iter=20, random_state=0)
    network = bayesrbf.KernelNetworkClassifier(n_exemplars=10, calibrate=False, random_state=0)
    return {
        "many rows, density": density.fit(X).score_samples(X),
        "many rows, network": network.fit(X, y).refine("laplace", draws=4).predict_proba(X),
    }


def answers(chosen: tuple[str, ...]) -> dict[str, np.ndarray]:
    """What is said of the rows of a small table, by family and method."""
    from bayesrbf.inference import nuts
    from tests.degenerate import METHODS, answer, plain

    if "PROCESSES" in os.environ:
        nuts.WORTHWHILE = 0.0  # type: ignore[misc]
    X, y = plain(0)
    found = many_rows()
    for name in chosen or METHODS:
        if name in METHODS:
            model = METHODS[name](X, y, 0)
            said = answer(model, X)
            found |= {f"{name}: {what}": v for what, v in said.items() if v.dtype.kind == "f"}
            if getattr(model, "draws_", None) is not None:
                found[f"{name}: draws"] = model.draws_.theta
                if hasattr(model, "uncertainty"):
                    told = model.uncertainty(X).drop_vars("familiarity")
                    found[f"{name}: intervals"] = told.to_array().values
        print(name, flush=True)
    return found


def under(environment: dict[str, str], file: Path, chosen: tuple[str, ...]) -> dict[str, Any]:
    """The answers of a process in an environment."""
    subprocess.run(
        [sys.executable, "-m", "tests.same_bits", str(file), *chosen],
        cwd=ROOT,
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    with np.load(file) as stored:
        return dict(stored)


def furthest(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> dict[str, float]:
    """Largest relative difference of every answer; 0 if all bits are equal."""
    return {
        name: 0.0
        if np.array_equal(value, two[name])
        else float(np.abs(value - two[name]).max() / max(1.0, np.abs(value).max()))
        for name, value in one.items()
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with joblib.parallel_config(n_jobs=int(os.environ.get("PROCESSES", "1"))):
        np.savez(sys.argv[1], **answers(tuple(sys.argv[2:])))

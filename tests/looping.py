"""Fit, refine and predict in a loop; a program that tells what grew. See test_sharing."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import warnings

import numpy as np

from bayesrbf import HybridMixtureClassifier


def resident() -> float:
    """MiB of memory that this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as told:
            return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def open_files() -> int:
    """Files that this process has open; 0 where the system does not say."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def main(times: int = 1000) -> dict[str, float]:
    """What grew between the first fifth of the loop and its end."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat(["a", "b"], 15)
    X[15:] += 2
    X[0, 0] = np.nan
    before = (0.0, 0, 0)
    for number in range(times):
        model = HybridMixtureClassifier(
            1, objective="likelihood", calibrate=False, n_init=1, random_state=number
        ).fit(X, y)
        model.refine("laplace", draws=20)
        model.predict_proba(X)
        if number == times // 5:
            gc.collect()
            before = resident(), open_files(), threading.active_count()
    gc.collect()
    return {
        "fits": times,
        "grown": resident() - before[0],
        "files": open_files() - before[1],
        "threads": threading.active_count() - before[2],
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:2]))))

"""Fit, refine and predict in a loop; a program that tells what grew. See test_sharing."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import warnings
from collections.abc import Callable

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


def grown(work: Callable[[int], object], times: int) -> dict[str, float]:
    """MiB, open files and threads that a loop leaves behind: what it grew by in both of two halves.

    The first fifth is left out, in which caches fill. What is taken once, such as a step of the
    allocator, is in one half only; a leak is in both.
    """
    held = []
    for number in range(times + 1):
        if number in (times // 5, times * 3 // 5, times):
            gc.collect()
            held.append((resident(), open_files(), threading.active_count()))
        if number < times:
            work(number)
    first, middle, last = held
    halves = zip(first, middle, last, strict=True)
    least = [max(0.0, 2 * min(b - a, c - b)) for a, b, c in halves]
    return {"times": times, **dict(zip(("grown", "files", "threads"), least, strict=True))}


def main(times: int = 1000) -> dict[str, float]:
    """Fit, refine and predict so many times."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat(["a", "b"], 15)
    X[15:] += 2
    X[0, 0] = np.nan

    def work(number: int) -> None:
        model = HybridMixtureClassifier(
            1,
            covariance_type="full",
            shared_covariance=False,
            objective="likelihood",
            calibrate=False,
            n_init=1,
            random_state=number,
        ).fit(X, y)
        model.refine("laplace", draws=20)
        model.predict_proba(X)

    return grown(work, times)


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:2]))))

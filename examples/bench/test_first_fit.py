"""CPU seconds of the first fit on a machine, whose kernels Numba must compile, and of the next.

Each fit has a process of its own, with its imports. The first of a pair finds an empty folder of
compiled code, the second what the first left there.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from bench.figures import show
from tests.house import ROOT
from tests.measured import COST

PROGRAM = """
from sklearn.datasets import load_iris
from bayesrbf import {0}
X, y = load_iris(return_X_y=True)
X[::7, 0] = float("nan")
{0}(random_state=0).fit(X, y)
"""
"""Rows with missing cells always go through the kernels."""
KINDS = ("MixtureDensity", "HybridMixtureClassifier", "StackedClassifier")


def seconds(kind: str, compiled: Path) -> float:
    """CPU seconds of a process that fits an estimator to iris."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(kind)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(compiled)},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_first_fit(tmp_path: Path) -> None:
    lines = []
    for kind in KINDS:
        first, later = (seconds(kind, tmp_path / kind) for _ in range(2))
        lines.append({"estimator": f"`{kind}()`", "first fit": first, "later": later})
        assert later < first
    show("first_fit", lines, 1, about=COST)

"""CPU seconds and memory of default fits: wide, long, of many classes, and of published tables.

Every work runs in a process of its own, on one thread. ``BAYESRBF_BEFORE`` names the folder of
another checkout: it then does every work, too, in turn with this one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from bench.figures import Row, show
from bench.fit_costs import WORKS, published
from tests.measured import ROOT

BEFORE: Final = os.environ.get("BAYESRBF_BEFORE")
LIMIT: Final = 400
"""Seconds after which a work is ended; its cells are empty then."""
THREADS: Final = ("OPENBLAS", "OMP", "MKL", "NUMBA")


def run(name: str, checkout: Path) -> dict[str, float]:
    """What a work says, by the package of a checkout; nothing if it did not end in time."""
    threads = {f"{library}_NUM_THREADS": "1" for library in THREADS}
    paths = os.pathsep.join(map(str, (checkout, ROOT / "examples", ROOT)))
    environment = {**os.environ, **threads, "LOKY_MAX_CPU_COUNT": "1", "PYTHONPATH": paths}
    words = [sys.executable, "-P", "-m", "bench.fit_costs", name]
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {}
    if done.returncode == -signal.SIGKILL:  # it took all memory
        return {}
    assert done.returncode == 0, done.stderr
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def both(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """What a work says now, and before where another checkout is named."""
    now = run(name, ROOT)
    before = run(name, Path(BEFORE)) if BEFORE else {}
    print(name, now, before, flush=True)
    return now, before


def line(work: str, now: dict[str, float], before: dict[str, float], key: str = "seconds") -> Row:
    """A line of the table; cells are empty where nothing was measured."""
    over = next((name for name in now if name.startswith("over")), "")
    found: Row = {
        "work": work,
        "CPU seconds": now.get(key, np.nan),
        "over the rival": now.get(over, np.nan),
    }
    if BEFORE:
        found |= {"before": before.get(key, np.nan), "over it before": before.get(over, np.nan)}
    return found | {"MB": now.get("MB", np.nan)}


BOUNDS: Final = {
    "adult, 2,000 rows": 45.0,
    "adult, 8,000 rows": 33.0,
    "adult, 32,000 rows": 17.0,
    "adult, 48,842 rows": 15.0,
    "`refine()`, heart_cleveland": 1.5,
}
"""Most CPU seconds over those of the rival in the same run: half above what was printed last."""
OVER_FOREST: Final = 9.0
"""Most CPU seconds of a stack over those of a forest of 500 trees, in the mean of the tables."""


def test_fit_cost(data_folder: object) -> None:
    lines = [line(name, *both(name)) for name in WORKS]
    tables = [both(name) for name in published()]
    now, before = (pd.DataFrame(side).mean().to_dict() for side in zip(*tables, strict=True))
    for label, key in (("stack", "seconds"), ("a forest of 500", "forest seconds")):
        lines.append(line(f"mean of {len(tables)} published tables: {label}", now, before, key))
    show("times/fit", lines, {"work": 0} | dict.fromkeys(list(lines[0])[1:-1], 1) | {"MB": 0})
    print("mean log loss", now["log loss"], "of a forest", now["forest log loss"])
    if BEFORE:
        rise = np.array([one["log loss"] - other["log loss"] for one, other in tables])
        print("rise", rise.mean(), "+-", rise.std(ddof=1) / rise.size**0.5)
    ratios = {str(one["work"]): float(str(one["over the rival"])) for one in lines}
    assert {name: ratios[name] for name in BOUNDS if not ratios[name] < BOUNDS[name]} == {}
    assert now["seconds"] < OVER_FOREST * now["forest seconds"]

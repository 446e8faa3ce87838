"""CPU seconds and memory of default fits: wide, long, of many classes, and of published tables.

Every work runs in a process of its own, on one thread. ``BAYESRBF_BEFORE`` names the folder of
another checkout: it then does every work, too, in turn with this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np

from bench.figures import Row, show
from bench.fit_costs import WORKS, published
from tests.measured import COST, ROOT

BEFORE: Final = os.environ.get("BAYESRBF_BEFORE")
THREADS: Final = ("OPENBLAS", "OMP", "MKL", "NUMBA")


def run(name: str, checkout: Path) -> dict[str, float]:
    """What a work says, by the package of a checkout."""
    threads = {f"{library}_NUM_THREADS": "1" for library in THREADS}
    paths = os.pathsep.join(map(str, (checkout, ROOT / "examples", ROOT)))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bench.fit_costs", name],
        env={**os.environ, **threads, "LOKY_MAX_CPU_COUNT": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def both(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """What a work says now, and before where another checkout is named."""
    now = run(name, ROOT)
    before = run(name, Path(BEFORE)) if BEFORE else {}
    print(name, now, before, flush=True)
    return now, before


def test_fit_cost(data_folder: object) -> None:
    lines: list[Row] = []
    for name in WORKS:
        now, before = both(name)
        ratio = next((now[key] for key in now if key.startswith("over")), np.nan)
        lines.append(
            {
                "work": name,
                "CPU seconds": now["seconds"],
                "before": before.get("seconds", np.nan),
                "over the rival": ratio,
                "MB": now["MB"],
            }
        )
    tables = [both(name) for name in published()]
    for label, key in (("stack", "seconds"), ("a forest of 500", "forest seconds")):
        lines.append(
            {
                "work": f"mean of {len(tables)} published tables: {label}",
                "CPU seconds": float(np.mean([now[key] for now, _ in tables])),
                "before": float(np.mean([before.get(key, np.nan) for _, before in tables])),
                "over the rival": np.nan,
                "MB": max(now["MB"] for now, _ in tables),
            }
        )
    show(
        "times/fit",
        lines,
        {"CPU seconds": 1, "before": 1, "over the rival": 1, "MB": 0},
        None,
        COST,
    )
    change = np.array([now["log loss"] - before.get("log loss", np.nan) for now, before in tables])
    print(
        "log loss",
        np.mean([now["log loss"] for now, _ in tables]),
        "a forest's",
        np.mean([now["forest log loss"] for now, _ in tables]),
        "change",
        change.mean(),
        "+-",
        change.std(ddof=1) / change.size**0.5,
    )

"""Very many rows through ``bayesrbf predict``: the most memory, from CSV and Parquet; a program.

``python -m tests.large 1000000`` writes the tables, fits a model and one with draws, and predicts
in a process for each; it prints as they end, and JSON at last. With ``draws`` or ``"no draws"`` at
the end, only that model.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

MODELS: Final = {"no draws": "map", "draws": "laplace"}
COLUMNS: Final = 5


def table(rows: int, seed: int) -> pd.DataFrame:
    """Reals with holes, a categorical column, and two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = rng.normal(size=(rows, COLUMNS)).round(4) + y[:, None]
    X[rng.random(X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(COLUMNS)])
    frame["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, rows)]
    return frame.assign(outcome=np.array(["no", "yes"])[y])


def command(*words: object) -> float:
    """MiB at most of a command."""
    line = [sys.executable, "-m", "bayesrbf", *map(str, words)]
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(line)} ended with {child.returncode}")
    return used.ru_maxrss / 1024


def main(
    rows: int = 1_000_000, fewer: int = 100_000, names: Iterable[str] = MODELS
) -> list[dict[str, Any]]:
    """Memory and seconds of each, with fewer rows beside them."""
    said = []
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        table(300, 0).to_csv(folder / "table.csv", index=False)
        files = []
        for count in (fewer, rows):
            frame = table(count, 1).drop(columns="outcome")
            frame.to_csv(folder / f"{count}.csv", index=False)
            frame.to_parquet(folder / f"{count}.parquet")
            files += [(count, folder / f"{count}.csv"), (count, folder / f"{count}.parquet")]
        for name in names:
            inference = MODELS[name]
            options = ["--target", "outcome", "--model", "mixture", "--inference", inference]
            command("fit", folder / "table.csv", *options, "--out", folder / inference)
            for count, file in files:
                began, out = time.monotonic(), folder / "out"
                memory = command("predict", folder / inference, file, "--out", out)
                with open(out / f"{file.stem}-predictions.csv", "rb") as answers:
                    answered = sum(1 for _ in answers) - 1
                one = {"model": name, "file": file.suffix, "rows": count, "answered": answered}
                one |= {"memory": round(memory), "seconds": round(time.monotonic() - began)}
                print(one, file=sys.stderr, flush=True)
                said.append(one)
    return said


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:3]), names=sys.argv[3:] or MODELS)))

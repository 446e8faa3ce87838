"""Peak memory of public methods on 300,000 rows, beside the table; and fits from disk.

Every figure is of a process of its own: the high-water mark of resident memory, reset before
the call, less what was resident then.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from bayesrbf import HybridMixtureClassifier, MixtureDensity
from bench.figures import show

ROWS = 300_000
COLUMNS, K = 10, 8
SHORT: dict[str, Any] = {"n_init": 1, "max_iter": 4, "random_state": 0}


def table(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Eight overlapping clusters in two classes, 5 % of the cells missing."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(scale=1.5, size=(K, COLUMNS))
    own = rng.integers(0, K, rows)
    cells = rng.normal(size=(rows, COLUMNS))
    cells += centres[own]
    cells[rng.random((rows, COLUMNS), dtype=np.float32) < 0.05] = np.nan
    return cells, own % 2


def marked(name: str) -> float:
    """A field of the kernel's status of this process, in MiB."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if name in one)
    return int(line.split()[1]) / 1024


def measured(call: Callable[[], Any]) -> tuple[float, float]:
    """Peak of resident memory above what was there before, in MiB, and seconds."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, began = marked("VmRSS"), time.perf_counter()
    call()
    return marked("VmHWM") - before, time.perf_counter() - began


def in_child(job: Callable[..., Any], *args: Any) -> Any:
    """What a job gives in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(job, args)


def classifier() -> HybridMixtureClassifier:
    return HybridMixtureClassifier(
        K // 2,
        objective="likelihood",
        covariance_type="full",
        shared_covariance=False,
        column_transforms=None,
        calibrate=False,
        **SHORT,
    )


def of_method(kind: str, method: str) -> tuple[float, float]:
    """Peak and seconds of one method."""
    warnings.simplefilter("ignore")
    X, y = table(ROWS)
    estimator: Any = MixtureDensity(K, **SHORT) if kind == "density" else classifier()
    some = slice(0, 20_000)
    estimator.fit(X[some].copy(), y[some])  # compiles the kernels
    if method == "fit":
        return measured(lambda: estimator.fit(X, y))
    return measured(lambda: getattr(estimator, method)(X))


METHODS = {
    "density": [
        "fit",
        "score_samples",
        "predict_proba",
        "predict",
        "impute",
        "novelty",
        "surprise",
    ],
    "classifier": ["fit", "predict_proba", "predict", "score_samples", "uncertainty"],
}


def test_peak_of_a_method() -> None:
    size = ROWS * COLUMNS * 8 / 2**20
    rows = []
    for method in dict.fromkeys(method for known in METHODS.values() for method in known):
        row: dict[str, object] = {"method": method}
        for kind, known in METHODS.items():
            row[kind] = in_child(of_method, kind, method)[0] / size if method in known else None
        rows.append(row)
        print(row, flush=True)
    show("memory/methods", rows, 1)


def written(folder: Path, rows: int) -> Path:
    """A Parquet file in row groups of 131,072 rows, written group by group."""
    path, group = folder / f"{rows}.parquet", 131_072
    names = [f"x{place}" for place in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as file:
        for seed, first in enumerate(range(0, rows, group)):
            cells, _ = table(min(group, rows - first), seed)
            columns = [pa.array(column, from_pandas=True) for column in cells.T]
            file.write_table(pa.table(columns, names=names))
    return path


def from_disk(path: str) -> tuple[float, float, int, str]:
    """Whole resident memory, seconds and passes of a fit to a file."""
    warnings.simplefilter("ignore")
    MixtureDensity(K, **SHORT).fit(table(20_000)[0])
    density = MixtureDensity(K, **SHORT)
    _, seconds = measured(lambda: density.fit(path))
    return marked("VmHWM"), seconds, density.passes_, density.status_


def in_memory(rows: int) -> tuple[float, float, int, str]:
    """The same of a table in memory."""
    warnings.simplefilter("ignore")
    X, _ = table(rows)
    MixtureDensity(K, **SHORT).fit(X[:20_000].copy())
    density = MixtureDensity(K, **SHORT)
    _, seconds = measured(lambda: density.fit(X))
    return marked("VmHWM"), seconds, density.n_iter_ + 1, density.status_


def test_fit_from_disk(tmp_path: Path) -> None:
    lines = []
    for rows in (ROWS // 10, ROWS, 10 * ROWS):
        path = written(tmp_path, rows)
        made = {"disk": in_child(from_disk, str(path))}
        path.unlink()
        if rows <= ROWS:
            made["memory"] = in_child(in_memory, rows)
        for place, (resident, seconds, passes, _) in made.items():
            lines.append(
                {
                    "rows": rows,
                    "from": place,
                    "resident memory, MiB": round(resident),
                    "seconds": seconds,
                    "passes": passes,
                    "microseconds a row and pass": 1e6 * seconds / rows / passes,
                }
            )
            print(lines[-1], flush=True)
    digits = {"seconds": 1, "microseconds a row and pass": 2}
    show("memory/disk", lines, digits)
    disk = [line["resident memory, MiB"] for line in lines if line["from"] == "disk"]
    assert disk[-1] < 1.5 * disk[0]

"""What a user waits for: demo, reports, fits, refits and the first answer of a loaded file.

Each figure is that of a process of its own. With ``BAYESRBF_BEFORE``, a checkout of an earlier
commit, every work runs there, too, in turn with today's, so that both meet the same load. Kernels
are compiled before, but for the first demo, which finds no compiled code. CPU seconds are those of
one process with one BLAS thread; wall seconds of the demo are those of its defaults.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from statistics import median
from time import perf_counter
from typing import Any, Final

import numpy as np
import pandas as pd

from bayesrbf.datasets import data_folder, load_table
from bench.figures import show
from bench.stack_tables import split
from bench.test_report import mixed
from tests.house import ROOT
from tests.measured import COST

ROWS: Final = 900
"""Rows of the wide table."""
BEFORE: Final = os.environ.get("BAYESRBF_BEFORE")
TREES: Final = {**({"before": Path(BEFORE)} if BEFORE else {}), "today": ROOT}
TURNS: Final = int(os.environ.get("BAYESRBF_TURNS", "1"))
FITTED: Final = (
    "hepatitis",
    "heart_cleveland",
    "credit_approval",
    "house_votes84",
    "pima_uci_missing",
    "glass",
    "sonar",
    "vehicle",
    "heart_statlog",
    "breast_cancer",
)
"""Tables with at most 700 training rows each."""
START: Final = "from time import perf_counter, process_time\nstart = process_time()\n"
FIT: Final = f"""{START}
import pickle, sys, warnings
from bayesrbf import StackedClassifier
warnings.simplefilter("ignore")
X, y = pickle.load(open(sys.argv[1], "rb"))
StackedClassifier(random_state=0).fit(X[:60], y[:60])  # loads compiled code
start = process_time()
model = StackedClassifier(random_state=0).fit(X, y)
fit = process_time() - start
"""
PRINT: Final = "print('seconds', fit)\n"
REFINE: Final = """
model.refine("bootstrap")
print("seconds", (process_time() - start - fit) / fit)
"""
SAVE: Final = "model.save(sys.argv[2])\n"
FIRST: Final = f"""{START}
import pickle, sys, warnings
warnings.simplefilter("ignore")
import bayesrbf
model = bayesrbf.load(sys.argv[2])
model.predict_proba(pickle.load(open(sys.argv[1], "rb"))[0][:1])
print("seconds", process_time() - start)
"""


@dataclass(frozen=True)
class Work:
    """Something that is waited for."""

    name: str
    unit: str
    asked: str
    measure: Callable[[Path, Path], float]
    """Of the tree of a version and a folder of its own."""


def environment(tree: Path, folder: Path, **more: str) -> dict[str, str]:
    """The variables of a process that runs a version."""
    mine = {name: value for name, value in os.environ.items() if name != "LOKY_MAX_CPU_COUNT"}
    return {**mine, "PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(folder / "kernels"), **more}


def run(tree: Path, folder: Path, words: list[object], **more: str) -> str:
    """What a process of a version prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, words)],
        cwd=folder,
        env=environment(tree, folder, **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def alone(tree: Path, folder: Path, words: list[object]) -> str:
    """What a process prints that works alone, with one BLAS thread."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1")
    return run(tree, folder, words, **one)


def demo(tree: Path, folder: Path) -> float:
    """Wall seconds of the demo with its defaults."""
    start = perf_counter()
    run(tree, folder, ["-m", "bayesrbf", "demo", "--out", folder / "demo"])
    taken = perf_counter() - start
    rmtree(folder / "demo")
    return taken


def first_demo(tree: Path, folder: Path) -> float:
    """Wall seconds of the demo where nothing is compiled."""
    rmtree(folder / "kernels", ignore_errors=True)
    return demo(tree, folder)


def report_of(table: Callable[[], pd.DataFrame]) -> Callable[[Path, Path], float]:
    """CPU seconds of a report in one process."""

    def measured(tree: Path, folder: Path) -> float:
        file, out = folder / "table.csv", folder / "report"
        table().to_csv(file, index=False)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = ["-m", "bayesrbf", "report", file, "--target", "target", "--out", out]
        alone(tree, folder, command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        rmtree(out)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return measured


def heart() -> pd.DataFrame:
    """The table heart_cleveland with its labels."""
    data = load_table("heart_cleveland")
    return data.X.assign(target=np.asarray(data.y, dtype=str))


def printed(tree: Path, folder: Path, program: str, *words: object) -> float:
    """The figure that a program prints."""
    said = alone(tree, folder, ["-c", program, *words])
    return float(re.findall(r"^seconds (\S+)$", said, re.MULTILINE)[-1])


def kept(folder: Path, X: Any, y: np.ndarray) -> Path:
    """A file of rows and labels that every version reads."""
    file = folder / "rows.pickle"
    file.write_bytes(pickle.dumps((X, y)))
    return file


def fits(holes: bool) -> Callable[[Path, Path], float]:
    """Mean CPU seconds of fits to the tables."""

    def measured(tree: Path, folder: Path) -> float:
        taken = []
        for name in FITTED:
            rows = split(name, 0, holes)
            taken.append(printed(tree, folder, FIT + PRINT, kept(folder, rows.X, rows.y)))
        return float(np.mean(taken))

    return measured


def digits(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels: pixels spread over those that vary most, with noise of some grey levels."""
    arrays = np.load(data_folder() / "usps.npz")
    X, rng = arrays["x_train"].astype(float), np.random.default_rng(0)
    step = X.shape[1] // n_columns
    columns = np.argsort(-X.std(axis=0), kind="stable")[: step * n_columns : step]
    chosen = rng.permutation(len(X))[: 2 * ROWS]
    X = X[chosen][:, columns]
    return X + 0.05 * rng.normal(size=X.shape), arrays["y_train"][chosen]


def wide_fit(tree: Path, folder: Path) -> float:
    """CPU seconds of a fit to 900 rows of 72 columns."""
    X, y = digits(72)
    return printed(tree, folder, FIT + PRINT, kept(folder, X[:ROWS], y[:ROWS]))


def refits(tree: Path, folder: Path) -> float:
    """CPU seconds of the bootstrap over those of the fit."""
    data = load_table("heart_cleveland")
    return printed(tree, folder, FIT + REFINE, kept(folder, data.X, np.asarray(data.y)))


def first_answer(tree: Path, folder: Path) -> float:
    """CPU seconds from the first line of a program to the first probabilities of a loaded stack."""
    data, file = load_table("heart_cleveland"), folder / "model.safetensors"
    rows = kept(folder, data.X, np.asarray(data.y))
    if not file.exists():
        alone(tree, folder, ["-c", FIT + SAVE, rows, file])
        printed(tree, folder, FIRST, rows, file)  # compiles
    return printed(tree, folder, FIRST, rows, file)


WALL, CPU, RATIO = "wall s", "CPU s", "ratio"
WORKS: Final = (
    Work("demo, nothing compiled", WALL, "75", first_demo),
    Work("demo again", WALL, "55", demo),
    Work("report, mixed 900 x 38", CPU, "35", report_of(lambda: mixed(900, 20, 18, 1))),
    Work("report with intervals, heart_cleveland", CPU, "1/3", report_of(heart)),
    Work("fit, mean of ten tables, complete", CPU, "1/3", fits(holes=False)),
    Work("fit, mean of ten tables, 30 % hidden", CPU, "1/3", fits(holes=True)),
    Work("fit, 900 x 72", CPU, "1/4", wide_fit),
    Work('refine("bootstrap") over the fit', RATIO, "2.5", refits),
    Work("import to the first predict_proba of a file", CPU, "1/2", first_answer),
)


def test_wait(data_folder: object, tmp_path: Path) -> None:
    chosen = os.environ.get("BAYESRBF_WORKS", "")
    works = [work for work in WORKS if re.search(chosen, work.name)]
    assert works, f"BAYESRBF_WORKS={chosen} names none of {[work.name for work in WORKS]}"
    folders = {name: tmp_path / name for name in TREES}
    for name, tree in TREES.items():
        folders[name].mkdir()
        if works[0].measure is not first_demo:
            report_of(lambda: mixed(80, 4, 2, 0))(tree, folders[name])  # compiles
    lines = []
    for work in works:
        taken: dict[str, list[float]] = {name: [] for name in TREES}
        for _ in range(TURNS):
            for name, tree in TREES.items():
                taken[name].append(work.measure(tree, folders[name]))
        found = {name: median(every) for name, every in taken.items()}
        line: dict[str, object] = {"work": work.name, "unit": work.unit, **found}
        if BEFORE:
            line["today / before"] = found["today"] / found["before"]
        lines.append({**line, "at most": work.asked})
        print(lines[-1], flush=True)
    counts = {"works": (len(works), len(WORKS)), "versions": (len(TREES), 2)}
    show("wait", lines, digits=2, counts=counts, about=COST)
    assert all(line.get("today / before", 0.0) < 1 for line in lines)

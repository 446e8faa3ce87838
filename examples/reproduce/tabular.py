"""The default stack on the 30 tables of OpenML-CC18 with at most 2,000 rows, after Hollmann (2023).

Stratified halves at random: one to learn from, one to predict. The paper has random halves of its
own, and tuned all of its methods but TabPFN for up to an hour a split.

See Hollmann, Müller, Eggensperger, Hutter (2023), TabPFN: a transformer that solves small tabular
classification problems in a second, ICLR, arXiv 2207.01848.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Bool, Float, Int
from rich.console import Console
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from bayesrbf import StackedClassifier
from bayesrbf.datasets import data_folder
from reproduce import published
from reproduce.cells import Cell, Figures, print_table, run_cells

FILE: Final = "tables.npz"
FORM: Final = (
    "Write each table by numpy.savez as NAME|X (numbers, NaN where a cell is missing), NAME|y "
    "(codes of the classes) and NAME|c (positions of the categorical columns)."
)
SCORES: Final[Mapping[str, int]] = {"AUROC": 3, "accuracy": 3, "log loss": 3, "seconds": 1}
"""Figures of a split, with the digits that are shown."""
THESE: Final = "AUROC, these tables"  # Row of means over a part of the published list.


@dataclass(frozen=True)
class SmallTable:
    """One table of the benchmark."""

    name: str
    X: Float[np.ndarray, "obs column"]  # Missing cells are NaN.
    y: Int[np.ndarray, " obs"]  # Codes of the classes.
    categorical: Int[np.ndarray, " categorical"]  # Positions of columns.

    @property
    def alone(self) -> Bool[np.ndarray, " obs"]:
        """Rows that are the only ones of their class."""
        _, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
        return counts[codes] == 1

    @property
    def digest(self) -> str:
        """A few letters that change with any cell: figures of another table are not taken."""
        parts = (self.X, self.y, self.categorical)
        return sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]

    def halves(self, seed: int) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
        """Rows to learn from and to predict: halves of every class, its only row in the first."""
        rows, alone = np.flatnonzero(~self.alone), np.flatnonzero(self.alone)
        train, test = train_test_split(
            rows, test_size=0.5, stratify=self.y[rows], random_state=seed
        )
        return np.concatenate([train, alone]), test


def run(
    folder: Path,
    *,
    data: Path | None = None,
    seeds: int = 5,
    tables: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Compute the cells that are not stored in ``folder``, and print tables as they come and means.

    Tables are read from ``data``, by default the folder that BAYESRBF_DATA names: all of the
    published list that are there, or those named. After Ctrl-C the finished tables are printed.
    """
    if seeds < 1:
        raise ValueError(f"--seeds takes a whole number above 0; got {seeds}.")
    file = (data_folder() if data is None else data) / FILE
    arrays = _arrays(file)
    chosen = [_table(file, name, arrays) for name in _names(file, arrays, tables)]
    shown = console or Console()
    for notice in _notices(file, arrays, chosen):
        shown.print(notice, soft_wrap=True, markup=False)
    finished: dict[str, list[Figures]] = {}
    for table in chosen:
        cells = [
            Cell(f"{table.name}/{table.digest}/{seed}", partial(_judged, table, seed))
            for seed in range(seeds)
        ]
        figures = run_cells(cells, folder / "tabular.jsonl", console)
        if len(figures) < len(cells):  # interrupted
            break
        finished[table.name] = list(figures.values())
        scores = ", ".join(
            f"{score} {_mean(finished[table.name], score):.{digits}f}"
            for score, digits in SCORES.items()
        )
        shown.print(f"{table.name}: {scores}", soft_wrap=True, markup=False)
    if finished:
        _print_finished(finished, seeds, console)


def _arrays(file: Path) -> dict[str, np.ndarray]:
    """Arrays of the tables by name; an error says what file is needed."""
    if not file.is_file():
        raise FileNotFoundError(
            f"The tables of the benchmark must be in the file {file}, which does not exist. Name "
            f"its folder by --data or by the variable BAYESRBF_DATA. {FORM}"
        )
    try:
        with np.load(file) as stored:
            return {key: stored[key] for key in stored if "|" in key}
    except (ValueError, TypeError, BadZipFile) as error:
        raise ValueError(f"{file} must have arrays of numbers; {error} {FORM}") from error


def _names(file: Path, arrays: Mapping[str, np.ndarray], asked: Sequence[str]) -> list[str]:
    """Names of the tables to run: those asked for, or all of the published list in the file."""
    there = [name for name in published.TABULAR if name in _tables_in(arrays)]
    if not there:
        raise ValueError(
            f"{file} must have tables of the published list ({', '.join(published.TABULAR)}); "
            f"it has {', '.join(_tables_in(arrays)) or 'none'}. {FORM}"
        )
    for name in asked:
        if name not in there:
            raise ValueError(
                f"--tables takes names of the published list that {file} has; received {name!r}. "
                f"It has {', '.join(there)}."
            )
    return [name for name in there if name in asked] if asked else there


def _tables_in(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Names of the tables of which there is an array."""
    return list(dict.fromkeys(key.rpartition("|")[0] for key in arrays))


def _table(file: Path, name: str, arrays: Mapping[str, np.ndarray]) -> SmallTable:
    """A table whose arrays are there and are what they must be."""
    for key in (f"{name}|X", f"{name}|y", f"{name}|c"):
        if key not in arrays:
            raise ValueError(f"{file} must have the array {key}, which is missing. {FORM}")
    X, y, c = (arrays[f"{name}|{part}"] for part in "Xyc")
    if X.ndim != 2 or X.dtype.kind not in "fiu" or np.isinf(X).any():
        raise _refused(file, f"{name}|X", "a matrix of finite numbers and NaN", X)
    whole = y.shape == X.shape[:1] and y.dtype.kind in "fiu" and np.all((y >= 0) & (y % 1 == 0))
    if not whole or np.sum(np.unique(y, return_counts=True)[1] > 1) < 2:
        required = f"{len(X)} codes 0, 1, ..., a row of X each, with two rows of two classes"
        raise _refused(file, f"{name}|y", required, y)
    if c.ndim != 1 or not np.isin(c, np.arange(X.shape[1])).all():
        raise _refused(file, f"{name}|c", f"positions from 0 to {X.shape[1] - 1}", c)
    return SmallTable(name, X.astype(np.float64), y.astype(np.int64), c.astype(np.int64))


def _refused(file: Path, key: str, required: str, received: np.ndarray) -> ValueError:
    """The error of an array that is something else."""
    values = np.array2string(received, threshold=6, edgeitems=2).replace("\n", "")
    return ValueError(
        f"{file}: {key} must be {required}; received {values} of type {received.dtype} and shape "
        f"{received.shape}. {FORM}"
    )


def _notices(
    file: Path, arrays: Mapping[str, np.ndarray], chosen: Sequence[SmallTable]
) -> Iterator[str]:
    """What differs from the published benchmark."""
    there = _tables_in(arrays)
    absent = [name for name in published.TABULAR if name not in there]
    others = [name for name in there if name not in published.TABULAR]
    if absent:
        yield f"{file} lacks {len(absent)} tables of the published list: {', '.join(absent)}."
    if others:
        yield f"Left out, because the published list lacks them: {', '.join(others)}."
    if len(chosen) < len(published.TABULAR):
        yield (
            f"The means are over fewer tables ({len(chosen)}) than the published ones "
            f"({len(published.TABULAR)}) and do not compare with them; the line {THESE!r} has the "
            "published AUROC of the same tables."
        )
    for table in chosen:
        if n_alone := int(table.alone.sum()):
            yield (
                f"{table.name} has classes of one row ({n_alone}): such a row is always learned "
                "from and never predicted."
            )


def _judged(table: SmallTable, seed: int) -> Figures:
    """Fit to one half and judge on the other."""
    _compile()
    train, test = table.halves(seed)
    model = StackedClassifier(categorical_features=table.categorical, random_state=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that say nothing in this half
        p = model.fit(table.X[train], table.y[train]).predict_proba(table.X[test])
    seconds = time.process_time() - start
    truth, classes = table.y[test], model.classes_
    score = p[:, 1] if classes.size == 2 else p
    return {
        "AUROC": float(roc_auc_score(truth, score, multi_class="ovo", labels=classes)),
        "accuracy": float(np.mean(classes[p.argmax(axis=1)] == truth)),
        "log loss": float(log_loss(truth, p, labels=classes)),
        "seconds": round(seconds, 3),
    }


@cache
def _compile() -> None:
    """Load or compile the kernels, which the first fit would be charged with otherwise."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(40, 2)), np.arange(40) % 3]).astype(np.float64)
    X[::5, 0] = np.nan
    model = StackedClassifier(categorical_features=[2], random_state=0)
    model.fit(X, np.arange(40) % 2).predict_proba(X)


def _mean(splits: Sequence[Figures], score: str) -> float:
    """Mean of a score over the splits of a table."""
    return float(np.mean([float(figures[score]) for figures in splits]))


def _print_finished(
    finished: Mapping[str, Sequence[Figures]], seeds: int, console: Console | None
) -> None:
    """Print every finished table, and the means over them."""
    rows = [
        [name, *(f"{_mean(splits, score):.{digits}f}" for score, digits in SCORES.items())]
        for name, splits in finished.items()
    ]
    title = f"The stack, means over {seeds} halves (CPU seconds); the paper's AUROC"
    print_table(title, ["", *SCORES], rows, console, published.TABULAR)
    means = []
    for score, digits in SCORES.items():
        values = [[float(one[score]) for one in splits] for splits in finished.values()]
        by_seed = np.mean(values, axis=0)
        spread = f" ({by_seed.std(ddof=1):.{digits}f})" if seeds > 1 else ""
        means.append([score, f"{by_seed.mean():.{digits}f}{spread}"])
    paper: published.Published = published.TABULAR_MEANS
    n_paper = len(published.TABULAR)
    title = f"Means over {len(finished)} tables (CPU seconds); the paper's are over {n_paper}"
    if len(finished) < n_paper:
        means.insert(1, [THESE, means[0][1]])
        paper = {**paper, THESE: _mean_auroc(finished)}
    print_table(title, ["", "stack"], means, console, paper)


def _mean_auroc(names: Iterable[str]) -> dict[str, str]:
    """The paper's mean AUROC over some of its tables, by method."""
    figures = [published.TABULAR[name] for name in names]
    return {
        method: f"{np.mean([float(one[method]) for one in figures]):.3f}" for method in figures[0]
    }

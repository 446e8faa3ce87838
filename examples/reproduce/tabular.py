"""The default stack on tables on which pretrained models and tuned boosting were published.

Tables of OpenML-CC18 by AUROC (one class against the rest, macro), on the published folds to the
row: the tables, their order and the seed of the folds are those of the published figures. Tables of
TabZilla by log loss, in ten stratified folds of our own, which compares means over the folds. Small
tables of UCI by average precision, on the published folds: half of them are for choosing among
models, and the others judge what was chosen.
"""

from __future__ import annotations

import time
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped
from rich.console import Console
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from bayesrbf import StackedClassifier
from bayesrbf.datasets import Dataset, data_folder, load_table
from reproduce import published
from reproduce.cells import Cell, Figures, print_table, run_cells

FILE: Final = "cc18_half.npz"
FORM: Final = (
    "It has tables of OpenML-CC18 with their rows in OpenML's order: NAME|X (numbers, NaN where a "
    "cell is missing), NAME|y (codes of the classes) and NAME|c (positions of the categorical "
    "columns). Name its folder by --data or by BAYESRBF_DATA, or other tables by --tables."
)
SMALL_FILE: Final = "small_tables.zip"
SMALL_FORM: Final = (
    "It has a file NAME.csv of every table, with the rows in their published order: the column "
    "Class is the label, words are levels, and an empty cell is missing. Name its folder by --data "
    "or by BAYESRBF_DATA."
)
DIGITS: Final = {"seconds": 1, "stack better": 0, "tables": 0}
"""After the point, of columns that have not three; seconds are of CPU."""


def _cc18(name: str, folder: Path) -> Dataset:
    """A table of the file; levels are words that sort as their codes."""
    file, keys = folder / FILE, [f"{name}|{part}" for part in "Xyc"]
    if not file.is_file():
        raise FileNotFoundError(f"{file} must have the table {name}; it does not exist. {FORM}")
    with np.load(file) as stored:
        if absent := [key for key in keys if key not in stored]:
            raise ValueError(f"{file} must have the arrays {keys}; it lacks {absent}. {FORM}")
        X, y, categorical = (stored[key] for key in keys)
    frame = pd.DataFrame(X.astype(np.float64)).rename(columns="column {}".format)
    for column in frame.columns[categorical]:
        frame[column] = frame[column].map("{:03g}".format, na_action="ignore").astype("str")
    return Dataset(name, frame, y)


def _tabzilla(name: str, folder: Path) -> Dataset:
    """A table by TabZilla's name."""
    files = {"heart-c": "heart_cleveland", "heart-h": "heart_h"}
    table = load_table(files.get(name, name), folder)
    return Dataset(name, table.X, table.y)


def _small(name: str, folder: Path) -> Dataset:
    """A table of the archive."""
    file = folder / SMALL_FILE
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} must have the table {name}; it does not exist. {SMALL_FORM}"
        )
    with zipfile.ZipFile(file) as tables:
        if f"{name}.csv" not in tables.namelist():
            raise ValueError(f"{file} must have the file {name}.csv; it has none. {SMALL_FORM}")
        with tables.open(f"{name}.csv") as stream:
            frame = pd.read_csv(stream, keep_default_na=False, na_values=[""])
    return Dataset(name, frame.drop(columns="Class"), frame["Class"].to_numpy())


@dataclass(frozen=True)
class Contest:
    """Tables with the figures of others, and how ours are compared with them."""

    title: str
    score: str  # Of the published figures.
    published: Sequence[published.Published]  # A fold each, or the means over all folds alone.
    n_folds: int  # That the rows are parted into.
    load: Callable[[str, Path], Dataset]
    log_loss: Mapping[str, float] = field(default_factory=dict)
    """Of the best of 22 methods on each table, in other folds, where it is not the score."""
    seed: int = 42  # Of the folds.

    def theirs(self, table: str, n_folds: int) -> dict[str, float]:
        """Means of the published scores over the first folds, by method."""
        folds = [figures[table] for figures in self.published[:n_folds]]
        return {one: float(np.mean([float(fold[one]) for fold in folds])) for one in folds[0]}


CONTESTS: Final = (
    Contest(
        "OpenML-CC18, published folds", "AUROC", published.CC18, 5, _cc18, published.CC18_LOG_LOSS
    ),
    Contest("TabZilla's tables, other folds", "log loss", published.TABZILLA, 10, _tabzilla),
)
SMALL: Final = {
    use: Contest(
        f"Small tables for {use}, published folds",
        "average precision",
        ({name: row for name, row in published.SMALL[0].items() if (name in choosing) == among},),
        4,
        _small,
        seed=0,
    )
    for choosing in (published.SMALL_CHOOSING,)
    for use, among in (("choosing", True), ("judging", False))
}
"""Choices among models rest on the first; the second are run once, when all is chosen."""


def run(
    folder: Path,
    *,
    data: Path | None = None,
    folds: int = 2,
    tables: Sequence[str] = (),
    console: Console | None = None,
) -> None:
    """Compute the cells that are not stored in ``folder``, and print tables, means and differences.

    Tables are read from ``data``, by default the folder that BAYESRBF_DATA names. ``folds`` of the
    five published ones are run. After Ctrl-C the tables are printed whose folds are all there.
    """
    if not 1 <= folds <= CONTESTS[0].n_folds:
        raise ValueError(f"--folds takes a number from 1 to {CONTESTS[0].n_folds}; got {folds}.")
    _run(CONTESTS, folder / "tabular.jsonl", data, folds, tables, console)


def run_small(
    folder: Path,
    *,
    data: Path | None = None,
    tables: Sequence[str] = ("choosing",),
    console: Console | None = None,
) -> None:
    """The same in small tables; ``choosing`` and ``judging`` stand for half of them each."""
    names = [
        name for one in tables for name in (SMALL[one].published[0] if one in SMALL else [one])
    ]
    _run(tuple(SMALL.values()), folder / "small.jsonl", data, 4, names, console)


def _run(
    contests: Sequence[Contest],
    file: Path,
    data: Path | None,
    folds: int,
    tables: Sequence[str],
    console: Console | None,
) -> None:
    """Compute cells of contests that a file does not hold, and print what is whole."""
    known = [name for contest in contests for name in contest.published[0]]
    if unknown := [name for name in tables if name not in known]:
        raise ValueError(f"--tables takes names among {', '.join(known)}; received {unknown}.")
    source = data or data_folder()
    asked = []
    for contest in contests:
        there = [name for name in contest.published[0] if name in (tables or known)]
        asked.append((contest, [contest.load(name, source) for name in there]))
    for contest, read in asked:
        n_run = contest.n_folds if len(contest.published) == 1 else folds
        cells = [
            Cell(f"{table.name}/{k}", partial(_judged, table, contest.n_folds, k, contest.seed))
            for table in read
            for k in range(n_run)
        ]
        found = run_cells(cells, file, console)
        whole = [one for one in read if all(f"{one.name}/{k}" in found for k in range(n_run))]
        if whole:
            _print_contest(contest, n_run, whole, found, console)
        if len(found) < len(cells):  # interrupted
            break


def _alone(y: Shaped[np.ndarray, " obs"]) -> Bool[np.ndarray, " obs"]:
    """Rows that are the only ones of their class."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return counts[codes] == 1


def fold_of(
    y: Shaped[np.ndarray, " obs"], n_folds: int, fold: int, seed: int = 42
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """Rows to learn from and to predict; the only row of a class is always learned from."""
    rows, alone = np.flatnonzero(~_alone(y)), np.flatnonzero(_alone(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        train, test = list(splitter.split(rows, y[rows]))[fold]
    return np.concatenate([rows[train], alone]), rows[test]


def _judged(table: Dataset, n_folds: int, fold: int, seed: int = 42) -> Figures:
    """Fit to all folds but one, and judge on that one."""
    _compile()
    train, test = fold_of(table.y, n_folds, fold, seed)
    model = StackedClassifier(random_state=0)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that say nothing in these rows
        p = model.fit(table.X.iloc[train], table.y[train]).predict_proba(table.X.iloc[test])
    seconds = time.process_time() - start
    truth, classes = table.y[test], model.classes_
    among = [(truth == one, p[:, k]) for k, one in enumerate(classes) if one in truth]
    return {
        "average precision": average_precision(truth == classes[:, None], p),
        "AUROC": float(np.mean([roc_auc_score(*rest) for rest in among])),
        "log loss": float(log_loss(truth, p, labels=classes)),
        "accuracy": float(np.mean(classes[p.argmax(axis=1)] == truth)),
        "seconds": round(seconds, 3),
    }


def average_precision(
    of_class: Bool[np.ndarray, "label obs"], p: Float[np.ndarray, "obs label"]
) -> float:
    """Of the second of two classes; of more, the mean over classes, weighted by their rows."""
    if len(of_class) == 2:
        return float(average_precision_score(of_class[1], p[:, 1]))
    there = of_class.any(axis=1)
    of_classes = average_precision_score(of_class[there].T, p[:, there], average="weighted")
    return float(of_classes)


@cache
def _compile() -> None:
    """Load or compile the kernels, which the first fit would be charged with otherwise."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(40, 2)), np.arange(40) % 3]).astype(np.float64)
    X[::5, 0] = np.nan
    model = StackedClassifier(categorical_features=[2], random_state=0)
    model.fit(X, np.arange(40) % 2).predict_proba(X)


def _print_contest(
    contest: Contest,
    n_run: int,
    read: Sequence[Dataset],
    found: Mapping[str, Figures],
    console: Console | None,
) -> None:
    """Print a row a table and their means, and a row a method: means of paired differences.

    Tables with classes of one row are in no mean, for others had to predict that row.
    """
    ours = pd.DataFrame(
        {
            one.name: pd.DataFrame([found[f"{one.name}/{k}"] for k in range(n_run)]).mean()
            for one in read
        }
    ).T
    alone = {one.name: n_alone for one in read if (n_alone := _alone(one.y).sum())}
    counted = [one.name for one in read if one.name not in alone]
    ours = ours[list(dict.fromkeys((contest.score, "AUROC", "log loss", "accuracy", "seconds")))]
    score = ours[contest.score].rename("stack")
    theirs = pd.DataFrame({name: contest.theirs(name, n_run) for name in ours.index}).T
    tables = pd.concat([score, theirs, ours.drop(columns=contest.score)], axis=1)
    if contest.log_loss:
        best = tables.index.map(contest.log_loss)
        tables.insert(tables.columns.get_loc("log loss") + 1, "log loss, best of 22", best)
    tables.loc[f"mean of {len(counted)}"] = tables.loc[counted].mean(skipna=False)
    title = f"{contest.title}: {contest.score}, means over {n_run} of {contest.n_folds} folds"
    print_table(title, ["", *tables], _rows(tables), console)
    for name, n_alone in alone.items():
        (console or Console()).print(
            f"{name} has classes of one row ({n_alone}): such a row is learned from, and never "
            "predicted. Others predicted it, so no mean counts this table.",
            soft_wrap=True,
            markup=False,
        )
    ahead = theirs.loc[counted].rsub(score.loc[counted], axis=0)
    better = ahead < 0 if contest.score == "log loss" else ahead > 0
    methods = pd.DataFrame(
        {
            "theirs": theirs.loc[counted].mean(),
            "stack": theirs.loc[counted].mean() + ahead.mean(),  # on the tables that they have
            "stack - theirs": ahead.mean(),
            "se": ahead.sem(),
            "stack better": better.sum(),
            "tables": ahead.count(),
        }
    )
    title = f"{contest.title}: {contest.score}, means over the tables"
    print_table(title, ["", *methods], _rows(methods), console)


def _rows(figures: pd.DataFrame) -> list[list[str]]:
    """Rows of a frame as they are printed; a dash where there is no figure."""
    columns = [
        ["-" if np.isnan(one) else f"{one:.{DIGITS.get(str(name), 3)}f}" for one in column]
        for name, column in figures.items()
    ]
    return [[str(name), *row] for name, *row in zip(figures.index, *columns, strict=True)]

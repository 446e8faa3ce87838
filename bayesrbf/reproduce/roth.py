"""Hybrid mixtures against their likelihood and support vector machines, after Roth (2016).

References
----------
.. [1] Roth (2016), Hybrid generative-discriminative training of Gaussian mixture models,
   master's thesis; tables 4.1 and 4.2, B.1 to B.3, B.5 and B.7.
.. [2] Roth, Peharz, Tschiatschek, Pernkopf (2018), Pattern Recognition Letters 112, 131-137.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from sklearn.base import ClassifierMixin, clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.reproduce import published
from bayesrbf.reproduce.cells import Cell, Figures, print_table, run_cells
from bayesrbf.reproduce.roth_tables import IMAGES, Mechanism, Split, splits

MISSING: Final = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
LABELLED: Final = (500, 1000)
HINGE_WEIGHTS: Final = (1.0, 4.0, 16.0)
QUICK_ROWS: Final = 2_000
ROWS: Final = 60_000

MIXTURE: Final = HybridMixtureClassifier(random_state=0, n_init=1)
HINGE: Final[Mapping[str, object]] = {"objective": "hinge", "objective_iter": 60}
METHODS: Final[Mapping[str, Mapping[str, object]]] = {
    "ML": {"objective": "likelihood"},
    "blend": {"objective": "blend"},
    "hinge": HINGE,
    "MCL": {"objective": "conditional", "objective_iter": 60},
    "MM": {"objective": "margin", "objective_iter": 60},
}
STRUCTURES: Final[tuple[Mapping[str, object], ...]] = (
    {"n_components": 1, "tied": False},
    {"n_components": 1, "tied": True},
    {"n_components": 2, "tied": True},
)
"""Of small tables."""
MANY_ROWS: Final = 20_000
"""Rows above which a class of images has five components and not one."""
PIXELS: Final[Mapping[str, object]] = {
    "n_components": 10,
    "covariance_type": "diag",
    "tied": True,
    "objective_iter": 60,
}
"""Structure for images of 784 pixels."""
MARGINS: Final = (8.0, 20.0)
SVMS: Final = {"linear SVM": {"kernel": "linear"}, "RBF SVM": {"kernel": "rbf"}}
COSTS: Final = (0.3, 1.0, 3.0, 10.0)
HEAVY: Final = ("mnist", "RBF SVM, 3-NN")
"""Not run: neighbours among 784 columns with holes, for every cell, take hours."""
IMPUTERS: Final[Mapping[str, Callable[[], object]]] = {
    "mean": SimpleImputer,
    "3-NN": partial(KNNImputer, n_neighbors=3),
}


def run(
    folder: Path, *, quick: bool = False, images: int = ROWS, console: Console | None = None
) -> None:
    """Compute what is not there yet and print every table.

    Parameters
    ----------
    folder : Path
        Where figures are kept; a run that was stopped goes on there.
    quick : bool
        Small tables and 2,000 rows of images alone: minutes.
    images : int
        Most images to learn from.
    console : Console, optional
        Where tables are printed; stdout by default.
    """
    pictured = ("mnist50",) if quick else ("mnist50", "usps50", "mnist")
    tables = ("iris", "breast_cancer", "segment", *pictured)
    n_train = QUICK_ROWS if quick else images
    file = folder / ("roth_quick.jsonl" if quick else "roth.jsonl")
    shares = (0.0, 0.5) if quick else MISSING
    labels = LABELLED[:1] if quick else LABELLED
    shown = (
        ("Error in % (table 4.1)", _errors(tables, n_train), published.ROTH_4_1),
        (
            "Error in % with hidden test cells (tables B.1 to B.3)",
            _holes(pictured, n_train, shares),
            published.ROTH_B,
        ),
        (
            "Error in % of the hinge by its weight and hidden cells (table B.5)",
            _dial("mnist50", n_train, shares),
            published.ROTH_B_5,
        ),
        (
            f"Error in % with few labels of {n_train}, by the weight of the other rows (table B.7)",
            _few_labels("mnist50", n_train, labels),
            published.ROTH_B_7,
        ),
    )
    groups = [group for _, group, _ in shown]
    cells = [cell for group in groups for row in group.values() for cell in row.values()]
    figures = run_cells(cells, file, console)
    for title, group, paper in shown:
        header = list(dict.fromkeys(name for row in group.values() for name in row))
        lines = [[row, *(_figure(group[row].get(c), figures) for c in header)] for row in group]
        print_table(title, ["", *header], lines, console, paper)


Group = dict[str, dict[str, Cell]]
"""Cells of a table by row and column."""


def _figure(cell: Cell | None, figures: Mapping[str, Figures]) -> str:
    """One cell of a printed table; a dash where a run was stopped before it, or none is run."""
    found = None if cell is None else figures.get(cell.name)
    return "-" if found is None else f"{found['error']:.2f}"


def _errors(tables: tuple[str, ...], n_train: int) -> Group:
    """Table 4.1: all methods on all tables, complete."""
    names = [*METHODS, *SVMS]
    return {
        table: {
            name: Cell(f"{table}/{n_train}/{name}", partial(_error, table, name, n_train))
            for name in names
        }
        for table in tables
    }


def _holes(tables: tuple[str, ...], n_train: int, shares: tuple[float, ...]) -> Group:
    """Tables B.1 to B.3: cells of test rows hidden, by chance and otherwise."""
    names = ["ML", "blend", "hinge", *(f"RBF SVM, {imputer}" for imputer in IMPUTERS)]
    mechanisms: tuple[Mechanism, ...] = ("MCAR", "MAR", "NMAR")
    return {
        f"{table}, {mechanism} {share:.0%}": {
            name: Cell(
                f"{table}/{n_train}/{name}/{mechanism}/{share:g}",
                partial(_error, table, name, n_train, share, mechanism),
            )
            for name in names
            if (table, name) != HEAVY
        }
        for table in tables
        for mechanism in mechanisms
        for share in shares
        if share > 0 or mechanism == "MCAR"
    }


def _dial(table: str, n_train: int, shares: tuple[float, ...]) -> Group:
    """Table B.5: the weight of the hinge against hidden cells."""
    return {
        f"hidden {share:.0%}": {
            f"{weight:g}": Cell(
                f"{table}/{n_train}/weight {weight:g}/{share:g}",
                partial(_error_of_weight, table, weight, n_train, share),
            )
            for weight in HINGE_WEIGHTS
        }
        for share in shares
    }


def _few_labels(table: str, n_train: int, numbers: tuple[int, ...]) -> Group:
    """Table B.7: the other rows dropped, or used without their labels."""
    return {
        f"{number} labels": {
            f"{name} {how}": Cell(
                f"{table}/{n_train}/{name}/{number} labels/{how}",
                partial(_error_few, table, name, n_train, number, weight),
            )
            for name in ("ML", "hinge")
            for how, weight in (("0", 0.0), ("1", 1.0), ("cv", "cv"))
        }
        for number in numbers
    }


def _error(
    table: str,
    name: str,
    n_train: int,
    share: float = 0.0,
    mechanism: Mechanism = "MCAR",
) -> Figures:
    """Mean error of a method over the splits of a table, and its size."""
    errors, sizes = [], []
    for index, split in enumerate(_splits(table, n_train)):
        model = _fitted(table, name, n_train, index)
        shown = split.hidden(share, mechanism, seed=1) if share else split
        errors.append(100 * np.mean(model.predict(shown.X_new) != split.y_new))
        sizes.append(_n_parameters(model))
    return {"error": float(np.mean(errors)), "parameters": float(np.mean(sizes))}


def _error_of_weight(table: str, weight: float, n_train: int, share: float) -> Figures:
    """Error of one weight of the hinge."""
    [split] = _splits(table, n_train)
    model = _weighted(table, weight, n_train)
    shown = split.hidden(share, "MCAR", seed=1) if share else split
    return {"error": float(100 * np.mean(model.predict(shown.X_new) != split.y_new))}


def _error_few(table: str, name: str, n_train: int, number: int, weight: float | str) -> Figures:
    """Error where only the first rows of a table have labels."""
    [split] = _splits(table, n_train)
    y = np.where(np.arange(split.y.size) < number, split.y, np.nan)
    model = clone(MIXTURE).set_params(**METHODS[name], unlabelled_weight=weight)
    model.fit(split.X, y)
    error = float(100 * np.mean(model.predict(split.X_new) != split.y_new))
    return {"error": error, "unlabelled_weight": model.unlabelled_weight_}


@cache
def _splits(table: str, n_train: int) -> tuple[Split, ...]:
    """The splits of a table, with no more than so many rows to fit to."""
    return tuple(split.first(n_train) for split in splits(table))


@cache
def _weighted(table: str, weight: float, n_train: int) -> ClassifierMixin:
    """The hinge of one weight, fitted."""
    [split] = _splits(table, n_train)
    return clone(MIXTURE).set_params(**HINGE, hinge_weight=weight).fit(split.X, split.y)


@cache
def _fitted(table: str, name: str, n_train: int, index: int) -> ClassifierMixin:
    """A method fitted to one split; what it leaves open is chosen inside the rows to fit to."""
    split = _splits(table, n_train)[index]
    small = table not in IMAGES
    in_components = {"n_components": 5 if n_train > MANY_ROWS else 1}
    images = PIXELS if table == "mnist" else in_components
    candidates = _candidates(name, STRUCTURES if small else (images,))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    fifths = list(folds.split(split.X, split.y))[: None if small else 1]
    if len(candidates) > 1:
        scores = [
            np.mean(
                [
                    clone(model).fit(split.X[fit], split.y[fit]).score(split.X[out], split.y[out])
                    for fit, out in fifths
                ]
            )
            for model in candidates
        ]
        candidates = [candidates[int(np.argmax(scores))]]
    return clone(candidates[0]).fit(split.X, split.y)


def _candidates(name: str, structures: Sequence[Mapping[str, object]]) -> list[ClassifierMixin]:
    """What a method leaves open."""
    kind, _, imputer = name.partition(", ")
    if kind in SVMS:
        front = [IMPUTERS[imputer]()] if imputer else []
        return [
            make_pipeline(*front, StandardScaler(), SVC(C=cost, **SVMS[kind])) for cost in COSTS
        ]
    dials: list[dict[str, float]] = [{}]
    if name == "hinge":
        dials = [{"margin": margin, "hinge_weight": w} for margin in MARGINS for w in (4.0, 16.0)]
    if name == "blend":
        dials = [{"kappa": kappa} for kappa in (0.3, 0.1, 0.03)]
    return [
        clone(MIXTURE).set_params(**{**METHODS[name], **structure, **dial})
        for structure in structures
        for dial in dials
    ]


def _n_parameters(model: ClassifierMixin) -> int:
    """Numbers that a fit has chosen (table 4.2): of a machine, its vectors and their weights."""
    if isinstance(model, HybridMixtureClassifier):
        return int(model._log_posterior().dimension)
    machine = model[-1]
    return int(machine.support_vectors_.size + machine.dual_coef_.size)

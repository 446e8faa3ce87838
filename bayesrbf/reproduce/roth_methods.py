"""Methods of the experiments on hybrid mixtures: what each leaves open, and how it is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Final

import numpy as np
from jaxtyping import Float
from sklearn.base import ClassifierMixin, clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.records.priors import MixturePrior
from bayesrbf.reproduce.roth_tables import DIAGONAL_50, IMAGES, PIXELS, Split, splits

MIXTURE: Final = HybridMixtureClassifier(random_state=0, n_init=1)
HINGE: Final[Mapping[str, object]] = {"objective": "hinge", "objective_iter": 60}
METHODS: Final[Mapping[str, Mapping[str, object]]] = {
    "ML": {"objective": "likelihood"},
    "blend": {"objective": "blend"},
    "hinge": HINGE,
    "MCL": {"objective": "conditional", "objective_iter": 60},
    "MM": {"objective": "margin", "objective_iter": 60},
}
Settings = Mapping[str, object]
SMALL: Final[tuple[Settings, ...]] = (
    {"n_components": 1, "tied": False},
    {"n_components": 1, "tied": True},
    {"n_components": 2, "tied": True},
)
"""Structures for small tables."""
MANY_ROWS: Final = 20_000
"""Rows above which a class of images in principal components has five components and not one."""
DIAGONAL: Final[tuple[Settings, ...]] = (
    {"covariance_type": "diag", "tied": True},
    {"covariance_type": "diag", "prior": MixturePrior(degrees_of_freedom=1000.0)},
)
"""Structures for pixels: one diagonal for all, or one each that is held near the columns'."""
COMPONENTS: Final = {"usps": 2, "mnist": 8, DIAGONAL_50: 128}
"""Diagonal components a class, as in the thesis."""
LIKELY: Final = 32
"""The same where the likelihood is maximised."""
MARGINS: Final = ((8.0, 20.0), (50.0, 100.0))
"""Of the hinge: in principal components, and among pixels, whose log ratios are larger."""
WEIGHTS: Final = ((4.0, 16.0), (10.0, 100.0))
WITH_HOLES: Final = "hinge, holes learned"
"""Learns from the rows and from a copy of each that has holes."""
CHOSEN: Final[Mapping[tuple[str, str], Settings]] = {
    ("usps", WITH_HOLES): {
        "n_components": 8,
        "hinge_weight": 10.0,
        "margin": 100.0,
        **HINGE,
        **DIAGONAL[0],
    },
    ("mnist", "hinge"): {
        "n_components": COMPONENTS["mnist"],
        "hinge_weight": 100.0,
        "margin": 100.0,
        **HINGE,
        **DIAGONAL[0],
    },
    (DIAGONAL_50, "hinge"): {
        "n_components": COMPONENTS[DIAGONAL_50],
        "covariance_type": "diag",
        "hinge_weight": 16.0,
        "margin": 20.0,
        **HINGE,
        "objective_iter": 30,
    },
}
"""Settings by table and method that were chosen once: on a fifth of the rows to fit to, half of
its cells hidden; of fits to 5,000 images, on 4,000 images from the 50,001st on; and there, too, of
fits to 12,500 images with 32 components a class."""
MOST_HIDDEN: Final = 0.9
"""A copy's share of hidden cells is uniform below this."""
KAPPAS: Final = (0.3, 0.1, 0.03)
SVMS: Final = {"linear SVM": {"kernel": "linear"}, "RBF SVM": {"kernel": "rbf"}}
COSTS: Final = (0.3, 1.0, 3.0, 10.0)
HEAVY: Final = (("mnist", "RBF SVM, 3-NN"), ("mnist", "RBF SVM, mean"))
"""Not run: neighbours among 784 columns with holes, for every cell, take hours."""
ONLY: Final[Mapping[str, tuple[str, ...]]] = {DIAGONAL_50: ("ML", "hinge")}
"""Tables on which few of the methods are run."""
IMPUTERS: Final[Mapping[str, Callable[[], object]]] = {
    "mean": SimpleImputer,
    "3-NN": partial(KNNImputer, n_neighbors=3),
}


@cache
def few(table: str, n_train: int) -> tuple[Split, ...]:
    """The splits of a table, with no more than so many rows to fit to.

    Parameters
    ----------
    table : str
        Its name.
    n_train : int
        Most rows to fit to.

    Returns
    -------
    tuple of Split
        All splits.
    """
    return tuple(split.first(n_train) for split in splits(table))


@cache
def weighted(table: str, weight: float, n_train: int) -> ClassifierMixin:
    """The hinge of one weight, fitted.

    Parameters
    ----------
    table : str
        A table of pixels.
    weight : float
        Weight of the hinge beside the likelihood.
    n_train : int
        Most rows to fit to.

    Returns
    -------
    estimator
        The first structure with the first margin.
    """
    [split] = few(table, n_train)
    structure = structures(table, "hinge", n_train)[0]
    settings = {**HINGE, **structure, "margin": MARGINS[1][0], "hinge_weight": weight}
    return clone(MIXTURE).set_params(**settings).fit(split.X, split.y)


@cache
def fitted(table: str, name: str, n_train: int, index: int) -> ClassifierMixin:
    """A method fitted to one split; what it leaves open is chosen inside the rows to fit to.

    Parameters
    ----------
    table : str
        Its name.
    name : str
        Name of the method.
    n_train : int
        Most rows to fit to.
    index : int
        Which split.

    Returns
    -------
    estimator
        The setting that is best on five folds, of images on the first of them.
    """
    split = few(table, n_train)[index]
    if name == WITH_HOLES:
        split = replace(split, X=np.concatenate([split.X, _holed(split.X)]), y=np.tile(split.y, 2))
    choices = candidates(table, name, n_train)
    if len(choices) > 1:
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(split.X, split.y)
        fifths = list(folds)[: 1 if table in IMAGES else None]
        scores = [
            np.mean(
                [
                    clone(model).fit(split.X[fit], split.y[fit]).score(split.X[out], split.y[out])
                    for fit, out in fifths
                ]
            )
            for model in choices
        ]
        choices = [choices[int(np.argmax(scores))]]
    return clone(choices[0]).fit(split.X, split.y)


def _holed(X: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
    """Rows with holes, a share of each row's own."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(0, MOST_HIDDEN, (len(X), 1))
    return np.where(rng.random(X.shape) < shares, np.nan, X)


def structures(table: str, name: str, n_train: int) -> tuple[Settings, ...]:
    """Shapes of mixture that a method may choose from.

    Parameters
    ----------
    table : str
        Name of the table.
    name : str
        Name of the method.
    n_train : int
        Most rows to fit to.

    Returns
    -------
    tuple of mapping
        Arguments of the classifier.
    """
    if table not in IMAGES:
        return SMALL
    if table == DIAGONAL_50:
        return ({"n_components": COMPONENTS[table], "covariance_type": "diag"},)
    if table not in PIXELS:
        return ({"n_components": 5 if n_train > MANY_ROWS else 1},)
    number = LIKELY if name == "ML" else COMPONENTS[table]
    return tuple({"n_components": number, "objective_iter": 60, **shape} for shape in DIAGONAL)


def candidates(table: str, name: str, n_train: int) -> list[ClassifierMixin]:
    """What a method leaves open.

    Parameters
    ----------
    table : str
        Name of the table.
    name : str
        Name of the method.
    n_train : int
        Most rows to fit to.

    Returns
    -------
    list of estimator
        To choose from.
    """
    if (table, name) in CHOSEN:
        return [clone(MIXTURE).set_params(**CHOSEN[table, name])]
    kind, _, imputer = name.partition(", ")
    pixels = table in PIXELS
    if kind in SVMS:
        front = [IMPUTERS[imputer]()] if imputer else []
        front += [] if pixels else [StandardScaler()]  # pixels have one unit
        return [make_pipeline(*front, SVC(C=cost, **SVMS[kind])) for cost in COSTS]
    dials: list[Settings] = [{}]
    if name == "MM" and pixels:
        dials = [{"margin": margin} for margin in MARGINS[pixels]]
    if name == "hinge":
        dials = [{"margin": m, "hinge_weight": w} for m in MARGINS[pixels] for w in WEIGHTS[pixels]]
    if name == "blend":
        dials = [{"kappa": kappa} for kappa in KAPPAS]
    return [
        clone(MIXTURE).set_params(**{**METHODS[name], **structure, **dial})
        for structure in structures(table, name, n_train)
        for dial in dials
    ]


def n_parameters(model: ClassifierMixin) -> int:
    """Numbers that a fit has chosen (table 4.2): of a machine, its vectors and their weights.

    Parameters
    ----------
    model : estimator
        A fitted mixture, or a machine in a pipeline.

    Returns
    -------
    int
        Their number.
    """
    if isinstance(model, HybridMixtureClassifier):
        return int(model.model_.log_posterior(model.rows_).dimension)
    machine = model[-1]
    return int(machine.support_vectors_.size + machine.dual_coef_.size)

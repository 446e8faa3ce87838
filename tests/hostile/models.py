"""Fitted models with one thing changed that no fit leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from bayesrbf.artefact import pack, unpack
from bayesrbf.artefact.state_file import encode, load_state
from tests.hostile.corpus import Hostile
from tests.mutations import FAMILIES, fitted

REFUSED: Final = "/"  # The error names the file, in either of two sentences.


def inside(tree: Any) -> Any:
    """What a tag holds."""
    for tag, content in tree.items() if isinstance(tree, dict) and len(tree) == 1 else ():
        if tag in ("dict", "tuple"):
            return content
        if tag == "record":
            return content[1]
    return tree


@cache
def content(family: str) -> tuple[str, Any]:
    """Kind and state of a model."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fitted(family)[0].save(path)
        return load_state(path)


def changed(family: str, path: str, value: Any, kind: str = "") -> Hostile:
    """A model with something else at a place: a tree, or a function of the array that is there."""

    def write(file: Path) -> None:
        named, state = content(family)
        tree, arrays = pack(state)
        if path:
            *way, last = (int(key) if key.isdigit() else key for key in path.split("."))
            holder = inside(tree)
            for key in way:
                holder = inside(holder[key])
            if callable(value):
                array = np.ascontiguousarray(value(unpack(holder[last], arrays)))
                holder[last] = {"array": ["other", 0, list(array.shape)]}
                arrays["other"] = array.ravel()
            else:
                holder[last] = value
        file.write_bytes(encode(kind or named, tree, arrays, str(file)))

    return Hostile(write, REFUSED)


def some(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """One cell that is something else."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.reshape(-1)[-1] = value
        return array

    return change


def fewer(array: np.ndarray) -> np.ndarray:
    return array[:-1]


def narrower(array: np.ndarray) -> np.ndarray:
    return array[..., :-1]


NONE: Final = {"tuple": []}
Changes = dict[str, tuple[str, Any]]
"""By name: a place, and what stands there."""

PARTS: Final[Changes] = {
    f"{name} that is {what}": (name, value)
    for name in ("columns_", "rows_", "model_", "candidates_")
    for what, value in {"a text": "x", "nothing": None, "a list": []}.items()
}
HELD: Final[Changes] = {
    "a frame that is a text": ("_template", "x"),
    "a frame of a column less": ("_template", {"frame": ["pandas", [["a", "Float64"]]]}),
    "an argument of no such name": ("arguments.also", 1),
    "an argument of a private name": ("arguments.__class__", 1),
    "an attribute more": ("also_", 1),
    "a method in its state": ("score_samples", 1),
    "no arguments": ("arguments", None),
    "no state": ("state", {"dict": {}}),
    "draws that are a number": ("draws_", 7),
    "a status that is a number": ("status_", 7),
    "convergence that is a number": ("converged_", 2),
    "a trace that is a text": ("_trace", "x"),
    "a container that is a text": ("_sklearn_output_config", "x"),
    "columns of another record": ("columns_", {"record": ["Order", {}]}),
    "columns of fewer names": ("columns_.names", {"tuple": ["a", "b"]}),
    "columns without names": ("columns_.names", NONE),
    "columns of fewer kinds": ("columns_.kinds", {"tuple": ["real"]}),
    "columns of no such kind": ("columns_.kinds.0", "complex"),
    "columns without levels": ("columns_.levels", NONE),
    "columns of a level less": ("columns_.levels.0", {"tuple": ["blue", "red"]}),
    "columns of names that are a number": ("columns_.has_names", 1),
    "rows of NaN weights": ("rows_.weights", some(np.nan)),
    "rows of negative weights": ("rows_.weights", some(-1.0)),
    "rows of fewer weights": ("rows_.weights", fewer),
    "rows of infinite cells": ("rows_.real", some(np.inf)),
    "rows of fewer reals": ("rows_.real", fewer),
    "rows of a column less": ("rows_.real", narrower),
    "rows of single precision": ("rows_.real", lambda a: a.astype(np.float32)),
    "rows of codes beyond the levels": ("rows_.codes", some(10**6)),
    "rows of codes before the levels": ("rows_.codes", some(-7)),
    "rows of codes that are reals": ("rows_.codes", lambda a: a.astype(float)),
    "rows of labels beyond the classes": ("rows_.labels", some(2**40)),
    "a specification of no columns": ("model_.specification.n_features", -1),
    "a specification of endless columns": ("model_.specification.n_features", 10**9),
    "a specification of half a column": ("model_.specification.n_features", 0.5),
    "a specification of no level": ("model_.specification.levels.0", 0),
    "a specification of endless levels": ("model_.specification.levels.0", 10**12),
    "a specification without components": ("model_.specification.component_class", NONE),
    "a specification of classes with a gap": ("model_.specification.component_class.1", 2),
    "a specification of no such covariance": ("model_.specification.covariance_type", "x"),
    "a specification that is tied to a number": ("model_.specification.tied", 3),
    "a prior of negative freedom": ("model_.hyperparameters.degrees_of_freedom", -1.0),
    "a prior of no precision": ("model_.hyperparameters.mean_precision", 0.0),
    "a prior in the middle of nowhere": ("model_.hyperparameters.location", some(np.nan)),
    "a prior of no scale": ("model_.hyperparameters.scale", some(0.0)),
    "a prior of a negative scale": ("model_.hyperparameters.scale", some(-1.0)),
    "a prior of negative weights": ("model_.hyperparameters.weight_concentration", -1.0),
    "classes of more than probability one": ("model_.parameters.class_probabilities", some(2.0)),
    "weights that are negative": ("model_.parameters.weights", some(-0.5)),
    "weights of a sum of two": ("model_.parameters.weights", lambda a: a * 2),
    "weights that are NaN": ("model_.parameters.weights", some(np.nan)),
    "weights of a component less": ("model_.parameters.weights", fewer),
    "means that are NaN": ("model_.parameters.means", some(np.nan)),
    "means that are infinite": ("model_.parameters.means", some(np.inf)),
    "means of a component less": ("model_.parameters.means", fewer),
    "means of a column less": ("model_.parameters.means", narrower),
    "means in a row": ("model_.parameters.means", np.ravel),
    "means of whole numbers": ("model_.parameters.means", lambda a: a.astype(int)),
    "precisions that are zero": ("model_.parameters.precisions_cholesky", np.zeros_like),
    "precisions that are negative": ("model_.parameters.precisions_cholesky", np.negative),
    "precisions that are NaN": ("model_.parameters.precisions_cholesky", some(np.nan)),
    "precisions of a column less": ("model_.parameters.precisions_cholesky", narrower),
    "levels of negative probability": ("model_.parameters.category_probabilities.0", some(-0.1)),
    "levels of a sum of two": ("model_.parameters.category_probabilities.0", lambda a: a * 2),
    "levels that are one less": ("model_.parameters.category_probabilities.0", narrower),
    "an order that names a column twice": ("model_.order.features", np.zeros_like),
    "an order that names no column": ("model_.order.features", some(99)),
    "an order that names a negative column": ("model_.order.features", some(-2)),
    "an objective of no such name": ("model_.objective.name", "x"),
}
PLACES: Final = {
    "arguments": "arguments",
    "state": "fitted",
    "columns_": "fitted.table.columns",
    "rows_": "fitted.table.rows",
    "_template": "fitted.table.template",
    "model_": "fitted.model",
    "candidates_": "fitted.details",
    "draws_": "fitted.draws",
    "status_": "fitted.sentence",
    "converged_": "fitted.converged",
    "_trace": "fitted.trace",
    "also_": "fitted.also",
    "score_samples": "fitted.score_samples",
    "_sklearn_output_config": "container",
}
"""Where a file has each part."""


def densities() -> dict[str, Hostile]:
    """A density with each of the changes."""
    models = {}
    for name, (place, value) in (PARTS | HELD).items():
        first, _, rest = place.partition(".")
        models[name] = changed("density", f"{PLACES[first]}.{rest}".rstrip("."), value)
    return models


FAMILY: Final = {
    **{
        f"{family} in the name of another": changed(family, "", None, other)
        for family in FAMILIES
        for other in ["SDGMClassifier" if family != "sdgm" else "MedianLVQClassifier"]
    },
    **{
        f"{family} without its {part}": changed(family, PLACES[place], None)
        for part, place, without in (
            ("columns", "columns_", "exemplars of vectors"),
            ("model", "model_", ""),
        )
        for family in FAMILIES
        if family != without
    },
}
"""Rows that a metric compares have no columns."""

CORPUS: Final = {"model": densities(), "family": FAMILY}

"""Models of released versions with one thing changed that no fit leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.artefact import pack, unpack
from bayesrbf.artefact.state_file import encode, load_state
from tests.golden import FOLDER
from tests.hostile.corpus import Hostile

FAMILIES: Final = tuple(sorted(p.stem for p in (FOLDER / "0.1.0").glob("*.safetensors")))
REFUSED: Final = "/"  # The error names the file, in either of two sentences.


def inside(tree: Any) -> Any:
    """What a tag holds."""
    for tag, content in tree.items() if isinstance(tree, dict) and len(tree) == 1 else ():
        if tag in ("dict", "tuple"):
            return content
        if tag == "record":
            return content[1]
    return tree


def changed(family: str, path: str, value: Any, kind: str = "") -> Hostile:
    """A model with something else at a place: a tree, or a function of the array that is there."""

    def write(file: Path) -> None:
        named, state = load_state(FOLDER / "0.1.0" / f"{family}.safetensors")
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


state = partial(changed, "density")
NONE: Final = {"tuple": []}

PARTS: Final = {
    f"{name} that is {what}": state(f"state.{name}", value)
    for name in ("columns_", "rows_", "model_", "candidates_")
    for what, value in {"a text": "x", "nothing": None, "a list": []}.items()
}
HELD: Final = {
    "a frame that is a text": state("state._template", "x"),
    "a frame of a column less": state("state._template", {"frame": ["pandas", [["a", "Float64"]]]}),
    "an argument of no such name": state("arguments.also", 1),
    "an argument of a private name": state("arguments.__class__", 1),
    "an attribute more": state("state.also_", 1),
    "a method in its state": state("state.score_samples", 1),
    "no arguments": state("arguments", None),
    "no state": state("state", {"dict": {}}),
    "draws that are a number": state("state.draws_", 7),
    "a status that is a number": state("state.status_", 7),
    "convergence that is a number": state("state.converged_", 2),
    "iterations that are a text": state("state.n_iter_", "x"),
    "a container that is a text": state("state._sklearn_output_config", "x"),
    "columns of another record": state("state.columns_", {"record": ["Order", {}]}),
    "columns of fewer names": state("state.columns_.names", {"tuple": ["a", "b"]}),
    "columns without names": state("state.columns_.names", NONE),
    "columns of fewer kinds": state("state.columns_.kinds", {"tuple": ["real"]}),
    "columns of no such kind": state("state.columns_.kinds.0", "complex"),
    "columns without levels": state("state.columns_.levels", NONE),
    "columns of a level less": state("state.columns_.levels.0", {"tuple": ["blue", "red"]}),
    "columns of names that are a number": state("state.columns_.has_names", 1),
    "rows of NaN weights": state("state.rows_.weights", some(np.nan)),
    "rows of negative weights": state("state.rows_.weights", some(-1.0)),
    "rows of fewer weights": state("state.rows_.weights", fewer),
    "rows of infinite cells": state("state.rows_.real", some(np.inf)),
    "rows of fewer reals": state("state.rows_.real", fewer),
    "rows of a column less": state("state.rows_.real", narrower),
    "rows of single precision": state("state.rows_.real", lambda a: a.astype(np.float32)),
    "rows of codes beyond the levels": state("state.rows_.codes", some(10**6)),
    "rows of codes before the levels": state("state.rows_.codes", some(-7)),
    "rows of codes that are reals": state("state.rows_.codes", lambda a: a.astype(float)),
    "rows of labels beyond the classes": state("state.rows_.labels", some(2**40)),
    "a specification of no columns": state("state.model_.specification.n_features", -1),
    "a specification of endless columns": state("state.model_.specification.n_features", 10**9),
    "a specification of half a column": state("state.model_.specification.n_features", 0.5),
    "a specification of no level": state("state.model_.specification.levels.0", 0),
    "a specification of endless levels": state("state.model_.specification.levels.0", 10**12),
    "a specification without components": state("state.model_.specification.component_class", NONE),
    "a specification of classes with a gap": state(
        "state.model_.specification.component_class.1", 2
    ),
    "a specification of no such covariance": state(
        "state.model_.specification.covariance_type", "x"
    ),
    "a specification that is tied to a number": state("state.model_.specification.tied", 3),
    "a specification of less than no factor": state("state.model_.specification.n_factors", -1),
    "a prior of negative freedom": state("state.model_.hyperparameters.degrees_of_freedom", -1.0),
    "a prior of no precision": state("state.model_.hyperparameters.mean_precision", 0.0),
    "a prior in the middle of nowhere": state(
        "state.model_.hyperparameters.location", some(np.nan)
    ),
    "a prior of no scale": state("state.model_.hyperparameters.scale", some(0.0)),
    "a prior of a negative scale": state("state.model_.hyperparameters.scale", some(-1.0)),
    "a prior of negative weights": state("state.model_.hyperparameters.weight_concentration", -1.0),
    "classes of more than probability one": state(
        "state.model_.parameters.class_probabilities", some(2.0)
    ),
    "weights that are negative": state("state.model_.parameters.weights", some(-0.5)),
    "weights of a sum of two": state("state.model_.parameters.weights", lambda a: a * 2),
    "weights that are NaN": state("state.model_.parameters.weights", some(np.nan)),
    "weights of a component less": state("state.model_.parameters.weights", fewer),
    "means that are NaN": state("state.model_.parameters.means", some(np.nan)),
    "means that are infinite": state("state.model_.parameters.means", some(np.inf)),
    "means of a component less": state("state.model_.parameters.means", fewer),
    "means of a column less": state("state.model_.parameters.means", narrower),
    "means in a row": state("state.model_.parameters.means", np.ravel),
    "means of whole numbers": state("state.model_.parameters.means", lambda a: a.astype(int)),
    "precisions that are zero": state("state.model_.parameters.precisions_cholesky", np.zeros_like),
    "precisions that are negative": state(
        "state.model_.parameters.precisions_cholesky", np.negative
    ),
    "precisions that are NaN": state("state.model_.parameters.precisions_cholesky", some(np.nan)),
    "precisions of a column less": state("state.model_.parameters.precisions_cholesky", narrower),
    "levels of negative probability": state(
        "state.model_.parameters.category_probabilities.0", some(-0.1)
    ),
    "levels of a sum of two": state(
        "state.model_.parameters.category_probabilities.0", lambda a: a * 2
    ),
    "levels that are one less": state("state.model_.parameters.category_probabilities.0", narrower),
    "an order that names a column twice": state("state.model_.order.features", np.zeros_like),
    "an order that names no column": state("state.model_.order.features", some(99)),
    "an order that names a negative column": state("state.model_.order.features", some(-2)),
    "an objective of no such name": state("state.model_.objective.name", "x"),
}
FAMILY: Final = {
    **{
        f"{family} in the name of another": changed(family, "", None, other)
        for family in FAMILIES
        for other in ["SDGMClassifier" if family != "sdgm" else "MedianLVQClassifier"]
    },
    **{
        f"{family} without its columns": changed(family, "state.columns_", None)
        for family in FAMILIES
    },
    **{f"{family} without its model": changed(family, "state.model_", None) for family in FAMILIES},
}

CORPUS: Final = {"model": {**PARTS, **HELD}, "family": FAMILY}

"""Altered artefacts with a right digest: none may predict NaN, fail in predicting only, or crash.

``python -m tests.mutations`` tries some hundreds over every family and prints how many were
refused by ``load`` and how many predict probabilities all the same.
"""

from __future__ import annotations

import copy
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bayesrbf
from bayesrbf.base.artefact import ArtefactError, encode, load_state, pack, unpack

Mutant = tuple[str, Callable[[], tuple[Any, dict[str, np.ndarray]]]]
"""What is altered, and the tree and the arrays then."""

ROWS = 24


def table(kind: str = "mixed") -> tuple[Any, np.ndarray]:
    """Few rows of two classes: reals with holes, and a categorical column where asked."""
    rng = np.random.default_rng(0)
    y = np.repeat(["no", "yes"], ROWS // 2)
    X = pd.DataFrame(rng.normal(size=(ROWS, 2)) + 2.0 * (y == "yes")[:, None], columns=["a", "b"])
    if kind == "whole":
        return X, y
    X.loc[::5, "a"] = np.nan
    if kind == "mixed":
        X["colour"] = rng.choice(["red", "green", "blue"], ROWS)
        X.loc[2, "colour"] = None
    return X, y


def _drawn(model: Any, X: Any, y: Any) -> Any:
    return model.fit(X, y).refine("laplace", draws=6)


FAMILIES: dict[str, tuple[str, Callable[[Any, np.ndarray], Any]]] = {
    "density": ("mixed", lambda X, y: bayesrbf.MixtureDensity(2, random_state=0).fit(X)),
    "mixture": (
        "mixed",
        lambda X, y: bayesrbf.HybridMixtureClassifier(2, cv=2, random_state=0).fit(X, y),
    ),
    "mixture with draws": (
        "real",
        lambda X, y: _drawn(
            bayesrbf.HybridMixtureClassifier(
                1, calibrate=False, objective="likelihood", random_state=0
            ),
            X,
            y,
        ),
    ),
    "mixture beside a pool": (
        "mixed",
        lambda X, y: (
            bayesrbf.HybridMixtureClassifier(1, cv=2, random_state=0)
            .fit(X, y)
            .refine("laplace", model_uncertainty="pool", draws=6)
        ),
    ),
    "kernel network": (
        "mixed",
        lambda X, y: bayesrbf.KernelNetworkClassifier(random_state=0).fit(X, y),
    ),
    "RBF network": (
        "mixed",
        lambda X, y: bayesrbf.RBFNetworkClassifier(2, random_state=0).fit(X, y),
    ),
    "RBF regression": (
        "mixed",
        lambda X, y: bayesrbf.RBFNetworkRegressor(2, random_state=0).fit(
            X, np.random.default_rng(1).normal(size=len(y))
        ),
    ),
    "sdgm": ("mixed", lambda X, y: bayesrbf.SDGMClassifier(random_state=0).fit(X, y)),
    "exemplars": ("mixed", lambda X, y: bayesrbf.MedianLVQClassifier(random_state=0).fit(X, y)),
    "exemplars of vectors": (
        "whole",
        lambda X, y: bayesrbf.MedianLVQClassifier(metric="euclidean", random_state=0).fit(
            X.to_numpy(), y
        ),
    ),
    "stack": (
        "mixed",
        lambda X, y: bayesrbf.StackedClassifier(
            missingness="informative", cv=2, random_state=0
        ).fit(X, y),
    ),
    "stack with draws": (
        "real",
        lambda X, y: bayesrbf.recalibrate(
            bayesrbf.StackedClassifier(("laplace", "normal"), cv=2, random_state=0)
            .fit(X, y)
            .refine(draws=4),
            X,
            y,
            "slope",
        ),
    ),
}


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """A fitted model of a family, and rows to predict."""
    kind, fit = FAMILIES[name]
    X, y = table(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X, y), X.to_numpy() if name == "exemplars of vectors" else X


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every value in a tree."""
    yield path
    if isinstance(tree, dict | list) and not _is_array(tree):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _places(value, (*path, key))


def _is_array(tree: Any) -> bool:
    kinds = ({"array"}, {"coded"}, {"coded single"}, {"single"})
    return isinstance(tree, dict) and tree.keys() in kinds


def _with(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The tree with another value at a path."""
    changed = copy.deepcopy(tree)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _some(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    changed.reshape(-1)[changed.size // 2] = value
    return changed


def array_changes(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Other arrays in the place of one."""
    if array.dtype.kind == "f" and array.size:
        for value in (np.nan, np.inf, -1.0, 0.0, 1e300, -1e300, 1e-300):
            yield f"one {value}", _some(array, value)
        yield "all NaN", np.full_like(array, np.nan)
        yield "negative", np.asarray(-array)
        yield "tiny", np.asarray(array * 1e-200)
        yield "huge", np.asarray(np.clip(array, -1e100, 1e100) * 1e200)
        yield "single", array.astype(np.float32)
    if array.dtype.kind == "i" and array.size:
        for value in (-7, -1, 1, 10**6, min(2**62, np.iinfo(array.dtype).max)):
            yield f"one {value}", _some(array, value)
        yield "short", array.astype(np.int32)
        yield "unsigned", array.astype(np.uint64)
        yield "reals", array.astype(np.float64)
        yield "reversed", np.ascontiguousarray(array[::-1])
    if array.dtype.kind == "b" and array.size:
        yield "negated", ~array
        yield "whole numbers", array.astype(np.int64)
    if array.ndim:
        yield "one less", np.ascontiguousarray(array[:-1])
        yield "one more", np.concatenate([array, array[:1]])
        yield "empty", array[:0].copy()
        yield "flat", array.ravel().copy()
        yield "an axis more", array[None].copy()
    if array.ndim > 1:
        yield "transposed", np.ascontiguousarray(array.T)
        yield "narrower", np.ascontiguousarray(array[..., :-1])
        yield "wider", np.concatenate([array, array[..., :1]], axis=-1)
    else:
        yield "a number", np.array(array.sum() if array.dtype.kind != "b" else True)


def leaf_changes(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values in the place of a number, text, list or record."""
    if isinstance(value, bool):
        yield from (("negated", not value), ("a number", 7), ("text", "yes"))
    elif isinstance(value, int):
        yield from (("0", 0), ("-1", -1), ("more", value + 1), ("large", 10**9), ("half", 0.5))
        yield from (("text", "1"), ("true", True))
    elif isinstance(value, float):
        yield from (("0", 0.0), ("-1", -1.0), ("1e300", 1e300), ("tiny", 1e-300), ("text", "1"))
        yield from (("nan", {"float": "nan"}), ("inf", {"float": "inf"}))
    elif isinstance(value, str):
        yield from (("empty", ""), ("another", value + "x"), ("a number", 3))
    elif isinstance(value, list) and value:
        yield from (("one less", value[:-1]), ("one more", [*value, value[-1]]), ("none", []))
        yield "reversed", value[::-1]
    yield "None", None
    yield "a list", []
    yield "a tuple", {"tuple": []}


def mutants(tree: Any, arrays: dict[str, np.ndarray]) -> Iterator[Mutant]:
    """Every alteration of a packed state."""
    places = list(_places(tree))
    for path in places:
        value = _at(tree, path)
        if isinstance(value, dict):
            for what, other in array_changes(unpack(value, arrays)) if _is_array(value) else ():
                yield f"{_words(path)}: {what}", partial(_placed, tree, path, arrays, other)
        elif value is not None:
            for what, other in leaf_changes(value):
                if other != value or type(other) is not type(value):
                    altered = partial(_with, tree, path, other)
                    yield f"{_words(path)}: {what}", partial(_later, altered, arrays)


def _placed(tree: Any, path: tuple[Any, ...], arrays: Any, other: np.ndarray) -> tuple[Any, Any]:
    """Another array at a path, on a strip of its own."""
    node = {"array": ["other", 0, list(other.shape)]}
    return _with(tree, path, node), {**arrays, "other": other.ravel()}


def _later(tree: Callable[[], Any], arrays: Any) -> tuple[Any, Any]:
    return tree(), arrays


def _words(path: tuple[Any, ...]) -> str:
    left_out = ("dict", "record", "tuple", 1, "state")
    return ".".join(str(key) for key in path if key not in left_out)


def outcome(content: bytes, rows: Any, folder: Path) -> str:
    """What becomes of an altered file: "refused", "predicts", or what went wrong."""
    path = folder / "altered.safetensors"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = bayesrbf.load(path)
        except ArtefactError:
            return "refused"
        except Exception as error:
            return f"load raises {type(error).__name__}: {error}"
        try:
            return _predicted(model, rows)
        except Exception as error:
            return f"predicting raises {type(error).__name__}: {error}"


def _predicted(model: Any, rows: Any) -> str:
    """Whether everything that is predicted for rows is finite, and sums to one where it must."""
    if hasattr(model, "predict_proba"):
        said = model.predict_proba(rows)
        if not np.isfinite(said).all() or abs(said.sum(axis=1) - 1).max() > 1e-6:
            return "probabilities that are none"
        sure = (
            model.uncertainty(rows)["probability"].values if hasattr(model, "uncertainty") else said
        )
        if not np.isfinite(sure).all():
            return "means that are none"
        model.predict(rows)
    elif hasattr(model, "predict") and not np.isfinite(model.predict(rows)).all():
        return "predictions that are none"
    if hasattr(model, "score_samples") and not np.isfinite(model.score_samples(rows)).all():
        return "densities that are none"
    return "predicts"


def try_all(name: str, most: int, folder: Path, seed: int = 0) -> Counter[str]:
    """Outcomes of at most so many alterations of a model of a family, drawn at random."""
    model, rows = fitted(name)
    model.save(folder / "model.safetensors")
    kind, state = load_state(folder / "model.safetensors")
    tree, arrays = pack(state)
    with np.errstate(all="ignore"):  # some arrays are of single precision, or have huge numbers
        made = list(mutants(tree, arrays))
    chosen = np.random.default_rng(seed).permutation(len(made))[:most]
    outcomes: Counter[str] = Counter()
    for place in sorted(chosen):
        what, alter = made[place]
        said = outcome(encode(kind, *alter(), "altered"), rows, folder)
        good = said in ("refused", "predicts")
        outcomes[said if good else f"{name}, {what}: {said}"] += 1
    return outcomes


def main(most: int = 250) -> int:
    """Try alterations of every family and print what became of them."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in FAMILIES:
            outcomes = try_all(name, most, Path(folder))
            total += outcomes
            bad = [text for text in outcomes if text not in ("refused", "predicts")]
            print(
                f"{name}: {outcomes.total()} tried, {outcomes['refused']} refused, "
                f"{outcomes['predicts']} predict, {len(bad)} got through",
                flush=True,
            )
            print("".join(f"    {text}\n" for text in bad), end="", flush=True)
    wrong = total.total() - total["refused"] - total["predicts"]
    print(
        f"{total.total()} altered files: {total['refused']} refused, {total['predicts']} predict, "
        f"{wrong} got through"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))

"""What every stored record is held to: the types, shapes and finite numbers that it declares."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints, no_type_check

import numpy as np
from jaxtyping import AbstractArray, jaxtyped

from bayesrbf.artefact.laws import Law
from bayesrbf.artefact.mixture_laws import MIXTURES
from bayesrbf.artefact.model_laws import MODELS
from bayesrbf.artefact.stack_laws import STACKS

LAWS: Final[Mapping[str, Law]] = {**MIXTURES, **MODELS, **STACKS}
"""Law of each record of which its types do not say everything."""

OPEN: Final[Mapping[str, frozenset[str]]] = {
    "DensityCandidate": frozenset({"log_density"}),
    "MixtureCandidate": frozenset({"log_score"}),
    "Draws": frozenset({"stats", "attributes"}),
    "Fit": frozenset({"restarts"}),
    "Observations": frozenset({"real", "further"}),
    "RBFNetworkHyperparameters": frozenset({"link"}),
    "SDGMTrace": frozenset({"evidence"}),
    "Trace": frozenset({"log_posterior"}),
    "VectorSource": frozenset({"rows"}),
}
"""Fields of records whose numbers may be NaN or infinite; what they may be, laws say."""

EXACT: Final = {"float64", "int64", "bool"}
"""Dtypes of arrays declared as reals, whole numbers or booleans: kernels read no others."""


@cache
def declared(kind: Any) -> dict[str, Any]:
    """The types of the fields of a record."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def check_record(record: Any) -> None:
    """ValueError that says what a stored record lacks to be one that a fit makes."""
    check_fields(record)
    name = type(record).__name__
    for holds, what in LAWS[name](record) if name in LAWS else ():
        if not holds:
            raise ValueError(f"a {name} needs {what}")


def check_fields(record: Any) -> None:
    """ValueError where a field is not of its type, or its arrays of their shapes, taken together.

    Numbers must be finite unless :data:`OPEN` names their field.
    """
    kind: Any = type(record)
    with jaxtyped("context"):  # in which one name is one length
        for name, annotation in declared(kind).items():
            value = getattr(record, name)
            if not conforms(value, annotation):
                raise ValueError(f"{kind.__name__}.{name} is no {_words(annotation)}")
            if name not in OPEN.get(kind.__name__, ()) and not all_finite(value):
                raise ValueError(f"{kind.__name__}.{name} holds NaN or infinity")


@no_type_check  # a check of its own would hide the lengths of the context from it
def conforms(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type, contents of tuples and mappings included.

    >>> conforms((1, 2), tuple[int, ...]), conforms((1, True), tuple[int, ...])
    (True, False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, object):
        return True
    if annotation in (None, NoneType):
        return value is None
    if annotation is float:
        return type(value) in (int, float)
    if annotation in (int, bool, str):
        return type(value) is annotation
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (Union, UnionType):
        return any(conforms(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _are(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(key, arguments[0]) and conforms(one, arguments[1])
            for key, one in value.items()
        )
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return isinstance(value, annotation) and _exact(value, annotation)
    plain = annotation if origin is None else origin
    return isinstance(plain, type) and isinstance(value, plain)


def all_finite(value: Any) -> bool:
    """Whether no number in arrays, tuples and mappings is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, tuple | list):
        return all(map(all_finite, value))
    return not isinstance(value, Mapping) or all(map(all_finite, value.values()))


@no_type_check
def _are(values: tuple[Any, ...], annotations: tuple[Any, ...]) -> bool:
    """Whether the items of a tuple are of its types."""
    if annotations[1:] == (...,):
        return all(conforms(value, annotations[0]) for value in values)
    return len(values) == len(annotations) and all(map(conforms, values, annotations))


def _exact(value: Any, annotation: Any) -> bool:
    """Whether the dtype is the one that such arrays have; of arrays of any number, any is."""
    named = annotation.dtypes if isinstance(annotation.dtypes, tuple) else ()
    return len(EXACT.intersection(named)) != 1 or value.dtype.name in EXACT


def _words(annotation: Any) -> str:
    """A type in words."""
    return getattr(annotation, "__name__", str(annotation)).replace("jaxtyping.", "")

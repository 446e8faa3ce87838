"""Checks stored records: fields have their declared types and shapes, and numbers are finite."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    no_type_check,
)

import numpy as np
from jaxtyping import AbstractArray, jaxtyped

from bayesrbf.records.stored import ANY_NUMBER

EXACT: Final = {"float64", "int64", "bool"}
"""Dtypes of arrays declared as reals, whole numbers or booleans: kernels read no others."""


@cache
def declared(kind: Any) -> dict[str, Any]:
    """The types of the fields of a record."""
    # Python 3.12 does not look up the type parameters of a class by itself.
    parameters = {parameter.__name__: parameter for parameter in kind.__type_params__}
    hints = get_type_hints(kind, localns=parameters)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def check_fields(record: Any) -> None:
    """ValueError where a field is not of its type, or its arrays of their shapes, taken together.

    Numbers must be finite unless their field may hold any number.
    """
    kind: Any = type(record)
    types, place = declared(kind), kind.__name__
    with jaxtyped("context"):  # in which one name is one length
        for field in dataclasses.fields(record):
            value, annotation = getattr(record, field.name), types[field.name]
            if not conforms(value, annotation):
                raise ValueError(f"{place}.{field.name} is no {_words(annotation)}")
            if field.metadata != ANY_NUMBER and not all_finite(value):
                raise ValueError(f"{place}.{field.name} holds NaN or infinity")


@no_type_check  # a check of its own would hide the lengths of the context from it
def conforms(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type, contents of tuples and mappings included.

    >>> conforms((1, 2), tuple[int, ...]), conforms((1, True), tuple[int, ...])
    (True, False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, object):
        return True
    if isinstance(annotation, TypeVar):
        return conforms(value, annotation.__bound__ or object)
    if annotation in (None, NoneType):
        return value is None
    if annotation is float:
        return type(value) in (int, float)
    if annotation in (int, bool, str):
        return type(value) is annotation
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (Union, UnionType):
        return any(conforms(value, argument) for argument in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _are(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(key, arguments[0]) and conforms(item, arguments[1])
            for key, item in value.items()
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

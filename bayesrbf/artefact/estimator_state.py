"""The state of an estimator: what a fit leaves behind, replaced in one step, and as a record."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import get_annotations
from types import UnionType
from typing import Any, cast, get_origin

from sklearn.base import BaseEstimator

OPTIONAL = {"feature_names_in_"}
"""Fitted attributes that only some tables leave behind."""
MADE_ANEW = {"posterior_", "_prepared"}
"""Attributes that are made from the others when they are read."""
CONTAINER = "_sklearn_output_config"
"""Where scikit-learn keeps the container of ``set_output``."""
REQUESTS = "_metadata_request"
"""Where scikit-learn keeps metadata requests, which belong to a pipeline and not to a fit."""


def works_on[F: Callable[..., Any]](begin: Callable[[Any], Any]) -> Callable[[F], F]:
    """Run a method on a copy, whose state the estimator takes over at the end.

    A method that is interrupted or fails leaves the estimator as it was. ``begin`` makes the copy:
    ``copy``, or :func:`unfitted`, which omits an earlier fit.
    """

    def decorate(method: F) -> F:
        @wraps(method)
        def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
            beside = begin(self)
            method(beside, *args, **kwargs)
            self.__dict__ = beside.__dict__  # one assignment: no interrupt falls within it
            return self

        return cast(F, changed)

    return decorate


def fitted_attributes(kind: type) -> dict[str, Any]:
    """Names and types of fitted attributes: every annotated attribute of the classes."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("bayesrbf"):
            found |= get_annotations(base, eval_str=True)
    derived = {name for name in found if isinstance(getattr(kind, name, None), property)}
    return {name: annotated for name, annotated in found.items() if name not in derived}


def unfitted[E: BaseEstimator](estimator: E) -> E:
    """A copy without the results of an earlier fit, except under a warm start, which begins there.

    Arguments, metadata requests and the output container stay.
    """
    beside = copy(estimator)
    if not getattr(estimator, "warm_start", False):
        for name in (*fitted_attributes(type(estimator)), *OPTIONAL, *MADE_ANEW):
            beside.__dict__.pop(name, None)
    return beside


def to_record(estimator: BaseEstimator) -> dict[str, Any]:
    """Constructor arguments and fitted state, for an artefact."""
    arguments = estimator.get_params(deep=False)
    left_out = {*arguments, *MADE_ANEW, REQUESTS}
    state = {name: value for name, value in vars(estimator).items() if name not in left_out}
    return {"arguments": arguments, "state": state}


def from_record[E: BaseEstimator](kind: type[E], record: dict[str, Any]) -> E:
    """The estimator that :func:`to_record` described; the record is not trusted."""
    estimator, state = kind(**record["arguments"]), record["state"]
    expected = fitted_attributes(kind)
    odd = (set(expected) ^ set(state)) - OPTIONAL - {CONTAINER}
    if odd or set(record) != {"arguments", "state"}:
        raise ValueError(f"unknown or missing state: {', '.join(sorted(odd | set(record)))}")
    if not isinstance(state.get(CONTAINER, {}), dict):
        raise TypeError(f"{CONTAINER} must be dict")
    for name, annotated in expected.items():
        if not _is_of(state[name], annotated):
            raise TypeError(f"{name} must be {annotated}, received {type(state[name]).__name__}")
    estimator.__dict__.update(state)
    return estimator


def _is_of(value: object, annotated: Any) -> bool:
    """Whether a value is of an annotated type; the contents of generics are not checked."""
    origin = get_origin(annotated)
    plain = annotated if origin is None or origin is UnionType else origin
    return plain is Any or isinstance(value, plain)

"""What a fit leaves behind in an estimator: replaced in one step, saved to a file, restored."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from functools import cache, wraps
from importlib import import_module
from inspect import get_annotations
from typing import Any, Final, cast

from sklearn.base import BaseEstimator

from bayesrbf.artefact.conforming import conforms
from bayesrbf.artefact.stack_laws import check_state
from bayesrbf.artefact.state_file import ArtefactError, load_state, save_state, shown

OPTIONAL = {
    "calibration_",
    "candidates_",
    "feature_names_in_",
    "passes_",
    "_column_doubts",
    "_copies",
    "_sampled",
}  # Fitted attributes that only some tables leave behind.
MADE_ANEW = {"posterior_", "_prepared", "rehearsal_"}
"""Attributes that no file holds: made from the others when they are read, or by a rehearsal."""
STREAM = "_stream"  # Where a density keeps its stream: one from a file begins at its fit.
CONTAINER = "_sklearn_output_config"  # Where scikit-learn keeps the container of ``set_output``.
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
            try:
                method(beside, *args, **kwargs)
            except Exception as error:
                if _interrupted(error):  # as compilers of kernels report it
                    raise KeyboardInterrupt from error
                raise
            self.__dict__ = beside.__dict__  # one assignment: no interrupt falls within it
            return self

        return cast(F, changed)

    return decorate


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error came of an interrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def fitted_attributes(kind: type) -> dict[str, Any]:
    """Names and types of fitted attributes: every annotated attribute of the classes."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("bayesrbf"):
            found |= _annotations(base)
    derived = {name for name in found if isinstance(getattr(kind, name, None), property)}
    return {name: annotated for name, annotated in found.items() if name not in derived}


@cache  # The annotations are text, and every fit asks: half a millisecond of a small one.
def _annotations(kind: type) -> dict[str, Any]:
    """Names and types of a class's own annotated attributes."""
    return get_annotations(kind, eval_str=True)


def unfitted[E: BaseEstimator](estimator: E) -> E:
    """A copy without the results of an earlier fit, except under a warm start, which begins there.

    Arguments, metadata requests and the output container stay.
    """
    beside = copy(estimator)
    if not getattr(estimator, "warm_start", False):
        known = (*fitted_attributes(type(estimator)), *OPTIONAL, *MADE_ANEW, STREAM)
        for name in known:
            beside.__dict__.pop(name, None)
    return beside


def to_record(estimator: BaseEstimator) -> dict[str, Any]:
    """Constructor arguments and fitted state, for an artefact."""
    arguments = estimator.get_params(deep=False)
    left_out = {*arguments, *MADE_ANEW, REQUESTS, STREAM}
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
        if name in state and not conforms(state[name], annotated):
            raise TypeError(f"{name} must be {annotated}, received {type(state[name]).__name__}")
    check_state(state)
    estimator.__dict__.update(state)
    return estimator


ESTIMATORS: Final = {
    "HybridMixtureClassifier": "bayesrbf.estimators.mixture.hybrid",
    "KernelNetworkClassifier": "bayesrbf.estimators.kernel_network.classifier",
    "SDGMClassifier": "bayesrbf.estimators.sdgm.classifier",
    "StackedClassifier": "bayesrbf.estimators.stack.classifier",
    "MedianLVQClassifier": "bayesrbf.estimators.median_lvq.classifier",
    "MixtureDensity": "bayesrbf.estimators.mixture.density",
    "RBFNetworkClassifier": "bayesrbf.estimators.rbf_network.classifier",
    "RBFNetworkRegressor": "bayesrbf.estimators.rbf_network.regressor",
}
"""Module of each estimator that may be stored; a file can name no other."""


def save(estimator: Any, path: str | os.PathLike[str]) -> str:
    """Write a fitted estimator to one file, whole or not at all, and return its SHA-256.

    The digest is in hexadecimal, for ``load(path, digest=...)``. TypeError for a foreign class,
    ValueError for state that a file cannot hold (such as a RandomState), OSError where the file
    cannot be written; an older file then stays.
    """
    kind = type(estimator)
    if ESTIMATORS.get(kind.__name__) != kind.__module__:
        raise TypeError(
            f"save() writes {' and '.join(ESTIMATORS)}; received a {kind.__name__}. "
            "Save the estimator inside a pipeline, or the class it derives from."
        )
    return save_state(path, kind.__name__, to_record(estimator))


def load(path: str | os.PathLike[str], digest: str | None = None) -> Any:
    """Read a fitted estimator that ``save`` wrote; no code in the file is run.

    The types and conditions of every record are checked, and one stored row is predicted.

    Parameters
    ----------
    path : path-like
        File to read.
    digest : str, optional
        SHA-256 that the file must have, in hexadecimal, as ``save`` returned it.

    Returns
    -------
    estimator
        The fitted estimator.

    Raises
    ------
    ArtefactError
        If the file is damaged, is no artefact, or has another digest.
    OSError
        If the file cannot be read.
    """
    kind, record = load_state(path, digest)
    if kind not in ESTIMATORS:
        raise ArtefactError(
            f"{path} holds an unknown estimator {shown(repr(kind))}; this version reads "
            f"{' and '.join(ESTIMATORS)}."
        )
    cls = getattr(import_module(ESTIMATORS[kind]), kind)
    try:
        estimator = from_record(cls, record)
        estimator.__loaded__()
    except Exception as error:  # whatever a state that no fit leaves behind makes of predicting
        raise ArtefactError(f"{path} is no state of a {kind}: {shown(error)}.") from error
    return estimator

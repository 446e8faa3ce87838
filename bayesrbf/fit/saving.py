"""Fitted estimators in files: arguments and the fit, written whole and read without trust."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from inspect import get_annotations
from typing import Any, Final, get_args

from sklearn.base import BaseEstimator

from bayesrbf.base.artefact import ArtefactError, conforms, load_state, save_state, shown
from bayesrbf.fit.asking import Fit
from bayesrbf.fit.table import FittedTable
from bayesrbf.public import ESTIMATORS

CONTAINER: Final = "_sklearn_output_config"
"""Where scikit-learn keeps the container of ``set_output``."""


def save(estimator: BaseEstimator, fit: Fit, path: str | os.PathLike[str]) -> str:
    """Write an estimator and its fit to one file, whole or not at all, and return its SHA-256.

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
    record = {
        "arguments": estimator.get_params(deep=False),
        "fitted": fit,
        "container": vars(estimator).get(CONTAINER),
    }
    return save_state(path, kind.__name__, record)


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
    try:
        estimator = _from_record(getattr(import_module(ESTIMATORS[kind]), kind), record)
        estimator.__loaded__()
    except Exception as error:  # whatever a state that no fit leaves behind makes of predicting
        raise ArtefactError(f"{path} is no state of a {kind}: {shown(error)}.") from error
    return estimator


def _from_record(kind: type, record: Mapping[str, Any]) -> BaseEstimator:
    """The estimator that a file describes; the record is not trusted."""
    if set(record) != {"arguments", "fitted", "container"}:
        raise ValueError(f"unknown or missing entries: {', '.join(sorted(record))}")
    estimator, fit = kind(**record["arguments"]), record["fitted"]
    if type(fit) is not FittedTable or not all(
        map(conforms, (fit.model, fit.details), _parts(kind))
    ):
        raise TypeError(f"its fit is none of a {kind.__name__}")
    if fit.table.owner != kind.__name__:
        raise ValueError(f"its fit is one of a {fit.table.owner}")
    estimator.fitted_ = fit
    if record["container"] is not None:
        if not isinstance(record["container"], dict):
            raise TypeError("the container of set_output must be dict")
        setattr(estimator, CONTAINER, record["container"])
    return estimator


@cache
def _parts(kind: type[BaseEstimator]) -> tuple[object, object]:
    """Types of the model and of the details that a family's fit has."""
    model, details = get_args(get_annotations(kind, eval_str=True)["fitted_"])
    return model, details

"""Saving a fitted estimator to one file and restoring it, by names in a fixed table."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

from bayesrbf.artefact.estimator_state import from_record, to_record
from bayesrbf.artefact.state_file import ArtefactError, load_state, save_state

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
    """Read a fitted estimator that ``save`` wrote; nothing in the file is run.

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
            f"{path} holds an unknown estimator {kind!r}; this version reads "
            f"{' and '.join(ESTIMATORS)}."
        )
    cls = getattr(import_module(ESTIMATORS[kind]), kind)
    try:
        return from_record(cls, record)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{path} is no state of a {kind}: {error}.") from error

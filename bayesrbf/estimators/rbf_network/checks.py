"""Constructor arguments of RBF networks, checked at fit: one sentence per fault."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from bayesrbf.fitted.network_settings import DEFAULT_LINK, SchemeName
from bayesrbf.records.rbf_network import FEATURES

CHOICES: dict[str, tuple[object, ...]] = {
    "scheme": get_args(SchemeName),
    "features": (None, *FEATURES),
    "hidden_cells": ("marginalise", "impute"),
    "shared": (True, False),
}
DEFAULT_GROWTH = (1, 10)


def check_network_arguments(arguments: Mapping[str, Any], owner: str) -> None:
    """Check what RBF networks have beside other estimators.

    Parameters
    ----------
    arguments : mapping of str to object
        Constructor arguments by name.
    owner : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        If an argument is not among its choices, out of its range, or at odds with
        another; the message says which and how to mend it.

    Examples
    --------
    >>> check_network_arguments({"l1": -1.0}, "RBFNetworkClassifier")
    Traceback (most recent call last):
    ValueError: RBFNetworkClassifier(l1=...) must be a finite number of at least 0; received -1.0.
    """
    if arguments.get("features") == "kernel":
        raise ValueError(
            f"{owner}(features='kernel'): training rows as hidden units are those of "
            "KernelNetworkClassifier; use that class."
        )
    classifies = "shared" in arguments  # of the classifier alone, whose width may be None
    for name, value in arguments.items():
        if name in CHOICES and not any(value is c or value == c for c in CHOICES[name]):
            allowed = " or ".join(repr(choice) for choice in CHOICES[name])
            raise ValueError(f"{owner}({name}=...) must be {allowed}; received {value!r}.")
        if name in ("l1", "l2") and not _within(value, 0.0, np.inf):
            raise ValueError(
                f"{owner}({name}=...) must be a finite number of at least 0; received {value!r}."
            )
        wide_enough = isinstance(value, Integral) and int(value) >= 1
        if name == "n_components" and not (wide_enough or (classifies and value is None)):
            raise ValueError(
                f"{owner}(n_components=...) must be an integer of at least 1; received {value!r}."
            )
        if name == "unlabelled_weight" and isinstance(value, str):
            raise ValueError(
                f"{owner}({name}=...) must be a number of at least 0; received {value!r}."
            )
        if name == "kappa" and not (value is None or (_within(value, 0.0, np.inf) and value > 0)):
            raise ValueError(
                f"{owner}(kappa=...) must be None or a positive number; received {value!r}."
            )
    if "scheme" in arguments:
        _check_scheme(arguments, owner)


def link_of(link: float | int | None, scheme: str) -> float:
    """The link's gamma: as given, or the scheme's own.

    Parameters
    ----------
    link : float or None
        What was given.
    scheme : str
        The scheme.

    Returns
    -------
    float
        gamma, possibly infinite.

    Examples
    --------
    >>> link_of(None, "em_lr_link"), link_of(5, "caetano")
    (inf, 5.0)
    """
    return DEFAULT_LINK[scheme] if link is None else float(link)


def _check_scheme(arguments: Mapping[str, Any], owner: str) -> None:
    """What a scheme allows."""
    scheme, link, grow = arguments["scheme"], arguments["link"], arguments["grow"]
    if not (link is None or (isinstance(link, Real) and float(link) >= 0)):
        raise ValueError(
            f"{owner}(link=...) must be None, a number of at least 0, or inf; received {link!r}."
        )
    if scheme == "joint":
        if not arguments.get("shared", True):
            raise ValueError(
                f"{owner}(scheme='joint') has one mixture: shared=False goes with the published "
                "schemes, such as scheme='caetano'."
            )
        if arguments["l1"] + arguments["l2"] == 0:
            raise ValueError(
                f"{owner}(scheme='joint') needs a proper prior of the output weights: l1 or l2 "
                "must be positive."
            )
    hard = link is not None and np.isinf(float(link))
    if hard and scheme in ("joint", "em_lr"):
        raise ValueError(
            f"{owner}(link=inf) is the hard link of scheme='em_lr_link' or 'em_lr_link_k'; "
            f"scheme={scheme!r} needs a finite link."
        )
    if scheme == "em_lr" and link not in (None, 0):
        raise ValueError(
            f"{owner}(scheme='em_lr') has no link; use scheme='em_lr_link' for link={link!r}."
        )
    if grow is not None:
        _check_growth(scheme, grow, owner)


def _check_growth(scheme: str, grow: Any, owner: str) -> None:
    """Whether growth is a pair of positive integers, and of a scheme that grows."""
    if scheme != "em_lr_link_k":
        raise ValueError(
            f"{owner}(grow=...) belongs to scheme='em_lr_link_k'; received scheme={scheme!r}."
        )
    pair = isinstance(grow, tuple | list) and len(grow) == 2
    if not (pair and all(isinstance(n, Integral) and int(n) >= 1 for n in grow)):
        raise ValueError(
            f"{owner}(grow=...) must be (step, maximum), both integers of at least 1; "
            f"received {grow!r}."
        )


def _within(value: object, least: float, most: float) -> bool:
    """Whether a value is a number of a range."""
    return isinstance(value, Real) and least <= float(value) < most

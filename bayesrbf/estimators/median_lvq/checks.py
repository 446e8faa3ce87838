"""Constructor arguments that only exemplar classifiers have, checked at fit."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real as RealNumber
from typing import Final

import numpy as np

from bayesrbf.estimators.checks import components_per_class
from bayesrbf.records.median_lvq import MedianLVQPrior, Prototypes

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "objective": ("rslvq", "glvq"),
    "optimizer": ("swap", "gem"),
    "inference": ("map", "gibbs"),
}


def check_choices(arguments: Mapping[str, object], owner: str) -> None:
    """Refuse arguments that are none of their choices or do not go together."""
    for name, allowed in CHOICES.items():
        if name in arguments and arguments[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"{owner}({name}=...) must be {words}; received {arguments[name]!r}.")
    sigma = arguments.get("sigma", "cv")
    number = isinstance(sigma, RealNumber) and 1e-100 <= float(sigma) <= 1e100
    if not (sigma in ("cv", "sample") or number) or isinstance(sigma, bool):
        raise ValueError(
            f"{owner}(sigma=...) must be 'cv', 'sample' or a number from 1e-100 to 1e100; "
            f"received {sigma!r}."
        )
    if arguments.get("objective") == "glvq":
        for name, default in (("sigma", "cv"), ("prior", None), ("inference", "map")):
            if arguments[name] != default:
                raise ValueError(
                    f"{owner}(objective='glvq') has no likelihood and so no {name}; leave it at "
                    f"{default!r}, or use objective='rslvq'. Received {name}={arguments[name]!r}."
                )
        if arguments["class_prior"] is not None and not arguments["calibrate"]:
            raise ValueError(
                f"{owner}(objective='glvq', class_prior=...) needs calibrate=True: margins are no "
                "probabilities before."
            )
    prior = arguments.get("prior")
    if not (prior is None or isinstance(prior, MedianLVQPrior)):
        raise TypeError(f"{owner}(prior=...) must be a MedianLVQPrior or None; received {prior!r}.")


def prototypes_per_class(n_prototypes: object, classes: np.ndarray, owner: str) -> Prototypes:
    """Class of every prototype."""
    return Prototypes(components_per_class(n_prototypes, classes, owner, "n_prototypes"))

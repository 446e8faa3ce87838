"""Arguments of a sparse discriminative mixture that no other estimator has."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from bayesrbf.numerics.sdgm.sdgm_features import KERNELS
from bayesrbf.records.priors import PrecisionPrior

FORMS = ("primal", "kernel")
PREDICTIONS = ("average", "single-mode", "plug-in")


def check_arguments(model: Any) -> None:
    """Refuse what a fit cannot use.

    Parameters
    ----------
    model : SDGMClassifier
        Before its fit; this file is below that of the class.

    Raises
    ------
    ValueError
        If an argument has none of the values it may have.
    TypeError
        If the prior of the precisions is none.
    """
    owner = type(model).__name__
    check_choice(model, "form", FORMS)
    check_choice(model, "prediction", PREDICTIONS)
    if not (callable(model.kernel) or model.kernel in KERNELS):
        raise ValueError(
            f"{owner}(kernel=...) must be one of {KERNELS} or a function of two arrays of "
            f"points; received {model.kernel!r}."
        )
    if not (model.precision_prior is None or isinstance(model.precision_prior, PrecisionPrior)):
        raise TypeError(
            f"{owner}(precision_prior=...) must be GammaPrecisions, HorseshoePrecisions or "
            f"None; received {model.precision_prior!r}."
        )
    for name in ("alpha_init", "alpha_max", "companion_components"):
        value = getattr(model, name)
        if not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise ValueError(
                f"{owner}({name}=...) must be a finite positive number; received {value!r}."
            )


def check_choice(model: object, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an argument that is none of its choices.

    Parameters
    ----------
    model : object
        Has the argument as an attribute.
    name : str
        Name of the argument.
    choices : tuple of str
        What it may be.

    Raises
    ------
    ValueError
        If it is anything else.
    """
    received = getattr(model, name)
    if received not in choices:
        raise ValueError(
            f"{type(model).__name__}({name}=...) must be one of {choices}; received {received!r}."
        )

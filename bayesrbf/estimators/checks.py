"""Constructor arguments, checked at fit: one sentence per fault."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bayesrbf.records.objective import OBJECTIVES
from bayesrbf.records.priors import MixturePrior

if TYPE_CHECKING:
    type Stored[T] = T
else:

    class Stored:
        """A constructor argument: its type is for readers and type checkers, fit checks it."""

        def __class_getitem__(cls, item: object) -> object:
            return Any


CHOICES: Mapping[str, tuple[object, ...]] = {
    "covariance_type": ("full", "tied", "diag", "spherical"),
    "acceleration": ("squarem", None),
    "missingness": ("ignorable", "informative"),
    "handle_unknown": ("missing", "error"),
    "inference": ("map", "laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "objective": OBJECTIVES,
    "warm_start": (True, False),
    "tied": (True, False),
    "calibrate": (True, False),
    "early_stopping": (True, False),
}
LEAST_INTEGER: Mapping[str, int] = {
    "n_init": 1,
    "max_iter": 1,
    "objective_iter": 1,
    "batch_size": 1,
}
LEAST_NUMBER: Mapping[str, float] = {
    "tol": 0.0,
    "unlabelled_weight": 0.0,
    "kappa": 0.0,
    "hinge_weight": 0.0,
    "margin": 0.0,
    "smoothing": 0.0,
    "sharpness": 0.0,
    "ramp_cap": 0.0,
}
SHARES = ("validation_fraction",)
"""Numbers between 0 and 1, both excluded."""
OR_ELSE: Mapping[str, object] = {
    "unlabelled_weight": "cv",
    "kappa": "cv",
    "hinge_weight": "cv",
    "ramp_cap": None,
    "objective_iter": None,
    "batch_size": None,
}
"""What an argument that is a number as a rule may be instead."""


def check_arguments(arguments: Mapping[str, object], owner: str) -> None:
    """Check every constructor argument that does not depend on the data.

    Parameters
    ----------
    arguments : mapping of str to object
        Constructor arguments by name.
    owner : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        If an argument is not among its choices or below its least value.
    TypeError
        If ``prior`` is no ``MixturePrior``.

    Examples
    --------
    >>> check_arguments({"n_init": 0}, "MixtureDensity")
    Traceback (most recent call last):
    ValueError: MixtureDensity(n_init=...) must be an integer of at least 1; received 0.
    """
    for name, value in arguments.items():
        if name in CHOICES and not any(value is c or value == c for c in CHOICES[name]):
            allowed = " or ".join(repr(choice) for choice in CHOICES[name])
            raise ValueError(f"{owner}({name}=...) must be {allowed}; received {value!r}.")
        if name in OR_ELSE and (value is None or isinstance(value, str)):
            if value != OR_ELSE[name]:
                instead = f"a number, or {OR_ELSE[name]!r}"
                raise ValueError(f"{owner}({name}=...) must be {instead}; received {value!r}.")
            continue
        if name in LEAST_INTEGER:
            least = float(LEAST_INTEGER[name])
            if not (isinstance(value, Integral) and int(value) >= least):
                raise ValueError(_too_small(owner, name, "an integer", least, value))
        if name in LEAST_NUMBER:
            least = LEAST_NUMBER[name]
            if not (isinstance(value, Real) and least <= float(value) < np.inf):
                raise ValueError(_too_small(owner, name, "a finite number", least, value))
        if name in SHARES and not (isinstance(value, Real) and 0 < float(value) < 1):
            raise ValueError(
                f"{owner}({name}=...) must be a number between 0 and 1; received {value!r}."
            )
    prior = arguments.get("prior")
    if not (prior is None or isinstance(prior, MixturePrior)):
        raise TypeError(f"{owner}(prior=...) must be a MixturePrior or None; received {prior!r}.")


def _too_small(owner: str, name: str, noun: str, least: float, value: object) -> str:
    """The sentence about a number that is none, or below its least value."""
    return f"{owner}({name}=...) must be {noun} of at least {least:g}; received {value!r}."


def components_per_class(
    n_components: object, classes: np.ndarray, owner: str, argument: str = "n_components"
) -> tuple[int, ...]:
    """Class of every component, class by class.

    Parameters
    ----------
    n_components : int or mapping of class to int
        Number of components of every class.
    classes : ndarray of shape (n_classes,)
        Class labels; one entry for a plain density.
    owner : str
        Name of the estimator, for messages.
    argument : str
        Name of the number, for messages.

    Returns
    -------
    tuple of int
        ``(0, 0, 1)`` for two components of the first class and one of the second.

    Raises
    ------
    ValueError
        If a number is no positive integer, or a class has none or is unknown.

    Examples
    --------
    >>> components_per_class({"a": 2, "b": 1}, np.array(["a", "b"]), "HybridMixtureClassifier")
    (0, 0, 1)
    """
    labels = classes.tolist()
    if isinstance(n_components, Mapping):
        odd = [label for label in labels if label not in n_components]
        odd += [key for key in n_components if key not in labels]
        if odd:
            raise ValueError(
                f"{owner}({argument}=...) must give a number for every class of {labels} "
                f"and for no other; look at {odd[0]!r}."
            )
        counts = [n_components[label] for label in labels]
    else:
        counts = [n_components] * len(labels)
    for count in counts:
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(
                f"{owner}({argument}=...) must be an integer of at least 1"
                f" (or one per class); received {count!r}."
            )
    return tuple(np.repeat(np.arange(len(counts)), np.asarray(counts, dtype=int)).tolist())


def prevalence(
    class_prior: object, classes: np.ndarray, owner: str
) -> Float[np.ndarray, " label"] | None:
    """Class probabilities where the model will be used.

    Parameters
    ----------
    class_prior : None, array-like of shape (n_classes,) or mapping of class to float
        As given to the constructor.
    classes : ndarray of shape (n_classes,)
        Class labels.
    owner : str
        Name of the estimator, for messages.

    Returns
    -------
    ndarray of shape (n_classes,) or None
        Probabilities in the order of ``classes``; None keeps those of the fit.

    Raises
    ------
    ValueError
        If there is not one probability per class, or they do not sum to one.

    Examples
    --------
    >>> prevalence({"b": 0.9, "a": 0.1}, np.array(["a", "b"]), "HybridMixtureClassifier")
    array([0.1, 0.9])
    """
    if class_prior is None:
        return None
    labels = classes.tolist()
    if isinstance(class_prior, Mapping):
        if set(class_prior) != set(labels):
            raise ValueError(
                f"{owner}(class_prior=...) must name every class of {labels} and no other; "
                f"received {sorted(class_prior, key=str)}."
            )
        class_prior = [class_prior[label] for label in labels]
    values = np.asarray(class_prior, dtype=float)
    if values.shape != classes.shape or not np.all(values > 0) or abs(values.sum() - 1) > 1e-6:
        raise ValueError(
            f"{owner}(class_prior=...) must hold one positive probability per class of {labels}, "
            f"summing to one; received {class_prior!r}."
        )
    normalised: Float[np.ndarray, " label"] = values / values.sum()
    return normalised

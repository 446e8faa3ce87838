"""Constructor arguments: what each may be, checked at fit with one sentence per fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.utils.validation import _check_sample_weight, _num_samples

from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.records import Stored as Stored
from bayesrbf.base.rows import COVARIANCE_TYPES

type PerClass[T] = Mapping[Any, T]
"""A value for each class, by its label: keys of a mapping are invariant, labels of any type."""
Arguments = Mapping[str, Any]
"""Arguments of a constructor by name, as ``get_params`` returns them."""


@dataclass(frozen=True)
class Rule:
    """A rule for a constructor argument: one of some choices, or a type within bounds."""

    words: str
    choices: tuple[object, ...] = ()
    kind: Any = ()
    """A type, or a union of types, as ``isinstance`` takes it."""
    low: float = -np.inf
    high: float = np.inf
    closed: Literal["left", "both", "neither"] = "left"
    error: type[Exception] = ValueError

    def check(self, value: Any, argument: str) -> None:
        """Raise an error if a value breaks the rule; it names argument, rule and value."""
        if any(value is choice or value == choice for choice in self.choices):
            return
        fits = isinstance(value, self.kind)
        if fits and self.kind in (Integral, Real):
            above = value > self.low or (self.closed != "neither" and value == self.low)
            below = value < self.high or (self.closed == "both" and value == self.high)
            fits = above and below and not isinstance(value, bool)
        if not fits:
            word = isinstance(value, str) and any(
                isinstance(choice, str) for choice in self.choices
            )
            error = ValueError if word else self.error  # a wrong word is of the right type
            raise error(f"{argument} must be {self.words}; received {value!r}.")


def one_of(*choices: object) -> Rule:
    """A rule: the argument must be one of these values.

    >>> one_of("map", "gibbs").check("nuts", "inference")
    Traceback (most recent call last):
    ValueError: inference must be 'map' or 'gibbs'; received 'nuts'.
    """
    return Rule(" or ".join(map(repr, choices)), choices)


def integer(*instead: object) -> Rule:
    """A whole number of at least 1, or what else is allowed instead."""
    return Rule(_or("an integer of at least 1", instead), instead, Integral, low=1.0)


def number(*instead: object) -> Rule:
    """A finite number of at least 0, or what else is allowed instead."""
    return Rule(_or("a finite number of at least 0", instead), instead, Real, low=0.0)


def positive(*instead: object) -> Rule:
    """A finite number above 0, or what else is allowed instead."""
    words = _or("a finite positive number", instead)
    return Rule(words, instead, Real, low=0.0, closed="neither")


def instance(kind: type | UnionType, words: str) -> Rule:
    """An object of a type, or None."""
    return Rule(f"{words} or None", (None,), kind, error=TypeError)


def _or(words: str, instead: tuple[object, ...]) -> str:
    """The words for a number, and for what is allowed instead."""
    return ", or ".join([words, *map(repr, instead)])


SHARED: Final[dict[str, Rule]] = {
    "covariance_type": one_of(*COVARIANCE_TYPES),
    "column_transforms": one_of("power", None),
    "point_masses": one_of("auto", None),
    "missingness": one_of("ignorable", "informative"),
    "handle_unknown": one_of("missing", "error"),
    "inference": one_of("map", "laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "calibrate": one_of(True, False),
    "trim": one_of(True, False),
    "n_init": integer(),
    "max_iter": integer(),
    "tol": number(),
    "unlabelled_weight": number(),
    "prior": instance(MixturePrior, "a MixturePrior"),
}
"""Rules of the arguments that several estimators have; a class adds its own, or another."""


def components_per_class(
    n_components: object, classes: np.ndarray, owner: str, argument: str = "n_components"
) -> tuple[int, ...]:
    """Index of the class of every component, class by class; ValueError if a number is invalid.

    ``n_components`` is a number for every class, or a mapping with the number for each class.

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
    """Class probabilities of use in the order of ``classes``; None keeps those of the fit.

    ValueError unless there is a positive number for each class, and their sum is 1.

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


MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""Bounds of the mean row weight. Beyond them weights say nothing of the number of rows, and sums
overflow."""


def row_weights(sample_weight: object, X: object) -> Float[np.ndarray, " obs"]:
    """Row weights as scikit-learn checks them; scaled to a mean of 1 if the mean is out of bounds.

    Weights of 0 do not count in the mean.

    >>> row_weights([1e160, 3e160], [[0.0], [1.0]]), row_weights([1, 3], [[0.0], [1.0]])
    (array([0.5, 1.5]), array([1., 3.]))
    """
    weights: Float[np.ndarray, " obs"] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
    )
    largest = weights.max(initial=0.0)
    if largest == 0:
        return weights
    relative = weights / largest  # at most 1: nothing overflows
    mean = relative[relative > 0].mean()
    return weights if MIN_WEIGHT <= mean * largest <= MAX_WEIGHT else relative / mean


def row_groups(groups: object, X: object, owner: str) -> Shaped[np.ndarray, " obs"] | None:
    """The group of every row, None where rows have none.

    >>> row_groups(["a", "a"], [[0.0], [1.0], [2.0]], "SDGMClassifier.fit")
    Traceback (most recent call last):
    ValueError: SDGMClassifier.fit(groups=...) must name a group for each of the 3 rows; received 2.
    """
    if groups is None:
        return None
    group_names = np.asarray(groups, dtype=object)
    shape = group_names.shape
    if len(shape) != 1 or shape[0] != _num_samples(X):
        raise ValueError(
            f"{owner}(groups=...) must name a group for each of the {_num_samples(X)} rows; "
            f"received {shape[0] if len(shape) == 1 else f'an array of shape {shape}'}."
        )
    return group_names

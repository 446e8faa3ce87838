"""Structure of a mixture before a fit: columns and their order, components, covariances."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Int

from bayesrbf.records import names
from bayesrbf.records.stored import MOST_PARTS, Requirements, permutation, stored, within


@stored
class Order:
    """Another order of a table: the old position of each real and categorical column and class."""

    features: Int[np.ndarray, " feature"]
    categories: Int[np.ndarray, " categorical"]
    classes: Int[np.ndarray, " label"]

    @cached_property
    def inverse(self) -> Order:
        """The order that leads back."""
        return Order(np.argsort(self.features), np.argsort(self.categories), self.new_codes)

    @cached_property
    def new_codes(self) -> Int[np.ndarray, " label"]:
        """Code that each class goes to."""
        return np.argsort(self.classes)

    @cached_property
    def of_one_class(self) -> Order:
        """A copy for rows that all belong to one class."""
        return replace(self, classes=np.zeros(1, dtype=np.intp))

    def then(self, following: Order) -> Order:
        """The composition of two orders: this one first, then ``following``."""
        return Order(
            self.features[following.features],
            self.categories[following.categories],
            self.classes[following.classes],
        )

    def coordinates(self, levels: tuple[int, ...]) -> Int[np.ndarray, " coordinate"]:
        """Old position of each coordinate of a point: reals, then indicators of levels.

        ``levels`` are the numbers of levels in the old order; levels of a column stay in theirs.
        """
        edges = self.features.size + np.cumsum([0, *levels])
        parts = [np.arange(edges[j], edges[j + 1]) for j in self.categories]
        return np.concatenate([self.features, *parts])

    def labels(self, codes: Int[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
        """Class codes in this order; -1, where a label is hidden, stays."""
        new = self.new_codes
        same = np.array_equal(new, np.arange(new.size))
        return codes if same else np.append(new, -1)[codes]

    def __laws__(self) -> Requirements:
        parts = (self.features, self.categories, self.classes)
        yield all(map(permutation, parts)), "permutations"


CovarianceType = Literal["full", "tied", "diag", "spherical"]
CovarianceShape = Literal["full", "diag", "spherical"]
Transform = Literal["identity", "log", "simplex"]

COVARIANCE_TYPES: tuple[str, ...] = get_args(CovarianceType)


@stored
class Variable:
    """One free variable of a declared graph, and where it lives.

    The transform maps constrained to unconstrained coordinates. ``"simplex"`` acts on the last axis
    and drops one coordinate: ``t = log p - mean(log p)`` without its last entry.
    """

    name: str  # Name in the graph, in the numerics and in the DataTree.
    dims: tuple[str, ...]  # One name per axis of ``shape``.
    shape: tuple[int, ...]  # Shape of the constrained value.
    transform: Transform

    @property
    def unconstrained_shape(self) -> tuple[int, ...]:
        """Shape in unconstrained coordinates."""
        if self.transform == "simplex":
            return (*self.shape[:-1], self.shape[-1] - 1)
        return self.shape

    @property
    def size(self) -> int:
        """Number of unconstrained coordinates."""
        return math.prod(self.unconstrained_shape)


@stored
class MixtureSpecification:
    """Structure of a (class-conditional) mixture over real and categorical columns.

    A plain density is the case of one class. Components of all classes lie in
    one flat order, class by class, so that classes may differ in their number.
    """

    n_features: int  # Number D of real columns; 0 for a purely categorical table.
    levels: tuple[int, ...]  # Number of levels of every categorical column.
    component_class: tuple[int, ...]  # Class of every component, non-decreasing from 0.
    covariance_type: CovarianceType = "full"
    """Shape of the covariances; the components of a class share one full one if ``"tied"``."""
    tied: bool = False
    """Whether all components of all classes share one covariance, of the given shape."""

    def __post_init__(self) -> None:
        classes = np.asarray(self.component_class)
        steps = np.diff(classes, prepend=0)
        if classes.size == 0 or np.any((steps != 0) & (steps != 1)):
            raise ValueError(
                "component_class must run through the classes in order from 0, such as "
                f"(0, 0, 1); received {self.component_class}."
            )
        if self.covariance_type not in COVARIANCE_TYPES:
            raise ValueError(
                f"covariance_type must be one of {COVARIANCE_TYPES}; "
                f"received {self.covariance_type!r}."
            )

    @cached_property
    def n_components(self) -> int:
        """Number K of components of all classes together."""
        return len(self.component_class)

    @cached_property
    def n_classes(self) -> int:
        """Number C of classes; 1 for a plain density."""
        return self.component_class[-1] + 1

    def components_in(self, order: Order) -> Int[np.ndarray, " component"]:
        """Old component that each one comes from, where classes are in another order.

        Components of a class stay in their order.
        """
        places = np.arange(self.n_components)
        return np.concatenate([places[self.class_slices[label]] for label in order.classes])

    def reordered(self, order: Order) -> MixtureSpecification:
        """Put columns and classes in another order."""
        classes = order.new_codes[np.asarray(self.component_class)[self.components_in(order)]]
        levels = tuple(self.levels[place] for place in order.categories)
        return replace(self, levels=levels, component_class=tuple(classes.tolist()))

    @cached_property
    def shape(self) -> CovarianceShape:
        """Shape of one covariance matrix."""
        return "full" if self.covariance_type == "tied" else self.covariance_type

    @cached_property
    def independent(self) -> bool:
        """Whether the real cells of a row are independent given its component."""
        return self.shape in ("diag", "spherical")

    @property
    def prior_rows(self) -> float:
        """Default strength nu0 of the covariances' prior, in rows: D, or 0.3 D where several share.

        It is 2 for diagonal and spherical covariances.
        """
        if self.shape != "full":
            return 2.0
        shared = self.tied or self.covariance_type == "tied"
        return 0.3 * self.n_features if shared else float(self.n_features)

    @property
    def group_dims(self) -> tuple[str, ...]:
        """Dims of the covariances' groups: of components, of classes, or none for a single one.

        >>> MixtureSpecification(2, (), (0, 1), "tied").group_dims
        ('class_label',)
        """
        if self.tied:
            return ()
        if self.covariance_type == "tied":
            return (names.CLASS_LABEL,) if self.n_classes > 1 else ()
        return (names.COMPONENT,)

    @property
    def group_shape(self) -> tuple[int, ...]:
        """Lengths along :attr:`group_dims`."""
        return self.group_sizes.shape if self.group_dims else ()

    @cached_property
    def class_slices(self) -> tuple[slice, ...]:
        """Components of each class, as slices of the flat component axis."""
        edges = np.searchsorted(self.component_class, range(self.n_classes + 1))
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(edges))

    @cached_property
    def covariance_group(self) -> Int[np.ndarray, " component"]:
        """Index of the covariance that each component uses."""
        if self.tied:
            return np.zeros(self.n_components, dtype=np.intp)
        if self.covariance_type == "tied":
            return np.asarray(self.component_class, dtype=np.intp)
        return np.arange(self.n_components, dtype=np.intp)

    @cached_property
    def group_sizes(self) -> Int[np.ndarray, " group"]:
        """Number G of means under each covariance."""
        return np.bincount(self.covariance_group)

    def __laws__(self) -> Requirements:
        few = within((self.n_features, len(self.component_class)), 0, MOST_PARTS)
        yield few, "numbers of columns and components that are none too many"
        yield within(self.levels, 1, MOST_PARTS), "levels in every categorical column"

"""Rows, parameters and structure of a mixture, as frozen records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf.base import names
from bayesrbf.base.records import (
    ANY_NUMBER,
    LARGEST_SCALE,
    MAX_PARTS,
    TOLERANCE,
    Requirements,
    permutation,
    simplex,
    stored,
    within,
)

# Structure of a mixture before a fit: columns and their order, components, covariances.


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
        """A copy with a single class."""
        return replace(self, classes=np.zeros(1, dtype=np.intp))

    def then(self, following: Order) -> Order:
        """Composition of two orders: this order first, then ``following``."""
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
        indicators = [np.arange(edges[j], edges[j + 1]) for j in self.categories]
        return np.concatenate([self.features, *indicators])

    def labels(self, codes: Int[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
        """Class codes in this order; -1, where a label is hidden, stays."""
        new = self.new_codes
        same = np.array_equal(new, np.arange(new.size))
        return codes if same else np.append(new, -1)[codes]

    def __laws__(self) -> Requirements:
        permutations = (self.features, self.categories, self.classes)
        yield all(map(permutation, permutations)), "permutations"


CovarianceType = Literal["full", "tied", "diag", "spherical"]
Transform = Literal["identity", "log", "simplex"]

COVARIANCE_TYPES: tuple[str, ...] = get_args(CovarianceType)
INDEPENDENT: Final = ("diag", "spherical")
"""Shapes of covariances that are diagonal matrices."""
MAX_FULL: Final = 100
"""Real columns up to which covariances are full by default. A row with missing cells costs the cube
of their number: a stack of 150 rows of 256 columns takes ten times as long with full covariances.
On 41 rows of 100 genes diagonal covariances were as good."""


def default_shape(n_features: int) -> CovarianceType:
    """Shape of covariances where it is not an argument.

    >>> default_shape(100), default_shape(2000)
    ('full', 'diag')
    """
    return "full" if n_features <= MAX_FULL else "diag"


@stored
class Variable:
    """A free variable of a declared graph: name, dims, shape and transform.

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
    shared_covariance: bool = False
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
        """Old index of each component, where classes are in another order.

        Components of a class stay in their order.
        """
        indices = np.arange(self.n_components)
        return np.concatenate([indices[self.class_slices[label]] for label in order.classes])

    def reordered(self, order: Order) -> MixtureSpecification:
        """Put columns and classes in another order."""
        classes = order.new_codes[np.asarray(self.component_class)[self.components_in(order)]]
        levels = tuple(self.levels[index] for index in order.categories)
        return replace(self, levels=levels, component_class=tuple(classes.tolist()))

    @cached_property
    def shape(self) -> CovarianceType:
        """Shape of a covariance matrix: "full" for ``"tied"``, else the type itself."""
        return "full" if self.covariance_type == "tied" else self.covariance_type

    @cached_property
    def independent(self) -> bool:
        """Whether the real cells of a row are independent given the component."""
        return self.covariance_type in INDEPENDENT

    @property
    def prior_sample_size(self) -> float:
        """Default strength nu0 of the covariances' prior, in rows: D, or 0.3 D where several share.

        It is 2 for diagonal and spherical covariances.
        """
        if self.independent:
            return 2.0
        shared = self.shared_covariance or self.covariance_type == "tied"
        return 0.3 * self.n_features if shared else float(self.n_features)

    @property
    def group_dims(self) -> tuple[str, ...]:
        """Dims of the covariance groups: components, classes, or none for a single group.

        >>> MixtureSpecification(2, (), (0, 1), "tied").group_dims
        ('class_label',)
        """
        if self.shared_covariance:
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
        if self.shared_covariance:
            return np.zeros(self.n_components, dtype=np.intp)
        if self.covariance_type == "tied":
            return np.asarray(self.component_class, dtype=np.intp)
        return np.arange(self.n_components, dtype=np.intp)

    @cached_property
    def group_sizes(self) -> Int[np.ndarray, " group"]:
        """Number G of means under each covariance."""
        return np.bincount(self.covariance_group)

    def __laws__(self) -> Requirements:
        few = within((self.n_features, len(self.component_class)), 0, MAX_PARTS)
        yield few, "numbers of columns and components that are none too many"
        yield within(self.levels, 1, MAX_PARTS), "levels in every categorical column"


# Independent subjects: rows of one subject stay on one side of every split.


@stored
class Subjects:
    """Index of the independent subject behind each row: copies of a row, or rows of one group."""

    numbers: Int[np.ndarray, " obs"]
    """Subject of each row."""
    counts: Float[np.ndarray, " obs"]
    """Number of subjects behind each row: 1/n for each of a subject's n rows, k after merging k
    equal subjects."""

    @classmethod
    def of(cls, numbers: Int[np.ndarray, " obs"]) -> Subjects:
        """Subjects of unmerged rows, with counts ``1 / n`` for each of a subject's n rows.

        >>> Subjects.of(np.array([0, 0, 1])).counts
        array([0.5, 0.5, 1. ])
        """
        codes, sizes = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
        return cls(codes, 1.0 / sizes[codes])

    def take(self, rows: np.ndarray | slice) -> Subjects:
        """Subjects of some rows."""
        return Subjects(self.numbers[rows], self.counts[rows])

    @property
    def split(self) -> Bool[np.ndarray, " obs"]:
        """Whether a row is one of several rows of its subject."""
        return self.counts < 1 - 1e-6  # shares that were added up are one but for rounding

    def together(self, rows: np.ndarray) -> Bool[np.ndarray, " obs"]:
        """Whether a row is of the same subject as one of the given rows."""
        return np.isin(self.numbers, self.numbers[rows])

    def __laws__(self) -> Requirements:
        yield self.numbers.shape == self.counts.shape, "a number and a count of every row"
        yield (
            within(self.numbers, 0) and within(self.counts, 0),
            "numbers and counts from 0 on",
        )


def joined_subjects(tables: Sequence[tuple[Subjects | None, int]]) -> Subjects | None:
    """Subjects of the rows of several tables; ``tables`` has each with its number of rows.

    Equal numbers in two tables stand for one subject. Each row of a table without subjects is a new
    subject. None if no table has subjects.
    """
    known = [subjects for subjects, _ in tables if subjects is not None]
    if not known:
        return None
    free = 1 + max(int(subjects.numbers.max(initial=-1)) for subjects in known)
    every = []
    for subjects, n in tables:
        every.append(Subjects(free + np.arange(n), np.ones(n)) if subjects is None else subjects)
        free += n
    return Subjects(
        np.concatenate([subjects.numbers for subjects in every]),
        np.concatenate([subjects.counts for subjects in every]),
    )


def copies_sentence(repeated: int) -> str:
    """Message on duplicates of earlier rows, which no split separates.

    >>> copies_sentence(1)
    '1 row equals an earlier row in every cell, beyond chance: no split has copies on both sides.'
    """
    who = "1 row equals" if repeated == 1 else f"{repeated} rows equal"
    beyond = "beyond chance: no split has copies on both sides"
    return f"{who} an earlier row in every cell, {beyond}."


# Frozen records of a mixture: rows, parameters, units.


AT_ONCE = 2**19
"""Maximum numbers of an array over a block of rows: 4 MiB."""
IN_CACHE = 2**16
"""Maximum numbers of an array that is read several times: 512 KiB stay in a core's own cache."""


def in_blocks(n_rows: int, numbers_a_row: int, *, cached: bool = False) -> Iterator[slice]:
    """Slices of neighbouring rows whose arrays of ``numbers_a_row`` stay within the memory bound.

    >>> list(in_blocks(5, AT_ONCE // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    # A table may have no column, and a row more numbers than the bound.
    size = max(1, (IN_CACHE if cached else AT_ONCE) // max(1, numbers_a_row))
    return (slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size))


@stored
class Observations:
    """Rows of a table as the numerics see them."""

    real: Float[np.ndarray, "obs feature"] = field(metadata=ANY_NUMBER)
    """Real cells, NaN where missing."""
    codes: Int[np.ndarray, "obs categorical"]
    """Level codes of the categorical cells, -1 where missing."""
    labels: Int[np.ndarray, " obs"]
    """Class codes, -1 where the label is hidden (0 everywhere for a density)."""
    weights: Float[np.ndarray, " obs"]
    """Factor of each row's log density, at least 0."""
    log_jacobian: Float[np.ndarray, "*obs"] = field(default_factory=lambda: np.zeros(()))
    """Log derivatives of the transforms that the observed real cells came through, summed."""
    subjects: Subjects | None = None
    """Rows that stay on one side of every split; None: every row is alone."""
    whole: Shaped[np.ndarray, "obs *_"] | None = field(default=None, metadata=ANY_NUMBER)
    """The original rows, for models of pairwise dissimilarities, which have no cells."""
    missing: Int[np.ndarray, "obs column"] | None = None
    """Missing indicators, by the table's columns: 1 missing, 0 measured, -1 masked by the package.
    None: no cell is masked."""

    @property
    def n_obs(self) -> int:
        """Number of rows."""
        return self.real.shape[0]

    @property
    def n_labelled(self) -> float:
        """Number of subjects with a label, whatever their weight."""
        return float(self.subject_counts[self.labels >= 0].sum())

    @property
    def subject_counts(self) -> Float[np.ndarray, " obs"]:
        """Number of subjects behind each row."""
        return np.ones(self.n_obs) if self.subjects is None else self.subjects.counts

    def take(self, rows: np.ndarray | slice) -> Observations:
        """Select rows, by index or boolean mask, in the given order; a slice copies nothing."""
        return Observations(
            self.real[rows],
            self.codes[rows],
            self.labels[rows],
            self.weights[rows],
            self.log_jacobian[rows] if self.log_jacobian.ndim else self.log_jacobian,
            None if self.subjects is None else self.subjects.take(rows),
            None if self.whole is None else self.whole[rows],
            None if self.missing is None else self.missing[rows],
        )

    def in_blocks(self) -> Iterator[tuple[slice, Observations]]:
        """Blocks of neighbouring rows with their slices, small enough for arrays over each."""
        for block in in_blocks(max(1, self.n_obs), self.real.shape[1] + self.codes.shape[1]):
            yield block, self.take(block)

    def reordered(self, order: Order) -> Observations:
        """Put columns and classes in another order; rows stay in theirs."""
        # take(), unlike an index, makes an array whose rows are in one piece
        real, codes = self.real.take(order.features, 1), self.codes.take(order.categories, 1)
        return replace(self, real=real, codes=codes, labels=order.labels(self.labels))

    def unlabelled(self) -> Observations:
        """Hide the labels: all are -1."""
        return replace(self, labels=np.full_like(self.labels, -1))

    def __laws__(self) -> Requirements:
        yield not np.isinf(self.real).any(), "cells that are finite or NaN"
        codes = (self.codes, self.labels, *([] if self.missing is None else [self.missing]))
        yield all(within(values, -1) for values in codes), "codes of -1 and above"
        yield within(self.weights, 0), "weights of 0 and above"
        yield self.log_jacobian.shape in ((), self.labels.shape), "a log Jacobian for every row"
        yield self.whole is None or len(self.whole) == self.labels.size, "every row as it came"
        subjects = self.subjects
        yield (
            subjects is None or subjects.numbers.shape == self.labels.shape,
            "a subject of every row",
        )


def joined_rows(tables: Sequence[Observations]) -> Observations:
    """Rows of several tables of the same columns, one table after another.

    Missing indicators stay where all tables have them.
    """
    first = tables[0]
    whole = [table.whole for table in tables if table.whole is not None]
    missing = [table.missing for table in tables if table.missing is not None]
    jacobians = [np.broadcast_to(table.log_jacobian, table.n_obs) for table in tables]
    return Observations(
        np.concatenate([table.real for table in tables]),
        np.concatenate([table.codes for table in tables]),
        np.concatenate([table.labels for table in tables]),
        np.concatenate([table.weights for table in tables]),
        np.concatenate(jacobians) if first.log_jacobian.ndim else first.log_jacobian,
        joined_subjects([(table.subjects, table.n_obs) for table in tables]),
        np.concatenate(whole) if whole else None,
        np.concatenate(missing) if len(missing) == len(tables) else None,
    )


@dataclass(frozen=True)
class ColumnPointMasses:
    """Point masses of a real column: a category names the cell's point mass; its real is missing.

    Its level 0 is a cell at no point mass.
    """

    feature: int
    """The real column."""
    category: int
    """The categorical column whose levels after the first are the point masses."""
    values: Float[np.ndarray, " point_mass"]
    """Values in the user's units, in rising order."""
    standard: Float[np.ndarray, " point_mass"]
    """Values in the units of the model."""


@stored
class Standardisation:
    """Means and standard deviations of the real columns: ``x = location + scale * z``."""

    location: Float[np.ndarray, " feature"]
    scale: Float[np.ndarray, " feature"]

    def forward(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Map from the user's units to standard units: ``(real - location) / scale``."""
        standard = real - self.location
        standard /= self.scale  # in place: a table is not copied twice
        return standard

    def backward(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Map from standard units to the user's units: ``location + scale * real``."""
        return self.location + self.scale * real

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density of rows in the user's units less that in standard units, in nats.

        It is minus the sum of the log scales of the observed cells, and what the transforms in
        front of the columns add.
        """
        return rows.log_jacobian - ~np.isnan(rows.real) @ np.log(self.scale)

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"


@stored
class MixtureParameters:
    """Parameters of a mixture at one point.

    The holder knows the units of the reals: the numerics work in standard units, and everything
    that a user sees is in the user's units.
    """

    class_probabilities: Float[np.ndarray, " label"]
    """p(c), summing to one."""
    weights: Float[np.ndarray, " component"]
    """p(component | class), summing to one within each class."""
    means: Float[np.ndarray, "component feature"]
    precisions_cholesky: Float[np.ndarray, "group *feature"]
    """Lower L, precision = L L', if full; roots of the precisions if diagonal or spherical."""
    category_probabilities: tuple[Float[np.ndarray, "component _"], ...]
    """p(level | component), one array per categorical column."""

    def taken(
        self,
        components: Int[np.ndarray, " chosen"] | slice,
        groups: Int[np.ndarray, " group"] | slice,
    ) -> MixtureParameters:
        """Parameters of selected components and covariance groups, in the given order.

        The weights are not rescaled.
        """
        return replace(
            self,
            weights=self.weights[components],
            means=self.means[components],
            precisions_cholesky=self.precisions_cholesky[groups],
            category_probabilities=tuple(p[components] for p in self.category_probabilities),
        )

    def in_units(self, units: Standardisation) -> MixtureParameters:
        """Mixture of ``x = location + scale * z``, from the mixture of z."""
        # The second axis of factors of every shape is the column.
        factors = (self.precisions_cholesky.swapaxes(1, -1) / units.scale).swapaxes(1, -1)
        return replace(self, means=units.backward(self.means), precisions_cholesky=factors)

    def standardised(self, units: Standardisation) -> MixtureParameters:
        """The inverse of :meth:`in_units`."""
        factors = (self.precisions_cholesky.swapaxes(1, -1) * units.scale).swapaxes(1, -1)
        return replace(self, means=units.forward(self.means), precisions_cholesky=factors)

    def __laws__(self) -> Requirements:
        yield simplex(self.class_probabilities), "class probabilities that sum to one"
        yield within(self.weights, 0, 1 + TOLERANCE), "weights that are probabilities"
        yield all(map(simplex, self.category_probabilities)), "level probabilities that sum to one"
        yield within(abs(self.means), 0, LARGEST_SCALE), "means in standard units"
        yield within(abs(self.precisions_cholesky), 0, LARGEST_SCALE), "factors in standard units"


def weighted_components(
    class_probabilities: Float[np.ndarray, " label"], weights: Float[np.ndarray, " component"]
) -> MixtureParameters:
    """Components with weights alone, without the distributions of columns."""
    no_columns = np.empty((weights.size, 0))
    return MixtureParameters(class_probabilities, weights, no_columns, no_columns, ())


def joined_points(points: Sequence[MixtureParameters]) -> MixtureParameters:
    """Mixture of the components of several mixtures without classes, one mixture after another.

    The weights are not rescaled.
    """
    levels = zip(*(point.category_probabilities for point in points), strict=True)
    return MixtureParameters(
        np.ones(1),
        np.concatenate([point.weights for point in points]),
        np.concatenate([point.means for point in points]),
        np.concatenate([point.precisions_cholesky for point in points]),
        tuple(map(np.concatenate, levels)),
    )

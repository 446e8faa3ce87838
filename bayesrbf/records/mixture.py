"""Frozen records of a mixture: rows, parameters, units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.specification import Order
from bayesrbf.records.stored import (
    ANY_NUMBER,
    LARGEST_SCALE,
    TOLERANCE,
    Requirements,
    simplex,
    stored,
    within,
)
from bayesrbf.records.units import Units, joined_units

AT_ONCE = 2**19
"""Numbers that an array over a block of rows may take: 4 MiB."""
IN_CACHE = 2**16
"""Numbers of an array that is gone through several times: 512 KiB stay in a core's own cache."""


def in_blocks(n_rows: int, numbers_a_row: int, *, cached: bool = False) -> Iterator[slice]:
    """Neighbouring rows, so many that an array of that many numbers a row stays within the bound.

    >>> list(in_blocks(5, AT_ONCE // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
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
    """Log derivatives of the maps that the observed real cells came through, summed."""
    units: Units | None = None
    """Rows that stay on one side of every split; None: every row is alone."""
    hidden: Float[np.ndarray, " obs"] | None = None
    """Share of hidden cells of every row, where the real cells are its dissimilarities."""

    @property
    def n_obs(self) -> int:
        """Number of rows."""
        return self.real.shape[0]

    @property
    def n_labelled(self) -> float:
        """Number of units with a label, whatever they weigh."""
        return float(self.unit_counts[self.labels >= 0].sum())

    @property
    def unit_counts(self) -> Float[np.ndarray, " obs"]:
        """How many units every row stands for."""
        return np.ones(self.n_obs) if self.units is None else self.units.counts

    def take(self, rows: np.ndarray | slice) -> Observations:
        """Select rows, by index or boolean mask, in the given order; a slice copies nothing."""
        return Observations(
            self.real[rows],
            self.codes[rows],
            self.labels[rows],
            self.weights[rows],
            self.log_jacobian[rows] if self.log_jacobian.ndim else self.log_jacobian,
            None if self.units is None else self.units.take(rows),
            None if self.hidden is None else self.hidden[rows],
        )

    def in_blocks(self) -> Iterator[tuple[slice, Observations]]:
        """Blocks of neighbouring rows, and which rows they are: what is made of each is small."""
        for part in in_blocks(max(1, self.n_obs), self.real.shape[1] + self.codes.shape[1]):
            yield part, self.take(part)

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
        yield within(self.codes, -1) and within(self.labels, -1), "codes of -1 and above"
        yield within(self.weights, 0), "weights of 0 and above"
        yield self.log_jacobian.shape in ((), self.labels.shape), "a log Jacobian for every row"
        hidden = self.hidden
        yield hidden is None or hidden.shape == self.labels.shape, "a hidden share of every row"
        units = self.units
        yield units is None or units.numbers.shape == self.labels.shape, "a unit of every row"


def joined_rows(parts: Sequence[Observations]) -> Observations:
    """Rows of several tables of the same columns, one table after another."""
    first = parts[0]
    hidden = [part.hidden for part in parts if part.hidden is not None]
    jacobians = [np.broadcast_to(part.log_jacobian, part.n_obs) for part in parts]
    return Observations(
        np.concatenate([part.real for part in parts]),
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate(jacobians) if first.log_jacobian.ndim else first.log_jacobian,
        joined_units([(part.units, part.n_obs) for part in parts]),
        np.concatenate(hidden) if hidden else None,
    )


@dataclass(frozen=True)
class ColumnAtoms:
    """The point masses of a real column; cells there are missing, and a category says at which.

    Its level 0 is a cell at no atom.
    """

    feature: int
    """The real column."""
    category: int
    """The categorical column whose levels after the first are the atoms."""
    values: Float[np.ndarray, " atom"]
    """In the user's units, in rising order."""
    standard: Float[np.ndarray, " atom"]
    """In the units of the model."""


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

        It is minus the sum of the log scales of the observed cells, and what the maps in front
        of the columns add.
        """
        return rows.log_jacobian - ~np.isnan(rows.real) @ np.log(self.scale)

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"


@stored
class MixtureParameters:
    """A point of the mixture: one value of everything that is free.

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
        """Some components and covariance groups, in the given order."""
        return replace(
            self,
            weights=self.weights[components],
            means=self.means[components],
            precisions_cholesky=self.precisions_cholesky[groups],
            category_probabilities=tuple(p[components] for p in self.category_probabilities),
        )

    def in_units(self, units: Standardisation) -> MixtureParameters:
        """The mixture of x = location + scale * z, where this one is of z."""
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
    """Components of which the weights alone are known: the laws of their columns are to follow."""
    no_columns = np.empty((weights.size, 0))
    return MixtureParameters(class_probabilities, weights, no_columns, no_columns, ())


def joined_points(points: Sequence[MixtureParameters]) -> MixtureParameters:
    """Components of mixtures without classes, one mixture after another, with their weights."""
    levels = zip(*(point.category_probabilities for point in points), strict=True)
    return MixtureParameters(
        np.ones(1),
        np.concatenate([point.weights for point in points]),
        np.concatenate([point.means for point in points]),
        np.concatenate([point.precisions_cholesky for point in points]),
        tuple(map(np.concatenate, levels)),
    )

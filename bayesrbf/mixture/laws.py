"""Laws of all columns given the component: categorical ones, beside the real ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base import names
from bayesrbf.base.arrays import draw_categories, one_hot, split_levels
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Order, Variable
from bayesrbf.mixture.covariances import DiagonalCovariances, FullCovariances, SphericalCovariances
from bayesrbf.mixture.real_columns import RealColumns
from bayesrbf.mixture.statistics import (
    Assignment,
    Hyper,
    Memberships,
    Point,
    Rng,
    Rows,
    Statistics,
    Values,
)

# Categorical columns: a simplex of level probabilities for every component and column.
#
# With counts n of the levels and the prior Dirichlet(alpha), the mode is in proportion to
# n + alpha - 1 and the conjugate posterior is Dirichlet(n + alpha).


Levels = tuple[Float[np.ndarray, "component _"], ...]
"""One array a column."""


CATEGORY_SCALE = 0.7
"""Length of one category's indicator beside reals of standard deviation 1."""


class LevelColumns:
    """The categorical columns of a mixture; their prior is Dirichlet."""

    def __init__(self, specification: MixtureSpecification) -> None:
        self.n_components, self.levels = specification.n_components, specification.levels
        self.names = [names.category_probability(index) for index in range(len(self.levels))]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Level probabilities of every column."""
        return tuple(
            Variable(
                name,
                (names.COMPONENT, names.category_level(index)),
                (self.n_components, n_levels),
                "simplex",
            )
            for index, (name, n_levels) in enumerate(zip(self.names, self.levels, strict=True))
        )

    def by_name(self, by_column: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        """Level probabilities, or what stands in their place, by the name of the variable."""
        return dict(zip(self.names, by_column, strict=True))

    def values(self, point: Point) -> dict[str, np.ndarray]:
        """Values of the variables at a point."""
        return self.by_name(point.category_probabilities)

    def placed(self, point: Point, values: Values) -> Point:
        """The point at given values of the variables."""
        return replace(point, category_probabilities=tuple(values[name] for name in self.names))

    def mode(self, counts: Levels, hyper: Hyper) -> Levels:
        """The M-step, in proportion to n + alpha - 1."""
        if not counts:
            return ()
        pseudo = np.concatenate(counts, axis=1)
        pseudo += np.concatenate(hyper.category_concentrations) - 1
        starts, column = self._layout
        pseudo /= np.add.reduceat(pseudo, starts, axis=1).take(column, axis=1)
        return split_levels(pseudo, self.levels)

    @cached_property
    def _layout(self) -> tuple[Int[np.ndarray, " column"], Int[np.ndarray, " level"]]:
        """The first level of every column, and the column of every level, side by side."""
        sizes = np.asarray(self.levels)
        return sizes.cumsum() - sizes, np.repeat(np.arange(sizes.size), sizes)

    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """An M-step from memberships of rows."""
        counts = split_levels(memberships.T @ one_hot(rows.codes, self.levels), self.levels)
        return replace(point, category_probabilities=self.mode(counts, hyper))

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row level"]:
        """Scaled indicators of the levels, 0 where the cell is missing."""
        return CATEGORY_SCALE * one_hot(rows.codes, self.levels)

    def reordered(self, point: Point, order: Order) -> Point:
        """The point of the columns in another order."""
        levels = tuple(point.category_probabilities[j] for j in order.categories)
        return replace(point, category_probabilities=levels)

    def posterior(self, counts: Levels, hyper: Hyper) -> Levels:
        """Dirichlet parameters of the conjugate posterior."""
        priors = hyper.category_concentrations
        return tuple(n + alpha for n, alpha in zip(counts, priors, strict=True))

    def counts(self, codes: Int[np.ndarray, "row categorical"], components: Assignment) -> Levels:
        """How often each component has each level, in rows whose components are known."""
        return tuple(
            _counts(column, components, self.n_components, n_levels)
            for column, n_levels in zip(codes.T, self.levels, strict=True)
        )

    def conditional(
        self,
        codes: Int[np.ndarray, "row categorical"],
        responsibilities: Float[np.ndarray, "row component"],
        parameters: Point,
    ) -> tuple[Float[np.ndarray, "row _"], ...]:
        """Probabilities of every cell's levels; an observed cell has one at its level."""
        results = []
        for column, theta in enumerate(parameters.category_probabilities):
            known = np.flatnonzero(codes[:, column] >= 0)
            probabilities = responsibilities @ theta
            probabilities[known] = 0.0
            probabilities[known, codes[known, column]] = 1.0
            results.append(probabilities)
        return tuple(results)

    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with their missing cells drawn given the components."""
        codes = rows.codes.copy()
        for column, theta in enumerate(point.category_probabilities):
            hole = codes[:, column] < 0
            codes[hole, column] = draw_categories(theta[components[hole]], rng)
        return replace(rows, codes=codes)


def _counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """How often each component has each level of a column."""
    known = codes >= 0
    places = components[known] * n_levels + codes[known]
    return np.bincount(places, minlength=k * n_levels).reshape(k, n_levels).astype(float)


# The laws of all columns of a mixture.


SHAPES: Final[dict[str, type[RealColumns]]] = {
    "full": FullCovariances,
    "diag": DiagonalCovariances,
    "spherical": SphericalCovariances,
}


@dataclass(frozen=True)
class Laws:
    """The laws of the real and the categorical columns."""

    reals: RealColumns
    levels: LevelColumns

    @cached_property
    def classes(self) -> Int[np.ndarray, " component"]:
        """Class of every component."""
        return np.asarray(self.reals.specification.component_class)

    def mode(
        self,
        statistics: Statistics,
        parameters: MixtureParameters,
        hyperparameters: MixtureHyperparameters,
    ) -> MixtureParameters:
        """The M-step: the mode of the expected complete-data log posterior.

        The statistics are those of the E-step at ``parameters``; the prior is in the same units.
        """
        by_class = np.bincount(self.classes, statistics.counts)
        classes = by_class + (hyperparameters.class_concentration - 1)
        counts = statistics.counts + (hyperparameters.weight_concentration - 1)
        weights = counts / np.bincount(self.classes, counts).take(self.classes)
        following = MixtureParameters(
            classes / classes.sum(),
            weights,
            parameters.means,
            parameters.precisions_cholesky,
            self.levels.mode(statistics.category_counts, hyperparameters),
        )
        return self.reals.mode(following, statistics, hyperparameters)


@cache
def laws_of(specification: MixtureSpecification) -> Laws:
    """The laws of a mixture's columns, made once."""
    return Laws(SHAPES[specification.shape](specification), LevelColumns(specification))

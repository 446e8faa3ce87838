"""Categorical columns: a simplex of level probabilities for every component and column.

With counts n of the levels and the prior Dirichlet(alpha), the mode is in proportion to
n + alpha - 1 and the conjugate posterior is Dirichlet(n + alpha).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable

Levels = tuple[Float[np.ndarray, "component _"], ...]
"""One array a column."""


class LevelColumns:
    """The categorical columns of a mixture."""

    def __init__(self, specification: MixtureSpecification) -> None:
        self.n_components, self.levels = specification.n_components, specification.levels
        self.names = [names.category_probability(index) for index in range(len(self.levels))]
        self.variables = tuple(
            Variable(
                name,
                (names.COMPONENT, names.category_level(index)),
                (self.n_components, n_levels),
                "simplex",
            )
            for index, (name, n_levels) in enumerate(zip(self.names, self.levels, strict=True))
        )

    def values(self, by_column: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        """Values of the variables, or what stands in their place, by name."""
        return dict(zip(self.names, by_column, strict=True))

    def probabilities(
        self, values: Mapping[str, np.ndarray]
    ) -> tuple[Float[np.ndarray, "*batch component _"], ...]:
        """Level probabilities at given values of the variables."""
        return tuple(values[name] for name in self.names)

    def mode(self, counts: Levels, hyperparameters: MixtureHyperparameters) -> Levels:
        """The mode given counts, in proportion to n + alpha - 1."""
        pseudo = (level - 1 for level in self.posterior(counts, hyperparameters))
        return tuple(level / level.sum(axis=1, keepdims=True) for level in pseudo)

    def posterior(self, counts: Levels, hyperparameters: MixtureHyperparameters) -> Levels:
        """Dirichlet parameters of the conjugate posterior."""
        priors = hyperparameters.category_concentrations
        return tuple(n + alpha for n, alpha in zip(counts, priors, strict=True))

    def counts(
        self, codes: Int[np.ndarray, "row categorical"], components: Int[np.ndarray, " row"]
    ) -> Levels:
        """How often each component has each level, in rows whose components are known."""
        return tuple(
            _counts(column, components, self.n_components, n_levels)
            for column, n_levels in zip(codes.T, self.levels, strict=True)
        )

    def conditional(
        self,
        codes: Int[np.ndarray, "row categorical"],
        responsibilities: Float[np.ndarray, "row component"],
        parameters: MixtureParameters,
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

    def completed(
        self,
        codes: Int[np.ndarray, "row categorical"],
        components: Int[np.ndarray, " row"],
        parameters: MixtureParameters,
        rng: np.random.Generator,
    ) -> Int[np.ndarray, "row categorical"]:
        """Codes with their missing cells drawn given the components."""
        codes = codes.copy()
        for column, theta in enumerate(parameters.category_probabilities):
            hole = codes[:, column] < 0
            codes[hole, column] = draw_categories(theta[components[hole]], rng)
        return codes


def _counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """How often each component has each level of a column."""
    known = codes >= 0
    places = components[known] * n_levels + codes[known]
    return np.bincount(places, minlength=k * n_levels).reshape(k, n_levels).astype(float)

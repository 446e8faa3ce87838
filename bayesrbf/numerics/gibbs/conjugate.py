r"""The declared prior is conjugate: exact draws once rows have components.

Given which component every row belongs to, with n its rows, :math:`\bar x` their mean and S
the scatter about it, the mean integrates out: the scatter becomes
:math:`S + \frac{n\kappa_0}{n + \kappa_0}(\bar x - m_0)(\bar x - m_0)'`, summed over the
components under one covariance, of which module ``conjugate_precisions`` makes a density of the
precision factors, and

.. math::
   \mu \mid P \sim N\Big(\frac{n \bar x + \kappa_0 m_0}{n + \kappa_0},\
   ((n + \kappa_0) P)^{-1}\Big).

Diagonal and spherical covariances have the diagonal alone, and need no cell that is missing;
simplices are Dirichlet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.parts.precision_factors import ConjugatePrecisions
from bayesrbf.numerics.mixture.statistics import sum_by_class
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


@dataclass(frozen=True)
class Assigned:
    """Statistics of rows whose components are known."""

    counts: Float[np.ndarray, " component"]
    # Real cells of every component; all its rows under full covariances.
    cells: Float[np.ndarray, "component feature"]
    # Means of those cells; 0 where there is none.
    centres: Float[np.ndarray, "component feature"]
    # Sums of squares and products about the centres; the diagonal alone for diagonal and spherical
    # covariances.
    scatter: Float[np.ndarray, "component *feature"]
    # Counts of the observed levels, one array per categorical column.
    categories: tuple[Float[np.ndarray, "component _"], ...]


def assigned(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    components: Int[np.ndarray, " row"],
    specification: MixtureSpecification,
) -> Assigned:
    """Sum up rows whose components are known; under full covariances they must be complete."""
    laws = laws_of(specification)
    member = components == np.arange(specification.n_components)[:, None]
    counts = member.sum(axis=1).astype(float)
    moments = laws.reals.assigned(real, components, member)
    return Assigned(counts, *moments, laws.levels.counts(codes, components))


@dataclass(frozen=True)
class Conjugate:
    """A density of the declared prior's family: the prior, or the posterior of assigned rows."""

    specification: MixtureSpecification
    precisions: ConjugatePrecisions
    # Dirichlet parameters: of the class probabilities, of the weights of each class one after the
    # other, and of every categorical column.
    classes: Float[np.ndarray, " label"]
    weights: Float[np.ndarray, " component"]
    levels: tuple[Float[np.ndarray, "component _"], ...]
    centres: Float[np.ndarray, "component feature"]
    # Rows behind the centres, those of the prior among them.
    strength: Float[np.ndarray, "component feature"]

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """An exact, independent draw of all parameters, in the units of the rows."""
        factors = self.precisions.draw(rng)
        return MixtureParameters(
            class_probabilities=_dirichlet(self.classes, rng),
            weights=self._draw_weights(rng),
            means=self._draw_means(factors, rng),
            precisions_cholesky=factors,
            category_probabilities=tuple(_dirichlet(level, rng) for level in self.levels),
        )

    def _draw_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Weights of every component within its class."""
        specification = self.specification
        if specification.n_components == specification.n_classes:
            return np.ones(specification.n_components)
        # Gamma variables divided by their sum within a class are Dirichlet.
        gammas = _gammas(self.weights, rng)
        sums = sum_by_class(gammas, specification)
        return gammas / sums[np.asarray(specification.component_class)]

    def _draw_means(self, factors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Means of every component given the precision factors."""
        law = laws_of(self.specification).reals
        return law.draw_means(self.centres, self.strength, law.by_component(factors), rng)


def posterior(
    rows: Assigned, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> Conjugate:
    """The posterior of the parameters given rows with components; the prior, given none."""
    laws = laws_of(specification)
    precisions, centres, strength = laws.reals.posterior(
        rows.cells, rows.centres, rows.scatter, hyperparameters
    )
    return Conjugate(
        specification=specification,
        precisions=precisions,
        classes=sum_by_class(rows.counts, specification) + hyperparameters.class_concentration,
        weights=rows.counts + hyperparameters.weight_concentration,
        levels=laws.levels.posterior(rows.categories, hyperparameters),
        centres=centres,
        strength=strength,
    )


def _dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw simplices on the last axis."""
    draws = _gammas(concentration, rng)
    return draws / draws.sum(axis=-1, keepdims=True)


def _gammas(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw gamma variables, positive even where a draw underflows."""
    return np.maximum(rng.standard_gamma(shapes), np.finfo(float).tiny)

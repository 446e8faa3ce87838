"""What the missing cells of a kernel may hold: companion mixtures whose answers are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from bayesrbf import table
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import (
    Solver,
    component_class,
    fit_mixture_rows,
    start_near,
)
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, averaged, cell_moments
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification
from bayesrbf.records.stored import Requirements, stored

SHARED_STRENGTH, LEAST_STRENGTH = 0.3, 0.1
"""Rows of prior per real column behind a covariance that all classes share."""
COMPANION_TOL, COMPANION_ITERATIONS = 1e-3, 100
"""When a companion's EM stops: it fills cells, and fills them no better for the last digits."""
MOST_OF_A_CLASS: Final = 4
"""Components that a class of the second companion has at most."""
ROWS_OF_A_GROUP, FEWEST_GROUPS, MOST_GROUPS = 25, 2, 24
"""Rows per component of the third companion, and the bounds of their number."""


@stored
class Companions:
    """Mixtures that say together what missing cells may hold, each as much as the others."""

    mixtures: tuple[FittedMixture, ...]

    @property
    def first(self) -> FittedMixture:
        """The one that stands for all where one density is asked for."""
        return self.mixtures[0]

    def cells(self, rows: Observations) -> CellMoments:
        """Rows as a kernel sees them: cells with their moments, in standard units."""
        return averaged([_cells(rows, mixture) for mixture in self.mixtures])

    def __laws__(self) -> Requirements:
        structures = [mixture.specification for mixture in self.mixtures]
        columns = {(structure.n_features, structure.levels) for structure in structures}
        yield len(columns) == 1, "mixtures, all of the same columns"


def _cells(rows: Observations, mixture: FittedMixture) -> CellMoments:
    """Rows as a kernel sees them under one companion, which need not know their classes."""
    standard = mixture.standardise(rows.unlabelled())
    return cell_moments(standard, mixture.parameters, mixture.specification)


def fit_companion(
    rows: Observations, levels: tuple[int, ...], n_classes: int, prior: MixturePrior, seed: int
) -> Companions:
    """One companion: one component a class, tied."""
    return Companions((_fitted(rows, levels, tuple(range(n_classes)), prior, seed),))


def fit_companions(
    rows: Observations,
    levels: tuple[int, ...],
    n_classes: int,
    prior: MixturePrior,
    seed: int,
    near: Companions | None = None,
) -> Companions:
    """Three companions where a cell is missing, else the first alone.

    They differ in the groups of rows that a covariance, common to all, is taken within: the
    classes, up to four groups a class, and groups found without the labels. Which of them fills
    the cells best differs from table to table. Those ``near`` have as many groups, and are starts.
    """
    complete = not (np.isnan(rows.real).any() or (rows.codes < 0).any())
    if near is None:
        n_groups = np.clip(rows.weights.sum() // ROWS_OF_A_GROUP, FEWEST_GROUPS, MOST_GROUPS)
        groups: tuple[tuple[int, ...], ...] = (
            tuple(range(n_classes)),
            component_class(rows, n_classes, MOST_OF_A_CLASS),
            (0,) * int(n_groups),
        )
        starts: Sequence[FittedMixture | None] = (None, None, None)
    else:
        groups = tuple(one.specification.component_class for one in near.mixtures)
        starts = near.mixtures
    first = _fitted(rows, levels, groups[0], prior, seed, starts[0])
    if complete:
        return Companions((first,))
    unlabelled = table.distinct(replace(rows, labels=np.zeros_like(rows.labels)))[0]
    further = zip((rows, unlabelled), groups[1:], starts[1:], strict=True)
    others = [_fitted(one, levels, of, prior, seed, start) for one, of, start in further]
    return Companions((first, *others))


def _fitted(
    rows: Observations,
    levels: tuple[int, ...],
    components: tuple[int, ...],
    prior: MixturePrior,
    seed: int,
    near: FittedMixture | None = None,
) -> FittedMixture:
    """A mixture of components of given classes, with one covariance for all."""
    specification = MixtureSpecification(rows.real.shape[1], levels, components, "full", True)
    solver = Solver(1, COMPANION_ITERATIONS, COMPANION_TOL, seed)
    start = None if near is None else start_near(near, rows)
    shared = shared_prior(prior, specification)
    return fit_mixture_rows(rows, specification, shared, solver, start)[0]


def shared_prior(prior: MixturePrior, specification: MixtureSpecification) -> MixturePrior:
    """The prior of a covariance that all components share, unless the user set its strength.

    0.3 D rows stand behind the one covariance in all: with the declared prior's strength a mean,
    few components would decide for many.
    """
    d, n_means = specification.n_features, specification.n_components
    if prior.degrees_of_freedom is not None or d == 0 or not specification.tied:
        return prior
    freedom = max(SHARED_STRENGTH * d - n_means, LEAST_STRENGTH * d)
    return replace(prior, degrees_of_freedom=freedom)

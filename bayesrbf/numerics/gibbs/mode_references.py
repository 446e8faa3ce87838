"""Reference points of jumps between modes, and the densities that stand around them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gibbs.augmentation import of_class
from bayesrbf.numerics.gibbs.conjugate import Conjugate
from bayesrbf.numerics.mixture.expectation import Expectation, prepare
from bayesrbf.numerics.mixture.initialisation import starting_point
from bayesrbf.numerics.mixture.mixture_fit import problem_of
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import sum_by_group
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

_SMOOTHING: Final = 2
"""EM steps from a draw to its reference point, whose scatter must be that around it.

More steps would lead all points to the same few modes, and chains also stay between those.
"""

_STARTS: Final = 8  # Starts of EM in search of modes that no chain has seen.

_STEPS: Final = 20  # EM steps of each start.

_TRUST: Final = 0.8
"""Share of the known rows that stand behind a reference. Below 1, so that a reference is wider than
the posterior."""


@dataclass(frozen=True)
class Reference:
    """A point near a mode, in standard units, and how many rows are known to be behind it."""

    parameters: MixtureParameters
    counts: Float[np.ndarray, " component"]  # Rows of every component.
    # Rows of every level of every categorical column.
    categories: tuple[Float[np.ndarray, "component _"], ...]

    @classmethod
    def near(
        cls,
        point: MixtureParameters,
        share: float,
        expectation: Expectation,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> Reference:
        """Move a point by a few EM steps, and put a share of its expected rows behind it."""
        step = problem_of(expectation, specification, hyperparameters).step
        for _ in range(_SMOOTHING):
            point = step(point).following
        statistics = expectation.statistics(point)
        categories = tuple(share * counts for counts in statistics.category_counts)
        return cls(point, share * statistics.counts, categories)

    def of_class(self, part: slice, groups: np.ndarray) -> Reference:
        """The part of one class: its components, and the covariances of their groups."""
        return Reference(
            of_class(self.parameters, part, groups),
            self.counts[part],
            tuple(counts[part] for counts in self.categories),
        )

    def with_empty(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> Reference:
        """A single component, and empty ones beside it up to the number that the specification has.

        The empty ones are at the mode of their prior. The specification is that of the class as a
        mixture of its own.
        """
        empty = _at_prior(hyperparameters, specification)
        own = specification.group_sizes.size > 1
        factors = self.parameters.precisions_cholesky
        parameters = replace(
            empty,
            means=_with_first(self.parameters.means, empty.means),
            precisions_cholesky=_with_first(factors, empty.precisions_cholesky) if own else factors,
        )
        counts = _with_first(self.counts, np.zeros(specification.n_components))
        categories = tuple(
            _with_first(one, np.zeros((counts.size, one.shape[1]))) for one in self.categories
        )
        return Reference(parameters, counts, categories)

    def density(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> Conjugate:
        """The conjugate density that has its mode at the point and as many rows behind it."""
        point, counts = self.parameters, self.counts
        laws = laws_of(specification)
        law = laws.reals
        scales = law.base_scales(hyperparameters)
        cells = np.repeat(counts[:, None], scales.shape[1], axis=1)
        total = sum_by_group(cells, specification)
        freedom = hyperparameters.degrees_of_freedom
        strength = total + freedom + specification.group_sizes[:, None]
        inner = law.inner_at(point.precisions_cholesky, strength, scales)
        return Conjugate(
            specification=specification,
            precisions=law.conjugate(total, inner, hyperparameters),
            classes=np.ones(1),
            weights=counts + hyperparameters.weight_concentration,
            levels=laws.levels.posterior(self.categories, hyperparameters),
            centres=point.means,
            strength=cells + hyperparameters.mean_precision,
        )


def known_share(observations: Observations) -> float:
    """Share of the rows behind a reference, from 0 to 1; smaller where cells are missing."""
    holes = np.isnan(observations.real).sum() + (observations.codes < 0).sum()
    cells = observations.real.size + observations.codes.size
    return _TRUST * (1.0 - float(holes) / max(1, cells))


def searched(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> list[MixtureParameters]:
    """Where EM ends from starts of its own, the same at every call, in standard units."""
    rng = np.random.default_rng(0)
    step = problem_of(prepare(observations, specification), specification, hyperparameters).step
    found = []
    for _ in range(_STARTS):
        point = starting_point(observations, specification, hyperparameters, rng)
        for _ in range(_STEPS):
            point = step(point).following
        found.append(point)
    return found


def fewest_components(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    share: float,
) -> Reference:
    """Fit one component a class, and count that share of its expected rows."""
    single = replace(specification, component_class=tuple(range(specification.n_classes)))
    expectation = prepare(observations, single)
    step = problem_of(expectation, single, hyperparameters).step
    point = _at_prior(hyperparameters, single)
    for _ in range(_STEPS):
        point = step(point).following
    return Reference.near(point, share, expectation, single, hyperparameters)


def _with_first(first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Replace the first entries of an array."""
    return np.concatenate([first, rest[1:]])


def _at_prior(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> MixtureParameters:
    """The mode of the prior: where EM over one component a class may start."""
    n_classes, k = specification.n_classes, specification.n_components
    scales = np.tile(1 / hyperparameters.scale, (specification.group_sizes.size, 1))
    return MixtureParameters(
        class_probabilities=np.full(n_classes, 1 / n_classes),
        weights=np.ones(k),
        means=np.tile(hyperparameters.location, (k, 1)),
        precisions_cholesky=laws_of(specification).reals.of_diagonal(scales),
        category_probabilities=tuple(
            np.tile(levels / levels.sum(), (k, 1))
            for levels in hyperparameters.category_concentrations
        ),
    )

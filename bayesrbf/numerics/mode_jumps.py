r"""Jumps between modes: all components of a class proposed at once, the rows' latents summed out.

Chains can stay for thousands of sweeps in one of several ways to spread a class over its
components: ten odd rows have a component of their own, or none. A jump proposes the whole
class from :class:`~bayesrbf.numerics.mode_proposals.ModeProposal`, whose reference points
were seen while the chains were tuned, and accepts by Metropolis and Hastings:

.. math:: \min\{1,\ p(\theta' \mid x, y)\, q(\theta) / (p(\theta \mid x, y)\, q(\theta'))\}.

What is proposed does not depend on where the chain is, so one accepted jump forgets the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bayesrbf.numerics.augmentation import of_class
from bayesrbf.numerics.conjugate import Conjugate, gamma_shapes
from bayesrbf.numerics.expectation import Expectation, prepare
from bayesrbf.numerics.fitting import problem_of
from bayesrbf.numerics.mixture_prior import log_prior
from bayesrbf.numerics.mixture_variables import base_scales, variables_of
from bayesrbf.numerics.mode_proposals import MOST_COMPONENTS, ModeProposal
from bayesrbf.numerics.statistics import sum_by_group
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification

MOST_REFERENCES: Final = 48
"""Reference points beside the one of fewest components."""

_SMOOTHING: Final = 5
"""EM steps from a draw to its reference point: a draw's own scatter is not its mode's."""

_TRUST: Final = 0.9
"""Share of the known rows that a reference counts: wider than the posterior, never narrower."""


def can_jump(specification: MixtureSpecification) -> bool:
    """Whether some class has several components, few enough, and covariances of its own.

    Parameters
    ----------
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    bool
        True if jumps exist.
    """
    return any(_jumps(specification, part) for part in specification.class_slices)


def _jumps(specification: MixtureSpecification, part: slice) -> bool:
    """Whether the components of one class can be proposed at once."""
    shared = specification.tied and specification.n_classes > 1
    return not shared and 1 < part.stop - part.start <= MOST_COMPONENTS


class ModeJumps:
    """Jumps of the classes of one table.

    Parameters
    ----------
    observations : Observations
        Weighted rows in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior in standard units.
    points : sequence of MixtureParameters
        Draws in standard units, at most ``MOST_REFERENCES``.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
        points: Sequence[MixtureParameters],
    ) -> None:
        self._specification = specification
        self._hyperparameters = hyperparameters
        self._expectation = prepare(observations, specification)
        share = _TRUST * _known(observations)
        found = [
            _reference(self._expectation, specification, hyperparameters, one, share)
            for one in points
        ]
        single = replace(specification, component_class=tuple(range(specification.n_classes)))
        rows = prepare(observations, single)
        fewest = _reference(
            rows, single, hyperparameters, _at_prior(hyperparameters, single), share
        )
        self._proposals = [
            (part, self._proposal(part, label, found, fewest))
            for label, part in enumerate(specification.class_slices)
            if _jumps(specification, part)
        ]

    def jump(self, parameters: MixtureParameters, rng: np.random.Generator) -> MixtureParameters:
        """Offer one class, chosen at random, a jump.

        Parameters
        ----------
        parameters : MixtureParameters
            Point in standard units.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        MixtureParameters
            Where the jump leads if it is accepted, else the same point.
        """
        part, proposal = self._proposals[int(rng.integers(len(self._proposals)))]
        groups = np.unique(self._specification.covariance_group[part])
        old, new = of_class(parameters, part, groups), proposal.draw(rng)
        candidate = _with_class(parameters, new, part, groups)
        before, after = proposal.log_densities(old, new)
        rise = self._log_posterior(candidate) - self._log_posterior(parameters)
        return candidate if np.log(rng.random()) < rise + before - after else parameters

    def _log_posterior(self, parameters: MixtureParameters) -> float:
        """Log posterior density, without Jacobian, up to a constant."""
        values = variables_of(parameters, self._hyperparameters, self._specification)
        prior = log_prior(values, parameters, self._hyperparameters, self._specification)
        return self._expectation.statistics(parameters).log_likelihood + prior

    def _proposal(
        self, part: slice, label: int, found: list[_Reference], fewest: _Reference
    ) -> ModeProposal:
        """The proposal of one class."""
        size, hyper = part.stop - part.start, self._hyperparameters
        own = replace(self._specification, component_class=(0,) * size)
        groups = np.unique(self._specification.covariance_group[part])
        densities = [_density(_of_class(one, part, groups), own, hyper) for one in found]
        lone = _of_class(fewest, slice(label, label + 1), np.array([label]))
        densities.append(_density(_with_empty(lone, own, hyper), own, hyper))
        # Half of the weight for what the draws may not have seen: a class of one component.
        weights = np.array([*np.full(len(found), 0.5 / max(1, len(found))), 0.5])
        return ModeProposal(densities, weights / weights.sum())


@dataclass(frozen=True)
class _Reference:
    """A point near a mode, and how many rows are known to be behind its components.

    Attributes
    ----------
    parameters : MixtureParameters
        The point.
    counts : ndarray of shape (n_components,)
        Rows of every component.
    categories : tuple of ndarray of shape (n_components, n_levels)
        Rows of every level of every categorical column.
    """

    parameters: MixtureParameters
    counts: np.ndarray
    categories: tuple[np.ndarray, ...]


def _reference(
    expectation: Expectation,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    point: MixtureParameters,
    share: float,
) -> _Reference:
    """Where a few EM steps from a point lead, and a share of the rows there."""
    problem = problem_of(expectation, specification, hyperparameters)
    for _ in range(_SMOOTHING):
        point = problem.step(point).following
    statistics = expectation.statistics(point)
    categories = tuple(share * counts for counts in statistics.category_counts)
    return _Reference(point, share * statistics.counts, categories)


def _of_class(reference: _Reference, part: slice, groups: np.ndarray) -> _Reference:
    """The part of one class."""
    return _Reference(
        of_class(reference.parameters, part, groups),
        reference.counts[part],
        tuple(counts[part] for counts in reference.categories),
    )


def _with_empty(
    lone: _Reference, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> _Reference:
    """A class of one component with empty ones beside it, at the mode of their prior."""
    empty = _at_prior(hyperparameters, specification)
    own = specification.group_sizes.size > 1
    factors = lone.parameters.precisions_cholesky
    parameters = replace(
        empty,
        means=_beside(lone.parameters.means, empty.means),
        precisions_cholesky=_beside(factors, empty.precisions_cholesky) if own else factors,
    )
    counts = _beside(lone.counts, np.zeros(specification.n_components))
    categories = tuple(
        _beside(one, np.zeros((counts.size, one.shape[1]))) for one in lone.categories
    )
    return _Reference(parameters, counts, categories)


def _beside(first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """One entry, then the others but their first."""
    return np.concatenate([first, rest[1:]])


def _density(
    reference: _Reference,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> Conjugate:
    """The conjugate density of that many rows whose mode is the reference point."""
    point, counts = reference.parameters, reference.counts
    scales = base_scales(hyperparameters, specification)
    cells = np.repeat(counts[:, None], scales.shape[1], axis=1)
    total = sum_by_group(cells, specification)
    strength = (total + hyperparameters.degrees_of_freedom).T + specification.group_sizes
    if specification.shape == "full":
        inner = point.covariances() / (scales[:, :, None] * scales[:, None, :])
        inner *= strength.T[:, :, None]
    else:
        inner = strength.T / (point.precisions_cholesky * scales) ** 2
    if specification.shape == "spherical":
        inner = inner.sum(axis=1, keepdims=True)
    priors = hyperparameters.category_concentrations
    return Conjugate(
        specification=specification,
        scales=scales,
        classes=np.ones(1),
        weights=counts + hyperparameters.weight_concentration,
        levels=tuple(n + a for n, a in zip(reference.categories, priors, strict=True)),
        centres=point.means,
        strength=cells + hyperparameters.mean_precision,
        shapes=gamma_shapes(total, hyperparameters, specification),
        inner=inner,
    )


def _known(observations: Observations) -> float:
    """Share of the cells that are known."""
    holes = np.isnan(observations.real).sum() + (observations.codes < 0).sum()
    return 1.0 - float(holes) / max(1, observations.real.size + observations.codes.size)


def _with_class(
    parameters: MixtureParameters, new: MixtureParameters, part: slice, groups: np.ndarray
) -> MixtureParameters:
    """The mixture with the components of one class replaced."""
    return replace(
        parameters,
        weights=_put(parameters.weights, part, new.weights),
        means=_put(parameters.means, part, new.means),
        precisions_cholesky=_put(parameters.precisions_cholesky, groups, new.precisions_cholesky),
        category_probabilities=tuple(
            _put(values, part, replacement)
            for values, replacement in zip(
                parameters.category_probabilities, new.category_probabilities, strict=True
            )
        ),
    )


def _put(values: np.ndarray, places: slice | np.ndarray, replacement: np.ndarray) -> np.ndarray:
    """A copy with some entries replaced."""
    copied = values.copy()
    copied[places] = replacement
    return copied


def _at_prior(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> MixtureParameters:
    """The mode of the prior: where EM over one component a class may start."""
    n_classes, k = specification.n_classes, specification.n_components
    scales = np.tile(1 / hyperparameters.scale, (specification.group_sizes.size, 1))
    full = specification.shape == "full"
    return MixtureParameters(
        class_probabilities=np.full(n_classes, 1 / n_classes),
        weights=np.ones(k),
        means=np.tile(hyperparameters.location, (k, 1)),
        precisions_cholesky=scales[:, :, None] * np.eye(scales.shape[1]) if full else scales,
        category_probabilities=tuple(
            np.tile(levels / levels.sum(), (k, 1))
            for levels in hyperparameters.category_concentrations
        ),
    )

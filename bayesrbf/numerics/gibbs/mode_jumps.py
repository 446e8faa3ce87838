r"""Jumps between modes: all components of a class proposed at once, the rows' latents summed out.

Chains can stay for thousands of sweeps in one of several ways to spread a class over its
components: ten odd rows have a component of their own, or none. A jump proposes the whole
class from :class:`~bayesrbf.numerics.gibbs.mode_proposals.ModeProposal`, whose reference points
were seen while the chains were tuned, and accepts by Metropolis and Hastings:

.. math:: \min\{1,\ p(\theta' \mid x, y)\, q(\theta) / (p(\theta \mid x, y)\, q(\theta'))\}.

What is proposed does not depend on where the chain is, so one accepted jump forgets the mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gibbs.augmentation import of_class
from bayesrbf.numerics.gibbs.mode_proposals import MOST_COMPONENTS, ModeProposal
from bayesrbf.numerics.gibbs.mode_references import Reference, fewest_components, known_share
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

MOST_REFERENCES: Final = 128
"""Most draws that are turned into reference points: each costs two EM steps."""

_BATCHES: Final = 16
"""Batches of draws whose means are compared."""


def can_jump(specification: MixtureSpecification) -> bool:
    """Whether some class has several components, few enough, and covariances of its own.

    Proposals know real and categorical columns: with further ones there are no jumps.
    """
    several = any(_jumps(specification, part) for part in specification.class_slices)
    return several and not specification.further


def _jumps(specification: MixtureSpecification, part: slice) -> bool:
    """Whether the components of one class can be proposed at once."""
    shared = specification.tied and specification.n_classes > 1
    return not shared and 1 < part.stop - part.start <= MOST_COMPONENTS


def slowness_of(
    weights: Float[np.ndarray, "draw component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    r"""Autocorrelation time of each class: draws that tell as much as one independent draw.

    It is that of the largest weight w of the class, by batch means,
    :math:`b \operatorname{Var}(\bar w_b) / \operatorname{Var}(w)` for batches of b successive
    draws; at least 1, and 1 for a class of one component.
    """
    largest = np.stack([weights[:, p].max(axis=1) for p in specification.class_slices], axis=1)
    size = max(1, len(largest) // _BATCHES)
    batches = largest[: len(largest) // size * size].reshape(-1, size, largest.shape[1])
    spread = np.maximum(largest.var(axis=0), np.finfo(float).tiny)
    return np.maximum(1.0, size * batches.mean(axis=1).var(axis=0) / spread)


class ModeJumps:
    """Jumps of the classes of one table, in standard units.

    ``points`` are draws and points found otherwise. ``slowness`` (:func:`slowness_of`) says how
    slowly the chains have moved so far: a class is offered jumps in proportion.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
        points: Sequence[MixtureParameters],
        slowness: Float[np.ndarray, " label"],
    ) -> None:
        self._specification = specification
        self._hyperparameters = hyperparameters
        self._prior = DeclaredPrior(hyperparameters, specification)
        self._expectation = prepare(observations, specification)
        model = (self._expectation, specification, hyperparameters)
        share = known_share(observations)
        found = [Reference.near(point, share, *model) for point in points]
        fewest = fewest_components(observations, specification, hyperparameters, share)
        self._proposals = [
            (part, self._proposal(part, label, found, fewest))
            for label, part in enumerate(specification.class_slices)
            if _jumps(specification, part)
        ]
        offers = slowness[[_jumps(specification, part) for part in specification.class_slices]]
        self._until = np.cumsum(offers / offers.sum())

    def jump(self, parameters: MixtureParameters, rng: np.random.Generator) -> MixtureParameters:
        """Offer one class a jump: the new point if it is accepted, else the same point."""
        offered = np.searchsorted(self._until[:-1], rng.random(), side="right")
        part, proposal = self._proposals[int(offered)]
        groups = np.unique(self._specification.covariance_group[part])
        old, new = of_class(parameters, part, groups), proposal.draw(rng)
        candidate = _with_class(parameters, new, part, groups)
        before, after = proposal.log_densities(old, new)
        rise = self._log_posterior(candidate) - self._log_posterior(parameters)
        return candidate if np.log(rng.random()) < rise + before - after else parameters

    def _log_posterior(self, parameters: MixtureParameters) -> float:
        """Log posterior density, without Jacobian, up to a constant."""
        prior = self._prior.log_density(parameters)
        return self._expectation.statistics(parameters).log_likelihood + prior

    def _proposal(
        self, part: slice, label: int, found: list[Reference], fewest: Reference
    ) -> ModeProposal:
        """The proposal of one class."""
        size, hyper = part.stop - part.start, self._hyperparameters
        own = replace(self._specification, component_class=(0,) * size)
        groups = np.unique(self._specification.covariance_group[part])
        densities = [one.of_class(part, groups).density(own, hyper) for one in found]
        lone = fewest.of_class(slice(label, label + 1), np.array([label]))
        densities.append(lone.with_empty(own, hyper).density(own, hyper))
        # Half of the weight for what the draws may not have seen: a class of one component.
        weights = np.array([*np.full(len(found), 0.5 / max(1, len(found))), 0.5])
        return ModeProposal(densities, weights / weights.sum())


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

r"""Jumps between modes: all components of a class proposed at once, the rows' latents summed out.

Chains can stay for thousands of sweeps in one of several ways to spread a class over its
components: ten odd rows have a component of their own, or none. A jump proposes the whole
class from a :class:`ModeProposal`, whose reference points
were seen while the chains were tuned, and accepts by Metropolis and Hastings:

.. math:: \min\{1,\ p(\theta' \mid x, y)\, q(\theta) / (p(\theta \mid x, y)\, q(\theta'))\}.

What is proposed does not depend on where the chain is, so one accepted jump forgets the mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.gibbs.augmentation import of_class
from bayesrbf.numerics.gibbs.conjugate import Conjugate
from bayesrbf.numerics.gibbs.mode_references import Reference, fewest_components, known_share
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

MOST_COMPONENTS = 4
"""Most components of a class for jumps: all their orders are summed over, 24 of them."""


class ModeProposal:
    r"""A density over the components of one class that knows several modes of the posterior.

    At each of M reference points the posterior is close to the conjugate one
    (:mod:`bayesrbf.numerics.gibbs.conjugate`) at a share of the expected statistics there: the
    share that is known, because rows with missing cells or uncertain components say less. The
    proposal is their mixture, and symmetric in the names of the components:

    .. math::
       q(\theta) = \frac{1}{K!}
           \sum_{m} w_m \sum_{\pi} q_m(\theta_{\pi(1)}, \dots, \theta_{\pi(K)}).

    It can be drawn from and evaluated exactly, which is all that Metropolis and Hastings ask.
    ``shares`` are the weights w, which sum to one.
    """

    def __init__(
        self,
        references: Sequence[Conjugate],
        shares: Float[np.ndarray, " reference"],
    ) -> None:
        self._references = references
        self._shares = shares
        self._specification = references[0].specification
        self._law = laws_of(self._specification).reals
        densities = [one.precisions for one in references]
        self._precisions = type(densities[0]).stacked(densities)
        self._orders = np.array(
            list(itertools.permutations(range(self._specification.n_components)))
        )
        self._centres = np.stack([one.centres for one in references])
        self._strength = np.stack([one.strength for one in references])
        self._weights = np.stack([one.weights for one in references])
        columns = zip(*(one.levels for one in references), strict=True)
        self._levels = [np.stack(column) for column in columns]

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """Draw the components of the class, in random order."""
        chosen = int(draw_categories(self._shares[None], rng)[0])
        order = self._orders[rng.integers(len(self._orders))]
        return _reordered(self._references[chosen].draw(rng), order)

    def log_densities(self, *points: MixtureParameters) -> list[float]:
        """Log density of each point in the constrained variables of the graph, in nats."""
        pairs = self._dirichlets(points)
        common = gammaln(self._weights.sum(axis=1)) - gammaln(self._weights).sum(axis=1)
        common = (common + np.log(self._shares))[:, None]
        if self._specification.n_features:
            pairs = pairs + self._means(points)
            given = np.concatenate([one.precisions_cholesky for one in points])
            factors = self._precisions.log_densities(given)
            if factors.shape == pairs.shape:
                pairs = pairs + factors
            else:  # one covariance, whatever the order
                common = common + factors[:, :, 0]
        k = pairs.shape[2]
        by_point = pairs.reshape(len(pairs), len(points), k, k)
        # Every order is a way to name the components: component i as reference component order[i].
        by_order = by_point[:, :, np.arange(k), self._orders].sum(axis=-1) + common[:, :, None]
        flat = np.moveaxis(by_order, 1, 0).reshape(len(points), -1)
        return (log_sum_exp(flat, axis=1)[0] - np.log(len(self._orders))).tolist()

    def _dirichlets(
        self, points: Sequence[MixtureParameters]
    ) -> Float[np.ndarray, "reference given component"]:
        """Log densities of weights and levels, of each given as each reference component."""
        given = np.concatenate([one.weights for one in points])
        total = (self._weights - 1)[:, None, :] * np.log(given)[:, None]
        for column, levels in enumerate(self._levels):
            logs = np.log(np.concatenate([one.category_probabilities[column] for one in points]))
            total = total + np.einsum("mbl,al->mab", levels - 1, logs)
            total += (gammaln(levels.sum(axis=2)) - gammaln(levels).sum(axis=2))[:, None, :]
        return total

    def _means(
        self, points: Sequence[MixtureParameters]
    ) -> Float[np.ndarray, "reference given component"]:
        """Log densities of the means given the precision factors."""
        group = self._specification.covariance_group
        factors = np.concatenate([one.precisions_cholesky[group] for one in points])
        means = np.concatenate([one.means for one in points])
        pull = means[:, None, :] - self._centres[:, None, :, :]
        whitened, diagonals = self._law.whiten(pull, factors), self._law.diagonal(factors)
        square = np.einsum("mabi,mbi->mab", whitened**2, self._strength)
        constant = 0.5 * (np.log(self._strength) - LOG_2PI).sum(axis=2)
        return constant[:, None, :] - 0.5 * square + np.log(diagonals).sum(axis=1)[:, None]


def _reordered(parameters: MixtureParameters, order: np.ndarray) -> MixtureParameters:
    """A mixture of one class with its components in another order."""
    factors = parameters.precisions_cholesky
    return replace(
        parameters,
        weights=parameters.weights[order],
        means=parameters.means[order],
        precisions_cholesky=factors[order] if len(factors) == len(order) else factors,
        category_probabilities=tuple(p[order] for p in parameters.category_probabilities),
    )


MOST_REFERENCES: Final = 128
"""Most draws that are turned into reference points: each costs two EM steps."""

_BATCHES: Final = 16  # Batches of draws whose means are compared.


def can_jump(specification: MixtureSpecification) -> bool:
    """Whether a class can jump: several components, not too many, with covariances of its own."""
    return any(_jumps(specification, part) for part in specification.class_slices)


def _jumps(specification: MixtureSpecification, part: slice) -> bool:
    """Whether the components of one class can be proposed at once."""
    shared = specification.tied and specification.n_classes > 1
    return not shared and 1 < part.stop - part.start <= MOST_COMPONENTS


def slowness_of(
    weights: Float[np.ndarray, "draw component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    r"""Autocorrelation time of each class: how many draws are worth one independent draw.

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

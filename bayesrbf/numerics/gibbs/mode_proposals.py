r"""A density over the components of one class that knows several modes of the posterior.

At each of M reference points the posterior is close to the conjugate one
(:mod:`bayesrbf.numerics.gibbs.conjugate`) at a share of the expected statistics there: the share
that is known, because rows with missing cells or uncertain components say less. The
proposal is their mixture, and symmetric in the names of the components:

.. math::
   q(\theta) = \frac{1}{K!} \sum_{m} w_m \sum_{\pi} q_m(\theta_{\pi(1)}, \dots, \theta_{\pi(K)}).

It can be drawn from and evaluated exactly, which is all that Metropolis and Hastings ask.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.gibbs.conjugate import Conjugate
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters

MOST_COMPONENTS = 4
"""Most components of a class for jumps: all their orders are summed over, 24 of them."""


class ModeProposal:
    """Mixture of conjugate densities over the components of one class.

    ``references`` has one density per reference point, of a mixture of one class, and ``shares``
    their weights w, which sum to one.
    """

    def __init__(
        self, references: Sequence[Conjugate], shares: Float[np.ndarray, " reference"]
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

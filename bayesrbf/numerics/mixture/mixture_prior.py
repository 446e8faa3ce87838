r"""The declared prior of a mixture: log density, and gradient beside that of the rows.

.. math::
   d_i &\sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2), \quad A_{ij} \sim N(0, 1), \\
   \mu_k &\sim N(m_0, (\kappa_0 P)^{-1}), \quad
   w, \pi, \theta \sim \mathrm{Dirichlet}(\alpha)

and for spherical covariances one :math:`d \sim \mathrm{Gamma}(D\nu_0/2 + 1,\ D/2)`. The means'
normaliser, with :math:`\log L_{ii} = \tfrac12 \log d_i - \log s_i`, joins the gamma's powers:
with G means under a factor L

.. math::
   \log p = \mathrm{const} + \sum (\alpha - 1) \log p
   + \sum \big(\tfrac{\nu_0 + G}{2} \log d - \tfrac{d}{2}\big)
   - \tfrac12 \sum A_{ij}^2 - \tfrac{\kappa_0}{2} \sum_k |L'(\mu_k - m_0)|^2,

and the log Jacobian of the coordinates raises the powers of every p and d by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.coordinates import Simplices, safe_log, slices
from bayesrbf.numerics.mixture.mixture_points import free_variables
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable


class DeclaredPrior:
    """The declared prior of one mixture, prepared for many points.

    Hyper-parameters are in the units of the parameters. ``constant`` is what no point changes,
    without Jacobian; ``powers`` are those of the probabilities, without and with Jacobian. The
    simplices of classes, weights and levels go through one pass; the reals have their own prior.
    """

    def __init__(
        self, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
    ) -> None:
        self._specification, self._laws = specification, laws_of(specification)
        self._reals = self._laws.reals.prior(hyperparameters)
        variables = free_variables(specification)
        self._simplices = Simplices.among(variables)
        # A class's only component has no weight among the variables.
        sizes = np.bincount(specification.component_class)
        self._weighted = np.flatnonzero(sizes[np.asarray(specification.component_class)] > 1)
        self._places = {variable.name: place for variable, place in slices(variables)}
        self._dimension = sum(variable.size for variable in variables)
        alphas = _concentrations(hyperparameters, specification, variables)
        # With the log Jacobian every power is one higher: [without, with].
        self.powers = [self._simplices.entries(alphas) + step for step in (-1, 0)]
        self.constant = sum(
            float((gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)).sum())
            for alpha in alphas.values()
        )
        if self._reals is not None:
            self.constant += self._reals.constant

    def log_density(self, parameters: MixtureParameters, jacobian: bool = False) -> float:
        """Log density at one point in nats, with the log determinant of the transforms or not."""
        total = self.constant + (self._simplices.log_sizes if jacobian else 0.0)
        total += float(self.powers[jacobian] @ safe_log(self._probabilities(parameters)))
        if self._reals is not None:
            total += self._reals.log_density(parameters, jacobian)
        return total

    def _probabilities(self, parameters: MixtureParameters) -> Float[np.ndarray, " entry"]:
        """Entries of all simplices."""
        return self._side_by_side(
            parameters.class_probabilities, parameters.weights, parameters.category_probabilities
        )

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool = False,
    ) -> Float[np.ndarray, " coordinate"]:
        r"""Gradient of log likelihood plus log prior in unconstrained coordinates.

        The likelihood enters by Fisher's identity: its gradient is that of the
        expected complete-data log likelihood, so it needs only the E-step's
        statistics. For a factor L under n rows and G means,
        :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`.

        ``values`` and ``parameters`` are the same point, and the statistics those of the E-step
        there; the gradient of the log determinant of the transforms is added if ``jacobian``.
        """
        result = np.empty(self._dimension)
        counts = self._side_by_side(
            np.bincount(self._laws.classes, statistics.counts),
            statistics.counts,
            statistics.category_counts,
        )
        counts += self.powers[jacobian]
        probabilities = self._simplices.entries(values)
        result[self._simplices.places] = self._simplices.gradient(counts, probabilities)
        if self._reals is not None:
            by_variable = self._reals.gradient(values, parameters, statistics, jacobian)
            for name, gradient in by_variable.items():
                result[self._places[name]] = gradient.reshape(-1)
        return result

    def _side_by_side(
        self,
        classes: Float[np.ndarray, " label"],
        components: Float[np.ndarray, " component"],
        levels: tuple[Float[np.ndarray, "component _"], ...],
    ) -> Float[np.ndarray, " entry"]:
        """Entries of all simplices, from arrays for classes, weights and levels."""
        parts = [components.take(self._weighted), *(level.reshape(-1) for level in levels)]
        if self._specification.n_classes > 1:
            parts.insert(0, classes)
        return np.concatenate(parts)


def _concentrations(
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
    variables: tuple[Variable, ...],
) -> dict[str, np.ndarray]:
    """Dirichlet parameters of every free simplex, in its variable's shape."""
    given = laws_of(specification).levels.by_name(hyperparameters.category_concentrations)
    given[names.CLASS_PROBABILITIES] = np.asarray(hyperparameters.class_concentration)
    weights = np.asarray(hyperparameters.weight_concentration)
    return {
        variable.name: np.broadcast_to(given.get(variable.name, weights), variable.shape)
        for variable in variables
        if variable.transform == "simplex"
    }

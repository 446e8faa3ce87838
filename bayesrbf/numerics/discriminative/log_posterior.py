r"""Log Gibbs posterior of a class-conditional mixture under any objective.

.. math:: \log q(\phi) = \sum_n v_n J_n(\phi) + \tau \log p(\phi)

with row weights v, an objective J and the power :math:`\tau` of the prior
(:class:`bayesrbf.objective.Objective`). For ``objective="likelihood"`` it is the
log posterior itself.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.discriminative.objectives import class_log_joint, value_and_slopes
from bayesrbf.numerics.mixture_rows import MixtureOnRows
from bayesrbf.numerics.statistics import Statistics
from bayesrbf.numerics.weighted_statistics import JointDensities
from bayesrbf.objective import Objective
from bayesrbf.parameters import Observations
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification


class HybridLogPosterior(MixtureOnRows):
    """Log Gibbs posterior of a class-conditional mixture given a table.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior in the user's units; its location and scale are the
        change of units between the rows and the coordinates.
    objective : Objective
        What stands in the place of the log likelihood.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
        objective: Objective,
    ) -> None:
        super().__init__(observations, specification, hyperparameters)
        self.objective = objective
        self._shift = float(observations.weights @ self._objective_shift())
        self._shift += objective.prior_power * self._prior_shift

    def _prepare_rows(self, many: bool) -> None:
        """Put the rows into the form that so many evaluations want."""
        super()._prepare_rows(many)
        self._densities = JointDensities(self._observations, self.specification, many=many)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density and its gradient, equal to the declared graph's with its potentials.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        value : float
            Log density in nats, up to the constant that normalises it.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates.
        """
        values, parameters = self._standard_point(theta)
        rows = self._densities.at(parameters)
        by_class, shares = class_log_joint(rows.log_joint, self.specification)
        pointwise, slopes = value_and_slopes(self.objective, by_class, self._observations.labels)
        weights = self._observations.weights
        slopes = (weights[:, None] * slopes)[:, self.component_class] * shares
        value = float(weights @ pointwise) + self._shift
        value += self.objective.prior_power * self._prior.log_density(parameters)
        slope = self._prior.gradient(values, parameters, rows.statistics(slopes))
        if self.objective.prior_power != 1:
            alone = self._prior.gradient(values, parameters, _no_rows(self.specification))
            slope += (self.objective.prior_power - 1) * alone
        if jacobian:
            extra, extra_slope = coordinates.log_jacobian(self.variables, values)
            value, slope = value + extra, slope + extra_slope
        return value, slope / self.scales

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Objective of every row, not weighted: what leaving it out leaves out.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            J in nats; ``log p(y_n | x_n)`` for the conditional objective.
        """
        _, parameters = self._standard_point(theta)
        log_joint = self._expectation.component_log_joint(parameters)
        by_class, _ = class_log_joint(log_joint, self.specification)
        value, _ = value_and_slopes(self.objective, by_class, self._observations.labels)
        return value + self._objective_shift()

    def _objective_shift(self) -> Float[np.ndarray, " obs"]:
        """Change of units of J: only densities have units, ratios of them do not."""
        return self.objective.generative_weight * self._row_shift


def _no_rows(specification: MixtureSpecification) -> Statistics:
    """Statistics of an empty table: they leave the prior's gradient alone."""
    k, d = specification.n_components, specification.n_features
    return Statistics(
        counts=np.zeros(k),
        first=np.zeros((k, d)),
        second=np.zeros((k, d, d) if specification.shape == "full" else (k, d)),
        category_counts=tuple(np.zeros((k, size)) for size in specification.levels),
        log_likelihood=0.0,
        pointwise=np.zeros(0),
    )

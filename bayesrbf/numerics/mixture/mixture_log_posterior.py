r"""Log posterior of a mixture in the unconstrained coordinates of its declared graph.

Value and gradient come from one E-step, so EM, L-BFGS, Laplace and NUTS share
one kernel. Coordinates are in the user's units; the rows are held in standard
units, which shifts the value by a constant and scales the gradient of the means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gibbs.sweep import MixtureSweep
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows, MixturePredictor
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

if TYPE_CHECKING:
    from bayesrbf.numerics.mixture.compiled_density import CompiledDensity


class MixtureLogPosterior(MixtureOnRows):
    """Log posterior of a mixture given a table.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior in the user's units; its location and scale are the
        change of units between the rows and the coordinates.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        super().__init__(observations, specification, hyperparameters)
        self._shift = float(observations.weights @ self._row_shift) + self._prior_shift

    def _prepare_rows(self, many: bool) -> None:
        """Put the rows, and for many evaluations the whole density, into compiled code."""
        super()._prepare_rows(many)
        self._density: CompiledDensity | None = None
        if many:
            from bayesrbf.numerics.mixture.compiled_density import density_in_one_call

            self._density = density_in_one_call(
                self._expectation, self._prior, self.hyperparameters
            )

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether to add the log determinant of the transforms (a density in
            the coordinates) or not (a density in the constrained variables,
            whose mode EM finds).

        Returns
        -------
        value : float
            Log density in nats, in the user's units.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates.
        """
        if self._density is not None:
            (density,), slopes = self._density(theta[None], jacobian)
            return float(density) + self._shift, slopes[0]
        values, parameters = self._standard_point(theta)
        statistics = self._expectation.statistics(parameters)
        value = statistics.log_likelihood + self._shift
        value += self._prior.log_density(parameters, jacobian)
        slope = self._prior.gradient(values, parameters, statistics, jacobian)
        return value, slope / self.scales

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log posterior densities with Jacobian at many points, and their gradients.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        values : ndarray of shape (n_points,)
            Log densities in nats, in the user's units.
        gradients : ndarray of shape (n_points, dimension)
            Gradients in the coordinates.
        """
        if self._density is not None:
            values, gradients = self._density(thetas, True)
            return values + self._shift, gradients
        found = [self.value_and_gradient(theta) for theta in thetas]
        return np.array([value for value, _ in found]), np.stack([slope for _, slope in found])

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log posterior densities with Jacobian at many points.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_points,)
            Log densities in nats, in the user's units.
        """
        if self._density is not None:
            return self._density.values(thetas) + self._shift
        return np.array([self.value_and_gradient(theta)[0] for theta in thetas])

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Log likelihood of every row, not weighted.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(x_n, y_n)`` in nats, in the user's units.
        """
        _, parameters = self._standard_point(theta)
        return self._expectation.statistics(parameters).pointwise + self._row_shift

    def log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """What :meth:`pointwise` gives, at many points in one go.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_points, n_obs)
            ``log p(x_n, y_n)`` in nats, in the user's units.
        """
        labels = self._observations.labels
        known = np.flatnonzero(labels >= 0)
        result = np.empty((len(thetas), labels.size))
        # Some draws at a time: over all of them the classes would take room that nobody granted.
        for some, by_class in MixturePredictor(self._observations, self).by_block(thetas):
            result[some] = np.logaddexp.reduce(by_class, axis=2)
            result[some, known] = by_class[:, known, labels[known]]
        return result

    def markov_kernel(self) -> MixtureSweep:
        """Prepare Gibbs sweeps of the same posterior.

        Returns
        -------
        MixtureSweep
            The kernel, before any tuning.

        Raises
        ------
        ValueError
            If a row weight is no whole number.
        """
        return MixtureSweep(self._observations, self.specification, self.hyperparameters)

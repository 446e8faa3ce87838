"""Points of an RBF network in the coordinates of its declared graph."""

from __future__ import annotations

from abc import ABC

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import names
from bayesrbf.numerics import coordinates
from bayesrbf.numerics.mixture_rows import MixtureOnRows
from bayesrbf.numerics.mixture_variables import variables_of
from bayesrbf.numerics.rbf_network.point import NetworkPoint, output_variables
from bayesrbf.parameters import Observations
from bayesrbf.rbf_parameters import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)


class NetworkPoints(MixtureOnRows, ABC):
    """Coordinates of a network with one mixture, given a table.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; their labels play no part.
    network : RBFNetworkSpecification
        Structure of the network, one mixture for all outputs.
    prior : RBFNetworkHyperparameters
        Resolved prior in the user's units of the columns.
    """

    def __init__(
        self,
        observations: Observations,
        network: RBFNetworkSpecification,
        prior: RBFNetworkHyperparameters,
    ) -> None:
        if not network.shared:
            raise ValueError("A declared RBF network has one mixture that all outputs share.")
        super().__init__(observations.unlabelled(), network.mixture, prior.mixture)
        self.network = network
        self.prior = prior
        self._hidden_dimension = self.dimension
        self.variables = (*self.variables, *output_variables(network))
        self.dimension = sum(variable.size for variable in self.variables)

    @property
    def coefficient_places(self) -> slice:
        """Where the output weights are among the coordinates."""
        places = {v.name: place for v, place in coordinates.slices(self.variables)}
        return places[names.COEFFICIENTS]

    def pack(  # type: ignore[override]
        self, parameters: RBFNetworkParameters
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point.

        Parameters
        ----------
        parameters : RBFNetworkParameters
            Point in the user's units.

        Returns
        -------
        ndarray of shape (dimension,)
            Unconstrained coordinates.
        """
        values = variables_of(parameters.mixture, self.hyperparameters, self.specification)
        values |= {
            names.COEFFICIENTS: parameters.coefficients,
            names.INTERCEPTS: parameters.intercepts,
            names.NOISE_PRECISION: np.asarray(parameters.noise_precision),
        }
        for variable in output_variables(self.network):
            values[variable.name] = values[variable.name].reshape(variable.shape)
        return coordinates.to_unconstrained(self.variables, values)

    def unpack(  # type: ignore[override]
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> RBFNetworkParameters:
        """Point at given coordinates.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        RBFNetworkParameters
            Point in the user's units.
        """
        point = self._point(theta)
        mixture = point.mixture.in_units(self.hyperparameters.units)
        return RBFNetworkParameters(
            mixture, point.coefficients, point.intercepts, point.noise_precision
        )

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components, and the output weights with them.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        order : ndarray of shape (n_components,)
            Component k of the result is component ``order[k]``.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates of the same network, components reordered.
        """
        moved = super().permute(theta, order)
        place = self.coefficient_places
        moved[place] = theta[place].reshape(-1, order.size)[:, order].reshape(-1)
        return moved

    def _point(self, theta: np.ndarray) -> NetworkPoint:
        """Values and parameters in standard units."""
        values, mixture = self._standard_point(theta)
        return NetworkPoint(
            values,
            mixture,
            values[names.COEFFICIENTS].reshape(-1, self.specification.n_components),
            np.atleast_1d(values[names.INTERCEPTS]),
            float(values.get(names.NOISE_PRECISION, 1.0)),
        )

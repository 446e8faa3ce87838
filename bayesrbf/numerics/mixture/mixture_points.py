"""Points of a mixture in the unconstrained coordinates of its declared graph."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.mixture.mixture_structure import deterministic_variables, free_variables
from bayesrbf.numerics.mixture.mixture_variables import (
    joint_weights,
    parameters_of,
    variables_of,
)
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable


class MixturePoints:
    """What lies between coordinates, in the user's units, and a mixture's parameters.

    Parameters
    ----------
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior in the user's units; its location and scale are the
        change of units between standard units and the coordinates.

    Attributes
    ----------
    dimension : int
        Number of coordinates.
    variables, deterministic_variables : tuple of Variable
        Free variables in the order of the coordinates, and what is reported beside them.
    component_class : ndarray of shape (n_components,)
        Class of every component.
    standard : MixtureHyperparameters
        The prior in standard units.
    """

    def __init__(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> None:
        self.specification = specification
        self.hyperparameters = hyperparameters
        self.variables: tuple[Variable, ...] = free_variables(specification)
        self.deterministic_variables: tuple[Variable, ...] = deterministic_variables(specification)
        self.dimension = sum(variable.size for variable in self.variables)
        self.component_class: Int[np.ndarray, " component"] = np.asarray(
            specification.component_class
        )
        self.standard = hyperparameters.standardised()
        self._units = hyperparameters.units

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Size of one unit of each coordinate: column scales for means, 1 elsewhere."""
        sizes = np.ones(self.dimension)
        for variable, place in coordinates.slices(self.variables):
            if variable.name == names.MEANS:
                sizes[place] = np.tile(self.hyperparameters.scale, variable.shape[0])
        return sizes

    def pack(self, parameters: MixtureParameters) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point.

        Parameters
        ----------
        parameters : MixtureParameters
            Point in the user's units.

        Returns
        -------
        ndarray of shape (dimension,)
            Unconstrained coordinates.
        """
        values = variables_of(parameters, self.hyperparameters, self.specification)
        return coordinates.to_unconstrained(self.variables, values)

    def unpack(self, theta: Float[np.ndarray, " coordinate"]) -> MixtureParameters:
        """Point at given coordinates.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        MixtureParameters
            Point in the user's units.
        """
        values = coordinates.to_constrained(self.variables, theta)
        return parameters_of(values, self.hyperparameters, self.specification)

    def constrained(self, thetas: Float[np.ndarray, "*batch coordinate"]) -> dict[str, np.ndarray]:
        """Values of the free variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            Values in the user's units.
        """
        return coordinates.to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of what is reported beside the free variables.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            ``weights`` and ``covariances``, in the user's units.
        """
        values = self.constrained(thetas)
        batch = thetas.shape[:-1]
        results = {}
        for variable in self.deterministic_variables:
            if variable.name == names.WEIGHTS:
                value = joint_weights(values, self.specification)
            else:
                value = self._covariances(values)
            results[variable.name] = value.reshape((*batch, *variable.shape))
        return results

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        order : ndarray of shape (n_components,)
            Component k of the result is component ``order[k]``.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates of the same mixture, components reordered.
        """
        values = self.constrained(theta)
        within = {
            names.class_weights(index, self.specification.n_classes): order[part] - part.start
            for index, part in enumerate(self.specification.class_slices)
        }
        for variable in self.variables:
            if variable.name in within:
                values[variable.name] = values[variable.name][within[variable.name]]
            elif variable.dims[:1] == (names.COMPONENT,):
                values[variable.name] = values[variable.name][order]
        return coordinates.to_unconstrained(self.variables, values)

    def standard_values(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of the free variables at one point or many, in standard units.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            Values, the means in standard units.
        """
        values = self.constrained(thetas)
        if names.MEANS in values:
            values[names.MEANS] = self._units.forward(values[names.MEANS])
        return values

    def _standard_point(self, theta: np.ndarray) -> tuple[dict[str, np.ndarray], MixtureParameters]:
        """Values and parameters in standard units."""
        values = self.standard_values(theta)
        return values, parameters_of(values, self.standard, self.specification)

    def _covariances(self, values: dict[str, np.ndarray]) -> np.ndarray:
        """Covariance matrices in the user's units."""
        law = laws_of(self.specification).reals
        return law.covariances(law.factors(values, self.hyperparameters))

r"""Log posterior of a mixture in the unconstrained coordinates of its declared graph.

Value and gradient come from one E-step, so EM, L-BFGS, Laplace and NUTS share
one kernel. Coordinates are in the user's units; the rows are held in standard
units, which shifts the value by a constant and scales the gradient of the means.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import names
from bayesrbf.numerics import coordinates
from bayesrbf.numerics.array_expectation import log_sum_exp
from bayesrbf.numerics.expectation import Expectation, prepare
from bayesrbf.numerics.gibbs.sweep import MixtureSweep
from bayesrbf.numerics.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture_structure import deterministic_variables, free_variables
from bayesrbf.numerics.mixture_variables import (
    joint_weights,
    parameters_of,
    precision_factors,
    variables_of,
)
from bayesrbf.parameters import MixtureParameters, Observations, Standardisation
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification, Variable

WITNESSES: Final = 500
"""Most rows by which components are told apart."""


class MixtureLogPosterior:
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
        self.specification = specification
        self.hyperparameters = hyperparameters
        self.variables: tuple[Variable, ...] = free_variables(specification)
        self.deterministic_variables: tuple[Variable, ...] = deterministic_variables(specification)
        self.dimension = sum(variable.size for variable in self.variables)
        self.component_class: Int[np.ndarray, " component"] = np.asarray(
            specification.component_class
        )
        self._standard = hyperparameters.standardised()
        self._units = hyperparameters.units
        self._prior = DeclaredPrior(self._standard, specification)
        self._observations = observations
        self._prepare_rows(many=False)
        self._row_shift = _log_units(observations, hyperparameters.units)
        self._shift = float(observations.weights @ self._row_shift)
        if specification.n_features:
            self._shift -= specification.n_components * float(np.log(hyperparameters.scale).sum())

    def prepared_for_many(self) -> Self:
        """Prepare the same density for thousands of points, as samplers ask for.

        Returns
        -------
        MixtureLogPosterior
            The same density but for rounding, its rows in compiled kernels
            however few they are: loading these takes half a second once.
        """
        prepared = copy(self)
        prepared._prepare_rows(many=True)
        return prepared

    def _prepare_rows(self, many: bool) -> None:
        """Put the rows into the form that so many evaluations want."""
        self._expectation = prepare(self._observations, self.specification, many=many)

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
        values, parameters = self._standard_point(theta)
        statistics = self._expectation.statistics(parameters)
        value = statistics.log_likelihood + self._shift
        value += self._prior.log_density(values, parameters, jacobian)
        slope = self._prior.gradient(values, parameters, statistics, jacobian)
        return value, slope / self.scales

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

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "obs component"]:
        """Joint log density of rows of the table with every component.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            ``log p(x_o, k)`` in nats, in standard units; labels ignored. The
            rows are always the same: all, or 500 evenly spread.
        """
        _, parameters = self._standard_point(theta)
        return self._witnesses.component_log_joint(parameters)

    @cached_property
    def _witnesses(self) -> Expectation:
        """Rows by which components are told apart: so many do it as well as all."""
        n_obs = self._observations.n_obs
        spread = np.linspace(0, n_obs - 1, min(n_obs, WITNESSES)).astype(np.intp)
        return prepare(self._observations.take(spread), self.specification)

    def predictor(
        self, observations: Observations
    ) -> Callable[[Float[np.ndarray, " coordinate"]], Float[np.ndarray, "obs label"]]:
        """Prepare new rows for the class log joint at many points.

        Parameters
        ----------
        observations : Observations
            New rows, in standard units; labels and weights are not used.

        Returns
        -------
        callable
            Maps coordinates to ``log p(x_o, c)`` of shape (n_obs, n_classes),
            in nats, in the user's units.
        """
        expectation = prepare(observations, self.specification)
        shift = _log_units(observations, self.hyperparameters.units)

        def class_log_joint(theta: np.ndarray) -> np.ndarray:
            _, parameters = self._standard_point(theta)
            log_joint = expectation.component_log_joint(parameters)
            parts = [
                log_sum_exp(log_joint[:, p], axis=1)[0] for p in self.specification.class_slices
            ]
            return np.stack(parts, axis=1) + shift[:, None]

        return class_log_joint

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

    def _standard_point(self, theta: np.ndarray) -> tuple[dict[str, np.ndarray], MixtureParameters]:
        """Values and parameters in standard units."""
        values = self.constrained(theta)
        if names.MEANS in values:
            values[names.MEANS] = self._units.forward(values[names.MEANS])
        return values, parameters_of(values, self._standard, self.specification)

    def _covariances(self, values: dict[str, np.ndarray]) -> np.ndarray:
        """Covariance matrices in the user's units."""
        factors = precision_factors(values, self.hyperparameters, self.specification)
        if self.specification.shape == "full":
            inverse = np.linalg.inv(factors)
            return np.asarray(inverse.swapaxes(-1, -2) @ inverse)
        return factors[..., None] ** -2.0 * np.eye(factors.shape[-1])


def _log_units(observations: Observations, units: Standardisation) -> Float[np.ndarray, " obs"]:
    """Log density of each row in the user's units less that in standard units."""
    observed = ~np.isnan(observations.real)
    return -(observed @ np.log(units.scale)) if observed.shape[1] else np.zeros(len(observed))

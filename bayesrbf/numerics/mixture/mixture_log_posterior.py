r"""Log posterior of a mixture in the unconstrained coordinates of its declared graph.

Value and gradient come from one E-step, so EM, L-BFGS, Laplace and NUTS share
one kernel. Coordinates are in the user's units; the rows are held in standard
units, which shifts the value by a constant and scales the gradient of the means.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gibbs.sweep import MixtureSweep
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows
from bayesrbf.numerics.mixture.side_by_side import MixturePredictor
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

if TYPE_CHECKING:
    from bayesrbf.numerics.mixture.compiled_density import CompiledDensity


class MixtureLogPosterior(MixtureOnRows):
    """Log posterior of a mixture given a table.

    Rows are in standard units. The prior is in the user's units: its location and scale are the
    change of units between the rows and the coordinates.
    """

    points_at_once = 256

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        super().__init__(observations, specification, hyperparameters)
        self._shift = float(observations.weights @ self._row_shift) + self._prior_shift
        self._density: CompiledDensity | None = None

    def _prepare_for_many(self) -> None:
        """Put the whole density into compiled code, where that gains anything."""
        from bayesrbf.numerics.mixture.compiled_density import density_in_one_call

        super()._prepare_for_many()
        self._density = density_in_one_call(self._expectation, self._prior, self.hyperparameters)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's.

        Without ``jacobian`` it is a density in the constrained variables, whose mode EM finds.
        """
        if self._density is not None:
            (density,), gradients = self._density(theta[None], jacobian)
            return float(density) + self._shift, gradients[0]
        values, parameters = self.points.at(theta)
        statistics = self._expectation.statistics(parameters)
        value = statistics.log_likelihood + self._shift
        value += self._prior.log_density(parameters, jacobian)
        gradient = self._prior.gradient(values, parameters, statistics, jacobian)
        return value, gradient / self.scales

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log densities with Jacobian at many points, and their gradients."""
        if self._density is None:
            return super().values_and_gradients(thetas)
        values, gradients = self._density(thetas, True)
        return values + self._shift, gradients

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log densities with Jacobian at many points, without the sums of the gradients."""
        if self._density is None:
            return super().log_densities(thetas)
        return self._density.values(thetas) + self._shift

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood ``log p(x_n, y_n)`` of every row in nats."""
        parameters = self.points.unpack_standard(theta)
        return self._expectation.statistics(parameters).pointwise + self._row_shift

    def log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """:meth:`pointwise` at many points in one go."""
        labels = self._observations.labels
        known = np.flatnonzero(labels >= 0)
        result = np.empty((len(thetas), labels.size))
        # Some draws at a time: the classes under all of them would take too much memory.
        for some, by_class in self._classes.by_block(thetas):
            result[some] = np.logaddexp.reduce(by_class, axis=2)
            result[some, known] = by_class[:, known, labels[known]]
        return result

    @cached_property
    def _classes(self) -> MixturePredictor:
        """The rows, prepared for the log joints of all classes at many points."""
        return MixturePredictor(self._observations, self.points)

    def markov_kernel(self) -> MixtureSweep:
        """Gibbs sweeps of the same posterior; ValueError if a row weight is no whole number."""
        return MixtureSweep(self._observations, self.specification, self.hyperparameters)

"""Log posterior of a mixture given a table, for one point and for many side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayesrbf.base import names
from bayesrbf.base.arrays import class_log_joint, to_prediction
from bayesrbf.base.log_posterior import LogPosterior, Predictor
from bayesrbf.base.priors import ClassPrediction, MixtureHyperparameters
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Variable,
    in_blocks,
    joined_points,
)
from bayesrbf.mixture.expectation import Expectation, preparation, prepare
from bayesrbf.mixture.gibbs import MixtureSweep
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.points import DeclaredPrior, MixturePoints, joint_weights

if TYPE_CHECKING:
    from bayesrbf.mixture.compiled_density import CompiledDensity


# Rows under many mixtures at once: mixtures side by side are one mixture of more components.


class SideBySide:
    """Log joints of some rows, in standard units, at many points of a mixture.

    Labels and weights play no part.
    """

    def __init__(self, observations: Observations, points: MixturePoints) -> None:
        self._points = points
        self._observations = observations.unlabelled()
        # Chosen for one mixture: a table that is small for one stays in NumPy for many.
        self._prepare = preparation(observations, points.specification)
        self._prepared: dict[int, Expectation] = {}

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs component"]:
        """``log p(x_o, k)`` of every row and component at every point, in standard units."""
        k = self._points.specification.n_components
        result = np.empty((len(thetas), self._observations.n_obs, k))
        for block, log_joint in self.by_block(thetas):
            result[block] = log_joint
        return result

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "block obs component"]]]:
        """Slices of ``thetas`` with ``log p(x_o, k)`` of all rows and components at its points."""
        k = self._points.specification.n_components
        for block in in_blocks(len(thetas), self._observations.n_obs * k):
            points = thetas[block]
            wide = self._side_by_side(points)
            log_joint = self._rows_for(len(points)).component_log_joint(wide)
            by_point = log_joint.reshape(self._observations.n_obs, len(points), k)
            yield block, by_point.swapaxes(0, 1)

    def _rows_for(self, n_points: int) -> Expectation:
        """E-step over the rows under ``n_points`` mixtures side by side (cached)."""
        if n_points not in self._prepared:
            wide = _wide(self._points.specification, n_points)
            self._prepared[n_points] = self._prepare(self._observations, wide)
        return self._prepared[n_points]

    def _side_by_side(self, thetas: np.ndarray) -> MixtureParameters:
        """A mixture of one class with the components of all points, a covariance for each."""
        points, specification = self._points, self._points.specification
        values = points.standard_values(thetas)
        weights = joint_weights(values, specification)
        if names.CLASS_PROBABILITIES in values:
            weights = weights * values[names.CLASS_PROBABILITIES][..., points.component_class]
        n, d = weights.size, specification.n_features
        laws = laws_of(specification)
        means, factors = np.zeros((n, 0)), np.zeros((n, *laws.reals.matrices.shape))
        if d:
            means = values[names.MEANS].reshape(n, d)
            by_group = laws.reals.factors(values, points.standard)
            by_component = by_group[:, specification.covariance_group]
            factors = by_component.reshape(n, *by_component.shape[2:])
        point = MixtureParameters(np.ones(1), weights.reshape(n), means, factors, ())
        for variable in laws.levels.variables:  # every component has its own
            values[variable.name] = values[variable.name].reshape(n, *variable.shape[1:])
        return laws.levels.with_values(point, values)


def _wide(specification: MixtureSpecification, n_points: int) -> MixtureSpecification:
    """Specification of one class with the components of ``n_points`` mixtures."""
    return MixtureSpecification(
        n_features=specification.n_features,
        levels=specification.levels,
        component_class=(0,) * (n_points * specification.n_components),
        covariance_type=specification.shape,
    )


def joined(
    points: Sequence[MixtureParameters], specification: MixtureSpecification
) -> tuple[MixtureParameters, MixtureSpecification]:
    """A single mixture of the components of all points, with equal weights of the points.

    >>> point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), ())
    >>> both, structure = joined([point, point], MixtureSpecification(2, (), (0,), "diag"))
    >>> both.weights, structure.n_components
    (array([0.5, 0.5]), 2)
    """
    classes = list(specification.component_class)
    alone = [
        replace(
            point.taken(slice(None), specification.covariance_group),
            weights=point.class_probabilities[classes] * point.weights / len(points),
        )
        for point in points
    ]
    return joined_points(alone), _wide(specification, len(points))


class MixturePredictor(Predictor):
    """Class probabilities and density of some rows, in standard units, at any point.

    Labels and weights play no part. The density is in the user's units.
    """

    def __init__(self, observations: Observations, points: MixturePoints) -> None:
        self._rows = SideBySide(observations, points)
        self._classes = points.specification.class_slices
        self._shift = points.units.log_unit(observations)

    def at_all(self, thetas: Float[np.ndarray, "point coordinate"]) -> ClassPrediction:
        """Class predictions at many points; the first axis of the result is the point."""
        log_joint = np.empty((len(thetas), self._shift.size, len(self._classes)))
        for block, by_class in self.by_block(thetas):
            log_joint[block] = by_class
        return to_prediction(log_joint)

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "block obs label"]]]:
        """Slices of ``thetas`` with the class log joints there, in nats in the user's units."""
        for block, log_joints in self._rows.by_block(thetas):
            yield block, class_log_joint(log_joints, self._classes)[0] + self._shift[:, None]


# Base of all log posteriors of a mixture given a table.


WITNESSES: Final = 500
"""Maximum number of rows whose log joints identify components across draws."""


class MixtureOnRows(LogPosterior):
    """Points of a mixture, its prior, and rows prepared for its E-step.

    Rows are in standard units. The prior is in the user's units: its location and scale are the
    change of units between the rows and the coordinates.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        self.points = MixturePoints(specification, hyperparameters)
        self.specification, self.hyperparameters = specification, hyperparameters
        self._prior = DeclaredPrior(self.points.standard, specification)
        self._observations = observations
        self._expectation = prepare(observations, specification)
        # From standard units to the user's: of a row's log density, and of the means' prior.
        self._row_shift = self.points.units.log_unit(observations)
        log_scales = float(np.log(hyperparameters.scale).sum())
        self._prior_shift = -specification.n_components * log_scales

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables of the mixture."""
        return self.points.variables

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Joint weights and covariances."""
        return self.points.deterministic_variables

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights of the rows."""
        return self._observations.weights

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every component."""
        return self.points.component_class

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Size of one unit of each coordinate."""
        return self.points.scales

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """``weights`` and ``covariances`` in the user's units, at one point or many."""
        return self.points.deterministic(thetas)

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: k of the result is component ``order[k]``."""
        return self.points.permute(theta, order)

    def pack(self, parameters: MixtureParameters) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point in the user's units."""
        return self.points.pack(parameters)

    def unpack(self, theta: Float[np.ndarray, " coordinate"]) -> MixtureParameters:
        """Parameters in the user's units at coordinates ``theta``."""
        return self.points.unpack(theta)

    def prepared_for_many(self) -> Self:
        """A copy with its rows in compiled kernels, made once; it is equal but for rounding."""
        return self._prepared

    @cached_property
    def _prepared(self) -> Self:
        prepared = copy(self)
        prepared._prepare_for_many()
        prepared._prepared = prepared
        return prepared

    def _prepare_for_many(self) -> None:
        """Put the rows into the form that thousands of evaluations want."""
        self._expectation = self._expectation.for_many()

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """``log p(x_o, k)`` of all rows, or of 500 evenly spread, in standard units."""
        return self.component_log_joints(theta[None])[0]

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """:meth:`component_log_joint` at many points in one go."""
        return self._witnesses.component_log_joints(thetas)

    @cached_property
    def _witnesses(self) -> SideBySide:
        """At most ``WITNESSES`` evenly spread rows, enough to identify components by log joints."""
        n_obs = self._observations.n_obs
        spread = np.linspace(0, n_obs - 1, min(n_obs, WITNESSES)).astype(np.intp)
        return SideBySide(self._observations.take(spread), self.points)

    def predictor(self, observations: Observations) -> Predictor:
        """Prepare new rows, in standard units, for predictions at many points.

        The result maps coordinates to class probabilities, and to the density in the user's units.
        """
        return MixturePredictor(observations, self.points)

    @cached_property
    def _classes(self) -> MixturePredictor:
        """Predictor of the training rows: class log joints at many points."""
        return MixturePredictor(self._observations, self.points)

    def label_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """``log p(y_n | x_n)`` of every row at many points; 0 where the label is hidden."""
        labels = self._observations.labels
        known = np.flatnonzero(labels >= 0)
        result = np.zeros((len(thetas), labels.size))
        for block, by_class in self._classes.by_block(thetas):
            result[block, known] = log_softmax(by_class, axis=2)[:, known, labels[known]]
        return result


# Log posterior of a mixture in the unconstrained coordinates of its declared graph.
#
# Value and gradient come from one E-step, so EM, L-BFGS, Laplace and NUTS share
# one kernel. Coordinates are in the user's units; the rows are held in standard
# units, which shifts the value by a constant and scales the gradient of the means.


class MixtureLogPosterior(MixtureOnRows):
    r"""Log posterior of a mixture given a table.

    .. math:: \log p(\phi \mid x, y) = \sum_n v_n \log p(x_{n,o}, y_n \mid \phi)
        + \log p(\phi) + \text{const},

    with :math:`\log \sum_c p(x_{n,o}, c)` of a row whose label is hidden.
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
        """Compile the density where repeated evaluations are faster in one call."""
        from bayesrbf.mixture.compiled_density import density_in_one_call

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
        """Unweighted log likelihood of every row in nats at many points, as :meth:`pointwise`.

        It is ``log p(x_n, y_n)``, or ``log p(x_n)`` where the label is hidden.
        """
        labels = self._observations.labels
        known = np.flatnonzero(labels >= 0)
        result = np.empty((len(thetas), labels.size))
        # Some draws at a time: the classes under all of them would take too much memory.
        for block, by_class in self._classes.by_block(thetas):
            result[block] = np.logaddexp.reduce(by_class, axis=2)
            result[block, known] = by_class[:, known, labels[known]]
        return result

    def markov_kernel(self) -> MixtureSweep:
        """Gibbs sweeps of the same posterior; ValueError if a row weight is no whole number."""
        return MixtureSweep(self._observations, self.specification, self.hyperparameters)

"""Rows under many mixtures at once: mixtures side by side are one mixture of more components."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.log_sums import class_log_joint, to_prediction
from bayesrbf.numerics.mixture.expectation import Expectation, preparation
from bayesrbf.numerics.mixture.mixture_points import MixturePoints, joint_weights
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations, in_blocks, joined_points
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import MixtureSpecification


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
        for part, log_joint in self.by_block(thetas):
            result[part] = log_joint
        return result

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "some obs component"]]]:
        """Slices of the points, each with ``log p(x_o, k)`` of all rows and components there."""
        k = self._points.specification.n_components
        for part in in_blocks(len(thetas), self._observations.n_obs * k):
            some = thetas[part]
            wide = self._side_by_side(some)
            log_joint = self._rows_for(len(some)).component_log_joint(wide)
            by_point = log_joint.reshape(self._observations.n_obs, len(some), k)
            yield part, by_point.swapaxes(0, 1)

    def _rows_for(self, n_points: int) -> Expectation:
        """The rows, for so many mixtures."""
        if n_points not in self._prepared:
            wide = _wide(self._points.specification, n_points)
            self._prepared[n_points] = self._prepare(self._observations, wide)
        return self._prepared[n_points]

    def _side_by_side(self, thetas: np.ndarray) -> MixtureParameters:
        """All components of all points as those of one class, each with its own covariance."""
        points, specification = self._points, self._points.specification
        values = points.standard_values(thetas)
        weights = joint_weights(values, specification)
        if names.CLASS_PROBABILITIES in values:
            weights = weights * values[names.CLASS_PROBABILITIES][..., points.component_class]
        n, d = weights.size, specification.n_features
        laws = laws_of(specification)
        means, factors = np.zeros((n, 0)), np.zeros((n, *laws.reals.matrix_shape))
        if d:
            means = values[names.MEANS].reshape(n, d)
            by_group = laws.reals.factors(values, points.standard)
            by_component = by_group[:, specification.covariance_group]
            factors = by_component.reshape(n, *by_component.shape[2:])
        point = MixtureParameters(np.ones(1), weights.reshape(n), means, factors, ())
        for variable in laws.levels.variables:  # every component has its own
            values[variable.name] = values[variable.name].reshape(n, *variable.shape[1:])
        return laws.levels.placed(point, values)


def _wide(specification: MixtureSpecification, n_points: int) -> MixtureSpecification:
    """Structure of so many mixtures side by side."""
    return MixtureSpecification(
        n_features=specification.n_features,
        levels=specification.levels,
        component_class=(0,) * (n_points * specification.n_components),
        covariance_type=specification.shape,
    )


def joined(
    points: Sequence[MixtureParameters], specification: MixtureSpecification
) -> tuple[MixtureParameters, MixtureSpecification]:
    """One mixture of all components of some points, each point with the same share.

    >>> point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), ())
    >>> both, structure = joined([point, point], MixtureSpecification(2, (), (0,), "diag"))
    >>> both.weights, structure.n_components
    (array([0.5, 0.5]), 2)
    """
    classes, group = list(specification.component_class), specification.covariance_group
    alone = [
        replace(
            point.taken(slice(None), group),
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
        """Predict at many points, which are the first axis of the result."""
        log_joint = np.empty((len(thetas), self._shift.size, len(self._classes)))
        for some, by_class in self.by_block(thetas):
            log_joint[some] = by_class
        return to_prediction(log_joint)

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "some obs label"]]]:
        """Class log joints in the user's units, some points at a time: which, and theirs."""
        for some, log_joints in self._rows.by_block(thetas):
            yield some, class_log_joint(log_joints, self._classes)[0] + self._shift[:, None]

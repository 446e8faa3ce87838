"""Rows under many mixtures at once: mixtures side by side are one mixture of more components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.array_expectation import ArrayExpectation
from bayesrbf.numerics.mixture.expectation import Expectation, is_small, prepare
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.mixture_variables import joint_weights
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

MOST_ENTRIES: Final = 2**19
"""Numbers that the log joints of one block of draws may take: they stay in the second cache."""


class SideBySide:
    """Log joints of some rows at many points of a mixture."""

    def __init__(self, observations: Observations, points: MixturePoints) -> None:
        self._points = points
        self._observations = observations.unlabelled()
        self._small = is_small(observations, points.specification)
        size = observations.n_obs * points.specification.n_components
        self._at_once = max(1, MOST_ENTRIES // max(1, size))
        self._prepared: dict[int, Expectation] = {}

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs component"]:
        """Joint log density of every row with every component at every point."""
        k = self._points.specification.n_components
        result = np.empty((len(thetas), self._observations.n_obs, k))
        for part, log_joint in self.by_block(thetas):
            result[part] = log_joint
        return result

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "some obs component"]]]:
        """The same, some points at a time."""
        k = self._points.specification.n_components
        for start in range(0, len(thetas), self._at_once):
            some = thetas[start : start + self._at_once]
            wide = self._side_by_side(some)
            log_joint = self._rows_for(len(some)).component_log_joint(wide)
            by_point = log_joint.reshape(self._observations.n_obs, len(some), k)
            yield slice(start, start + len(some)), by_point.swapaxes(0, 1)

    def _rows_for(self, n_points: int) -> Expectation:
        """The rows, for so many mixtures; what is small for one stays in NumPy for many."""
        if n_points not in self._prepared:
            wide = _wide(self._points.specification, n_points)
            small = self._small and not wide.further
            make = ArrayExpectation if small else prepare
            self._prepared[n_points] = make(self._observations, wide)
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
        return MixtureParameters(
            class_probabilities=np.ones(1),
            weights=weights.reshape(n),
            means=means,
            precisions_cholesky=factors,
            category_probabilities=tuple(
                levels.reshape(n, -1) for levels in laws.levels.probabilities(values)
            ),
            further={
                variable.name: values[variable.name].reshape(n, *variable.shape[1:])
                for law in laws.further
                for variable in law.variables
            },
        )


def _wide(specification: MixtureSpecification, n_points: int) -> MixtureSpecification:
    """Structure of so many mixtures side by side."""
    return MixtureSpecification(
        n_features=specification.n_features,
        levels=specification.levels,
        component_class=(0,) * (n_points * specification.n_components),
        covariance_type=specification.shape,
        further=specification.further,
    )

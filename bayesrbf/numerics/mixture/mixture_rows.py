"""A mixture given a table: what every log posterior over its rows shares."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.side_by_side import MixturePredictor, SideBySide
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable

WITNESSES: Final = 500
"""Most rows that are used to tell components apart."""


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
        """Point in the user's units at given coordinates."""
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
        """Rows by which components are told apart: 500 of them serve as well as all."""
        n_obs = self._observations.n_obs
        spread = np.linspace(0, n_obs - 1, min(n_obs, WITNESSES)).astype(np.intp)
        return SideBySide(self._observations.take(spread), self.points)

    def predictor(self, observations: Observations) -> Predictor:
        """Prepare new rows, in standard units, for predictions at many points.

        The result maps coordinates to class probabilities, and to the density in the user's units.
        """
        return MixturePredictor(observations, self.points)

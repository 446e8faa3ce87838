"""A mixture given a table: what every log posterior over its rows shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.side_by_side import SideBySide
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import MixtureSpecification

WITNESSES: Final = 500
"""Most rows by which components are told apart."""


class MixtureOnRows(MixturePoints, ABC):
    """Points of a mixture, its prior, and rows prepared for its E-step.

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
        super().__init__(specification, hyperparameters)
        self._prior = DeclaredPrior(self.standard, specification)
        self._observations = observations
        self._prepare_rows(many=False)
        # From standard units to the user's: of a row's log density, and of the means' prior.
        self._row_shift = log_units(observations, hyperparameters.units)
        self._prior_shift = 0.0
        if specification.n_features:
            log_scales = float(np.log(hyperparameters.scale).sum())
            self._prior_shift = -specification.n_components * log_scales

    @abstractmethod
    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        value : float
            Log density in nats, in the user's units.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates.
        """

    @abstractmethod
    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Log likelihood, or what stands in its place, of every row, not weighted.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            In nats, in the user's units.
        """

    def prepared_for_many(self) -> Self:
        """Prepare the same density for thousands of points, as samplers ask for.

        Returns
        -------
        MixtureOnRows
            The same density but for rounding, its rows in compiled kernels
            however few they are: loading these takes half a second once.
        """
        prepared = copy(self)
        prepared._prepare_rows(many=True)
        return prepared

    def _prepare_rows(self, many: bool) -> None:
        """Put the rows into the form that so many evaluations want."""
        self._expectation = prepare(self._observations, self.specification, many=many)

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
        return self.component_log_joints(theta[None])[0]

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs component"]:
        """What :meth:`component_log_joint` gives, at many points in one go.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_points, n_rows, n_components)
            ``log p(x_o, k)`` in nats, in standard units.
        """
        return self._witnesses.component_log_joints(thetas)

    @cached_property
    def _witnesses(self) -> SideBySide:
        """Rows by which components are told apart: so many do it as well as all."""
        n_obs = self._observations.n_obs
        spread = np.linspace(0, n_obs - 1, min(n_obs, WITNESSES)).astype(np.intp)
        return SideBySide(self._observations.take(spread), self)

    def predictor(
        self, observations: Observations
    ) -> Callable[[Float[np.ndarray, " coordinate"]], ClassPrediction]:
        """Prepare new rows for predictions at many points.

        Parameters
        ----------
        observations : Observations
            New rows, in standard units; labels and weights are not used.

        Returns
        -------
        MixturePredictor
            Maps coordinates to class probabilities and density, in the user's units.
        """
        return MixturePredictor(observations, self)


class MixturePredictor:
    """Class probabilities and density of some rows at any point.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels and weights play no part.
    points : MixturePoints
        Says which mixture belongs to coordinates.
    """

    def __init__(self, observations: Observations, points: MixturePoints) -> None:
        self._rows = SideBySide(observations, points)
        self._classes = points.specification.class_slices
        self._shift = log_units(observations, points.hyperparameters.units)

    def __call__(self, theta: Float[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict at one point.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ClassPrediction
            Of shape (n_obs, n_classes); the density is in the user's units.
        """
        many = self.at_all(theta[None])
        return ClassPrediction(many.log_probabilities[0], many.log_density[0])

    def at_all(self, thetas: Float[np.ndarray, "point coordinate"]) -> ClassPrediction:
        """Predict at many points.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ClassPrediction
            Of shape (n_points, n_obs, n_classes); the density is in the user's units.
        """
        log_joint = np.empty((len(thetas), self._shift.size, len(self._classes)))
        for some, by_class in self.by_block(thetas):
            log_joint[some] = by_class
        return ClassPrediction.of_joint(log_joint)

    def by_block(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "some obs label"]]]:
        """The same, some points at a time.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Yields
        ------
        slice
            Which points.
        ndarray of shape (n_some, n_obs, n_classes)
            Their class log joints, in nats, in the user's units.
        """
        for some, log_joints in self._rows.by_block(thetas):
            parts = [log_sum_exp(log_joints[..., part], axis=2)[0] for part in self._classes]
            yield some, np.stack(parts, axis=2) + self._shift[:, None]


def log_units(observations: Observations, units: Standardisation) -> Float[np.ndarray, " obs"]:
    """Log density of each row in the user's units less that in standard units.

    Parameters
    ----------
    observations : Observations
        Rows; what cells are observed matters, their values do not.
    units : Standardisation
        Location and scale of the real columns.

    Returns
    -------
    ndarray of shape (n_obs,)
        Minus the sum of the log scales of the observed cells, in nats.
    """
    observed = ~np.isnan(observations.real)
    return -(observed @ np.log(units.scale)) if observed.shape[1] else np.zeros(len(observed))

"""A fitted sparse discriminative mixture: what predicts and is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.estimators.sdgm.rows import completions
from bayesrbf.numerics.sdgm.basis import numbers_of, quadratic_basis
from bayesrbf.numerics.sdgm.prediction import drawn_log_probabilities, predict
from bayesrbf.order import Order
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.sdgm_parameters import Basis, QuadraticBasis, SDGMModes, SDGMParameters
from bayesrbf.specification import MixtureSpecification

PREDICTION_DRAWS = 64
"""Completions of a row with holes in each replicate of a prediction."""
POSTERIOR_DRAWS = 128
"""Completions of a row with holes under every draw of a posterior."""


@dataclass(frozen=True)
class FittedSDGM:
    """A fitted sparse discriminative mixture: what predicting needs and nothing else.

    Attributes
    ----------
    modes : SDGMModes
        Active weights of every mode, and their covariance.
    basis : QuadraticBasis or KernelBasis
        The intercept and the features that active weights of any mode use.
    features : ndarray of shape (n_features,)
        Number of each of them among all features.
    units : Standardisation
        Location and scale of the coordinates of a point.
    """

    modes: SDGMModes
    basis: Basis
    features: Int[np.ndarray, " feature"]
    units: Standardisation

    @property
    def parameters(self) -> SDGMParameters:
        """The most probable mode."""
        return self.modes.best

    def reordered(self, order: Order, specification: MixtureSpecification) -> FittedSDGM:
        """Put columns and classes in another order.

        Parameters
        ----------
        order : Order
            The order.
        specification : MixtureSpecification
            Columns as they are.

        Returns
        -------
        FittedSDGM
            The same mixture; features stay one after another as they were.
        """
        coordinates = order.coordinates(specification.levels)
        basis, features = self.basis, self.features
        if isinstance(basis, QuadraticBasis):
            places = np.append(np.argsort(coordinates), -1)
            basis = QuadraticBasis(np.sort(places[basis.factors], axis=1))
            levels = specification.reordered(order).levels
            features = numbers_of(basis, quadratic_basis(specification.n_features, levels))
        else:
            basis = replace(basis, exemplars=basis.exemplars.take(coordinates, 1))
        return FittedSDGM(
            SDGMModes(
                tuple(mode.reordered(order) for mode in self.modes.parameters),
                self.modes.probabilities,
            ),
            basis,
            features,
            Standardisation(self.units.location[coordinates], self.units.scale[coordinates]),
        )

    def with_one_mode(self) -> FittedSDGM:
        """Leave the other modes out.

        Returns
        -------
        FittedSDGM
            The most probable mode.
        """
        return replace(self, modes=self.modes.alone)

    def predict(
        self,
        companion: FittedMixture,
        rows: Observations,
        *,
        average: bool,
        temperature: float = 1.0,
        shift: Float[np.ndarray, " label"] | float = 0.0,
    ) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
        """Class probabilities of rows, and their numerical standard errors.

        Parameters
        ----------
        companion : FittedMixture
            Density of the columns, which completes rows with holes.
        rows : Observations
            Rows in the user's units.
        average : bool
            Over the Laplace posterior of the weights; else at its most probable mode.
        temperature : float
            Factor of the log probabilities under every draw and completion.
        shift : ndarray of shape (n_classes,), or 0
            Added to them: log ratio of the prevalences of use to those of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_obs, n_classes)
            Rows sum to one.
        error : ndarray of shape (n_obs, n_classes)
            Standard errors.
        """
        return predict(
            self.modes,
            self.basis,
            self.units,
            lambda replicate: completions(companion, rows, PREDICTION_DRAWS, replicate),
            average=average,
            temperature=temperature,
            shift=shift,
        )

    def drawn_log_probabilities(
        self, companion: FittedMixture, rows: Observations, *, average: bool
    ) -> Float[np.ndarray, "obs draw label"]:
        """Class log probabilities of which :meth:`predict` gives the mean.

        Parameters
        ----------
        companion : FittedMixture
            Density of the columns, which completes rows with holes.
        rows : Observations
            Rows in the user's units.
        average : bool
            Draw weights from their Laplace posterior; else they stay at its most
            probable mode.

        Returns
        -------
        ndarray of shape (n_obs, n_draws, n_classes)
            In nats.
        """
        return drawn_log_probabilities(
            self.modes,
            self.basis,
            self.units,
            lambda replicate: completions(companion, rows, PREDICTION_DRAWS, replicate),
            average=average,
        )

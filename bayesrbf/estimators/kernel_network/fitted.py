"""A fitted kernel network: what predicts, declares and is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.numerics.kernel_network.kernel_layer import EigenBasis
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import (
    INTERCEPT_SD,
    KernelNetworkLogPosterior,
    class_log_probabilities,
)
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, cell_moments
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.posterior.predictive import Predictor


@dataclass(frozen=True)
class FittedKernelNetwork:
    """A fitted kernel network: what predicting needs and nothing else.

    Attributes
    ----------
    companion : FittedMixture
        Gives missing cells their distributions.
    basis : EigenBasis
        The hidden layer.
    theta : ndarray of shape (dimension,)
        Output weights and intercepts.
    n_classes : int
        Number of classes.
    l2 : float
        Precision of the prior of the output weights.
    """

    companion: FittedMixture
    basis: EigenBasis
    theta: Float[np.ndarray, " coordinate"]
    n_classes: int
    l2: float

    def features(self, rows: Observations) -> Float[np.ndarray, "obs basis"]:
        """Hidden layer of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_basis)
            Features.
        """
        return self.basis.features(cells_of(rows, self.companion))

    def log_posterior(self, rows: Observations) -> KernelNetworkLogPosterior:
        """The log posterior of the output weights given labelled rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        KernelNetworkLogPosterior
            Over output weights and intercepts; the hidden layer is held.
        """
        return KernelNetworkLogPosterior(
            self.features(rows), rows.labels, rows.weights, self.n_classes, self.l2
        )

    def class_log_joint(self, cells: CellMoments) -> Float[np.ndarray, "row label"]:
        """Log class probabilities at the fitted point.

        Parameters
        ----------
        cells : CellMoments
            Rows as the kernel sees them: what :func:`cells_of` gives.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log probabilities in nats.
        """
        features = self.basis.features(cells)
        return class_log_probabilities(features, self.theta, self.n_classes)

    def predictor(self, rows: Observations) -> Predictor:
        """Prepare rows for the log joint of class and row under any output weights.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        callable
            Maps coordinates to ``log p(c | x_o) + log p(x_o)`` of shape
            (n_obs, n_classes); the density is the companion's.
        """
        features = self.features(rows)
        density = np.logaddexp.reduce(self.companion.class_log_joint(rows), axis=1)
        density += self.companion.log_unit(rows)
        return lambda theta: (
            class_log_probabilities(features, theta, self.n_classes) + density[:, None]
        )

    def outputs(self, classes: Shaped[np.ndarray, " label"]) -> Shaped[np.ndarray, " output"]:
        """Classes that have output weights: all, or the second of two.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Class labels.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Class labels.
        """
        return classes[1:] if classes.size == 2 else classes

    def declare(
        self,
        rows: Observations,
        classes: Shaped[np.ndarray, " label"],
        obs_names: Shaped[np.ndarray, " obs"],
    ) -> pm.Model:
        """Declare the graph of the output layer on the hidden layer of rows.

        Parameters
        ----------
        rows : Observations
            Labelled rows in the user's units.
        classes : ndarray of shape (n_classes,)
            Class labels.
        obs_names : ndarray of shape (n_obs,)
            Names of the rows.

        Returns
        -------
        pymc.Model
            Free variables ``coefficients`` and ``intercepts``.
        """
        from bayesrbf.models import declare_kernel_network

        return declare_kernel_network(
            self.features(rows),
            rows.labels,
            rows.weights,
            class_names=classes.tolist(),
            weight_precision=float(self.l2),
            intercept_sd=INTERCEPT_SD,
            obs_names=obs_names.tolist(),
        )


def cells_of(rows: Observations, companion: FittedMixture) -> CellMoments:
    """Rows as the kernel sees them.

    Parameters
    ----------
    rows : Observations
        Rows in the user's units.
    companion : FittedMixture
        Gives missing cells their distributions.

    Returns
    -------
    CellMoments
        Cells with their moments, in standard units.
    """
    standard = companion.standardise(rows)
    return cell_moments(standard, companion.parameters, companion.specification)

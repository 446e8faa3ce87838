"""A fitted RBF network: what predicts and is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf import names
from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.numerics.completion import with_holes
from bayesrbf.numerics.rbf_network.completed import completed_linear, mean_log_probabilities
from bayesrbf.numerics.rbf_network.log_posterior import RBFNetworkLogPosterior
from bayesrbf.numerics.rbf_network.output import Output
from bayesrbf.numerics.rbf_network.rows import Network
from bayesrbf.numerics.rbf_network.schemes import imputed
from bayesrbf.order import Order
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.rbf_parameters import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)

if TYPE_CHECKING:
    from bayesrbf.posterior.predictive import Predictor

COMPLETIONS = 64
"""Of a row with holes at the fitted point; a power of two."""
COMPLETIONS_OF_A_DRAW = 16
"""The same under every draw of a posterior."""


@dataclass(frozen=True)
class FittedNetwork:
    """A fitted network: what predicting needs and nothing else.

    Attributes
    ----------
    specification : RBFNetworkSpecification
        Structure of the network.
    hyperparameters : RBFNetworkHyperparameters
        Resolved prior, in the user's units.
    parameters : RBFNetworkParameters
        The fitted point, in standard units.
    impute : bool
        Whether missing cells are filled in rather than summed out.
    integrate : bool
        Whether rows with holes are predicted by the mean over their completions, and not by
        their features.
    order : Order
        The canonical order of columns and mixtures, in which rows are completed.
    """

    specification: RBFNetworkSpecification
    hyperparameters: RBFNetworkHyperparameters
    parameters: RBFNetworkParameters
    impute: bool
    integrate: bool
    order: Order

    @property
    def n_features(self) -> int:
        """Width of the hidden layer."""
        return self.specification.mixture.n_components

    @property
    def coefficients(self) -> Float[np.ndarray, "output component"]:
        """Output weights."""
        return self.parameters.coefficients

    @property
    def intercepts(self) -> Float[np.ndarray, " output"]:
        """Biases."""
        return self.parameters.intercepts

    @property
    def mixture(self) -> FittedMixture:
        """The hidden layer, without its outputs."""
        hidden, prior = self.specification.mixture, self.hyperparameters.mixture
        return FittedMixture(hidden, prior, self.parameters.mixture, self.order)

    @property
    def start(self) -> RBFNetworkParameters:
        """The fitted point with its mixture in the user's units, from where a fit may start."""
        return self.parameters.in_units(self.mixture.units)

    def prepare(self, rows: Observations) -> Observations:
        """Rows in standard units, filled in where the network does so.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        Observations
            What the hidden layer sees.
        """
        standard = self.mixture.standardise(rows)
        if not self.impute:
            return standard
        return imputed(standard, self.parameters.mixture, self.specification)

    def features(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Features of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            What the hidden layer tells the output layer.
        """
        network = Network(self.prepare(rows), self.specification)
        return network.features(self.parameters.mixture)

    def linear(self, rows: Observations) -> Float[np.ndarray, "obs output"]:
        """Linear outputs of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_outputs)
            ``f w + b``, a numeric response in standard units.
        """
        return Network(self.prepare(rows), self.specification).linear(self.parameters)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.
        temperature : float
            What they will be multiplied by: completions are calibrated one by one.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            In nats, up to a constant a row.
        """
        prepared = self.prepare(rows)
        if not self.integrates(prepared):
            return Network(prepared, self.specification).linear(self.parameters)
        return mean_log_probabilities(
            prepared,
            self.parameters,
            self.specification,
            draws=COMPLETIONS,
            temperature=temperature,
            order=self.order,
        )

    def integrates(self, prepared: Observations) -> bool:
        """Whether rows are predicted by the mean over completions.

        Parameters
        ----------
        prepared : Observations
            What the hidden layer sees.

        Returns
        -------
        bool
            False where no cell is missing.
        """
        return self.integrate and bool(with_holes(prepared).any())

    def completed_linear(
        self,
        prepared: Observations,
        point: RBFNetworkParameters,
        *,
        draws: int = COMPLETIONS,
        replicate: int = 0,
    ) -> Float[np.ndarray, "draw obs output"]:
        """Linear outputs of rows, of several completions where the network integrates.

        Parameters
        ----------
        prepared : Observations
            What the hidden layer sees.
        point : RBFNetworkParameters
            Point, in standard units.
        draws : int
            Completions of a row with holes, a power of two.
        replicate : int
            Which of the independent sets of draws.

        Returns
        -------
        ndarray of shape (n_draws or 1, n_obs, n_outputs)
            ``f w + b``, a numeric response in standard units.
        """
        if not self.integrates(prepared):
            return Network(prepared, self.specification).linear(point)[None]
        return completed_linear(
            prepared, point, self.specification, draws=draws, replicate=replicate, order=self.order
        )

    def log_posterior(self, rows: Observations, output: Output) -> RBFNetworkLogPosterior:
        """The declared joint on rows, in the graph's coordinates.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.
        output : Classes or Numbers
            Their responses.

        Returns
        -------
        RBFNetworkLogPosterior
            Log posterior.

        Raises
        ------
        ValueError
            If there is no such joint: several mixtures, or the hard link.
        """
        if not self.specification.shared or np.isinf(self.hyperparameters.link):
            raise ValueError(
                "A posterior needs one declared joint: shared=True and a finite link; this "
                "network has one mixture an output or the hard link, and is a point estimate only."
            )
        return RBFNetworkLogPosterior(
            self.prepare(rows), output, self.specification, self.hyperparameters
        )

    def point(self, log_posterior: RBFNetworkLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior.

        Parameters
        ----------
        log_posterior : RBFNetworkLogPosterior
            What :meth:`log_posterior` gives.

        Returns
        -------
        ndarray of shape (dimension,)
            Unconstrained coordinates.
        """
        return log_posterior.pack(self.start)

    def mixture_at(
        self, log_posterior: RBFNetworkLogPosterior, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The hidden layer at a draw.

        Parameters
        ----------
        log_posterior : RBFNetworkLogPosterior
            What :meth:`log_posterior` gives.
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        MixtureParameters
            In standard units.
        """
        return log_posterior.unpack(theta).mixture.standardised(self.mixture.units)

    def predictor(
        self,
        log_posterior: RBFNetworkLogPosterior,
        rows: Observations,
        temperature: float = 1.0,
    ) -> Predictor:
        """Prepare rows for the log joint of class and row at any point.

        Parameters
        ----------
        log_posterior : RBFNetworkLogPosterior
            What :meth:`log_posterior` gives.
        rows : Observations
            Rows in the user's units.
        temperature : float
            What log probabilities will be multiplied by.

        Returns
        -------
        callable
            Maps coordinates to an array of shape (n_obs, n_classes).
        """
        prepared = self.prepare(rows)
        completions = COMPLETIONS_OF_A_DRAW if self.integrates(prepared) else 0
        return log_posterior.predictor(prepared, completions, temperature, self.order)

    def coords(self, classes: Shaped[np.ndarray, " label"]) -> dict[str, np.ndarray]:
        """Names along dims of the output layer that are no names of components.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Class labels.

        Returns
        -------
        dict of str to ndarray
            The labels.
        """
        return {names.LABEL: classes}

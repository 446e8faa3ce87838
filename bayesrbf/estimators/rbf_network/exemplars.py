"""The training rows as hidden units, features="kernel", under the roof of RBF networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf import names
from bayesrbf.estimators.kernel_network.checks import check_kernel_arguments
from bayesrbf.estimators.kernel_network.fitted import FittedKernelNetwork, cells_of
from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import (
    KernelNetworkLogPosterior,
    output_layer,
)
from bayesrbf.numerics.rbf_network.elastic_net_output import Classes
from bayesrbf.parameters import MixtureParameters, Observations

if TYPE_CHECKING:
    from bayesrbf.posterior.predictive import Predictor

KERNEL = "kernel"
"""Value of ``features`` that makes the training rows the hidden layer."""
OF_KERNELS = ("kernel", "relevance")
"""Arguments that have a meaning there and nowhere else."""
OF_MIXTURES = (
    "scheme",
    "shared",
    "covariance_type",
    "link",
    "l1",
    "kappa",
    "grow",
    "hidden_cells",
    "n_init",
    "tol",
    "warm_start",
)
"""Arguments that have no meaning there."""


def check_hidden_layer(
    arguments: Mapping[str, Any], defaults: Mapping[str, Any], owner: str
) -> None:
    """Refuse arguments that mean nothing under the hidden layer that is asked for.

    Parameters
    ----------
    arguments : mapping of str to object
        Constructor arguments by name.
    defaults : mapping of str to object
        What they are where nothing is given.
    owner : str
        Name of the estimator, for messages.

    Raises
    ------
    ValueError
        If such an argument is not its default, or the kernel's own are out of range.

    Examples
    --------
    >>> defaults = {"kernel": "laplace", "relevance": 0.8}
    >>> given = {"features": None, "kernel": "gaussian", "relevance": 0.8}
    >>> check_hidden_layer(given, defaults, "RBFNetworkClassifier")
    Traceback (most recent call last):
    ValueError: RBFNetworkClassifier(kernel='gaussian') goes with features='kernel'; ...
    """
    exemplars = arguments["features"] == KERNEL
    for name in OF_MIXTURES if exemplars else OF_KERNELS:
        value = arguments[name]
        if _alike(value, defaults[name]):
            continue
        rest = (
            "means nothing with features='kernel', whose hidden units are the training rows; "
            f"leave it at {defaults[name]!r}."
            if exemplars
            else f"goes with features='kernel'; received features={arguments['features']!r}."
        )
        raise ValueError(f"{owner}({name}={value!r}) {rest}")
    if exemplars:
        check_kernel_arguments(arguments, owner)


def _alike(value: object, default: object) -> bool:
    """Whether an argument is its default; what cannot be compared is not."""
    return value is default or (isinstance(value, str | float | int) and value == default)


@dataclass(frozen=True)
class ExemplarNetwork:
    """A kernel network, answering to what RBF networks are asked for.

    Attributes
    ----------
    network : FittedKernelNetwork
        What predicts.
    """

    network: FittedKernelNetwork

    @property
    def mixture(self) -> FittedMixture:
        """The companion, which says what missing cells may hold."""
        return self.network.companion

    @property
    def n_features(self) -> int:
        """Width of the hidden layer."""
        return self.network.basis.n_basis

    @property
    def coefficients(self) -> Float[np.ndarray, "output basis"]:
        """Output weights; of two classes, those of the second."""
        return output_layer(self.network.theta, self.n_features)[0]

    @property
    def intercepts(self) -> Float[np.ndarray, " output"]:
        """Biases."""
        return output_layer(self.network.theta, self.n_features)[1]

    def features(self, rows: Observations) -> Float[np.ndarray, "obs basis"]:
        """Features of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_basis)
            Eigenfunctions of the kernel.
        """
        return self.network.features(rows)

    def class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Linear outputs up to a constant a row.
        """
        return self.network.class_log_joint(cells_of(rows, self.network.companion))

    def log_posterior(self, rows: Observations, output: Classes) -> KernelNetworkLogPosterior:
        """The log posterior of the output weights; hidden layer and companion are held.

        Parameters
        ----------
        rows : Observations
            Rows in the user's units.
        output : Classes
            Their classes.

        Returns
        -------
        KernelNetworkLogPosterior
            Log posterior.
        """
        return self.network.log_posterior(replace(rows, labels=output.labels))

    def point(self, log_posterior: KernelNetworkLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted output weights.

        Parameters
        ----------
        log_posterior : KernelNetworkLogPosterior
            What :meth:`log_posterior` gives.

        Returns
        -------
        ndarray of shape (dimension,)
            Output weights, then intercepts.
        """
        return self.network.theta

    def mixture_at(
        self, log_posterior: KernelNetworkLogPosterior, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The companion, which no draw changes.

        Parameters
        ----------
        log_posterior : KernelNetworkLogPosterior
            What :meth:`log_posterior` gives.
        theta : ndarray of shape (dimension,)
            Output weights, then intercepts.

        Returns
        -------
        MixtureParameters
            In standard units.
        """
        return self.mixture.parameters

    def predictor(self, log_posterior: KernelNetworkLogPosterior, rows: Observations) -> Predictor:
        """Prepare rows for the log joint of class and row under any output weights.

        Parameters
        ----------
        log_posterior : KernelNetworkLogPosterior
            What :meth:`log_posterior` gives.
        rows : Observations
            Rows in the user's units.

        Returns
        -------
        callable
            Maps coordinates to an array of shape (n_obs, n_classes).
        """
        return self.network.predictor(rows)

    def coords(self, classes: Shaped[np.ndarray, " label"]) -> dict[str, np.ndarray]:
        """Names along the dims of the output layer.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Class labels.

        Returns
        -------
        dict of str to ndarray
            Labels, eigenfunctions, and the classes that have weights.
        """
        return {
            names.LABEL: classes,
            names.BASIS: np.arange(self.n_features),
            names.OUTPUT: self.network.outputs(classes),
        }

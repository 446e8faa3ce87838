"""What a fitted kernel network can do as an estimator: its posterior, and its hidden layer."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bayesrbf import names
from bayesrbf.estimators.companion import CompanionClassifier
from bayesrbf.estimators.describing import constant_data, coordinates, observed_data
from bayesrbf.estimators.kernel_network.fitted import FittedKernelNetwork, cells_of
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import KernelNetworkLogPosterior
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.posterior.predictive import Predictor


class KernelNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CompanionClassifier):
    """Base of the classifier; it has the arguments and the fit."""

    _network: FittedKernelNetwork

    _STATE: ClassVar[dict[str, type | UnionType]] = CompanionClassifier._STATE | {
        "_n_features_out": int,
        "_network": FittedKernelNetwork,
        "relevance_": np.ndarray,
    }

    # ---- the hooks of a posterior

    def _log_posterior(self) -> KernelNetworkLogPosterior:
        """The log posterior of the output weights given the training rows."""
        return self._network.log_posterior(self._rows)

    def _map(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted output weights."""
        return self._network.theta

    def _predictor(self, log_posterior: Any) -> Callable[[Observations], Predictor]:
        """Prepares rows: class probabilities under any weights, times the companion's density."""
        return self._network.predictor

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Log class probabilities at the fitted point."""
        return self._network.class_log_joint(cells_of(rows, self._companion))

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        structure = self._companion.specification
        coords = {
            **coordinates(self._columns, structure, self._kept, self.classes_),
            names.BASIS: np.arange(self._n_features_out),
            names.OUTPUT: self._network.outputs(self.classes_),
        }
        return Description(coords, observed_data(self._rows), constant_data(self._rows))

    # ---- rows

    def transform(self, X: object) -> Float[np.ndarray, "obs basis"]:
        """Hidden layer: the leading eigenfunctions of the kernel.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.

        Returns
        -------
        ndarray of shape (n_obs, n_basis)
            Features; inner products of rows are their kernel values, but for the
            eigenvalues left out.
        """
        return self._network.features(self._read(X))

    def declare(self) -> pm.Model:
        """Declare the graph of the output layer on the hidden layer of the training rows.

        Temperature and ``class_prior`` are not part of the graph.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``.
        """
        check_is_fitted(self)
        return self._network.declare(self._rows, self.classes_, self._kept)

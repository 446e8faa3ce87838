"""What a fitted RBF network of classes can do: probabilities, new rows, its graph."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.classifier import Labels, PosteriorClassifier
from bayesrbf.estimators.rbf_network.base import RBFNetworkEstimator
from bayesrbf.estimators.rbf_network.exemplars import ExemplarNetwork
from bayesrbf.numerics.rbf_network.elastic_net_output import Classes
from bayesrbf.numerics.sampling import draw_categories
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayesrbf.posterior.predictive import Predictor


class ClassNetwork(PosteriorClassifier, RBFNetworkEstimator):
    """Base of the classifier; it has the arguments and the fit."""

    _STATE: ClassVar[dict[str, type | UnionType]] = (
        RBFNetworkEstimator._STATE | PosteriorClassifier._STATE
    )

    def _output(self, rows: Observations) -> Classes:
        """Labels of training rows."""
        return Classes(rows.labels)

    def _responses(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Class codes of training rows, NaN where hidden."""
        return np.where(rows.labels >= 0, rows.labels, np.nan)

    @property
    def coef_(self) -> Float[np.ndarray, "label component"]:
        """Output weights."""
        return self._network.coefficients

    @property
    def intercept_(self) -> Float[np.ndarray, " label"]:
        """Biases."""
        return self._network.intercepts

    # ---- the hooks of a classifier

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        return RBFNetworkEstimator._read(self, X)

    def _predictor(self, log_posterior: Any) -> Callable[[Observations], Predictor]:
        """Prepares rows for the class log joint at many points."""
        network = self._network
        if isinstance(network, ExemplarNetwork):
            return lambda rows: network.predictor(log_posterior, rows)
        return lambda rows: network.predictor(log_posterior, rows, self.temperature_)

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point, up to a constant."""
        if isinstance(self._network, ExemplarNetwork):
            return self._network.class_log_joint(rows)
        return self._network.class_log_joint(rows, self.temperature_)

    def _class_shares(
        self, log_posterior: Any, theta: Float[np.ndarray, "chain draw coordinate"]
    ) -> Float[np.ndarray, "chains draws label"]:
        """Those of the training table, whatever the draw."""
        return self._fitted_shares()[None, None]

    def _fitted_shares(self) -> Float[np.ndarray, " label"]:
        """Weighted shares of the labelled training rows, or what the companion has."""
        if isinstance(self._network, ExemplarNetwork):
            return self._network.mixture.parameters.class_probabilities
        known = self._rows.labels >= 0
        labels, weights = self._rows.labels[known], self._rows.weights[known]
        counts = np.bincount(labels, weights=weights, minlength=self.classes_.size)
        return counts / counts.sum()

    def sample(self, n_samples: int = 1) -> tuple[Any, Labels]:
        """Draw new rows from the hidden layer, and their classes from the output layer.

        Parameters
        ----------
        n_samples : int
            Number of rows.

        Returns
        -------
        X : same container as the ``X`` of ``fit``
            Rows at the fitted point.
        y : ndarray of shape (n_samples,)
            Their classes.
        """
        check_is_fitted(self)
        rows, _ = self._draw(n_samples, self._network.mixture.parameters)
        probabilities = self.predict_proba(rows)
        rng = np.random.default_rng(self._seed)
        return rows, self.classes_[draw_categories(probabilities, rng)]

    def declare(self, coefficients: Literal["signed", "halves"] = "signed") -> pm.Model:
        """Declare the graph of the joint scheme on the training rows.

        With ``features="kernel"`` that of the output layer on the hidden one.
        Temperature and ``class_prior`` are not part of the graph.

        Parameters
        ----------
        coefficients : {"signed", "halves"}
            Output weights under the Laplace x normal density, as posteriors have
            them; or in two bounded halves, as the mode is found.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``.

        Raises
        ------
        ValueError
            If the network has no declared joint.
        """
        check_is_fitted(self)
        if isinstance(self._network, ExemplarNetwork):
            if coefficients != "signed":
                raise ValueError(
                    f"declare(coefficients={coefficients!r}): with features='kernel' the output "
                    "weights have a normal prior and no halves; use 'signed'."
                )
            return self._network.network.declare(self._rows, self.classes_, self._kept)

        from bayesrbf.models import declare_rbf_network

        rows, specification, hyperparameters = self._declared(self._network)
        return declare_rbf_network(
            rows,
            rows.labels,
            specification,
            hyperparameters,
            coefficients=coefficients,
            class_names=self.classes_.tolist(),
            **self._axes(),
        )

    def predictive_check(self, draws: int = 100, *, prior: bool = False) -> xr.DataTree:
        """Tables drawn from the declared graph beside the training table.

        Parameters
        ----------
        draws : int
            Number of tables of every chain.
        prior : bool
            Draw the parameters from the prior and not from ``posterior_``.

        Returns
        -------
        xarray.DataTree
            As :meth:`bayesrbf.MixtureDensity.predictive_check` has it.

        Raises
        ------
        ValueError
            If ``features="kernel"``: its graph has no rows.
        """
        if isinstance(getattr(self, "_network", None), ExemplarNetwork):
            raise ValueError(
                "predictive_check() draws rows, and the graph of features='kernel' has none; "
                "to_datatree(X, y) has labels drawn for given rows."
            )
        return super().predictive_check(draws, prior=prior)

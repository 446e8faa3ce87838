"""What a fitted RBF network of numbers can do: means, intervals, new rows, its graph."""

from __future__ import annotations

import warnings
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.estimators.calibrating import split_responses
from bayesrbf.estimators.out_of_fold import hold_out
from bayesrbf.estimators.rbf_network.base import RBFNetworkEstimator
from bayesrbf.estimators.rbf_network.fitted import FittedNetwork
from bayesrbf.estimators.rbf_network.settings import DEFAULT_FEATURES
from bayesrbf.numerics.completion import with_holes
from bayesrbf.numerics.rbf_network.elastic_net_output import Numbers
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit
from bayesrbf.numerics.rbf_network.student_mixture import StudentMixture
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.posterior.noise import fit_noise
from bayesrbf.rbf_parameters import Features

if TYPE_CHECKING:
    import pymc as pm

NORMAL_NOISE = (1.0, np.inf)
"""Scale and degrees of freedom of noise as it was fitted."""


class NumberNetwork(RegressorMixin, RBFNetworkEstimator):
    """Base of the regressor; it has the arguments and the fit."""

    _default_features: ClassVar[dict[str, Features]] = DEFAULT_FEATURES | {"joint": "log_density"}

    _network: FittedNetwork
    _values: Float[np.ndarray, " value"]
    _response_units: Standardisation
    noise_scale_: float
    noise_df_: float

    _STATE: ClassVar[dict[str, type | UnionType]] = RBFNetworkEstimator._STATE | {
        "_network": FittedNetwork,
        "_values": np.ndarray,
        "_response_units": Standardisation,
        "noise_scale_": float,
        "noise_df_": float,
    }

    shared = True
    """A numeric response has one output, and so one mixture."""

    def _read_responses(
        self, X: object, y: object, weights: Float[np.ndarray, " obs"]
    ) -> np.ndarray:
        """Place of each response among their sorted values, -1 where hidden; their units."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
        check_consistent_length(X, numbers)
        if np.isinf(numbers).any():
            raise ValueError("y contains infinity; every response must be a number, or NaN.")
        known = ~np.isnan(numbers) & (weights > 0)
        if not known.any():
            raise ValueError(
                "y needs at least one response of positive weight; every one is NaN or has "
                "sample_weight 0."
            )
        self._values, places = np.unique(numbers[known], return_inverse=True)
        # From sorted distinct values, so that weight 2 is the row twice to the last bit.
        mass = np.bincount(places, weights=weights[known])
        self._response_units = table.standardisation(self._values[:, None], mass)
        codes = np.full(numbers.size, -1)
        codes[known] = places
        return codes

    def _output(self, rows: Observations) -> Numbers:
        """Responses of training rows, in standard units."""
        values = self._response_units.forward(self._responses(rows)[:, None])[:, 0]
        return Numbers(values, float(self._response_units.scale[0]))

    def _responses(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Responses of training rows in the user's units, NaN where hidden."""
        return np.where(rows.labels >= 0, self._values[np.maximum(rows.labels, 0)], np.nan)

    @property
    def coef_(self) -> Float[np.ndarray, " component"]:
        """Output weights, in the units of the response."""
        return self._response_units.scale[0] * self._network.parameters.coefficients[0]

    @property
    def intercept_(self) -> float:
        """Bias, in the units of the response."""
        bias = self._network.parameters.intercepts
        return float(self._response_units.backward(bias)[0])

    @property
    def noise_sd_(self) -> float:
        """Standard deviation of the response about its mean, at the fitted point."""
        return float(self._response_units.scale[0] * self._network.parameters.noise_precision**-0.5)

    def _fit_rows(
        self,
        rows: Observations,
        seed: int,
        previous: FittedNetwork | None = None,
        *,
        fresh: bool = False,
    ) -> tuple[FittedNetwork, NetworkFit]:
        """Fit hidden and output layer to distinct rows."""
        return self._fit_mixture_network(rows, 1, "number", seed, previous, fresh=fresh)

    def _noise(self, calibrate: bool, cv: object) -> tuple[float, float]:
        """Scale and tails of residuals out of fold, in units of the fitted noise."""
        if not calibrate:
            return NORMAL_NOISE

        # Not in units of the fold's own noise: a network that meets every row has none.
        fitted_precision = self._network.parameters.noise_precision
        # Where the whole fit came to no end, folds that went on from it would know its rows.
        start = self._network if self.converged_ else None

        def residuals(fold: int, train: Observations, test: Observations) -> np.ndarray:
            network = self._fit_rows(train, self._seed + 1 + fold, start, fresh=True)[0]
            off = self._output(test).targets - network.linear(test)[:, 0]
            return off * fitted_precision**0.5

        splits = split_responses(cv, self._rows, self._kept, self._seed)
        if self._network.integrate:  # what is missing has draws of its own to speak for it
            splits = ((train, test.take(~with_holes(test))) for train, test in splits)
        held = hold_out(splits, residuals, classes=None)
        if held is None:
            warnings.warn(
                f"{type(self).__name__}(calibrate=True): cv={cv} holds out no row with a response, "
                "so intervals trust the training rows; give more rows, or other splits.",
                stacklevel=3,
            )
            return NORMAL_NOISE
        return fit_noise(held.values, held.weights)

    # ---- predicting

    def predict(
        self, X: object, return_std: bool = False
    ) -> Float[np.ndarray, " obs"] | tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Mean of the response of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.
        return_std : bool
            Whether to return the standard deviation as well.

        Returns
        -------
        mean : ndarray of shape (n_obs,)
            Posterior mean; at the fitted point where there are no draws.
        sd : ndarray of shape (n_obs,), only if ``return_std``
            Of a new response: noise as rows held out show it, or after :meth:`refine`
            the posterior's noise and spread.
        """
        predictive = self._predictive(X)
        if not return_std:
            return predictive.mean()
        return predictive.mean(), predictive.sd()

    def predict_interval(self, X: object, prob: float = 0.9) -> Float[np.ndarray, "obs 2"]:
        """Equal-tailed interval of a new response of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.
        prob : float
            Probability inside the interval, within (0, 1).

        Returns
        -------
        ndarray of shape (n_obs, 2)
            Lower and upper ends, in the units of the response.

        Raises
        ------
        ValueError
            If ``prob`` is no probability within (0, 1).
        """
        if not 0 < prob < 1:
            raise ValueError(f"predict_interval(prob=...) must be within (0, 1); received {prob}.")
        predictive = self._predictive(X)
        ends = [predictive.quantile(tail) for tail in ((1 - prob) / 2, (1 + prob) / 2)]
        return np.stack(ends, axis=1)

    def log_predictive_density(self, X: object, y: object) -> Float[np.ndarray, " obs"]:
        """Log density of given responses.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.
        y : array-like of shape (n_obs,)
            Their responses.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(y | x_o)`` in nats, in the units of the response.
        """
        return self._predictive(X).log_density(np.asarray(y, dtype=np.float64))

    def _predictive(self, X: object) -> StudentMixture:
        """What is said of the responses, in the user's units."""
        observations = self._read(X)  # has the words for an estimator that is not fitted
        rows = self._network.prepare(observations)
        location, scale = self._response_units.location[0], self._response_units.scale[0]
        if self._draws is None:
            linear = self._network.completed_linear(rows, self._network.parameters)[:, :, 0]
            scales = np.full(len(linear), self.noise_sd_ * self.noise_scale_)
            return StudentMixture(location + scale * linear, scales, self.noise_df_)
        log_posterior = self._log_posterior()
        units = self._network.hyperparameters.mixture.units
        thetas = self._draws.theta.reshape(-1, log_posterior.dimension)
        points = [log_posterior.unpack(theta).standardised(units) for theta in thetas]
        draws = [  # one completion a draw: together they are the posterior's
            self._network.completed_linear(rows, point, draws=1, replicate=replicate)[0, :, 0]
            for replicate, point in enumerate(points)
        ]
        noise = np.array([point.noise_precision for point in points]) ** -0.5
        return StudentMixture(location + scale * np.array(draws), scale * noise)

    def sample(self, n_samples: int = 1) -> tuple[Any, Float[np.ndarray, " row"]]:
        """Draw new rows from the hidden layer, and their responses from the output layer.

        Parameters
        ----------
        n_samples : int
            Number of rows.

        Returns
        -------
        X : same container as the ``X`` of ``fit``
            Rows at the fitted point.
        y : ndarray of shape (n_samples,)
            Their responses.
        """
        check_is_fitted(self)
        rows, _ = self._draw(n_samples, self._network.mixture.parameters)
        return rows, self._predictive(rows).draw(np.random.default_rng(self._seed))

    def declare(self, coefficients: Literal["signed", "halves"] = "signed") -> pm.Model:
        """Declare the graph of the joint scheme on the training rows.

        Parameters
        ----------
        coefficients : {"signed", "halves"}
            Output weights under the Laplace x normal density, or in two bounded halves.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``; output weights, intercept
            and noise precision are for the response in standard units.

        Raises
        ------
        ValueError
            If the network has no declared joint.
        """
        check_is_fitted(self)

        from bayesrbf.models import declare_rbf_network

        rows, specification, hyperparameters = self._declared(self._network)
        return declare_rbf_network(
            rows,
            self._responses(rows),
            specification,
            hyperparameters,
            coefficients=coefficients,
            response_units=self._response_units,
            **self._axes(),
        )

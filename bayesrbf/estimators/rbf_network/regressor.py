"""RBF networks that predict numbers: a mixture as hidden layer, Gaussian noise about a line."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.estimators.checks import Stored
from bayesrbf.estimators.rbf_network.base import RBFNetworkEstimator
from bayesrbf.estimators.rbf_network.fitting import (
    DEFAULT_FEATURES,
    SchemeName,
    fit_network,
)
from bayesrbf.numerics.rbf_network.normal_mixture import log_density, quantiles
from bayesrbf.numerics.rbf_network.output import Numbers
from bayesrbf.numerics.rbf_network.rows import Network
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.rbf_parameters import Features
from bayesrbf.specification import CovarianceType

if TYPE_CHECKING:
    import pymc as pm


class RBFNetworkRegressor(RegressorMixin, RBFNetworkEstimator):
    r"""Regression with a mixture as hidden layer.

    .. math::
       y \mid x_o \sim N(w' f(x_o) + b, 1 / \tau), \qquad
       p(x_o) = \sum_k \pi_k\, p(x_o \mid k)

    The mode of one declared joint, :math:`\log p(y \mid f(x)) + \kappa \log p(x)` plus
    priors; the published alternations work here as well. Missing cells are summed out;
    rows whose response is NaN teach the hidden layer.

    Parameters
    ----------
    n_components : int
        Components of the mixture.
    scheme : {"joint", "em_lr", "em_lr_link", "em_lr_link_k", "caetano"}
        As in :class:`bayesrbf.RBFNetworkClassifier`.
    features : {"responsibility", "density", "log_density"}, optional
        What a component tells the output layer. None: logarithms for the joint, which
        make a surface of second degree; else as for the classifier. Responsibilities
        make any surface, but ask for many rows.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Shape of the covariances.
    link : float, optional
        gamma of the Dirichlet link; None: the scheme's own.
    l1 : float
        Rate of the Laplace factor of the prior of output weights, the response in
        standard units.
    l2 : float
        Precision of its normal factor.
    kappa : float, optional
        Power of p(x) in the joint. None: one over the number of columns, and at least
        0.3 where cells are missing.
    grow : tuple of int, optional
        ``(step, maximum)`` of ``"em_lr_link_k"``.
    hidden_cells : {"marginalise", "impute"}
        Sum missing cells out, or fill them in by their conditional mean.
    prior : MixturePrior, optional
        Hyper-parameters of the hidden layer; ``MixturePrior()`` by default.
    n_init : int
        Number of starts of EM (of the alternation).
    max_iter : int
        Most iterations.
    tol : float
        The fit stops when an iteration gains at most ``tol`` nats per unit of row
        weight.
    warm_start : bool
        Start at the previous fit.
    random_state : int, RandomState or None
        Source of starts and draws; an int makes results repeatable.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing tells about its component.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. Frames: by dtype
        if None; arrays: none if None.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "advi", "nuts"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,)
        Output weights, in the units of the response.
    intercept_ : float
        Bias, in the units of the response.
    noise_sd_ : float
        Standard deviation of the response about its mean.
    conditional_path_ : ndarray of shape (n_iter,)
        ``log p(y | x)`` of the training rows at every iteration.
    n_falls_ : int
        Iterations that lowered the joint objective.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Iterations of the best start.
    lower_bound_ : float
        Joint objective at the fitted point, columns standardised.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = RBFNetworkRegressor(6, features="responsibility", random_state=0)
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> mean, sd = model.predict([[1.5], [np.nan]], return_std=True)
    >>> mean.shape, bool(0.7 < mean[0] < 1.3)
    ((2,), True)
    """

    _default_features: ClassVar[dict[str, Features]] = DEFAULT_FEATURES | {"joint": "log_density"}

    _values: Float[np.ndarray, " value"]
    _response_units: Standardisation

    _STATE: ClassVar[dict[str, type | UnionType]] = RBFNetworkEstimator._STATE | {
        "_values": np.ndarray,
        "_response_units": Standardisation,
    }

    shared = True
    """A numeric response has one output, and so one mixture."""

    def __init__(
        self,
        n_components: Stored[int] = 6,
        *,
        scheme: Stored[SchemeName] = "joint",
        features: Stored[Features | None] = None,
        covariance_type: Stored[CovarianceType] = "diag",
        link: Stored[float | None] = None,
        l1: Stored[float] = 0.0,
        l2: Stored[float] = 1.0,
        kappa: Stored[float | None] = None,
        grow: Stored[tuple[int, int] | None] = None,
        hidden_cells: Stored[Literal["marginalise", "impute"]] = "marginalise",
        prior: Stored[MixturePrior | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-6,
        warm_start: Stored[bool] = False,
        random_state: Stored[int | np.random.RandomState | None] = None,
        missingness: Stored[Literal["ignorable", "informative"]] = "ignorable",
        categorical_features: Any = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "nuts"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.scheme = scheme
        self.features = features
        self.covariance_type = covariance_type
        self.link = link
        self.l1 = l1
        self.l2 = l2
        self.kappa = kappa
        self.grow = grow
        self.hidden_cells = hidden_cells
        self.prior = prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.missingness = missingness
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit hidden and output layer, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells.
        y : array-like of shape (n_obs,)
            Responses; NaN is hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: weight 2 is the row twice.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument, the table, the responses or the weights cannot be used;
            the message says what and how to mend it.
        """
        weights = self._check(X, y, sample_weight)
        codes = self._read_responses(X, y, weights)
        previous = self.__dict__.get("_network") if self.warm_start else None
        self._read_rows(X, codes, weights)
        distinct, _ = table.distinct(self._rows)
        settings = self._settings()
        specification = settings.specification(
            self._rows.real.shape[1], self._columns.n_levels, 1, "number"
        )
        start = self._start(previous, specification)
        output = self._output(distinct)
        self._keep_fit(
            *fit_network(distinct, output, specification, self._prior(), settings, start)
        )
        return self._infer()

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
        """Standard deviation of the response about its mean."""
        return float(self._response_units.scale[0] * self._network.parameters.noise_precision**-0.5)

    # ---- predicting

    def predict(
        self, X: object, return_std: bool = False
    ) -> Float[np.ndarray, " obs"] | tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Mean of the response of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        return_std : bool
            Whether to return the standard deviation as well.

        Returns
        -------
        mean : ndarray of shape (n_obs,)
            Posterior mean; at the fitted point where there are no draws.
        sd : ndarray of shape (n_obs,), only if ``return_std``
            Of a new response: noise, and after :meth:`refine` the posterior's spread.
        """
        means, sds = self._predictive(X)
        mean = means.mean(axis=0)
        if not return_std:
            return mean
        return mean, np.sqrt(means.var(axis=0) + (sds**2).mean())

    def predict_interval(self, X: object, prob: float = 0.9) -> Float[np.ndarray, "obs 2"]:
        """Equal-tailed interval of a new response of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
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
        means, sds = self._predictive(X)
        ends = [quantiles(means, sds, tail) for tail in ((1 - prob) / 2, (1 + prob) / 2)]
        return np.stack(ends, axis=1)

    def log_predictive_density(self, X: object, y: object) -> Float[np.ndarray, " obs"]:
        """Log density of given responses.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        y : array-like of shape (n_obs,)
            Their responses.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(y | x_o)`` in nats, in the units of the response.
        """
        means, sds = self._predictive(X)
        return log_density(np.asarray(y, dtype=np.float64), means, sds)

    def _predictive(
        self, X: object
    ) -> tuple[Float[np.ndarray, "draw obs"], Float[np.ndarray, " draw"]]:
        """Means and standard deviations of the responses under every draw, user's units."""
        rows = self._read(X)
        location, scale = self._response_units.location[0], self._response_units.scale[0]
        if self._draws is None:
            linear = self._network.linear(rows)[:, 0]
            return (location + scale * linear)[None], np.array([self.noise_sd_])
        log_posterior = self._log_posterior()
        units = self._network.hyperparameters.mixture.units
        prepared = Network(self._network.prepare(rows), self._network.specification)
        thetas = self._draws.theta.reshape(-1, log_posterior.dimension)
        points = [log_posterior.unpack(theta) for theta in thetas]
        draws = np.array([prepared.linear(point.standardised(units))[:, 0] for point in points])
        noise = np.array([point.noise_precision for point in points]) ** -0.5
        return location + scale * draws, scale * noise

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
        rows, _ = self._draw(n_samples, self._network.parameters.mixture)
        means, sds = self._predictive(rows)
        rng = np.random.default_rng(self._seed)
        chosen = rng.integers(len(sds), size=n_samples)
        drawn = means[chosen, np.arange(n_samples)] + sds[chosen] * rng.normal(size=n_samples)
        return rows, drawn

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
        from bayesrbf.models import declare_rbf_network

        rows, specification, hyperparameters = self._declared()
        return declare_rbf_network(
            rows,
            self._responses(rows),
            specification,
            hyperparameters,
            coefficients=coefficients,
            response_units=self._response_units,
            **self._axes(),
        )

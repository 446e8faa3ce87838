"""RBF networks that predict numbers: a mixture as hidden layer, Gaussian noise about a line."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from bayesrbf import table
from bayesrbf.estimators.checks import Stored
from bayesrbf.estimators.rbf_network.number_network import NumberNetwork
from bayesrbf.fitted.network_settings import SchemeName
from bayesrbf.estimators.stored import unfitted
from bayesrbf.on_a_copy import works_on
from bayesrbf.priors import MixturePrior
from bayesrbf.rbf_parameters import Features
from bayesrbf.specification import CovarianceType


class RBFNetworkRegressor(NumberNetwork):
    r"""Regression with a mixture as hidden layer.

    .. math::
       y \mid x_o \sim N(w' f(x_o) + b, 1 / \tau), \qquad
       p(x_o) = \sum_k \pi_k\, p(x_o \mid k)

    The mode of one declared joint, :math:`\log p(y \mid f(x)) + \kappa \log p(x)` plus
    priors; the published alternations work here as well. Missing cells are summed out;
    rows whose response is NaN teach the hidden layer.

    The features of a row with holes, :math:`f(x_o)`, mean what the training rows made them
    mean. Where at least half of these were complete, a row with holes is therefore predicted
    by :math:`p(y | x_o) = \int p(y | x)\, p(x_m | x_o)\, dx_m` over draws of its missing
    cells, and its interval is as wide as what is not known; otherwise by :math:`f(x_o)`.

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
        Shape of the covariances. Log densities of a diagonal one are sums over columns,
        and so is what is predicted from them: take ``"full"`` where columns interact.
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
    calibrate : bool
        Describe the noise at the fitted point by residuals of rows held out, scale and
        tails of Student's t, and not by those of the rows that were fitted. Draws of
        :meth:`refine` speak for themselves.
    cv : int, splitter or iterable of index pairs
        Folds of the calibration.
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
        Standard deviation of the response about its mean, at the fitted point.
    noise_scale_ : float
        Factor of ``noise_sd_`` that residuals out of fold ask for; 1 if not calibrated.
    noise_df_ : float
        Degrees of freedom of these residuals; infinite (normal) if not calibrated.
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
        calibrate: Stored[bool] = True,
        cv: Any = 5,
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
        self.calibrate = calibrate
        self.cv = cv
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

    @works_on(unfitted)
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Fit hidden and output layer, calibrate, and draw if ``inference`` asks.

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
        self._read_rows(X, codes, weights)
        distinct, _ = table.distinct(self._rows)
        self._keep_fit(*self._fit_rows(distinct, self._seed))
        self.noise_scale_, self.noise_df_ = self._noise(self.calibrate, self.cv)
        return self._infer()

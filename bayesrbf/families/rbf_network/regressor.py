"""RBF networks that predict numbers: a mixture as hidden layer, Gaussian noise about a line."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import RegressorMixin

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.priors import MixturePrior, Status, Trace
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import CovarianceType, Observations
from bayesrbf.families.estimator import AnyFit, Estimator, fitting
from bayesrbf.families.hybrid.density import MixtureMethods
from bayesrbf.families.rbf_network.fitted import (
    RESPONSES,
    RULES,
    FittedNetwork,
    NetworkFit,
    NumberResponses,
    check_penalties,
    fit_to_rows,
    network_settings,
    noise_held_out,
    read_responses,
)
from bayesrbf.families.rbf_network.posterior import StudentMixture
from bayesrbf.families.rbf_network.records import Features
from bayesrbf.fit.arguments import Rule, one_of
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.held_out import Fold, HeldOut, hold_out, split_rows
from bayesrbf.fit.reading import Labels, check_table, read_rows
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.training import by_blocks
from bayesrbf.inference.draws import Draws, covers
from bayesrbf.mixture.missing import with_holes
from bayesrbf.reading.notes import warn

if TYPE_CHECKING:
    import xarray as xr


PROBABILITY: Final = Rule(
    "a probability within (0, 1)", kind=Real, low=0.0, high=1.0, closed="neither"
)


class RBFNetworkRegressor(RegressorMixin, MixtureMethods, Estimator):
    r"""Regression with a mixture as hidden layer.

    .. math::
       y \mid x_o \sim N(w' f(x_o) + b, 1 / \tau), \qquad
       p(x_o) = \sum_k \pi_k\, p(x_o \mid k)

    The fit is the mode of one declared joint, :math:`\log p(y \mid f(x)) + \kappa \log p(x)` plus
    priors. Missing cells are summed out; rows whose response is NaN teach the hidden layer.

    Where at least half of the training rows were complete, a row with holes is predicted by
    :math:`p(y | x_o) = \int p(y | x)\, p(x_m | x_o)\, dx_m` over draws of its missing cells, and
    its interval covers their uncertainty; otherwise by :math:`f(x_o)`, as in training.

    Under ``response="log"`` all this is said of :math:`\log y`: noise is in proportion to the
    response, and intervals are positive. Densities are per unit of :math:`y`, those of
    :math:`\log y` over :math:`y`.

    Parameters
    ----------
    n_components : int
        Components of the mixture.
    features : {"log_density", "responsibility", "density"}
        What a component tells the output layer. Logarithms make a surface of second degree;
        responsibilities make any surface, but need many rows.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Shape of the covariances. Log densities of a diagonal one are sums over columns,
        and so is what is predicted from them: take ``"full"`` where columns interact.
    l1 : float
        Rate of the Laplace factor of the prior of output weights, the response in standard units.
    l2 : float
        Precision of its normal factor.
    link, kappa : float
        As in :class:`bayesrbf.RBFNetworkClassifier`.
    response : {"identity", "log", "auto"}
        What is modelled: the response; its logarithm, for positive responses whose noise grows
        with them; or, if all are positive, the one with the higher log score of held-out rows, at
        twice the cost. ``status_`` has both scores.
    calibrate : bool
        Describe the noise at the fitted point by out-of-fold residuals, with scale and tails of
        Student's t, and not by residuals of the fitted rows. Draws of :meth:`refine` keep their
        own noise.
    cv : int, splitter or iterable of index pairs
        Folds of the calibration.
    prior : MixturePrior, optional
        Hyper-parameters of the hidden layer; ``MixturePrior()`` by default.
    n_init : int
        Number of starts of EM.
    max_iter : int
        Maximum number of iterations.
    tol : float
        The fit stops when an iteration gains at most ``tol`` nats per unit of row weight.
    random_state : int, RandomState or None
        Source of starts and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing tells about its component.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "advi", "nuts", "bootstrap"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    response_ : str
        What is modelled: ``"identity"`` or ``"log"``.
    coef_ : ndarray of shape (n_components,)
        Output weights, in the units of what is modelled.
    intercept_ : float
        Bias, in the units of what is modelled.
    noise_sd_ : float
        Standard deviation of what is modelled about its mean, at the fitted point.
    noise_scale_ : float
        Factor of ``noise_sd_`` that residuals out of fold ask for; 1 if not calibrated.
    noise_df_ : float
        Degrees of freedom of these residuals; infinite (normal) if not calibrated.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence. It does not say what rows without a response did.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Iterations of the best start.
    objective_ : float
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

    fitted_: FittedTable[FittedNetwork, None]

    _rules = RULES | {"response": one_of(*RESPONSES)}

    def __init__(
        self,
        n_components: Stored[int] = 6,
        *,
        features: Stored[Features] = "log_density",
        covariance_type: Stored[CovarianceType] = "diag",
        l1: Stored[float] = 0.0,
        l2: Stored[float] = 1.0,
        link: Stored[float] = 0.0,
        kappa: Stored[float | None] = None,
        response: Stored[Literal["identity", "log", "auto"]] = "identity",
        calibrate: Stored[bool] = True,
        cv: object = 5,
        prior: Stored[MixturePrior | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-6,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        missingness: Stored[Literal["ignorable", "informative"]] = "ignorable",
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.features = features
        self.covariance_type = covariance_type
        self.l1 = l1
        self.l2 = l2
        self.link = link
        self.kappa = kappa
        self.response = response
        self.calibrate = calibrate
        self.cv = cv
        self.prior = prior
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.missingness = missingness
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

    @fitting
    def fit(
        self, X: object, y: object, sample_weight: object = None, groups: object = None
    ) -> Self:
        """Fit hidden and output layer, calibrate, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells.
        y : array-like of shape (n_obs,)
            Responses; NaN is hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: a row of weight 2 counts twice, and no split parts it.
        groups : array-like of shape (n_obs,), optional
            Group of each row, such as its patient: no split that the fit makes has rows of one
            group on both sides, and the bootstrap weighs them together.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument, the table, the responses or the weights cannot be used.
        """
        reading = self._reading()
        weights = check_table(reading, X, y, sample_weight)
        owner = type(self).__name__
        candidates, codes = read_responses(X, y, weights, self.response, owner)
        training = read_rows(reading, X, Labels(codes, weights), groups)
        distinct, _ = table.distinct(training.rows)
        fits = [self._fit_rows(distinct, training, kind, training.seed) for kind in candidates]
        (model, fit), choice = fits[0], ""
        if self.calibrate or len(fits) > 1:
            model, fit, choice = self._judged(fits, training)
        outcome = fit.status, Trace(fit.joint)
        message = f"{fit.status.sentence} {choice}".rstrip()
        self.fitted_ = self._ended(training, model, None, outcome, message)
        return self

    def _check_arguments(self) -> None:
        """Check every argument, and both penalties together."""
        super()._check_arguments()
        check_penalties(type(self).__name__, self.get_params(deep=False))

    def _fit_rows(
        self,
        rows: Observations,
        training: TrainingTable,
        responses: NumberResponses,
        seed: int,
        previous: FittedNetwork | None = None,
    ) -> tuple[FittedNetwork, NetworkFit]:
        """Fit hidden and output layer to distinct rows."""
        settings = network_settings(self.get_params(deep=False), seed)
        levels = training.read_columns.n_levels
        return fit_to_rows(rows, levels, responses, self.prior, settings, previous)

    def _judged(
        self, fits: list[tuple[FittedNetwork, NetworkFit]], training: TrainingTable
    ) -> tuple[FittedNetwork, NetworkFit, str]:
        """Fit with the best held-out log score, its noise from held-out rows, and a message."""
        splits = list(
            split_rows(self.cv, training.rows, training.row_indices, training.seed, responses=True)
        )
        if fits[0][0].integrate:  # draws of missing cells widen the predictive law already
            splits = [(train, test.take(~with_holes(test))) for train, test in splits]
        residuals = [self._residuals(model, training, fit.status, splits) for model, fit in fits]
        found = [
            noise_held_out(model, held_out)
            for (model, _), held_out in zip(fits, residuals, strict=True)
            if held_out is not None
        ]
        if not found:
            warn(
                f"{type(self).__name__}(calibrate={self.calibrate}, response={self.response!r}): "
                f"cv={self.cv} holds out no row with a response, so intervals trust the training "
                "rows, and 'auto' is 'identity'; give more rows, or other splits."
            )
            return *fits[0], ""
        scores = [score for _, score in found]
        best = int(np.argmax(scores))
        model, fit = fits[best]
        if self.calibrate:
            model = replace(model, noise=found[best][0])
        if len(fits) == 1:
            return model, fit, ""
        of_number, of_log = scores
        choice = (
            f"response='auto' took {'log' if best else 'identity'!r}: the mean log score of "
            f"held-out rows is {of_log:.4g} nats with the logarithm, {of_number:.4g} without."
        )
        return model, fit, choice

    def _residuals(
        self, model: FittedNetwork, training: TrainingTable, status: Status, splits: list[Fold]
    ) -> HeldOut | None:
        """Residuals out of fold in units of the fitted noise; None where no row was held out."""
        responses, seed = model.number_responses, training.seed
        # Not in units of the fold's own noise: a network that meets every row has none.
        fitted_precision = model.parameters.noise_precision
        # Where the whole fit came to no end, folds that went on from it would know its rows.
        previous = model if status is Status.CONVERGED else None

        def residuals(fold: int, train: Observations, test: Observations) -> np.ndarray:
            network, _ = self._fit_rows(train, training, responses, seed + 1 + fold, previous)
            off = responses.output(test).targets - network.linear(test)[:, 0]
            return off * fitted_precision**0.5

        return hold_out(splits, residuals, classes=None)

    @property
    def noise_scale_(self) -> float:
        """Scale of the residuals of rows held out, in units of the fitted noise."""
        return self._fit.model.noise.scale

    @property
    def noise_df_(self) -> float:
        """Degrees of freedom of Student's t of the residuals; infinite for normal residuals."""
        return self._fit.model.noise.df

    @property
    def response_(self) -> str:
        """Scale of the linear model: the response (``"identity"``) or its logarithm (``"log"``)."""
        return "identity" if self._fit.model.number_responses.kind == "number" else "log"

    @property
    def coef_(self) -> Float[np.ndarray, " component"]:
        """Output weights, in units of the response or of its logarithm, as ``response_`` says."""
        return (
            self.fitted_.model.number_responses.units.scale[0]
            * self.fitted_.model.parameters.coefficients[0]
        )

    @property
    def intercept_(self) -> float:
        """Bias, in units of the response or of its logarithm, as ``response_`` says."""
        bias = self.fitted_.model.parameters.intercepts
        return float(self.fitted_.model.number_responses.units.backward(bias)[0])

    @property
    def noise_sd_(self) -> float:
        """Standard deviation of the response or its logarithm about the linear output."""
        precision = self.fitted_.model.parameters.noise_precision
        return float(self.fitted_.model.number_responses.units.scale[0] * precision**-0.5)

    # ---- predicting

    def predict(
        self, X: object, return_std: bool = False
    ) -> Float[np.ndarray, " obs"] | tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Mean of the response of each row, its median where the logarithm is modelled.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.
        return_std : bool
            Whether to return the standard deviation as well; not where the logarithm is modelled.

        Returns
        -------
        mean : ndarray of shape (n_obs,)
            Posterior mean or median; at the fitted point where there are no draws, or these are of
            an approximation that misses part of the posterior, of which :meth:`refine` warns.
        sd : ndarray of shape (n_obs,), only if ``return_std``
            Of a new response: noise as rows held out show it, or after :meth:`refine`
            the posterior's noise and spread.

        Raises
        ------
        ValueError
            If a standard deviation is asked for and the logarithm is modelled. With tails of
            Student's t the response has none, and no mean either.
        """
        if return_std and self.response_ == "log":
            raise ValueError(
                f"{type(self).__name__}.predict(return_std=True) needs a response that is modelled "
                "itself; here its logarithm is, and the response has no standard deviation. "
                "predict_interval has its intervals, uncertainty the deviation of the logarithm."
            )
        predictive = self._predictive(X)
        return (predictive.centre(), predictive.sd()) if return_std else predictive.centre()

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
            Lower and upper ends, in the units of the response. Where every response of training was
            positive, none is below 0.

        Raises
        ------
        ValueError
            If ``prob`` is no probability within (0, 1).
        """
        PROBABILITY.check(prob, "predict_interval(prob=...)")
        return self._interval(self._predictive(X), prob)

    def _interval(self, predictive: StudentMixture, prob: float) -> Float[np.ndarray, "obs 2"]:
        """Intervals; of a number that was positive in all of training they end at 0 at least."""
        interval = predictive.interval(prob)
        positive = self.fitted_.model.number_responses.values[0] > 0
        return np.maximum(interval, 0.0) if positive else interval

    @by_blocks
    def uncertainty(self, X: object, prob: float = 0.9) -> xr.Dataset:
        """Mean, spread and interval of each row's response, and the novelty of the row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are integrated out.
        prob : float
            Probability inside the intervals, within (0, 1).

        Returns
        -------
        xarray.Dataset
            Over obs, in the units of the response: ``mean`` and ``sd`` (:meth:`predict`), the ends
            ``lower`` and ``upper`` of :meth:`predict_interval`, and ``sd_of_mean``, the part of
            ``sd`` that comes from missing cells and, after :meth:`refine`, from uncertainty about
            the parameters. Where the logarithm is modelled, ``median`` in place of ``mean``, and
            ``sd_of_log`` and ``sd_of_mean_of_log`` of the logarithm. ``log_density`` of the cells
            in nats; :meth:`novelty`. ``to_dataframe()`` has one line for every row.

        Raises
        ------
        ValueError
            If ``prob`` is no probability within (0, 1).

        Examples
        --------
        >>> import numpy as np
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 60)
        >>> model = RBFNetworkRegressor(6, features="responsibility", random_state=0).fit(X, y)
        >>> told = model.uncertainty([[1.5], [40.0]]).to_dataframe()
        >>> bool(0.05 < told["sd"][0] < 0.2), bool(told["novelty"][1] > 0.99)
        (True, True)
        """
        from bayesrbf.fit.row_answers import RowAnswers

        PROBABILITY.check(prob, "uncertainty(prob=...)")
        fit = self._fit
        rows = new_rows(fit, X, holes=True)
        predictive = self._predictive_of(rows.cells)
        lower, upper = self._interval(predictive, prob).T
        centre, sd, sd_of_mean = predictive.figures
        figures = {
            centre: predictive.centre(),
            sd: predictive.sd(),
            "lower": lower,
            "upper": upper,
            sd_of_mean: predictive.sd_of_mean(),
            "log_density": fit.density.log_density(rows.cells),
            "novelty": fit.novelty(rows.cells),
        }
        return RowAnswers(
            {name: ((names.OBS,), values) for name, values in figures.items()},
            coords={names.OBS: rows.names},
            attrs={"prob": prob, "point_estimate": int(self._averaged is None)},
        )

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
            ``log p(y | x_o)`` in nats, in the units of the response whatever is modelled.
        """
        return self._predictive(X).log_density(np.asarray(y, dtype=np.float64))

    def _predictive(self, X: object) -> StudentMixture:
        """Predictive distribution of the responses, in the user's units."""
        return self._predictive_of(new_rows(self._fit, X, holes=True).cells)

    def _predictive_of(self, rows: Observations) -> StudentMixture:
        """Predictive distribution of the responses of rows that were read."""
        fit = self.fitted_
        draws = self._averaged
        log_posterior = None if draws is None else fit.log_posterior
        return fit.model.predictive_under(log_posterior, rows, draws)

    @property
    def _averaged(self) -> Draws | None:
        """Posterior draws that predictions average over; None where they miss posterior mass."""
        draws = self.fitted_.draws
        return None if draws is None or _misses(draws) else draws

    def _drawn(self, fit: AnyFit, method: str, options: dict[str, object]) -> AnyFit:
        """The fit with draws by ``method``; warns where predictions stay at the fitted point."""
        made = super()._drawn(fit, method, options)
        assert made.draws is not None
        if _misses(made.draws):
            from bayesrbf.inference.diagnose import judge_approximation

            (found,) = judge_approximation(made.draws.attributes)
            warn(
                f"{type(self).__name__}.refine({method!r}): Pareto k is {found.figure}. "
                f"{found.sentence} Predictions stay those of the fitted point; take "
                "refine('nuts'), over whose draws they are averaged."
            )
        return made

    def _answers_about(self, X: object) -> dict[str, np.ndarray]:
        """Answers about a row that are tried where a file is read."""
        return super()._answers_about(X) | {"predict_interval": self.predict_interval(X)}

    def transform(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Hidden layer: the features of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Responsibilities, densities or their logarithms at the fitted point.
        """
        fit = self._fit
        return fit.model.features(new_rows(fit, X).cells)

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
        rows, _ = self._draw(n_samples, self._fit.model.density.parameters)
        return rows, self._predictive(rows).draw(np.random.default_rng(self.seed_))


def _misses(draws: Draws) -> bool:
    """Whether diagnostics say that an approximation misses posterior mass."""
    return not (covers(draws.attributes) or np.isnan(float(draws.attributes["pareto_k"])))

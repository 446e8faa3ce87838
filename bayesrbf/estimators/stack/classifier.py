"""The calibrated default: kernel networks and mixtures, pooled on rows held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.artefact.estimator_state import unfitted, works_on
from bayesrbf.estimators.arguments import Stored
from bayesrbf.estimators.classifier import Classifier
from bayesrbf.estimators.out_of_core.training import of_sample, read_labelled
from bayesrbf.estimators.rehearsing import Rehearsal
from bayesrbf.estimators.stack.bootstrap import StackRefits, bootstrap_stack
from bayesrbf.estimators.stack.drawing import MemberDraws, draw_members, left_at_point
from bayesrbf.estimators.stack.extra import extra_members, kin_of_extra
from bayesrbf.estimators.stack.fitted_stack import FittedStack, fit_stack
from bayesrbf.estimators.stack.fitting import StackSettings, default_folds, pools_of
from bayesrbf.estimators.stack.members import own_members
from bayesrbf.estimators.stack.places import places_held_out
from bayesrbf.estimators.stack.relevance import relevance_table
from bayesrbf.estimators.stack.unlabelled import gain_of_unlabelled
from bayesrbf.fitted.folds import split_rows
from bayesrbf.fitted.masking import masking_of
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.threads import on_one_blas_thread
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.results import Status, Trace

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

    from bayesrbf.posterior.predictive import ClassPosterior


class StackedClassifier(Classifier):
    r"""Calibrated pool of kernel networks, mixtures and whatever else is given.

    .. math:: p(c | x_o) \propto \Bigl(\sum_j w_j \, p_{j}(c | x_o)\Bigr)^t \pi_c^b, \quad
        p_j(c | x_o) \propto \tilde p_j(c | x_o)^{t_j}

    Every member is fitted without each fold in turn. Held-out rows are predicted as they are and
    with cells hidden. These predictions give temperatures, weights w and the pull b to the class
    shares, as functions of the share of hidden cells. Members are then fitted to all rows. Density,
    novelty and imputations come from a companion: three full Gaussians per class, no map.

    ====== ================================================================ =============
    member what it is                                                       reals mapped
    ====== ================================================================ =============
    K1     kernel network, Laplace, relevance 0.8, l2 = 1/10                half ranks
    K2     kernel network, Laplace, relevance 0, l2 = 1/30                  half ranks
    K3     kernel network, Gaussian, relevance 0.8, l2 = 1/10               half ranks
    SL     as K1, at a third of the length                                  half ranks
    AL     as K1, l2 = 1/30, rates by evidence                              half ranks
    VG10   as K3, rates by leave-one-out                                    half ranks
    VG100  as VG10, l2 = 1/100                                              half ranks
    VC100  as VG100, reals of 3 to 12 values as categories                  half ranks
    G1     one Gaussian a class, one covariance for all                     Yeo-Johnson
    G2     three Gaussians a class, full covariances                        Yeo-Johnson
    B1     as G1, by the blend log p(y|x) + 0.3 log p(x)                    Yeo-Johnson
    B2     three Gaussians a class, one covariance for all, by the blend    Yeo-Johnson
    ====== ================================================================ =============

    Parameters
    ----------
    members : {"default", "lite"} or sequence of str
        All but K3; or SL, AL, VG100, G2 and B1, which take less time; or names from the table.
        VC100 is in both where a real column has 3 to 12 values with ten rows each on average.
    extra : sequence of classifiers or (name, classifier) pairs, optional
        Further members, given the table as it is without the rows whose label is hidden.
    cv : int, splitter or iterable of index pairs, optional
        Folds; None: five, or ten below 200 labelled rows.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    unlabelled_weight : float
        Factor of the weight of rows without a label, which teach all but the pool; 0 drops them.
    prior : MixturePrior, optional
        Hyper-parameters of the mixtures; ``MixturePrior()`` by default.
    n_jobs : int, optional
        Processes that share the folds; one by default.
    random_state : int, RandomState or None
        Source of folds, starts and draws; an int makes results repeatable.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "bootstrap"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    members_ : tuple of str
        Names of the members; :meth:`member_table` has the spread of what follows.
    weights_, member_temperatures_ : ndarray of shape (n_members,)
        Their weights, which sum to one, and temperatures, for rows with all cells.
    temperature_ : float
        Temperature of the pool for such rows.
    relevance_ : pandas.DataFrame
        Rates of the columns (lines) over the largest of their kind, in the members that learn them.
    pointwise_ : tuple of str
        Members that stay at their fitted point when draws are made.
    posterior_ : xarray.DataTree
        Posterior of weights and temperatures; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence, and what rows without a label did: the gain in log score
        on some folds, fitted without them once more, and its standard error.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        1: members and pool are fitted one after another, once.
    lower_bound_ : float
        Log posterior density of weights and temperatures.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    References
    ----------
    .. [1] Yao, Vehtari, Simpson, Gelman (2018), Using stacking to average Bayesian
       predictive distributions, Bayesian Analysis 13, section 3.
    .. [2] Guo et al. (2017), On calibration of modern neural networks, ICML, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["a", "b"], 30)
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 3 * (y == "b")[:, None]
    >>> X[::4, 1] = np.nan
    >>> stack = StackedClassifier("lite", random_state=0).fit(X, y)
    >>> stack.predict([[0.1, np.nan], [np.nan, 3.1]])
    array(['a', 'b'], dtype='<U1')
    """

    model_: FittedStack
    member_temperatures_: Float[np.ndarray, " member"]
    members_: tuple[str, ...]
    pointwise_: tuple[str, ...]
    weights_: Float[np.ndarray, " member"]
    _member_draws: MemberDraws
    _refits: StackRefits | None
    _of_sample = True

    def __init__(
        self,
        members: Any = "default",
        *,
        extra: Any = None,
        cv: Any = None,
        class_prior: Any = None,
        unlabelled: Any = None,
        unlabelled_weight: Stored[float] = 1.0,
        prior: Stored[MixturePrior | None] = None,
        n_jobs: Stored[int | None] = None,
        random_state: Stored[int | np.random.RandomState | None] = None,
        categorical_features: Any = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "bootstrap"]] = "map",
    ) -> None:
        self.members = members
        self.extra = extra
        self.cv = cv
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.prior = prior
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.inference = inference

    @works_on(unfitted)
    @on_one_blas_thread
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Hold out, temper, pool, and fit all members to all rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells. A table out of memory (a Dask collection, a
            Parquet file by its path) stands for 20,000 rows of it, drawn at random.
        y : array-like of shape (n_obs,), or the name of a column out of memory
            Class labels; NaN and None are hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: weight 2 is the row twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        way = of_sample(self, read_labelled(self, X, y, sample_weight))
        settings = self._settings()
        cv = default_folds(self.rows_) if self.cv is None else self.cv
        folds = list(split_rows(cv, self.rows_, self.kept_, self.seed_))
        held_out, rates = settings.hold_out_folds(folds, self.classes_, self.n_jobs)
        told = gain_of_unlabelled(settings, folds, held_out, self.classes_, self.n_jobs)
        held, pools = pools_of(held_out, settings, type(self).__name__)
        self._copies = places_held_out(self.rows_, self.kept_, folds)
        self.model_ = fit_stack(table.distinct(self.rows_)[0], settings, pools, held, rates)
        self.members_ = self.pointwise_ = settings.names
        self.weights_, self.member_temperatures_ = pools[0].weights, pools[0].member_temperatures
        self.temperature_, self.calibration_ = pools[0].temperature, self.model_.calibration
        log_density = self.model_.log_density_at_point(self._log_posterior())
        self._report(Status.CONVERGED, Trace(np.array([log_density])))
        self.status_ = f"{self.status_} {told}".rstrip() + way
        self._member_draws, self._refits = (None,) * len(self.model_.members.own), None
        return self._infer()

    relevance_ = property(relevance_table)

    def _settings(self) -> StackSettings:
        """Which members are fitted, and to what."""
        extra = extra_members(self.extra, self.columns_, self._template)
        prior = MixturePrior() if self.prior is None else self.prior
        few = table.few_values(self.rows_)
        levels, n_classes = self.columns_.n_levels, self.classes_.size
        own = own_members(self.members, few)
        masking = masking_of(self.rows_, self.columns_, n_classes, self.seed_)
        return StackSettings(own, extra, levels, n_classes, prior, self.seed_, few, masking)

    @on_one_blas_thread
    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw weights and temperatures, and with them the parameters of the members.

        Members are drawn from their Laplace approximations. Those of other libraries or with more
        than 2,000 coordinates stay at their fitted point: ``pointwise_`` and a warning name them.

        Parameters
        ----------
        method : {"laplace", "nuts", "bootstrap"}
            How weights and temperatures are drawn. The bootstrap also refits the members, and
            counts how far they disagree: take it for intervals to act on.
        **options : object
            Passed on: ``draws`` (250), ``chains`` and more; for the bootstrap ``draws`` (200),
            ``refits`` of the members (25) that they share, ``random_state``, ``progress_bar``.

        Returns
        -------
        self
            With the draws in ``posterior_``.
        """
        return super().refine(method, **({} if method == "bootstrap" else {"draws": 250}) | options)

    @property
    def _rehearsal(self) -> Rehearsal:  # type: ignore[override]
        """Intervals of the bootstrap, and no teacher of the kind of a member of one's own."""
        return Rehearsal("bootstrap", kin_of_extra(self.extra))

    def _drawn(self, method: str, log_posterior: LogPosterior, options: dict[str, Any]) -> Draws:
        """Draws of weights and temperatures; the bootstrap fits the members anew, too."""
        if method != "bootstrap":
            return super()._drawn(method, log_posterior, options)
        fitted = self.model_, self._settings(), table.distinct(self.rows_)[0]
        drawn, self._refits = bootstrap_stack(*fitted, n_jobs=self.n_jobs, **options)
        return drawn

    def _keep(self, log_posterior: LogPosterior, raw: Draws) -> Self:
        """Hold draws of the stack, and as many of every member that can be drawn."""
        if raw.method == "bootstrap":
            self._member_draws, self.pointwise_ = (None,) * len(self.model_.members.own), ()
            return super()._keep(log_posterior, raw)
        self._refits = None
        chains, draws, _ = raw.theta.shape
        members = draw_members(self.model_.members, self.rows_, (chains, draws), self.seed_)
        # An interrupt leaves one of them fewer draws, and the others follow it.
        made = min((drawn.theta.shape[1] for drawn in members if drawn), default=draws)
        self._member_draws = tuple(drawn and drawn.first(made) for drawn in members)
        super()._keep(log_posterior, raw.first(made))
        self.pointwise_ = left_at_point(self.members_, members, type(self).__name__)
        return self

    def _calibrated(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """What the pool says: its temperatures are its own."""
        return self.model_.class_log_joint(rows)

    def _class_posterior(self) -> ClassPosterior:
        """Draws of the stack and of its members, joined; each has its own temperatures."""
        from bayesrbf.estimators.stack.stack_posterior import stack_posterior

        drawn = self.draws_, self._member_draws, self._refits
        return stack_posterior(self.model_, self.rows_, *drawn, self._log_ratio(), self.seed_)

    def declare(self) -> pm.Model:
        """Declare the graph of weights and temperatures on the rows held out.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``; ``class_prior`` is no part of it.
        """
        check_is_fitted(self)
        return self.model_.declare(self.rows_, self._axes)

    def member_table(self) -> pd.DataFrame:
        """Members with their weights, the spread of the weights, temperatures and scores.

        Returns
        -------
        pandas.DataFrame
            One row a member, one for the stack: ``weight``, its ``sd`` and ends of 90 % (``lower``,
            ``upper``), ``temperature``, held-out ``log_loss`` in nats (the stack's is optimistic).
        """
        check_is_fitted(self)
        return self.model_.member_table(self.rows_, self.seed_)

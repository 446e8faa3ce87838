"""Kernel network: training rows as hidden units, missing cells integrated out."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np
from jaxtyping import Float
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.priors import MixturePrior, Trace
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.classifier import Classifier, LogProbabilities
from bayesrbf.families.estimator import fitting
from bayesrbf.families.kernel_network.fitted import (
    FittedKernelNetwork,
    KernelSettings,
    Rates,
    fit_kernel_network,
)
from bayesrbf.families.kernel_network.kernels import KernelName
from bayesrbf.families.kernel_network.posterior import OutputFit
from bayesrbf.families.kernel_network.records import RateCriterion
from bayesrbf.fit.arguments import SHARED, Rule, integer, one_of, positive
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.drawing import Rehearsal
from bayesrbf.fit.reading import read_table
from bayesrbf.fit.table import FittedTable

if TYPE_CHECKING:
    import pandas as pd


class KernelNetworkClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Classifier):
    r"""Classifier whose hidden units are the training rows.

    .. math:: p(c | x_o) = \mathrm{softmax}(W f(x_o) + b)_c, \quad
        f(x_o)' f(x_o') \approx E[k(x, x') | x_o, x_o'], \quad
        W \sim N(0, 1 / \lambda)

    A missing cell is integrated out of the kernel in closed form under a companion
    mixture's conditional distribution given the observed cells of its row, at fit
    and at predict; a row without a single observed cell has the class frequencies of the
    labelled training rows. The features f are the leading eigenfunctions of the kernel. Rows
    without a label teach the companion and the eigenfunctions.

    The kernel falls along column j at the rate :math:`a_j`. Learned rates are fixed ones times
    factors, under log-normal priors. With class indicators R less the shares :math:`\pi` of the
    classes, distances :math:`D_j` of labelled rows, :math:`K = \exp(-\sum_j a_j D_j)` and row
    weights V they are the mode of the evidence of a Gaussian process on R [3]_, or of a
    pseudo-posterior, its leave-one-out log score [4]_,

    .. math:: N(R; 0, s K + \nu V^{-1}) \quad \text{or} \quad
        \prod_n \mathrm{softmax}\Bigl(t \Bigl(R_n - \frac{(G^{-1} R)_n}{(G^{-1})_{nn}}\Bigr)
        + \log \pi\Bigr)[y_n]^{v_n}, \quad G = K + \nu V^{-1},

    of four sub-samples of at most 300 rows, whose log rates are averaged (:doc:`/mathematics`).

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}
        ``exp(-sum_j a_j |d_j|)`` or ``exp(-sum_j a_j d_j^2 / 2)`` of the reals; levels
        that differ have the factor ``exp(-a_j)``.
    relevance : float
        Columns that tell nothing about the class keep ``1 - relevance`` of their
        rate; 0 treats all columns alike.
    rates : {"fixed", "evidence", "leave-one-out"}
        What the columns' rates are: fixed by ``relevance``, or learned from there.
    scale : float
        Length that all rates are divided by, fixed or learned: 1/3 is a short scale.
    l2 : float
        Precision lambda of the normal prior of the output weights; that of intercepts is very wide.
    n_basis : int
        Most eigenfunctions.
    n_exemplars : int
        Most training rows that carry them, chosen at random where there are more.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    unlabelled_weight : float
        Factor of the weight of rows without a label, which teach the kernel; 0 drops them.
    calibrate : bool
        Calibrate by out-of-fold log probabilities of rows as they are and with cells hidden.
    cv : int, splitter or iterable of index pairs
        Folds of the calibration, which learn rates anew. An integer assigns the rows of every class
        in turn; the only row of a class stays in every training fold.
    prior : MixturePrior, optional
        Hyper-parameters of the companion mixture; ``MixturePrior()`` by default.
    max_iter : int
        Maximum number of iterations of the search for the output weights.
    tol : float
        The search ends where no slope is above ``tol``, in nats per posterior standard
        deviation of a fit without information.
    random_state : int, RandomState or None
        Source of exemplars, folds and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing joins the kernel as a column.
        Probabilities and intervals are for new rows that come as the training rows came: the same
        population, cells missing for the same reasons. If cells of new rows will be missing, or
        measured, for other reasons, say so: ``"ignorable"``, or :meth:`assume_missingness`.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "nuts", "bootstrap"}
        Posterior of the output weights made by ``fit``; :meth:`refine` makes another
        later. Companion, kernel and eigenfunctions are held.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    rates_ : pandas.Series
        Rates of the columns, reals then categorical: what the log of the kernel loses a standard
        unit, or where levels differ. A column of rate 0 is not used.
    relevance_ : ndarray of shape (n_columns,)
        The same over the largest of its kind.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Iterations of the search for the output weights.
    objective_ : float
        Log posterior density of the output weights.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    References
    ----------
    .. [1] Smola, Vishwanathan, Hofmann (2005), Kernel methods for missing
       variables, AISTATS, section 2.
    .. [2] Williams, Barber (1998), Bayesian classification with Gaussian
       processes, IEEE PAMI 20, section 2.
    .. [3] Rasmussen, Williams (2006), Gaussian processes for machine learning,
       sections 5.1, 5.4 and 6.5.
    .. [4] Sundararajan, Keerthi (2001), Predictive approaches for choosing
       hyperparameters in Gaussian processes, Neural Computation 13, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0, 1.0], [0.2, np.nan], [3.0, 4.0], [np.nan, 4.2], [0.1, 0.8], [3.1, 3.9]]
    >>> y = ["a", "a", "b", "b", None, None]
    >>> model = KernelNetworkClassifier().fit(X, y)
    >>> model.predict([[0.1, np.nan], [np.nan, 4.1]])
    array(['a', 'b'], dtype=object)
    """

    fitted_: FittedTable[FittedKernelNetwork, None]

    _rules = SHARED | {
        "kernel": one_of(*get_args(KernelName)),
        "relevance": Rule("a number in [0, 1]", kind=Real, low=0.0, high=1.0, closed="both"),
        "rates": one_of("fixed", *get_args(RateCriterion)),
        "scale": positive(),
        "l2": positive(),
        "n_basis": integer(),
        "n_exemplars": integer(),
    }

    def __init__(
        self,
        kernel: Stored[KernelName] = "laplace",
        *,
        relevance: Stored[float] = 0.8,
        rates: Stored[Rates] = "fixed",
        scale: Stored[float] = 1.0,
        l2: Stored[float] = 0.1,
        n_basis: Stored[int] = KernelSettings.n_basis,
        n_exemplars: Stored[int] = KernelSettings.n_exemplars,
        class_prior: object = None,
        unlabelled: object = None,
        unlabelled_weight: Stored[float] = 1.0,
        calibrate: Stored[bool] = True,
        cv: object = 5,
        prior: Stored[MixturePrior | None] = None,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = KernelSettings.tol,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        missingness: Stored[Literal["ignorable", "informative"]] = "ignorable",
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.kernel = kernel
        self.relevance = relevance
        self.rates = rates
        self.scale = scale
        self.l2 = l2
        self.n_basis = n_basis
        self.n_exemplars = n_exemplars
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.calibrate = calibrate
        self.cv = cv
        self.prior = prior
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
        """Fit the companion, place the exemplars and find the output weights.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells.
        y : array-like of shape (n_obs,)
            Class labels; NaN and None are hidden.
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
            If an argument, the table, the labels or the weights cannot be used.
        """
        reading = self._reading()
        training = read_table(reading, X, y, sample_weight, groups)
        levels, n_classes = training.read_columns.n_levels, training.class_labels.size
        seed = training.seed
        prior = MixturePrior() if self.prior is None else self.prior

        def network(rows: Observations, seed: int) -> tuple[FittedKernelNetwork, OutputFit]:
            settings = self._settings(seed)
            return fit_kernel_network(rows, levels, n_classes, prior, settings)

        def held_out(fold: int, train: Observations, test: Observations) -> LogProbabilities:
            return network(train, seed + 1 + fold)[0].class_log_joint(test)

        model, fit = network(table.distinct(training.rows)[0], seed)
        calibration = self._calibration(training, held_out)
        outcome = fit.status, Trace(fit.joint)
        self.fitted_ = self._ended(training, model, None, outcome, calibration=calibration)
        return self

    def _settings(self, seed: int) -> KernelSettings:
        """Settings of the network and of its fit."""
        return KernelSettings(
            self.kernel,
            float(self.relevance),
            float(self.l2),
            self.n_basis,
            self.n_exemplars,
            float(self.tol),
            self.max_iter,
            seed,
            self.rates,
            float(self.scale),
        )

    # ---- rows

    @property
    def rates_(self) -> pd.Series:
        """Rate of every column by its name, reals then categorical."""
        import pandas as pd

        fit = self._fit
        columns = fit.columns.real_names + fit.columns.categorical_names
        return pd.Series(fit.model.rates, pd.Index(columns, name=names.COLUMN), name=names.RATES)

    @property
    def relevance_(self) -> Float[np.ndarray, " column"]:
        """Rates over the largest of their kind."""
        return self._fit.model.relevance

    @property
    def _n_features_out(self) -> int:
        """Width of the hidden layer."""
        return self._fit.model.n_features

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
        fit = self._fit
        return fit.model.features(new_rows(fit, X).cells)

    def __rehearsal__(self) -> Rehearsal:
        """Settings of rehearsals for this kind of classifier."""
        return Rehearsal(kin=("process",))  # whose mode it is

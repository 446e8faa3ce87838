"""RBF networks that classify: a mixture as hidden layer, a softmax as output layer."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.base.arrays import draw_categories
from bayesrbf.base.priors import MixturePrior, Trace
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import CovarianceType, Observations
from bayesrbf.families.classifier import Classifier, Labels, LogProbabilities
from bayesrbf.families.estimator import fitting
from bayesrbf.families.hybrid.density import MixtureMethods
from bayesrbf.families.rbf_network.fitted import (
    RULES,
    ClassResponses,
    FittedNetwork,
    NetworkFit,
    check_penalties,
    fit_to_rows,
    network_settings,
)
from bayesrbf.families.rbf_network.records import Features
from bayesrbf.fit.arguments import integer, number
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.reading import read_table
from bayesrbf.fit.table import FittedTable, TrainingTable


class RBFNetworkClassifier(MixtureMethods, Classifier):
    r"""Classifier with a mixture as hidden layer.

    .. math::
       p(c \mid x_o) = \mathrm{softmax}(w_c' f(x_o) + b_c), \qquad
       p(x_o) = \sum_k \pi_k\, p(x_o \mid k)

    The fit is the mode of one declared joint,
    :math:`\log p(y \mid f(x)) + \kappa \log p(x)` plus priors. Missing cells are summed out; rows
    without a label teach the hidden layer. If at least half of the labelled rows were complete, a
    new row with missing cells is predicted by the mean over completions from the hidden layer,
    because training has not seen its :math:`f(x_o)`.

    Parameters
    ----------
    n_components : int, optional
        Components of the mixture, 10 if None.
    features : {"log_density", "responsibility", "density"}
        What a component tells the output layer: the logarithm of p(x | k) per column, p(k | x) [2]_
        or p(x | k) [1]_. Logarithms make boundaries of second degree and do best on most tables;
        densities suit few columns. For training rows as hidden units see
        :class:`bayesrbf.KernelNetworkClassifier`.
    covariance_type : {"full", "tied", "diag", "spherical"}
        Shape of the covariances.
    l1 : float
        Rate of the Laplace factor of the prior of output weights, which makes exact zeros.
    l2 : float, optional
        Precision of its normal factor. None: 3 for logarithms of densities, 0.1 for others.
    link : float
        Strength :math:`\gamma` of the link [2]_, which pulls the weights of the components to the
        sizes of their output weights:
        :math:`\pi \mid w \sim \mathrm{Dirichlet}(a + \gamma |w| / \sum |w|)`; 0 is no link.
    kappa : float, optional
        Power :math:`\kappa` of p(x). None: 1 / n_columns, and at least 0.3 where cells are missing.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    unlabelled_weight : float
        Factor of the weight of rows without a label, which teach the hidden layer; 0 drops them.
    calibrate : bool
        Fit a temperature to out-of-fold log probabilities.
    cv : int, splitter or iterable of index pairs
        Folds of the calibration. An integer assigns the rows of every class in turn; the only row
        of a class stays in every training fold.
    prior : MixturePrior, optional
        Hyper-parameters of the hidden layer; ``MixturePrior()`` by default.
    n_init : int
        Number of starts of EM.
    max_iter : int
        Maximum number of iterations.
    tol : float
        The fit stops when an iteration gains at most ``tol`` nats per unit of row weight.
    random_state : int, RandomState or None
        Source of starts, folds and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"ignorable", "informative"}
        ``"informative"``: whether a cell is missing tells about its component.
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
    inference : {"map", "laplace", "advi", "nuts", "bootstrap"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_, intercept_ : ndarray of shape (n_classes, n_components) and (n_classes,)
        Output weights w and biases b.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    status_ : str
        How the fit ended, in a sentence. It does not say what rows without a label did.
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

    References
    ----------
    .. [1] Ferreira, Figueiredo (2006), Hybrid generative/discriminative training of
       radial basis function networks, ESANN.
    .. [2] Caetano (2018): responsibilities as features (eq. 20), the Dirichlet link
       (eq. 21).

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0, 1.0], [0.2, np.nan], [3.0, 4.0], [np.nan, 4.2], [0.1, 0.8], [3.1, 3.9]]
    >>> y = ["a", "a", "b", "b", None, None]
    >>> model = RBFNetworkClassifier(2, random_state=0).fit(X, y)
    >>> model.predict([[0.1, np.nan], [np.nan, 4.1]])
    array(['a', 'b'], dtype=object)
    """

    fitted_: FittedTable[FittedNetwork, None]

    _rules = RULES | {"n_components": integer(None), "l2": number(None)}

    def __init__(
        self,
        n_components: Stored[int | None] = None,
        *,
        features: Stored[Features] = "log_density",
        covariance_type: Stored[CovarianceType] = "diag",
        l1: Stored[float] = 0.0,
        l2: Stored[float | None] = None,
        link: Stored[float] = 0.0,
        kappa: Stored[float | None] = None,
        class_prior: object = None,
        unlabelled: object = None,
        unlabelled_weight: Stored[float] = 1.0,
        calibrate: Stored[bool] = True,
        cv: object = 5,
        prior: Stored[MixturePrior | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-8,
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
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
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
        seed = training.seed
        model, fit = self._fit_rows(table.distinct(training.rows)[0], training, seed)

        def held_out(fold: int, train: Observations, test: Observations) -> LogProbabilities:
            of_fold, _ = self._fit_rows(train, training, seed + 1 + fold)
            return of_fold.class_log_joint(test)

        calibration = self._calibration(training, held_out)
        outcome = fit.status, Trace(fit.joint)
        self.fitted_ = self._ended(training, model, None, outcome, calibration=calibration)
        return self

    def _check_arguments(self) -> None:
        """Check every argument, and both penalties together."""
        super()._check_arguments()
        check_penalties(type(self).__name__, self.get_params(deep=False))

    def _fit_rows(
        self, rows: Observations, training: TrainingTable, seed: int
    ) -> tuple[FittedNetwork, NetworkFit]:
        """Fit hidden and output layer to distinct rows."""
        responses = ClassResponses(training.class_labels.size)
        settings = network_settings(self.get_params(deep=False), seed)
        levels = training.read_columns.n_levels
        return fit_to_rows(rows, levels, responses, self.prior, settings)

    @property
    def coef_(self) -> Float[np.ndarray, "label component"]:
        """Output weights."""
        return self.fitted_.model.parameters.coefficients

    @property
    def intercept_(self) -> Float[np.ndarray, " label"]:
        """Biases."""
        return self.fitted_.model.parameters.intercepts

    def _answers_about(self, X: object) -> dict[str, np.ndarray]:
        """Answers about a row that are tried where a file is read."""
        uncertainty = self.uncertainty(X)["probability"].to_numpy()
        return super()._answers_about(X) | {"uncertainty": uncertainty}

    # ---- rows

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
        rows, _ = self._draw(n_samples, self._fit.model.density.parameters)
        probabilities = self.predict_proba(rows)
        rng = np.random.default_rng(self.seed_)
        return rows, self.classes_[draw_categories(probabilities, rng)]

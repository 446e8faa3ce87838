"""Exemplar classifiers on dissimilarities: every prototype is a row of the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from bayesrbf.estimators.checks import Stored, check_arguments, prevalence
from bayesrbf.estimators.median_lvq.dissimilarities import (
    GOWER,
    PRECOMPUTED,
    check_values,
    from_matrix,
    from_table,
    from_vectors,
    read_rows,
)
from bayesrbf.estimators.median_lvq.exemplar_classifier import ExemplarClassifier
from bayesrbf.estimators.median_lvq.fitting import (
    SearchSettings,
    candidates_of,
    check_choices,
    prototypes_per_class,
    search,
)
from bayesrbf.estimators.median_lvq.widths import choose_width, wider_ones, widths_to_try
from bayesrbf.estimators.stored import unfitted
from bayesrbf.estimators.table_estimator import LARGEST_SEED
from bayesrbf.exemplars import Dissimilarities, MedianLVQPrior
from bayesrbf.on_a_copy import works_on
from bayesrbf.solvers.pairwise import Metric

CHECKED: Final = ("calibrate", "handle_unknown", "max_iter", "n_init")
"""Arguments that other families have, too."""


class MedianLVQClassifier(ExemplarClassifier):
    r"""Classifier by dissimilarity to exemplars, which are rows of the training data.

    .. math:: p(c | x) = \frac{\sum_{j \in c} e^{-d(x, \theta_j) / \sigma^2}}
        {\sum_j e^{-d(x, \theta_j) / \sigma^2}}

    The dissimilarity may be any: it need be neither symmetric nor a metric. To predict, it
    has to be known to the exemplars alone (:attr:`exemplar_columns`).

    Parameters
    ----------
    n_prototypes : int or mapping of class to int
        Number of prototypes of every class.
    objective : {"rslvq", "glvq"}
        Log likelihood of the labels, or sum of Sato and Yamada's margins, which are no
        probabilities unless they are calibrated.
    optimizer : {"swap", "gem"}
        Best swap of an exemplar by the objective itself, after the published generalised
        EM; or that alone, which stops early.
    metric : "gower", "precomputed", str or callable
        ``"gower"``: tables of real and categorical columns with holes; a missing cell
        counts as the mean difference of two training rows in its column.
        ``"precomputed"``: X holds ``d(x_n, x_m)``, of rows n to training rows m. A name
        that scikit-learn knows, or a function of two rows, for arrays.
    sigma : "cv", float or "sample"
        Width of the kernel: by cross-validated log loss, fixed, or free under ``prior``.
    prior : MedianLVQPrior, optional
        Prior of sigma; ``MedianLVQPrior()`` by default.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1. Such a row tells
        nothing about the labels.
    unlabelled_candidates : bool
        Whether a row without a label may be an exemplar, of any class.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities where the model will be used, in the order of
        ``classes_``; None: those of the training table.
    calibrate : bool
        Fit a temperature to out-of-fold log probabilities (or margins).
    cv : int, splitter or iterable of index pairs
        Folds for sigma and for the temperature. An integer deals the rows of every
        class in turn; the only row of a class stays in every training fold.
    n_init : int
        Number of restarts.
    max_iter : int
        Most sweeps over the prototypes of a restart.
    random_state : int, RandomState or None
        Source of restarts, folds and draws; an int makes results repeatable.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns under ``metric="gower"``.
        Frames: by dtype if None; arrays: none if None.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict, under ``metric="gower"``.
    inference : {"map", "gibbs"}
        Posterior made by ``fit``; :meth:`refine` makes one later.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    exemplars_ : ndarray of shape (n_prototypes,)
        Row of ``fit``'s X that each prototype is.
    exemplar_classes_ : ndarray of shape (n_prototypes,)
        Class of each prototype.
    sigma_ : float or None
        Width of the kernel, in the square root of the dissimilarity's unit; None for GLVQ.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``. Its
        ``exemplars`` are positions along ``obs``, whose names are rows of ``fit``'s X.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Sweeps of the best restart, and its start.
    lower_bound_ : float
        Objective of the fitted point.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where X had names.

    Notes
    -----
    A prototype's update costs a few multiplications a row and candidate, in compiled code.
    Beside the training matrix (``n_obs**2`` numbers in the precision that it comes in; float32
    where it is computed here and would take more than 1 GiB) dissimilarities of labelled rows
    to candidates and their kernels are held in order of the classes where each takes at most
    512 MiB, else some megabytes.

    References
    ----------
    .. [1] Nebel, Hammer, Villmann (2014), Supervised generative models for learning
       dissimilarity data, ESANN, section 3.
    .. [2] Seo, Obermayer (2003), Soft learning vector quantization, Neural
       Computation 15, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0, "a"], [0.2, None], [3.0, "b"], [None, "b"], [0.1, "a"], [3.1, "b"]]
    >>> model = MedianLVQClassifier(sigma=0.5).fit(X, ["no", "no", "yes", "yes", "no", "yes"])
    >>> model.predict([[0.4, None], [None, "b"]])
    array(['no', 'yes'], dtype=object)

    Dissimilarities that come as a matrix are needed to the exemplars only:

    >>> words = np.array(["cat", "cart", "car", "dog", "dogs", "dig"])
    >>> def unlike(a, b):
    ...     return sum(x != y for x, y in zip(a.ljust(4), b.ljust(4)))
    >>> d = np.array([[unlike(a, b) for b in words] for a in words])
    >>> model = MedianLVQClassifier(1, metric="precomputed", sigma=1.0, random_state=0)
    >>> words[model.fit(d, ["c", "c", "c", "d", "d", "d"]).exemplar_columns]
    array(['cart', 'dogs'], dtype='<U4')
    >>> to_exemplars = [[unlike("curt", exemplar) for exemplar in ("cart", "dogs")]]
    >>> model.predict(model.from_exemplar_columns(to_exemplars))
    array(['c'], dtype=object)
    """

    def __init__(
        self,
        n_prototypes: Stored[int | Mapping[Any, int]] = 2,
        *,
        objective: Stored[Literal["rslvq", "glvq"]] = "rslvq",
        optimizer: Stored[Literal["swap", "gem"]] = "swap",
        metric: Stored[Metric] = GOWER,
        sigma: Stored[Literal["cv", "sample"] | float] = "cv",
        prior: Stored[MedianLVQPrior | None] = None,
        unlabelled: Any = None,
        unlabelled_candidates: Stored[bool] = False,
        class_prior: Any = None,
        calibrate: Stored[bool] = False,
        cv: Any = 5,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 100,
        random_state: Stored[int | np.random.RandomState | None] = None,
        categorical_features: Any = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "gibbs"]] = "map",
    ) -> None:
        self.n_prototypes = n_prototypes
        self.objective = objective
        self.optimizer = optimizer
        self.metric = metric
        self.sigma = sigma
        self.prior = prior
        self.unlabelled = unlabelled
        self.unlabelled_candidates = unlabelled_candidates
        self.class_prior = class_prior
        self.calibrate = calibrate
        self.cv = cv
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.categorical_features = categorical_features
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

    @works_on(unfitted)
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Find the exemplars, choose sigma, calibrate, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; under ``metric="precomputed"`` the square matrix of their
            dissimilarities, rows to columns.
        y : array-like of shape (n_obs,)
            Class labels; NaN and None are hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: weight 2 is the row twice.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If an argument, the rows, the labels or the weights cannot be used;
            the message says what and how to mend it.
        """
        owner, arguments = type(self).__name__, self.get_params(deep=False)
        check_choices(arguments, owner)
        check_arguments({name: arguments[name] for name in CHECKED}, owner)
        rows = read_rows(self, X, reset=True)
        validate_data(self, X, y, skip_check_array=True)
        weights: Float[np.ndarray, " obs"] = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        labels, weights = self._read_labels(rows, y, weights)
        self._prevalence = prevalence(self.class_prior, self.classes_, owner)
        self._seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        self._compare(rows, labels, weights)
        self._search()
        return self._infer()

    def _compare(
        self, X: Any, labels: Int[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
    ) -> None:
        """Dissimilarities of the training rows that weigh something."""
        if self.metric == PRECOMPUTED:
            training = from_matrix(X, labels, weights)
        elif self.metric == GOWER:
            training = from_table(
                X,
                labels,
                weights,
                categorical_features=self.categorical_features,
                handle_unknown=self.handle_unknown,
            )
        else:
            training = from_vectors(X, labels, weights, self.metric)
        check_values(training.values, type(self).__name__)
        self._source, self._kept = training.source, training.kept
        self._table = Dissimilarities(
            training.values,
            training.labels,
            training.weights,
            candidates_of(training.labels, self.classes_.size, self.unlabelled_candidates),
        )

    def _search(self) -> None:
        """Choose the width, find the exemplars, calibrate."""
        rows, owner = self._table, type(self).__name__
        prototypes = prototypes_per_class(self.n_prototypes, self.classes_, owner)
        prior = MedianLVQPrior() if self.prior is None else self.prior
        widths = widths_to_try(self.objective, self.sigma, prior, rows.scale)
        settings = SearchSettings(self.optimizer, self.n_init, self.max_iter, self._seed)
        width, self.temperature_ = choose_width(
            rows,
            prototypes,
            widths,
            settings,
            cv=self.cv,
            kept=self._kept,
            classes=self.classes_,
            calibrate=self.calibrate,
            owner=owner,
        )
        wider = wider_ones(widths, width) if settings.narrowing else ()
        self._fitted, fit = search(rows, prototypes, width, settings, wider=wider)
        self.exemplars_ = self._kept[fit.parameters.exemplars]
        self.exemplar_classes_ = self.classes_[list(prototypes.classes)]
        self.sigma_ = fit.parameters.sigma
        self._report(fit.status, fit.trace)

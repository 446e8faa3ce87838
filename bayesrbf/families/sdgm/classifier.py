"""Sparse discriminative Gaussian mixtures: class probabilities from few quadratic terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf import table
from bayesrbf.base.priors import PrecisionPrior, Trace
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.classifier import Classifier
from bayesrbf.families.estimator import fitting
from bayesrbf.families.sdgm.evidence import Settings
from bayesrbf.families.sdgm.fitted import (
    EvidencePath,
    FittedSDGM,
    Prediction,
    SDGMSolver,
    fit_rows_sdgm,
)
from bayesrbf.families.sdgm.posterior import has_all_products
from bayesrbf.families.sdgm.records import KERNELS, SDGMFit, SDGMTrace
from bayesrbf.fit.arguments import (
    SHARED,
    PerClass,
    Rule,
    components_per_class,
    instance,
    one_of,
    positive,
)
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.reading import (
    Labels,
    Reading,
    check_table,
    read_labels,
    read_rows,
)
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.reading.notes import warn
from bayesrbf.table.encode import is_label_sets, read_label_sets


class SDGMClassifier(Classifier):
    r"""Classifier of few non-zero weights on the products of columns, or on a kernel.

    .. math:: p(c | x) = \frac{\sum_{m \in c} \pi_{cm} \exp(w_{cm}^\top \phi(x))}
        {\sum_k \pi_k \exp(w_k^\top \phi(x))}, \quad w_h \sim N(0, \alpha_h^{-1})

    phi holds 1, every column and every product of two, columns standardised; a categorical column
    enters as the indicators of its levels. Precisions alpha maximise the evidence. Weights whose
    precision diverges are dropped, as are components without probability. Rows with holes are
    averaged over their missing cells under a companion mixture, which is fitted without labels.

    Parameters
    ----------
    n_components : int or mapping of class to int
        Number of components of every class at the start; restarts may begin with fewer.
    form : {"primal", "kernel"}
        Products of columns, or a kernel with every training row.
    kernel : {"polynomial", "gaussian"} or callable
        Of the kernel form: ``(x'y / D + 1)^2`` or ``exp(-|x - y|^2 / 2D)`` on standardised columns,
        or a function of two arrays of points, divided by sqrt(D), which cannot be saved.
    prediction : {"average", "single-mode", "plug-in"}
        ``"average"``: the mean over the Laplace posterior of the weights around every mode of the
        restarts, weighted by its evidence. ``"single-mode"``: around the most probable mode alone.
        ``"plug-in"``: at that mode. Draws are of the most probable mode. Beyond 5,000
        rows the primal form keeps one mode. May be set after a fit; its temperature stays.
    precision_prior : GammaPrecisions or HorseshoePrecisions, optional
        Learn the precisions of all weights too, under ``inference`` other than ``"map"``. None:
        hold those that maximise the evidence.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    calibrate : bool
        Calibrate by out-of-fold log probabilities of rows as they are and with cells hidden: a
        sparse mixture is too sure of itself on few rows, in many columns and with few cells.
    cv : int, splitter or iterable of (train, test)
        Folds of the calibration. An integer assigns the rows of every class in turn, in an order of
        their own; splits are of the rows given to ``fit``.
    companion_components : int
        Components of the companion mixture.
    alpha_init : float
        First precision of every weight, a tenth of it in every other restart; 10 is too large.
    n_init : int
        Number of restarts: in turn two with all components and two with fewer; one finds one mode.
    max_iter : int
        Most updates of the precisions in a restart.
    tol : float
        Largest change of a log precision at convergence.
    random_state : int, RandomState or None
        Source of restarts and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
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
    n_weights_ : int
        Weights of the most probable mode that are not zero, intercepts included.
    n_components_ : int
        Components that survived there, of all classes.
    mode_probabilities_ : ndarray of shape (n_modes,)
        Shares of the modes in an average, the most probable first.
    mode_n_weights_ : ndarray of shape (n_modes,)
        Weights of every mode that are not zero.
    path_ : SDGMTrace
        Evidence, weights and components at every update of the most probable restart.
    completion_error_ : float
        Standard error of the log likelihood, in nats, by the finite number of completions of rows
        with holes; 0 without holes.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        Updates of the most probable restart.
    objective_ : float
        Its log evidence, by the Laplace approximation.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    References
    ----------
    .. [1] Hayashi, Uchida (2021), A discriminative Gaussian mixture model with
       sparsity, ICLR, sections 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    >>> model = SDGMClassifier(n_components=1, n_init=1, random_state=0).fit(X, y)
    >>> model.predict([[0.1, 0.2], [np.nan, 3.0]])
    array(['in', 'out'], dtype='<U3')
    >>> model.n_weights_
    4
    """

    fitted_: FittedTable[FittedSDGM, EvidencePath]

    _rules = SHARED | {
        "form": one_of("primal", "kernel"),
        "kernel": Rule(
            f"one of {KERNELS} or a function of two arrays of points", KERNELS, Callable
        ),
        "prediction": one_of("average", "single-mode", "plug-in"),
        "precision_prior": instance(PrecisionPrior, "GammaPrecisions, HorseshoePrecisions"),
        "companion_components": positive(),
        "alpha_init": positive(),
    }

    def __init__(
        self,
        n_components: Stored[int | PerClass[int]] = 3,
        *,
        form: Stored[Literal["primal", "kernel"]] = "primal",
        kernel: object = "polynomial",
        prediction: Stored[Literal["average", "single-mode", "plug-in"]] = "average",
        precision_prior: Stored[PrecisionPrior | None] = None,
        class_prior: object = None,
        unlabelled: object = None,
        calibrate: Stored[bool] = True,
        cv: object = 5,
        companion_components: Stored[int] = 3,
        alpha_init: Stored[float] = 1.0,
        n_init: Stored[int] = 8,
        max_iter: Stored[int] = 500,
        tol: Stored[float] = 1e-3,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.form = form
        self.kernel = kernel
        self.prediction = prediction
        self.precision_prior = precision_prior
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.calibrate = calibrate
        self.cv = cv
        self.companion_components = companion_components
        self.alpha_init = alpha_init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    # ---- fitting

    @fitting
    def fit(
        self, X: object, y: object, sample_weight: object = None, groups: object = None
    ) -> Self:
        """Maximise the evidence, calibrate, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells.
        y : array-like of shape (n_obs,) or of bool of shape (n_obs, n_classes)
            Class labels; NaN and None are hidden. Or the classes that each row may have, one
            column a class (named by the columns of a frame, else 0, 1, ...).
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
        weights = check_table(reading, X, y, sample_weight)
        sets, labels = _read_sets(reading, X, y, weights)
        training = read_rows(reading, X, labels, groups)
        rows, _ = table.distinct(training.rows)
        levels, seed = training.read_columns.n_levels, training.seed
        if self.form == "primal" and not has_all_products(rows.real.shape[1], levels):
            warn(
                f"{reading.owner}: the {sum(levels)} levels of the categorical columns have too "
                "many products; the levels enter without them. form='kernel' has all products."
            )
        model, fit = self._fit_rows(rows, sets, training, seed)

        def held_out(
            fold: int, train: Observations, test: Observations
        ) -> Float[np.ndarray, "obs draw label"]:
            of_fold, _ = self._fit_rows(train, sets, training, seed + 1 + fold)
            one_mode = model.modes.probabilities.size == 1  # as with very many rows
            if one_mode and of_fold.prediction == "average":
                of_fold = replace(of_fold, prediction="single-mode")
            return of_fold.drawn_log_probabilities(test)

        calibration = self._calibration(training, held_out)
        path = EvidencePath(fit.trace, fit.completion_error)
        outcome = fit.status, Trace(fit.trace.evidence)
        self.fitted_ = self._ended(training, model, path, outcome, calibration=calibration)
        return self

    def _fit_rows(
        self, rows: Observations, sets: np.ndarray, training: TrainingTable, seed: int
    ) -> tuple[FittedSDGM, SDGMFit]:
        """Fit companion and sparse mixture to distinct rows."""
        classes = training.class_labels
        component_class = components_per_class(self.n_components, classes, training.owner)
        solver = SDGMSolver(
            kernel=self.kernel if self.form == "kernel" else None,
            companion_components=int(self.companion_components),
            settings=Settings(
                alpha_init=float(self.alpha_init),
                tol=float(self.tol),
                max_iter=self.max_iter,
                n_init=self.n_init,
            ),
            precision_prior=self.precision_prior,
            prediction=self._averaged_over,
            seed=seed,
        )
        return fit_rows_sdgm(rows, sets, training.read_columns.n_levels, component_class, solver)

    @property
    def _averaged_over(self) -> Prediction:
        """Kind of average of the predictions; draws are of one mode, because the graph has one."""
        self._rules["prediction"].check(self.prediction, f"{type(self).__name__}(prediction=...)")
        single_mode = self.prediction == "average" and self.inference != "map"
        return "single-mode" if single_mode else self.prediction

    def set_params(self, **params: object) -> Self:
        """Set constructor arguments; ``prediction`` changes what a fit predicts from now on.

        Parameters
        ----------
        **params : object
            Arguments by name.

        Returns
        -------
        self
            The estimator.
        """
        super().set_params(**params)
        if "prediction" in params and "fitted_" in vars(self):
            model = replace(self.fitted_.model, prediction=self._averaged_over)
            self.fitted_ = self.fitted_.replaced(model=model)
        return self

    # ---- parts of the fit

    @property
    def path_(self) -> SDGMTrace:
        """The search for the most probable precisions, iteration by iteration."""
        return self._fit.details.trace

    @property
    def completion_error_(self) -> float:
        """Standard error of the evidence by the draws of missing cells."""
        return self._fit.details.completion_error

    @property
    def n_weights_(self) -> int:
        """Number of weights after pruning, in the most probable mode."""
        return self._fit.model.modes.best.n_weights

    @property
    def n_components_(self) -> int:
        """Number of components after pruning, in the most probable mode."""
        return self._fit.model.modes.best.n_components

    @property
    def mode_probabilities_(self) -> Float[np.ndarray, " mode"]:
        """Probabilities of the modes that predictions average over."""
        return self._fit.model.modes.probabilities

    @property
    def mode_n_weights_(self) -> Int[np.ndarray, " mode"]:
        """Number of weights after pruning, in every mode."""
        return np.array([mode.n_weights for mode in self._fit.model.modes.parameters])

    @property
    def component_classes_(self) -> Shaped[np.ndarray, " component"]:
        """Class of every component after pruning."""
        return self.classes_[self.fitted_.model.parameters.component_class]

    # ---- predicting

    def component_probabilities(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Probabilities of classes and components together, at the fitted weights.

        Before temperature and any change of prevalence.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            ``p(c, m | x)`` of the components that survived, class by class; rows
            sum to one.
        """
        fit = self._fit
        return fit.model.component_probabilities(new_rows(fit, X).cells)


def _read_sets(
    reading: Reading, X: object, y: object, weights: Float[np.ndarray, " obs"]
) -> tuple[Bool[np.ndarray, "set label"], Labels]:
    """Label sets of every code, with codes and weights of the rows."""
    if is_label_sets(y):
        classes, sets, codes = read_label_sets(y, weights)
        labels = Labels(codes, weights, classes, reading.prevalence(classes))
    else:
        labels = read_labels(reading, X, y, weights)
        assert labels.classes is not None  # labels have classes
        sets = np.eye(labels.classes.size, dtype=bool)
    unlabelled = int(((labels.codes < 0) & (labels.weights > 0)).sum())
    if unlabelled:
        warn(
            f"{reading.owner}: {unlabelled} rows without a label teach nothing about the "
            "classes; they count in the units of the columns and the companion density alone."
        )
    return sets, labels

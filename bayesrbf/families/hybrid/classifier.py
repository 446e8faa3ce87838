"""Class-conditional mixtures: a classifier that is also a density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayesrbf import table
from bayesrbf.base.priors import OBJECTIVES, MixturePrior, ObjectiveName
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import COVARIANCE_TYPES, CovarianceType, MixtureSpecification, default_shape
from bayesrbf.families.classifier import Classifier, Labels
from bayesrbf.families.estimator import fitting
from bayesrbf.families.hybrid.density import MixtureMethods
from bayesrbf.families.hybrid.objectives import Likelihood, MixtureObjective, objective_of
from bayesrbf.families.hybrid.selection import (
    MAX_COMPONENTS,
    OPEN,
    Choice,
    MixtureCandidate,
    Round,
    Setting,
    Task,
    choose_in_turn,
    open_shapes,
    open_weights,
)
from bayesrbf.fit.arguments import SHARED, PerClass, Rule, components_per_class, number, one_of
from bayesrbf.fit.drawing import METHODS, Rehearsal
from bayesrbf.fit.held_out import masking_of, split_rows, warn_nothing_held_out
from bayesrbf.fit.stages import NO_CALIBRATION, Calibration
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.training import read_training
from bayesrbf.mixture.fitted import (
    LIKELIHOOD,
    ColumnTransforms,
    FittedMixture,
    Solver,
    fit_mixture_rows,
)

HybridFit = FittedTable[FittedMixture, tuple[MixtureCandidate, ...]]


class HybridMixtureClassifier(MixtureMethods, Classifier):
    r"""Classifier with a mixture density in every class.

    .. math:: p(c | x_o) \propto \pi_c \sum_{k \in c} w_k \, N(x_o; \mu_k, \Sigma_k)
        \prod_{j \in o} \theta_{kj}[x_j]

    Missing cells are summed out exactly, at fit and at predict; a row without a
    label contributes :math:`\log \sum_c p(x_o, c)`. The priors are declared
    (:class:`bayesrbf.MixturePrior`) and are the only regularisation.

    By default the fit maximises the blend ``log p(y | x) + 0.3 log p(x)`` behind transforms of the
    columns, with covariances chosen and a temperature fitted out of fold.
    ``objective="likelihood"`` maximises ``log p(x, y)``.

    Parameters
    ----------
    n_components : int, mapping of class to int, or "cv"
        Number of components of every class; ``"cv"`` decides between one and three, together with
        the shape.
    covariance_type : {"full", "tied", "diag", "spherical", "cv"}
        Shape of the covariances; ``"tied"`` shares one full matrix in a class; ``"cv"`` picks
        ``"full"`` or ``"diag"`` by the out-of-fold log score of fits to the likelihood: full ones
        that the classes share, unless others are better by a standard error.
    shared_covariance : bool or "cv"
        Share one covariance, of the given shape, among all classes; ``"cv"`` decides it
        together with the shape, before constants of the objective.
    objective : Blend, Hinge, Margin, ConditionalLikelihood, Likelihood or a word for one
        What is maximised beside the prior, with its constants; ``"blend"``, ``"hinge"``,
        ``"margin"``, ``"conditional"`` and ``"likelihood"`` have the defaults. All but the
        likelihood start at the fit by EM and make ``posterior_`` a Gibbs posterior. A blend's class
        probabilities are better where a class is no mixture of Gaussians;
        :class:`bayesrbf.Likelihood` is the density alone, and what Gibbs sampling and prior
        predictive draws need.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    unlabelled_weight : float, "cv" or None
        Factor of the weight of rows without a label; 0 drops them, None is 1 / n_columns:
        such a row tells of the class about as much as one column does. ``"cv"`` picks 0,
        1 / n_columns or 1 by out-of-fold log score, with fits that start at the fit to
        the labelled rows. Rows without a label say nothing to objectives without a
        density (conditional, margin).
    calibrate : bool
        Fit a temperature to out-of-fold log probabilities.
    cv : int, splitter or iterable of index pairs
        Folds of the calibration and of whatever is ``"cv"``. An integer assigns the rows of every
        class in turn; the only row of a class stays in training and out of the temperature.
    prior : MixturePrior, optional
        Hyper-parameters; ``MixturePrior()`` by default.
    column_transforms : {"power", None}
        ``"power"``: a monotone transform towards a normal shape in front of every real column
        (Yeo-Johnson, one power a column; :class:`bayesrbf.base.priors.PowerTransforms`).
        Densities stay those of ``X``; prior, means and covariances are those of mapped cells.
    point_masses : {"auto", None}
        ``"auto"``: a value with at least 5 % of a real column's cells (and five rows) that is at
        least three times as frequent as both its neighbours is a point mass of that column:
        whether a cell is there is a category of its component, and the real cell is summed out.
    n_init : int
        Number of restarts of EM.
    max_iter : int
        Maximum number of iterations of a restart.
    tol : float
        EM stops when a step gains at most ``tol`` nats of log posterior per unit of row weight.
    random_state : int, RandomState or None
        Source of restarts, folds and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"ignorable", "informative", "cv"}
        ``"informative"``: whether a cell is missing tells about its component; ``"cv"`` takes it
        if the out-of-fold log score is better by a standard error. Probabilities and intervals are
        for new rows that come as the training rows came: the same population, cells missing for
        the same reasons. If cells of new rows will be missing, or measured, for other reasons, say
        so: ``"ignorable"``, or :meth:`assume_missingness` after the fit.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "advi", "gibbs", "nuts", "bootstrap"}
        Posterior made by ``fit``; :meth:`refine` makes another later.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    posterior_ : xarray.DataTree
        Posterior of the declared graph; one draw after ``inference="map"``.
    temperature_ : float
        Factor of the class log probabilities; 1 without calibration.
    kappa_, unlabelled_weight_ : float
        The values that were used.
    candidates_ : tuple of MixtureCandidate
        What was judged out of fold where something was ``"cv"``: the one that was used, then the
        others in the order of trial, each with its ``log_score`` in nats a row.
    covariance_type_ : str
        The shape that was used.
    shared_covariance_ : bool
        Whether the classes share their covariance.
    status_ : str
        How the fit ended, in a sentence; under ``unlabelled_weight="cv"`` also what rows without
        a label gained on labelled rows held out, with its standard error.
    converged_ : bool
        Whether it converged.
    passes_ : int
        Passes over a training table out of memory; 0 for one in memory.
    point_masses_ : dict
        Name of every real column with point masses, and of each point mass its share of the cells.
    n_iter_ : int
        Iterations of the best restart.
    objective_ : float
        Log posterior density of the fitted point, columns standardised.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    References
    ----------
    .. [1] Hastie, Tibshirani (1996), Discriminant analysis by Gaussian mixtures,
       JRSS B 58, section 2.
    .. [2] Roth, Peharz, Tschiatschek, Pernkopf (2018), Hybrid generative-discriminative
       training of Gaussian mixture models, Pattern Recognition Letters 112, 131-137.

    Examples
    --------
    >>> import numpy as np
    >>> X = [[0.0, 1.0], [0.2, np.nan], [3.0, 4.0], [np.nan, 4.2], [0.1, 0.8], [3.1, 3.9]]
    >>> y = ["a", "a", "b", "b", None, None]
    >>> model = HybridMixtureClassifier(covariance_type="diag").fit(X, y)
    >>> model.predict([[0.1, np.nan], [np.nan, 4.1]])
    array(['a', 'b'], dtype=object)
    """

    fitted_: HybridFit

    _mean_is_better = True
    _rules = SHARED | {
        "covariance_type": one_of(*COVARIANCE_TYPES, "cv"),
        "shared_covariance": one_of(True, False, "cv"),
        "objective": Rule(
            f"an objective, such as Blend(), or a word for one of {OBJECTIVES}",
            OBJECTIVES,
            MixtureObjective,
            error=TypeError,
        ),
        "unlabelled_weight": number("cv", None),
        "missingness": one_of("ignorable", "informative", "cv"),
    }
    _by_blocks: ClassVar = {"objective": ("likelihood", Likelihood())}

    def __init__(
        self,
        n_components: Stored[int | PerClass[int] | Literal["cv"]] = 1,
        *,
        covariance_type: Stored[CovarianceType | Literal["cv"]] = "cv",
        shared_covariance: Stored[bool | Literal["cv"]] = "cv",
        objective: Stored[ObjectiveName | MixtureObjective] = "blend",
        class_prior: object = None,
        unlabelled: object = None,
        unlabelled_weight: Stored[float | Literal["cv"] | None] = None,
        calibrate: Stored[bool] = True,
        cv: object = 5,
        prior: Stored[MixturePrior | None] = None,
        column_transforms: Stored[ColumnTransforms] = "power",
        point_masses: Stored[Literal["auto"] | None] = None,
        n_init: Stored[int] = 4,
        max_iter: Stored[int] = 1000,
        tol: Stored[float] = 1e-6,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        missingness: Stored[Literal["ignorable", "informative", "cv"]] = "ignorable",
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "gibbs", "nuts", "bootstrap"]] = "map",
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.shared_covariance = shared_covariance
        self.objective = objective
        self.class_prior = class_prior
        self.unlabelled = unlabelled
        self.unlabelled_weight = unlabelled_weight
        self.calibrate = calibrate
        self.cv = cv
        self.prior = prior
        self.column_transforms = column_transforms
        self.point_masses = point_masses
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
        """Find the mode of the posterior, calibrate, and draw if ``inference`` asks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells. With
            ``objective="likelihood"`` also a table out of memory, such as the path of a Parquet
            file or a Dask collection (:doc:`/scale`).
        y : array-like of shape (n_obs,)
            Class labels; NaN and None are hidden. Of a table out of memory, also the name of
            their column.
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
        training, of_blocks = read_training(reading, X, y, sample_weight, groups)
        owner, rows, columns = training.owner, training.rows, training.read_columns
        few = 1 if self.n_components == OPEN else self.n_components
        d = rows.real.shape[1]
        specification = MixtureSpecification(
            d,
            columns.n_levels,
            components_per_class(few, training.class_labels, owner),
            default_shape(d) if self.covariance_type == OPEN else self.covariance_type,
            self.shared_covariance is True,
        )
        prior = MixturePrior() if self.prior is None else self.prior
        solver = self._solver(training.seed)
        open_weight = self.unlabelled_weight == OPEN
        task = Task(prior, solver, open_weight, column_transforms=self.column_transforms)
        first, rounds = self._rounds(specification, columns)
        choice, calibration = self._choose(task, first, rounds, training)
        setting = choice.setting
        specification, start = setting.specification, None
        if task.begins_with(rows):
            distinct = table.distinct_rows(setting.cells(rows))
            start = task.begin(distinct, specification, training.seed)
        row_indices = training.row_indices
        if setting.unlabelled_weight == 0:
            row_indices = row_indices[rows.labels >= 0]
        training = replace(
            training,
            columns=setting.masked or columns,
            rows=setting.weigh(rows),
            row_indices=row_indices,
            unlabelled_weight=training.unlabelled_weight * setting.unlabelled_weight,
        )
        solver = replace(task.solver, objective=setting.objective)
        distinct = table.distinct_rows(training.rows)
        model, fit = fit_mixture_rows(
            distinct, specification, prior, solver, start, self.column_transforms
        )
        note = ""
        if of_blocks is not None:
            of_blocks = of_blocks.weighed(setting.weigh)
            training, model, fit, note = of_blocks.fit_all(training, model, prior, solver)
        self._warn_where_singular(fit)
        message = " ".join(filter(None, (fit.status.sentence, note, choice.unlabelled)))
        outcome = (fit.status, fit.trace)
        self.fitted_ = self._ended(
            training, model, choice.candidates, outcome, message, calibration=calibration
        )
        return self

    def _solver(self, seed: int) -> Solver:
        """Solver of the mixtures."""
        steps = objective_of(self.objective).steps
        return Solver(self.n_init, self.max_iter, float(self.tol), seed, steps=steps)

    def _rounds(
        self, specification: MixtureSpecification, columns: table.Columns
    ) -> tuple[Setting, tuple[Round, ...]]:
        """The first candidate, and the questions to the held-out rows in their order.

        Shapes first, because the likelihood has the best shapes of a blend, too, and costs a
        fraction of it; then the dial and the weight of unlabelled rows; missing cells last.
        """
        mixture_objective, n_columns = objective_of(self.objective), columns.n_used
        objective, open_dial = mixture_objective.constants, mixture_objective.is_open
        open_weight = self.unlabelled_weight == OPEN
        weight = 1 / n_columns if self.unlabelled_weight is None else 1.0
        many = None
        if self.n_components == OPEN:
            many = tuple(np.repeat(specification.component_class, MAX_COMPONENTS).tolist())
        shapes = open_shapes(
            specification,
            open_type=self.covariance_type == OPEN,
            open_sharing=self.shared_covariance == OPEN,
            more_components=many,
        )
        cheap = LIKELIHOOD if open_dial or len(shapes) > 1 else objective
        first_weight = 0.0 if open_weight else weight
        start = Setting(cheap, first_weight, shapes[0], informative=bool(columns.masked))
        weights = open_weights(
            objective,
            open_dial=open_dial,
            unlabelled_weight=None if open_weight else weight,
            n_columns=n_columns,
        )
        holes: list[Callable[[Setting], Setting]] = [replace]
        if self.missingness == OPEN and any(columns.missing):
            holes.append(partial(Setting.with_masks, columns=columns))
        return start, (
            Round([partial(replace, specification=shape) for shape in shapes], 1.0),
            Round([partial(replace, objective=o, unlabelled_weight=w) for o, w in weights]),
            Round(holes, 1.0),
        )

    def _choose(
        self, task: Task, first: Setting, rounds: Sequence[Round], training: TrainingTable
    ) -> tuple[Choice, Calibration]:
        """The setting of the best out-of-fold log score, and its calibration."""
        rows, classes, calibrate = training.rows, training.class_labels, self.calibrate
        needs_folds = calibrate or any(len(question.changes) > 1 for question in rounds)
        splits = (
            list(split_rows(self.cv, rows, training.row_indices, training.seed))
            if needs_folds
            else []
        )
        choice = choose_in_turn(task, splits, first, rounds, classes, calibrate=calibrate)
        if needs_folds and not any(test.n_obs for _, test in splits):
            warn_nothing_held_out(training.owner, self.cv)
        if choice.calibration is None or not calibrate:
            return choice, NO_CALIBRATION
        columns = choice.setting.masked or training.read_columns
        masking = masking_of(rows, columns, classes.size, training.seed)
        if masking is None:
            return choice, choice.calibration
        return choice, choice.by_missing_fraction(splits, classes, masking)

    def _check_method(self, method: str) -> None:
        """Refuse methods that draw labels and cells, unless the objective is the likelihood."""
        name = objective_of(self.objective).constants.name
        if method == "gibbs" and name != "likelihood":
            raise ValueError(
                f"refine('gibbs') needs objective='likelihood', under which labels and cells have "
                f"a law to be drawn from; received objective={name!r}: use 'nuts'."
            )

    # ---- parts of the fit

    @property
    def candidates_(self) -> tuple[MixtureCandidate, ...]:
        """Candidates that were compared out of fold, the chosen one first."""
        return self._fit.details

    @property
    def covariance_type_(self) -> str:
        """The shape that was used."""
        return self.fitted_.model.specification.covariance_type

    @property
    def shared_covariance_(self) -> bool:
        """Whether the classes share their covariance."""
        return self.fitted_.model.specification.shared_covariance

    @property
    def kappa_(self) -> float:
        """Weight of the density in a blend."""
        return float(self.fitted_.model.objective.kappa)

    @property
    def unlabelled_weight_(self) -> float:
        """Factor of the weight of rows without a label."""
        return self.fitted_.table.unlabelled_weight

    # ---- rows

    def sample(self, n_samples: int = 1, label: object = None) -> tuple[Any, Labels]:
        """Draw new rows and their classes at the fitted point.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        label : object, optional
            Class of all rows; None draws it, at the prevalences of use.

        Returns
        -------
        X : same container as the ``X`` of ``fit``
            Rows; under ``missingness="informative"`` the model draws which cells are missing.
        y : ndarray of shape (n_samples,)
            Their classes.

        Raises
        ------
        ValueError
            If ``label`` is no class.
        """
        fit = self._fit
        parameters = fit.model.parameters
        if label is not None:
            chosen = self.classes_ == label
            if not np.any(chosen):
                raise ValueError(
                    f"sample(label=...) must be one of {self.classes_.tolist()}; "
                    f"received {label!r}."
                )
            parameters = replace(parameters, class_probabilities=chosen.astype(float))
        elif fit.table.prevalence is not None:
            parameters = replace(parameters, class_probabilities=fit.table.prevalence)
        rows, codes = self._draw(n_samples, parameters)
        return rows, self.classes_[codes]

    def __rehearsal__(self) -> Rehearsal:
        """Settings of rehearsals for this kind of classifier."""
        return Rehearsal(methods=(*METHODS, "bootstrap"))

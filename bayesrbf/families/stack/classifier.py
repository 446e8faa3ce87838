"""The calibrated default: kernel networks, mixtures and trees, pooled on rows held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from bayesrbf import table
from bayesrbf.base.priors import POOL_PRIOR, MixturePrior, Status, Trace
from bayesrbf.base.records import Stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.classifier import Classifier
from bayesrbf.families.estimator import fitting
from bayesrbf.families.stack.fitted import FittedStack, StackSettings
from bayesrbf.families.stack.fitting import fit_stack
from bayesrbf.families.stack.members import (
    MEMBERS,
    TREES,
    OtherMember,
    chosen_members,
    trial_of,
)
from bayesrbf.fit.arguments import SHARED, one_of
from bayesrbf.fit.drawing import Rehearsal, drawn
from bayesrbf.fit.held_out import masking_of
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.training import read_training

if TYPE_CHECKING:
    import pandas as pd


# Members of a stack that other libraries made: any classifier with probabilities.


@dataclass(frozen=True)
class ExtraMember:
    """A classifier that is given the table as the user gave it."""

    name: str
    estimator: Any
    """Not fitted as a recipe, fitted as a member."""
    columns: table.Columns
    template: object
    """Container of the table, without rows."""

    def fit(self, rows: Observations) -> ExtraMember:
        """A new member that holds a clone of the classifier, fitted to the rows with a label.

        This member and its classifier stay as they are. The clone takes row weights as
        ``sample_weight``. A clone without this argument gets each row as often as the row weighs;
        ValueError if a weight is no whole number.
        """
        labelled = rows.take(np.flatnonzero(rows.labels >= 0))
        estimator, weighted = clone(self.estimator), {}
        if has_fit_parameter(estimator, "sample_weight"):
            weighted = {"sample_weight": labelled.weights}
        elif np.allclose(whole := np.round(labelled.weights), labelled.weights):
            copies = np.repeat(np.arange(labelled.n_obs), whole.astype(int))
            labelled = labelled.take(copies)
        else:
            raise ValueError(
                f"StackedClassifier(extra=...): {self.name} takes no sample_weight, but the rows "
                "have weights that are no whole numbers; leave it out, or fit without weights."
            )
        try:
            estimator.fit(self._table(labelled), labelled.labels, **weighted)
        except Exception as error:
            error.add_note(
                f"StackedClassifier(extra=...): {self.name} is given the table as it is, texts "
                "and missing cells too. Put what it needs in front of it, as in "
                "extra=[('name', make_pipeline(encoder, classifier))]."
            )
            raise
        return ExtraMember(self.name, estimator, self.columns, self.template)

    def class_log_joint(self, rows: Observations, n_classes: int) -> Float[np.ndarray, "obs label"]:
        """Log class probabilities; a class that it has not seen is next to impossible."""
        probabilities = np.zeros((rows.n_obs, n_classes))
        probabilities[:, self.estimator.classes_] = self.estimator.predict_proba(self._table(rows))
        return np.log(np.maximum(probabilities, POOL_PRIOR.least))

    def _table(self, rows: Observations) -> object:
        """Rows in the container of the user."""
        return table.decode(rows.real, rows.codes, self.columns, self.template)


def extra_members(
    extra: object, columns: table.Columns, template: object
) -> tuple[OtherMember, ...]:
    """Unfitted members of a stack, one for each classifier that the user adds, in the same order.

    ``extra`` holds classifiers or pairs (name, classifier); None gives no member. A classifier
    alone is named after the Python class. ``template`` is the user's table without rows. ValueError
    if an item is no classifier with ``predict_proba``, or if a name occurs twice or belongs to a
    member of the stack's own.
    """
    members: list[ExtraMember] = []
    for item in [] if extra is None else list(extra):  # type: ignore[call-overload]
        name, estimator = item if isinstance(item, tuple) else (type(item).__name__, item)
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
            raise ValueError(
                "StackedClassifier(extra=...) must hold classifiers with predict_proba, or pairs "
                f"of a name and such a classifier; received {item!r}."
            )
        members.append(ExtraMember(str(name), estimator, columns, template))
    names = [member.name for member in members]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"StackedClassifier(extra=...) has two members {sorted(twice)[0]!r}; give each a name, "
            "as in extra=[('trees', ...), ('deep trees', ...)]."
        )
    if taken := sorted(set(names) & {*MEMBERS, *TREES}):
        raise ValueError(
            f"StackedClassifier(extra=...) has a member {taken[0]!r}, as stacks have one of their "
            f"own; give it another name, as in extra=[('my {taken[0]}', ...)]."
        )
    return tuple(members)


def kin_of_extra(extra: object) -> tuple[str, ...]:
    """Names of the data-generating models of rehearsals that are akin to an added classifier.

    Rehearsals leave them out.
    """
    from bayesrbf.answers.teachers import KIN

    additions: list[object] = [] if extra is None else list(extra)  # type: ignore[call-overload]
    classifiers = [item[-1] if isinstance(item, tuple) else item for item in additions]
    return tuple(
        name for name, kinds in KIN.items() if any(isinstance(c, kinds) for c in classifiers)
    )


StackFit = FittedTable[FittedStack, None]
METHODS = ("laplace", "advi", "nuts")


class StackedClassifier(Classifier):
    r"""Calibrated pool of kernel networks, mixtures, trees and whatever else is given.

    .. math:: p(c | x_o) \propto \Bigl(\sum_j w_j \, p_{j}(c | x_o)\Bigr)^t \pi_c^b, \quad
        p_j(c | x_o) \propto \tilde p_j(c | x_o)^{t_j}

    Every member is fitted without each fold in turn. Held-out rows are predicted as they are and
    with cells masked. These predictions give temperatures, weights w and the exponent b of the
    class shares, as functions of the missing fraction. Of three and more classes a matrix on their
    log probabilities follows the pool. Members are then fitted to all rows. Density, novelty and
    imputations come from a companion: three full Gaussians per class, no transform.

    =================== ============================================================= ============
    member              what it is                                                    reals mapped
    =================== ============================================================= ============
    laplace             kernel network, Laplace, relevance 0.8, l2 = 1/10             half ranks
    laplace_short       as laplace, at a third of the length                          half ranks
    laplace_evidence    as laplace, l2 = 1/30, rates by evidence                      half ranks
    gaussian_loo        kernel network, Gaussian, l2 = 1/100, rates by leave-one-out  half ranks
    linear              multinomial logistic regression, l2 by its evidence           half ranks
    normal              one Gaussian a class, one covariance for all                  Yeo-Johnson
    mixture             three Gaussians a class, full covariances                     Yeo-Johnson
    normal_blend        as normal, by the blend log p(y|x) + 0.3 log p(x)             Yeo-Johnson
    mixture_blend       three Gaussians a class, one covariance for all, by the blend Yeo-Johnson
    forest              60 trees; a row goes both ways where the cell is missing      ranks
    extra_trees         60 more, which split at random places                         ranks
    boosting            100 small trees, the same way                                 ranks
    =================== ============================================================= ============

    Parameters
    ----------
    members : {"default", "smooth"} or sequence of str
        "default" has all but laplace, normal and mixture, "smooth" the same without trees, so that
        all are declared graphs. Boosting is a member only from 1,000 labelled rows on, where the
        first fold gives it weight.
    extra : sequence of classifiers or (name, classifier) pairs, optional
        Further members, given the table as it is without the rows whose label is hidden.
    cv : int, splitter or iterable of index pairs, optional
        Folds; None: five, three above 2,500 labelled rows; of 7,500 or more a part is held out.
    class_prior : array-like of shape (n_classes,) or mapping of class to float, optional
        Class probabilities of use, in the order of ``classes_``; None: those of training.
    unlabelled : object, optional
        What marks a hidden label beside NaN and None, such as -1.
    unlabelled_weight : float
        Factor of the weight of rows without a label, which teach mixtures and kernel networks, and
        no tree, added classifier or pool; 0 drops them.
    prior : MixturePrior, optional
        Hyper-parameters of the mixtures; ``MixturePrior()`` by default.
    n_jobs : int, optional
        Processes that share the folds; None: as joblib is told, else one.
    random_state : int, RandomState or None
        Source of folds, starts and draws; an int makes results repeatable.
    verbose : bool
        Show, in a terminal or a notebook, how far :meth:`fit` and :meth:`refine` are, and how long
        each stage still takes.
    missingness : {"cv", "ignorable", "informative"}
        Whether missing indicators may tell of the label. Probabilities and intervals are for new
        rows that come as the training rows came: the same population, cells missing for the same
        reasons. If cells of new rows will be missing, or measured, for other reasons, say so:
        "ignorable", or :meth:`assume_missingness` after the fit. "cv": indicators of columns with
        5 missing and 5 measured cells are evidence unless held-out rows lose by it, and
        "informative": always. ``status_`` says what was found. Cells that the package hides, as
        :meth:`explain` does, move no indicator.
    categorical_features : array-like or "from_dtype", optional
        Positions, names or mask of the categorical columns. None: of frames by dtype, else none.
    column_kinds : dict of columns and kinds, optional
        What other columns are, by position or name: ``"count"``, ``"ordered"`` or
        ``"ordered:none<mild<severe"``, ``"angle:24"`` (with its period), ``"date"``, ``"real"``.
    handle_unknown : {"missing", "error"}
        What an unseen level is at predict.
    inference : {"map", "laplace", "advi", "nuts"}
        Posterior made by ``fit``; without one there are no intervals. :meth:`refine` makes another.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    members_ : tuple of str
        Names of the members; :meth:`member_table` has the spread of what follows.
    weights_ : ndarray of shape (n_members,)
        Their weights, which sum to one, for rows with all cells.
    temperature_ : float
        Temperature of the pool for such rows.
    relevance_ : pandas.DataFrame
        Rates of the columns (lines) over the largest of their kind, in the members that learn them.
    posterior_ : xarray.DataTree
        Posterior of weights and temperatures; one draw after ``inference="map"``.
    status_ : str
        How the fit ended, in a sentence, and what rows without a label did: the gain in log score
        on some folds, fitted without them once more, and its standard error.
    converged_ : bool
        Whether it converged.
    n_iter_ : int
        1: members and pool are fitted one after another, once.
    objective_ : float
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
    >>> stack = StackedClassifier(random_state=0).fit(X, y)
    >>> stack.predict([[0.1, np.nan], [np.nan, 3.1]])
    array(['a', 'b'], dtype='<U1')
    """

    _rules = SHARED | {
        "inference": one_of("map", *METHODS),
        "missingness": one_of("cv", "ignorable", "informative"),
    }
    fitted_: StackFit

    def __init__(
        self,
        members: object = "default",
        *,
        extra: object = None,
        cv: object = None,
        class_prior: object = None,
        unlabelled: object = None,
        unlabelled_weight: Stored[float] = 1.0,
        prior: Stored[MixturePrior | None] = None,
        n_jobs: Stored[int | None] = None,
        random_state: Stored[int | np.random.RandomState | None] = None,
        verbose: Stored[bool] = False,
        missingness: Stored[Literal["cv", "ignorable", "informative"]] = "cv",
        categorical_features: object = None,
        column_kinds: object = None,
        handle_unknown: Stored[Literal["missing", "error"]] = "missing",
        inference: Stored[Literal["map", "laplace", "advi", "nuts"]] = "map",
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
        self.verbose = verbose
        self.missingness = missingness
        self.categorical_features = categorical_features
        self.column_kinds = column_kinds
        self.handle_unknown = handle_unknown
        self.inference = inference

    @fitting
    def fit(
        self, X: object, y: object, sample_weight: object = None, groups: object = None
    ) -> Self:
        """Hold out, temper, pool, and fit all members to all rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; NaN, None and NA are missing cells. A table out of memory (a Dask collection, a
            Parquet file by its path) is read into it; beyond 16,777,216 cells a random sample is.
        y : array-like of shape (n_obs,), or the name of a column out of memory
            Class labels; NaN and None are hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: a row of weight 2 counts twice, and no split parts it.
        groups : array-like of shape (n_obs,), optional
            Group of each row, such as its patient: no split that the fit makes has rows of one
            group on both sides, and intervals count them as one row.

        Returns
        -------
        self
            The fitted estimator.
        """
        reading = replace(self._reading(), of_sample=True)
        training, of_blocks = read_training(reading, X, y, sample_weight, groups)
        settings = self._settings(training)
        training, model, message = fit_stack(training, settings, self.cv, self.n_jobs)
        sampling = "" if of_blocks is None else of_blocks.note_on_sample(training)
        self.fitted_ = self._ended(
            training,
            model,
            None,
            (Status.CONVERGED, Trace(np.array([model.log_density_at_point]))),
            message + sampling,
            calibration=model.calibration,
        )
        return self

    def _settings(self, training: TrainingTable) -> StackSettings:
        """Settings of the fits: members, priors, and the masking of held-out rows."""
        columns, rows, n_classes = training.read_columns, training.rows, training.class_labels.size
        return StackSettings(
            members=chosen_members(self.members, rows.n_labelled),
            extra=extra_members(self.extra, columns, training.template),
            levels=columns.n_levels,
            n_classes=n_classes,
            prior=self.prior or MixturePrior(),
            seed=training.seed,
            masking=masking_of(rows, columns, n_classes, training.seed),
            missingness=self.missingness,
            on_trial=trial_of(self.members),
        )

    # ---- parts of the fit

    @property
    def members_(self) -> tuple[str, ...]:
        """Names of the members."""
        return self._fit.model.names

    @property
    def weights_(self) -> Float[np.ndarray, " member"]:
        """Weights of the members, for rows with all cells."""
        return self._fit.model.pool.weights

    @property
    def out_of_fold_(self) -> pd.DataFrame:
        """Class probabilities of the training rows that were held out, by position and class.

        The members of a fold did not see its rows, and the pool of a fold is fitted to the rows
        of the others: a cross-validation that takes no fit more. Of 7,500 different rows or more
        only a part is held out.
        """
        return self._fit.model.out_of_fold_table(self._fit.table)

    @property
    def relevance_(self) -> pd.DataFrame:
        """Rates of the columns over the largest of their kind, in the members that learn them."""
        return self._fit.model.relevance_table(self.columns_)

    # ---- a posterior

    def refine(self, method: str = "laplace", **options: object) -> Self:
        """Draw the error of the pool given the labels held out, its weights and temperatures.

        Intervals are of the error, which is the same whichever way weights are drawn. It takes no
        fit more.

        Parameters
        ----------
        method : {"laplace", "advi", "nuts"}
            How weights and temperatures are drawn.
        **options : object
            Passed on: ``draws`` (250) of each of 4 ``chains`` and more.

        Returns
        -------
        self
            With the draws of weights and temperatures in ``posterior_``.
        """
        return super().refine(method, **options)

    def _drawn(self, fit: StackFit, method: str, options: dict[str, Any]) -> StackFit:
        """The fit with draws of weights and temperatures; ValueError for an unknown method."""
        if method not in METHODS:
            allowed = " or ".join(map(repr, METHODS))
            raise ValueError(
                f"StackedClassifier.refine(method) must be {allowed}; received {method!r}."
            )
        return fit.with_draws(drawn(fit, method, {"draws": 250, **options}))

    def member_table(self) -> pd.DataFrame:
        """Members with their weights, the spread of the weights, temperatures and scores.

        Returns
        -------
        pandas.DataFrame
            One row a member, one for the stack: ``weight`` in the probabilities; ``mean``, ``sd``
            and ends of 90 % (``lower``, ``upper``) of weights by Laplace's approximation;
            ``temperature``; held-out ``log_loss`` in nats (the stack's is optimistic).
        """
        fit = self._fit
        return fit.model.member_table(fit.table.seed)

    def __rehearsal__(self) -> Rehearsal:
        """No teacher of the kind of a member of one's own."""
        return Rehearsal(kin=kin_of_extra(self.extra), methods=METHODS)

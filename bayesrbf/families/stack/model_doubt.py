"""The doubt about the kind of model: a stack beside a classifier widens its intervals."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from bayesrbf import table
from bayesrbf.base.arrays import LEAST_DISPUTED_PROBABILITY, log_odds
from bayesrbf.base.hidden_share import missing_share
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import ClassPrediction, MixturePrior
from bayesrbf.base.records import Requirements, stored
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.fitted import FittedStack, StackSettings
from bayesrbf.families.stack.fitting import FOLDS, fit_stack
from bayesrbf.families.stack.intervals import (
    KindVariance,
    UsualRows,
    disagreed,
    disagreement_draws,
    kind_variance_of,
    rows_held_out,
    squared_scale,
    strays_of,
    stretch_of_median,
    variance_of_kinds,
)
from bayesrbf.families.stack.members import own_members, recipe_of, trial_of
from bayesrbf.fit.estimator import AnyFit
from bayesrbf.fit.held_out import masking_of, unit_folds
from bayesrbf.fit.probabilities import LEAST_DOUBT, ClassPosterior

# How far a classifier may be from the truth, told by other kinds of models of the same rows.
#
# Its posterior is that of its parameters if the model is right. Let the truth differ from the
# classifier as it would from a pool (rule 3 of :mod:`bayesrbf.families.stack.intervals`): with the
# classifier's log odds l among those of J kinds, every draw is
#
# .. math:: l + s \Bigl(\sum_j f_j (l_j - l) + g\Bigr).
#
# The classifier's own draws are not added: kinds that were fitted to the same rows differ by what
# these rows leave open, too, and with both on four tables intervals of 90 % held .97 to 1. The
# table's mean square of :math:`l_j - l` is not known, for the classifier was not fitted without the
# rows held out; that of the kinds about their pool stands for it. It alone moves the median of the
# draws further out: where others contradict the classifier at a row, they do not make it surer.


Point = Callable[[Observations], Float[np.ndarray, "obs label"]]
"""Class log probabilities that a classifier gives out at the shares of training."""


@stored
class ModelDoubt:
    """A small pool of other kinds of models, fitted to the rows of a classifier."""

    pool: FittedStack
    kind: str
    """Kind of the classifier: members of the pool of the same kind tell nothing."""
    variance: KindVariance
    usual: UsualRows

    def __laws__(self) -> Requirements:
        yield bool(self.others.any()), "members of another kind"

    @property
    def table_shape(self) -> tuple[int, tuple[int, ...], int]:
        """Real columns, levels and classes of the rows of the pool."""
        return self.pool.members.own[0].table_shape

    @property
    def others(self) -> Bool[np.ndarray, " member"]:
        """Members of another kind than the classifier."""
        names = self.pool.members.names
        return np.array([recipe_of(name).kind != self.kind for name in names])

    def around(self, posterior: ClassPosterior, point: Point, seed: int) -> ClassPosterior:
        """The posterior whose draws are moved by how far other kinds differ from the classifier."""
        others = self.others
        own = others.sum()  # the classifier's place, behind the others
        kinds = np.append(self.pool.kinds[others], -1)
        kinds = np.unique(kinds, return_inverse=True)[1]
        n_kinds, rng = np.unique(kinds).size, np.random.default_rng(seed)
        factors, shifts = disagreement_draws(
            posterior.n_draws, kinds, posterior.n_classes, 1.0, rng
        )
        moves = np.concatenate([factors[:, :own], shifts], axis=1)
        *shape, dimension = posterior.theta.shape
        # They ride along as further coordinates, so that blocks of draws keep them.
        theta = np.concatenate([posterior.theta, moves.reshape(*shape, -1)], axis=2)

        def prepare(rows: Observations) -> DoubtedPredictor:
            log_p, hidden = point(rows), missing_share(rows)
            members = self._members(rows, hidden)[:, others]
            everyone = np.concatenate([members, log_p[:, None]], axis=1)
            usual = self.variance.at(hidden)
            scale = squared_scale(variance_of_kinds(everyone, log_p, kinds), usual, n_kinds)
            stretch = stretch_of_median(squared_scale(np.zeros(scale.shape), usual, n_kinds))
            # What is surer than anybody may dispute is moved from where disputes end.
            disputed = log_odds(np.exp(log_p), LEAST_DISPUTED_PROBABILITY)
            given_out = log_odds(np.exp(log_p), LEAST_DOUBT)
            outside = np.abs(given_out) > np.abs(disputed)
            stretch *= np.divide(disputed, given_out, out=np.ones_like(scale), where=outside)
            # The bound is about the median of the draws, which the stretch moved out.
            median = stretch * given_out
            spread = self.usual.bounded(self.pool.companion, rows, scale, median)
            predictor, root = posterior.predictor(rows), np.sqrt(usual)
            return DoubtedPredictor(predictor, dimension, log_p, members, root, spread, stretch)

        strays = strays_of(self.pool)
        return replace(posterior, predictor=prepare, theta=theta, temperature=1.0, strays=strays)

    def _members(
        self, rows: Observations, hidden: Float[np.ndarray, " obs"]
    ) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities of the members, tempered."""
        values = self.pool.members.log_probabilities(rows)
        at_point = self.pool.pool_posterior.of_rows(hidden, self.pool.fitted_point)
        logs: np.ndarray = np.log(at_point.members(values))
        return logs


@dataclass(frozen=True)
class DoubtedPredictor(Predictor):
    """Predictions of a classifier, moved towards other kinds of models and away."""

    predictor: Predictor
    """Predictor of the classifier's own draws: their density of the rows stays."""
    dimension: int
    """Coordinates of the classifier's own draws."""
    centre: Float[np.ndarray, "obs label"]
    """Log probabilities of the classifier at its fitted point."""
    members: Float[np.ndarray, "obs member label"]
    """Log probabilities of the others."""
    usual: Float[np.ndarray, " obs"]
    """Usual root mean square of their deviations from the classifier."""
    spread: Float[np.ndarray, " obs"]
    """Factor of the moves of the draws."""
    stretch: Float[np.ndarray, "obs label"] = None  # type: ignore[assignment]

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        own, moves = np.split(thetas, [self.dimension], axis=1)
        how = *np.split(moves, [self.members.shape[1]], axis=1), self.spread, self.usual
        log_p = disagreed(self.members, self.centre, *how)
        return ClassPrediction(log_p, self.predictor.at_all(own).log_density)


# A small pool of other kinds of models, fitted to the rows of a classifier.


def require_comparable(fit: AnyFit) -> None:
    """ValueError where other kinds of models cannot be fitted to the rows of a fit."""
    if not comparable(fit):
        raise ValueError(
            f"{fit.table.owner}.refine(model_doubt='pool') takes mixtures, RBF, kernel and sparse "
            "networks of real and categorical columns, whose missing cells tell nothing and whose "
            "labels are single classes; leave model_doubt out, or fit a StackedClassifier."
        )


def doubt_of(fit: AnyFit, cv: object, n_jobs: int | None) -> ModelDoubt:
    """Other kinds of models of the rows of a fit, held out by the classifier's own splits."""
    training = fit.table
    rows, n_classes = training.rows, training.class_labels.size
    few, seed = table.few_values(rows), training.seed
    members = own_members("default", few, rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(
        members, (), levels, n_classes, MixturePrior(), seed, few, masking, trial_of("default")
    )
    splits = None if isinstance(cv, Integral) else cv  # a number of folds is the classifier's own
    pool = fit_stack(training, settings, splits, n_jobs)[0]
    distinct = table.distinct(rows)[0]
    folds = unit_folds(distinct.labels, distinct.units, FOLDS, seed)
    usual = rows_held_out(settings, distinct, folds)
    return ModelDoubt(pool, fit.model.kind, kind_variance_of(pool, distinct), usual)


def comparable(fit: AnyFit) -> bool:
    """Whether other kinds of models can be fitted to the rows of a fit."""
    single = fit.table.rows.labels.max() < fit.table.class_labels.size
    return bool(fit.model.kind) and single and not fit.table.read_columns.masked


# Class probabilities that rows might have: what scikit-learn's families say of rows held out.


TEACHER_FOLDS: Final = 5
MOST_PROCESS_ROWS: Final = 1200
"""Rows that a Gaussian process is fitted to: it takes no more in good time."""

Cells = Float[np.ndarray, "obs column"]
Labels = Int[np.ndarray, " obs"]
Probabilities = Float[np.ndarray, "obs label"]
Mask = Bool[np.ndarray, " column"]
UnitNumbers = Int[np.ndarray, " obs"] | None
Teacher = Callable[[Cells, Mask, Labels, int, UnitNumbers], np.ndarray]
"""Maps cells (NaN where missing, codes of levels in the columns of the mask), labels, a seed and
numbers of units to class probabilities of the same rows, each by models that have seen neither its
label nor those of its unit."""


def trees(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, units: UnitNumbers
) -> Probabilities:
    """Bagged trees, out of bag; even probabilities for a row that is in every bag.

    Where rows are of one unit they are out of fold: a bag leaves no unit out.
    """
    forest = ExtraTreesClassifier(
        400, min_samples_leaf=5, bootstrap=True, oob_score=True, random_state=seed
    )
    if units is not None:
        forest.set_params(oob_score=False)
        return out_of_fold(numbers_for(forest, categorical), cells, labels, seed, units)
    fitted = numbers_for(forest, categorical).fit(cells, labels)
    votes: Probabilities = np.nan_to_num(fitted[-1].oob_decision_function_, nan=1.0)
    return votes


def boosting(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, units: UnitNumbers
) -> Probabilities:
    """Boosted trees, out of fold; they take holes and levels themselves."""
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, categorical_features=categorical, random_state=seed
    )
    return out_of_fold(model, cells, labels, seed, units)


def process(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, units: UnitNumbers
) -> Probabilities:
    """A Gaussian process, out of fold, its width and scale by evidence."""
    kernel = ConstantKernel(4.0) * RBF(np.sqrt(cells.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=seed)
    of_numbers = numbers_for(model, categorical)
    return out_of_fold(of_numbers, cells, labels, seed, units, MOST_PROCESS_ROWS)


TEACHERS: Final[dict[str, Teacher]] = {"trees": trees, "boosting": boosting, "process": process}

KIN: Final[dict[str, tuple[type, ...]]] = {
    "trees": (BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier),
    "boosting": (AdaBoostClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier),
    "process": (GaussianProcessClassifier, SVC),
}
"""Classifiers of the same kind as each teacher."""


def kin_of(classifiers: Iterable[object]) -> tuple[str, ...]:
    """Teachers of the same kind as one of these classifiers."""
    given = list(classifiers)
    return tuple(name for name, kinds in KIN.items() if any(isinstance(c, kinds) for c in given))


def numbers_for(classifier: Any, categorical: Mask) -> Pipeline:
    """A classifier behind medians with indicators of holes, unit scales and one-hot levels."""
    reals = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((reals, ~categorical), (levels, categorical)), classifier
    )


def out_of_fold(
    model: Any,
    cells: Cells,
    labels: Labels,
    seed: int,
    units: UnitNumbers,
    most: int | None = None,
) -> Probabilities:
    """Class probabilities by models fitted to other folds, each to at most so many rows.

    A class without a row in the other folds has probability zero.
    """
    p = np.zeros((labels.size, labels.max() + 1))
    kind = StratifiedKFold if units is None else StratifiedGroupKFold
    folds = kind(min(TEACHER_FOLDS, np.bincount(labels).max()), shuffle=True, random_state=seed)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        # A class of fewer rows than folds is expected; a truth need not have the best of kernels.
        warnings.filterwarnings("ignore", "The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for training, test in folds.split(cells, labels, units):
            rows = (
                training
                if most is None or training.size <= most
                else rng.permutation(training)[:most]
            )
            model.fit(cells[rows], labels[rows])
            p[np.ix_(test, model.classes_)] = model.predict_proba(cells[test])
    return p

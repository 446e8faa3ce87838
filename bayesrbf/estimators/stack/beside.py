"""A small pool of other kinds of models, fitted to the rows of a classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Final

from bayesrbf import table
from bayesrbf.estimators.estimator import AnyFit
from bayesrbf.estimators.stack.stack_folds import FOLDS, fit_stack
from bayesrbf.fitted.folds import unit_folds
from bayesrbf.fitted.masking import masking_of
from bayesrbf.fitted.stack.bootstrap import rows_held_out, table_variance_of
from bayesrbf.fitted.stack.model_doubt import ModelDoubt
from bayesrbf.fitted.stack.recipes import own_members
from bayesrbf.fitted.stack.stack_fitting import StackSettings
from bayesrbf.records.priors import MixturePrior

MEMBERS_BESIDE: Final = "lite"
"""Set of members of the pool."""


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
    members = own_members(MEMBERS_BESIDE, few, rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(members, (), levels, n_classes, MixturePrior(), seed, few, masking)
    splits = None if isinstance(cv, Integral) else cv  # a number of folds is the classifier's own
    pool = fit_stack(training, settings, splits, n_jobs)[0]
    distinct = table.distinct(rows)[0]
    folds = unit_folds(distinct.labels, distinct.units, FOLDS, seed)
    usual, variance = rows_held_out(settings, distinct, folds), table_variance_of(pool, distinct)
    return ModelDoubt(pool, fit.model.kind, variance, usual)


def comparable(fit: AnyFit) -> bool:
    """Whether other kinds of models can be fitted to the rows of a fit."""
    single = fit.table.rows.labels.max() < fit.table.class_labels.size
    return bool(fit.model.kind) and single and not fit.table.read_columns.masked

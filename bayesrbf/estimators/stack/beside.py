"""A small pool of other kinds of models, fitted to the rows of a classifier."""

from __future__ import annotations

from bayesrbf import table
from bayesrbf.estimators.estimator import AnyFit
from bayesrbf.estimators.stack.stack_folds import fit_stack
from bayesrbf.fitted.masking import masking_of
from bayesrbf.fitted.stack.model_doubt import ModelDoubt
from bayesrbf.fitted.stack.recipes import own_members
from bayesrbf.fitted.stack.stack_fitting import StackSettings
from bayesrbf.records.priors import MixturePrior

BESIDE = "lite"
"""Set of members of the pool."""


def doubt_of(fit: AnyFit) -> ModelDoubt:
    """Other kinds of models of the rows of a fit; ValueError where none can be fitted to them."""
    training = fit.table
    rows, n_classes = training.rows, training.class_labels.size
    if not comparable(fit):
        raise ValueError(
            f"{training.owner}.refine(model_doubt='pool') takes mixtures, RBF, kernel and sparse "
            "networks of real and categorical columns, whose missing cells tell nothing and whose "
            "labels are single classes; leave model_doubt out, or fit a StackedClassifier."
        )
    few, seed = table.few_values(rows), training.seed
    members = own_members(BESIDE, few, rows.n_labelled)
    masking = masking_of(rows, training.read_columns, n_classes, seed)
    levels = training.read_columns.n_levels
    settings = StackSettings(members, (), levels, n_classes, MixturePrior(), seed, few, masking)
    return ModelDoubt(fit_stack(training, settings, None, None)[0], fit.model.kind)


def comparable(fit: AnyFit) -> bool:
    """Whether other kinds of models can be fitted to the rows of a fit."""
    rows, columns = fit.table.rows, fit.table.read_columns
    single = rows.labels.max() < fit.table.class_labels.size
    return bool(fit.model.kind) and single and not rows.further and not columns.masked

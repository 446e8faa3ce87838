"""Reads the rows of a question as the fit takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, Concatenate, cast

import numpy as np
from jaxtyping import Shaped
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesrbf import table
from bayesrbf.estimators.column_changes import warn_of_columns
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.training_table import TrainingTable
from bayesrbf.records.mixture import Observations

type Fit = FittedTable[FittedModel, object]


@dataclass(frozen=True)
class NewRows:
    """New rows of a table, labels hidden."""

    cells: Observations
    given: object
    """The table as it came."""

    @property
    def names(self) -> Shaped[np.ndarray, " obs"]:
        """Names of the rows."""
        return table.row_names(self.given, self.cells.n_obs)


def new_cells(fit: Fit, X: object, *, holes: bool = False) -> NewRows:
    """Rows in the user's units; a warning if they have many ``holes``.

    It is for predictions: who asks about missing cells knows of them.
    """
    table.as_frame(X)  # our own error for what is no table
    if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
        validate_data(column_shell(fit.table, X), X, reset=False, skip_check_array=True)
    cells = table.encode(X, fit.columns, handle_unknown=fit.table.handle_unknown)
    if fit.model.density is not None:  # exemplars keep no cells
        warn_of_columns(fit.columns, fit.table.rows, cells, X if holes else None)
    return NewRows(cells, X)


def new_rows(fit: Fit, X: object, *, holes: bool = False) -> NewRows:
    """Rows as the model takes them."""
    compared = fit.model.compared(X, column_shell(fit.table, X))
    if compared is not None:
        return NewRows(compared, X)
    return new_cells(fit, X, holes=holes)


def column_shell(training: TrainingTable, X: object = None) -> BaseEstimator:
    """An estimator of the same name that knows the columns: scikit-learn compares those of X.

    Names that were numbers at fit are text in a file.
    """
    shell = _shells(training.owner)()
    shell.n_features_in_ = training.n_columns
    columns = training.columns
    if training.names is not None:
        shell.feature_names_in_ = training.names
    elif columns and list(getattr(X, "columns", ())) == list(columns.names):
        shell.feature_names_in_ = np.array(columns.names, dtype=object)
    return shell


@cache
def _shells(owner: str) -> type[BaseEstimator]:
    """The class of such estimators, made once: scikit-learn's errors have its name."""
    return type(owner, (BaseEstimator,), {})


def ask[F, **P, R](
    answer: Callable[Concatenate[F, P], R],
) -> Callable[Concatenate[BaseEstimator, P], R]:
    """The method of an estimator that puts a question to its fit."""

    @wraps(answer)
    def method(estimator: BaseEstimator, /, *args: P.args, **options: P.kwargs) -> R:
        check_is_fitted(estimator)
        return answer(estimator.fitted_, *args, **options)

    signature = inspect.signature(answer)
    _, *others = signature.parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signed = cast(Any, method)
    signed.__signature__ = signature.replace(parameters=[own, *others])
    return method

"""Which rows to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from bayesrbf.base import names
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.estimator import Estimator

if TYPE_CHECKING:
    import xarray as xr


def acquire_labels(estimator: Estimator, X: object) -> xr.Dataset:
    """What the label of each row would tell about the parameters.

    This is the mutual information of label and parameters under the draws of the posterior. It is
    large where the draws disagree about the class, and small where all draws agree that the classes
    overlap. Label the rows with the largest gain next. Similar rows tell the same.

    Parameters
    ----------
    estimator : classifier
        Fitted, with draws of :meth:`refine <bayesrbf.StackedClassifier.refine>`.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows without a label; missing cells are summed out.

    Returns
    -------
    xarray.Dataset
        ``gain`` over obs, in nats.

    Raises
    ------
    ValueError
        If there are no draws.
    """
    from bayesrbf.fit.row_answers import RowAnswers

    check_is_fitted(estimator)
    fit = estimator.fitted_
    rows = new_rows(fit, X)
    if fit.draws is None:
        raise ValueError(
            f"acquire_labels needs draws of the posterior, and the {fit.table.owner} was fitted to "
            "a point: call its refine() first."
        )
    described = {"description": "mutual information of the label and the parameters (nats)"}
    return RowAnswers(
        {"gain": ((names.OBS,), fit.class_posterior.information(rows.cells), described)},
        coords={names.OBS: rows.names},
    )

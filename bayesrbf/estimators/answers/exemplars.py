"""The exemplars that a prediction rests on, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.fitted.fitted_exemplars import FittedExemplars
from bayesrbf.fitted.fitted_table import FittedTable

if TYPE_CHECKING:
    import pandas as pd


def responsible_exemplars(
    fit: FittedTable[FittedExemplars, None], X: object, most: int = 5
) -> pd.DataFrame:
    r"""List the training rows that decide the class probabilities of each row.

    The responsibility :math:`e^{-d(x, \theta_j) / \sigma^2} / \sum_k e^{-d(x, \theta_k) /
    \sigma^2}` of an exemplar is its share in the probabilities, before calibration and
    ``class_prior``; after :meth:`refine` its mean over the draws.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows, as for :meth:`predict`.
    most : int
        Most exemplars of a row.

    Returns
    -------
    pandas.DataFrame
        One line an exemplar, those first that count most: ``row`` of X,
        ``exemplar`` (row of ``fit``'s X), its ``label``, ``dissimilarity``,
        ``responsibility``.
    """
    rows, log_posterior, model = new_rows(fit, X).cells, fit.log_posterior, fit.model
    theta = fit.point[None] if fit.draws is None else fit.draws.theta
    points = theta.reshape(-1, log_posterior.dimension)
    mean = model.mean_responsibilities(log_posterior, rows, points)
    return explanation(mean, rows.real, fit.table.kept[model.needed], fit.classes, most)


def explanation(
    shares: Float[np.ndarray, "obs exemplar label"],
    dissimilarities: Float[np.ndarray, "obs exemplar"],
    exemplars: Shaped[np.ndarray, " exemplar"],
    classes: Shaped[np.ndarray, " label"],
    most: int,
) -> pd.DataFrame:
    """List the exemplars of every row, those first that count most.

    Shares are NaN where an exemplar is none of the class.

    >>> shares = np.array([[[0.2, np.nan], [np.nan, 0.8]]])
    >>> explanation(shares, np.array([[3.0, 1.0]]), np.array([4, 7]), np.array(["a", "b"]), 5)
       row  exemplar label  dissimilarity  responsibility
    0    0         7     b            1.0             0.8
    1    0         4     a            3.0             0.2
    """
    import pandas as pd

    n_obs, _, n_classes = shares.shape
    flat = shares.reshape(n_obs, -1)
    order = np.argsort(-flat, axis=1, kind="stable")[:, :most]  # NaN comes last
    rows = np.repeat(np.arange(n_obs), order.shape[1])
    entries = order.ravel()
    listed = ~np.isnan(flat[rows, entries])
    rows, entries = rows[listed], entries[listed]
    places = entries // n_classes
    return pd.DataFrame(
        {
            "row": rows,
            "exemplar": exemplars[places],
            "label": classes[entries % n_classes],
            "dissimilarity": dissimilarities[rows, places],
            "responsibility": flat[rows, entries],
        }
    )

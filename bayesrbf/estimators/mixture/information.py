"""Information criteria of a density."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.numerics.mixture.mixture_variables import free_variables


def bic(self: Any, X: object) -> float:
    """Bayesian information criterion: ``-2 log p(X) + P log N``, low is good.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows.

    Returns
    -------
    float
        In nats, with P free parameters.
    """
    scores = self.score_samples(X)
    return float(-2 * scores.sum() + _n_parameters(self.model_) * np.log(scores.size))


def aic(self: Any, X: object) -> float:
    """Akaike information criterion: ``-2 log p(X) + 2 P``, low is good.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows.

    Returns
    -------
    float
        In nats, with P free parameters.
    """
    return float(-2 * self.score_samples(X).sum() + 2 * _n_parameters(self.model_))


def _n_parameters(model: FittedMixture) -> int:
    """Number of free parameters: coordinates of the declared graph."""
    return sum(variable.size for variable in free_variables(model.specification))

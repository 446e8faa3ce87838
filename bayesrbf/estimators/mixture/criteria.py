"""Information criteria of a density."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesrbf.numerics.mixture.mixture_points import free_variables


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
    return float(-2 * scores.sum() + _n_parameters(self) * np.log(scores.size))


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
    return float(-2 * self.score_samples(X).sum() + 2 * _n_parameters(self))


def _n_parameters(density: Any) -> int:
    """Number of free parameters: coordinates of the declared graph."""
    return sum(variable.size for variable in free_variables(density.model_.specification))

"""Undo label switching: components of a class named as in a reference point."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from scipy.special import log_softmax

from bayesrbf.inference.draws import Draws, on_grid
from bayesrbf.inference.protocol import LogPosterior

_FLOOR: Final = -50.0
"""Log responsibilities below this cost the same: one far row must not decide alone."""


def relabel(
    log_posterior: LogPosterior,
    draws: Draws,
    reference: Float[np.ndarray, " coordinate"],
) -> Draws:
    r"""Name the components of every draw as those of a reference point.

    With q the reference's responsibilities and r a draw's, the permutation of
    each class's components minimises the Kullback-Leibler divergence

    .. math:: \sum_k c_{\sigma(k) k}, \quad c_{jk} = -\sum_n q_{nk} \log r_{nj},

    which is an assignment problem per draw and class.

    Parameters
    ----------
    log_posterior : LogPosterior
        Gives responsibilities and permutes coordinates.
    draws : Draws
        Draws of any method.
    reference : ndarray of shape (dimension,)
        The point whose names are kept, such as the MAP estimate.

    Returns
    -------
    Draws
        The same draws, relabelled; the log posterior does not change. Draws
        whose labels were permuted before give the same bits.

    References
    ----------
    Stephens (2000), Dealing with label switching in mixture models,
    JRSS B 62, algorithm 2 with q held at the reference.
    """
    classes = np.asarray(log_posterior.component_class)
    theta = on_grid(draws.theta, log_posterior.variables)
    if np.bincount(classes).max(initial=0) < 2:
        return replace(draws, theta=theta)
    responsibilities = np.exp(log_softmax(log_posterior.component_log_joint(reference), axis=1))
    for chain, draw in np.ndindex(theta.shape[:2]):
        point = theta[chain, draw]
        order = best_order(responsibilities, log_posterior.component_log_joint(point), classes)
        if np.any(order != np.arange(order.size)):
            theta[chain, draw] = log_posterior.permute(point, order)
    return replace(draws, theta=on_grid(theta, log_posterior.variables))


def best_order(
    responsibilities: Float[np.ndarray, "row component"],
    log_joint: Float[np.ndarray, "row component"],
    component_class: Int[np.ndarray, " component"],
) -> Int[np.ndarray, " component"]:
    """The order of a draw's components that is nearest to the reference.

    Parameters
    ----------
    responsibilities : ndarray of shape (n_rows, n_components)
        p(component | row) under the reference.
    log_joint : ndarray of shape (n_rows, n_components)
        Log joint of rows and components under the draw.
    component_class : ndarray of shape (n_components,)
        Class of every component; only components of one class trade places.

    Returns
    -------
    ndarray of shape (n_components,)
        Component ``order[k]`` of the draw takes the place k.

    Examples
    --------
    >>> q = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> best_order(q, np.log([[0.1, 0.9], [0.8, 0.2]]), np.array([0, 0])).tolist()
    [1, 0]
    """
    log_r = np.maximum(log_softmax(log_joint, axis=1), _FLOOR)
    cost = -(log_r.T @ responsibilities)
    order = np.arange(component_class.size)
    for label in np.unique(component_class):
        members = np.flatnonzero(component_class == label)
        chosen, places = linear_sum_assignment(cost[np.ix_(members, members)])
        order[members[places]] = members[chosen]
    return order

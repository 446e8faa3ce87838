"""Undo label switching: name components of a class as in a reference point."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment

from bayesrbf.inference.draws import Draws, on_grid
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.log_sums import log_softmax

_MOST_ENTRIES: Final = 2**22
"""Numbers that the log joints of all draws compared at once may take: 32 MiB."""

_FLOOR: Final = -50.0
"""Log responsibilities below this cost the same: one far row must not decide alone."""


def relabel(
    log_posterior: LogPosterior, draws: Draws, reference: Float[np.ndarray, " coordinate"]
) -> Draws:
    r"""Name the components of every draw as those of a reference point, such as the MAP estimate.

    With q the reference's responsibilities and r a draw's, the permutation of
    each class's components minimises the Kullback-Leibler divergence

    .. math:: \sum_k c_{\sigma(k) k}, \quad c_{jk} = -\sum_n q_{nk} \log r_{nj},

    which is an assignment problem per draw and class. The log posterior does not change. Draws
    whose labels were permuted before give the same bits.

    See Stephens (2000), Dealing with label switching in mixture models, JRSS B 62, algorithm 2 with
    q held at the reference.
    """
    classes = np.asarray(log_posterior.component_class)
    theta = on_grid(draws.theta, log_posterior.variables)
    if not log_posterior.exchangeable:
        return replace(draws, theta=theta)
    responsibilities = np.exp(log_softmax(log_posterior.component_log_joint(reference), axis=-1))
    flat = theta.reshape(-1, theta.shape[-1])  # a view: what is written here is in theta
    size = max(1, _MOST_ENTRIES // responsibilities.size)
    for start in range(0, len(flat), size):
        some = flat[start : start + size]
        log_joints = log_posterior.component_log_joints(some)
        orders = best_orders(responsibilities, log_joints, classes)
        for place in np.flatnonzero((orders != np.arange(classes.size)).any(axis=1)):
            some[place] = log_posterior.permute(some[place], orders[place])
    return replace(draws, theta=on_grid(theta, log_posterior.variables))


def best_orders(
    responsibilities: Float[np.ndarray, "row component"],
    log_joints: Float[np.ndarray, "draw row component"],
    component_class: Int[np.ndarray, " component"],
) -> Int[np.ndarray, "draw component"]:
    """The order of each draw's components that is nearest to the reference.

    Component ``order[k]`` of a draw takes the place k; only components of one class trade places.

    >>> q = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> best_orders(q, np.log([[[0.1, 0.9], [0.8, 0.2]]]), np.array([0, 0])).tolist()
    [[1, 0]]
    """
    costs = -np.maximum(log_softmax(log_joints, axis=-1), _FLOOR).swapaxes(1, 2) @ responsibilities
    orders = np.tile(np.arange(component_class.size), (len(costs), 1))
    for label in np.unique(component_class):
        members = np.flatnonzero(component_class == label)
        within = costs[:, members[:, None], members]
        for order, cost in zip(orders, within, strict=True):
            chosen, places = linear_sum_assignment(cost)
            order[members[places]] = members[chosen]
    return orders

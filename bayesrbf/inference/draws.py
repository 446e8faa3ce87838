"""Draws of a posterior, whatever the method that made them, and the names of their components."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.optimize import linear_sum_assignment

from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.records.mixture import in_blocks
from bayesrbf.records.specification import Variable
from bayesrbf.records.stored import ANY_NUMBER, Requirements, stored

MEMORY: Final = 2 * 2**30
"""Bytes that an array over draws may take, unless a caller says otherwise."""

_GRID: Final = 2.0**40  # Transformed coordinates are multiples of 1 / _GRID (1e-12).


@stored
class Draws:
    """Draws of the unconstrained coordinates, and what is known about each."""

    theta: Float[np.ndarray, "chain draw coordinate"]
    # Always ``lp``, the log density with Jacobian; ``log_q`` of approximations; ``diverging``,
    # ``tree_depth``, ``energy``, ``n_steps`` and more of samplers.
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]] = field(metadata=ANY_NUMBER)
    method: str  # Such as "map", "laplace" or "nuts".
    complete: bool = True  # False when the run was interrupted before its last draw.
    # Figures of the whole run, such as ``pareto_k``.
    attributes: Mapping[str, float | int | str] = field(default_factory=dict, metadata=ANY_NUMBER)

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return self.theta.shape[0] * self.theta.shape[1]

    @property
    def worth(self) -> float:
        """Upper bound on the independent draws: copies in a resample count as one draw."""
        resampled = bool(self.attributes.get("resampled", 0))
        share = float(self.attributes["importance_share"]) if resampled else 1.0
        return share * self.n_draws

    @property
    def point_estimate(self) -> bool:
        """Whether this is one point and not a posterior."""
        return self.n_draws == 1

    def first(self, draws: int) -> Self:
        """The first draws of every chain; the result is incomplete where some are left out."""
        return replace(
            self,
            theta=self.theta[:, :draws],
            stats={name: values[:, :draws] for name, values in self.stats.items()},
            complete=self.complete and draws == self.theta.shape[1],
        )

    def __laws__(self) -> Requirements:
        yield self.n_draws > 0, "draws"
        yield "lp" in self.stats, "the log density of every draw"
        plain = all(value.dtype.kind in "bif" for value in self.stats.values())
        yield plain, "statistics that are numbers"


def check_numbers(method: str, *, least: int = 1, **numbers: int) -> None:
    """ValueError if a number that a method was given is too small, before any work."""
    for name, value in numbers.items():
        if value < least:
            raise ValueError(f"{method}({name}=...) must be at least {least}; received {value!r}.")


def point(log_posterior: LogPosterior, theta: Float[np.ndarray, " coordinate"]) -> Draws:
    """A point estimate as one chain of one draw, of method "map"."""
    value, _ = log_posterior.value_and_gradient(theta)
    return Draws(theta[None, None], {"lp": np.array([[value]])}, "map")


def on_grid(
    theta: Float[np.ndarray, "*draws coordinate"], variables: tuple[Variable, ...]
) -> Float[np.ndarray, "*draws coordinate"]:
    """Round transformed coordinates to multiples of :math:`2^{-40}`.

    A simplex leaves out its last entry, minus the sum of the others, and a change of labels may go
    through constrained values: in floating point, there and back would not return the same bits. On
    the grid it does, because such sums are exact and the error of a round trip is far below one
    step. Log and simplex coordinates change by at most 5e-13.
    """
    transformed = np.repeat(
        [variable.transform != "identity" for variable in variables],
        [variable.size for variable in variables],
    )
    return np.where(transformed, np.round(theta * _GRID) / _GRID, theta)


def one_after_another(
    thetas: Float[np.ndarray, "*batch coordinate"],
) -> Float[np.ndarray, "draw coordinate"]:
    """Draws of all chains as rows; the number of coordinates may be 0."""
    return thetas.reshape(math.prod(thetas.shape[:-1]), thetas.shape[-1])


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
    for part in in_blocks(len(flat), responsibilities.size):
        some = flat[part]
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

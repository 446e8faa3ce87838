"""Expected sufficient statistics: all that the M-step and the gradient need of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations

# Types of what the laws of a mixture's columns take.


Point = MixtureParameters
Hyper = MixtureHyperparameters
Rows = Observations
Rng = np.random.Generator
Values = Mapping[str, np.ndarray]
"""Values of free variables by name."""
Assignment = Int[np.ndarray, " row"]
"""The component of every row."""
Memberships = Float[np.ndarray, "row component"]


# Expected sufficient statistics: all that the M-step and the gradient need of the rows.


@dataclass(frozen=True)
class Statistics:
    """Expected sufficient statistics of one E-step.

    With row weights v, responsibilities r and component means mu, all at the
    parameters of the E-step; missing cells enter by their conditional moments.
    """

    counts: Float[np.ndarray, " component"]  # sum_n v_n r_nk.
    first: Float[np.ndarray, "component feature"]  # sum_n v_n r_nk E[x_n - mu_k | x_o, k].
    # sum_n v_n r_nk E[(x_n - mu_k)(x_n - mu_k)' | x_o, k]; its diagonal only for diagonal and
    # spherical covariances. Under one covariance only the sum over its components counts: what a
    # missing cell adds may stand at the first of them.
    second: Float[np.ndarray, "component *feature"]
    # sum_n v_n r_nk 1[x_nj = level] over observed cells, one array per categorical column.
    category_counts: tuple[Float[np.ndarray, "component _"], ...]
    log_likelihood: float  # sum_n v_n log p(x_n, y_n) in nats.
    pointwise: Float[np.ndarray, " obs"]  # log p(x_n, y_n) of every row, not weighted, in nats.

    def joined(self, other: Statistics) -> Statistics:
        """Statistics of the rows of both, at the same parameters and without ``pointwise``."""
        return Statistics(
            self.counts + other.counts,
            self.first + other.first,
            self.second + other.second,
            tuple(map(np.add, self.category_counts, other.category_counts)),
            self.log_likelihood + other.log_likelihood,
            np.zeros(0),
        )


def sum_by_group(
    values: Float[np.ndarray, "component *rest"], specification: MixtureSpecification
) -> Float[np.ndarray, "group *rest"]:
    """Sums of ``values`` over the components of every covariance group."""
    sizes = specification.group_sizes
    if sizes.size == specification.n_components:
        return values.copy()
    if sizes.size == 1:
        return values.sum(axis=0, keepdims=True)
    return np.add.reduceat(values, sizes.cumsum() - sizes, axis=0)  # groups lie side by side


def sum_by_class(
    values: Float[np.ndarray, " component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    """Sums of ``values`` over the components of every class."""
    return np.bincount(specification.component_class, weights=values)


@dataclass(frozen=True)
class JointPoint:
    r"""Log joints of rows at one point, with the map from their gradients to statistics.

    An objective :math:`J(\ell)` of :math:`\ell_{nk} = \log p(x_n, k)` has the gradient

    .. math::
       \frac{\partial J}{\partial \phi}
           = \sum_{nk} G_{nk} \frac{\partial \log p(x_n, k)}{\partial \phi},
       \qquad G_{nk} = \frac{\partial J}{\partial \ell_{nk}}

    in the parameters of the mixture. That sum is linear in the same sufficient statistics as EM's,
    with G, of any sign, in the place of weighted responsibilities: missing cells enter by their
    conditional moments (Fisher's identity, component by component). So one routine serves every
    objective, and :mod:`bayesrbf.mixture.points` carries the statistics on to the
    coordinates of the declared graph.

    The gradient of the mixture's own log likelihood: G are the responsibilities.

    >>> from bayesrbf.mixture.expectation import prepare
    >>> from bayesrbf.base.rows import MixtureParameters, Observations
    >>> from bayesrbf.base.rows import MixtureSpecification
    >>> rows = Observations(
    ...     real=np.array([[0.5], [np.nan]]), codes=np.zeros((2, 0), int),
    ...     labels=np.zeros(2, int), weights=np.ones(2))
    >>> specification = MixtureSpecification(1, (), (0, 0))
    >>> point = MixtureParameters(
    ...     np.ones(1), np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)), ())
    >>> joint = prepare(rows, specification).at(point)
    >>> density = np.logaddexp.reduce(joint.log_joint, axis=1)
    >>> joint.statistics(np.exp(joint.log_joint - density[:, None])).counts
    array([0.769, 1.231])
    """

    log_joint: Float[np.ndarray, "obs component"]
    """``log pi_c + log w_k + log p(x_o | k)`` in nats; labels play no part."""
    _sums: Callable[[np.ndarray], Statistics]

    def statistics(self, gradients: Float[np.ndarray, "obs component"]) -> Statistics:
        """Statistics with ``G = dJ / d log_joint`` in place of weighted responsibilities.

        G has any sign and includes the row weights. ``pointwise`` and
        ``log_likelihood`` are the row and total sums of ``G log_joint``.
        """
        pointwise = np.einsum("nk,nk->n", gradients, self.log_joint)
        return replace(
            self._sums(gradients), log_likelihood=float(pointwise.sum()), pointwise=pointwise
        )

r"""What the observed cells of a row say about its missing ones.

Given component k the missing reals are normal with the conditional moments of
:mod:`bayesrbf.numerics.mixture.gaussian`, and the missing categories have the
component's own level probabilities; both are averaged over components by
:math:`p(k | x_o)`. Labels are used only where a caller hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.gaussian import Conditional
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.quasi_random import QUADRATURE
from bayesrbf.records.mixture import ColumnAtoms, MixtureParameters, Observations
from bayesrbf.records.row_blocks import in_blocks
from bayesrbf.records.specification import MixtureSpecification


def responsibilities(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "obs component"]:
    """Posterior probability ``p(k | x_o)`` of every component; labels are not used.

    Rows and point are in standard units.
    """
    log_joint = prepare(observations, specification).component_log_joint(parameters)
    return log_sum_exp(log_joint, axis=1)[1]


def conditionals(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> Iterator[Conditional]:
    """Conditional moments of the reals under every component; the blocks cover every row once.

    Rows and point are in standard units.
    """
    law = laws_of(specification).reals
    factors = parameters.precisions_cholesky[specification.covariance_group]
    holes = law.holes(~np.isnan(observations.real))
    k, d = parameters.means.shape
    for m in np.unique(holes):
        same = np.flatnonzero(holes == m)
        for part in in_blocks(same.size, k * max(d, int(m) ** 2)):
            rows = same[part]
            yield law.conditional(rows, observations.real[rows], parameters.means, factors)


def conditional_moments(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> tuple[Float[np.ndarray, "obs feature"], Float[np.ndarray, "obs feature"]]:
    """Mean and variance of every real cell given the observed cells of its row.

    Rows and point are in standard units. An observed cell is its own mean, of variance zero.
    """
    weights = responsibilities(observations, parameters, specification)
    mean = np.empty_like(observations.real)
    variance = np.empty_like(observations.real)
    for block in conditionals(observations, parameters, specification):
        of_rows = weights[block.rows]
        centre = np.einsum("nk,nkd->nd", of_rows, block.means)
        between = (block.means - centre[:, None, :]) ** 2
        mean[block.rows] = centre
        variance[block.rows] = np.einsum("nk,nkd->nd", of_rows, block.variances + between)
    observed = ~np.isnan(observations.real)
    # The average of a cell with itself differs from it by rounding: hand back the cell.
    return np.where(observed, observations.real, mean), np.where(observed, 0.0, variance)


def conditional_means(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    of: Callable[[np.ndarray], np.ndarray],
    atoms: Sequence[ColumnAtoms] = (),
) -> Float[np.ndarray, "obs feature"]:
    r"""Mean of a function of every missing real cell given the observed cells of its row.

    .. math:: E[f(z_j) | z_o] = \sum_k p(k | z_o) \int f(m_{kj} + s_{kj} u) \, N(u; 0, 1) \, du

    by Gauss-Hermite quadrature. Rows and point are in standard units; f takes cells (..., feature)
    each to a number. An observed cell is what f makes of it. In a column with atoms a that is
    :math:`\sum_k p(k | z_o) (\theta_{kj0} \int \dots + \sum_a \theta_{kja} a)`.
    """
    weights = responsibilities(observations, parameters, specification)
    mean = of(observations.real)
    for block in conditionals(observations, parameters, specification):
        spread = np.sqrt(block.variances)
        expected = sum(
            mass * of(block.means + node * spread) for node, mass in zip(*QUADRATURE, strict=True)
        )
        for one in atoms:
            theta = parameters.category_probabilities[one.category]
            expected[..., one.feature] *= theta[:, 0]
            expected[..., one.feature] += theta[:, 1:] @ one.values
        found = np.einsum("nk,nkd->nd", weights[block.rows], expected)
        hole = np.isnan(observations.real[block.rows])
        mean[block.rows] = np.where(hole, found, mean[block.rows])
    return mean


def conditional_probabilities(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> tuple[Float[np.ndarray, "obs _"], ...]:
    """Level probabilities of every categorical cell given the observed cells of its row.

    Rows and point are in standard units. There is one array a column; an observed cell has
    probability one at its level.
    """
    weights = responsibilities(observations, parameters, specification)
    return laws_of(specification).levels.conditional(observations.codes, weights, parameters)


def conditional_further(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> tuple[tuple[Float[np.ndarray, "obs _"], Float[np.ndarray, "obs _"]], ...]:
    """Mean and variance of every cell under a law of its own, given the other cells of its row.

    Rows and point are in standard units. There is one pair a law; an observed cell is its own
    mean, of variance zero.
    """
    weights, laws = (
        responsibilities(observations, parameters, specification),
        laws_of(specification),
    )
    return tuple(
        law.conditional(cells, weights, parameters.further)
        for law, cells in zip(laws.further, observations.further, strict=True)
    )

r"""What the observed cells of a row say about its missing ones.

Given component k the missing reals are normal with the conditional moments of
:mod:`bayesrbf.numerics.mixture.gaussian`, and the missing categories have the
component's own level probabilities; both are averaged over components by
:math:`p(k | x_o)`. Labels are used only where a caller hands them over.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations
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
    for block in laws_of(specification).reals.conditionals(observations.real, parameters):
        of_rows = weights[block.rows]
        centre = np.einsum("nk,nkd->nd", of_rows, block.means)
        between = (block.means - centre[:, None, :]) ** 2
        mean[block.rows] = centre
        variance[block.rows] = np.einsum("nk,nkd->nd", of_rows, block.variances + between)
    observed = ~np.isnan(observations.real)
    # The average of a cell with itself differs from it by rounding: hand back the cell.
    return np.where(observed, observations.real, mean), np.where(observed, 0.0, variance)


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

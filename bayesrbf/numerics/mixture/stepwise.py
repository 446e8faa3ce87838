r"""Stepwise EM: statistics of a stream of rows, of which each block is seen once.

Statistics s of a unit of weight are moved towards those of a block, and the M-step follows:

.. math:: s \leftarrow (1 - \gamma_t) s + \gamma_t \hat s_t, \qquad \gamma_t = (t + 1)^{-0.6}

for the t-th block after the one that the stream began with. The steps add up to infinity and their
squares do not, so that the parameters converge to a mode.

References
----------
Cappé and Moulines (2009), On-line expectation-maximization algorithm for latent data models,
Journal of the Royal Statistical Society B 71, 593-613, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import Statistics, combined
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

POWER: Final = 0.6
"""Of the step size; between a half and one."""


@dataclass(frozen=True)
class Stream:
    """What is left of the rows seen so far."""

    statistics: Statistics
    """Of a unit of weight."""
    centre: Float[np.ndarray, "component feature"]
    """Means at which the statistics are centred."""
    mass: float
    """Weight of the rows seen."""
    n_steps: int


def begun(
    rows: Observations, parameters: MixtureParameters, specification: MixtureSpecification
) -> Stream:
    """A stream that has seen some rows, in standard units, to which the parameters were fitted."""
    mass = float(rows.weights.sum())
    statistics = combined((1 / mass, prepare(rows, specification).statistics(parameters)))
    return Stream(statistics, parameters.means, mass, 0)


def stepped(
    stream: Stream,
    rows: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> tuple[Stream, MixtureParameters]:
    """See one more block, in standard units; the prior counts beside all rows seen so far."""
    weight = float(rows.weights.sum())
    n_steps, mass = stream.n_steps + 1, stream.mass + weight
    share = (n_steps + 1) ** -POWER
    before = recentred(stream.statistics, parameters.means - stream.centre, specification)
    block = prepare(rows, specification).statistics(parameters)
    statistics = combined((1 - share, before), (share / weight, block))
    every = combined((mass, statistics))
    following = laws_of(specification).mode(every, parameters, hyperparameters)
    return Stream(statistics, parameters.means, mass, n_steps), following


def recentred(
    statistics: Statistics,
    shift: Float[np.ndarray, "component feature"],
    specification: MixtureSpecification,
) -> Statistics:
    """Moments about means that are moved by a shift."""
    first = statistics.first - statistics.counts[:, None] * shift
    second = laws_of(specification).reals.recentred(statistics, shift)
    return replace(statistics, first=first, second=second)

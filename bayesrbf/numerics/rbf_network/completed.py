r"""Outputs of rows with holes, averaged over what may stand there.

.. math:: p(y | x_o) = \int p(y | x) \, p(x_m | x_o) \, dx_m

Features :math:`f(x_o)` mean what training made them mean; a network that saw complete rows is
asked about completions of a row, drawn by its hidden layer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, logsumexp

from bayesrbf.numerics.completion import complete
from bayesrbf.numerics.rbf_network.rows import Network
from bayesrbf.order import Order
from bayesrbf.parameters import Observations
from bayesrbf.rbf_parameters import RBFNetworkParameters, RBFNetworkSpecification

BLOCK = 4096
"""Rows whose completions are held at a time."""


def completed_linear(
    observations: Observations,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> Float[np.ndarray, "draw obs output"]:
    """Linear outputs of rows whose missing cells are drawn by the hidden layer.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels and weights are not used.
    parameters : RBFNetworkParameters
        Point, in standard units.
    specification : RBFNetworkSpecification
        Structure of the network.
    draws : int
        Completions of a row with holes, a power of two.
    replicate : int
        Which of the independent sets of draws.
    order : Order, optional
        Order of columns and components in which cells are drawn; None: as they stand.

    Returns
    -------
    ndarray of shape (n_draws, n_obs, n_outputs)
        ``f w + b`` of every completion; a complete row is the same in all.
    """
    results = []
    for rows in _blocks(observations):
        points, starts = complete(
            rows,
            parameters.mixture,
            specification.mixture,
            draws=draws,
            replicate=replicate,
            order=order,
        )
        linear = Network(points, specification).linear(parameters)
        last = np.diff(starts, append=points.n_obs) - 1
        results.append(linear[starts + np.minimum(np.arange(draws)[:, None], last)])
    return np.concatenate(results, axis=1)


def mean_log_probabilities(
    observations: Observations,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    *,
    draws: int,
    temperature: float = 1.0,
    order: Order | None = None,
) -> Float[np.ndarray, "obs label"]:
    """Log of the mean class probabilities over completions.

    Every completion is calibrated for itself, and the mean is given as what the temperature
    will be applied to: ``log mean_s softmax(t eta_s) / t``, less what makes it sum to one.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels and weights are not used.
    parameters : RBFNetworkParameters
        Point, in standard units.
    specification : RBFNetworkSpecification
        Structure of the network.
    draws : int
        Completions of a row with holes, a power of two.
    temperature : float
        Factor t of the log probabilities of a complete row.
    order : Order, optional
        Order of columns and components in which cells are drawn; None: as they stand.

    Returns
    -------
    ndarray of shape (n_obs, n_classes)
        Log probabilities in nats; t times them is ``log p(c | x_o)`` but for a constant a row.
    """
    results = []
    for rows in _blocks(observations):
        linear = completed_linear(rows, parameters, specification, draws=draws, order=order)
        log_p = log_softmax(temperature * linear, axis=2)
        results.append(log_softmax(logsumexp(log_p, axis=0) / temperature, axis=1))
    return np.concatenate(results)


def _blocks(observations: Observations) -> Iterator[Observations]:
    """Some rows at a time; at least one block."""
    for start in range(0, max(observations.n_obs, 1), BLOCK):
        yield observations.take(np.arange(start, min(start + BLOCK, observations.n_obs)))

"""Sums of what is known by its logarithms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.specification import MixtureSpecification


def component_log_weights(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, " component"]:
    """Joint log probability ``log pi_c + log w_k`` of class and component, in nats."""
    classes = np.asarray(specification.component_class)
    return np.log(parameters.class_probabilities)[classes] + np.log(parameters.weights)


def log_sum_exp(
    log_values: Float[np.ndarray, "*shape"], axis: int
) -> tuple[Float[np.ndarray, "*reduced"], Float[np.ndarray, "*shape"]]:
    """Log of sums along an axis, ``log sum exp(l)``, and the shares ``exp(l - log sum exp(l))``.

    The log values are finite, or some of them minus infinity.
    """
    if log_values.shape[axis] == 1:
        return np.squeeze(log_values, axis=axis).copy(), np.ones_like(log_values)
    top = log_values.max(axis=axis, keepdims=True)
    shares = log_values - top
    np.exp(shares, out=shares)
    sums = shares.sum(axis=axis, keepdims=True)
    shares /= sums
    return np.squeeze(np.log(sums) + top, axis=axis), shares

"""Sums of what is known by its logarithms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.specification import MixtureSpecification


def component_log_weights(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, " component"]:
    """Joint log probability ``log pi_c + log w_k`` of class and component.

    Parameters
    ----------
    parameters : MixtureParameters
        Point of the mixture.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (n_components,)
        Log probabilities in nats; they sum to one over all components.
    """
    classes = np.asarray(specification.component_class)
    return np.log(parameters.class_probabilities)[classes] + np.log(parameters.weights)


def log_sum_exp(
    log_values: Float[np.ndarray, "*shape"], axis: int
) -> tuple[Float[np.ndarray, "*reduced"], Float[np.ndarray, "*shape"]]:
    """Log of sums along an axis, and the shares of those sums.

    Parameters
    ----------
    log_values : ndarray
        Finite log values.
    axis : int
        The axis to sum over.

    Returns
    -------
    log_sums : ndarray
        ``log sum exp(log_values)``, without the axis.
    shares : ndarray
        ``exp(log_values - log_sums)``, summing to one along the axis.
    """
    if log_values.shape[axis] == 1:
        return np.squeeze(log_values, axis=axis).copy(), np.ones_like(log_values)
    top = log_values.max(axis=axis, keepdims=True)
    shares = log_values - top
    np.exp(shares, out=shares)
    sums = shares.sum(axis=axis, keepdims=True)
    shares /= sums
    return np.squeeze(np.log(sums) + top, axis=axis), shares

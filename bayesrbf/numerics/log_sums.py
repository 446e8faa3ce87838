"""Sums of what is known by its logarithms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.specification import MixtureSpecification


def component_log_weights(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, " component"]:
    """Joint log probability ``log pi_c + log w_k`` of class and component in nats."""
    classes = np.asarray(specification.component_class)
    return np.log(parameters.class_probabilities)[classes] + np.log(parameters.weights)


def log_sum_exp(
    log_values: Float[np.ndarray, "*shape"], axis: int
) -> tuple[Float[np.ndarray, "*reduced"], Float[np.ndarray, "*shape"]]:
    """Log of sums along an axis, and ``exp(log_values - log_sums)``, which sums to one along it.

    The log values are finite, or some of them minus infinity.
    """
    if log_values.shape[axis] == 1:
        return np.squeeze(log_values, axis=axis).copy(), np.ones_like(log_values)
    top = log_values.max(axis=axis, keepdims=True)
    parts = log_values - top
    np.exp(parts, out=parts)
    sums = parts.sum(axis=axis, keepdims=True)
    parts /= sums
    return np.squeeze(np.log(sums) + top, axis=axis), parts


def class_log_joint(
    log_joint: Float[np.ndarray, "*batch component"], class_slices: tuple[slice, ...]
) -> tuple[Float[np.ndarray, "*batch label"], Float[np.ndarray, "*batch component"]]:
    """Sum components to classes: ``log p(x_n, c)`` in nats, and ``p(k | x_n, c)``."""
    by_class = np.empty((*log_joint.shape[:-1], len(class_slices)))
    responsibilities = np.ones_like(log_joint)
    for label, part in enumerate(class_slices):
        if part.stop - part.start == 1:
            by_class[..., label] = log_joint[..., part.start]
        else:
            by_class[..., label], responsibilities[..., part] = log_sum_exp(
                log_joint[..., part], axis=-1
            )
    return by_class, responsibilities

"""Sums of what is known by its logarithms."""

from __future__ import annotations

from functools import reduce
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import MixtureSpecification

FEW: Final = 8
"""Up to so many entries are summed by slices: a reduction over a short last axis takes ten times
as long."""


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
    top = reduced(np.maximum, log_values, axis)
    parts = log_values - np.expand_dims(top, axis)
    np.exp(parts, out=parts)
    sums = reduced(np.add, parts, axis)
    parts /= np.expand_dims(sums, axis)
    return np.asarray(np.log(sums) + top), parts


def log_softmax(log_values: Float[np.ndarray, "*shape"], axis: int) -> Float[np.ndarray, "*shape"]:
    """Log values less the log of their sum, ``x - log sum exp x``, along an axis."""
    shifted = log_values - np.expand_dims(reduced(np.maximum, log_values, axis), axis)
    shifted -= np.expand_dims(np.log(reduced(np.add, np.exp(shifted), axis)), axis)
    return shifted


def reduced(
    function: np.ufunc, values: Float[np.ndarray, "*shape"], axis: int
) -> Float[np.ndarray, "*reduced"]:
    """``function.reduce`` along an axis that is not empty."""
    if values.shape[axis] > FEW:
        return np.asarray(function.reduce(values, axis=axis))
    return np.asarray(reduce(function, np.moveaxis(values, axis, 0)))


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


def to_prediction(log_joint: Float[np.ndarray, "*draws obs label"]) -> ClassPrediction:
    """Take ``log p(x_o, c)`` apart: log class probabilities and ``log p(x_o)``, both in nats."""
    log_density, _ = log_sum_exp(log_joint, axis=-1)
    return ClassPrediction(log_joint - log_density[..., None], log_density)

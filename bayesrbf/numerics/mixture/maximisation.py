"""The M-step: statistics and a prior in, the mode of the expected log posterior out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.parts.laws import Laws, laws_of
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_class
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


def maximise(
    statistics: Statistics,
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> MixtureParameters:
    """Compute the mode of the expected complete-data log posterior.

    The statistics are those of the E-step at ``parameters``; the prior is in the same units.
    """
    laws = laws_of(specification)
    means, factors = laws.reals.mode(statistics, parameters, hyperparameters)
    class_counts = sum_by_class(statistics.counts, specification)
    return MixtureParameters(
        class_probabilities=normalised(class_counts + hyperparameters.class_concentration - 1),
        weights=_class_weights(statistics, hyperparameters, specification),
        means=means,
        precisions_cholesky=factors,
        category_probabilities=laws.levels.mode(statistics.category_counts, hyperparameters),
        further=_further(statistics, parameters, laws),
    )


def _further(
    statistics: Statistics, parameters: MixtureParameters, laws: Laws
) -> dict[str, np.ndarray]:
    """Values of the variables of all further laws."""
    values: dict[str, np.ndarray] = {}
    for law, sums in zip(laws.further, statistics.further, strict=True):
        values |= law.mode(parameters.further, sums)
    return values


def _class_weights(
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, " component"]:
    """Component weights, summing to one within each class."""
    counts = statistics.counts + hyperparameters.weight_concentration - 1
    parts = [normalised(counts[part]) for part in specification.class_slices]
    return np.concatenate(parts)


def normalised(counts: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Shares of the last axis."""
    return counts / counts.sum(axis=-1, keepdims=True)

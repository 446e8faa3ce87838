"""Expected sufficient statistics: all that the M-step and the gradient need of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.records.specification import MixtureSpecification


@dataclass(frozen=True)
class Statistics:
    """Expected sufficient statistics of one E-step.

    With row weights v, responsibilities r and component means mu, all at the
    parameters of the E-step; missing cells enter by their conditional moments.
    """

    counts: Float[np.ndarray, " component"]  # sum_n v_n r_nk.
    first: Float[np.ndarray, "component feature"]  # sum_n v_n r_nk E[x_n - mu_k | x_o, k].
    # sum_n v_n r_nk E[(x_n - mu_k)(x_n - mu_k)' | x_o, k]; its diagonal only for diagonal and
    # spherical covariances.
    second: Float[np.ndarray, "component *feature"]
    # sum_n v_n r_nk 1[x_nj = level] over observed cells, one array per categorical column.
    category_counts: tuple[Float[np.ndarray, "component _"], ...]
    log_likelihood: float  # sum_n v_n log p(x_n, y_n) in nats.
    pointwise: Float[np.ndarray, " obs"]  # log p(x_n, y_n) of every row, not weighted, in nats.
    further: tuple[np.ndarray, ...] = ()  # Those of every law of further columns.


def sum_by_group(
    values: Float[np.ndarray, "component *rest"], specification: MixtureSpecification
) -> Float[np.ndarray, "group *rest"]:
    """Add up what belongs to the components under one covariance."""
    sizes = specification.group_sizes
    if sizes.size == specification.n_components:
        return values.copy()
    return np.add.reduceat(values, sizes.cumsum() - sizes, axis=0)  # groups lie side by side


def sum_by_class(
    values: Float[np.ndarray, " component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    """Add up what belongs to the components of each class."""
    return np.bincount(specification.component_class, weights=values)

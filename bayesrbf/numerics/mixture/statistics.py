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

    Attributes
    ----------
    counts : ndarray of shape (n_components,)
        ``sum_n v_n r_nk``.
    first : ndarray of shape (n_components, n_features)
        ``sum_n v_n r_nk E[x_n - mu_k | x_o, k]``.
    second : ndarray of shape (n_components, n_features, n_features) or (n_components, n_features)
        ``sum_n v_n r_nk E[(x_n - mu_k)(x_n - mu_k)' | x_o, k]``; its diagonal
        only for diagonal and spherical covariances.
    category_counts : tuple of ndarray of shape (n_components, n_levels)
        ``sum_n v_n r_nk 1[x_nj = level]`` over observed cells, one array per
        categorical column.
    log_likelihood : float
        ``sum_n v_n log p(x_n, y_n)`` in nats.
    pointwise : ndarray of shape (n_obs,)
        ``log p(x_n, y_n)`` of every row, not weighted, in nats.
    """

    counts: Float[np.ndarray, " component"]
    first: Float[np.ndarray, "component feature"]
    second: Float[np.ndarray, "component *feature"]
    category_counts: tuple[Float[np.ndarray, "component _"], ...]
    log_likelihood: float
    pointwise: Float[np.ndarray, " obs"]


def sum_by_group(
    values: Float[np.ndarray, "component *rest"], specification: MixtureSpecification
) -> Float[np.ndarray, "group *rest"]:
    """Add up what belongs to the components under one covariance.

    Parameters
    ----------
    values : ndarray of shape (n_components, ...)
        One entry a component.
    specification : MixtureSpecification
        Says which covariance each component uses.

    Returns
    -------
    ndarray of shape (n_groups, ...)
        One sum a covariance group.
    """
    sizes = specification.group_sizes
    if sizes.size == specification.n_components:
        return values.copy()
    return np.add.reduceat(values, sizes.cumsum() - sizes, axis=0)  # groups lie side by side


def sum_by_class(
    values: Float[np.ndarray, " component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    """Add up what belongs to the components of each class.

    Parameters
    ----------
    values : ndarray of shape (n_components,)
        One entry a component.
    specification : MixtureSpecification
        Says which class each component belongs to.

    Returns
    -------
    ndarray of shape (n_classes,)
        One sum a class.
    """
    return np.bincount(specification.component_class, weights=values)

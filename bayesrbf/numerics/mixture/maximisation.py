r"""The M-step: statistics and a prior in, the mode out.

With :math:`n_k` the counts, :math:`G_g` the number of means under covariance g
and the scatter :math:`S_g` taken about the new means,

.. math::
   \mu_k &= (\textstyle\sum_n r_{nk} x_n + \kappa_0 m_0) / (n_k + \kappa_0) \\
   \Sigma_g &= \frac{S_g + (\nu_0 + G_g) S_0
       + \kappa_0 \sum_k (\mu_k - m_0)(\mu_k - m_0)'}{n_g + \nu_0 + G_g}

A component without rows keeps :math:`m_0` and :math:`S_0`: the prior preserves
the mean covariance instead of shrinking it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_class, sum_by_group
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

SMALLEST_EIGENVALUE = 1e-10
"""Floor of a covariance's eigenvalues relative to its largest: below, rounding rules."""

SMALL_HALF = 8
"""Half the size up to which a triangular matrix is inverted like any other."""


def maximise(
    statistics: Statistics,
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> MixtureParameters:
    """Compute the mode of the expected complete-data log posterior.

    Parameters
    ----------
    statistics : Statistics
        Statistics of the E-step, centred at ``parameters.means``.
    parameters : MixtureParameters
        The point at which the E-step was taken.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the same units as ``parameters``.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    MixtureParameters
        The mode.
    """
    means, scatter = _means_and_scatter(statistics, parameters, hyperparameters)
    class_counts = sum_by_class(statistics.counts, specification)
    return MixtureParameters(
        class_probabilities=_normalised(class_counts + hyperparameters.class_concentration - 1),
        weights=_class_weights(statistics, hyperparameters, specification),
        means=means,
        precisions_cholesky=_factors(scatter, statistics, hyperparameters, specification),
        category_probabilities=tuple(
            _normalised(counts + concentration - 1)
            for counts, concentration in zip(
                statistics.category_counts, hyperparameters.category_concentrations, strict=True
            )
        ),
    )


def precision_factor(
    covariances: Float[np.ndarray, "group feature feature"],
) -> Float[np.ndarray, "group feature feature"]:
    """Lower L with ``(L L')^-1`` equal to each covariance.

    Eigenvalues below ``SMALLEST_EIGENVALUE`` of the largest are raised to it:
    a factor that exists is not yet a factor that can be trusted.

    Parameters
    ----------
    covariances : ndarray of shape (n_groups, n_features, n_features)
        Symmetric matrices.

    Returns
    -------
    ndarray of shape (n_groups, n_features, n_features)
        Lower-triangular precision factors.
    """
    try:
        factors = _factor(covariances)
        # The product of the traces of Sigma and P = L L' bounds the condition number from above.
        traces = np.trace(covariances, axis1=1, axis2=2) * (factors**2).sum(axis=(1, 2))
        if (traces <= 1 / SMALLEST_EIGENVALUE).all():
            return factors
        # So does that of their Frobenius norms, more narrowly.
        conditions = _norms(covariances) * _norms(factors @ factors.swapaxes(1, 2))
        weak = ~(conditions <= 1 / SMALLEST_EIGENVALUE)
    except np.linalg.LinAlgError:
        factors, weak = np.empty_like(covariances), np.ones(len(covariances), dtype=bool)
    if weak.any():
        factors[weak] = _factor(_floored(covariances[weak]))
    return factors


def at_floor(factors: Float[np.ndarray, "group *feature"]) -> bool:
    """Whether the floor of the eigenvalues shapes some covariance.

    Parameters
    ----------
    factors : ndarray of shape (n_groups, n_features[, n_features])
        Precision factors.

    Returns
    -------
    bool
        True if a full covariance is as badly conditioned as the floor allows.
    """
    if factors.ndim == 2 or factors.size == 0:
        return False
    # cond(Sigma) = cond(L)^2; the margin covers the rounding of the floored matrix.
    return bool((np.linalg.cond(factors) ** 2 > 0.5 / SMALLEST_EIGENVALUE).any())


def _factor(covariances: np.ndarray) -> np.ndarray:
    """Precision factors of well-conditioned covariances.

    Sigma = U U' with U upper comes from the Cholesky factor of the reversed
    matrix, and then L = U'^-1 is lower: Sigma itself is never inverted.
    """
    upper = np.linalg.cholesky(covariances[:, ::-1, ::-1])[:, ::-1, ::-1]
    return np.tril(_inverse(upper).swapaxes(1, 2))


def _inverse(upper: np.ndarray) -> np.ndarray:
    """Inverses of upper triangular matrices, by halves.

    The inverse of [[A, B], [0, C]] is [[A^-1, -A^-1 B C^-1], [0, C^-1]].
    """
    half = upper.shape[1] // 2
    if half <= SMALL_HALF:
        return np.linalg.inv(upper)
    inverse = np.zeros_like(upper)
    inverse[:, :half, :half] = first = _inverse(upper[:, :half, :half])
    inverse[:, half:, half:] = last = _inverse(upper[:, half:, half:])
    inverse[:, :half, half:] = -first @ upper[:, :half, half:] @ last
    return inverse


def _floored(covariances: np.ndarray) -> np.ndarray:
    """Covariances with their small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, SMALLEST_EIGENVALUE * values[:, -1:])
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Frobenius norms."""
    return np.sqrt(np.einsum("gij,gij->g", matrices, matrices))


def _means_and_scatter(
    statistics: Statistics,
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
) -> tuple[np.ndarray, np.ndarray]:
    """Means, and per component the scatter about them plus the prior mean's pull."""
    kappa, centre = hyperparameters.mean_precision, hyperparameters.location
    counts, first = statistics.counts[:, None], statistics.first
    shift = (first + kappa * (centre - parameters.means)) / (counts + kappa)
    means = parameters.means + shift
    pull = means - centre
    if statistics.second.ndim == 2:
        scatter = statistics.second - 2 * first * shift + counts * shift**2 + kappa * pull**2
        return means, scatter
    cross = first[:, :, None] * shift[:, None, :]
    scatter = statistics.second - cross - cross.swapaxes(1, 2)
    scatter += counts[:, :, None] * shift[:, :, None] * shift[:, None, :]
    scatter += kappa * pull[:, :, None] * pull[:, None, :]
    return means, scatter


def _factors(
    scatter: np.ndarray,
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> np.ndarray:
    """Precision factors at the mode of the covariances."""
    strength = hyperparameters.degrees_of_freedom + specification.group_sizes
    total = sum_by_group(statistics.counts, specification) + strength
    prior = strength[:, None] * hyperparameters.scale**2
    sums = sum_by_group(scatter, specification)
    if specification.shape == "full":
        d = specification.n_features
        sums[:, range(d), range(d)] += prior
        return precision_factor(sums / total[:, None, None])
    variances = (sums + prior) / total[:, None]
    if specification.shape == "spherical" and specification.n_features:
        relative = (variances / hyperparameters.scale**2).mean(axis=1, keepdims=True)
        variances = relative * hyperparameters.scale**2
    return variances**-0.5


def _class_weights(
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> np.ndarray:
    """Component weights, summing to one within each class."""
    counts = statistics.counts + hyperparameters.weight_concentration - 1
    parts = [_normalised(counts[part]) for part in specification.class_slices]
    return np.concatenate(parts)


def _normalised(counts: np.ndarray) -> np.ndarray:
    """Shares of the last axis."""
    return counts / counts.sum(axis=-1, keepdims=True)

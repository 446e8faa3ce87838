r"""The declared prior of a mixture: log density and gradient, without Jacobian.

.. math::
   d_i &\sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2), \quad A_{ij} \sim N(0, 1), \\
   \mu_k &\sim N(m_0, (\kappa_0 P)^{-1}), \quad
   w, \pi, \theta \sim \mathrm{Dirichlet}

and for spherical covariances one :math:`d \sim \mathrm{Gamma}(D\nu_0/2 + 1,\ D/2)`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf import names
from bayesrbf.numerics.coordinates import SMALLEST_PROBABILITY, simplex_gradient
from bayesrbf.numerics.mixture_structure import free_variables, lower_entries
from bayesrbf.numerics.mixture_variables import base_scales
from bayesrbf.numerics.statistics import Statistics, sum_by_class, sum_by_group
from bayesrbf.parameters import MixtureParameters
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification

LOG_2PI = float(np.log(2 * np.pi))


def log_prior(
    values: Mapping[str, np.ndarray],
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> float:
    """Log density of the declared prior at one point, without Jacobian.

    Parameters
    ----------
    values : mapping of str to ndarray
        Values of the free variables.
    parameters : MixtureParameters
        The same point as parameters.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the units of ``parameters``.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    float
        Log density in nats.
    """
    total = 0.0
    for name, concentration in _dirichlets(hyperparameters, specification).items():
        total += _log_dirichlet(values[name], concentration)
    if specification.n_features == 0:
        return total
    shape, rate = _gamma(hyperparameters, specification)
    diagonal = values[names.PRECISION_DIAGONAL]
    total += float(
        ((shape - 1) * np.log(diagonal) - rate * diagonal).sum()
        + diagonal.size * (shape * np.log(rate) - gammaln(shape))
    )
    if _has_lower(specification):
        lower = values[names.PRECISION_LOWER]
        total -= float(0.5 * (lower**2).sum() + 0.5 * lower.size * LOG_2PI)
    return total + _log_means(parameters, hyperparameters, specification)


def gradient(
    values: Mapping[str, np.ndarray],
    parameters: MixtureParameters,
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, " coordinate"]:
    r"""Gradient of log likelihood plus log prior in unconstrained coordinates.

    The likelihood enters by Fisher's identity: its gradient is that of the
    expected complete-data log likelihood, so it needs only the E-step's
    statistics. For a factor L under n rows and G means,
    :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`.

    Parameters
    ----------
    values : mapping of str to ndarray
        Values of the free variables.
    parameters : MixtureParameters
        The same point as parameters.
    statistics : Statistics
        Statistics of the E-step at ``parameters``.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the units of ``parameters``.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (dimension,)
        Gradient without the Jacobian's, in the order of the free variables.
    """
    parts: dict[str, np.ndarray] = {}
    counts = _dirichlet_counts(statistics, specification)
    for name, concentration in _dirichlets(hyperparameters, specification).items():
        parts[name] = simplex_gradient(counts[name] + concentration - 1, values[name])
    if specification.n_features:
        parts[names.MEANS] = _mean_gradient(parameters, statistics, hyperparameters, specification)
        parts |= _precision_gradients(
            values, parameters, statistics, hyperparameters, specification
        )
    ordered = [parts[v.name].reshape(-1) for v in free_variables(specification)]
    return np.concatenate([np.zeros(0), *ordered])


def _dirichlets(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> dict[str, np.ndarray | float]:
    """Concentration of every free simplex."""
    n_classes = specification.n_classes
    prior: dict[str, np.ndarray | float] = {}
    if n_classes > 1:
        prior[names.CLASS_PROBABILITIES] = hyperparameters.class_concentration
    for index, part in enumerate(specification.class_slices):
        if part.stop - part.start > 1:
            prior[names.class_weights(index, n_classes)] = hyperparameters.weight_concentration
    for index, concentration in enumerate(hyperparameters.category_concentrations):
        prior[names.category_probability(index)] = concentration
    return prior


def _dirichlet_counts(
    statistics: Statistics, specification: MixtureSpecification
) -> dict[str, np.ndarray]:
    """Expected counts behind every simplex."""
    counts = {names.CLASS_PROBABILITIES: sum_by_class(statistics.counts, specification)}
    for index, part in enumerate(specification.class_slices):
        name = names.class_weights(index, specification.n_classes)
        counts[name] = statistics.counts[part]
    for index, category in enumerate(statistics.category_counts):
        counts[names.category_probability(index)] = category
    return counts


def _log_dirichlet(probabilities: np.ndarray, concentration: np.ndarray | float) -> float:
    """Log density of independent Dirichlet variables on the last axis."""
    n_levels = probabilities.shape[-1]
    n_simplices = probabilities.size // n_levels
    alpha = np.broadcast_to(concentration, (n_levels,))
    constant = float(gammaln(alpha.sum()) - gammaln(alpha).sum())
    logs = np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))
    return float(((alpha - 1) * logs).sum()) + n_simplices * constant


def _has_lower(specification: MixtureSpecification) -> bool:
    """Whether the precision factors have free entries below the diagonal."""
    return specification.shape == "full" and specification.n_features > 1


def _gamma(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> tuple[float, float]:
    """Shape and rate of the prior of ``precision_diagonal``."""
    freedom = hyperparameters.degrees_of_freedom
    if specification.shape == "spherical":
        d = specification.n_features
        return 0.5 * d * freedom + 1, 0.5 * d
    return 0.5 * freedom + 1, 0.5


def _log_means(
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> float:
    """Log density of all component means given the precisions."""
    kappa = hyperparameters.mean_precision
    factors = parameters.precisions_cholesky[specification.covariance_group]
    pull = parameters.means - hyperparameters.location
    if factors.ndim == 3:
        whitened = np.einsum("kji,kj->ki", factors, pull)
        diagonals = np.einsum("kii->ki", factors)
    else:
        whitened, diagonals = factors * pull, factors
    log_normal = np.log(diagonals) + 0.5 * (np.log(kappa) - LOG_2PI) - 0.5 * kappa * whitened**2
    return float(log_normal.sum())


def _mean_gradient(
    parameters: MixtureParameters,
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> np.ndarray:
    """Gradient in the means: P (sum r (x - mu) - kappa0 (mu - m0))."""
    factors = parameters.precisions_cholesky[specification.covariance_group]
    pull = parameters.means - hyperparameters.location
    force = statistics.first - hyperparameters.mean_precision * pull
    if factors.ndim == 2:
        return force * factors**2
    return np.einsum("kij,klj,kl->ki", factors, factors, force)


def _precision_gradients(
    values: Mapping[str, np.ndarray],
    parameters: MixtureParameters,
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> dict[str, np.ndarray]:
    """Gradients in log ``precision_diagonal`` and in ``precision_lower``."""
    shape, rate = _gamma(hyperparameters, specification)
    prior = (shape - 1) - rate * values[names.PRECISION_DIAGONAL].reshape(-1)
    by_factor = _factor_gradient(parameters, statistics, hyperparameters, specification)
    factors = parameters.precisions_cholesky
    # A log diagonal entry scales its factor entry by half: dL_ii / d log d_i = L_ii / 2.
    if specification.shape == "full":
        by_log = 0.5 * np.einsum("gii,gii->gi", by_factor, factors)
    else:
        by_log = 0.5 * by_factor * factors
    if specification.shape == "spherical":
        by_log = by_log.sum(axis=1)
    parts = {names.PRECISION_DIAGONAL: by_log.reshape(-1) + prior}
    if _has_lower(specification):
        rows, columns = lower_entries(specification.n_features)
        unit = by_factor / base_scales(hyperparameters, specification)[:, :, None]
        lower = values[names.PRECISION_LOWER].reshape(-1)
        parts[names.PRECISION_LOWER] = unit[:, rows, columns].reshape(-1) - lower
    return parts


def _factor_gradient(
    parameters: MixtureParameters,
    statistics: Statistics,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> np.ndarray:
    """Gradient in the precision factors L, of likelihood and of the means' prior."""
    kappa = hyperparameters.mean_precision
    pull = parameters.means - hyperparameters.location
    counts = sum_by_group(statistics.counts, specification) + specification.group_sizes
    factors = parameters.precisions_cholesky
    if factors.ndim == 2:
        scatter = sum_by_group(statistics.second + kappa * pull**2, specification)
        return counts[:, None] / factors - scatter * factors
    outer = pull[:, :, None] * pull[:, None, :]
    scatter = sum_by_group(statistics.second + kappa * outer, specification)
    by_factor: np.ndarray = -(scatter @ factors)
    # L^-T is upper triangular: below the diagonal only the scatter pulls.
    d = specification.n_features
    by_factor[:, range(d), range(d)] += counts[:, None] / np.einsum("gii->gi", factors)
    return by_factor

r"""Mutual information of every two columns under a mixture, and of columns and the class.

.. math:: I(a; b) = E \log \frac{p(a, b)}{p(a) \, p(b)}

Of two categorical columns it is a sum over levels. Where a column is real, the mean is taken over
points that fill the normal law of every component evenly, each component with its weight. The class
is a categorical column of which every component has one level. Mutual information stays the same
under monotone maps of a column: units and maps do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.special import rel_entr

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.mixture_points import component_covariances
from bayesrbf.numerics.quasi_random import normals
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.specification import MixtureSpecification

POINTS: Final = 1024
"""Points of every component; errors are some thousandths of a nat."""
LOG_ROOT_2PI: Final = 0.5 * np.log(2 * np.pi)


def mutual_information(
    parameters: MixtureParameters, specification: MixtureSpecification, n_points: int = POINTS
) -> Float[np.ndarray, "variable variable"]:
    """Mutual information in nats: class (if there are several), reals, categories; NaN with itself.

    ``n_points`` is a power of two.

    >>> factor = np.linalg.cholesky(np.linalg.inv([[1.0, 0.8], [0.8, 1.0]]))
    >>> point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 2)), factor[None], ())
    >>> mutual_information(point, MixtureSpecification(2, (), (0,))).round(2)
    array([[ nan, 0.51],
           [0.51,  nan]])
    """
    classes = np.asarray(specification.component_class)
    weights = parameters.class_probabilities[classes] * parameters.weights
    covariances = component_covariances(parameters, specification)
    several = specification.n_classes > 1
    levels = [np.eye(specification.n_classes)[classes]] if several else []
    levels += parameters.category_probabilities
    # the class leads, then come the reals
    reals = np.arange(specification.n_features) + several
    categories = np.r_[np.zeros(int(several), int), reals.size + np.arange(several, len(levels))]
    found = np.full((reals.size + len(levels),) * 2, np.nan)
    steps = normals(n_points, 2).T
    for i, place in enumerate(reals):
        column = _real_column(weights, parameters.means[:, i], covariances[:, i, i], steps[0])
        for j in range(i):
            found[place, reals[j]] = _of_reals(
                column, parameters.means[:, j], covariances[:, j, j], covariances[:, i, j], steps[1]
            )
        for other, theta in zip(categories, levels, strict=True):
            found[place, other] = _of_real_and_levels(column, theta)
    for i, theta in enumerate(levels):
        for j in range(i):
            found[categories[i], categories[j]] = _of_levels(weights, theta, levels[j])
    # Points have an error, by which columns that do not depend on each other could be below 0.
    return np.maximum(np.fmax(found, found.T), 0.0)


@dataclass(frozen=True)
class _RealColumn:
    """Points of a real column, and what every component says of them."""

    weights: Float[np.ndarray, " component"]
    means: Float[np.ndarray, " component"]
    variances: Float[np.ndarray, " component"]
    points: Float[np.ndarray, "component point"]
    log_joint: Float[np.ndarray, "component point component"]
    """Of points of one component and the other, ``log w_m + log N(x; m)``."""

    def mean(self, values: Float[np.ndarray, "component point"]) -> float:
        """Mean under the mixture."""
        return float(self.weights @ values.mean(axis=1))


def _real_column(
    weights: Float[np.ndarray, " component"],
    means: Float[np.ndarray, " component"],
    variances: Float[np.ndarray, " component"],
    steps: Float[np.ndarray, " point"],
) -> _RealColumn:
    """Points of every component, a standard normal number each."""
    points = means[:, None] + np.sqrt(variances)[:, None] * steps
    with np.errstate(divide="ignore"):
        log_joint = np.log(weights) + _log_normal(points[..., None], means, variances)
    return _RealColumn(weights, means, variances, points, log_joint)


def _log_normal(x: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Log density of a normal law."""
    return -0.5 * ((x - means) ** 2 / variances + np.log(variances)) - LOG_ROOT_2PI


def _of_reals(
    first: _RealColumn,
    means: Float[np.ndarray, " component"],
    variances: Float[np.ndarray, " component"],
    covariances: Float[np.ndarray, " component"],
    steps: Float[np.ndarray, " point"],
) -> float:
    """Two real columns: points of the second are drawn given those of the first."""
    slopes = covariances / first.variances
    rest = variances - slopes * covariances
    centres = means + slopes * (first.points[..., None] - first.means)
    # Points of a component are continued by its own regression.
    own = np.einsum("knk->kn", centres)
    points = (own + np.sqrt(rest)[:, None] * steps)[..., None]
    log_pair, _ = log_sum_exp(first.log_joint + _log_normal(points, centres, rest), axis=2)
    log_first, _ = log_sum_exp(first.log_joint, axis=2)
    with np.errstate(divide="ignore"):
        log_weights = np.log(first.weights)
    log_second, _ = log_sum_exp(log_weights + _log_normal(points, means, variances), axis=2)
    return first.mean(log_pair - log_first - log_second)


def _of_real_and_levels(column: _RealColumn, theta: Float[np.ndarray, "component level"]) -> float:
    """A real and a categorical column: how far the levels given the real are from their shares."""
    _, responsibilities = log_sum_exp(column.log_joint, axis=2)
    return column.mean(rel_entr(responsibilities @ theta, column.weights @ theta).sum(axis=2))


def _of_levels(
    weights: Float[np.ndarray, " component"],
    theta: Float[np.ndarray, "component level"],
    other: Float[np.ndarray, "component other"],
) -> float:
    """Two categorical columns, exactly."""
    joint = np.einsum("k,ki,kj->ij", weights, theta, other)
    return float(rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())

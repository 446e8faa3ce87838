"""Missing cells given the observed ones: moments, draws, completed rows, dependence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import rel_entr

from bayesrbf.base.arrays import draw_categories, log_sum_exp, normals, uniforms
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations, Order
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.points import component_covariances, reordered

# What the observed cells of a row say about its missing ones.
#
# Given component k the missing reals are normal with the conditional moments of
# :mod:`bayesrbf.mixture.gaussian`, and the missing categories have the
# component's own level probabilities; both are averaged over components by
# :math:`p(k | x_o)`. Labels are used only where a caller hands them over.


def responsibilities(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "obs component"]:
    """Posterior probability ``p(k | x_o)`` of every component; labels are not used.

    Rows and point are in standard units.
    """
    log_joint = prepare(observations, specification).component_log_joint(parameters)
    return log_sum_exp(log_joint, axis=1)[1]


class ConditionalCells(NamedTuple):
    """Moments or level probabilities of ``p(x_j | x_o)`` of every cell, in standard units."""

    mean: Float[np.ndarray, "obs feature"]
    """Means of the real cells: the cell itself where observed, with variance zero."""
    variance: Float[np.ndarray, "obs feature"]
    probabilities: tuple[Float[np.ndarray, "obs _"], ...]
    """Level probabilities, one array a categorical column; one at the level of an observed cell."""


def conditional_cells(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> ConditionalCells:
    """Moments and level probabilities of every cell given the observed cells of its row.

    Rows and point are in standard units; labels are not used.
    """
    weights = responsibilities(observations, parameters, specification)
    mean = np.empty_like(observations.real)
    variance = np.empty_like(observations.real)
    for block in laws_of(specification).reals.conditionals(observations.real, parameters):
        of_rows = weights[block.rows]
        centre = np.einsum("nk,nkd->nd", of_rows, block.means)
        between = (block.means - centre[:, None, :]) ** 2
        mean[block.rows] = centre
        variance[block.rows] = np.einsum("nk,nkd->nd", of_rows, block.variances + between)
    observed = ~np.isnan(observations.real)
    levels = laws_of(specification).levels.conditional(observations.codes, weights, parameters)
    # The average of a cell with itself differs from it by rounding: hand back the cell.
    means = np.where(observed, observations.real, mean)
    return ConditionalCells(means, np.where(observed, 0.0, variance), levels)


# Rows with holes as several complete rows, drawn from a mixture.


def with_holes(observations: Observations) -> Bool[np.ndarray, " obs"]:
    """Whether a real or categorical cell of a row is missing."""
    return np.isnan(observations.real).any(axis=1) | (observations.codes < 0).any(axis=1)


def mostly_complete(observations: Observations) -> bool:
    """Whether at least half of the labelled rows, by weight, are complete, or none is labelled."""
    weights = np.where(observations.labels >= 0, observations.weights, 0.0)
    return bool(2 * weights @ with_holes(observations) <= weights.sum())


def complete(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> tuple[Observations, Int[np.ndarray, " row"]]:
    r"""Complete rows, rows with missing cells as ``draws`` completions, and each row's first index.

    The mean of a function g over the completions of a row stands for

    .. math:: \int g(x) \, p(x_m | x_o) \, dx_m .

    Quasi-random numbers are the same for every row, so no row depends on other rows.

    Rows and point are in standard units; labels are not used but kept, as weights are. ``draws``
    is a power of two, ``replicate`` says which of the independent sets of draws, and ``order`` in
    which order of columns and components the cells are drawn.
    """
    holes = with_holes(observations)
    sizes = np.where(holes, draws, 1)
    starts = np.cumsum(sizes) - sizes
    result = observations.take(np.repeat(np.arange(observations.n_obs), sizes))
    if holes.any():
        rows = observations.take(holes).unlabelled()
        if order is not None:
            rows, parameters = rows.reordered(order), reordered(parameters, order, specification)
            specification = specification.reordered(order)
        real, codes = _drawn(rows, parameters, specification, draws, replicate)
        if order is not None:
            real, codes = real[:, order.inverse.features], codes[:, order.inverse.categories]
        completed = np.repeat(holes, sizes)
        result.real[completed], result.codes[completed] = real, codes
    return result, starts


def _drawn(
    rows: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    draws: int,
    replicate: int,
) -> tuple[Float[np.ndarray, "point feature"], Int[np.ndarray, "point categorical"]]:
    """Reals and codes of ``draws`` completions of every row in standard units, row after row."""
    d, n_categorical = specification.n_features, len(specification.levels)
    uniform = uniforms(draws, 1 + n_categorical + d, replicate)
    noise = normals(draws, 1 + n_categorical + d, replicate)[:, 1 + n_categorical :]
    weights = responsibilities(rows, parameters, specification)
    components = _invert(weights, uniform[:, 0])
    noise = np.broadcast_to(noise[:, None], (draws, *rows.real.shape))  # the same of every row
    real = laws_of(specification).reals.drawn(rows.real, components.T, parameters, noise)
    codes = np.repeat(rows.codes[:, None, :], draws, axis=1)
    for column, theta in enumerate(parameters.category_probabilities):
        levels = (theta.cumsum(axis=1)[components] <= uniform[:, 1 + column, None]).sum(axis=-1)
        missing = rows.codes[:, column] < 0
        # Rounding may leave the last sum below 1, and a uniform number above it.
        codes[missing, :, column] = np.minimum(levels, theta.shape[1] - 1)[missing]
    n_points = rows.n_obs * draws
    return real.swapaxes(0, 1).reshape(n_points, d), codes.reshape(n_points, n_categorical)


def _invert(
    weights: Float[np.ndarray, "row component"], uniform: Float[np.ndarray, " draw"]
) -> Int[np.ndarray, "row draw"]:
    """Components of every row by inversion of ``weights`` at the uniform numbers."""
    edges = weights.cumsum(axis=1)
    chosen = (edges[:, None, :] <= uniform[:, None]).sum(axis=-1)
    # Rounding may leave the last edge below 1, and a uniform number above it.
    return np.minimum(chosen, weights.shape[1] - 1)


# Mutual information of every two columns under a mixture, and of columns and the class.
#
# For two categorical columns it is a sum over levels. Where a column is real, the expectation is a
# weighted mean over quasi-random points of every component. The class is a categorical column with
# one level for each component. Mutual information is invariant under monotone transforms of a
# column, so units and transforms do not matter.


POINTS: Final = 1024
"""Points of every component; errors are some thousandths of a nat."""
LOG_ROOT_2PI: Final = 0.5 * np.log(2 * np.pi)


def mutual_information(
    parameters: MixtureParameters, specification: MixtureSpecification, n_points: int = POINTS
) -> Float[np.ndarray, "variable variable"]:
    r"""Mutual information in nats: class (if several), reals, categories; NaN with itself.

    .. math:: I(a; b) = E \log \frac{p(a, b)}{p(a) \, p(b)}

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
    for i, position in enumerate(reals):
        column = _real_column(weights, parameters.means[:, i], covariances[:, i, i], steps[0])
        for j in range(i):
            found[position, reals[j]] = _of_reals(
                column, parameters.means[:, j], covariances[:, j, j], covariances[:, i, j], steps[1]
            )
        for other, theta in zip(categories, levels, strict=True):
            found[position, other] = _of_real_and_levels(column, theta)
    for i, theta in enumerate(levels):
        for j in range(i):
            found[categories[i], categories[j]] = _of_levels(weights, theta, levels[j])
    # Points have an error, by which columns that do not depend on each other could be below 0.
    return np.maximum(np.fmax(found, found.T), 0.0)


@dataclass(frozen=True)
class _RealColumn:
    """Integration points of a real column, and ``log w_m N(x; m)`` of every component there."""

    weights: Float[np.ndarray, " component"]
    means: Float[np.ndarray, " component"]
    variances: Float[np.ndarray, " component"]
    points: Float[np.ndarray, "component point"]
    log_joint: Float[np.ndarray, "component point component"]
    """``log w_m + log N(x; m)`` of component m at the points of every component."""

    def mean(self, values: Float[np.ndarray, "component point"]) -> float:
        """Expectation under the mixture of values at the points."""
        return float(self.weights @ values.mean(axis=1))


def _real_column(
    weights: Float[np.ndarray, " component"],
    means: Float[np.ndarray, " component"],
    variances: Float[np.ndarray, " component"],
    steps: Float[np.ndarray, " point"],
) -> _RealColumn:
    """Integration points ``mu_k + sigma_k z`` of every component, z from ``steps``."""
    points = means[:, None] + np.sqrt(variances)[:, None] * steps
    # A component may have no weight in a row.
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
    """Mutual information of two real columns, in nats.

    Points of the second column are drawn given the points of the first.
    """
    slopes = covariances / first.variances
    rest = variances - slopes * covariances
    centres = means + slopes * (first.points[..., None] - first.means)
    # Points of a component are continued by its own regression.
    conditional_means = np.einsum("knk->kn", centres)
    points = (conditional_means + np.sqrt(rest)[:, None] * steps)[..., None]
    log_pair, _ = log_sum_exp(first.log_joint + _log_normal(points, centres, rest), axis=2)
    log_first, _ = log_sum_exp(first.log_joint, axis=2)
    with np.errstate(divide="ignore"):
        log_weights = np.log(first.weights)
    log_second, _ = log_sum_exp(log_weights + _log_normal(points, means, variances), axis=2)
    return first.mean(log_pair - log_first - log_second)


def _of_real_and_levels(column: _RealColumn, theta: Float[np.ndarray, "component level"]) -> float:
    """Mutual information of a real and a categorical column, ``E KL(p(c | x), p(c))``, in nats."""
    _, responsibilities = log_sum_exp(column.log_joint, axis=2)
    return column.mean(rel_entr(responsibilities @ theta, column.weights @ theta).sum(axis=2))


def _of_levels(
    weights: Float[np.ndarray, " component"],
    theta: Float[np.ndarray, "component level"],
    other: Float[np.ndarray, "component other"],
) -> float:
    """Mutual information of two categorical columns, exact, in nats."""
    joint = np.einsum("k,ki,kj->ij", weights, theta, other)
    return float(rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())


# Draws from a mixture: whole rows, and the missing cells of rows.


def conditional_draws(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    rng: np.random.Generator,
    draws: int = 1,
) -> list[Observations]:
    """``draws`` tables whose missing cells are drawn jointly given the observed cells of the row.

    Rows and point are in standard units; labels are not used.
    """
    weights = responsibilities(observations, parameters, specification)
    laws = laws_of(specification)
    tables = []
    components = np.empty((draws, observations.n_obs), dtype=np.intp)
    noise = np.empty((draws, *observations.real.shape))
    for assignment, normal in zip(components, noise, strict=True):
        assignment[:] = draw_categories(weights, rng)
        rng.standard_normal(out=normal)
        tables.append(laws.levels.completed(observations, assignment, parameters, rng))
    real = laws.reals.drawn(observations.real, components, parameters, noise)
    return [replace(table, real=cells) for table, cells in zip(tables, real, strict=True)]


def sample(
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    n_rows: int,
    rng: np.random.Generator,
    labels: Int[np.ndarray, " row"] | None = None,
) -> tuple[Observations, Int[np.ndarray, " row"]]:
    """Draw complete rows, in the units of the point, and the component of each.

    Labels are drawn from the class probabilities unless they are given.
    """
    classes = np.asarray(specification.component_class)
    if labels is None:
        priors = np.broadcast_to(parameters.class_probabilities, (n_rows, specification.n_classes))
        labels = draw_categories(priors, rng)
    within = np.where(classes == labels[:, None], parameters.weights, 0.0)
    components = draw_categories(within, rng)
    rows = Observations(
        np.full((n_rows, specification.n_features), np.nan),
        np.full((n_rows, len(specification.levels)), -1),
        labels,
        np.ones(n_rows),
    )
    laws = laws_of(specification)
    rows = laws.reals.sampled(rows, components, parameters, rng)
    return laws.levels.completed(rows, components, parameters, rng), components

"""A mixture's log posterior in one compiled call, for tables small enough for one thread."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numba
import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base import names
from bayesrbf.base.compiled import entry_point, kernel
from bayesrbf.base.log_posterior import Simplices, slices
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Variable
from bayesrbf.mixture.compiled import Model, Results, Tiles, go_through
from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.compiled_gaussian import DiagonalGaussians, FullGaussians, GaussiansWithHoles
from bayesrbf.mixture.expectation import Expectation
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.points import DeclaredPrior, free_variables

# Means and precisions of a declared mixture: their prior and the gradient.
#
# Full precisions have factors :math:`L_{ii} = e^{\theta / 2} / s_i` and
# :math:`L_{ij} = \theta / s_i`; with n rows and G means under a factor, S their scatter and M that
# of the means, :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`. Diagonal ones
# have roots :math:`e^{\theta / 2} / s_i`, with one :math:`\theta` for all columns where they are
# spherical.


HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)


class Reals(NamedTuple):
    """Places and prior of means and precisions."""

    means: int  # first coordinate of the means
    diagonal: int  # first coordinate of log precision_diagonal
    lower: int  # first coordinate of precision_lower
    location: np.ndarray  # (feature,): of the columns, in the user's units
    scale: np.ndarray  # (feature,)
    mean_precision: float  # kappa0; the prior mean is 0 in standard units
    group: np.ndarray  # (component,): which precision
    base: np.ndarray  # (group, feature): inverse diagonal of L0, in standard units
    rate: float  # of the gamma
    powers: np.ndarray  # (group,): of every d
    spherical: bool


class Point(NamedTuple):
    """Means and precisions at one point, in standard units."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L; or (group, feature): roots of precisions


@kernel
def write_means(theta: np.ndarray, reals: Reals, means: np.ndarray) -> None:
    """Write the means in standard units."""
    k, d = means.shape
    for c in range(k):
        for i in range(d):
            distance = theta[reals.means + c * d + i] - reals.location[i]
            means[c, i] = distance / reals.scale[i]


@kernel
def _write_factors(theta: np.ndarray, reals: Reals, factors: np.ndarray) -> float:
    """Write the precision factors L to ``factors``; return the log prior of their coordinates."""
    groups, d = factors.shape[:2]
    value, lower = 0.0, reals.lower
    for g in range(groups):
        for i in range(d):
            log_d = theta[reals.diagonal + g * d + i]
            value += reals.powers[g] * log_d - reals.rate * math.exp(log_d)
            for j in range(i):
                value -= 0.5 * theta[lower] ** 2
                factors[g, i, j] = theta[lower] / reals.base[g, i]
                factors[g, j, i] = 0.0
                lower += 1
            factors[g, i, i] = math.exp(0.5 * log_d) / reals.base[g, i]
    return value


@kernel
def _log_prior_of_means(reals: Reals, point: Point) -> float:
    """Minus half of kappa0 |L' mu|^2 over all components."""
    k, d = point.means.shape
    total = 0.0
    for c in range(k):
        g = reals.group[c]
        for j in range(d):
            whitened = 0.0
            for i in range(j, d):
                whitened += point.factors[g, i, j] * point.means[c, i]
            total += whitened**2
    return -0.5 * reals.mean_precision * total


@kernel
def full_point(
    theta: np.ndarray, reals: Reals, point: Point, full: FullGaussians, constants: np.ndarray
) -> float:
    """Write means and factors, add normalisers to ``constants``; return the point's log prior.

    The log prior is without constants. ``point.means`` is read here and must be ``full.means``.
    """
    write_means(theta, reals, full.means)
    value = _write_factors(theta, reals, point.factors)
    for g in range(len(point.factors)):
        for i in range(point.factors.shape[1]):
            for j in range(point.factors.shape[1]):
                full.factors[g, i, j] = point.factors[g, i, j] * math.sqrt(0.5)
    for k in range(len(constants)):
        for i in range(full.means.shape[1]):
            constants[k] += math.log(point.factors[reals.group[k], i, i]) - HALF_LOG_2PI
    return value + _log_prior_of_means(reals, point)


@kernel
def write_precisions(factors: np.ndarray, precisions: np.ndarray) -> None:
    """Write P = L L'."""
    for g in range(len(factors)):
        for i in range(factors.shape[1]):
            for j in range(i + 1):
                total = 0.0
                for m in range(j + 1):
                    total += factors[g, i, m] * factors[g, j, m]
                precisions[g, i, j] = precisions[g, j, i] = total


@kernel
def full_gradient(
    theta: np.ndarray, reals: Reals, point: Point, sums: Results, gradient: np.ndarray
) -> None:
    """Write the gradient in means and precisions under the statistics of the rows.

    ``gradient`` has an entry for every coordinate of the point ``theta``; :class:`Reals` says where
    the means and the precisions begin.
    """
    means, kappa = point.means, reals.mean_precision
    k, d = means.shape
    counts, scatter = np.zeros(len(point.factors)), np.zeros_like(point.factors)
    for c in range(k):
        g = reals.group[c]
        counts[g] += sums.counts[c]
        for i in range(d):
            for j in range(d):
                # The prior of a mean counts as kappa rows at 0, in standard units.
                scatter[g, i, j] += sums.second[c, i, j] + kappa * means[c, i] * means[c, j]
    _mean_gradient(reals, point, sums.first, gradient)
    _factor_gradient(theta, reals, point.factors, counts, scatter, gradient)


@kernel
def _mean_gradient(reals: Reals, point: Point, first: np.ndarray, gradient: np.ndarray) -> None:
    """Write L L' (sum r (x - mu) - kappa0 mu), in the user's units."""
    means, factors, kappa = point.means, point.factors, reals.mean_precision
    k, d = means.shape
    line = np.empty(d)
    for c in range(k):
        g = reals.group[c]
        for j in range(d):
            line[j] = 0.0
            for i in range(j, d):
                line[j] += factors[g, i, j] * (first[c, i] - kappa * means[c, i])
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += factors[g, i, j] * line[j]
            gradient[reals.means + c * d + i] = total / reals.scale[i]


@kernel
def _factor_gradient(
    theta: np.ndarray,
    reals: Reals,
    factors: np.ndarray,
    counts: np.ndarray,
    scatter: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Write the gradient in the coordinates of the factors, ``log d`` and A below the diagonal.

    ``counts`` (group,) are sums of responsibilities. ``scatter`` (group, feature, feature) is about
    the means, with the prior of the means.
    """
    n_groups, d = factors.shape[:2]
    line, lower = np.empty(d), reals.lower
    for g in range(n_groups):
        for i in range(d):
            for j in range(i + 1):
                line[j] = 0.0
            for m in range(d):
                for j in range(min(i, m) + 1):
                    line[j] += scatter[g, i, m] * factors[g, m, j]
            for j in range(i):
                gradient[lower] = -line[j] / reals.base[g, i] - theta[lower]
                lower += 1
            position = reals.diagonal + g * d + i
            free = reals.rate * (counts[g] - math.exp(theta[position])) + reals.powers[g]
            gradient[position] = free - 0.5 * line[i] * factors[g, i, i]


@kernel
def _write_roots(theta: np.ndarray, reals: Reals, factors: np.ndarray) -> float:
    """Write the roots of the precisions to ``factors``; return the log prior of the gammas d."""
    groups, d = factors.shape
    value = 0.0
    for g in range(groups):
        for i in range(d):
            position = reals.diagonal + (g if reals.spherical else g * d + i)
            factors[g, i] = math.exp(0.5 * theta[position]) / reals.base[g, i]
            if i == 0 or not reals.spherical:
                value += reals.powers[g] * theta[position] - reals.rate * math.exp(theta[position])
    return value


@kernel
def diagonal_point(
    theta: np.ndarray,
    reals: Reals,
    point: Point,
    diagonal: DiagonalGaussians,
    constants: np.ndarray,
) -> float:
    """Write means and roots of precisions, add normalisers; return the log prior of the point.

    Normalisers are added to ``constants``. The log prior is without constants.
    """
    write_means(theta, reals, diagonal.means)
    value = _write_roots(theta, reals, point.factors)
    kappa = reals.mean_precision
    for k in range(len(constants)):
        for i in range(diagonal.means.shape[1]):
            root = point.factors[reals.group[k], i]
            value -= 0.5 * kappa * (root * diagonal.means[k, i]) ** 2
            diagonal.scales[k, i] = root * math.sqrt(0.5)
            diagonal.constants[k, i] = math.log(root) - HALF_LOG_2PI
            constants[k] += diagonal.constants[k, i]
    return value


@kernel
def diagonal_gradient(
    theta: np.ndarray, reals: Reals, point: Point, sums: Results, gradient: np.ndarray
) -> None:
    """Write the gradient in the coordinates of means and precisions to ``gradient``.

    It is of log posterior, given the statistics ``sums`` of the E-step at the point.
    """
    means, factors = point.means, point.factors
    (k, d), kappa = means.shape, reals.mean_precision
    counts, scatter = np.zeros(len(factors)), np.zeros_like(factors)
    for c in range(k):
        g = reals.group[c]
        counts[g] += sums.counts[c]
        for i in range(d):
            force = sums.first[c, i] - kappa * means[c, i]
            gradient[reals.means + c * d + i] = force * factors[g, i] ** 2 / reals.scale[i]
            scatter[g, i] += sums.second[c, i] + kappa * means[c, i] ** 2
    for g in range(len(factors)):
        for i in range(d):
            position = reals.diagonal + (g if reals.spherical else g * d + i)
            if i == 0 or not reals.spherical:
                free = reals.rate * (counts[g] - math.exp(theta[position]))
                gradient[position] = free + reals.powers[g]
            gradient[position] -= 0.5 * scatter[g, i] * factors[g, i] ** 2


# Log posterior density of a mixture and its gradient, from coordinates to coordinates.
#
# What :mod:`bayesrbf.mixture.points` says in NumPy, with the E-step between its two
# halves, in one call: for a table of a hundred rows the way through Python costs ten times the
# arithmetic. With :math:`\theta` the coordinates, :math:`r` the E-step's responsibilities and n, S
# their counts and scatters,
#
# 1. every simplex is a softmax;
# 2. precision factors are :math:`L_{ii} = e^{\theta / 2} / s_i`, :math:`L_{ij} = \theta / s_i`,
#    means in standard units;
# 3. the E-step (:mod:`bayesrbf.mixture.compiled`): log likelihood and statistics;
# 4. the log prior and, by Fisher's identity, the gradient of both.
#
# Simplices: with coordinates t and :math:`t_L = -\sum t`, entries are
# :math:`\log p_l = t_l - \log \sum_j e^{t_j}`; under counts m, prior powers among them,
# :math:`\sum m_l \log p_l` has the gradient :math:`g_l - g_L` with
# :math:`g_l = m_l - (\sum m) p_l`.
#
# The caller allocates the arrays of the mixture's parts and of the sums; parts that the mixture
# lacks are None.


class Simplexes(NamedTuple):
    """All simplices of a mixture, their entries side by side."""

    starts: np.ndarray  # (simplex + 1,): first entry of each, and the number of entries
    positions: np.ndarray  # (simplex,): first coordinate of each
    powers: np.ndarray  # (entry,): of the entries in the prior
    of_class: np.ndarray  # (component,): entry of its class probability, -1 where that is 1
    of_weight: np.ndarray  # (component,): entry of its weight, -1 where that is 1


class Levels(NamedTuple):
    """Place of the probability of a level among the entries: ``first + component * stride``."""

    members: np.ndarray  # (code, column of the pack): what combined codes stand for
    first: np.ndarray  # (line,): one line a level, the last for missing cells not among them
    stride: np.ndarray  # (line,)


@kernel
def write_logs(theta: np.ndarray, simplexes: Simplexes, logs: np.ndarray) -> None:
    """Write the log of every simplex entry: softmax of the coordinates and minus their sum."""
    for s in range(len(simplexes.positions)):
        low, high = simplexes.starts[s], simplexes.starts[s + 1]
        last, top = 0.0, -np.inf
        for e in range(low, high - 1):
            logs[e] = theta[simplexes.positions[s] + e - low]
            last -= logs[e]
            top = max(top, logs[e])
        logs[high - 1] = last
        top = max(top, last)
        total = 0.0
        for e in range(low, high):
            total += math.exp(logs[e] - top)
        shift = top + math.log(total)
        for e in range(low, high):
            logs[e] -= shift


@kernel
def write_constants(simplexes: Simplexes, logs: np.ndarray, constants: np.ndarray) -> None:
    """Write the log of class probability times weight of every component to ``constants``."""
    for k in range(len(constants)):
        constants[k] = 0.0
        if simplexes.of_class[k] >= 0:
            constants[k] += logs[simplexes.of_class[k]]
        if simplexes.of_weight[k] >= 0:
            constants[k] += logs[simplexes.of_weight[k]]


@kernel
def write_levels(levels: Levels, logs: np.ndarray, table: np.ndarray) -> None:
    """Write the log probability of combined codes to ``table`` (code, component)."""
    for code in range(len(table)):
        for k in range(table.shape[1]):
            table[code, k] = 0.0
            for column in range(levels.members.shape[1]):
                line = levels.members[code, column]
                if line < len(levels.first):
                    table[code, k] += logs[levels.first[line] + k * levels.stride[line]]


@kernel
def add_counts(simplexes: Simplexes, counts: np.ndarray, entries: np.ndarray) -> None:
    """Add the components' counts to the entries of classes and weights."""
    for k in range(len(counts)):
        if simplexes.of_class[k] >= 0:
            entries[simplexes.of_class[k]] += counts[k]
        if simplexes.of_weight[k] >= 0:
            entries[simplexes.of_weight[k]] += counts[k]


@kernel
def add_level_counts(levels: Levels, counts: np.ndarray, entries: np.ndarray) -> None:
    """Add ``counts`` (code, component) of combined codes to the simplex entries of their levels."""
    for code in range(counts.shape[0]):
        for column in range(levels.members.shape[1]):
            line = levels.members[code, column]
            if line < len(levels.first):
                for k in range(counts.shape[1]):
                    entries[levels.first[line] + k * levels.stride[line]] += counts[code, k]


@kernel
def log_prior_of_simplexes(simplexes: Simplexes, logs: np.ndarray) -> float:
    """Log prior of all entries: their powers times their logs."""
    value = 0.0
    for e in range(len(logs)):
        value += simplexes.powers[e] * logs[e]
    return value


@kernel
def simplex_gradient(
    simplexes: Simplexes, logs: np.ndarray, counts: np.ndarray, gradient: np.ndarray
) -> None:
    """Write the gradient in the simplex coordinates, given expected counts of the entries.

    The exponents of the prior are added to ``counts`` in place.
    """
    for s in range(len(simplexes.positions)):
        low, high = simplexes.starts[s], simplexes.starts[s + 1]
        total = 0.0
        for e in range(low, high):
            counts[e] += simplexes.powers[e]
            total += counts[e]
        last = counts[high - 1] - total * math.exp(logs[high - 1])
        for e in range(low, high - 1):
            gradient[simplexes.positions[s] + e - low] = (
                counts[e] - total * math.exp(logs[e]) - last
            )


@entry_point
def log_posterior(
    thetas: np.ndarray,
    values: np.ndarray,
    gradients: np.ndarray,
    tiles: Tiles,
    simplexes: Simplexes,
    reals: Reals,
    levels: Levels,
    point: Point,
    sums: Results,
    constants: np.ndarray,
    full: FullGaussians | None,
    holes: GaussiansWithHoles | None,
    diagonal: DiagonalGaussians | None,
    categories: np.ndarray,
) -> None:
    """Write log densities at points ``thetas``, without constants, and their gradients.

    Gradients are left out where ``gradients`` is empty; ``sums`` then has no moments either.
    """
    n_entries, n_tiles = simplexes.starts[-1], len(tiles.sizes)
    logs, entries = np.empty(n_entries), np.empty(n_entries)
    for i in range(len(thetas)):
        theta = thetas[i]
        write_logs(theta, simplexes, logs)
        write_constants(simplexes, logs, constants)
        value = log_prior_of_simplexes(simplexes, logs)
        if full is not None:
            value += full_point(theta, reals, point, full, constants)
        if holes is not None:
            write_precisions(point.factors, holes.precisions)
        if diagonal is not None:
            value += diagonal_point(theta, reals, point, diagonal, constants)
        write_levels(levels, logs, categories)
        sums.counts[:] = sums.log_likelihood[:] = entries[:] = 0.0
        sums.first[:], sums.second[:], sums.categories[:] = 0.0, 0.0, 0.0
        go_through(
            tiles,
            tiles.components,
            0,
            n_tiles,
            sums,
            np.empty((0, 0)),
            constants,
            full,
            holes,
            diagonal,
            categories,
        )
        values[i] = value + sums.log_likelihood[0]
        if i < len(gradients):
            if full is not None:
                full_gradient(theta, reals, point, sums, gradients[i])
            if diagonal is not None:
                diagonal_gradient(theta, reals, point, sums, gradients[i])
            add_level_counts(levels, sums.categories, entries)
            add_counts(simplexes, sums.counts, entries)
            simplex_gradient(simplexes, logs, entries, gradients[i])


# A mixture's log posterior in one compiled call, for tables small enough for one thread.


KNOWN: Final = ("full", "diag", "spherical")
"""Shapes of covariances whose variables the kernels read."""

_POINTS_OF_A_THREAD: Final = 100
"""Least number of points for which starting a thread pays."""


def density_in_one_call(
    expectation: Expectation,
    prior: DeclaredPrior,
    hyperparameters: MixtureHyperparameters,
) -> CompiledDensity | None:
    """Put prior and rows into one compiled call; None where that gains nothing.

    None for an empty table, for one that several threads go through, and under a shape of
    covariances that no kernel here knows. The prior is in standard units, ``hyperparameters`` are
    the same in the units of the coordinates.
    """
    if not isinstance(expectation, CompiledExpectation):
        return None
    if expectation.n_pieces == 1 and expectation.specification.shape in KNOWN:
        return CompiledDensity(expectation, prior, hyperparameters)
    return None


class CompiledDensity:
    """Value and gradient of a mixture's log posterior in nats, rows and prior in standard units."""

    def __init__(
        self,
        expectation: CompiledExpectation,
        prior: DeclaredPrior,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        specification = expectation.specification
        variables = free_variables(specification)
        self._expectation = expectation
        self._specification = specification
        log_sizes = Simplices.among(variables).log_sizes
        self._constants = [prior.constant, prior.constant + log_sizes]
        self._levels = _levels(variables, expectation.members, specification)
        self._simplexes = [_simplexes(variables, powers, specification) for powers in prior.powers]
        self._reals = [
            _reals(jacobian, hyperparameters, specification) for jacobian in (False, True)
        ]

    def __call__(
        self, thetas: Float[np.ndarray, "point coordinate"], jacobian: bool
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log posterior densities at some points, and their gradients in the coordinates."""
        gradients = np.empty(thetas.shape)
        return self._evaluated(thetas, gradients, jacobian), gradients

    def values(self, thetas: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, " point"]:
        """Log posterior densities with Jacobian at some points, without the gradients' sums."""
        return self._evaluated(thetas, None, True)

    def _evaluated(
        self, thetas: np.ndarray, gradients: np.ndarray | None, jacobian: bool
    ) -> Float[np.ndarray, " point"]:
        """Log posterior densities in nats at the points; ``gradients`` is written to, if given."""
        values, thetas = np.empty(len(thetas)), np.ascontiguousarray(thetas)
        granted = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        n_threads = min(granted, len(thetas) // _POINTS_OF_A_THREAD)
        if n_threads < 2:
            self._evaluate(thetas, values, gradients, jacobian)
        else:
            edges = np.linspace(0, len(thetas), n_threads + 1).astype(int)
            parts = [slice(*ends) for ends in itertools.pairwise(edges)]
            with ThreadPoolExecutor(n_threads) as pool:
                for _ in pool.map(
                    lambda part: self._evaluate(
                        thetas[part],
                        values[part],
                        None if gradients is None else gradients[part],
                        jacobian,
                    ),
                    parts,
                ):
                    pass
        return values + self._constants[jacobian]

    def _evaluate(
        self, thetas: np.ndarray, values: np.ndarray, gradients: np.ndarray | None, jacobian: bool
    ) -> None:
        """Write log densities without constants and, unless they are None, gradients."""
        point, model = self._room()
        sums = self._expectation.empty_results()
        if gradients is None:
            gradients = np.empty((0, thetas.shape[1]))
            sums = sums._replace(first=sums.first[:0], second=sums.second[:0])
        log_posterior(
            thetas,
            values,
            gradients,
            self._expectation.tiles,
            self._simplexes[jacobian],
            self._reals[jacobian],
            self._levels,
            point,
            sums,
            *model,
        )

    def _room(self) -> tuple[Point, Model]:
        """Buffers of one point. Each call has its own, because several threads may call at once."""
        specification = self._specification
        k, d = specification.n_components, specification.n_features
        categories, means = np.empty((len(self._levels.members), k)), np.empty((k, d))
        n_groups, group = specification.group_sizes.size, specification.covariance_group
        if not d:
            factors = np.empty((n_groups, 0))
            return Point(means, factors), Model(np.empty(k), None, None, None, categories)
        if specification.independent:
            diagonal = DiagonalGaussians(means, np.empty_like(means), np.empty_like(means))
            model = Model(np.empty(k), None, None, diagonal, categories)
            return Point(means, np.empty((n_groups, d))), model
        factors, halves, precisions = np.empty((3, n_groups, d, d))
        full, holes = FullGaussians(means, halves, group), None
        if self._expectation.has_holes:
            holes = GaussiansWithHoles(means, halves, precisions, group)
        return Point(means, factors), Model(np.empty(k), full, holes, None, categories)


def _simplexes(
    variables: tuple[Variable, ...],
    powers: Float[np.ndarray, " entry"],
    specification: MixtureSpecification,
) -> Simplexes:
    """Positions of all simplices in the coordinates, and of their entries side by side."""
    sizes, positions = [], []
    for variable, position in slices(variables):
        if variable.transform == "simplex":
            number, free = math.prod(variable.shape[:-1]), variable.shape[-1] - 1
            sizes += [free + 1] * number
            positions += [position.start + i * free for i in range(number)]
    of_class = np.full(specification.n_components, -1)
    of_weight = of_class.copy()
    entries = Simplices.among(variables).slices
    for index, part in enumerate(specification.class_slices):
        if names.CLASS_PROBABILITIES in entries:
            of_class[part] = entries[names.CLASS_PROBABILITIES].start + index
        weights = entries.get(names.class_weights(index, specification.n_classes))
        if weights is not None:
            of_weight[part] = np.arange(weights.start, weights.stop)
    starts = np.array([0, *np.cumsum(sizes)], dtype=np.int64)
    return Simplexes(starts, np.array(positions, dtype=np.int64), powers, of_class, of_weight)


def _levels(
    variables: tuple[Variable, ...],
    members: Int[np.ndarray, "code width"],
    specification: MixtureSpecification,
) -> Levels:
    """Positions of the probabilities of all levels among the simplex entries."""
    entries = Simplices.among(variables).slices
    levels = specification.levels
    starts = [entries[names.category_probability(i)].start for i in range(len(levels))]
    sizes = zip(starts, levels, strict=True)
    lines = [np.arange(start, start + size) for start, size in sizes]
    first = np.concatenate([np.zeros(0, dtype=np.int64), *lines])
    return Levels(np.ascontiguousarray(members), first, np.repeat(levels, levels).astype(np.int64))


def _reals(
    jacobian: bool,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Reals:
    """First coordinates of means and precisions, and their prior in standard units.

    With ``jacobian`` the exponents of d have the Jacobian of the logarithm.
    """
    positions = {
        variable.name: position for variable, position in slices(free_variables(specification))
    }
    first = {name: position.start for name, position in positions.items()}
    d, sizes = specification.n_features, specification.group_sizes
    spherical = d > 1 and specification.shape == "spherical"
    rate = 0.5 * d if spherical else 0.5  # half the columns whose precision a gamma is
    alpha = rate * hyperparameters.degrees_of_freedom + 1
    return Reals(
        means=first.get(names.MEANS, 0),
        diagonal=first.get(names.PRECISION_DIAGONAL, 0),
        lower=first.get(names.PRECISION_LOWER, 0),
        location=hyperparameters.location,
        scale=hyperparameters.scale,
        mean_precision=float(hyperparameters.mean_precision),
        group=specification.covariance_group,
        base=laws_of(specification).reals.base_scales(hyperparameters.standardised()),
        rate=rate,
        powers=alpha - 1 + rate * sizes + jacobian,
        spherical=spherical,
    )

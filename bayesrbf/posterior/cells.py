r"""Tail probabilities of observed cells, each given the rest of its row.

For a real cell, with o the observed cells, :math:`Q = \Sigma_{oo}^{-1}` and
:math:`d = x_o - \mu_o`, every leave-one-out conditional of a component comes from one
inverse: :math:`x_j | x_{o \setminus j}, k \sim N(x_j - (Q d)_j / Q_{jj}, 1 / Q_{jj})`.
Components are weighted by :math:`p(k | x_{o \setminus j}) \propto p(k, x_o) / p(x_j |
x_{o \setminus j}, k)`, so a cell has no say in how it is judged. In a column with atoms a
the distribution is :math:`F(x) = \sum_k p(k | x_{o \setminus j}) (\theta_{kj0}
\Phi_k(x) + \sum_{a \le x} \theta_{kja})`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, ndtr, softmax

from bayesrbf.numerics.mixture.conditional import conditionals
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.quasi_random import QUADRATURE
from bayesrbf.records.mixture import ColumnAtoms, MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

BLOCK_NUMBERS = 2_000_000  # Numbers held at once in the largest array of a block of rows.

ROUNDING = 1 + 1e-9  # Levels within this factor of the observed one count as just as probable.


@dataclass(frozen=True)
class LeftOut:
    """Every observed cell beside what the rest of its row suggests; NaN where missing."""

    tail: Float[np.ndarray, "obs feature"]
    """``2 min(P(X <= x), P(X >= x))`` at the cell x, given the rest of the row; at most 1."""
    expected: Float[np.ndarray, "obs feature"]
    """Mean of that distribution, in the user's units."""
    sd: Float[np.ndarray, "obs feature"]
    """Its standard deviation, in the user's units."""
    level_tail: Float[np.ndarray, "obs categorical"]
    """Probability of all levels at most as probable as the observed one."""
    level_expected: Int[np.ndarray, "obs categorical"]
    """Most probable level given the rest of the row; -1 where missing."""


def leave_one_cell_out(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    in_users_units: Callable[[np.ndarray], np.ndarray],
    atoms: Sequence[ColumnAtoms] = (),
) -> LeftOut:
    """Judge every observed cell by the rest of its row, and by its label where there is one.

    Rows are in the units of the parameters; a function takes reals to the user's units. The
    category of a column's atoms is judged with the real column, and is no cell of its own.

    Two columns that are nearly equal; the second row breaks the pattern:

    >>> real = np.array([[1.0, 1.1], [1.0, -1.0], [np.nan, 1.0]])
    >>> rows = Observations(real, np.zeros((3, 0), int), np.zeros(3, int), np.ones(3))
    >>> factor = np.linalg.cholesky(np.linalg.inv([[1.0, 0.95], [0.95, 1.0]]))
    >>> point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 2)), factor[None], ())
    >>> structure = MixtureSpecification(2, (), (0,))
    >>> left_out = leave_one_cell_out(rows, point, structure, lambda real: real)
    >>> left_out.tail.round(3)
    array([[0.885, 0.631],
           [0.   , 0.   ],
           [  nan, 0.317]])
    """
    log_joint = _log_joint(observations, parameters, specification)
    tail, expected, sd = _reals(
        observations.real, log_joint, parameters, specification, in_users_units
    )
    level_tail, level_expected = _levels(observations.codes, log_joint, parameters)
    for one in atoms:
        cell = _with_atoms(one, observations, parameters, specification, in_users_units)
        for result, values in zip((tail, expected, sd), cell, strict=True):
            result[:, one.feature] = values
        level_tail[:, one.category], level_expected[:, one.category] = np.nan, -1
    return LeftOut(tail, expected, sd, level_tail, level_expected)


def _log_joint(
    observations: Observations, parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "obs component"]:
    """Log joint of rows and components; -inf for those that are not of the row's class."""
    log_joint = prepare(observations, specification).component_log_joint(parameters)
    known = observations.labels >= 0
    classes = np.asarray(specification.component_class)
    other = known[:, None] & (classes != observations.labels[:, None])
    return np.where(other, -np.inf, log_joint)


def _reals(
    real: Float[np.ndarray, "obs feature"],
    log_joint: Float[np.ndarray, "obs component"],
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    in_users_units: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tail, mean and standard deviation of every real cell given the rest, block by block."""
    n_features = specification.n_features
    results = [np.full_like(real, np.nan) for _ in range(3)]
    if n_features == 0:
        return results[0], results[1], results[2]
    precisions = _group_matrices(parameters)
    size = max(1, BLOCK_NUMBERS // (n_features * max(n_features, specification.n_components)))
    for start in range(0, len(real), size):
        rows = slice(start, start + size)
        observed = ~np.isnan(real[rows])
        shift, precision = _conditionals(real[rows], parameters.means, precisions, specification)
        log_own = 0.5 * (np.log(precision) - shift**2 * precision)
        responsibilities = softmax(log_joint[rows, :, None] - log_own, axis=1)
        z = shift * np.sqrt(precision)
        means, sd = np.nan_to_num(real[rows])[:, None] - shift, precision**-0.5
        centre, variance = np.zeros(observed.shape), np.zeros(observed.shape)
        for node, mass in zip(*QUADRATURE, strict=True):
            values = in_users_units(means + node * sd)
            centre += mass * np.einsum("nkd,nkd->nd", responsibilities, values)
        for node, mass in zip(*QUADRATURE, strict=True):
            spread = (in_users_units(means + node * sd) - centre[:, None]) ** 2
            variance += mass * np.einsum("nkd,nkd->nd", responsibilities, spread)
        below = np.einsum("nkd,nkd->nd", responsibilities, ndtr(z))
        above = np.einsum("nkd,nkd->nd", responsibilities, ndtr(-z))
        tail = np.minimum(2 * np.minimum(below, above), 1.0)
        for result, values in zip(results, (tail, centre, np.sqrt(variance)), strict=True):
            result[rows] = np.where(observed, values, np.nan)
    return results[0], results[1], results[2]


def _with_atoms(
    atoms: ColumnAtoms,
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    in_users_units: Callable[[np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tail, mean and standard deviation of the cells of a column with atoms, given the rest."""
    j, at = atoms.feature, observations.codes[:, atoms.category]
    real, codes = observations.real.copy(), observations.codes.copy()
    z = np.where(at > 0, np.append(atoms.standard, np.nan)[at - 1], real[:, j])
    real[:, j], codes[:, atoms.category] = np.nan, -1
    rest = replace(observations, real=real, codes=codes)
    shares = softmax(_log_joint(rest, parameters, specification), axis=1)
    theta = parameters.category_probabilities[atoms.category]
    mass = shares @ theta[:, 1:]
    below = np.where(atoms.standard <= z[:, None], mass, 0.0).sum(axis=1)
    above = np.where(atoms.standard >= z[:, None], mass, 0.0).sum(axis=1)
    origin = atoms.values[0]  # near the column, so that its squares do not round its spread away
    first, second = (mass @ (atoms.values - origin) ** power for power in (1, 2))
    for block in conditionals(rest, parameters, specification):
        rows, free = block.rows, shares[block.rows] * theta[:, 0]
        means, sd = block.means[:, :, j], np.sqrt(block.variances[:, :, j])
        away = (z[rows, None] - means) / sd
        below[rows] += (free * ndtr(away)).sum(axis=1)
        above[rows] += (free * ndtr(-away)).sum(axis=1)
        for node, weight in zip(*QUADRATURE, strict=True):
            values = in_users_units(block.means + node * np.sqrt(block.variances))[:, :, j] - origin
            first[rows] += weight * (free * values).sum(axis=1)
            second[rows] += weight * (free * values**2).sum(axis=1)
    tail = np.minimum(2 * np.minimum(below, above), 1.0)
    sd = np.sqrt(np.maximum(second - first**2, 0.0))
    missing = at < 0
    return (
        np.where(missing, np.nan, tail),
        np.where(missing, np.nan, origin + first),
        np.where(missing, np.nan, sd),
    )


def _group_matrices(parameters: MixtureParameters) -> Float[np.ndarray, "group *feature"]:
    """Precisions of diagonal covariances, covariance matrices of full ones."""
    if parameters.precisions_cholesky.ndim == 2:
        return parameters.precisions_cholesky**2
    return parameters.covariances()


def _conditionals(
    real: Float[np.ndarray, "row feature"],
    means: Float[np.ndarray, "component feature"],
    matrices: Float[np.ndarray, "group *feature"],
    specification: MixtureSpecification,
) -> tuple[Float[np.ndarray, "row component feature"], Float[np.ndarray, "row component feature"]]:
    """``x_j - E[x_j | rest, k]`` and ``1 / Var[x_j | rest, k]``; 0 and 1 where missing."""
    observed = ~np.isnan(real)
    deviations = np.where(observed[:, None], np.nan_to_num(real)[:, None] - means, 0.0)
    group = specification.covariance_group
    if matrices.ndim == 2:
        return deviations, np.where(observed[:, None], matrices[group], 1.0)
    shift, precision = np.zeros_like(deviations), np.ones_like(deviations)
    pairs = observed[:, :, None] & observed[:, None, :]
    hole = np.where(observed, 0.0, 1.0)[:, :, None] * np.eye(real.shape[1])
    for g, covariance in enumerate(matrices):
        inverse = np.linalg.inv(np.where(pairs, covariance, hole))
        own = np.diagonal(inverse, axis1=1, axis2=2)
        for k in np.flatnonzero(group == g):
            precision[:, k] = own
            shift[:, k] = np.einsum("nij,nj->ni", inverse, deviations[:, k]) / own
    return shift, precision


def _levels(
    codes: Int[np.ndarray, "obs categorical"],
    log_joint: Float[np.ndarray, "obs component"],
    parameters: MixtureParameters,
) -> tuple[Float[np.ndarray, "obs categorical"], Int[np.ndarray, "obs categorical"]]:
    """Tail probability and most probable level of every category given the rest."""
    tail, expected = np.full(codes.shape, np.nan), np.full(codes.shape, -1)
    for column, theta in enumerate(parameters.category_probabilities):
        known = np.flatnonzero(codes[:, column] >= 0)
        cell = codes[known, column]
        responsibilities = np.exp(log_softmax(log_joint[known] - np.log(theta[:, cell].T), axis=1))
        levels = responsibilities @ theta
        own = levels[np.arange(known.size), cell]
        at_most = levels <= own[:, None] * ROUNDING
        tail[known, column] = np.minimum(np.where(at_most, levels, 0.0).sum(1), 1.0)
        expected[known, column] = levels.argmax(1)
    return tail, expected

r"""Unconstrained coordinates of declared variables, as PyMC's value variables have them.

- identity: :math:`\theta = v`;
- log: :math:`\theta = \log v`, log Jacobian :math:`\theta`;
- simplex: :math:`\theta = (\log p - \overline{\log p})` without its last entry,
  log Jacobian :math:`\sum \log p + \log K`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float

from bayesrbf.specification import Variable

SMALLEST_PROBABILITY = 1e-300
"""Keeps the log of an underflown probability finite."""


@cache
def slices(variables: tuple[Variable, ...]) -> tuple[tuple[Variable, slice], ...]:
    """Each variable with its place in the vector of coordinates.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order.

    Returns
    -------
    tuple of (Variable, slice)
        Every variable and its coordinates.
    """
    stops = list(itertools.accumulate(variable.size for variable in variables))
    starts = [0, *stops[:-1]]
    return tuple((v, slice(a, b)) for v, a, b in zip(variables, starts, stops, strict=True))


def to_unconstrained(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " coordinate"]:
    """Coordinates of one point.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order.
    values : mapping of str to ndarray
        Constrained value of every variable.

    Returns
    -------
    ndarray of shape (dimension,)
        Unconstrained coordinates.
    """
    parts = [np.zeros(0)]
    for variable in variables:
        value = np.asarray(values[variable.name], dtype=float)
        parts.append(_forward(variable, value).reshape(-1))
    return np.concatenate(parts)


def to_constrained(
    variables: tuple[Variable, ...], thetas: Float[np.ndarray, "*batch coordinate"]
) -> dict[str, np.ndarray]:
    """Constrained values of one point or of many.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order.
    thetas : ndarray of shape (..., dimension)
        Unconstrained coordinates.

    Returns
    -------
    dict of str to ndarray of shape (..., *variable.shape)
        Constrained value of every variable.
    """
    batch = thetas.shape[:-1]
    return {
        variable.name: _backward(
            variable, thetas[..., place].reshape((*batch, *variable.unconstrained_shape))
        )
        for variable, place in slices(variables)
    }


def log_jacobian(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    """Log determinant of d values / d coordinates, and its gradient.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order.
    values : mapping of str to ndarray
        Constrained value of every variable.

    Returns
    -------
    value : float
        Log determinant.
    gradient : ndarray of shape (dimension,)
        Its gradient in the coordinates.
    """
    value, gradients = 0.0, [np.zeros(0)]
    for variable in variables:
        point = values[variable.name]
        if variable.transform == "log":
            value += float(np.log(point).sum())
            gradients.append(np.ones(variable.size))
        elif variable.transform == "simplex":
            n_levels = variable.shape[-1]
            n_simplices = point.size // n_levels
            value += float(_safe_log(point).sum()) + n_simplices * np.log(n_levels)
            gradients.append(simplex_gradient(np.ones_like(point), point).reshape(-1))
        else:
            gradients.append(np.zeros(variable.size))
    return value, np.concatenate(gradients)


def simplex_gradient(
    counts: Float[np.ndarray, "*batch level"], probabilities: Float[np.ndarray, "*batch level"]
) -> Float[np.ndarray, "*batch free"]:
    r"""Gradient of :math:`\sum_l m_l \log p_l` in simplex coordinates.

    With :math:`g_l = m_l - (\sum m) p_l` it is :math:`g_l - g_L` without the last.

    Parameters
    ----------
    counts : ndarray of shape (..., n_levels)
        Coefficients m.
    probabilities : ndarray of shape (..., n_levels)
        Points p of the simplex.

    Returns
    -------
    ndarray of shape (..., n_levels - 1)
        Gradient.
    """
    raw = counts - counts.sum(axis=-1, keepdims=True) * probabilities
    return raw[..., :-1] - raw[..., -1:]


def _safe_log(probabilities: np.ndarray) -> np.ndarray:
    """Logarithm that stays finite at zero."""
    return np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))


def _forward(variable: Variable, value: np.ndarray) -> np.ndarray:
    """Constrained to unconstrained."""
    if variable.transform == "log":
        return np.asarray(np.log(value))
    if variable.transform == "simplex":
        logs = _safe_log(value)
        centred: np.ndarray = logs - logs.mean(axis=-1, keepdims=True)
        return centred[..., :-1]
    return value


def _backward(variable: Variable, value: np.ndarray) -> np.ndarray:
    """Unconstrained to constrained."""
    if variable.transform == "log":
        return np.asarray(np.exp(value))  # a scalar stays an array
    if variable.transform == "simplex":
        logs = np.concatenate([value, -value.sum(axis=-1, keepdims=True)], axis=-1)
        powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)
    return value

"""From values to coordinates and back, and the volume that the change takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.coordinates.places import slices
from bayesrbf.numerics.coordinates.simplices import Simplices, safe_log
from bayesrbf.specification import Variable


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
    simplices = Simplices.among(variables)
    theta = np.zeros(sum(variable.size for variable in variables))
    theta[simplices.places] = simplices.coordinates(simplices.entries(values))
    for variable, place in slices(variables):
        if variable.transform != "simplex":
            value = np.asarray(values[variable.name], dtype=float).reshape(-1)
            theta[place] = np.log(value) if variable.transform == "log" else value
    return theta


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
    simplices = Simplices.among(variables)
    probabilities = simplices.probabilities(thetas[..., simplices.places])
    values = {}
    for variable, place in slices(variables):
        if variable.transform == "simplex":
            value = probabilities[..., simplices.slices[variable.name]]
        else:
            value = thetas[..., place]
            value = np.exp(value) if variable.transform == "log" else value
        values[variable.name] = value.reshape((*batch, *variable.shape))
    return values


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
    simplices = Simplices.among(variables)
    entries = simplices.entries(values)
    value = simplices.log_sizes + float(safe_log(entries).sum())
    gradient = np.zeros(sum(variable.size for variable in variables))
    gradient[simplices.places] = simplices.gradient(np.ones_like(entries), entries)
    for variable, place in slices(variables):
        if variable.transform == "log":
            value += float(np.log(values[variable.name]).sum())
            gradient[place] = 1.0
    return value, gradient

"""The mode of a log posterior, and the Gaussian that has its curvature there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize

from bayesrbf.inference.approximation import (
    bounded_curvature,
    evaluate,
    evaluate_all,
    log_density,
)
from bayesrbf.inference.progress import Track, silent
from bayesrbf.inference.protocol import LogPosterior

_STEP: Final = np.finfo(float).eps ** (1 / 3)
"""Step of a central difference, in units of a coordinate's scale."""
_AT_ONCE: Final = 32
"""Coordinates whose differences are taken between two looks at progress and interrupts."""
_NEWTON_STEPS: Final = 20
_SMALL_GAIN: Final = 1e-6
"""Twice the rise that a Newton step promises 1e-3 posterior sd from the mode: the last step."""


@dataclass(frozen=True)
class GaussianApproximation:
    """A Gaussian at the mode, in the unconstrained coordinates.

    Attributes
    ----------
    mode : ndarray of shape (dimension,)
        Maximum of the log density with Jacobian.
    factor : ndarray of shape (dimension, dimension)
        C with covariance = C C', symmetric in coordinates per scale.
    precision : ndarray of shape (dimension, dimension)
        Inverse of the covariance.
    log_density : float
        Log density with Jacobian at the mode.
    n_indefinite : int
        Directions without positive curvature, whose spread is a convention.
    gradient_norm : float
        Largest gradient entry at the mode, per scale of its coordinate.
    """

    mode: Float[np.ndarray, " coordinate"]
    factor: Float[np.ndarray, "coordinate coordinate"]
    precision: Float[np.ndarray, "coordinate coordinate"]
    log_density: float
    n_indefinite: int
    gradient_norm: float

    @property
    def sentence(self) -> str:
        """What the curvature looks like and what was done about it."""
        if self.n_indefinite == 0:
            return "The log posterior curves downwards in every direction at its mode."
        return (
            f"The log posterior is flat or curves upwards in {self.n_indefinite} of "
            f"{self.mode.size} directions at its mode; their spread was set from the size of "
            "the curvature, at most one unit: use refine('nuts') before trusting intervals."
        )


def approximate(
    log_posterior: LogPosterior, start: Float[np.ndarray, " coordinate"], track: Track = silent
) -> GaussianApproximation:
    """Find the mode with Jacobian and the curvature there.

    L-BFGS from the start, then Newton steps on a Hessian that is renewed until
    the steps are small. A direction of curvature that is not positive gets the
    absolute value of its curvature, at least that of one unit.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density.
    start : ndarray of shape (dimension,)
        Where the search begins; the density must be finite there.
    track : Track
        Shows progress.

    Returns
    -------
    GaussianApproximation
        Mode, spread and what was found on the way.

    Raises
    ------
    ValueError
        If the density or its gradient is not finite at the start.
    """
    scales = np.asarray(log_posterior.scales, dtype=np.float64)
    value, gradient = log_posterior.value_and_gradient(start)
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        raise ValueError(
            "The log posterior and its gradient must be finite where the mode search starts; "
            f"received log density {value:g} with {np.sum(~np.isfinite(gradient))} gradient "
            "entries that are not finite: start from the MAP estimate."
        )
    u = _climb(log_posterior, start / scales, scales)
    for _ in range(_NEWTON_STEPS):
        curvatures, axes, indefinite = _curvature(log_posterior, u, scales, track)
        value, gradient = _scaled(log_posterior, u, scales)
        step = axes @ ((axes.T @ gradient) / curvatures)
        gain = float(gradient @ step)
        if gain < _SMALL_GAIN:
            u = u + step
            break
        u, moved = _line_search(log_posterior, u, step, value, gain, scales)
        if not moved:
            break
    value, gradient = _scaled(log_posterior, u, scales)
    return GaussianApproximation(
        mode=u * scales,
        factor=scales[:, None] * (axes / np.sqrt(curvatures)) @ axes.T,
        precision=(axes * curvatures) @ axes.T / np.outer(scales, scales),
        log_density=value,
        n_indefinite=int(indefinite.sum()),
        gradient_norm=float(np.max(np.abs(gradient), initial=0.0)),
    )


def hessian(
    log_posterior: LogPosterior,
    theta: Float[np.ndarray, " coordinate"],
    track: Track = silent,
) -> Float[np.ndarray, "coordinate coordinate"]:
    """Second derivatives of the log density with Jacobian, by central differences.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density; its gradient is differenced along each coordinate.
    theta : ndarray of shape (dimension,)
        Where.
    track : Track
        Shows progress.

    Returns
    -------
    ndarray of shape (dimension, dimension)
        The symmetric part of the differenced gradient.
    """
    result = np.empty((theta.size, theta.size))
    for start in track(range(0, theta.size, _AT_ONCE), "Curvature"):
        axes = np.arange(start, min(start + _AT_ONCE, theta.size))
        above, below = np.tile(theta, (2, axes.size, 1))
        steps = _STEP * log_posterior.scales[axes]
        above[np.arange(axes.size), axes] += steps
        below[np.arange(axes.size), axes] -= steps
        width = (above - below)[np.arange(axes.size), axes]
        _, slopes = evaluate_all(log_posterior, np.concatenate([above, below]))
        rise, fall = np.split(slopes, 2)
        result[axes] = (rise - fall) / width[:, None]
    return (result + result.T) / 2


def _scaled(
    log_posterior: LogPosterior,
    u: Float[np.ndarray, " coordinate"],
    scales: Float[np.ndarray, " coordinate"],
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    """Value and gradient in coordinates u = theta / scales."""
    value, gradient = evaluate(log_posterior, u * scales)
    return value, gradient * scales


def _climb(
    log_posterior: LogPosterior,
    u: Float[np.ndarray, " coordinate"],
    scales: Float[np.ndarray, " coordinate"],
) -> Float[np.ndarray, " coordinate"]:
    """L-BFGS in scaled coordinates; a point of no density is a wall."""

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _scaled(log_posterior, v, scales)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return np.inf, np.zeros_like(v)
        return -value, -gradient

    options = {"maxiter": 500, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-6}
    result = minimize(objective, u, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x, dtype=np.float64)


def _curvature(
    log_posterior: LogPosterior,
    u: Float[np.ndarray, " coordinate"],
    scales: Float[np.ndarray, " coordinate"],
    track: Track,
) -> tuple[
    Float[np.ndarray, " coordinate"],
    Float[np.ndarray, "coordinate coordinate"],
    Bool[np.ndarray, " coordinate"],
]:
    """Positive curvatures, their axes, and which were not positive before."""
    scaled = -hessian(log_posterior, u * scales, track) * np.outer(scales, scales)
    return bounded_curvature(scaled)


def _line_search(
    log_posterior: LogPosterior,
    u: Float[np.ndarray, " coordinate"],
    step: Float[np.ndarray, " coordinate"],
    value: float,
    gain: float,
    scales: Float[np.ndarray, " coordinate"],
) -> tuple[Float[np.ndarray, " coordinate"], bool]:
    """Halve an ascent step until the log density rises enough."""
    for halving in range(30):
        size = 0.5**halving
        trial = u + size * step
        if log_density(log_posterior, trial * scales) >= value + 1e-4 * size * gain:
            return trial, True
    return u, False

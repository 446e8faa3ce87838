"""What Laplace and variational fits share: draws of a Gaussian and their importance weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.inference import importance
from bayesrbf.inference.draws import Draws, on_grid, one_after_another
from bayesrbf.inference.progress import Track, silent
from bayesrbf.numerics.log_posterior import LogPosterior

_FLAT: Final = 1e-9  # Curvatures below this share of the largest are lost in rounding.


def gaussian_draws(
    log_posterior: LogPosterior,
    centre: Float[np.ndarray, " coordinate"],
    factor: Float[np.ndarray, "coordinate coordinate"],
    *,
    method: str,
    draws: int,
    chains: int,
    rng: np.random.Generator,
    resample: bool,
    attributes: Mapping[str, float | int | str],
    track: Track = silent,
) -> Draws:
    r"""Draw from a Gaussian that stands for the posterior.

    .. math:: \theta = \mu + C z, \quad z \sim N(0, I), \quad q = N(\mu, C C').

    ``centre`` is mu and ``factor`` is C. The draws may be replaced by a Pareto-smoothed importance
    resample of them. Stats are ``lp`` and ``log_q``; attributes are those given and ``pareto_k``,
    ``importance_share``, the effective number of the smoothed importance weights as a share of the
    draws, and ``resampled``.

    An interrupt (Ctrl-C) returns the draws whose density is known, marked incomplete;
    KeyboardInterrupt before every chain had a draw.
    """
    z = rng.standard_normal((chains, draws, centre.size))
    theta = on_grid(centre + z @ factor.T, log_posterior.variables)
    lp = _densities(log_posterior, theta, track)
    made = lp.shape[1]
    if made == 0:
        raise KeyboardInterrupt(f"{method} was interrupted before its first draw.")
    theta, log_q = theta[:, :made], _log_normal(z[:, :made], factor)
    weights, pareto_k = importance.pareto_smooth((lp - log_q).reshape(-1))
    if resample:
        chosen = np.unravel_index(importance.resample(weights, rng), lp.shape)
        theta, lp, log_q = (array[chosen].reshape(array.shape) for array in (theta, lp, log_q))
    about = {
        **attributes,
        "pareto_k": pareto_k,
        "importance_share": float(1 / (weights.size * np.sum(weights**2))),
        "resampled": int(resample),
    }
    return Draws(theta, {"lp": lp, "log_q": log_q}, method, made == draws, about)


def bounded_curvature(
    curvature: Float[np.ndarray, "coordinate coordinate"], flat: float = _FLAT
) -> tuple[
    Float[np.ndarray, " coordinate"],
    Float[np.ndarray, "coordinate coordinate"],
    Bool[np.ndarray, " coordinate"],
]:
    """Make a curvature positive: every direction gets a spread.

    ``curvature`` is minus the second derivatives of the log density, in coordinates whose unit is
    the largest spread that one would believe; at and below the share ``flat`` of the largest there
    is none. The result is the eigenvalues, of those that were not positive the absolute value but
    at least 1, their axes in columns, and which were not positive.

    >>> bounded_curvature(np.diag([4.0, -0.5]))[0]
    array([1., 4.])
    """
    eigenvalues, axes = np.linalg.eigh((curvature + curvature.T) / 2)
    indefinite = eigenvalues <= flat * np.max(np.abs(eigenvalues), initial=0.0)
    curvatures = np.where(indefinite, np.maximum(np.abs(eigenvalues), 1.0), eigenvalues)
    return curvatures, axes, indefinite


def _densities(
    log_posterior: LogPosterior, theta: Float[np.ndarray, "chain draw coordinate"], track: Track
) -> Float[np.ndarray, "chain made"]:
    """Log densities of the first draws of all chains; all of them unless interrupted."""
    chains, draws, _ = theta.shape
    made = [np.empty((chains, 0))]
    # All chains step by step, so that an interrupt leaves every chain its first draws.
    size = max(1, log_posterior.points_at_once // chains)
    with suppress(KeyboardInterrupt):
        for start in track(range(0, draws, size), "Drawing"):
            some = theta[:, start : start + size]
            values = log_posterior.log_densities(one_after_another(some))
            made.append(np.where(np.isfinite(values), values, -np.inf).reshape(chains, -1))
    return np.concatenate(made, axis=1)


def _log_normal(
    z: Float[np.ndarray, "chain draw coordinate"],
    factor: Float[np.ndarray, "coordinate coordinate"],
) -> Float[np.ndarray, "chain draw"]:
    """Log density of ``centre + factor z`` for standard normal z."""
    _, log_determinant = np.linalg.slogdet(factor)
    constant = -0.5 * z.shape[-1] * np.log(2 * np.pi) - log_determinant
    density: np.ndarray = constant - 0.5 * np.sum(z**2, axis=-1)
    return density

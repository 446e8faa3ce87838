"""Where the variational objective is lowest, and how the mean answers there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.inference.approximation import bounded_curvature
from bayesrbf.inference.fixed_draws import FixedDrawObjective
from bayesrbf.inference.progress import Track, silent

_FLAT: Final = 1e-4
"""Curvature in units of Laplace's that counts as none: it would be a hundred times as wide."""
_LEVEL: Final = 1e-3
"""Slope at which no mean is further than 1e-3 posterior standard deviations from its place."""


@dataclass(frozen=True)
class VariationalFit:
    """The Gaussian that maximises the objective.

    Attributes
    ----------
    mean : ndarray of shape (dimension,)
        Its mean, in the unconstrained coordinates.
    log_sd : ndarray of shape (dimension,)
        Log spreads of its independent coordinates.
    factor : ndarray of shape (dimension, dimension)
        C with C C' the covariance of the draws: linear response or mean field.
    elbo : float
        Evidence lower bound of the independent Gaussian, in nats.
    elbo_error : float
        What the choice of the fixed draws does to it, one standard error.
    mean_error : float
        What it does to the mean of a coordinate, at worst: one standard error,
        in posterior standard deviations.
    slope : float
        Largest slope of the objective, in nats per posterior standard deviation.
    n_iter : int
        Steps of L-BFGS.
    n_indefinite : int
        Directions without a linear response, whose spread is Laplace's at most.
    """

    mean: Float[np.ndarray, " coordinate"]
    log_sd: Float[np.ndarray, " coordinate"]
    factor: Float[np.ndarray, "coordinate coordinate"]
    elbo: float
    elbo_error: float
    mean_error: float
    slope: float
    n_iter: int
    n_indefinite: int

    @property
    def converged(self) -> bool:
        """Whether the objective is level."""
        return self.slope <= _LEVEL

    @property
    def sentence(self) -> str:
        """How the search ended."""
        if self.converged:
            return f"The variational objective is level after {self.n_iter} steps."
        return (
            f"The variational objective still rises after {self.n_iter} steps: raise max_iter or "
            "pairs, or use refine('nuts')."
        )

    @property
    def curvature(self) -> str:
        """What the linear response looks like and what was done about it."""
        if self.n_indefinite == 0:
            return "The variational objective curves upwards in every direction."
        return (
            f"The linear response has no spread in {self.n_indefinite} of {self.mean.size} "
            "directions; it was set to Laplace's at most: use refine('nuts') before trusting "
            "intervals."
        )

    @property
    def attributes(self) -> dict[str, float | int | str]:
        """Figures for the attributes of the draws."""
        return {
            "converged": int(self.converged),
            "convergence": self.sentence,
            "curvature": self.curvature,
            "elbo": self.elbo,
            "elbo_error": self.elbo_error,
            "gradient_norm": self.slope,
            "mean_error": self.mean_error,
            "n_indefinite": self.n_indefinite,
        }


def fit_gaussian(
    objective: FixedDrawObjective,
    *,
    linear_response: bool = True,
    max_iter: int = 200,
    track: Track = silent,
) -> VariationalFit:
    """Find the minimum of the objective and the spread of its Gaussian.

    Parameters
    ----------
    objective : FixedDrawObjective
        Minus the evidence lower bound.
    linear_response : bool
        Whether the draws have the linear response's covariance or the
        independent Gaussian's own.
    max_iter : int
        Most steps of L-BFGS.
    track : Track
        Shows progress.

    Returns
    -------
    VariationalFit
        The Gaussian and how far to trust the search.
    """
    options = {"maxiter": max_iter, "maxcor": 20, "ftol": 1e-14, "gtol": _LEVEL / 10}
    result = minimize(objective, _start(objective), jac=True, method="L-BFGS-B", options=options)
    eta = np.asarray(result.x, dtype=np.float64)
    mean, log_sd = objective.mean_and_log_sd(eta)
    values, gradients = objective.of_draws(eta)
    response = _linear_response(objective, eta, track) if linear_response else _laplace(objective)
    # The squares are minus log q: for q = p nothing would be left.
    excess = values - 0.5 * np.sum(objective.z**2, axis=1)
    return VariationalFit(
        mean=mean,
        log_sd=log_sd,
        factor=response.factor if linear_response else np.diag(np.exp(log_sd)),
        elbo=float(0.5 * mean.size * np.log(2 * np.pi * np.e) - values.mean()),
        elbo_error=float(_standard_error(excess)),
        mean_error=_mean_error(gradients, response, objective.gaussian.factor),
        slope=float(np.max(np.abs(gradients.mean(axis=0)), initial=0.0)),
        n_iter=int(result.nit),
        n_indefinite=response.n_indefinite,
    )


@dataclass(frozen=True)
class _Response:
    """How mean and spread answer to a slope.

    The mean moves by C C' per slope in theta; slopes of the log spreads, times the
    coupling, act like slopes of the mean in v.
    """

    factor: Float[np.ndarray, "coordinate coordinate"]
    coupling: Float[np.ndarray, "coordinate coordinate"]
    n_indefinite: int


def _laplace(objective: FixedDrawObjective) -> _Response:
    """What Laplace's approximation says, where the objective's curvature is not known."""
    factor = objective.gaussian.factor
    return _Response(factor, np.zeros_like(factor), 0)


def _linear_response(
    objective: FixedDrawObjective, eta: Float[np.ndarray, " argument"], track: Track
) -> _Response:
    r"""The block of the mean in the inverse of H: the inverse of the Schur complement.

    .. math:: (H_{vv} - H_{vr} H_{rr}^{-1} H_{rv})^{-1}, \quad \theta = \hat\theta + C v.
    """
    hessian = objective.hessian(eta, track)
    half = eta.size // 2
    of_mean, cross, of_spread = hessian[:half, :half], hessian[half:, :half], hessian[half:, half:]
    curvatures, axes, flat = bounded_curvature(of_spread, _FLAT)
    coupling = axes @ ((axes.T @ cross) / curvatures[:, None])
    curvatures, axes, indefinite = bounded_curvature(of_mean - cross.T @ coupling, _FLAT)
    # The symmetric root: of a curvature near one in many directions, the axes are arbitrary.
    factor = objective.gaussian.factor @ (axes / np.sqrt(curvatures)) @ axes.T
    return _Response(factor, coupling, int(flat.sum() + indefinite.sum()))


def _mean_error(
    gradients: Float[np.ndarray, "fixed argument"],
    response: _Response,
    whitening: Float[np.ndarray, "coordinate coordinate"],
) -> float:
    """Largest standard error of a mean over the fixed draws, in posterior deviations.

    To first order a mean is the response to the mean of the draws' gradients.
    """
    of_mean, of_spread = np.split(gradients, 2, axis=1)
    covariance = response.factor @ response.factor.T
    slopes = np.linalg.solve(whitening.T, (of_mean - of_spread @ response.coupling).T)
    errors = _standard_error((covariance @ slopes).T)
    return float(np.max(errors / np.sqrt(np.diag(covariance)), initial=0.0))


def _standard_error(of_draws: Float[np.ndarray, "fixed *rest"]) -> Float[np.ndarray, "*rest"]:
    """Standard error of a mean over antithetic draws, whose pairs are independent."""
    pairs = of_draws.reshape(2, len(of_draws) // 2, *of_draws.shape[1:]).mean(axis=0)
    return np.asarray(pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)))


def _start(objective: FixedDrawObjective) -> Float[np.ndarray, " argument"]:
    """Laplace's Gaussian, narrowed until every fixed draw has a density."""
    dimension = objective.gaussian.mode.size
    eta = np.zeros(2 * dimension)
    while not np.isfinite(objective(eta)[0]):
        eta[dimension:] -= np.log(2)
    return eta

"""The mode of a kernel network's output weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.numerics.kernel_network.log_posterior import KernelNetworkLogPosterior
from bayesrbf.results import Status

MEMORY = 10
"""Pairs of steps and gradients that L-BFGS holds."""


@dataclass(frozen=True)
class OutputFit:
    """The mode of the output weights, and the way there.

    Attributes
    ----------
    theta : ndarray of shape (dimension,)
        The mode.
    joint : ndarray of shape (n_iter,)
        Log posterior at the start and after every iteration, in nats.
    conditional : ndarray of shape (n_iter,)
        ``sum_n v_n log p(y_n | x_n)`` at the same points.
    status : Status
        How the search ended.
    """

    theta: Float[np.ndarray, " coordinate"]
    joint: Float[np.ndarray, " iteration"]
    conditional: Float[np.ndarray, " iteration"]
    status: Status


def fit_output(log_posterior: KernelNetworkLogPosterior, *, tol: float, max_iter: int) -> OutputFit:
    """Find the mode, which is the only one, by L-BFGS.

    The search runs in units of ``scales``. In them the curvature is close to a
    multiple of the identity, because the features of a kernel's eigenfunctions
    are orthogonal: some tens of iterations do.

    Parameters
    ----------
    log_posterior : KernelNetworkLogPosterior
        What is maximised.
    tol : float
        Largest slope at the end in nats per unit of ``scales``: about the distance
        from the mode in posterior standard deviations.
    max_iter : int
        Most iterations.

    Returns
    -------
    OutputFit
        The mode.
    """
    scales = log_posterior.scales
    path: list[tuple[float, float]] = []

    def watch(value: float, theta: np.ndarray) -> None:
        path.append((value, value - log_posterior.log_prior(theta)))

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(u * scales)
        return -value, -gradient * scales

    start = np.zeros(log_posterior.dimension)
    watch(log_posterior.value_and_gradient(start)[0], start)
    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: watch(
            -float(intermediate_result.fun), intermediate_result.x * scales
        ),
        options={"maxiter": max_iter, "maxcor": MEMORY, "gtol": tol, "ftol": 0.0},
    )
    status = Status.MAX_ITER if result.nit >= max_iter else Status.CONVERGED
    joint, conditional = np.array(path).T
    return OutputFit(result.x * scales, joint, conditional, status)

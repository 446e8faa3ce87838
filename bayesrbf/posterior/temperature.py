"""Temperature scaling: class log probabilities times a number fitted out of fold."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from bayesrbf.numerics.log_sums import log_softmax

LOG_TEMPERATURES = np.linspace(-6.0, 6.0, 49)
"""Grid on which the objective is first bracketed: it can have two valleys."""


def tempered(
    log_joint: Float[np.ndarray, "*rows label"], temperature: float
) -> Float[np.ndarray, "*rows label"]:
    """Calibrated class log probabilities in nats, whose exponentials sum to one per row.

    ``log q(c | x) = t log p(c | x) - log sum_b exp(t log p(b | x))`` with the positive temperature
    t, of log joints up to a constant per row.

    >>> log_joint = np.log([[0.2, 0.8]])
    >>> np.exp(tempered(log_joint, 1.0)).round(3)
    array([[0.2, 0.8]])
    >>> np.exp(tempered(log_joint, 0.5)).round(3)
    array([[0.333, 0.667]])
    """
    return log_softmax(temperature * log_joint, axis=-1)


def fit_temperature(
    log_probabilities: Float[np.ndarray, "obs *draws label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
) -> float:
    """Temperature t that calibrates out-of-fold log probabilities, below 1 if too sure.

    ``argmin_t -sum_n v_n log softmax(t log p_n)[y_n] + 2 (log t)^2``: maximum a
    posteriori under ``log t ~ Normal(0, 1/2)``. Where a model says the mean over draws,
    every draw is tempered: ``log mean_s softmax(t log p_ns)[y_n]``.

    See Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML,
    section 4.2.

    Nine in ten right, where the model claims 99 in 100:

    >>> log_p = np.log(np.tile([0.99, 0.01], (100, 1)))
    >>> labels = np.repeat([0, 1], [90, 10])
    >>> t = fit_temperature(log_p, labels, np.ones(100))
    >>> round(float(np.exp(tempered(log_p, t))[0, 0]), 2)
    0.9
    """
    rows = np.arange(labels.size)

    def objective(log_t: float) -> float:
        held_out = tempered(log_probabilities, np.exp(log_t))[rows, ..., labels]
        if held_out.ndim > 1:
            held_out = logsumexp(held_out, axis=1) - np.log(held_out.shape[1])
        return float(2 * log_t**2 - weights @ held_out)

    values = [objective(log_t) for log_t in LOG_TEMPERATURES]
    best = int(np.argmin(values))
    bracket = LOG_TEMPERATURES[[max(best - 1, 0), min(best + 1, LOG_TEMPERATURES.size - 1)]]
    found = minimize_scalar(objective, bounds=bracket, method="bounded", options={"xatol": 1e-9})
    return float(np.exp(found.x))

"""The log posterior of a stack's weights and temperatures; the formula is in pooling."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, softmax

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.numerics.stack.pooling import LEAST, LOG_TEMPERATURE_SD, PSEUDO_ROWS, pooled
from bayesrbf.records import names
from bayesrbf.records.specification import Variable

LOG_2PI = float(np.log(2 * np.pi))


class StackLogPosterior(LogPosterior):
    """Log posterior of a stack's weights and temperatures given held-out rows.

    ``log_probabilities`` are the held-out class log probabilities of every member in nats,
    ``labels`` the true class codes.
    """

    def __init__(
        self,
        log_probabilities: Float[np.ndarray, "obs member label"],
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
    ) -> None:
        self._log_probabilities, self._labels, self._weights = log_probabilities, labels, weights
        self._target = np.eye(log_probabilities.shape[2])[labels] * weights[:, None]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Weights and log temperatures of the members, and the log temperature of the pool."""
        member = (names.MEMBER,), self._log_probabilities.shape[1:2]
        return (
            Variable(names.WEIGHTS, *member, "simplex"),
            Variable(names.MEMBER_LOG_TEMPERATURES, *member, "identity"),
            Variable(names.LOG_TEMPERATURE, (), (), "identity"),
        )

    def pack(
        self,
        weights: Float[np.ndarray, " member"],
        temperatures: Float[np.ndarray, " member"],
        temperature: float,
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point: weights and temperatures of the members, that of the pool."""
        values = {
            names.WEIGHTS: weights,
            names.MEMBER_LOG_TEMPERATURES: np.log(temperatures),
            names.LOG_TEMPERATURE: np.log(temperature),
        }
        return coordinates.to_unconstrained(self.variables, values)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's."""
        values = self.constrained(theta)
        pool, logs = values[names.WEIGHTS], values[names.MEMBER_LOG_TEMPERATURES]
        log_t = float(values[names.LOG_TEMPERATURE])
        inner = np.exp(logs)[:, None] * self._log_probabilities
        members = softmax(inner, axis=2)
        floor = 1 - members.shape[2] * LEAST
        log_pool = np.log(np.einsum("j,njc->nc", pool, floor * members + LEAST))
        log_q = log_softmax(np.exp(log_t) * log_pool, axis=1)
        value = float((self._target * log_q).sum()) + _log_prior(pool, logs, log_t)
        outer = self._target - self._weights[:, None] * np.exp(log_q)
        by_pool = np.exp(log_t - log_pool) * outer
        counts = pool * np.einsum("nc,njc->j", by_pool, floor * members + LEAST)
        pull = by_pool[:, None, :] * members
        pull = floor * (pull - members * pull.sum(axis=2, keepdims=True))
        by_member = pool * np.einsum("njc,njc->j", pull, inner)
        by_log_t = np.exp(log_t) * float((outer * log_pool).sum())
        gradient = np.concatenate(
            [
                coordinates.simplex_gradient(counts + PSEUDO_ROWS, pool),
                by_member - logs / LOG_TEMPERATURE_SD**2,
                [by_log_t - log_t / LOG_TEMPERATURE_SD**2],
            ]
        )
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            return value + extra, gradient + extra_gradient
        return value, gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability ``log q_n[y_n]`` of every held-out row's label in nats."""
        log_q = self.pooled(self._log_probabilities, theta)
        return log_q[np.arange(self._labels.size), self._labels]

    def pooled(
        self,
        log_probabilities: Float[np.ndarray, "row member label"],
        theta: Float[np.ndarray, " coordinate"],
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of the whole stack in nats, from those of the members."""
        values = self.constrained(theta)
        temperatures = np.exp(values[names.MEMBER_LOG_TEMPERATURES])
        log_pool = pooled(log_probabilities, values[names.WEIGHTS], temperatures)
        return log_softmax(np.exp(values[names.LOG_TEMPERATURE]) * log_pool, axis=1)


def _log_prior(pool: np.ndarray, logs: np.ndarray, log_t: float) -> float:
    """Log density of the declared prior, without Jacobian."""
    n_members, concentration = pool.size, 1 + PSEUDO_ROWS
    value = float(gammaln(n_members * concentration) - n_members * gammaln(concentration))
    value += PSEUDO_ROWS * float(np.log(np.maximum(pool, coordinates.SMALLEST_PROBABILITY)).sum())
    squares = (float((logs**2).sum()) + log_t**2) / LOG_TEMPERATURE_SD**2
    scale = np.log(LOG_TEMPERATURE_SD) + 0.5 * LOG_2PI
    return value - 0.5 * squares - (n_members + 1) * scale

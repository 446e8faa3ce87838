"""The log posterior of a stack's weights and temperatures; the formula is in pooling."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, log_softmax, softmax

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.stack.pooling import LEAST, LOG_TEMPERATURE_SD, PSEUDO_ROWS, pooled
from bayesrbf.records import names
from bayesrbf.records.specification import Variable

LOG_2PI = float(np.log(2 * np.pi))


class StackLogPosterior:
    """Log posterior of a stack's weights and temperatures given held-out rows.

    Parameters
    ----------
    log_probabilities : ndarray of shape (n_obs, n_members, n_classes)
        Held-out class log probabilities of every member in nats.
    labels : ndarray of shape (n_obs,)
        True class codes.
    weights : ndarray of shape (n_obs,)
        Row weights, at least 0.
    """

    def __init__(
        self,
        log_probabilities: Float[np.ndarray, "obs member label"],
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
    ) -> None:
        n_members, n_classes = log_probabilities.shape[1:]
        self.variables: tuple[Variable, ...] = (
            Variable(names.WEIGHTS, (names.MEMBER,), (n_members,), "simplex"),
            Variable(names.MEMBER_LOG_TEMPERATURES, (names.MEMBER,), (n_members,), "identity"),
            Variable(names.LOG_TEMPERATURE, (), (), "identity"),
        )
        self.deterministic_variables: tuple[Variable, ...] = ()
        self.dimension = sum(variable.size for variable in self.variables)
        self.component_class: Int[np.ndarray, " component"] = np.zeros(0, dtype=np.intp)
        self.scales: Float[np.ndarray, " coordinate"] = np.ones(self.dimension)
        self._log_probabilities, self._labels, self._weights = log_probabilities, labels, weights
        self._target = np.eye(n_classes)[labels] * weights[:, None]

    def pack(
        self,
        weights: Float[np.ndarray, " member"],
        temperatures: Float[np.ndarray, " member"],
        temperature: float,
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point.

        Parameters
        ----------
        weights : ndarray of shape (n_members,)
            Weights of the pool.
        temperatures : ndarray of shape (n_members,)
            Temperatures of the members.
        temperature : float
            Temperature of the pool.

        Returns
        -------
        ndarray of shape (dimension,)
            Unconstrained coordinates.
        """
        values = {
            names.WEIGHTS: weights,
            names.MEMBER_LOG_TEMPERATURES: np.log(temperatures),
            names.LOG_TEMPERATURE: np.log(temperature),
        }
        return coordinates.to_unconstrained(self.variables, values)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates.
        """
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
            extra, slope = coordinates.log_jacobian(self.variables, values)
            return value + extra, gradient + slope
        return value, gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Log probability of every held-out row's label, not weighted.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log q_n[y_n]`` in nats.
        """
        log_q = self.pooled(self._log_probabilities, theta)
        return log_q[np.arange(self._labels.size), self._labels]

    def pooled(
        self,
        log_probabilities: Float[np.ndarray, "row member label"],
        theta: Float[np.ndarray, " coordinate"],
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of the whole stack.

        Parameters
        ----------
        log_probabilities : ndarray of shape (n_rows, n_members, n_classes)
            Class log probabilities of every member in nats.
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Log probabilities in nats.
        """
        values = self.constrained(theta)
        temperatures = np.exp(values[names.MEMBER_LOG_TEMPERATURES])
        log_pool = pooled(log_probabilities, values[names.WEIGHTS], temperatures)
        return log_softmax(np.exp(values[names.LOG_TEMPERATURE]) * log_pool, axis=1)

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "obs component"]:
        """Nothing: members have names and cannot trade places.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs, 0)
            Empty.
        """
        return np.zeros((self._labels.size, 0))

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """The same point: there are no components to reorder.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        order : ndarray of shape (0,)
            Empty.

        Returns
        -------
        ndarray of shape (dimension,)
            ``theta``.
        """
        return theta

    def constrained(self, thetas: Float[np.ndarray, "*batch coordinate"]) -> dict[str, np.ndarray]:
        """Values of the free variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            ``weights``, ``member_log_temperatures`` and ``log_temperature``.
        """
        return coordinates.to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Nothing is reported beside the free variables.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict
            Empty.
        """
        return {}


def _log_prior(pool: np.ndarray, logs: np.ndarray, log_t: float) -> float:
    """Log density of the declared prior, without Jacobian."""
    n_members, concentration = pool.size, 1 + PSEUDO_ROWS
    value = float(gammaln(n_members * concentration) - n_members * gammaln(concentration))
    value += PSEUDO_ROWS * float(np.log(np.maximum(pool, coordinates.SMALLEST_PROBABILITY)).sum())
    squares = (float((logs**2).sum()) + log_t**2) / LOG_TEMPERATURE_SD**2
    scale = np.log(LOG_TEMPERATURE_SD) + 0.5 * LOG_2PI
    return value - 0.5 * squares - (n_members + 1) * scale

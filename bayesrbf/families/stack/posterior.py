"""The pool of a stack's members: weights, temperatures, and their log posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, log_softmax, softmax

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import keeping, on_one_blas_thread
from bayesrbf.base.hidden_share import KNOTS, PULL_SD, hats, powers, recalibrated
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import MaskedRows, Variable

# A stack of classifiers: temperatures and simplex weights on held-out rows.
#
# With held-out class log probabilities :math:`l_{nj}` of member j,
#
# .. math::
#    p_{nj} &= (1 - C \epsilon)\, \mathrm{softmax}(t_j l_{nj}) + \epsilon, \quad
#    q_n = \mathrm{softmax}\bigl(t \log \textstyle\sum_j w_j p_{nj}\bigr), \\
#    w &\sim \mathrm{Dirichlet}(1.2, \ldots, 1.2), \quad
#    \log t, \log t_j \sim N(0, 1/4), \quad
#    \log p(w, t | y) = \sum_n v_n \log q_n[y_n] + \ldots
#
# A linear pool is less sure than its members: hence the last temperature t.
#
# Where held-out rows are predicted again with more of their cells hidden, w, t_j and t depend on
# the share of hidden cells, and q is pulled to the class shares
# (:mod:`bayesrbf.base.hidden_share`).


PSEUDO_ROWS = 0.2
"""Rows of prior behind every member's weight: their Dirichlet parameter less 1."""
LOG_TEMPERATURE_SD = 0.5
LEAST_MEMBER_PROBABILITY = 1e-6
"""Probability that every member is taken to give every class at least."""
LEAST_LOG = -60.0
"""Held-out log probabilities are held above this: one overflow must not set a temperature."""
EM_STEPS = 300


def bounded_log_probabilities(
    log_joint: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Normalise over classes and hold above -60 nats."""
    return np.maximum(log_softmax(log_joint, axis=-1), LEAST_LOG)


def member_probabilities(
    log_probabilities: Float[np.ndarray, "*rows label"], temperature: float
) -> Float[np.ndarray, "*rows label"]:
    """Tempered class probabilities of one member, away from zero: softmax of t times the logs."""
    n_classes = log_probabilities.shape[-1]
    tempered = softmax(temperature * log_probabilities, axis=-1)
    return (1 - n_classes * LEAST_MEMBER_PROBABILITY) * tempered + LEAST_MEMBER_PROBABILITY


@on_one_blas_thread
def pool_weights(
    probabilities: Float[np.ndarray, "obs member"], weights: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " member"]:
    r"""Weights of a linear pool by EM, at the mode under their Dirichlet prior.

    .. math:: w_j \leftarrow \frac{\sum_n v_n r_{nj} + 0.2}{\sum_n v_n + 0.2 J}, \quad
        r_{nj} = \frac{w_j p_{nj}}{\sum_i w_i p_{ni}}

    ``probabilities`` are those of the true class of held-out rows.

    Examples
    --------
    >>> good_and_bad = np.tile([0.9, 0.1], (100, 1))
    >>> pool_weights(good_and_bad, np.ones(100)).round(3)
    array([0.998, 0.002])
    """
    n_members = probabilities.shape[1]
    pool = np.full(n_members, 1 / n_members)
    for _ in range(EM_STEPS):
        # Responsibilities are summed without being made: two products with a vector.
        counts = pool * ((weights / (probabilities @ pool)) @ probabilities) + PSEUDO_ROWS
        pool = counts / counts.sum()
    return pool


def tempered_members(
    log_probabilities: Float[np.ndarray, "*rows member label"],
    temperatures: Float[np.ndarray, "*all_rows member"],
    uncalibrated: Float[np.ndarray, " label"] | None = None,
) -> Float[np.ndarray, "*all_rows member label"]:
    """:func:`member_probabilities` of all members, each row under temperatures of its own.

    Classes that are ``uncalibrated``, where there is a number for them, are not tempered.
    """
    n_classes = log_probabilities.shape[-1]
    powers = temperatures[..., None] * log_probabilities
    kept = None if uncalibrated is None else 0.0 * uncalibrated
    tempered = softmax(keeping(powers, log_probabilities, kept), axis=-1)
    return (1 - n_classes * LEAST_MEMBER_PROBABILITY) * tempered + LEAST_MEMBER_PROBABILITY


def pooled(
    log_probabilities: Float[np.ndarray, "row member label"],
    weights: Float[np.ndarray, "*row member"],
    temperatures: Float[np.ndarray, "*row member"],
    uncalibrated: Float[np.ndarray, " label"] | None = None,
) -> Float[np.ndarray, "row label"]:
    """Log of the linear pool of tempered members in nats; weights of all rows, or of each."""
    total = np.zeros((log_probabilities.shape[0], log_probabilities.shape[2]))
    for j in range(log_probabilities.shape[1]):  # by members: many rows take little memory
        of_rows = np.broadcast_to(temperatures[..., [j]], (len(total), 1))
        members = tempered_members(log_probabilities[:, [j]], of_rows, uncalibrated)[:, 0]
        total += np.reshape(weights[..., j], (-1, 1)) * members
    return np.log(total)


# The log posterior of a stack's weights and temperatures, whose formula stands above.


LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class PoolOfRows:
    """Weights and temperatures of every row, under one point or under every draw."""

    weights: Float[np.ndarray, "*rows member"]
    member_temperatures: Float[np.ndarray, "*rows member"]
    temperature: Float[np.ndarray, "*rows"]
    pull: Float[np.ndarray, "*rows"]
    log_shares: Float[np.ndarray, " label"]
    uncalibrated: Float[np.ndarray, " label"] | None = None
    """What is added to the log of the even pool of classes that are neither tempered nor pulled;
    NaN for the others."""

    def members(
        self, log_probabilities: Float[np.ndarray, "*rows member label"]
    ) -> Float[np.ndarray, "*rows member label"]:
        """Tempered probabilities of the members."""
        return tempered_members(log_probabilities, self.member_temperatures, self.uncalibrated)

    def of_pool(
        self,
        log_pool: Float[np.ndarray, "*rows label"],
        log_even: Float[np.ndarray, "*rows label"],
    ) -> Float[np.ndarray, "*rows label"]:
        """Class log probabilities of the stack from the log of its pool, and of an even one."""
        log_p = recalibrated(log_pool, self.temperature, self.pull, self.log_shares)
        return keeping(log_p, log_even, self.uncalibrated)

    def pooled(
        self, members: Float[np.ndarray, "*rows member label"]
    ) -> Float[np.ndarray, "*rows label"]:
        """Class log probabilities of the stack from the tempered probabilities of its members."""
        log_pool = np.log(np.einsum("...j,...jc->...c", self.weights, members))
        plain = self.uncalibrated is None
        even = log_pool if plain else np.log(members.mean(axis=-2))
        return self.of_pool(log_pool, even)


class StackLogPosterior(LogPosterior):
    """Log posterior of a stack's weights and temperatures given held-out rows.

    ``log_probabilities`` are the held-out class log probabilities of every member in nats,
    ``labels`` the true class codes. With ``masked`` copies of the rows, weights, temperatures and a
    pull to the class shares are known at every knot of the share of hidden cells; without, they are
    the same for all rows. Classes that no row has are ``uncalibrated``: the rows are predicted
    given that they have none of them.
    """

    def __init__(
        self,
        log_probabilities: Float[np.ndarray, "obs member label"],
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        masked: MaskedRows | None = None,
        uncalibrated: Float[np.ndarray, " label"] | None = None,
    ) -> None:
        n_obs, n_members, n_classes = log_probabilities.shape
        self._log_probabilities, self._labels = log_probabilities, labels
        self.n_members, self._masked = n_members, masked
        self._uncalibrated = uncalibrated
        self._log_shares = np.zeros(n_classes) if masked is None else masked.log_shares
        versions = log_probabilities[:, None]
        self._hidden = np.zeros((n_obs, 1)) if masked is None else masked.hidden
        if masked is not None:
            versions = np.concatenate([versions, masked.values], axis=1)
        self._values = versions.reshape(-1, n_members, n_classes)
        self._weights = np.repeat(weights, versions.shape[1])
        self._target = np.eye(n_classes)[np.repeat(labels, versions.shape[1])]
        self._target *= self._weights[:, None]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Weights and log temperatures of the members, log temperature and pull of the pool."""
        member = (names.MEMBER,), (self.n_members,)
        if self._masked is None:
            return (
                Variable(names.WEIGHTS, *member, "simplex"),
                Variable(names.MEMBER_LOG_TEMPERATURES, *member, "identity"),
                Variable(names.LOG_TEMPERATURE, (), (), "identity"),
            )
        knot = (names.HIDDEN_SHARE,), (len(KNOTS),)
        both = (*knot[0], *member[0]), (*knot[1], *member[1])
        return (
            Variable(names.WEIGHTS, *both, "simplex"),
            Variable(names.MEMBER_LOG_TEMPERATURES, *both, "identity"),
            Variable(names.LOG_TEMPERATURE, *knot, "identity"),
            Variable(names.PULL, *knot, "identity"),
        )

    def pack(
        self,
        weights: Float[np.ndarray, "*knot member"],
        temperatures: Float[np.ndarray, "*knot member"],
        temperature: Float[np.ndarray, "*knot"] | float,
        pull: Float[np.ndarray, "*knot"] | float = 0.0,
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point: weights and temperatures of the members, those of the pool."""
        values = {
            names.WEIGHTS: weights,
            names.MEMBER_LOG_TEMPERATURES: np.log(temperatures),
            names.LOG_TEMPERATURE: np.log(temperature),
            names.PULL: np.asarray(pull),
        }
        return coordinates.to_unconstrained(self.variables, values)

    def of_rows(
        self, hidden: Float[np.ndarray, " row"], theta: Float[np.ndarray, "*draws coordinate"]
    ) -> PoolOfRows:
        """Weights and temperatures of rows of which a share of the cells is hidden."""
        return replace(self._of_rows(hidden, theta), uncalibrated=self._uncalibrated)

    def _of_rows(
        self, hidden: Float[np.ndarray, " row"], theta: Float[np.ndarray, "*draws coordinate"]
    ) -> PoolOfRows:
        """What the rows held out are judged by: none of them may have another class."""
        values = self.constrained(theta)
        weights, logs = values[names.WEIGHTS], values[names.MEMBER_LOG_TEMPERATURES]
        log_t = values[names.LOG_TEMPERATURE]
        if self._masked is None:
            ones = np.ones(hidden.size)
            weights, inner = weights[..., None, :], np.exp(logs)[..., None, :]
            shape = (*weights.shape[:-2], hidden.size, self.n_members)
            weights, inner = np.broadcast_to(weights, shape), np.broadcast_to(inner, shape)
            outer = np.exp(log_t)[..., None] * ones
            return PoolOfRows(weights, inner, outer, np.zeros_like(outer), self._log_shares)
        basis = hats(hidden)
        outer, pull = powers(hidden, log_t, values[names.PULL])
        return PoolOfRows(basis @ weights, np.exp(basis @ logs), outer, pull, self._log_shares)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's."""
        values = self.constrained(theta)
        hidden = self._hidden.reshape(-1)
        of_rows = self._of_rows(hidden, theta)
        basis = np.ones((hidden.size, 1)) if self._masked is None else hats(hidden)
        weights = of_rows.weights
        inner = of_rows.member_temperatures[..., None] * self._values
        members = of_rows.members(self._values)
        log_pool = np.log(np.einsum("nj,njc->nc", weights, members))
        log_q = of_rows.of_pool(log_pool, log_pool)
        outer = self._target - self._weights[:, None] * np.exp(log_q)
        by_pool = of_rows.temperature[:, None] * outer / np.exp(log_pool)
        by_weight = basis.T @ np.einsum("nc,njc->nj", by_pool, members)
        pull = by_pool[:, None, :] * (members - LEAST_MEMBER_PROBABILITY)
        plain = (members - LEAST_MEMBER_PROBABILITY) / (
            1 - members.shape[2] * LEAST_MEMBER_PROBABILITY
        )
        # The Jacobian of every member's softmax.
        pull = pull - plain * pull.sum(axis=2, keepdims=True)
        # In log t the derivative of t l is t l itself, which is ``inner``.
        by_member = basis.T @ (weights * np.einsum("njc,njc->nj", pull, inner))
        by_log_t = basis.T @ (of_rows.temperature * (outer * log_pool).sum(axis=1))
        pool, logs = values[names.WEIGHTS], values[names.MEMBER_LOG_TEMPERATURES]
        log_t = values[names.LOG_TEMPERATURE]
        counts = np.atleast_2d(pool) * by_weight + PSEUDO_ROWS
        parts = [
            coordinates.simplex_gradient(counts, np.atleast_2d(pool)),
            by_member - logs / LOG_TEMPERATURE_SD**2,
            by_log_t - log_t / LOG_TEMPERATURE_SD**2,
        ]
        value = self._value(values, log_q)
        if self._masked is not None:
            pulls, some = values[names.PULL], hidden < 1
            parts.append(basis.T @ (some * (outer @ self._log_shares)) - pulls / PULL_SD**2)
        gradient = np.concatenate([part.reshape(-1) for part in parts])
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            return value + extra, gradient + extra_gradient
        return value, gradient

    def _value(self, values: dict[str, np.ndarray], log_q: Float[np.ndarray, "row label"]) -> float:
        """Log posterior density without Jacobian, given what the stack says of all rows."""
        log_t, logs = values[names.LOG_TEMPERATURE], values[names.MEMBER_LOG_TEMPERATURES]
        value = float((self._target * log_q).sum())
        value += _log_prior(values[names.WEIGHTS], logs, log_t)
        return value if self._masked is None else value + _log_normal(values[names.PULL], PULL_SD)

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log densities with Jacobian, without the gradients, which take as long again."""
        densities = np.empty(len(thetas))
        with np.errstate(all="ignore"):
            for i, theta in enumerate(thetas):
                values = self.constrained(theta)
                of_rows = self._of_rows(self._hidden.ravel(), theta)
                members = of_rows.members(self._values)
                jacobian, _ = coordinates.log_jacobian(self.variables, values)
                densities[i] = self._value(values, of_rows.pooled(members)) + jacobian
        return densities

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability ``log q_n[y_n]`` of every held-out row's label in nats.

        Copies of a row with more of its cells hidden have the label of the row, and no entry.
        """
        log_q = self.pooled(self._log_probabilities, self._hidden[:, 0], theta)
        return log_q[np.arange(self._labels.size), self._labels]

    def pooled(
        self,
        log_probabilities: Float[np.ndarray, "row member label"],
        hidden: Float[np.ndarray, " row"],
        theta: Float[np.ndarray, " coordinate"],
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of the whole stack in nats, from those of the members."""
        of_rows = self.of_rows(hidden, theta)
        how = of_rows.member_temperatures, of_rows.uncalibrated
        log_pool = log_even = pooled(log_probabilities, of_rows.weights, *how)
        if of_rows.uncalibrated is not None:
            even = np.full(self.n_members, 1 / self.n_members)
            log_even = pooled(log_probabilities, even, *how)
        return of_rows.of_pool(log_pool, log_even)


def _log_prior(pool: np.ndarray, logs: np.ndarray, log_t: np.ndarray) -> float:
    """Log density of the declared prior of weights and temperatures, without Jacobian."""
    n_members, concentration = pool.shape[-1], 1 + PSEUDO_ROWS
    value = float(gammaln(n_members * concentration) - n_members * gammaln(concentration))
    value *= pool.size // n_members
    value += PSEUDO_ROWS * float(np.log(np.maximum(pool, coordinates.SMALLEST_PROBABILITY)).sum())
    return value + _log_normal(np.append(logs, log_t), LOG_TEMPERATURE_SD)


def _log_normal(values: np.ndarray, sd: float) -> float:
    """Log density of independent normal values about 0."""
    return float(-0.5 * (values**2).sum() / sd**2 - values.size * (np.log(sd) + 0.5 * LOG_2PI))

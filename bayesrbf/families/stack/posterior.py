"""The pool of a stack's members: its formula, its fit, and its log posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, log_softmax, softmax

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import keeping, log_loss, on_one_blas_thread
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.missing_fraction import hats, powers, recalibrated
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.records import MAX_LOG, Requirements, scales, simplex, stored, within
from bayesrbf.base.rows import Variable
from bayesrbf.fit.calibration import fit_powers, fit_temperature, fit_temperatures, tempered

if TYPE_CHECKING:
    from bayesrbf.fit.held_out import HeldOut

# A stack of classifiers: temperatures and simplex weights on held-out rows.
#
# With held-out class log probabilities :math:`l_{nj}` of member j,
#
# .. math::
#    p_{nj} &= (1 - C \epsilon)\, \mathrm{softmax}(t_j l_{nj}) + \epsilon, \quad
#    q_n = \mathrm{softmax}\bigl(t \log \textstyle\sum_j w_j p_{nj} + b \log \pi\bigr), \\
#    w &\sim \mathrm{Dirichlet}(2, \ldots, 2), \quad
#    \log t, \log t_j, b \sim N(0, 1/4), \quad
#    \log p(w, t, b | y) = \sum_n v_n \log q_n[y_n] + \ldots
#
# A linear pool is less sure than its members: hence the last temperature t.
#
# Where held-out rows are predicted again with more of their cells masked, w, t_j, t and b are known
# at every knot of the missing fraction, and a row has what lies between the knots at its share
# (:mod:`bayesrbf.base.missing_fraction`). The fitted point is shrunk towards the class shares where
# columns may tell nothing of the label. Elsewhere they are the same for all rows, and b is 0. The
# constants of the prior are those of ``POOL_PRIOR``, which the graph is handed.


MIN_LOG: Final = -60.0
"""Held-out log probabilities are clipped below: one overflow must not set a temperature."""
EM_STEPS: Final = 300
"""Fixed, without a tolerance: a step is two products with a vector."""


def bounded_log_probabilities(
    log_joint: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Log probabilities, normalised over the classes and clipped below at -60 nats."""
    return np.maximum(log_softmax(log_joint, axis=-1), MIN_LOG)


# The formula: members at their temperatures, their linear pool, and its recalibration.


def tempered_members(
    log_probabilities: Float[np.ndarray, "*rows member label"],
    temperatures: Float[np.ndarray, "*all_rows member"],
    offsets: Float[np.ndarray, " label"] | None = None,
) -> Float[np.ndarray, "... member label"]:
    """Probabilities ``p_nj`` of all members, at temperatures of every member or every row.

    A class never held out, for which ``offsets`` have a number, is not tempered.
    """
    least = POOL_PRIOR.least  # no member rules a class out, and no weight follows one row alone
    logits = temperatures[..., None] * log_probabilities
    untempered = None if offsets is None else 0.0 * offsets
    p = softmax(keeping(logits, log_probabilities, untempered), axis=-1)
    return (1 - p.shape[-1] * least) * p + least


def log_pool(
    weights: Float[np.ndarray, "*all_rows member"],
    members: Float[np.ndarray, "*rows member label"],
) -> Float[np.ndarray, "*rows label"]:
    """Log of the linear pool of tempered members in nats; weights are shared, or given by row."""
    return np.log(np.einsum("...j,...jc->...c", weights, members))


@dataclass(frozen=True)
class PoolOfRows:
    """Weights, temperatures and prior exponent of every row, under one point or every draw."""

    weights: Float[np.ndarray, "*rows member"]
    member_temperatures: Float[np.ndarray, "*rows member"]
    temperature: Float[np.ndarray, "*rows"]
    prior_exponent: Float[np.ndarray, "*rows"]
    log_shares: Float[np.ndarray, " label"]
    offsets: Float[np.ndarray, " label"] | None = None
    """Offsets of the log of the mean over members for classes that are neither tempered nor shrunk;
    NaN for the others."""

    def members(
        self, log_probabilities: Float[np.ndarray, "*rows member label"]
    ) -> Float[np.ndarray, "... member label"]:
        """Tempered probabilities of the members."""
        return tempered_members(log_probabilities, self.member_temperatures, self.offsets)

    def calibrated(
        self, log_p: Float[np.ndarray, "*rows label"]
    ) -> Float[np.ndarray, "*rows label"]:
        """Log probabilities of the linear pool, tempered, with the class shares to an exponent."""
        return recalibrated(log_p, self.temperature, self.prior_exponent, self.log_shares)

    def pooled(
        self, members: Float[np.ndarray, "*rows member label"]
    ) -> Float[np.ndarray, "*rows label"]:
        """Class log probabilities of the stack from the tempered probabilities of its members."""
        log_p = self.calibrated(log_pool(self.weights, members))
        if self.offsets is None:
            return log_p
        even = np.full(members.shape[-2], 1 / members.shape[-2])
        return keeping(log_p, log_pool(even, members), self.offsets)


# The fit: temperatures of the members, then the weights, then its temperature and prior exponent.


@stored
class Pool:
    """Weights, temperatures and prior exponent at one knot of the missing fraction."""

    weights: Float[np.ndarray, " member"]
    member_temperatures: Float[np.ndarray, " member"]
    """Temperatures before the pool."""
    temperature: float
    """Temperature after the pool."""
    prior_exponent: float = 0.0
    """Exponent of the class shares."""

    def __laws__(self) -> Requirements:
        temperatures = (*self.member_temperatures, self.temperature)
        yield simplex(self.weights), "weights that sum to one"
        yield scales(temperatures) and within(temperatures, 0, MAX_LOG), "positive temperatures"

    def shrunk(self, factor: float) -> Pool:
        r"""Pool of :math:`q^\lambda \pi^{1 - \lambda}`, with the factor :math:`\lambda`."""
        prior_exponent = 1 + factor * (self.prior_exponent - 1)
        return replace(self, temperature=factor * self.temperature, prior_exponent=prior_exponent)

    def losses(self, held_out: HeldOut) -> Float[np.ndarray, " obs"]:
        """Log loss of unmasked held-out rows by the pool without the class shares, in nats."""
        members = tempered_members(held_out.values, self.member_temperatures)
        log_p = tempered(log_pool(self.weights, members), self.temperature)
        return log_loss(np.exp(log_p), held_out.labels)


def equal_pool(n_members: int) -> Pool:
    """Members that all weigh the same, without a temperature."""
    return Pool(np.full(n_members, 1 / n_members), np.ones(n_members), 1.0)


@on_one_blas_thread
def pool_weights(
    probabilities: Float[np.ndarray, "obs member"], weights: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " member"]:
    r"""Weights of a linear pool by EM, at the mode under their Dirichlet prior.

    .. math:: w_j \leftarrow \frac{\sum_n v_n r_{nj} + 1}{\sum_n v_n + J}, \quad
        r_{nj} = \frac{w_j p_{nj}}{\sum_i w_i p_{ni}}

    ``probabilities`` are the members' probabilities of the true class of held-out rows.

    >>> good_and_bad = np.tile([0.9, 0.1], (100, 1))
    >>> pool_weights(good_and_bad, np.ones(100)).round(3)
    array([0.989, 0.011])
    """
    n_members = probabilities.shape[1]
    pool = np.full(n_members, 1 / n_members)
    for _ in range(EM_STEPS):
        # Responsibilities are summed without being made: two products with a vector.
        counts = pool * ((weights / (probabilities @ pool)) @ probabilities)
        counts += POOL_PRIOR.pseudo_rows
        pool = counts / counts.sum()
    return pool


def fit_pool(
    values: Float[np.ndarray, "obs member label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    log_shares: Float[np.ndarray, " label"] | None,
) -> Pool:
    """Pool fitted in steps: temperatures of members, weights, then temperature and prior exponent.

    Each step is at its own mode given those before it. All at once, held-out rows would be fitted
    once more by every member's temperature: on small tables the pool is then too sure of itself.
    Without class shares there is no exponent.
    """
    temperatures = fit_temperatures(values, labels, weights)
    members = tempered_members(values, temperatures)
    # EM for the weights asks only how probable members find the true class.
    true_class = np.ascontiguousarray(members[np.arange(labels.size), :, labels])
    pool = pool_weights(true_class, weights)
    log_p = log_pool(pool, members)
    if log_shares is None:
        return Pool(pool, temperatures, fit_temperature(log_p, labels, weights))
    return Pool(pool, temperatures, *fit_powers(log_p, labels, weights, log_shares))


def fit_pools(held_out: HeldOut, prior_power: float = 1.0) -> tuple[Pool, ...]:
    """A pool at every knot of the missing fraction, shrunk towards the class shares.

    Where no cell was masked, one pool, which has no exponent of the class shares and is not shrunk.
    The mode under a power of the prior is that of rows that weigh less.
    """
    rows = held_out.among_judged()
    if rows.masked is None:
        return (fit_pool(rows.values, rows.labels, rows.weights / prior_power, None),)
    weights = rows.ignorable_weights / prior_power
    pools = tuple(fit_pool(*at_knot, rows.log_shares) for at_knot in rows.at_knots(weights))
    signal = probability_of_signal(held_out, pools)
    return tuple(pool.shrunk(signal) for pool in pools)


def mean_pools(first: Sequence[Pool], second: Sequence[Pool]) -> tuple[Pool, ...]:
    """Means by knot of the weights, log temperatures and prior exponents of two fits."""
    return tuple(
        Pool(
            (a.weights + b.weights) / 2,
            np.sqrt(a.member_temperatures * b.member_temperatures),
            math.sqrt(a.temperature * b.temperature),
            (a.prior_exponent + b.prior_exponent) / 2,
        )
        for a, b in zip(first, second, strict=True)
    )


def probability_of_signal(held_out: HeldOut, pools: Sequence[Pool]) -> float:
    r"""Akaike weight of the pools compared with the class shares, on held-out rows as they are.

    .. math:: \lambda = \frac{1}{1 + \exp(k - G)}, \qquad
        G = \sum_n v_n \log \frac{q_n[y_n]}{\pi[y_n]}

    with k = 2: the pool has a temperature and an exponent of the class shares :math:`\pi`. The
    pools are at their mode given these rows, so G is positive by luck where columns tell nothing.
    """
    log_posterior, log_shares = StackLogPosterior(held_out), held_out.log_shares
    assert log_shares is not None
    log_q = log_posterior.pointwise(log_posterior.pack(pools))
    gain = held_out.weights @ (log_q - log_shares[held_out.labels])
    return max(float(expit(gain - POOL_PRIOR.n_parameters)), POOL_PRIOR.least)


# The log posterior of weights, temperatures and prior exponents.


class StackLogPosterior(LogPosterior):
    """Log posterior of a stack's weights and temperatures given held-out rows.

    With masked copies of the rows, weights, temperatures and an exponent of the class shares are
    known at every knot of the missing fraction; without, they are the same for all rows. The rows
    are predicted given that they have no class of which none was held out.
    """

    def __init__(self, held_out: HeldOut) -> None:
        rows = held_out.among_judged()
        n_obs, self.n_members, n_classes = rows.values.shape
        self._log_probabilities, self._labels = rows.values, rows.labels
        self._offsets, fractions = held_out.offsets, rows.missing_fractions
        self._by_fraction = fractions is not None
        self._missing_fractions = np.zeros((n_obs, 1)) if fractions is None else fractions
        self._log_shares = np.zeros(n_classes)
        if fractions is not None and rows.log_shares is not None:
            self._log_shares = rows.log_shares
        n_versions = self._missing_fractions.shape[1]
        self._values = rows.versions.reshape(-1, self.n_members, n_classes)
        self._weights = np.repeat(rows.ignorable_weights, n_versions)
        self._target = np.eye(n_classes)[np.repeat(rows.labels, n_versions)]
        self._target *= self._weights[:, None]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Weights of the members, log temperatures, and the prior exponent of the pool."""
        knot = (names.MISSING_FRACTION,) if self._by_fraction else ()
        n_knots = (len(POOL_PRIOR.knots),) if self._by_fraction else ()
        by_knot = partial(Variable, dims=knot, shape=n_knots)
        by_member = partial(Variable, dims=(*knot, names.MEMBER), shape=(*n_knots, self.n_members))
        exponent = by_knot(names.PRIOR_EXPONENT, transform="identity")
        return (
            by_member(names.WEIGHTS, transform="simplex"),
            by_member(names.MEMBER_LOG_TEMPERATURES, transform="identity"),
            by_knot(names.LOG_TEMPERATURE, transform="identity"),
            *([exponent] if self._by_fraction else []),
        )

    def pack(self, pools: Sequence[Pool]) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of the pools at all knots, or of the single pool for all rows."""
        knots = slice(None) if self._by_fraction else 0
        values = {
            names.WEIGHTS: np.array([pool.weights for pool in pools])[knots],
            names.MEMBER_LOG_TEMPERATURES: np.log([pool.member_temperatures for pool in pools])[
                knots
            ],
            names.LOG_TEMPERATURE: np.log([pool.temperature for pool in pools])[knots],
            names.PRIOR_EXPONENT: np.array([pool.prior_exponent for pool in pools])[knots],
        }
        return coordinates.to_unconstrained(self.variables, values)

    def of_rows(
        self,
        missing_fraction: Float[np.ndarray, " row"],
        theta: Float[np.ndarray, "*draws coordinate"],
    ) -> PoolOfRows:
        """Weights and temperatures of rows with these missing fractions."""
        return replace(self._of_rows(missing_fraction, theta), offsets=self._offsets)

    def _of_rows(
        self,
        missing_fraction: Float[np.ndarray, " row"],
        theta: Float[np.ndarray, "*draws coordinate"],
    ) -> PoolOfRows:
        """Pool of rows whose class was held out: without offsets for other classes."""
        values = self.constrained(theta)
        weights, logs = values[names.WEIGHTS], values[names.MEMBER_LOG_TEMPERATURES]
        log_t, basis = values[names.LOG_TEMPERATURE], self._basis(missing_fraction)
        if not self._by_fraction:  # one knot for all rows, also for one without a cell
            weights, logs = weights[..., None, :], logs[..., None, :]
            outer = np.exp(log_t)[..., None] * np.ones(missing_fraction.size)
            prior_exponent = np.zeros_like(outer)
        else:
            outer, prior_exponent = powers(missing_fraction, log_t, values[names.PRIOR_EXPONENT])
        return PoolOfRows(
            basis @ weights, np.exp(basis @ logs), outer, prior_exponent, self._log_shares
        )

    def _basis(self, missing_fraction: Float[np.ndarray, " row"]) -> Float[np.ndarray, "row knot"]:
        """Share of every knot in the parameters of a row."""
        return hats(missing_fraction) if self._by_fraction else np.ones((missing_fraction.size, 1))

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's."""
        values = self.constrained(theta)
        missing_fraction = self._missing_fractions.reshape(-1)
        of_rows = self._of_rows(missing_fraction, theta)
        basis, weights = self._basis(missing_fraction), of_rows.weights
        inner = of_rows.member_temperatures[..., None] * self._values
        members = of_rows.members(self._values)
        log_p = log_pool(weights, members)
        log_q = of_rows.calibrated(log_p)
        outer = self._target - self._weights[:, None] * np.exp(log_q)
        by_pool = of_rows.temperature[:, None] * outer / np.exp(log_p)
        by_weight = basis.T @ np.einsum("nc,njc->nj", by_pool, members)
        above = members - POOL_PRIOR.least
        by_members, plain = (
            by_pool[:, None, :] * above,
            above / (1 - above.shape[2] * POOL_PRIOR.least),
        )
        # The Jacobian of every member's softmax.
        by_members = by_members - plain * by_members.sum(axis=2, keepdims=True)
        # In log t the derivative of t l is t l itself, which is ``inner``.
        by_member = basis.T @ (weights * np.einsum("njc,njc->nj", by_members, inner))
        by_log_t = basis.T @ (of_rows.temperature * (outer * log_p).sum(axis=1))
        pool, logs = values[names.WEIGHTS], values[names.MEMBER_LOG_TEMPERATURES]
        log_t = values[names.LOG_TEMPERATURE]
        counts = np.atleast_2d(pool) * by_weight + POOL_PRIOR.pseudo_rows
        blocks = [
            coordinates.simplex_gradient(counts, np.atleast_2d(pool)),
            by_member - logs / POOL_PRIOR.sd**2,
            by_log_t - log_t / POOL_PRIOR.sd**2,
        ]
        value = self._value(values, log_q)
        if self._by_fraction:
            has_cell = missing_fraction < 1
            by_exponents = basis.T @ (has_cell * (outer @ self._log_shares))
            blocks.append(by_exponents - values[names.PRIOR_EXPONENT] / POOL_PRIOR.sd**2)
        gradient = np.concatenate([block.reshape(-1) for block in blocks])
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            return value + extra, gradient + extra_gradient
        return value, gradient

    def _value(self, values: dict[str, np.ndarray], log_q: Float[np.ndarray, "row label"]) -> float:
        """Log posterior density without Jacobian, from the stack's log probabilities of rows."""
        log_t, logs = values[names.LOG_TEMPERATURE], values[names.MEMBER_LOG_TEMPERATURES]
        value = float((self._target * log_q).sum())
        value += _log_prior(values[names.WEIGHTS], logs, log_t)
        return (
            value
            if not self._by_fraction
            else value + coordinates.log_normal(values[names.PRIOR_EXPONENT], POOL_PRIOR.sd)
        )

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log densities with Jacobian, without the gradients, which take as long again."""
        densities = np.empty(len(thetas))
        # Points of a proposal may lie anywhere; a density that overflows is NaN or -inf.
        with np.errstate(all="ignore"):
            for i, theta in enumerate(thetas):
                values = self.constrained(theta)
                of_rows = self._of_rows(self._missing_fractions.ravel(), theta)
                members = of_rows.members(self._values)
                jacobian, _ = coordinates.log_jacobian(self.variables, values)
                densities[i] = self._value(values, of_rows.pooled(members)) + jacobian
        return densities

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability ``log q_n[y_n]`` of every held-out row's label in nats.

        Copies of a row with more of its cells masked have the label of the row, and no entry.
        """
        log_q = self.pooled(self._log_probabilities, self._missing_fractions[:, 0], theta)
        return log_q[np.arange(self._labels.size), self._labels]

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights of the held-out rows."""
        return self._weights[:: self._missing_fractions.shape[1]]

    def copies_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """Log likelihood less the weighted log scores of the unmasked rows, in nats.

        It has the terms of the masked copies, and of the condition that a row has a class that was
        held out. None where neither exists.
        """
        if not self._by_fraction and self._offsets is None:
            return None
        result = -self.row_weights * self.log_likelihoods(thetas)
        for row_terms, theta in zip(result, thetas, strict=True):
            of_rows = self._of_rows(self._missing_fractions.ravel(), theta)
            log_q = of_rows.pooled(of_rows.members(self._values))
            row_terms += (
                (self._target * log_q)
                .sum(axis=1)
                .reshape(self._missing_fractions.shape)
                .sum(axis=1)
            )
        return result

    def pooled(
        self,
        log_probabilities: Float[np.ndarray, "row member label"],
        missing_fraction: Float[np.ndarray, " row"],
        theta: Float[np.ndarray, " coordinate"],
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of the whole stack in nats, from those of the members."""
        of_rows = self.of_rows(missing_fraction, theta)
        return of_rows.pooled(of_rows.members(log_probabilities))


def _log_prior(pool: np.ndarray, logs: np.ndarray, log_t: np.ndarray) -> float:
    """Log density of the declared prior of weights and temperatures, without Jacobian."""
    n_members, concentration = pool.shape[-1], 1 + POOL_PRIOR.pseudo_rows
    value = float(gammaln(n_members * concentration) - n_members * gammaln(concentration))
    value *= pool.size // n_members
    logs_of_weights = np.log(np.maximum(pool, coordinates.SMALLEST_PROBABILITY))
    value += POOL_PRIOR.pseudo_rows * float(logs_of_weights.sum())
    return value + coordinates.log_normal(np.append(logs, log_t), POOL_PRIOR.sd)

"""The pool of a stack: weights and temperatures of its members, from the rows held out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.base.arrays import log_loss
from bayesrbf.base.hidden_share import knot_weights
from bayesrbf.base.records import MOST_LOG, Requirements, scales, simplex, stored, within
from bayesrbf.families.stack.posterior import (
    StackLogPosterior,
    member_probabilities,
    pool_weights,
    pooled,
)
from bayesrbf.fit.calibration import fit_powers, fit_temperature, fit_temperatures, tempered
from bayesrbf.fit.held_out import HeldOut


@stored
class Pool:
    """Weights and temperatures of a stack."""

    weights: Float[np.ndarray, " member"]
    member_temperatures: Float[np.ndarray, " member"]
    """Temperatures before the pool."""
    temperature: float
    """Temperature after it."""
    pull: float = 0.0
    """Exponent of the class shares."""

    def __laws__(self) -> Requirements:
        temperatures = (*self.member_temperatures, self.temperature)
        yield simplex(self.weights), "weights that sum to one"
        yield scales(temperatures) and within(temperatures, 0, MOST_LOG), "positive temperatures"

    def losses(self, held_out: HeldOut) -> Float[np.ndarray, " obs"]:
        """Log loss of rows held out, as they are and without the pull, in nats."""
        log_pool = pooled(held_out.values, self.weights, self.member_temperatures)
        return log_loss(np.exp(tempered(log_pool, self.temperature)), held_out.labels)


def equal_pool(n_members: int) -> Pool:
    """Members that all weigh the same, without a temperature."""
    return Pool(np.full(n_members, 1 / n_members), np.ones(n_members), 1.0)


def log_posterior_of(held_out: HeldOut) -> StackLogPosterior:
    """The log posterior of weights and temperatures, given rows held out."""
    rows = held_out.among_judged()
    return StackLogPosterior(
        rows.values, rows.labels, rows.weights, rows.masked, held_out.uncalibrated
    )


def fit_pool(held_out: HeldOut, log_shares: Float[np.ndarray, " label"] | None = None) -> Pool:
    """Temperature of every member, then the weights, then temperature and pull of the pool.

    Each step is at its own mode given those before it. All at once, held-out rows
    would be fitted once more by every member's temperature: on small tables the pool
    is then too sure of itself. Without class shares there is no pull.
    """
    values, labels, weights = held_out.among_judged().values, held_out.labels, held_out.weights
    members = range(values.shape[1])
    temperatures = fit_temperatures(values, labels, weights)
    rows = np.arange(labels.size)
    # EM for the weights asks only how probable members find the true class.
    true_class = np.stack(
        [member_probabilities(values[:, j], temperatures[j])[rows, labels] for j in members], axis=1
    )
    pool = pool_weights(true_class, weights)
    log_pool = pooled(values, pool, temperatures)
    if log_shares is None:
        return Pool(pool, temperatures, fit_temperature(log_pool, labels, weights))
    return Pool(pool, temperatures, *fit_powers(log_pool, labels, weights, log_shares))


def fit_pools(held_out: HeldOut, knots: slice = slice(None)) -> tuple[Pool, ...]:
    """A pool at some knots of the share of hidden cells; one pool where no cells were hidden.

    A row counts at the two knots beside its share, the more the nearer.
    """
    held_out = held_out.among_judged()
    masked = held_out.masked
    if masked is None:
        return (fit_pool(held_out),)
    values = np.concatenate([held_out.values[:, None], masked.values], axis=1)
    n_versions = values.shape[1]
    values, labels = values.reshape(-1, *values.shape[2:]), np.repeat(held_out.labels, n_versions)
    by_knot = knot_weights(masked.hidden.reshape(-1))
    by_knot *= np.repeat(held_out.weights, n_versions)[:, None]
    return tuple(
        fit_pool(HeldOut(values[some], labels[some], at_knot[some]), masked.log_shares)
        for at_knot, some in zip(by_knot.T[knots], by_knot.T[knots] > 0, strict=True)
    )

"""How well members and pool predict the rows held out."""

from __future__ import annotations

import numpy as np

from bayesrbf.estimators.out_of_fold import HeldOut
from bayesrbf.estimators.stack.fitting import Pool
from bayesrbf.numerics.stack.pooling import pooled
from bayesrbf.posterior.scores import log_loss


def held_out_losses(held: HeldOut, pool: Pool) -> list[float]:
    """Held-out log loss of every member, tempered, and of the pool.

    Parameters
    ----------
    held : HeldOut
        Held-out log probabilities of shape (n_held_out, n_members, n_classes).
    pool : Pool
        Weights and temperatures.

    Returns
    -------
    list of n_members + 1 floats
        Losses in nats; NaN where no row was held out.
    """
    values, labels = held.values, held.labels
    n_members = pool.weights.size
    if labels.size == 0:
        return [np.nan] * (n_members + 1)
    temperatures = pool.member_temperatures
    ones = np.ones(1)
    pools = [pooled(values[:, [j]], ones, temperatures[[j]]) for j in range(n_members)]
    whole = pool.temperature * pooled(values, pool.weights, temperatures)
    whole = whole - np.logaddexp.reduce(whole, axis=1, keepdims=True)
    return [
        float(np.average(log_loss(np.exp(one), labels), weights=held.weights))
        for one in [*pools, whole]
    ]

r"""A stack of classifiers: temperatures and simplex weights on held-out rows.

With held-out class log probabilities :math:`l_{nj}` of member j,

.. math::
   p_{nj} &= (1 - C \epsilon)\, \mathrm{softmax}(t_j l_{nj}) + \epsilon, \quad
   q_n = \mathrm{softmax}\bigl(t \log \textstyle\sum_j w_j p_{nj}\bigr), \\
   w &\sim \mathrm{Dirichlet}(1.2, \ldots, 1.2), \quad
   \log t, \log t_j \sim N(0, 1/4), \quad
   \log p(w, t | y) = \sum_n v_n \log q_n[y_n] + \ldots

A linear pool is less sure than its members: hence the last temperature t.

Where held-out rows are predicted again with more of their cells hidden, w, t_j and t depend on the
share of hidden cells, and q is pulled to the class shares (:mod:`bayesrbf.numerics.hidden_share`).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax, softmax

from bayesrbf.numerics.log_sums import keeping
from bayesrbf.numerics.threads import on_one_blas_thread

PSEUDO_ROWS = 0.2
"""Rows of prior behind every member's weight: their Dirichlet parameter less 1."""
LOG_TEMPERATURE_SD = 0.5
LEAST_MEMBER_PROBABILITY = 1e-6
"""Probability that every member is taken to give every class at least."""
LEAST_LOG = -60.0
"""Held-out log probabilities are held above this: one overflow must not set a temperature."""
EM_STEPS = 300
LEAST_SHARE = 0.03
"""Densities with less of a pool of densities are left out of it."""
DENSITY_STEPS = 200
"""Iterations of EM for the shares of densities."""


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


def stacking_shares(
    log_density: Float[np.ndarray, "density obs"], weights: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " density"]:
    r"""Shares of a linear pool of densities by EM, without a prior; small ones are 0.

    .. math:: s_m \leftarrow \frac{\sum_n v_n r_{mn}}{\sum_n v_n}, \quad
        r_{mn} = \frac{s_m p_m(x_n)}{\sum_i s_i p_i(x_n)}

    ``log_density`` is that of held-out rows.

    >>> stacking_shares(np.log([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]]), np.ones(3)).round(2)
    array([0.71, 0.29])
    """
    shares = np.full(len(log_density), 1 / len(log_density))
    for _ in range(DENSITY_STEPS):
        with np.errstate(divide="ignore"):
            # In logs: densities of one row can be hundreds of nats apart.
            responsibilities = softmax(np.log(shares)[:, None] + log_density, axis=0)
        shares = responsibilities @ weights / weights.sum()
    # The largest stays, even where all are small.
    shares = np.where(shares < min(LEAST_SHARE, shares.max()), 0.0, shares)
    return shares / shares.sum()


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

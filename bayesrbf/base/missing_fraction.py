r"""Weights, temperatures and prior exponents that depend on the missing fraction of a row.

A probability that is calibrated on complete rows is not calibrated where few cells speak: evidence
that is a little wrong in every column does not cancel any more. With the missing fraction h,
every parameter :math:`\theta` of a calibration is piecewise linear between knots,

.. math:: \theta(h) = \sum_k B_k(h) \, \theta_k, \qquad
    q(c | x_o) \propto p(c | x_o)^{t(h)} \, \pi_c^{b(h)},

with the hat functions B, the class shares :math:`\pi` of training, the temperature
:math:`t = \exp \sum_k B_k \log t_k` and the prior exponent b. A row without a cell has t = 0 and
b = 1: nothing is known of it but the shares.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base.arrays import log_softmax
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.rows import Observations


def missing_fraction_of(
    rows: Observations, column_of: Int[np.ndarray, " cell"]
) -> Float[np.ndarray, " obs"]:
    """Missing fraction of every row: the share of its columns without a cell; 0 without columns.

    ``column_of`` has the column of every number, then of every code; -1: of none. A column is
    measured where one of its numbers or codes is.

    >>> rows = Observations(
    ...     np.array([[1.0, np.nan, np.nan]]), np.array([[-1, 2]]), np.zeros(1, int), np.ones(1))
    >>> missing_fraction_of(rows, np.array([0, 1, 1, 2, 3]))
    array([0.5])
    """
    measured = np.column_stack([~np.isnan(rows.real), rows.codes >= 0])
    order = np.argsort(column_of, kind="stable")[(column_of < 0).sum() :]
    if not order.size:
        return np.zeros(len(measured))
    starts = np.flatnonzero(np.diff(column_of[order], prepend=-1))
    missing = ~np.logical_or.reduceat(measured[:, order], starts, axis=1)
    return np.asarray(missing.mean(axis=1))


def hats(missing_fraction: Float[np.ndarray, "*rows"]) -> Float[np.ndarray, "*rows knot"]:
    """Values of the hat functions, which sum to one.

    >>> hats(np.array([0.0, 0.25, 0.95]))
    array([[1.  , 0.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.25, 0.75]])
    """
    knots = POOL_PRIOR.knots
    return np.stack(
        [np.interp(missing_fraction, knots, hat) for hat in np.eye(len(knots))], axis=-1
    )


def knot_weights(missing_fraction: Float[np.ndarray, " row"]) -> Float[np.ndarray, "row knot"]:
    """Weight of a row at each knot: its hat functions, or 0 for a row without a cell."""
    return hats(missing_fraction) * (missing_fraction < 1)[:, None]


def powers(
    missing_fraction: Float[np.ndarray, "*rows"],
    log_temperatures: Float[np.ndarray, "*draws knot"],
    prior_exponents: Float[np.ndarray, "*draws knot"],
) -> tuple[Float[np.ndarray, "*all_rows"], Float[np.ndarray, "*all_rows"]]:
    """Temperature and prior exponent of every row, under one point or under every draw."""
    basis = hats(missing_fraction)
    has_cells = missing_fraction < 1
    # Without a cell nothing is known but the shares, whatever the last knot says.
    temperature = np.where(has_cells, np.exp(log_temperatures @ basis.T), 0.0)
    prior_exponent = np.where(has_cells, prior_exponents @ basis.T, 1.0)
    return temperature, prior_exponent


def recalibrated(
    log_p: Float[np.ndarray, "*rows label"],
    temperature: Float[np.ndarray, "*_rows"],
    prior_exponent: Float[np.ndarray, "*_rows"],
    log_shares: Float[np.ndarray, " label"],
) -> Float[np.ndarray, "*rows label"]:
    """Class log probabilities in nats: tempered, and shrunk towards the class shares.

    Rows of draws may share temperatures and exponents.

    >>> log_p, log_shares = np.log([[0.3, 0.7]]), np.log([0.9, 0.1])
    >>> np.exp(recalibrated(log_p, np.zeros(1), np.ones(1), log_shares))
    array([[0.9, 0.1]])
    """
    return log_softmax(
        temperature[..., None] * log_p + prior_exponent[..., None] * log_shares, axis=-1
    )

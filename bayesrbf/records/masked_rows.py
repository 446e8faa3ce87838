"""Copies of held-out rows with cells hidden, and a calibration that depends on how many are."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.records.stored import stored


@stored
class MaskedRows:
    """Predictions for copies of held-out rows with more cells hidden, in the order of the rows."""

    values: Float[np.ndarray, "obs copy *values"]
    """Class log probabilities in nats, along the last axis."""
    hidden: Float[np.ndarray, "obs version"]
    """Share of hidden cells of every row as it is, then of its copies."""
    log_shares: Float[np.ndarray, " label"]
    """Log shares of the classes in training."""


@stored
class Recalibration:
    """Temperatures and pulls to the class shares at the knots of the share of hidden cells."""

    temperatures: Float[np.ndarray, " knot"]
    pulls: Float[np.ndarray, " knot"]
    log_shares: Float[np.ndarray, " label"]

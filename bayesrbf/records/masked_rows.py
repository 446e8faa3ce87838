"""Rows held out, and copies of them with more and more of their cells hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class MaskedRows:
    """What members say of copies of held-out rows, in the order of the rows."""

    values: Float[np.ndarray, "obs copy member label"]
    """Class log probabilities in nats."""
    hidden: Float[np.ndarray, "obs version"]
    """Share of hidden cells of every row as it is, then of its copies."""
    log_shares: Float[np.ndarray, " label"]
    """Log shares of the classes in training."""

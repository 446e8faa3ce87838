"""Priors of a kernel's rates, and the rows from which rates are learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

RateCriterion = Literal["evidence", "leave-one-out"]

NUGGET: Final = 1e-6
"""Added to the kernel of every row with itself, so that any kernel can be inverted."""


@dataclass(frozen=True)
class RateRows:
    """Labelled rows as rates are learned from them."""

    distances: Float[np.ndarray, "column pair"]
    """Distances D of every pair of rows n < m in each column, in the order of SciPy's pdist."""
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]
    left_out: Float[np.ndarray, " obs"]
    """Weight of one of the subjects that a row stands for, which is left out at a time."""
    shares: Float[np.ndarray, " label"]
    """Shares of the classes in the whole table, each positive."""

    @cached_property
    def residuals(self) -> Float[np.ndarray, "obs label"]:
        """Class indicators less the shares."""
        return np.eye(self.shares.size)[self.labels] - self.shares


@dataclass(frozen=True)
class Normal:
    """A normal distribution of a logarithm."""

    mean: float
    sd: float


@dataclass(frozen=True)
class RatePrior:
    """Log-normal priors of the rates, the noise and the output scale."""

    factors: Normal
    """Prior of the logarithm of every column's own factor."""
    common: Normal
    """Prior of the logarithm of the factor that all columns share."""
    noise: Normal
    """Prior of the logarithm of the noise's variance."""
    output_scale: Normal
    """Prior of the logarithm of the signal's variance (evidence) or of the temperature."""


RATE_PRIORS: Final[Mapping[RateCriterion, RatePrior]] = {
    "evidence": RatePrior(Normal(0.0, 0.5), Normal(0.0, 1.0), Normal(-1.0, 2.0), Normal(0.0, 2.0)),
    "leave-one-out": RatePrior(
        Normal(0.0, 0.5), Normal(0.0, 1.5), Normal(-1.0, 1.5), Normal(1.5, 1.0)
    ),
}

"""Results of fits and predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from jaxtyping import Float

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.stored import ANY_NUMBER, named, stored


@named
class Status(Enum):
    """Outcome of a fit. ``value`` is the name that is stored, ``sentence`` is for people."""

    CONVERGED = "converged"
    STOPPED = "stopped"
    MAX_ITER = "max_iter"
    DECREASED = "decreased"
    DEGENERATE = "degenerate"

    @property
    def sentence(self) -> str:
        """A sentence: how the fit ended, and what to do about it."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "The log posterior rises no further, by the tolerance tol.",
    Status.STOPPED: (
        "The fit stopped as it was told to, before the objective stopped rising: after its "
        "number of iterations, or when held-out rows gained no more."
    ),
    Status.MAX_ITER: (
        "max_iter was reached before the log posterior stopped rising: "
        "raise max_iter or tol, or use fewer components."
    ),
    Status.DECREASED: (
        "The log posterior fell by more than rounding allows; the best point is kept. "
        "Look for columns that are nearly linear functions of others."
    ),
    Status.DEGENERATE: (
        "The log posterior is not finite at the start: "
        "look for extreme values, or strengthen the prior."
    ),
}


@stored
class Trace:
    """Path of an optimiser."""

    log_posterior: Float[np.ndarray, " iteration"] = field(metadata=ANY_NUMBER)
    """Log posterior density (without Jacobian) at each accepted point."""

    @property
    def n_iter(self) -> int:
        """Number of accepted points."""
        return int(self.log_posterior.size)


@stored
class Fit:
    """The winning restart of a fit, in standard units."""

    parameters: MixtureParameters
    trace: Trace
    status: Status
    restarts: Float[np.ndarray, " restart"] = field(metadata=ANY_NUMBER)
    """Log posterior that every restart reached; only the best were run to the end."""
    floored: bool  # Whether a covariance is singular but for the floor of its eigenvalues.

    @property
    def converged(self) -> bool:
        """Whether the winner converged."""
        return self.status is Status.CONVERGED

    @property
    def log_posterior(self) -> float:
        """Log posterior density at the point, without Jacobian."""
        return float(self.trace.log_posterior[-1])


@dataclass(frozen=True)
class ClassPrediction:
    """Predictions for some rows, under one draw of the parameters or under several.

    The parts stay apart: in their sum, a density far from all rows would leave no digit
    to the classes.
    """

    log_probabilities: Float[np.ndarray, "*draws obs label"]
    """``log p(c | x_o)`` in nats, up to a constant a row."""
    log_density: Float[np.ndarray, "*draws obs"]  # ``log p(x_o)`` in nats.

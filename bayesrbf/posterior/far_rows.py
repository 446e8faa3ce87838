r"""Rows far outside of the training table, of which less and less is known.

The tail of a model's densities decides there, which no row has ever told: a Gaussian is sure of a
class at any distance. With :math:`e(x)` the largest distance of a cell from the range of its
column in training, in standard deviations and less those that are near, what is given out is

.. math:: (1 - w) \, p(c | x) + w \, \pi_c, \quad
    \frac{w}{1 - w} = \Bigl(\frac{e(x)}{1000}\Bigr)^2,

the class shares of training the more the further the row: the odds that it is of no class as the
training table has them rise as those of a distribution with a heavy tail. Where e is 0, nothing is
changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.posterior.recalibration import tempered
from bayesrbf.records.mixture import Observations
from bayesrbf.records.results import ClassPrediction
from bayesrbf.table import standardisation

NEAR: Final = 10.0
"""Standard deviations outside of the range up to which a row is not far."""
FURTHEST: Final = 1e100
HALF: Final = 1000.0
"""Further ones at which half of the probability is that of the class shares."""


@dataclass(frozen=True)
class FarRows:
    """What is given out at rows far outside of a training table."""

    low: Float[np.ndarray, " column"]
    high: Float[np.ndarray, " column"]
    """Range of the numbers of every column in training."""
    scale: Float[np.ndarray, " column"]
    """Their standard deviations."""
    log_shares: Float[np.ndarray, " label"]
    """Log class shares of training."""

    def unknown(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """The share w of every row that is given to the class shares."""
        if not self.scale.size:
            return np.zeros(rows.n_obs)
        cells = rows.real
        with np.errstate(over="ignore"):  # infinitely far is far
            outside = np.maximum(self.low - cells, cells - self.high) / self.scale - NEAR
        # A missing cell, as NaN, is not outside.
        furthest = np.fmin(np.fmax(outside, 0.0).max(axis=1), FURTHEST)
        odds = (furthest / HALF) ** 2
        return odds / (1 + odds)

    def mixed(
        self, log_p: Float[np.ndarray, "*draws obs label"], rows: Observations
    ) -> Float[np.ndarray, "*draws obs label"]:
        """Class log probabilities as they are given out."""
        return _mixed(log_p, self.unknown(rows), self.log_shares)

    def around(self, posterior: ClassPosterior) -> ClassPosterior:
        """The posterior whose draws are given out likewise."""
        if not self.scale.size:
            return posterior

        def prepare(rows: Observations) -> Predictor:
            predictor, unknown = posterior.predictor(rows), self.unknown(rows)
            if not unknown.any():
                return predictor
            delivered = predictor.delivered
            if delivered is not None:
                delivered = _mixed(delivered, unknown, self.log_shares)
            how = posterior.temperature, unknown, self.log_shares
            return FarPredictor(predictor, *how, delivered, predictor.stretch)

        return replace(posterior, predictor=prepare)


@dataclass(frozen=True)
class FarPredictor(Predictor):
    """A predictor of rows of which some are far."""

    predictor: Predictor
    temperature: float
    """At which its log probabilities will be tempered."""
    unknown: Float[np.ndarray, " obs"]
    log_shares: Float[np.ndarray, " label"]
    delivered: Float[np.ndarray, "obs label"] | None = None
    stretch: Float[np.ndarray, "obs label"] | None = None

    def at_all(self, thetas: Shaped[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        prediction = self.predictor.at_all(thetas)
        log_p = tempered(prediction.log_probabilities, self.temperature)
        mixed = _mixed(log_p, self.unknown, self.log_shares)
        return ClassPrediction(mixed / self.temperature, prediction.log_density)


def far_rows(training: Observations, log_shares: Float[np.ndarray, " label"]) -> FarRows:
    """What training rows, in the user's units, say of far ones.

    >>> training = Observations(
    ...     np.array([[0.0], [2.0]]), np.zeros((2, 0), int), np.array([0, 1]), np.ones(2))
    >>> far = far_rows(training, np.log([0.5, 0.5]))
    >>> new = np.array([[2.0], [12.0], [1012.0], [np.nan]])
    >>> rows = Observations(new, np.zeros((4, 0), int), np.full(4, -1), np.ones(4))
    >>> far.unknown(rows)
    array([0. , 0. , 0.5, 0. ])
    """
    cells = training.real
    unit = standardisation(cells, training.weights)
    observed = ~np.isnan(cells)
    low = np.where(observed, cells, np.inf).min(axis=0)
    high = np.where(observed, cells, -np.inf).max(axis=0)
    return FarRows(low, high, unit.scale, log_shares)


def _mixed(
    log_p: Float[np.ndarray, "*draws obs label"],
    unknown: Float[np.ndarray, " obs"],
    log_shares: Float[np.ndarray, " label"],
) -> Float[np.ndarray, "*draws obs label"]:
    """Class log probabilities, of which a share is that of the class shares."""
    far = unknown > 0
    if not far.any():
        return log_p
    with np.errstate(divide="ignore"):
        rest, w = np.log1p(-unknown[far, None]), np.log(unknown[far, None])
    result = log_p.copy()
    result[..., far, :] = np.logaddexp(rest + log_p[..., far, :], w + log_shares)
    return result

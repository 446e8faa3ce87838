r"""The doubt about the class shares, which is all that is known of a row without a cell.

What is calibrated is pulled towards the class shares of training by b, and a row without a cell is
given the shares themselves. They are frequencies of :math:`n_c` rows. A draw has shares of its own,
after Jeffreys' prior,

.. math:: \pi_s \sim \mathrm{Dirichlet}(n + 1/2), \qquad
    \log p_s(c | x) \to \log p_s(c | x) + b(x) \, \log \frac{\pi_{s c}}{\pi_c}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincinv, logsumexp
from scipy.stats.qmc import Halton

from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.records.results import ClassPrediction

JEFFREYS = 0.5


@dataclass(frozen=True)
class SharesInDoubt(Predictor):
    """A predictor under drawn class shares, which are the last coordinates of every draw.

    A point without them has the shares of training.
    """

    predictor: Predictor
    pull: Float[np.ndarray, " obs"]  # ``b`` of every row.
    dimension: int  # Of the predictor's own coordinates.

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""
        own, moves = np.split(thetas, [self.dimension], axis=1)
        prediction = self.predictor.at_all(own)
        if not moves.size:
            return prediction
        return ClassPrediction(
            at_drawn_shares(prediction.log_probabilities, self.pull, moves), prediction.log_density
        )


def at_drawn_shares(
    log_p: Float[np.ndarray, "draw obs label"],
    pull: Float[np.ndarray, " obs"],
    moves: Float[np.ndarray, "draw label"],
) -> Float[np.ndarray, "draw obs label"]:
    """Class log probabilities with the class shares of every draw, of which ``moves`` are logs."""
    return log_softmax(log_p + pull[:, None] * moves[:, None], axis=-1)


def share_draws(
    counts: Float[np.ndarray, " label"], n_draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw label"]:
    """Log ratios of drawn class shares to those of ``counts``, which fill their law evenly.

    >>> moves = share_draws(np.array([30.0, 70.0]), 1000, np.random.default_rng(0))
    >>> np.exp(np.quantile(moves, [0.05, 0.95], axis=0)).round(1)
    array([[0.8, 0.9],
           [1.3, 1.1]])
    """
    # Halton's points come in an order of their own; permuted, the shares of a draw are
    # independent of its parameters.
    even = rng.permutation(Halton(counts.size, seed=rng).random(n_draws))
    # Gamma variables divided by their sum are Dirichlet.
    log_gamma = np.log(gammaincinv(counts + JEFFREYS, even))
    log_shares = np.log(counts / counts.sum())
    moves: np.ndarray = log_gamma - logsumexp(log_gamma, axis=1, keepdims=True) - log_shares
    return moves

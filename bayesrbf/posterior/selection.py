"""Selection among candidates by their scores of held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from bayesrbf.posterior.scores import mean_and_error


@dataclass(frozen=True)
class Selection[C]:
    """Candidates, from the simplest on, and their scores of the same rows held out.

    A candidate takes the place of one before it if it is better by more than ``margin`` standard
    errors of the paired difference: on small tables the largest of several scores is mostly luck.
    Of equals the first is taken. See Breiman et al. (1984), Classification and regression trees,
    section 3.4.3.
    """

    candidates: tuple[C, ...]
    row_scores: Float[np.ndarray, "candidate obs"]
    """Log probability or log density of every row, in nats."""
    weights: Float[np.ndarray, " obs"]
    margin: float = 0.0

    @cached_property
    def best(self) -> int:
        """Place of the candidate that is taken.

        >>> scores = np.array([[-1.0, -1.0, -1.0], [-0.9, -1.0, -0.9], [-0.5, -0.5, -0.6]])
        >>> Selection(("one", "two", "three"), scores, np.ones(3), margin=1.0).best
        2
        """
        best = 0
        for later in range(1, len(self.candidates)):
            gain, error = self.gain(later, best)
            best = later if gain > self.margin * error else best
        return best

    @property
    def chosen(self) -> C:
        """The candidate that is taken."""
        return self.candidates[self.best]

    @property
    def scores(self) -> Float[np.ndarray, " candidate"]:
        """Mean score of every candidate, in nats a row."""
        return self.row_scores @ self.weights / self.weights.sum()

    def gain(self, one: int, other: int) -> tuple[float, float]:
        """Mean of what one candidate scores above another, and its standard error, in nats a row.

        >>> scores = np.array([[-0.9, -1.0, -0.8], [-1.0, -1.0, -1.0]])
        >>> gain, error = Selection(("one", "other"), scores, np.ones(3)).gain(0, 1)
        >>> round(gain, 3), round(error, 3)
        (0.1, 0.047)
        """
        return mean_and_error(self.row_scores[one] - self.row_scores[other], self.weights)


def unlabelled_gain(
    counted: str, gains: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> str:
    """A sentence on the gain from rows without a label, on held-out rows; empty if there are none.

    >>> gains = np.array([0.2, 0.1, 0.3, 0.2])
    >>> unlabelled_gain("fully", gains, np.ones(4))
    'Rows without a label, counted fully, helped: +0.200 ± 0.035 nats a row held out.'
    """
    if not gains.any():
        return ""
    gain, error = mean_and_error(gains, weights)
    verdict = "helped" if gain > error else "hurt" if gain < -error else "made no clear difference"
    return (
        f"Rows without a label, counted {counted}, {verdict}: {gain:+.3f} ± {error:.3f} nats a row "
        "held out."
    )

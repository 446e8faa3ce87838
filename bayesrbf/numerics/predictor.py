"""What a model says of some rows at points of its log posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.records.results import ClassPrediction


class Predictor(ABC):
    """Class probabilities and density of rows that were prepared, under any posterior draws."""

    @abstractmethod
    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""

    def __call__(self, theta: Float[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        many = self.at_all(theta[None])
        return ClassPrediction(many.log_probabilities[0], many.log_density[0])


@dataclass(frozen=True)
class OneByOne(Predictor):
    """A predictor that takes draws one by one."""

    at: Callable[[np.ndarray], ClassPrediction]

    def __call__(self, theta: Float[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        return self.at(theta)

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw, of which there is at least one."""
        said = [self.at(theta) for theta in thetas]
        return ClassPrediction(
            np.stack([one.log_probabilities for one in said]),
            np.stack([one.log_density for one in said]),
        )

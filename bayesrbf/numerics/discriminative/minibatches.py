"""Adam over mini-batches: for tables that are too long to be read at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from bayesrbf.parameters import Observations

STEP = 0.02
"""Longest step of a coordinate: in units of the components' own spread."""

DECAY_OF_SLOPE = 0.9
DECAY_OF_SQUARE = 0.99


def batches(
    observations: Observations, size: int, rng: np.random.Generator
) -> Iterator[Observations]:
    """Deal rows to mini-batches that have the same share of every class.

    Parameters
    ----------
    observations : Observations
        All rows.
    size : int
        Most rows of a mini-batch, at least 1.
    rng : numpy.random.Generator
        Source of the order.

    Yields
    ------
    Observations
        Rows whose weights stand for those of the whole table: their sum is that of
        all rows, so that a prior beside them counts once.
    """
    n_batches = -(-observations.n_obs // size)
    shuffled = rng.permutation(observations.n_obs)
    by_label = shuffled[np.argsort(observations.labels[shuffled], kind="stable")]
    total = float(observations.weights.sum())
    for first in range(n_batches):
        part = observations.take(by_label[first::n_batches])
        yield replace(part, weights=part.weights * (total / part.weights.sum()))


def adam(
    slope: Callable[[int, np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    n_batches: int,
    n_epochs: int,
    sees: Callable[[np.ndarray, float], bool],
    rng: np.random.Generator,
) -> None:
    """Climb by Adam, with steps that shrink to nothing over the passes.

    Parameters
    ----------
    slope : callable
        Maps a batch and a point to value and gradient.
    start : ndarray of shape (dimension,)
        First point.
    n_batches : int
        Number of batches.
    n_epochs : int
        Number of passes over them.
    sees : callable
        Told point and mean value of every pass; whether to stop there.
    rng : numpy.random.Generator
        Source of the order of the batches.

    References
    ----------
    .. [1] Kingma, Ba (2015), Adam: a method for stochastic optimization, ICLR,
       algorithm 1.
    """
    z = start.copy()
    mean, square, step = np.zeros_like(z), np.zeros_like(z), 0
    for _ in range(n_epochs):
        values = []
        for index in rng.permutation(n_batches):
            value, gradient = slope(int(index), z)
            values.append(value)
            step += 1
            mean += (1 - DECAY_OF_SLOPE) * (gradient - mean)
            square += (1 - DECAY_OF_SQUARE) * (gradient**2 - square)
            unbiased = mean / (1 - DECAY_OF_SLOPE**step)
            size = np.sqrt(square / (1 - DECAY_OF_SQUARE**step)) + 1e-300
            left = 1 - (step - 1) / (n_epochs * n_batches)
            z = z + STEP * left * unbiased / size
        if sees(z, float(np.mean(values))):
            return

"""Categorical columns side by side: indicators, log probabilities, counts, draws."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.coordinates import places
from bayesrbf.records.mixture import MixtureParameters


def one_hot(
    codes: Int[np.ndarray, "obs categorical"], levels: tuple[int, ...]
) -> Float[np.ndarray, "obs level"]:
    """Indicators of the observed levels of all categorical columns, side by side.

    A missing code is -1, and a block of zeros.
    """
    indicators = np.zeros((codes.shape[0], sum(levels)))
    offsets = np.cumsum([0, *levels])[:-1]
    rows, columns = np.nonzero(codes >= 0)
    indicators[rows, offsets[columns] + codes[rows, columns]] = 1.0
    return indicators


def log_levels(parameters: MixtureParameters) -> Float[np.ndarray, "component level"]:
    """Log level probabilities of all categorical columns, side by side."""
    by_column = parameters.category_probabilities
    if not by_column:
        return np.zeros((parameters.weights.size, 0))
    return np.log(np.concatenate(by_column, axis=1))


def split_levels(
    counts: np.ndarray, levels: tuple[int, ...]
) -> tuple[Float[np.ndarray, "component _"], ...]:
    """Undo the side-by-side layout of :func:`one_hot`."""
    return tuple([counts[:, place] for place in _level_places(levels)])


@cache
def _level_places(levels: tuple[int, ...]) -> list[slice]:
    """Where the levels of every column lie side by side."""
    return places(list(levels))


def draw_categories(
    probabilities: Float[np.ndarray, "row category"], rng: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """Draw one category per row; rows of probabilities sum to one."""
    cumulative = probabilities.cumsum(axis=1)
    # Times the sum, which rounding may leave beside 1.
    uniform = rng.random(len(probabilities)) * cumulative[:, -1]
    drawn = (cumulative <= uniform[:, None]).sum(axis=1)
    return np.minimum(drawn, probabilities.shape[1] - 1)

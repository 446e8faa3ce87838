"""Space that the tiles of one piece of the table share, allocated once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel
from bayesrbf.numerics.kernels.gaussian_complete import CompleteScratch
from bayesrbf.numerics.kernels.gaussian_holes import GaussiansWithHoles
from bayesrbf.numerics.kernels.gaussian_missing import MixedScratch
from bayesrbf.numerics.kernels.gaussian_pattern import PatternScratch
from bayesrbf.numerics.kernels.tiles import Tiles


class Holes(NamedTuple):
    """Parameters and space for tiles with missing cells under full covariances."""

    gaussians: GaussiansWithHoles
    mixed: MixedScratch
    pattern: PatternScratch


class Space(NamedTuple):
    """Space for one tile of any kind."""

    log_joint: np.ndarray  # (component, place)
    by_row: np.ndarray  # (place, component)
    complete: CompleteScratch


@kernel
def room_for_complete(n_components: int, n_features: int, width: int) -> CompleteScratch:
    """Allocate space for tiles without missing cells."""
    return CompleteScratch(
        np.empty((n_features, width)),
        np.empty((4, width)),
        np.empty((n_components, n_features, width)),
        np.empty((n_components, width)),
        np.zeros(n_components, np.int64),
        np.empty(width, np.int64),
        np.empty(width),
    )


@kernel
def room_for_holes(
    tiles: Tiles, gaussians: GaussiansWithHoles | None, n_components: int
) -> Holes | None:
    """Allocate space for tiles with missing cells."""
    if gaussians is not None:
        _, d, width = tiles.cells.shape
        m = tiles.n_missing.max()
        triangle = m * (m + 1) // 2
        completed, lines = np.empty((n_components, d, width)), np.empty((4, width))
        places, found = np.empty(width, np.int64), np.empty(width)
        mixed = MixedScratch(
            completed,
            np.empty((n_components, triangle, width)),
            np.empty((triangle, width)),
            np.empty((d, width)),
            np.empty((m, width)),
            np.empty((m, width), np.int64),
            np.empty((triangle, width), np.uint64),
            lines,
            places,
            found,
        )
        pattern = PatternScratch(
            np.full(1, -1),
            np.empty((n_components, m, m)),
            np.empty((n_components, m, d)),
            np.empty(n_components),
            np.empty((m, 1), np.int64),
            np.empty((m, m)),
            completed,
            np.empty((m, width)),
            lines,
            places,
            found,
        )
        return Holes(gaussians, mixed, pattern)
    return None

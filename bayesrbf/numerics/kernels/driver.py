r"""The E-step over a piece of the table: what a tile goes through, in order.

1. ``log_joint`` starts with the constants of the components: log weights and normalisers.
2. The Gaussian part, by the tile's kind: complete, one pattern of missing cells, mixed
   patterns, or diagonal.
3. The categorical part.
4. Either the log joint is handed out, or rows are normalised to shares
   :math:`r_{nk} = v_n e^{l_{nk}} / \sum_j e^{l_{nj}}` (the largest l taken out first, so that
   nothing overflows and not everything vanishes), and their statistics are added.

What a model lacks is passed as None: Numba drops branches on arguments that are None, and
what is not used is not compiled. (It looks at arguments only, and at conditions of one term:
hence the long list of parameters, and conditions within conditions.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels import (
    categorical,
    gaussian_complete,
    gaussian_diagonal,
    gaussian_missing,
    gaussian_pattern,
)
from bayesrbf.numerics.kernels.compilation import SOURCES, entry_point, kernel
from bayesrbf.numerics.kernels.elementary import exponential, logarithm
from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
from bayesrbf.numerics.kernels.gaussian_missing import GaussiansWithHoles, MixedScratch
from bayesrbf.numerics.kernels.gaussian_pattern import PatternScratch
from bayesrbf.numerics.kernels.tiles import Tiles

LOWEST: Final = -1e300
"""Floor of a log density: a row that no component explains has equal shares, not NaN."""


class Model(NamedTuple):
    """Last arguments of :data:`expect`: the mixture, None where there is no such part."""

    constants: np.ndarray  # (component,): log weight and log normalisers
    full: FullGaussians | None
    holes: GaussiansWithHoles | None
    diagonal: DiagonalGaussians | None
    categories: np.ndarray | None  # (code, component): log probabilities


class Results(NamedTuple):
    """Where the results go; the sums of one piece belong to it alone."""

    counts: np.ndarray  # (component,)
    first: np.ndarray  # (component, feature)
    second: np.ndarray  # (component, feature, feature) or (component, feature)
    categories: np.ndarray  # (code, component)
    log_likelihood: np.ndarray  # (1,)
    pointwise: np.ndarray  # (row,), shared by all pieces
    log_joint: np.ndarray  # (row, component), or (0, component) where statistics are wanted


@kernel
def _normalise(
    log_joint: np.ndarray,
    components: tuple[int, int],
    weights: np.ndarray,
    lines: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Turn log joints into shares, in place; the log sums are left in ``lines[0]``."""
    low, high = components
    n_rows = log_joint.shape[1]
    for r in range(n_rows):
        lines[0, r] = LOWEST
        lines[1, r] = 0.0
    for k in range(low, high):
        for r in range(n_rows):
            lines[0, r] = max(lines[0, r], log_joint[k, r])
    for k in range(low, high):
        for r in range(n_rows):
            share = exponential(max(log_joint[k, r], LOWEST) - lines[0, r])
            log_joint[k, r] = share
            lines[1, r] += share
    for r in range(n_rows):
        lines[0, r] += logarithm(lines[1, r])
        lines[1, r] = weights[r] / lines[1, r]
    for k in range(low, high):
        count = 0.0
        for r in range(n_rows):
            share = log_joint[k, r] * lines[1, r]
            log_joint[k, r] = share
            count += share
        counts[k] += count


@kernel
def _hand_out(tile: int, tiles: Tiles, log_joint: np.ndarray, out: np.ndarray) -> None:
    """Write a tile's log joints to the rows of the caller."""
    for r in range(tiles.sizes[tile]):
        row = tiles.rows[tile, r]
        for k in range(log_joint.shape[0]):
            out[row, k] = max(log_joint[k, r], LOWEST)


@kernel
def _mirror(second: np.ndarray) -> None:
    """Copy the upper triangle of symmetric matrices to the lower."""
    for k in range(second.shape[0]):
        for i in range(second.shape[1]):
            for j in range(i):
                second[k, i, j] = second[k, j, i]


@kernel
def _mixed_scratch(n_components: int, d: int, m: int, width: int) -> MixedScratch:
    """Space for tiles of mixed patterns with at most m missing cells a row."""
    triangle = m * (m + 1) // 2
    return MixedScratch(
        np.empty((n_components, d, width)),
        np.empty((n_components, triangle, width)),
        np.empty((triangle, width)),
        np.empty((d, width)),
        np.empty((m, width)),
        np.empty((m, width), np.int64),
        np.empty((triangle, width), np.uint64),
        np.empty((2, width)),
    )


@kernel
def _pattern_scratch(completed: np.ndarray, m: int) -> PatternScratch:
    """Space for tiles of one pattern; completed rows share the space of mixed tiles."""
    n_components, d, width = completed.shape
    return PatternScratch(
        completed,
        np.empty((n_components, m, m)),
        np.empty((n_components, m, d)),
        np.empty(n_components),
        np.empty((m, m)),
        np.empty((m, 1), np.int64),
        np.empty((m, width)),
        np.empty((2, width)),
    )


def _compiled(sources: str) -> Callable[..., None]:
    """Compile :data:`expect` under a key that knows all kernel files."""

    @entry_point
    def expect(
        tiles: Tiles,
        ranges: np.ndarray,
        start: int,
        stop: int,
        results: Results,
        constants: np.ndarray,
        full: FullGaussians | None,
        holes: GaussiansWithHoles | None,
        diagonal: DiagonalGaussians | None,
        categories: np.ndarray | None,
    ) -> None:
        _ = sources
        d, width = tiles.cells.shape[1:]
        n_components = len(constants)
        log_joint = np.empty((n_components, width))
        lines = np.empty((2, width))
        if full is not None:
            deviation = np.empty((d, width))
        if holes is not None:
            most = tiles.n_missing[start:stop].max()
            mixed = _mixed_scratch(n_components, d, most, width)
            pattern = _pattern_scratch(mixed.completed, most)
            known_pattern = -1
        if categories is not None:
            by_row = np.empty((width, n_components))
        for tile in range(start, stop):
            part = (ranges[tile, 0], ranges[tile, 1])
            cells, codes, m = tiles.cells[tile], tiles.codes[tile], tiles.n_missing[tile]
            one_pattern = tiles.pattern[tile] >= 0
            for k in range(part[0], part[1]):
                log_joint[k] = constants[k]
            if full is not None:  # noqa: SIM102
                if m == 0:
                    gaussian_complete.add_log_density(
                        cells, full, part, log_joint, deviation, lines
                    )
            if holes is not None:
                if m > 0 and one_pattern:
                    if known_pattern != tiles.pattern[tile]:
                        known_pattern = tiles.pattern[tile]
                        gaussian_pattern.learn_pattern(cells, m, holes, part, pattern)
                    gaussian_pattern.add_log_density(cells, m, holes, part, log_joint, pattern)
                if m > 0 and not one_pattern:
                    gaussian_missing.add_log_density(cells, m, holes, part, log_joint, mixed)
            if diagonal is not None:
                gaussian_diagonal.add_log_density(cells, diagonal, part, log_joint)
            if categories is not None:
                categorical.add_log_probability(codes, categories, part, log_joint, by_row)
            if len(results.log_joint):
                _hand_out(tile, tiles, log_joint, results.log_joint)
                continue
            _normalise(log_joint, part, tiles.weights[tile], lines, results.counts)
            for r in range(tiles.sizes[tile]):
                results.pointwise[tiles.rows[tile, r]] = lines[0, r]
                results.log_likelihood[0] += tiles.weights[tile, r] * lines[0, r]
            if full is not None:  # noqa: SIM102
                if m == 0:
                    gaussian_complete.add_moments(
                        cells,
                        full,
                        part,
                        log_joint,
                        results.first,
                        results.second,
                        deviation,
                        lines,
                    )
            if holes is not None:
                if m > 0 and one_pattern:
                    gaussian_pattern.add_moments(
                        m, part, log_joint, results.first, results.second, pattern
                    )
                if m > 0 and not one_pattern:
                    gaussian_missing.add_moments(
                        m, part, log_joint, results.first, results.second, mixed
                    )
            if diagonal is not None:
                gaussian_diagonal.add_moments(
                    cells, diagonal, part, log_joint, results.first, results.second
                )
            if categories is not None:
                categorical.add_counts(codes, part, log_joint, results.categories, by_row)
        if full is not None:
            _mirror(results.second)

    return expect


expect = _compiled(SOURCES)
"""Go through tiles ``start`` to ``stop`` of a table, as the module says."""

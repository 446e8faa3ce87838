r"""The E-step over a piece of the table: what a tile goes through, in order.

1. ``log_joint`` starts with the constants of the components: log weights and normalisers.
2. The Gaussian part, by the tile's kind: complete, one pattern of missing cells, mixed
   patterns, or diagonal.
3. The categorical part.
4. Either the log joint is handed out, or rows are normalised to responsibilities
   :math:`r_{nk} = v_n e^{l_{nk}} / \sum_j e^{l_{nj}}` (the largest l taken out first, so that
   nothing overflows and not everything vanishes), and their statistics are added; or, where
   gradients are given, they take the place of the responsibilities, and densities that only
   served these are left out.

What the Gaussian part lacks is passed as None: Numba drops branches on arguments that are None, and
what is not used is not compiled. It looks at conditions of one term only: hence conditions
within conditions. Categories and gradients take little to compile, and are always there, without a
code or a row where there are none: each thing that may be None is twice as many kernels to compile.
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
from bayesrbf.numerics.kernels.compilation import SOURCES, entry_point, inlined, kernel
from bayesrbf.numerics.kernels.elementary import exponential, logarithm
from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
from bayesrbf.numerics.kernels.gaussian_pattern import GaussiansWithHoles
from bayesrbf.numerics.kernels.tiles import Holes, Space, Tiles, room_for_complete, room_for_holes

LOWEST: Final = -1e300
"""Floor of a log density: a row that no component explains has equal responsibilities, not NaN."""


class Model(NamedTuple):
    """Last arguments of :data:`expect`: the mixture, None where there is no such part."""

    constants: np.ndarray  # (component,): log weight and log normalisers
    full: FullGaussians | None
    holes: GaussiansWithHoles | None
    diagonal: DiagonalGaussians | None
    categories: np.ndarray  # (code, component): log probabilities; no codes without categories


class Results(NamedTuple):
    """Where the results go; the sums of one piece belong to it alone."""

    counts: np.ndarray  # (component,)
    first: np.ndarray  # (component, feature), or (0, feature) where moments are not wanted
    second: np.ndarray  # (component, feature, feature) or (component, feature)
    categories: np.ndarray  # (code, component)
    log_likelihood: np.ndarray  # (1,)
    pointwise: np.ndarray  # (row,), shared by all pieces
    log_joint: np.ndarray  # (row, component), or (0, component) where statistics are wanted


@kernel
def _normalise(
    tiles: Tiles, tile: int, part: tuple[int, int], space: Space, results: Results
) -> None:
    """Turn log joints into responsibilities in place; add counts and write log densities."""
    low, high = part
    log_joint, lines = space.log_joint, space.complete.lines
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
        # One division a row; the components are multiplied by it.
        lines[1, r] = tiles.weights[tile, r] / lines[1, r]
    for k in range(low, high):
        count = 0.0
        for r in range(n_rows):
            share = log_joint[k, r] * lines[1, r]
            log_joint[k, r] = share
            count += share
        results.counts[k] += count
    for r in range(tiles.sizes[tile]):
        results.pointwise[tiles.rows[tile, r]] = lines[0, r]
        results.log_likelihood[0] += tiles.weights[tile, r] * lines[0, r]


@kernel
def _hand_out(tiles: Tiles, tile: int, log_joint: np.ndarray, out: np.ndarray) -> None:
    """Copy a tile's log joints to the places of the caller's rows."""
    for r in range(tiles.sizes[tile]):
        row = tiles.rows[tile, r]
        for k in range(log_joint.shape[0]):
            out[row, k] = max(log_joint[k, r], LOWEST)


@kernel
def _take(
    tiles: Tiles, tile: int, gradients: np.ndarray, log_joint: np.ndarray, counts: np.ndarray
) -> None:
    """Replace a tile's log joint by the caller's gradients, which are 0 in unused places."""
    for k in range(log_joint.shape[0]):
        for r in range(log_joint.shape[1]):
            gradient = gradients[tiles.rows[tile, r], k] if r < tiles.sizes[tile] else 0.0
            log_joint[k, r] = gradient
            counts[k] += gradient


@kernel
def _mirror(second: np.ndarray) -> None:
    """Copy the upper triangle of symmetric matrices to the lower."""
    for k in range(second.shape[0]):
        for i in range(second.shape[1]):
            for j in range(i):
                second[k, i, j] = second[k, j, i]


@kernel
def _evaluate(
    tiles: Tiles,
    tile: int,
    part: tuple[int, int],
    full: FullGaussians | None,
    holes: Holes | None,
    diagonal: DiagonalGaussians | None,
    categories: np.ndarray,
    space: Space,
) -> None:
    """Add the log densities of a tile to its log joint."""
    cells, m, number = tiles.cells[tile], tiles.n_missing[tile], tiles.pattern[tile]
    log_joint = space.log_joint
    if full is not None:  # noqa: SIM102
        if m == 0:
            gaussian_complete.add_log_density(cells, full, part, log_joint, space.complete)
    if holes is not None:
        if m > 0 and number >= 0:
            gaussian_pattern.add_log_density(
                cells, m, number, holes.gaussians, part, log_joint, holes.pattern
            )
        elif m > 0:
            gaussian_missing.add_log_density(
                cells, m, holes.gaussians, part, log_joint, holes.mixed
            )
    if diagonal is not None:
        gaussian_diagonal.add_log_density(cells, diagonal, part, log_joint)
    if len(categories):
        codes = tiles.codes[tile]
        categorical.add_log_probability(codes, categories, part, log_joint, space.by_row)


@kernel
def _add_statistics(
    tiles: Tiles,
    tile: int,
    part: tuple[int, int],
    full: FullGaussians | None,
    holes: Holes | None,
    diagonal: DiagonalGaussians | None,
    space: Space,
    results: Results,
) -> None:
    """Add the statistics of a tile whose log joint has become responsibilities."""
    cells, m, number = tiles.cells[tile], tiles.n_missing[tile], tiles.pattern[tile]
    responsibilities, first, second = space.log_joint, results.first, results.second
    if full is not None:  # noqa: SIM102
        if m == 0:
            gaussian_complete.add_moments(
                cells, full, part, responsibilities, first, second, space.complete
            )
    if holes is not None:
        if m > 0 and number >= 0:
            gaussian_pattern.add_moments(m, part, responsibilities, first, second, holes.pattern)
        elif m > 0:
            group = holes.gaussians.group
            gaussian_missing.add_moments(
                m, group, part, responsibilities, first, second, holes.mixed
            )
    if diagonal is not None:
        gaussian_diagonal.add_moments(cells, diagonal, part, responsibilities, first, second)
    if len(results.categories):
        categorical.add_counts(
            tiles.codes[tile], part, responsibilities, results.categories, space.by_row
        )


@kernel
def _finish(full: FullGaussians | None, space: Space, results: Results) -> None:
    """Add what complete tiles have kept waiting, and the lower triangles."""
    if full is not None:
        gaussian_complete.add_all_waiting(results.first, results.second, space.complete)
        _mirror(results.second)


@inlined
def go_through(
    tiles: Tiles,
    ranges: np.ndarray,
    start: int,
    stop: int,
    results: Results,
    gradients: np.ndarray,
    constants: np.ndarray,
    full: FullGaussians | None,
    gaps: GaussiansWithHoles | None,
    diagonal: DiagonalGaussians | None,
    categories: np.ndarray,
) -> None:
    """Go through tiles ``start`` to ``stop`` of a table, as the module says."""
    k, (_, d, width) = len(constants), tiles.cells.shape
    complete = room_for_complete(k, d, width)
    space = Space(np.empty((k, width)), np.empty((width, k)), complete)
    holes = room_for_holes(tiles, gaps, k)
    for tile in range(start, stop):
        part = (ranges[tile, 0], ranges[tile, 1])
        given = len(gradients) > 0
        if not given or tiles.n_missing[tile] > 0:  # completes the cells, as moments want them
            for j in range(part[0], part[1]):
                for r in range(width):
                    space.log_joint[j, r] = constants[j]
            _evaluate(tiles, tile, part, full, holes, diagonal, categories, space)
        if given:
            _take(tiles, tile, gradients, space.log_joint, results.counts)
        elif len(results.log_joint):
            _hand_out(tiles, tile, space.log_joint, results.log_joint)
            continue
        else:
            _normalise(tiles, tile, part, space, results)
        if len(results.first):
            _add_statistics(tiles, tile, part, full, holes, diagonal, space, results)
    _finish(full, space, results)


def _compiled(sources: str) -> Callable[..., None]:
    """Compile :data:`expect` under a key that covers all kernel files."""

    @entry_point
    def expect(
        tiles: Tiles,
        ranges: np.ndarray,
        start: int,
        stop: int,
        results: Results,
        gradients: np.ndarray,
        constants: np.ndarray,
        full: FullGaussians | None,
        gaps: GaussiansWithHoles | None,
        diagonal: DiagonalGaussians | None,
        categories: np.ndarray,
    ) -> None:
        _ = sources
        go_through(
            tiles,
            ranges,
            start,
            stop,
            results,
            gradients,
            constants,
            full,
            gaps,
            diagonal,
            categories,
        )

    return expect


expect = _compiled(SOURCES)
""":func:`go_through`, for calls from Python."""

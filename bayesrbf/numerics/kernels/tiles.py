"""Rows in the order and the layout that the kernels use, and the space to work on them.

Rows are sorted by label, then by the number of their missing cells, then by which cells are
missing, and cut into tiles of at most R rows that share label and number. A tile stores its rows
side by side, one feature a line, so that the kernels' inner loops run over contiguous rows.
Patterns with enough rows get tiles of their own, because their conditional covariance is the same
for all rows; tiles of mixed patterns compute it row by row. Unused places of a tile repeat its
first row with weight 0.

The width R is the one whose tiles hold the fewest places, where each tile counts
:data:`TILE_OVERHEAD` places more for its start.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel
from bayesrbf.numerics.kernels.gaussian_complete import CompleteScratch
from bayesrbf.numerics.kernels.gaussian_missing import MixedScratch
from bayesrbf.numerics.kernels.gaussian_pattern import GaussiansWithHoles, PatternScratch
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import MixtureSpecification

WIDTHS: Final = (8, 16, 32, 64, 128)
"""Rows of a tile: multiples of a vector register, few enough for the first cache."""

TILE_OVERHEAD: Final = 16
TILES_AT_ONCE: Final = 64
"""Tiles that are filled together, so that their rows are read from memory once."""
WIDEST_WITH_HOLES: Final = 64
SCRATCH_CELLS: Final = 1 << 20
"""Most numbers of scratch that a tile with missing cells may take, all components together."""


class Tiles(NamedTuple):
    """A table in tiles; the kernels read nothing else of the rows."""

    cells: np.ndarray  # (tile, feature, place), NaN where missing
    codes: np.ndarray  # (tile, pack, place), combined category codes
    weights: np.ndarray  # (tile, place), 0 where the place is unused
    rows: np.ndarray  # (tile, place), row of the caller
    sizes: np.ndarray  # (tile,), places in use
    n_missing: np.ndarray  # (tile,), missing cells of each row; 0 unless covariances are full
    pattern: np.ndarray  # (tile,), number of the one pattern of the tile, -1 where mixed
    components: np.ndarray  # (tile, 2), components that its rows may come from

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return len(self.sizes)


class _Runs(NamedTuple):
    """Sorted rows, and where runs of one pattern start."""

    order: np.ndarray  # (row,), caller's row of each sorted row
    starts: np.ndarray  # (run + 1,), first sorted row of each run, and the number of rows
    opens: np.ndarray  # (run,), whether label or number of missing cells is new
    n_missing: np.ndarray  # (run,), missing cells of each row


def plan_tiles(
    observations: Observations, packed: np.ndarray, specification: MixtureSpecification
) -> Tiles:
    """Sort rows, with their combined category codes in ``packed``, and cut them into tiles."""
    runs = _sort(observations, by_pattern=not specification.independent)
    width = min(_allowed_widths(runs, specification), key=partial(_places, runs))
    starts, sizes = _cut(runs, width)
    places = np.arange(width)
    used = places < sizes[:, None]
    rows = starts[:, None] + places
    # Unused places repeat a row that exists, so that kernels need no branch for them.
    np.copyto(rows, starts[:, None], where=~used)
    rows = runs.order[rows]
    number, last = (
        np.searchsorted(runs.starts, sorted_row, side="right") - 1
        for sorted_row in (starts, starts + sizes - 1)
    )
    n_missing = runs.n_missing[number]
    del runs  # the order of a large table is large
    weights = observations.weights[rows]
    weights[~used] = 0.0
    return Tiles(
        cells=_in_tiles(observations.real, rows),
        codes=_in_tiles(packed, rows),
        weights=weights,
        rows=rows,
        sizes=sizes,
        n_missing=n_missing,
        pattern=np.where(number == last, number, -1),
        components=_component_ranges(observations.labels[rows[:, 0]], specification),
    )


def _in_tiles(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Values (row, column) in the layout (tile, column, place)."""
    tiled = np.empty((rows.shape[0], values.shape[1], rows.shape[1]), values.dtype)
    for first in range(0, len(rows), TILES_AT_ONCE):
        some = slice(first, first + TILES_AT_ONCE)
        tiled[some] = values[rows[some]].transpose(0, 2, 1)
    return tiled


def _sort(observations: Observations, by_pattern: bool) -> _Runs:
    """Sort rows by label, number of missing cells and pattern."""
    labels = observations.labels
    n_missing, pattern = _holes(observations.real if by_pattern else observations.real[:, :0])
    order = np.lexsort((*pattern, n_missing, labels))
    new_group = _changes(labels[order]) | _changes(n_missing[order])
    new_run = new_group.copy()
    for byte in pattern:
        new_run |= _changes(byte[order])
    starts = np.flatnonzero(new_run)
    per_run = n_missing[order[starts]].astype(np.intp)
    return _Runs(order, np.append(starts, len(order)), new_group[starts], per_run)


def _holes(real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number of missing cells of every row, and which these are: a bit a column, a line a byte."""
    n_missing = np.zeros(len(real), np.int32)
    pattern = np.zeros((-(-real.shape[1] // 8), len(real)), np.uint8)
    for place, column in enumerate(real.T):
        missing = np.isnan(column)
        n_missing += missing
        pattern[place // 8] |= missing.view(np.uint8) << (7 - place % 8)
    return n_missing, pattern


def _changes(key: np.ndarray) -> np.ndarray:
    """Whether a row differs from the row before it; the first does."""
    changed = np.ones(len(key), bool)
    changed[1:] = key[1:] != key[:-1]
    return changed


def _allowed_widths(runs: _Runs, specification: MixtureSpecification) -> list[int]:
    """Widths whose scratch stays small; the smallest is always allowed."""
    most = int(runs.n_missing.max(initial=0))
    if not most:
        return list(WIDTHS)
    lines = specification.n_components * (most * (most + 1) // 2 + specification.n_features)
    widest = min(WIDEST_WITH_HOLES, SCRATCH_CELLS // lines)
    return [width for width in WIDTHS if width <= max(widest, WIDTHS[0])]


def _edges(runs: _Runs, width: int) -> np.ndarray:
    """First sorted row of what is cut into tiles of at most ``width`` rows, and the number of rows.

    A pattern that fills half a tile is cut off before and after, and gets tiles of its own.
    """
    long = runs.starts[1:] - runs.starts[:-1] >= width // 2
    cuts = np.ones(runs.starts.size, bool)
    cuts[:-1] = runs.opens | long
    cuts[1:-1] |= long[:-1]
    return runs.starts[cuts]


def _places(runs: _Runs, width: int) -> int:
    """Places of all tiles of such a width, and :data:`TILE_OVERHEAD` more for each."""
    edges = _edges(runs, width)
    n_tiles = -(-(edges[1:] - edges[:-1]) // width)
    return int(n_tiles.sum()) * (width + TILE_OVERHEAD)


def _cut(runs: _Runs, width: int) -> tuple[np.ndarray, np.ndarray]:
    """First sorted row and size of every tile of at most ``width`` rows."""
    edges = _edges(runs, width)
    n_tiles = -(-np.diff(edges) // width)
    within = np.arange(n_tiles.sum()) - np.repeat(np.cumsum(n_tiles) - n_tiles, n_tiles)
    starts = np.repeat(edges[:-1], n_tiles) + width * within
    return starts, np.minimum(width, np.repeat(edges[1:], n_tiles) - starts)


def _component_ranges(labels: np.ndarray, specification: MixtureSpecification) -> np.ndarray:
    """First component that each label admits, and the one after the last."""
    slices = specification.class_slices
    ranges = np.array([*((s.start, s.stop) for s in slices), (0, specification.n_components)])
    admitted: np.ndarray = ranges[labels]  # -1, a hidden label, takes the last
    return admitted


def balanced_chunks(tiles: Tiles, specification: MixtureSpecification) -> np.ndarray:
    """Cut the tiles into pieces of equal work: the first tile of each, and the number of tiles.

    The pieces depend on the table alone, never on the number of threads: their sums are added in a
    fixed order, so that results are equal to the last bit.
    """
    _, d, width = tiles.cells.shape
    m = tiles.n_missing
    # Multiply-adds of one place under one component, roughly; only their ratios matter.
    per_place = np.full(tiles.n_tiles, 40.0 + 8 * tiles.codes.shape[1])
    if not specification.independent:
        mixed = (m > 0) & (tiles.pattern < 0)
        per_place += (
            d * d + np.where(m > 0, d * m, 0) + np.where(mixed, d * d + 5 * m * m + m**3, 0)
        )
    else:
        per_place += 4 * d
    work = np.cumsum(per_place * width * np.diff(tiles.components, axis=1)[:, 0])
    total = work[-1] if len(work) else 0.0
    n_chunks = int(np.clip(total // CHUNK_WORK, 1, MOST_CHUNKS))
    inner = np.searchsorted(work, total * np.arange(1, n_chunks) / n_chunks)
    return np.concatenate([[0], inner, [tiles.n_tiles]])


CHUNK_WORK: Final = 2_000_000.0  # Multiply-adds from which handing work to another thread pays.

MOST_CHUNKS: Final = 8


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
            np.empty(width),
            np.empty((triangle, width)),
            np.empty((d, width)),
            np.empty((m, width)),
            np.empty((m, width), np.int64),
            np.empty((triangle, width), np.uint64),
            lines,
            places,
            found,
            np.empty((1, width)),
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

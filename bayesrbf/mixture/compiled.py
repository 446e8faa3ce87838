"""The compiled E-step: tiles of rows, categorical columns, the driver.

Every kernel is held equal to its NumPy reference by a test. Arrays are NumPy's without shapes in
their types, because what Numba compiles is not checked. Here and in ``compiled_gaussian`` a tile
has cells and deviations (feature, place), log joints and responsibilities (component, place), and
moments (component, feature) and (component, feature, feature). Missing cells are NaN.
``components`` are a tile's first component and the one after its last; k is a component, g a
covariance group. Results are added in place.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.base.compiled import entry_point, exponential, inlined, kernel, logarithm
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.mixture.compiled_gaussian import (
    CompleteScratch,
    DiagonalGaussians,
    FullGaussians,
    GaussiansWithHoles,
    MixedScratch,
    PatternScratch,
    add_all_waiting,
    add_complete_log_density,
    add_complete_moments,
    add_diagonal_log_density,
    add_diagonal_moments,
    add_missing_log_density,
    add_missing_moments,
    add_pattern_log_density,
    add_pattern_moments,
)

# Categorical columns: one table look-up for several columns at once.
#
# .. math:: \log p(x_o | k) = \sum_{j \in O} \log \theta_{k j x_j}
#
# Neighbouring columns of few levels are packed into one column of combined codes, and a missing
# cell is a further level whose log probability is 0. A combined code is the number of a line of one
# table (code, component): the look-up adds a line of contiguous numbers, and counting adds the
# responsibilities back to the same line. ``members`` (code, column of the pack) says which levels a
# line combines, as numbers of the single levels of all columns; the missing level has the number
# behind the last.


PACK_LEVELS: Final = 64  # Most combined codes of a pack: its table must stay in the first cache.


class Packing(NamedTuple):
    """Rows in combined codes, and what the codes stand for."""

    codes: np.ndarray  # (row, pack): line of the table of combined codes
    members: np.ndarray  # (code, column of the pack): numbers of levels


def pack(codes: np.ndarray, levels: tuple[int, ...]) -> Packing:
    """Combine neighbouring columns of level codes, -1 where missing, while their codes stay few."""
    layout = _layout(levels)
    single = np.where(codes < 0, np.asarray(levels, np.intp), codes)
    packed = [single[:, columns] @ strides + first for columns, strides, first in layout.packs]
    stacked = np.column_stack([np.empty((len(codes), 0), np.int32), *packed])
    return Packing(np.ascontiguousarray(stacked, np.int32), layout.members)


class _Layout(NamedTuple):
    """Packs of neighbouring columns, each of which an E-step looks up in one table.

    A line of the table is a combination of the levels of a pack, missing ones included. It holds
    the sum of their log probabilities, so that a row costs a sum over packs and not over columns.
    """

    packs: list[tuple[slice, np.ndarray, int]]  # Columns, strides of their codes, first line.
    members: np.ndarray  # The levels of every line, among those of all columns.


@cache
def _layout(levels: tuple[int, ...]) -> _Layout:
    """Packs of neighbouring columns with at most ``PACK_LEVELS`` combinations of levels each.

    ``levels`` are numbers of levels, column by column. A column with more is a pack alone.
    """
    groups: list[list[int]] = []
    # Too large on purpose: the first column opens a pack.
    size = PACK_LEVELS + 1
    for column, n_levels in enumerate(levels):
        size *= n_levels + 1
        if size > PACK_LEVELS:
            groups.append([])
            size = n_levels + 1
        groups[-1].append(column)
    starts = np.cumsum([0, *levels])
    width = max((len(columns) for columns in groups), default=1)
    packs, n_lines = [], 0
    members: list[np.ndarray] = [np.empty((0, width), np.int64)]
    for columns in groups:
        choices = [[*range(starts[column], starts[column + 1]), starts[-1]] for column in columns]
        lines = np.array(list(itertools.product(*choices)))
        filler = np.full((len(lines), width - len(columns)), starts[-1])
        members.append(np.hstack([lines, filler]))
        sizes = [len(one) for one in choices[1:]]
        strides = np.cumprod([1, *sizes[::-1]])[::-1]  # the last column runs fastest
        packs.append((slice(columns[0], columns[-1] + 1), strides, n_lines))
        n_lines += len(lines)
    return _Layout(packs, np.concatenate(members))


def log_tables(
    classes: np.ndarray,
    weights: np.ndarray,
    probabilities: tuple[np.ndarray, ...],
    members: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Log joint weights of class and component, and of combined codes (code, component)."""
    constants, table = np.empty(weights.size), np.empty((len(members), weights.size))
    factors = np.concatenate([classes[:, None], weights[:, None], *probabilities], axis=1)
    write_logs(factors, members, constants, table)
    return constants, table


@inlined
def add_log_probability(
    codes: np.ndarray,
    table: np.ndarray,
    components: tuple[int, int],
    log_joint: np.ndarray,
    by_row: np.ndarray,
) -> None:
    """Add the log probability of a tile's codes (pack, place) to ``log_joint`` (component, place).

    ``table`` (code, component) has log probabilities of combined codes, ``components`` the first
    component and the one after the last, and ``by_row`` (place, component) is overwritten.
    """
    low, high = components
    for r in range(codes.shape[1]):
        for k in range(low, high):
            # A line of the table has the components side by side, so sums are gathered row by row.
            by_row[r, k] = 0.0
        for pack in range(codes.shape[0]):
            code = codes[pack, r]
            for k in range(low, high):
                by_row[r, k] += table[code, k]
    for k in range(low, high):
        for r in range(codes.shape[1]):
            log_joint[k, r] += by_row[r, k]


@inlined
def add_counts(
    codes: np.ndarray,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    counts: np.ndarray,
    by_row: np.ndarray,
) -> None:
    """Add a tile's weighted responsibilities (component, place) to ``counts`` (code, component).

    ``codes`` are (pack, place), and ``by_row`` (place, component) is overwritten.
    """
    low, high = components
    for k in range(low, high):
        for r in range(codes.shape[1]):
            by_row[r, k] = responsibilities[k, r]
    for r in range(codes.shape[1]):
        for pack in range(codes.shape[0]):
            code = codes[pack, r]
            for k in range(low, high):
                counts[code, k] += by_row[r, k]


@entry_point
def write_logs(
    factors: np.ndarray, members: np.ndarray, constants: np.ndarray, table: np.ndarray
) -> None:
    """Write log joint weights to ``constants``, log probabilities of combined codes to ``table``.

    ``table`` is (code, component). A line of ``factors`` has the probabilities of a component: of
    its class, of the component given the class, and of all levels.
    """
    logs = np.log(factors)
    for k in range(logs.shape[0]):
        constants[k] = logs[k, 0] + logs[k, 1]
    for code in range(members.shape[0]):
        for k in range(logs.shape[0]):
            table[code, k] = 0.0
        for column in range(members.shape[1]):
            position = members[code, column] + 2
            if position < logs.shape[1]:
                for k in range(logs.shape[0]):
                    table[code, k] += logs[k, position]


@entry_point
def unpack_counts(counts: np.ndarray, members: np.ndarray, by_level: np.ndarray) -> None:
    """Add counts (code, component) of combined codes to counts (component, level)."""
    for code in range(members.shape[0]):
        for column in range(members.shape[1]):
            line = members[code, column]
            if line < by_level.shape[1]:
                for k in range(counts.shape[1]):
                    by_level[k, line] += counts[code, k]


# Rows in the order and the layout that the kernels use, and the space to work on them.
#
# Rows are sorted by label, then by the number of their missing cells, then by which cells are
# missing, and cut into tiles of at most R rows that share label and number. A tile stores its rows
# side by side, one feature a line, so that the kernels' inner loops run over contiguous rows.
# Patterns with enough rows get tiles of their own, because their conditional covariance is the same
# for all rows; tiles of mixed patterns compute it row by row. Unused places of a tile repeat its
# first row with weight 0.
#
# The width R is the one whose tiles hold the fewest places, where each tile counts
# :data:`TILE_OVERHEAD` places more for its start.


WIDTHS: Final = (8, 16, 32, 64, 128)
"""Rows of a tile: multiples of a vector register, few enough for the first cache."""

TILE_OVERHEAD: Final = 16  # Positions that take as long as the start of a tile.
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
    """Tiles of the rows, sorted by label, number and pattern of missing reals.

    ``packed`` (row, pack) has the combined codes of the categorical cells.
    """
    runs = _sort(observations, by_pattern=not specification.independent)
    width = min(_allowed_widths(runs, specification), key=partial(_n_positions, runs))
    starts, sizes = _cut(runs, width)
    positions = np.arange(width)
    used = positions < sizes[:, None]
    rows = starts[:, None] + positions
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
    """Rows sorted by label and, under ``by_pattern``, number and pattern of missing reals."""
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
    """Number of missing cells of every row, and a bit for each: (byte, row), 8 columns a byte."""
    n_missing = np.zeros(len(real), np.int32)
    pattern = np.zeros((-(-real.shape[1] // 8), len(real)), np.uint8)
    for position, column in enumerate(real.T):
        missing = np.isnan(column)
        n_missing += missing
        pattern[position // 8] |= missing.view(np.uint8) << (7 - position % 8)
    return n_missing, pattern


def _changes(key: np.ndarray) -> np.ndarray:
    """Whether a row differs from the row before it; the first does."""
    changed = np.ones(len(key), bool)
    changed[1:] = key[1:] != key[:-1]
    return changed


def _allowed_widths(runs: _Runs, specification: MixtureSpecification) -> list[int]:
    """Tile widths whose scratch has at most ``SCRATCH_CELLS`` numbers, and the smallest width."""
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


def _n_positions(runs: _Runs, width: int) -> int:
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
    """First tile of every piece of roughly equal work, and the number of tiles as the end.

    The pieces depend on the table alone, never on the number of threads: their sums are added in a
    fixed order, so that results are equal to the last bit.
    """
    _, d, width = tiles.cells.shape
    m = tiles.n_missing
    # Multiply-adds of one place under one component, roughly; only their ratios matter.
    per_position = np.full(tiles.n_tiles, 40.0 + 8 * tiles.codes.shape[1])
    if not specification.independent:
        mixed = (m > 0) & (tiles.pattern < 0)
        per_position += (
            d * d + np.where(m > 0, d * m, 0) + np.where(mixed, d * d + 5 * m * m + m**3, 0)
        )
    else:
        per_position += 4 * d
    work = np.cumsum(per_position * width * np.diff(tiles.components, axis=1)[:, 0])
    total = work[-1] if len(work) else 0.0
    n_chunks = int(np.clip(total // CHUNK_WORK, 1, MAX_CHUNKS))
    inner = np.searchsorted(work, total * np.arange(1, n_chunks) / n_chunks)
    return np.concatenate([[0], inner, [tiles.n_tiles]])


CHUNK_WORK: Final = 2_000_000.0  # Multiply-adds from which handing work to another thread pays.

MAX_CHUNKS: Final = 8  # A constant, not the number of cores: sums are equal on any machine.


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
    """Allocate space for tiles with missing cells; None without ``gaussians``."""
    if gaussians is not None:
        _, d, width = tiles.cells.shape
        m = tiles.n_missing.max()
        triangle = m * (m + 1) // 2
        completed, lines = np.empty((n_components, d, width)), np.empty((4, width))
        positions, found = np.empty(width, np.int64), np.empty(width)
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
            positions,
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
            positions,
            found,
        )
        return Holes(gaussians, mixed, pattern)
    return None


# The E-step over a piece of the table: what a tile goes through, in order.
#
# 1. ``log_joint`` starts with the constants of the components: log weights and normalisers.
# 2. The Gaussian part, by the tile's kind: complete, one pattern of missing cells, mixed
#    patterns, or diagonal.
# 3. The categorical part.
# 4. Either the log joint is handed out, or rows are normalised to responsibilities
#    :math:`r_{nk} = v_n e^{l_{nk}} / \sum_j e^{l_{nj}}` (the largest l taken out first, so that
#    nothing overflows and not everything vanishes), and their statistics are added; or, where
#    gradients are given, they take the place of the responsibilities, and densities that only
#    served these are left out.
#
# What the Gaussian part lacks is passed as None: Numba drops branches on arguments that are None,
# and what is not used is not compiled. It looks at conditions of one term only: hence conditions
# within conditions. Categories and gradients take little to compile, and are always there, without
# a code or a row where there are none: each thing that may be None is twice as many kernels to
# compile.


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
    """Arrays of the results; the sums of one piece belong to it alone."""

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
    """Responsibilities of a tile's rows times the row weights, in place of the log joints.

    ``part`` is the range of components, first and end, that the responsibilities are shared among.
    Sums of weighted responsibilities over the rows are added to ``results.counts``. The log density
    of every row, in nats, is written to ``results.pointwise``. The weighted sum of log densities is
    added to ``results.log_likelihood``.
    """
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
    """Add log densities of a tile's observed cells to ``space.log_joint`` (component, place).

    ``part`` is the range of components, first and end. Under full covariances the conditional means
    of missing cells stay in ``holes`` for :func:`_add_statistics`.
    """
    cells, m, number = tiles.cells[tile], tiles.n_missing[tile], tiles.pattern[tile]
    log_joint = space.log_joint
    if full is not None:  # noqa: SIM102
        if m == 0:
            add_complete_log_density(cells, full, part, log_joint, space.complete)
    if holes is not None:
        if m > 0 and number >= 0:
            add_pattern_log_density(
                cells, m, number, holes.gaussians, part, log_joint, holes.pattern
            )
        elif m > 0:
            add_missing_log_density(cells, m, holes.gaussians, part, log_joint, holes.mixed)
    if diagonal is not None:
        add_diagonal_log_density(cells, diagonal, part, log_joint)
    if len(categories):
        codes = tiles.codes[tile]
        add_log_probability(codes, categories, part, log_joint, space.by_row)


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
    """Add weighted first and second moments and level counts of a tile to ``results``.

    ``space.log_joint`` has the weighted responsibilities, or gradients in their place.
    """
    cells, m, number = tiles.cells[tile], tiles.n_missing[tile], tiles.pattern[tile]
    responsibilities, first, second = space.log_joint, results.first, results.second
    if full is not None:  # noqa: SIM102
        if m == 0:
            add_complete_moments(cells, full, part, responsibilities, first, second, space.complete)
    if holes is not None:
        if m > 0 and number >= 0:
            add_pattern_moments(m, part, responsibilities, first, second, holes.pattern)
        elif m > 0:
            group = holes.gaussians.group
            add_missing_moments(m, group, part, responsibilities, first, second, holes.mixed)
    if diagonal is not None:
        add_diagonal_moments(cells, diagonal, part, responsibilities, first, second)
    if len(results.categories):
        add_counts(tiles.codes[tile], part, responsibilities, results.categories, space.by_row)


@kernel
def _finish(full: FullGaussians | None, space: Space, results: Results) -> None:
    """Add what complete tiles have kept waiting, and the lower triangles."""
    if full is not None:
        add_all_waiting(results.first, results.second, space.complete)
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
    """Add the expected statistics of tiles ``start`` to ``stop``, exclusive, to ``results``.

    ``ranges`` (tile, 2) has the components of each tile, first and end, and ``constants`` log
    weights and normalisers of the components. ``gradients`` (row, component) take the place of the
    weighted responsibilities where there are any. Where ``results.log_joint`` has rows, log joints
    are written there and nothing is added.
    """
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
    """Call :func:`go_through` from Python."""
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

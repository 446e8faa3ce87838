"""A canonical order of columns, levels and classes, and rows whatever their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt, UInt32, UInt64

from bayesrbf.base.rows import Observations, Order, Standardisation, Subjects, in_blocks

# A canonical order of columns, levels and classes, which depends on the cells and on nothing else.
#
# Starts are drawn column by column and class by class, and sums differ in their last bits with the
# order of their terms. A table is therefore fitted in its canonical order: the numbers are then the
# same, whatever the order of rows and columns and whatever the names of levels and classes.
#
# Colour refinement, as for graphs, distinguishes columns, levels, classes and rows. A colour is 64
# bits, mixed from the cells x: the rank of a real cell within its column (so units do not matter,
# unless ranks leave columns alike), and the colour of the level of a categorical one:
#
# .. math:: r_i = h\Big(v_i, k_{y_i}, \sum_j h(c_j, x_{ij})\Big), \quad
#     c_j \leftarrow h\Big(c_j, \sum_i h(r_i, x_{ij})\Big), \quad
#     k_l \leftarrow h\Big(k_l, \sum_{i: y_i = l} h(r_i)\Big)
#
# for columns c, rows r of weight v, and classes k, until the number of colours stays the same.
# Levels are coloured as classes are. Sums of whole numbers modulo :math:`2^{64}` have no rounding,
# and no order. Where columns, levels or classes are still alike without being copies, one of them
# gets its own colour and the refinement goes on. They are alike by a symmetry of the table, so it
# does not matter which one.
#
# See Weisfeiler and Leman (1968), The reduction of a graph to canonical form, NTI Series 2, 9,
# 12-16.


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST = np.uint64(31)

FIRST_KEYS: Final = 4
"""Sort keys that are tried first: labels and a few columns distinguish the rows of most tables."""

MAX_INDIVIDUALISED: Final = 200
"""Maximum number of symmetric items that are recoloured singly; the rest keep their given order."""

Colours = UInt64[np.ndarray, " _"]


def canonical_order(rows: Observations, n_classes: int | None = None) -> Order:
    """Original position of each column and class of the canonical table.

    The rows are distinct and have positive weights. Classes without a row come last; ``n_classes``
    None means as many as there are codes. Copies of a column, and columns or classes that a
    symmetry of the table exchanges, come in any order: the table is the same.

    >>> cells = np.array([[1.0, 7.0], [2.0, 7.0], [5.0, 8.0]])
    >>> rows = Observations(cells, np.zeros((3, 0), int), np.array([0, 0, 1]), np.ones(3))
    >>> turned = Observations(cells[:, ::-1], rows.codes, 1 - rows.labels, rows.weights)
    >>> one, other = canonical_order(rows), canonical_order(turned)
    >>> np.array_equal(one.features, 1 - other.features)
    True
    >>> np.array_equal(one.classes, 1 - other.classes)
    True
    """
    present = np.unique(rows.labels[rows.labels >= 0])
    size = int(rows.labels.max(initial=-1)) + 1 if n_classes is None else n_classes
    absent = np.setdiff1d(np.arange(size), present)
    colouring = _coloured(rows)
    reals, categories = np.split(colouring.columns, [rows.real.shape[1]])
    return Order(
        np.argsort(reals, kind="stable"),
        np.argsort(categories, kind="stable"),
        np.append(present[np.argsort(colouring.classes, kind="stable")], absent),
    )


def canonical_levels(rows: Observations) -> list[Int[np.ndarray, " _"]]:
    """Original code of each level of the categorical columns, in the canonical order.

    >>> codes = np.array([[0, 1], [1, 1], [1, 0]])
    >>> rows = Observations(np.zeros((3, 0)), codes, np.array([0, 0, 1]), np.ones(3))
    >>> turned = replace(rows, codes=1 - codes)
    >>> one, other = canonical_levels(rows), canonical_levels(turned)
    >>> all(np.array_equal(a, 1 - b) for a, b in zip(one, other, strict=True))
    True
    """
    rows = _merged(rows, *_sorted(rows))  # copies of rows are as one row of their weight
    colours = _coloured(rows).levels[1:]
    ends = np.cumsum([0, *(rows.codes.max(axis=0, initial=-1) + 1)])
    return [np.argsort(colours[i:j], kind="stable") for i, j in pairwise(ends.tolist())]


def _coloured(rows: Observations) -> _Colouring:
    """Colours that distinguish columns, levels and classes, except copies."""
    n_features = rows.real.shape[1]
    cells = _Cells.of(rows)
    kinds = np.repeat([1, 2], [n_features, rows.codes.shape[1]]).astype(np.uint64)
    levels, classes = np.ones(cells.n_levels, np.uint64), np.zeros(cells.n_classes, np.uint64)
    levels[0] = 0  # of missing cells
    colouring = cells.settled(_Colouring(kinds, levels, classes))
    if not cells.all_differ(colouring):  # ranks leave some alike; their values may differ
        columns = colouring.columns.copy()
        columns[:n_features] ^= _contents(rows.real)
        colouring = cells.settled(replace(colouring, columns=columns))
    for _ in range(MAX_INDIVIDUALISED):
        if (parted := cells.parted(colouring)) is None:
            break
        colouring = cells.settled(parted)
    return colouring


def canonical_sort(rows: Observations) -> Int[np.ndarray, " row"]:
    """Original index of each row of the canonical table; the rows are distinct."""
    order = canonical_order(rows)
    codes = [rows.codes[:, position] for position in order.categories]  # views: rows are not copied
    reals = [rows.real[:, position] for position in order.features]
    return sorted_by([order.labels(rows.labels), *codes, *reals])


def sort_keys(rows: Observations) -> list[np.ndarray]:
    """Sort keys of the rows, the first one first; rows differ by missing indicators, too."""
    indicators = [] if rows.missing is None else [*rows.missing.T]
    return [rows.labels, *rows.codes.T, *rows.real.T, *indicators]


def sorted_by(keys: Sequence[Shaped[np.ndarray, " row"]]) -> Int[np.ndarray, " row"]:
    """Lexicographic order of rows by keys, the first key first.

    Few keys tell most tables' rows apart: the others are not looked at.

    >>> sorted_by([np.array([2.0, np.nan, 1.0, 2.0]), np.array([7, 7, 7, 5])])
    array([2, 3, 0, 1])
    """
    size = FIRST_KEYS
    while size < len(keys):
        order = np.lexsort(keys[size - 1 :: -1])
        if differ(keys[:size], order).all():
            return order
        size *= 4
    return np.lexsort(keys[::-1])


def differ(
    keys: Sequence[Shaped[np.ndarray, " row"]], order: Int[np.ndarray, " row"]
) -> Bool[np.ndarray, " row"]:
    """Whether each sorted row differs from the row before it in some key."""
    first = np.zeros(order.size, dtype=bool)
    first[:1] = True
    for key in keys:
        ordered = key[order]
        changed = ordered[1:] != ordered[:-1]
        if ordered.dtype.kind == "f":
            changed &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
        first[1:] |= changed
        if first.all():
            break
    return first


def _contents(cells: Float[np.ndarray, "row column"]) -> Colours:
    """Hash of the values of each column."""
    mixed = [_mix(np.ascontiguousarray(column).view(np.uint64)).sum() for column in cells.T]
    return np.array(mixed, np.uint64)


@dataclass(frozen=True)
class _Colouring:
    """Colours of columns (real ones first), of the levels of all columns, and of classes."""

    columns: Colours
    levels: Colours
    """The first is the colour of a missing cell."""
    classes: Colours

    @cached_property
    def number(self) -> int:
        """Number of different colours."""
        return sum(np.unique(colours).size for colours in (self.columns, self.levels, self.classes))


@dataclass(frozen=True)
class _Cells:
    """Cells of a table: ranks of real ones, 0 where missing, and numbers of levels."""

    ranks: UInt32[np.ndarray, "feature row"]
    levels: Int[np.ndarray, "categorical row"]
    """Numbers of levels, counted through all columns from 1; 0 where missing."""
    weights: UInt32[np.ndarray, " row"]
    labels: Int[np.ndarray, " row"]
    """Index among the classes with a row, from 1; 0 without a label."""
    column_of: Int[np.ndarray, " level"]
    """Number of the column of every level, from 1; 0 of a missing cell."""
    n_classes: int

    @property
    def n_levels(self) -> int:
        """Number of levels of all columns, and one for missing cells."""
        return self.column_of.size

    @classmethod
    def of(cls, rows: Observations) -> _Cells:
        """Ranks and numbers of the cells of a table."""
        ranks = cell_ranks(rows.real)
        sizes = rows.codes.max(axis=0, initial=-1) + 1
        first = np.cumsum(sizes) - sizes + 1
        levels = np.where(rows.codes < 0, 0, rows.codes + first).T
        # Weights of copies add up with rounding, so their last bits are dropped; of no row the
        # maximum is 1e-300, so that nothing is divided by 0.
        shares = (rows.weights / rows.weights.max(initial=1e-300)).astype(np.float32)
        present, labels = np.unique(rows.labels, return_inverse=True)
        hidden = int((present < 0).any())
        columns = len(ranks) + 1 + np.arange(sizes.size)
        column_of = np.append(0, np.repeat(columns, sizes))
        labels, n_classes = labels + 1 - hidden, present.size - hidden
        return cls(ranks, levels, _ranks(shares), labels, column_of, n_classes)

    def all_differ(self, colouring: _Colouring) -> bool:
        """Whether all columns, levels and classes have distinct colours."""
        n_columns = len(self.ranks) + len(self.levels)
        return colouring.number == n_columns + self.n_levels + self.n_classes

    def settled(self, colouring: _Colouring) -> _Colouring:
        """Refine until the number of colours stays the same."""
        number = 0
        while number < colouring.number and not self.all_differ(colouring):
            number = colouring.number
            colouring = self._refined(colouring)
        return colouring

    def parted(self, colouring: _Colouring) -> _Colouring | None:
        """Recolour one item among equal colours; None if items of equal colour are copies."""
        if self.all_differ(colouring):
            return None
        columns = _mix(np.arange(colouring.columns.size, dtype=np.uint64))
        levels = _mix(np.arange(self.n_levels, dtype=np.uint64))
        by_row = self._sums(_row_colours, levels)
        by_cells = self._sums(lambda block: self._over_columns(block, columns, levels), levels)
        for name, contents in (
            ("columns", by_row.columns),
            ("levels", self._elsewhere(columns, levels)),
            ("classes", by_cells.classes),
        ):
            parted = _parted(getattr(colouring, name), contents)
            if parted is not None:
                return replace(colouring, **{name: parted})
        return None

    def _refined(self, colouring: _Colouring) -> _Colouring:
        """One round: rows from columns, levels and classes, then these from rows."""
        of_labels = np.append(np.uint64(0), colouring.classes)

        def rows(block: slice) -> Colours:
            cells = self._over_columns(block, colouring.columns, colouring.levels)
            return _mix(cells, of_labels[self.labels[block]])

        sums = self._sums(rows, colouring.levels)
        columns = _mix(sums.columns, colouring.columns)
        # Levels of columns that differ differ.
        levels = _mix(
            _mix(sums.levels, colouring.levels), np.append(np.uint64(0), columns)[self.column_of]
        )
        levels[0] = 0
        return _Colouring(columns, levels, _mix(sums.classes, colouring.classes))

    def _elsewhere(self, columns: Colours, levels: Colours) -> Colours:
        """Hash, for each level, of the cells of its rows in all other columns."""
        n = len(self.ranks)
        of_levels = np.zeros(self.n_levels, np.uint64)
        for block in self._blocks():
            reals = _mix(self.ranks[:, block], columns[:n, None]).sum(axis=0)
            codes = self.levels[:, block]
            cells = _mix(levels[codes], columns[n:, None])
            rest = _mix(reals + cells.sum(axis=0) - cells, self.weights[block])
            for column, rows in zip(codes, rest, strict=True):
                np.add.at(of_levels, column, _mix(rows, self.labels[block].astype(np.uint64)))
        return of_levels

    def _over_columns(self, block: slice, columns: Colours, levels: Colours) -> Colours:
        """Hash of the weight and the cells of each row in a block."""
        n = len(self.ranks)
        reals = _mix(self.ranks[:, block], columns[:n, None]).sum(axis=0)
        codes = _mix(levels[self.levels[:, block]], columns[n:, None]).sum(axis=0)
        return _mix(reals + codes, self.weights[block])

    def _sums(self, colours_of: Callable[[slice], Colours], levels: Colours) -> _Colouring:
        """Sums of the hashed row colours for each column, level and class."""
        of_columns = np.zeros(len(self.ranks) + len(self.levels), np.uint64)
        of_levels = np.zeros(self.n_levels, np.uint64)
        of_classes = np.zeros(self.n_classes + 1, np.uint64)
        for block in self._blocks():
            rows = colours_of(block)
            codes = self.levels[:, block]
            reals = _mix(self.ranks[:, block], rows).sum(axis=1)
            of_columns += np.append(reals, _mix(levels[codes], rows).sum(axis=1))
            mixed = _mix(rows)
            for column in codes:  # add.at of NumPy 2.5 does not broadcast
                np.add.at(of_levels, column, mixed)
            np.add.at(of_classes, self.labels[block], mixed)
        return _Colouring(of_columns, of_levels, of_classes[1:])

    def _blocks(self) -> Iterator[slice]:
        """Blocks of rows of limited size; sums of whole numbers do not depend on them."""
        n_columns = len(self.ranks) + len(self.levels)
        return in_blocks(self.labels.size, n_columns, cached=True)


def _row_colours(block: slice) -> Colours:
    """Distinct colour for each row of a block."""
    return _mix(np.arange(block.start, block.stop, dtype=np.uint64))


def _parted(colours: Colours, contents: Colours) -> Colours | None:
    """Recolour the first item whose contents differ from its group's; None if all agree."""
    _, first, group = np.unique(colours, return_index=True, return_inverse=True)
    odd = np.flatnonzero(contents != contents[first[group]])
    if not odd.size:
        return None
    chosen = first[group[odd].min()]
    return np.where(np.arange(colours.size) == chosen, ~colours, colours)


def cell_ranks(cells: Float[np.ndarray, "row column"]) -> UInt32[np.ndarray, "column row"]:
    """Rank of each cell among the distinct values of its column, from 1; 0 where it is missing.

    >>> cell_ranks(np.array([[7.0], [1e300], [np.nan], [7.0]]))
    array([[1, 2, 0, 1]], dtype=uint32)
    """
    ranks = np.empty(cells.shape[::-1], np.uint32)
    for block in in_blocks(len(ranks), len(cells), cached=True):
        ranks[block] = _ranks(cells.T[block]) + 1
    ranks[np.isnan(cells.T)] = 0
    return ranks


def _ranks(values: Float[np.ndarray, "*columns row"]) -> UInt32[np.ndarray, "*columns row"]:
    """Rank of each value among the distinct ones of its column."""
    order = np.argsort(values, axis=-1)  # NaN comes last
    in_order = np.take_along_axis(values, order, axis=-1)
    rises = np.zeros(values.shape, bool)
    rises[..., 1:] = in_order[..., 1:] != in_order[..., :-1]
    ranks = np.empty(values.shape, np.uint32)
    np.put_along_axis(ranks, order, np.cumsum(rises, axis=-1, dtype=np.uint32), axis=-1)
    return ranks


def _mix(
    values: UInt[np.ndarray, "*shape"], keys: UInt[np.ndarray, "*_"] | None = None
) -> UInt64[np.ndarray, "*_shape"]:
    """64-bit hash of numbers, or of pairs of numbers and keys, as in SplitMix64."""
    mixed = values.astype(np.uint64) + _GOLDEN
    if keys is not None:
        mixed = mixed * _GOLDEN ^ keys
    for shift, factor in _ROUNDS:
        mixed = (mixed ^ (mixed >> shift)) * factor
    return mixed ^ (mixed >> _LAST)


# Rows whatever their order: units, marginals, distinct rows, weights without a label.


_ROUNDING_OF_SPREAD = 8 * np.finfo(np.float64).eps
"""Maximum spread, relative to the largest cell, that rounding alone can cause."""
_MIN_COLUMN_SCALE = 1e-154  # Smallest scale whose square, a variance, is still a normal number.


def weigh_unlabelled(
    labels: Int[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"], factor: float
) -> Float[np.ndarray, " obs"]:
    """Weights of rows where those without a label count by a factor.

    >>> weigh_unlabelled(np.array([0, -1, 1]), np.array([1.0, 2.0, 1.0]), 0.25)
    array([1. , 0.5, 1. ])
    """
    return np.where(labels < 0, factor * weights, weights)


def standardisation(
    real: Float[np.ndarray, "obs feature"], weights: Float[np.ndarray, " obs"]
) -> Standardisation:
    """Weighted mean and standard deviation of the observed cells of each column.

        location = sum v x / sum v,    scale^2 = sum v (x - location)^2 / sum v

    The scale is 1 for a column that is constant up to rounding (or whose spread is below 1e-154);
    location is 0 and scale 1 for one without a cell. ValueError if a spread is above 1e154: its
    square is not a number.

    >>> standardisation(np.array([[1.0, 5.0], [3.0, np.nan]]), np.ones(2))
    Standardisation(location=array([2., 5.]), scale=array([1., 1.]))
    """
    return column_moments(real, weights).units


def check_spreads(
    real: Float[np.ndarray, "obs feature"],
    weights: Float[np.ndarray, " obs"],
    names: tuple[str, ...],
) -> None:
    """ValueError if the square of a column's positive spread under- or overflows."""
    for name, scale in zip(names, column_moments(real, weights).scales, strict=True):
        if not _MIN_COLUMN_SCALE <= scale <= 1 / _MIN_COLUMN_SCALE:
            beyond = "below 1e-154" if scale < _MIN_COLUMN_SCALE else "beyond 1e154"
            raise ValueError(
                f"Real column {name!r} has a spread of {scale:.3g}, {beyond}: its square is no "
                "number; rescale it."
            )


@dataclass(frozen=True)
class ColumnMoments:
    """Weight, mean, spread and largest absolute value of the observed cells of every column."""

    mass: Float[np.ndarray, " feature"]
    mean: Float[np.ndarray, " feature"]
    spread: Float[np.ndarray, " feature"]
    largest: Float[np.ndarray, " feature"]

    @property
    def scales(self) -> Float[np.ndarray, " feature"]:
        """The spreads; 1 for a column that is constant up to rounding."""
        return np.where(self.spread > _ROUNDING_OF_SPREAD * self.largest, self.spread, 1.0)

    @property
    def units(self) -> Standardisation:
        """Location and scale of every column; ValueError if a spread is too large."""
        scales = self.scales
        for position in np.flatnonzero(scales > 1 / _MIN_COLUMN_SCALE):
            raise ValueError(
                f"Real column {position} has a spread of {scales[position]:.3g}, beyond 1e154; "
                "rescale it."
            )
        return Standardisation(self.mean, np.where(scales >= _MIN_COLUMN_SCALE, scales, 1.0))

    def joined(self, other: ColumnMoments) -> ColumnMoments:
        """Moments of the cells of two blocks (Chan, Golub and LeVeque, 1983)."""
        mass = self.mass + other.mass
        share = other.mass / np.where(mass > 0, mass, 1.0)
        apart = other.mean - self.mean
        within = np.hypot(np.sqrt(1 - share) * self.spread, np.sqrt(share) * other.spread)
        spread = np.hypot(within, np.sqrt(share * (1 - share)) * apart)
        largest = np.maximum(self.largest, other.largest)
        return ColumnMoments(mass, self.mean + share * apart, spread, largest)


def column_moments(
    real: Float[np.ndarray, "obs feature"], weights: Float[np.ndarray, " obs"]
) -> ColumnMoments:
    """Moments of the columns, free of overflow, underflow and cancellation."""
    moments = np.zeros((4, real.shape[1]))
    for block in in_blocks(real.shape[1], len(real), cached=True):
        moments[:, block] = _moments(np.ascontiguousarray(real.T[block]), weights)
    return ColumnMoments(*moments)


def _moments(
    columns: Float[np.ndarray, "feature obs"], weights: Float[np.ndarray, " obs"]
) -> tuple[Float[np.ndarray, " feature"], ...]:
    """Weight, mean, spread and largest absolute value of each column; 0 without a cell."""
    used = ~np.isnan(columns) & (weights > 0)
    mass = np.where(used, weights, 0.0)
    # Weights may be so large that their sum overflows, or all be 0.
    share = mass / mass.max(axis=1, initial=1e-300, keepdims=True)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    values, any_used = np.where(used, columns, 0.0), used.any(axis=1)
    least = np.where(any_used, columns.min(axis=1, initial=np.inf, where=used), 0.0)
    most = np.where(any_used, columns.max(axis=1, initial=-np.inf, where=used), 0.0)
    largest = np.maximum(-least, most)
    # A power of two takes the largest cell into [0.5, 1) without rounding.
    exponent = np.frexp(largest)[1]
    unit = np.ldexp(values, -exponent[:, None])
    centre = np.ldexp(least, -exponent) / 2 + np.ldexp(most, -exponent) / 2
    mean = centre + (share * (unit - centre[:, None])).sum(axis=1)
    spread = np.sqrt((share * (unit - mean[:, None]) ** 2).sum(axis=1))
    return mass.sum(axis=1), np.ldexp(mean, exponent), np.ldexp(spread, exponent), largest


def marginals(
    codes: Int[np.ndarray, "obs categorical"],
    n_levels: tuple[int, ...],
    weights: Float[np.ndarray, " obs"],
) -> tuple[Float[np.ndarray, " _"], ...]:
    """Smoothed level frequencies of each categorical column, p_l = (n_l + 1/2) / sum_m (n_m + 1/2).

    >>> marginals(np.array([[0], [0], [-1]]), (2,), np.ones(3))[0].round(3)
    array([0.833, 0.167])
    """
    frequencies = []
    for column, n in zip(codes.T, n_levels, strict=True):
        present = column >= 0
        # Jeffreys' prior: positive for a level without a row.
        counts = np.bincount(column[present], weights=weights[present], minlength=n) + 0.5
        frequencies.append(counts / counts.sum())
    return tuple(frequencies)


def distinct(observations: Observations) -> tuple[Observations, Int[np.ndarray, " obs"]]:
    """Distinct rows in canonical order, and the index of each given row among them.

    The weights of copies are added up, and so are their numbers of subjects. The result depends on
    the multiset of rows alone, and not on their order. -0.0 equals 0.0, and NaN equals NaN.
    Rows are sorted by label, codes and real cells, classes and columns taken in their own canonical
    order (``canonical_order``). Rows of weight zero are dropped, and their place is -1.

    >>> cells = np.array([[2.0], [1.0], [2.0]])
    >>> rows = Observations(cells, np.empty((3, 0), int), np.zeros(3, int), np.ones(3))
    >>> once, inverse = distinct(rows)
    >>> once.real.ravel(), once.weights, inverse
    (array([1., 2.]), array([1., 2.]), array([1, 0, 1]))
    """
    weigh = observations.weights > 0
    used = observations if weigh.all() else observations.take(weigh)
    order, first = _sorted(used)
    rows = _merged(used, order, first)
    canonical = canonical_sort(rows)
    of_used = np.empty(used.n_obs, dtype=np.intp)
    of_used[order] = np.argsort(canonical)[np.cumsum(first) - 1]
    inverse = np.full(observations.n_obs, -1, dtype=np.intp)
    inverse[weigh] = of_used
    _reorder(rows, canonical)
    return rows, inverse


def distinct_rows(observations: Observations) -> Observations:
    """The rows of :func:`distinct` alone, in less memory."""
    weigh = observations.weights > 0
    used = observations if weigh.all() else observations.take(weigh)
    rows = _merged(used, *_sorted(used))
    _reorder(rows, canonical_sort(rows))
    return rows


def _sorted(
    used: Observations,
) -> tuple[Int[np.ndarray, " obs"], Bool[np.ndarray, " obs"]]:
    """Order of rows with copies adjacent, and whether each sorted row differs from the previous.

    Weights are the last key, so that copies are added up in an order of their own.
    """
    keys = sort_keys(used)
    order = sorted_by([*keys, used.weights])
    return order, differ(keys, order)


def _merged(
    used: Observations, order: Int[np.ndarray, " obs"], first: Bool[np.ndarray, " obs"]
) -> Observations:
    """Sorted rows with copies merged, in new memory."""
    totals = used.weights[order]
    subjects = used.subjects
    if not first.all():
        starts = np.flatnonzero(first)
        totals = np.add.reduceat(totals, starts)
        counts = np.add.reduceat(used.subject_counts[order], starts)
        numbers = order if subjects is None else subjects.numbers[order]
        subjects = Subjects(np.minimum.reduceat(numbers, starts), counts)
    elif subjects is not None:
        subjects = subjects.take(order)
    rows = replace(used.take(order[first]), weights=totals, subjects=subjects)
    for column in rows.real.T:
        column += 0.0
        column[np.isnan(column)] = np.nan
    return rows


def _reorder(rows: Observations, order: Int[np.ndarray, " obs"]) -> None:
    """Permute rows in place, column by column, to save memory."""
    jacobian = [rows.log_jacobian] if rows.log_jacobian.ndim else []
    subjects = [] if rows.subjects is None else [rows.subjects.numbers, rows.subjects.counts]
    indicators = [] if rows.missing is None else [*rows.missing.T]
    columns = *rows.real.T, *rows.codes.T, *indicators
    for column in (*columns, rows.labels, rows.weights, *subjects, *jacobian):
        column[:] = column[order]


# Rows that are one subject: copies of a row, and rows of one group.
#
# Equal rows are different people where their columns have few levels, and copies of one where they
# do not. The expected number of other people with the cells of a row x is estimated from each
# column j in turn, over all n rows, R of which differ:
#
# .. math:: \lambda(x) = \max_j n_j(x) \frac{p_j(x)}{1 - p_j(x)}, \qquad
#     p_j(x) = \max\Bigl(\frac{c_j(x)}{n}, \frac{t_j}{R}\Bigr),
#
# with :math:`n_j` rows that differ from x in column j alone, :math:`c_j` other rows that have its
# cell there, and :math:`t_j` the share of different rows whose cell there another has, or the share
# of the grid of a real column that its values take up, if that is larger. The step of a grid is the
# last decimal. A cell that no different row has may be that of copies alone: there c is 0. No
# column is taken to be independent of another: rows that agree in all columns but one show how
# often rows come so close. Of a single column t is the share of its grid; levels take up all of
# theirs. A column that is a function of another, and that one of it, counts once.
#
# The table is judged, and not each row: of hundreds of people some are equal, though each of them
# improbably. Over the rows with :math:`\lambda` up to a bound chance brings half their sum of
# :math:`\lambda` as equal pairs, which are copies where there are many more.
#
# See Good (1953), The population frequencies of species and the estimation of population
# parameters, Biometrika 40, for t.


BOUNDS: Final = (1e9, 0.05)
"""Bounds of the expected number of other people with the cells of a row. All rows are judged
together, and, if they are no copies, the rows with many cells, whose equality is less likely."""
MAX_DIGITS: Final = 1e15
"""Magnitude beyond which a double has no decimals, so that the step of a grid is unknown."""
STEPS: Final = 5
"""Grid cells on either side from which the expected number of rows at a cell is estimated."""
FINE: Final = 1e-3
"""Occupied share of a column's grid below which equal cells of different people are not chance."""
FACTOR, FAR_FACTOR = 1.5, 5.0
"""Ratios of observed to expected equal pairs that chance explains, for copies and for near copies.
Dependent columns raise the ratio: on 40 real tables of different people it was up to 1.4."""
LEVEL: Final = 0.005
"""Significance level at which equal pairs are more than chance."""
MAX_DISTINCT: Final = 10
"""Maximum number of repeated values of a single column, such as 0 and limits of detection, that
are no sign of copies."""
LEFT_OUT: Final = 3
"""Number of columns that are left out in turn in the search for near copies."""


def with_subjects(
    rows: Observations,
    groups: Shaped[np.ndarray, " obs"] | None = None,
    *,
    relative: bool = True,
) -> tuple[Observations, int]:
    """Rows with their subjects, and the number of rows that duplicate an earlier row.

    ``relative`` weights are those over the median weight of a labelled row, whose copies are added
    up: rows of weight 2 are as many rows of weight 1.

    >>> cells = np.array([[0.1234, 3.41], [0.5678, 3.38], [0.1234, 3.41]])
    >>> rows = Observations(cells, np.zeros((3, 0), int), np.zeros(3, int), np.full(3, 2.0))
    >>> of_subjects, repeated = with_subjects(rows)
    >>> of_subjects.weights, of_subjects.subject_counts, repeated
    (array([1., 1., 1.]), array([0.5, 1. , 0.5]), 1)
    """
    copies = copies_of(rows)
    rows = replace(rows, subjects=subjects_of(copies, groups))
    if relative:
        rows = replace(rows, weights=rows.weights / usual_weight(copies, rows))
    return rows, int((copies != np.arange(copies.size)).sum())


def usual_weight(copies: Int[np.ndarray, " obs"], rows: Observations) -> float:
    """Median weight of the distinct labelled rows, after adding up copies."""
    labelled = np.flatnonzero(rows.labels >= 0)
    _, group = np.unique(copies[labelled], return_inverse=True)
    weights = np.bincount(group, rows.weights[labelled])
    # One of the weights, so that whole ones stay whole where the usual row weighs one.
    return float(np.quantile(weights, 0.5, method="lower"))


def copies_of(rows: Observations) -> Int[np.ndarray, " obs"]:
    """Index of the first copy of each row, whatever the labels.

    It is the row's own where it has no copy, or is equal to others by chance.

    >>> cells = np.array([[0.1234, 3.4], [0.5678, 3.3], [0.1234, 3.4], [0.9876, 3.1]])
    >>> copies_of(Observations(cells, np.zeros((4, 0), int), np.array([0, 1, 1, -1]), np.ones(4)))
    array([0, 1, 0, 3])
    """
    cells = replace(rows, labels=np.zeros_like(rows.labels))
    numbers = np.arange(rows.n_obs)
    keys = sort_keys(cells)
    if len(keys) == 1:  # a table of empty columns
        return numbers
    order = sorted_by(keys)
    first = differ(keys, order)
    group = np.empty(rows.n_obs, dtype=np.intp)
    group[order] = np.cumsum(first) - 1
    several = np.bincount(group) > 1
    if not several.any():
        return numbers
    if several.size == 1:  # columns without a second value tell nobody apart
        return numbers
    copies = _Columns.of(rows).copies(FACTOR)[order[first]]
    leader = np.full(several.size, rows.n_obs)
    np.minimum.at(leader, group, numbers)
    return np.where(copies[group], leader[group], numbers)


def near_copies(rows: Observations) -> tuple[int, int]:
    """Number of rows that equal an earlier row but for one column, beyond chance; its position.

    Categorical columns come first. Rows of one subject are not counted. The column is the one
    without which most rows are copies.

    >>> cells = np.array([[0.1234, 3.4, 7.0], [0.5678, 3.3, 5.0], [0.1234, 3.4, 9.0]])
    >>> near_copies(Observations(cells, np.zeros((3, 0), int), np.zeros(3, int), np.ones(3)))
    (1, 2)
    """
    columns = _Columns.of(rows)
    if len(columns.columns) < 2:
        return 0, 0
    near = np.array(
        [
            (columns.differing_in(j) > 0).sum() if column.stands_for == 1 else 0
            for j, column in enumerate(columns.columns)
        ]
    )
    found = (0, 0)
    for j in np.argsort(near, kind="stable")[::-1][:LEFT_OUT]:
        if not near[j]:
            break
        rest = columns.without(int(j))
        copies = rest.copies(FAR_FACTOR)
        group = np.unique(rest.of_rows, return_inverse=True)[1]
        numbers = np.arange(rows.n_obs) if rows.subjects is None else rows.subjects.numbers
        subjects = np.unique(np.column_stack([group, numbers])[copies], axis=0)[:, 0]
        repeated = subjects.size - np.unique(subjects).size
        # A few repeated values of a single remaining column are no sign of copies.
        if (
            sum(other.stands_for for other in rest.columns) == 1
            and np.unique(subjects).size <= MAX_DISTINCT
        ):
            continue
        found = max(found, (repeated, columns.columns[j].position), key=lambda pair: pair[0])
    return found


def subjects_of(
    copies: Int[np.ndarray, " obs"], groups: Shaped[np.ndarray, " obs"] | None = None
) -> Subjects | None:
    """Subjects of rows: copies of a row (:func:`copies_of`), and rows of one group.

    None where every row is alone. A row without a group (None or NaN) is no part of any.

    >>> subjects_of(np.array([0, 1, 0, 3]), np.array(["a", "b", None, "b"])).numbers
    array([0, 1, 0, 1])
    """
    numbers = copies
    if groups is not None:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        rows = np.arange(copies.size)
        codes = copies.size + _group_codes(groups)
        pairs = np.tile(rows, 2), np.append(copies, codes)
        size = int(codes.max()) + 1
        links = coo_array((np.ones(pairs[0].size), pairs), shape=(size, size))
        numbers = connected_components(links, directed=False)[1][: copies.size]
    subjects = Subjects.of(numbers)
    return subjects if subjects.split.any() else None


def _group_codes(groups: Shaped[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
    """Code of each row's group; a row without a group gets a code of its own."""
    import pandas as pd

    codes = pd.factorize(np.asarray(groups, dtype=object))[0]
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    return np.asarray(codes)


@dataclass(frozen=True)
class _Column:
    """A column as a partition of the rows; several columns can make the same partition."""

    position: int
    code: Int[np.ndarray, " obs"]
    grid: float
    """Occupied share of the column's grid."""
    known: Bool[np.ndarray, " obs"]
    """Whether the cell is observed."""
    near: Float[np.ndarray, " obs"]
    """Expected number of other rows with the same cell, estimated from neighbouring cells."""
    stands_for: int = 1
    """Number of columns with the same partition of the rows."""


@dataclass(frozen=True)
class _Columns:
    """Columns with distinct partitions of the rows."""

    columns: tuple[_Column, ...]

    @classmethod
    def of(cls, rows: Observations) -> _Columns:
        """Columns with distinct partitions, categorical columns first.

        A column that is another one in other words tells nothing more.
        """
        by_codes: dict[bytes, _Column] = {}
        for position, column in enumerate([*rows.codes.T, *rows.real.T]):
            _, first, code = np.unique(column, return_index=True, return_inverse=True)
            code = np.argsort(np.argsort(first))[code]  # numbered as they come
            known = ~np.isnan(column) if column.dtype.kind == "f" else column >= 0
            grid, near = _on_grid(column)
            entry = _Column(position, code, grid, known, near)
            key = code.tobytes()
            if key in by_codes:
                same = by_codes[key]
                grid, known = min(entry.grid, same.grid), known | same.known
                stands_for = same.stands_for + 1
                entry = replace(same, grid=grid, known=known, stands_for=stands_for)
            by_codes[key] = entry
        return cls(tuple(by_codes.values()))

    def without(self, index: int) -> _Columns:
        """All columns except the one at an index."""
        return _Columns((*self.columns[:index], *self.columns[index + 1 :]))

    @cached_property
    def words(self) -> list[Colours]:
        """Random 64-bit number for each level of each column, by row."""
        draw = np.random.default_rng(0).integers
        codes = [column.code for column in self.columns]
        return [draw(2**63, size=code.max() + 1, dtype=np.uint64)[code] for code in codes]

    @cached_property
    def of_rows(self) -> Colours:
        """Hash of each row: the sum of its columns' random numbers."""
        return np.sum(self.words, axis=0, dtype=np.uint64)

    @cached_property
    def equal(self) -> Int[np.ndarray, " obs"]:
        """Number of rows with the same cells as each row."""
        return _occurrences(self.of_rows)

    def differing_in(self, index: int) -> Int[np.ndarray, " obs"]:
        """Number of rows that differ from each row in this column alone."""
        return _occurrences(self.of_rows - self.words[index]) - self.equal

    def copies(self, factor: float) -> Bool[np.ndarray, " obs"]:
        """Whether each row is a copy: equal to another, where equal pairs exceed chance."""
        from scipy.special import pdtrc  # a bad table is refused before it is imported

        expected = self._expected()
        fine = np.any([column.known & (column.grid < FINE) for column in self.columns], axis=0)
        rows = [*(expected <= bound for bound in BOUNDS), fine & (expected == 0)]
        for judged in rows:
            pairs, by_chance = (self.equal[judged] - 1).sum() / 2, expected[judged].sum() / 2
            if pairs and pdtrc(pairs - 1, factor * by_chance) < LEVEL:
                return judged & (self.equal > 1)
        return np.zeros(self.equal.size, bool)

    def _expected(self) -> Float[np.ndarray, " obs"]:
        """Expected number lambda of other people with the cells of each row."""
        n_rows = self.equal.size
        single = len(self.columns) == 1
        first = np.unique(self.of_rows, return_index=True)[1]
        expected = np.zeros(n_rows)
        for index, column in enumerate(self.columns):
            # A full grid is no evidence where there are other columns: ids as levels fill theirs.
            of_grid = column.grid if column.grid < 1 or single else 0.0
            repeats = max(float(np.mean(_occurrences(column.code[first]) > 1)), of_grid)
            having = _occurrences(column.code)
            # A cell that no different row has may belong to copies alone.
            frequency = np.where(having > self.equal, having - 1, 0) / n_rows
            alike = np.maximum.reduce(
                [frequency, column.near / n_rows, repeats / first.size + 0 * frequency]
            )
            # A level that every row has would have infinite odds.
            odds = alike / np.maximum(1 - alike, 1 / n_rows)
            np.maximum(expected, self.differing_in(index) * odds, out=expected)
        # A row without a cell equals others by lack of data.
        known = np.any([column.known for column in self.columns], axis=0)
        return np.where(known, expected, np.inf)


def _occurrences(values: Shaped[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
    """Number of occurrences of each value."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _on_grid(column: np.ndarray) -> tuple[float, Float[np.ndarray, " obs"]]:
    """Occupied share of a column's grid, and the expected number of rows at each cell.

    The step of the grid is the last decimal that a value has. Rows at a cell are expected to be as
    many as at each of the ``STEPS`` cells on either side. Levels take up all of theirs.
    """
    near = np.zeros(column.size)
    ordered = np.sort(column[~np.isnan(column)])
    values = np.unique(ordered)
    if column.dtype.kind != "f" or values.size < 2:
        return 1.0, near
    if np.abs(values).max() > MAX_DIGITS:  # its decimals are not known
        return 0.0, near
    for step in 10.0 ** np.arange(3, -12, -1):
        steps = values / step
        # Decimals such as 0.1 are no binary fractions, so steps are whole but for rounding.
        if np.abs(steps - np.round(steps)).max() <= 1e-6:
            ends = np.array([-STEPS - 0.5, -0.5, 0.5, STEPS + 0.5])[:, None] * step + column
            positions = np.searchsorted(ordered, ends)
            near = (positions[1] - positions[0] + positions[3] - positions[2]) / (2 * STEPS)
            share = float(values.size / ((values[-1] - values[0]) / step + 1))
            return share, np.where(np.isnan(column), 0.0, near)
    return 0.0, near

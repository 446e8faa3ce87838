"""Rows whatever their order: units, marginals, distinct rows, weights without a label."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.units import Units
from bayesrbf.table.order import canonical_sort, differ, sort_keys, sorted_by

_ROUNDING_OF_SPREAD = 8 * np.finfo(np.float64).eps
"""Largest spread, relative to the largest cell, that rounding alone can make."""
_LEAST_COLUMN_SCALE = 1e-154  # Smallest scale whose square, a variance, is still a normal number.


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
    pairs = [unit_of(column_moments(column, weights), place) for place, column in enumerate(real.T)]
    location, scale = np.array(pairs, dtype=np.float64).reshape(-1, 2).T.copy()
    return Standardisation(location, scale)


def check_spreads(
    real: Float[np.ndarray, "obs feature"],
    weights: Float[np.ndarray, " obs"],
    names: tuple[str, ...],
) -> None:
    """ValueError if a column's spread, which is not zero, has a square that is no normal number."""
    for name, column in zip(names, real.T, strict=True):
        scale = _scale_of(column_moments(column, weights))
        if not _LEAST_COLUMN_SCALE <= scale <= 1 / _LEAST_COLUMN_SCALE:
            beyond = "below 1e-154" if scale < _LEAST_COLUMN_SCALE else "beyond 1e154"
            raise ValueError(
                f"Real column {name!r} has a spread of {scale:.3g}, {beyond}: its square is no "
                "number; rescale it."
            )


@dataclass(frozen=True)
class ColumnMoments:
    """Weight, mean and spread of the observed cells of a column, and the largest of them."""

    mass: float
    mean: float
    spread: float
    largest: float

    def joined(self, other: ColumnMoments) -> ColumnMoments:
        """Moments of the cells of both (Chan, Golub and LeVeque, 1983)."""
        mass = self.mass + other.mass
        if not self.mass or not other.mass:
            return self if self.mass else other
        share, apart = other.mass / mass, other.mean - self.mean
        parts = (
            np.sqrt(1 - share) * self.spread,
            np.sqrt(share) * other.spread,
            np.sqrt(share * (1 - share)) * apart,
        )
        largest = max(self.largest, other.largest)
        return ColumnMoments(mass, self.mean + share * apart, float(math.hypot(*parts)), largest)


def column_moments(
    column: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> ColumnMoments:
    """Moments of one column, free of overflow, underflow and cancellation."""
    used = ~np.isnan(column) & (weights > 0)
    values, mass = column[used], weights[used]
    if not values.size:
        return ColumnMoments(0.0, 0.0, 0.0, 0.0)
    share = mass / mass.max()
    share /= share.sum()
    least, most = values.min(), values.max()
    largest = float(max(-least, most))
    # A power of two takes the largest cell into [0.5, 1) without rounding.
    exponent = math.frexp(largest)[1]
    unit = np.ldexp(values, -exponent)
    centre = np.ldexp(least, -exponent) / 2 + np.ldexp(most, -exponent) / 2
    mean = centre + share @ (unit - centre)
    spread = math.sqrt(share @ (unit - mean) ** 2)
    mean, spread = np.ldexp((mean, spread), exponent).tolist()
    return ColumnMoments(float(mass.sum()), mean, spread, largest)


def unit_of(moments: ColumnMoments, position: int) -> tuple[float, float]:
    """Location and scale of a column; ValueError, which names its position, if it is too wide."""
    scale = _scale_of(moments)
    if scale > 1 / _LEAST_COLUMN_SCALE:
        raise ValueError(
            f"Real column {position} has a spread of {scale:.3g}, beyond 1e154; rescale it."
        )
    return moments.mean, scale if scale >= _LEAST_COLUMN_SCALE else 1.0


def _scale_of(moments: ColumnMoments) -> float:
    """The spread; 1 for a column that is constant up to rounding."""
    return moments.spread if moments.spread > _ROUNDING_OF_SPREAD * moments.largest else 1.0


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
        counts = np.bincount(column[present], weights=weights[present], minlength=n) + 0.5
        frequencies.append(counts / counts.sum())
    return tuple(frequencies)


def distinct(observations: Observations) -> tuple[Observations, Int[np.ndarray, " obs"]]:
    """Distinct rows in a canonical order, and the place of each given row among them.

    The weights of copies are added up, and so are the units that they stand for. The result depends
    on the multiset of rows alone, and not on their order. -0.0 is 0.0, NaN is NaN.
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
    """An order of rows in which copies are neighbours, and which of them are first of their kind.

    Weights are the last key, so that copies are added up in an order of their own.
    """
    keys = sort_keys(used)
    order = sorted_by([*keys, used.weights])
    return order, differ(keys, order)


def _merged(
    used: Observations, order: Int[np.ndarray, " obs"], first: Bool[np.ndarray, " obs"]
) -> Observations:
    """A copy of sorted rows, the copies of a row merged into one."""
    totals, units = used.weights[order], used.units
    if not first.all():
        starts = np.flatnonzero(first)
        totals = np.add.reduceat(totals, starts)
        counts = np.add.reduceat(used.unit_counts[order], starts)
        numbers = order if units is None else units.numbers[order]
        units = Units(np.minimum.reduceat(numbers, starts), counts)
    elif units is not None:
        units = units.take(order)
    rows = replace(used.take(order[first]), weights=totals, units=units)
    for column in rows.real.T:
        column += 0.0
        column[np.isnan(column)] = np.nan
    return rows


def _reorder(rows: Observations, order: Int[np.ndarray, " obs"]) -> None:
    """Put rows, which nobody else holds, in another order: in place, column by column."""
    jacobian = [rows.log_jacobian] if rows.log_jacobian.ndim else []
    units = [] if rows.units is None else [rows.units.numbers, rows.units.counts]
    for column in (*rows.real.T, *rows.codes.T, rows.labels, rows.weights, *units, *jacobian):
        column[:] = column[order]

"""The canonical order: the same table whatever the order of rows, columns and classes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.base.rows import Observations, Order
from bayesrbf.table.order import (
    FIRST_KEYS,
    canonical_levels,
    canonical_order,
    differ,
    distinct,
    sorted_by,
)
from tests.table.test_rows import bits


@st.composite
def tables(draw: st.DrawFn) -> Observations:
    """Small tables of three classes with so few values that many are symmetric."""
    n, d, j = draw(st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 3)))

    def cells(values: list[Any], width: int) -> np.ndarray:
        chosen = draw(st.lists(st.sampled_from(values), min_size=n * width, max_size=n * width))
        return np.array(chosen).reshape(n, width)

    codes = cells([-1, 0, 1], j).astype(np.intp)
    for column in codes.T:  # every level has a cell, as where a table is read
        column[column >= 0] = np.unique(column[column >= 0], return_inverse=True)[1]
    return Observations(
        cells([0.0, 1.5, 4.0, np.nan], d).astype(np.float64),
        codes,
        cells([-1, 0, 1, 2], 1)[:, 0].astype(np.intp),
        cells([1.0, 2.0], 1)[:, 0].astype(np.float64),
    )


def canonical(rows: Observations) -> Observations:
    places = [np.append(np.argsort(order), -1) for order in canonical_levels(rows)]
    codes = [place[column] for place, column in zip(places, rows.codes.T, strict=True)]
    named = np.array(codes, dtype=np.intp).reshape(rows.codes.shape[::-1]).T
    once = distinct(replace(rows, codes=named))[0]
    return once.reordered(canonical_order(once, 3))


def shuffled(size: int, random: Any) -> np.ndarray:
    places = list(range(size))
    random.shuffle(places)
    return np.array(places, dtype=np.intp)


@given(tables(), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_table(rows: Observations, random: Any) -> None:
    sizes = rows.real.shape[1], rows.codes.shape[1], 3
    order = Order(*(shuffled(size, random) for size in sizes))
    other = rows.reordered(order).take(shuffled(rows.n_obs, random))
    for column in other.codes.T:
        size = int(column.max(initial=-1)) + 1
        column[:] = np.append(shuffled(size, random), -1)[column]
    assert bits(canonical(other)) == bits(canonical(rows))


@given(tables(), st.randoms(use_true_random=False))
def test_the_inverse_leads_back_and_orders_follow_each_other(
    rows: Observations, random: Any
) -> None:
    sizes = rows.real.shape[1], rows.codes.shape[1], 3
    one, two = (Order(*(shuffled(size, random) for size in sizes)) for _ in range(2))
    assert bits(rows.reordered(one).reordered(one.inverse)) == bits(rows)
    assert bits(rows.reordered(one.then(two))) == bits(rows.reordered(one).reordered(two))


def test_subjects_do_not_change_the_order() -> None:
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(30, 4))
    rows = Observations(cells, np.zeros((30, 0), int), rng.integers(0, 3, 30), np.ones(30))
    scaled = Observations(cells * [1, 1e3, 1e-9, 7] + 3, rows.codes, rows.labels, rows.weights)
    np.testing.assert_array_equal(canonical_order(rows).features, canonical_order(scaled).features)


def test_a_design_that_is_all_symmetry_is_put_in_order() -> None:
    rows = Observations(np.eye(6), np.zeros((6, 0), int), np.arange(6), np.ones(6))
    order = canonical_order(rows)
    np.testing.assert_array_equal(np.sort(rows.reordered(order).labels), np.arange(6))
    assert bits(canonical_six(rows)) == bits(canonical_six(rows.take(np.arange(6)[::-1])))


def canonical_six(rows: Observations) -> Observations:
    once = distinct(rows)[0]
    turned = once.reordered(canonical_order(once))
    return turned.take(np.argsort(turned.labels))


@given(seed=st.integers(0, 10**6), n_keys=st.integers(1, 40), n_values=st.integers(1, 4))
def test_rows_are_sorted_by_all_keys_however_few_tell_them_apart(
    seed: int, n_keys: int, n_values: int
) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, n_values, (n_keys, 30)).astype(float)
    cells[:FIRST_KEYS] *= rng.random() < 0.5  # the first keys may tell nothing apart
    cells[rng.random(cells.shape) < 0.1] = np.nan
    keys = [*cells[:-1], rng.integers(0, 3, 30)]
    order = sorted_by(keys)
    np.testing.assert_array_equal(order, np.lexsort(keys[::-1]))
    alike = [
        all(np.array_equal(key[a], key[b], equal_nan=True) for key in keys)
        for a, b in itertools.pairwise(order)
    ]
    np.testing.assert_array_equal(differ(keys, order)[1:], ~np.array(alike))

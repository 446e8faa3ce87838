"""Shapley values against their definition, and the axioms that no other rule fulfils together."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.answers import explain as shapley
from bayesrbf.answers.explain import Effort, Value, attribute


def random_game(n_obs: int, n_columns: int, n_labels: int = 2, seed: int = 0) -> Value:
    """A value of its own for every coalition of every row."""
    table = np.random.default_rng(seed).normal(size=(n_obs, 2**n_columns, n_labels))

    def value(rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        return table[rows, shown @ 2 ** np.arange(n_columns)]

    return value


def by_orders(value: Value, row: int, observed: np.ndarray) -> np.ndarray:
    """What every cell adds, averaged over all orders of the observed cells, one by one."""
    cells = np.flatnonzero(observed)
    orders = list(permutations(cells))
    added: dict[int, np.ndarray] = {cell: np.zeros(2) for cell in cells}
    for order in orders:
        shown = np.zeros((1, observed.size), dtype=bool)
        for cell in order:
            before = value(np.array([row]), shown.copy())[0]
            shown[0, cell] = True
            added[cell] += (value(np.array([row]), shown.copy())[0] - before) / len(orders)
    return np.array([added.get(cell, np.full(2, np.nan)) for cell in range(observed.size)])


@given(st.integers(0, 1000))
def test_they_equal_the_mean_over_all_orders(seed: int) -> None:
    rng = np.random.default_rng(seed)
    observed = rng.random((4, 5)) < 0.7
    value = random_game(4, 5, seed=seed)
    told = attribute(value, observed, 2, Effort())
    for row in range(4):
        expected = by_orders(value, row, observed[row])
        np.testing.assert_allclose(told.shapley[row], expected, atol=1e-12)
        for cell in np.flatnonzero(observed[row]):
            without = observed[[row]].copy()
            without[0, cell] = False
            lost = told.whole[row] - value(np.array([row]), without)[0]
            np.testing.assert_allclose(told.left_out[row, cell], lost, atol=1e-12)
    assert (told.evaluations == 2 ** observed.sum(axis=1)).all()
    np.testing.assert_array_equal(told.standard_error[observed], 0.0)
    for cells in (told.shapley, told.left_out, told.standard_error):
        np.testing.assert_array_equal(np.isnan(cells), np.repeat(~observed[..., None], 2, axis=2))


@pytest.mark.parametrize("exact", [12, 1])
def test_they_sum_to_the_whole(exact: int) -> None:
    observed = np.random.default_rng(1).random((6, 8)) < 0.8
    observed[0] = False
    effort = Effort(exact=exact, tolerance=1e-9, max_pairs=20)
    told = attribute(random_game(6, 8), observed, 2, effort)
    np.testing.assert_allclose(
        np.nansum(told.shapley, axis=1), told.whole - told.base, rtol=0, atol=1e-9
    )
    assert np.isfinite(told.whole).all()


def test_a_cell_that_adds_nothing_has_nothing_and_equal_cells_have_the_same() -> None:
    """Column 2 is a dummy; columns 0 and 1 count only together with each other."""

    def value(rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        both = shown[:, 0] & shown[:, 1]
        return np.column_stack([3.0 * both + 2.0 * shown[:, 3] * (1 + both), 1.0 * both])

    told = attribute(value, np.ones((1, 4), dtype=bool), 2, Effort())
    np.testing.assert_allclose(told.shapley[0, 2], 0, atol=1e-12)
    np.testing.assert_allclose(told.shapley[0, 0], told.shapley[0, 1], atol=1e-12)
    np.testing.assert_allclose(told.shapley[0, :, 1], [0.5, 0.5, 0, 0], atol=1e-12)


def test_orders_agree_with_all_coalitions_within_their_standard_error() -> None:
    n_obs, n_columns = 40, 6
    observed = np.ones((n_obs, n_columns), dtype=bool)
    value = random_game(n_obs, n_columns)
    exact = attribute(value, observed, 2, Effort())
    effort = Effort(exact=1, tolerance=1e-9, max_pairs=64)
    drawn = attribute(value, observed, 2, effort)
    z = (drawn.shapley - exact.shapley) / drawn.standard_error
    # Orders are the same for all rows, whose values are independent; z of one row sum to 0.
    assert np.sqrt((z**2).mean()) == pytest.approx(1.0, abs=0.2)
    np.testing.assert_allclose(drawn.left_out, exact.left_out, atol=1e-12)
    assert (drawn.evaluations == n_columns + 2 + 2 * 64 * (n_columns - 1)).all()


def test_pairs_leave_nothing_to_chance_where_cells_interact_in_pairs() -> None:
    """Of what two cells add together, an order gives all to the later one."""
    strength = np.random.default_rng(0).normal(size=(7, 7))

    def value(rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        return np.einsum("si,ij,sj->s", shown, strength, shown)[:, None]

    observed = np.ones((1, 7), dtype=bool)
    drawn = attribute(value, observed, 1, Effort(exact=1, max_pairs=2))
    np.testing.assert_allclose(
        drawn.shapley, attribute(value, observed, 1, Effort()).shapley, atol=1e-12
    )
    assert drawn.standard_error.max() < 1e-12


def test_drawing_stops_where_the_standard_error_is_small_enough() -> None:
    value, observed = random_game(3, 6), np.ones((3, 6), dtype=bool)
    errors = {}
    for tolerance in (1.0, 0.1):
        told = attribute(value, observed, 2, Effort(exact=1, tolerance=tolerance, max_pairs=5000))
        total = np.abs(told.whole - told.base)[:, None]
        errors[tolerance] = (told.standard_error / np.maximum(total, 1)).max()
        assert errors[tolerance] <= tolerance
        rounds = (told.evaluations - 8) / (2 * 5 * shapley.ROUND)
        np.testing.assert_array_equal(rounds, rounds.round())
    assert errors[0.1] < errors[1.0]
    short = attribute(value, observed, 2, Effort(exact=1, tolerance=1e-6, max_pairs=18))
    assert (short.evaluations == 8 + 2 * 18 * 5).all()


@pytest.mark.parametrize("exact", [12, 1])
def test_a_row_does_not_depend_on_those_beside_it_nor_on_blocks(
    exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = np.random.default_rng(2).random((7, 6)) < 0.8
    value, effort = random_game(7, 6), Effort(exact=exact, max_pairs=20, seed=3)
    together = attribute(value, observed, 2, effort)
    largest = 0

    def counted(rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        nonlocal largest
        largest = max(largest, len(rows))
        return value(rows, shown)

    monkeypatch.setattr("bayesrbf.base.rows.AT_ONCE", 16 * shapley.NUMBERS)
    in_blocks = attribute(counted, observed, 2, effort)
    assert largest == 16
    np.testing.assert_allclose(in_blocks.shapley, together.shapley, atol=1e-12)

    def of_last(rows: np.ndarray, shown: np.ndarray) -> np.ndarray:
        return value(rows + 6, shown)

    alone = attribute(of_last, observed[6:], 2, effort)
    np.testing.assert_allclose(alone.shapley[0], together.shapley[6], atol=1e-12)

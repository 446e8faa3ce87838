"""Units, marginals and distinct rows: laws that hold whatever the order and the scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.base.rows import Observations
from bayesrbf.table.order import distinct, marginals, standardisation
from tests.strategies import observations


def bits(rows: Observations) -> list[bytes]:
    """Everything of some rows, bit by bit."""
    return [
        rows.real.tobytes(),
        rows.codes.tobytes(),
        rows.labels.tobytes(),
        rows.weights.tobytes(),
    ]


@given(observations(), st.randoms())
def test_distinct_rows_do_not_depend_on_the_order(rows: Observations, random: Any) -> None:
    order = list(range(rows.n_obs))
    random.shuffle(order)
    once, inverse = distinct(rows)
    again, permuted = distinct(rows.take(np.array(order)))
    assert bits(once) == bits(again)
    np.testing.assert_array_equal(permuted, inverse[order])


@given(observations())
def test_distinct_rows_are_distinct_and_stand_for_all(rows: Observations) -> None:
    once, inverse = distinct(rows)
    keys = {
        (label, codes.tobytes(), real.tobytes())
        for label, codes, real in zip(once.labels, once.codes, once.real, strict=True)
    }
    assert len(keys) == once.n_obs
    assert not np.signbit(once.real[once.real == 0]).any()
    used = rows.weights > 0
    np.testing.assert_array_equal(inverse >= 0, used)
    np.testing.assert_array_equal(once.real[inverse[used]], rows.real[used])
    np.testing.assert_array_equal(once.codes[inverse[used]], rows.codes[used])
    np.testing.assert_array_equal(once.labels[inverse[used]], rows.labels[used])
    sums = np.bincount(inverse[used], weights=rows.weights[used], minlength=once.n_obs)
    np.testing.assert_allclose(once.weights, sums, rtol=1e-14)


@given(observations())
def test_weight_two_is_the_row_twice(rows: Observations) -> None:
    twice = Observations(rows.real, rows.codes, rows.labels, 2 * rows.weights)
    repeated = rows.take(np.repeat(np.arange(rows.n_obs), 2))
    once, again = distinct(twice)[0], distinct(repeated)[0]
    assert bits(once)[:3] == bits(again)[:3]
    np.testing.assert_allclose(once.weights, again.weights, rtol=1e-14)


@given(observations())
def test_distinct_rows_are_their_own_distinct_rows(rows: Observations) -> None:
    once, _ = distinct(rows)
    again, inverse = distinct(once)
    assert bits(once) == bits(again)
    np.testing.assert_array_equal(inverse, np.arange(once.n_obs))


@pytest.mark.parametrize("unit", [1.0, 1e8, 1e-8, 1e150, 1e-150, 2.0**-500])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_subjects_are_the_moments_at_every_scale(unit: float, offset: float) -> None:
    rng = np.random.default_rng(0)
    plain = np.round(rng.normal(size=(50, 2)), 3) + offset
    plain[rng.random(plain.shape) < 0.3] = np.nan
    weights = rng.integers(0, 3, 50).astype(float)
    found = standardisation(plain * unit, weights * 1e-12)
    centred = plain - offset
    total = np.where(np.isnan(plain), 0, weights[:, None]).sum(0)
    mean = np.nansum(weights[:, None] * centred, 0) / total
    deviation = np.sqrt(np.nansum(weights[:, None] * (centred - mean) ** 2, 0) / total)
    tolerance = 1e-12 if offset == 0 else 1e-7
    np.testing.assert_allclose(found.location / unit, mean + offset, rtol=1e-12)
    np.testing.assert_allclose(found.scale / unit, deviation, rtol=tolerance)


@pytest.mark.parametrize("value", [0.0, 0.1, -3e8, 1e300, 5e-324, 1e-160])
def test_a_constant_column_has_scale_one(value: float) -> None:
    rows = np.full((7, 1), value)
    rows[3] = np.nan
    found = standardisation(rows, np.linspace(0, 3, 7))
    assert found.location == pytest.approx(value, rel=1e-15)
    assert found.scale == 1


def test_rounding_is_no_spread() -> None:
    thirds = np.array([[0.1 + 0.2], [0.3]]) * 1e8
    assert thirds[0] != thirds[1]
    assert standardisation(thirds, np.ones(2)).scale == 1
    assert standardisation(np.array([[1e8], [1e8 + 1]]), np.ones(2)).scale == 0.5


def test_spreads_whose_square_vanishes_are_none() -> None:
    assert standardisation(np.array([[0.0], [1e-160]]), np.ones(2)).scale == 1
    assert standardisation(np.array([[0.0], [1e-320]]), np.ones(2)).scale == 1


def test_spreads_whose_square_overflows_are_refused() -> None:
    with pytest.raises(ValueError, match="Real column 1 has a spread of"):
        standardisation(np.array([[0.0, -1e308], [1.0, 1e308]]), np.ones(2))


def test_columns_without_a_cell_have_the_unit_scale() -> None:
    found = standardisation(np.array([[np.nan, 1.0], [np.nan, 3.0]]), np.array([1.0, 0.0]))
    assert found.location.tolist() == [0.0, 1.0]
    assert found.scale.tolist() == [1.0, 1.0]
    nothing = standardisation(np.empty((2, 0)), np.ones(2))
    assert nothing.location.shape == nothing.scale.shape == (0,)


@given(observations(), st.randoms())
def test_weights_count_as_copies_in_every_statistic(rows: Observations, random: Any) -> None:
    copies = np.array([random.randrange(3) for _ in range(rows.n_obs)])
    repeated = rows.take(np.repeat(np.arange(rows.n_obs), copies))
    ones = np.ones(repeated.n_obs)
    weighted = standardisation(rows.real, copies.astype(float))
    plain = standardisation(repeated.real, ones)
    np.testing.assert_allclose(weighted.location, plain.location, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(weighted.scale, plain.scale, rtol=1e-12)
    n_levels = (2,) * rows.codes.shape[1]
    pairs = zip(
        marginals(rows.codes, n_levels, copies.astype(float)),
        marginals(repeated.codes, n_levels, ones),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-14)
        assert a.sum() == pytest.approx(1)
        assert (a > 0).all()


def test_marginals_keep_levels_that_no_row_has() -> None:
    assert marginals(np.array([[-1]]), (3,), np.ones(1))[0].tolist() == [1 / 3] * 3

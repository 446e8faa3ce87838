"""How much further draws spread at rows unlike those held out: ranks counted, holes, copies."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.families.stack.intervals import (
    UNUSUAL,
    UsualRows,
    root_share,
    typicality,
    usual_rows,
)
from bayesrbf.mixture.cells import CellLaw

D = 4
LAW = CellLaw(
    MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, D)), np.eye(D)[None], ()),
    MixtureSpecification(D, (), (0,)),
    lambda reals: reals,
)


def rows(n: int, seed: int, scale: float = 1.0, missing: float = 0.0) -> Observations:
    rng = np.random.default_rng(seed)
    real = scale * rng.normal(size=(n, D))
    real[rng.random(real.shape) < missing] = np.nan
    return Observations(real, np.zeros((n, 0), int), np.full(n, -1), np.ones(n))


def learned(some: Observations) -> UsualRows:
    return usual_rows(typicality(some, LAW), root_share(some), some.weights)


def test_spread_is_what_counting_gives() -> None:
    held, new = rows(40, 0, missing=0.3), rows(60, 1, scale=2.0, missing=0.3)
    usual = learned(held)
    found = usual.spread(new, LAW)
    share = [np.sqrt((~np.isnan(some.real)).mean(axis=1)) for some in (held, new)]
    u, v = (
        typicality(some, LAW) - usual.slope * a for some, a in zip((held, new), share, strict=True)
    )
    for own, spread in zip(v, found, strict=True):
        p = (1 + sum(other <= own for other in u)) / 41
        assert spread == pytest.approx(max(1, UNUSUAL / p))
    assert found.max() == pytest.approx(UNUSUAL * 41)
    assert (found == 1).any()


def test_a_row_held_twice_is_a_row_of_weight_two() -> None:
    held, new = rows(30, 0), rows(20, 1, scale=2.0)
    twice = held.take(np.repeat(np.arange(30), 2))
    heavy = usual_rows(typicality(held, LAW), root_share(held), np.full(30, 2.0))
    np.testing.assert_allclose(heavy.spread(new, LAW), learned(twice).spread(new, LAW))


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5])
def test_rows_like_those_held_out_keep_their_spread_whatever_is_missing(scale: float) -> None:
    """Also where the density is too wide or too narrow, and where nothing is observed."""
    usual = learned(rows(400, 0, scale))
    for missing in (0.0, 0.5, 0.8):
        wide = usual.spread(rows(400, 1, scale, missing), LAW) > 1
        assert wide.mean() < UNUSUAL + 0.1
    empty = Observations(np.full((1, D), np.nan), np.zeros((1, 0), int), np.array([-1]), np.ones(1))
    np.testing.assert_array_equal(usual.spread(empty, LAW), 1)


def test_rows_off_the_data_spread_furthest() -> None:
    found = learned(rows(100, 0)).spread(rows(50, 1, scale=10.0), LAW)
    assert np.median(found) == pytest.approx(UNUSUAL * 101)


def test_without_a_row_held_out_nothing_spreads() -> None:
    none = usual_rows(np.zeros(0), np.zeros(0), np.zeros(0))
    np.testing.assert_array_equal(none.spread(rows(5, 0), LAW), 1)

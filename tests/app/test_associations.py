"""Associations of columns: known measures, chance, and what no unit changes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from bayesrbf.app.look import associations


def _only(*columns: np.ndarray):
    """The association of two columns, whatever chance says."""
    [found] = associations(columns, [(0, 1)], level=np.inf)
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_two_real_columns_have_spearmans_correlation(rng):
    a = rng.normal(size=80)
    b = -a + rng.normal(size=80)
    a[:7] = np.nan
    found, expected = _only(a, b), stats.spearmanr(a[7:], b[7:])
    assert found.sign * found.strength == pytest.approx(expected.statistic)
    assert found.chance == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.rows == 73


def test_levels_and_numbers_have_kruskals_test(rng):
    codes = np.repeat([0, 1, 2], 20)
    values = codes + rng.normal(size=60)
    groups = [values[codes == level] for level in range(3)]
    assert _only(codes, values).chance == pytest.approx(stats.kruskal(*groups).pvalue)
    assert _only(values, codes).strength == _only(codes, values).strength


def test_levels_and_levels_have_chi_squared(rng):
    a = rng.integers(0, 3, 200)
    b = (a + (rng.random(200) < 0.5)) % 3
    counts = np.array([[np.sum((a == i) & (b == j)) for j in range(3)] for i in range(3)])
    assert _only(a, b).chance == pytest.approx(stats.chi2_contingency(counts).pvalue)


def test_equal_columns_are_associated_fully():
    a = np.tile([0, 1, 2], 30)
    assert _only(a, a).strength == pytest.approx(1.0)
    x = np.arange(30.0)
    assert _only(x, -x).strength == pytest.approx(1.0)
    assert _only(x, -x).sign == -1


def test_a_monotone_change_of_a_real_column_changes_nothing(rng):
    a, codes = rng.normal(size=50), rng.integers(0, 3, 50)
    b = a + rng.normal(size=50)
    assert _only(np.exp(3 * a), b) == _only(a, b)
    assert _only(np.exp(3 * a), codes) == _only(a, codes)


def test_chance_alone_tells_of_an_association_in_one_table_of_ten(rng):
    """Three hundred tables with rare levels, ties and holes: more than 45 in 300 is no chance."""
    told = 0
    for _ in range(300):
        n = int(rng.integers(20, 200))
        real = rng.normal(size=(2, n)).round(1)
        real[rng.random((2, n)) < 0.2] = np.nan
        rare = rng.choice(6, (2, n), p=[0.6, 0.3, 0.04, 0.03, 0.02, 0.01])
        told += bool(associations([*real, *rare], combinations(range(4), 2), level=0.1))
    assert told <= 45


def test_two_rare_levels_are_counted_exactly():
    """Two rare levels that meet are tested exactly: chi-squared would give a tail of 1e-35."""
    a, b = np.zeros((2, 1000), dtype=int)
    a[:5], b[3:8] = 1, 1
    assert _only(a, b).chance == pytest.approx(stats.hypergeom.sf(1, 1000, 5, 5))


def test_constant_and_nearly_empty_columns_are_left_out():
    x = np.arange(30.0)
    empty = np.where(x < 9, x, np.nan)
    assert not associations([x, np.ones(30), empty], combinations(range(3), 2), level=np.inf)

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from bayesrbf.inference.draws import pareto_smooth, systematic_resample


def test_weights_are_normalised_and_ordered_like_the_ratios():
    ratios = np.random.default_rng(0).normal(size=1000)
    weights, _ = pareto_smooth(ratios)
    assert weights.sum() == pytest.approx(1)
    assert np.all(np.diff(weights[np.argsort(ratios)]) >= 0)


def test_tail_shape_grows_with_the_tail():
    x = np.random.default_rng(1).normal(size=4000)
    shapes = [pareto_smooth(t(df).logpdf(x * 1.0) - norm.logpdf(x))[1] for df in (50, 5, 1)]
    assert shapes[0] < shapes[1] < shapes[2]


def test_a_draw_of_no_density_has_no_weight():
    ratios = np.random.default_rng(2).normal(size=500)
    ratios[[3, 4]] = -np.inf, np.nan
    weights, pareto_k = pareto_smooth(ratios)
    assert weights[3] == weights[4] == 0
    assert np.isfinite(pareto_k)


def test_equal_ratios_have_no_tail():
    weights, pareto_k = pareto_smooth(np.full(100, -3.0))
    np.testing.assert_allclose(weights, 0.01)
    assert pareto_k == -np.inf


def test_few_draws_have_an_unknown_tail():
    assert np.isnan(pareto_smooth(np.arange(10.0))[1])


def test_no_finite_ratio_is_an_error():
    with pytest.raises(ValueError, match="misses the posterior"):
        pareto_smooth(np.full(100, np.nan))


def test_resample_keeps_each_draw_in_proportion():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(200))
    counts = np.bincount(systematic_resample(weights, rng), minlength=200)
    assert counts.sum() == 200
    assert np.all(np.abs(counts - 200 * weights) < 1)

"""The compiled correction of missing cells, beside SciPy's functions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erfcx, log_ndtr

from bayesrbf.families.kernel_network.compiled import add_laplace_holes


def log_h(d: np.ndarray, variance: np.ndarray, rate: float) -> np.ndarray:
    """Log h, its first term as a probability of the normal distribution."""
    s = np.sqrt(variance)
    z, other = rate * s - d / s, rate * s + d / s
    first = log_ndtr(-z)
    second = np.log(0.5 * erfcx(other / np.sqrt(2))) - 0.5 * z**2
    return np.logaddexp(first, second)


@pytest.mark.parametrize("rate", [1e-9, 0.01, 1.0, 30.0, 1e4])
def test_every_pair_with_a_missing_cell_has_its_factor_and_no_other(rate: float) -> None:
    rng = np.random.default_rng(1)
    means = rng.normal(size=(2, 40)), rng.normal(size=(2, 30))
    variances = [np.where(rng.random(m.shape) < 0.4, rng.chisquare(1, m.shape), 0) for m in means]
    start = rng.normal(size=(40, 30))
    values = start.copy()
    rates = np.array([rate, 0.5])
    add_laplace_holes(values, means[0], variances[0], means[1], variances[1], rates)
    expected = start.copy()
    for j in range(2):
        d = np.abs(means[0][j][:, None] - means[1][j])
        variance = variances[0][j][:, None] + variances[1][j]
        hole = variance > 0
        expected[hole] += log_h(d[hole], variance[hole], rates[j])
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)

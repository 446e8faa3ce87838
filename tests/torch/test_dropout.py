"""The divergence against its integral, and what it says of the extremes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from bayesrbf.torch.sdgm_head import LOG_ALPHA_LIMIT, PRUNING_THRESHOLD, divergence, log_alpha


def integrated(alpha: float) -> float:
    """KL(N(1, alpha) || log-uniform) up to its constant, which E log|w| fixes by quadrature.

    It is -H(q) + E log|w| + const, of limit 0 for large alpha, where w is noise alone and
    E log|z| = -(gamma + log 2) / 2.
    """
    deviation = np.sqrt(alpha)
    origin = -1 / deviation  # where w = 0, a singularity that can be integrated

    def term(z: float) -> float:
        return norm.pdf(z) * np.log(abs(1 + deviation * z))

    edges = sorted({-12.0, float(np.clip(origin, -12, 12)), 12.0})
    mean_log = sum(quad(term, low, high, limit=200)[0] for low, high in itertools.pairwise(edges))
    return mean_log - np.log(deviation) + (np.euler_gamma + np.log(2)) / 2


@pytest.mark.parametrize("value", [-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 3.0, 6.0])
def test_divergence_is_the_integral(value: float) -> None:
    """The published fit of the integral is good to a few thousandths of a nat."""
    found = divergence(torch.tensor(value, dtype=torch.float64)).item()
    assert found == pytest.approx(integrated(float(np.exp(value))), abs=0.01)


def test_divergence_falls_to_zero() -> None:
    grid = torch.linspace(-LOG_ALPHA_LIMIT, LOG_ALPHA_LIMIT, 401, dtype=torch.float64)
    values = divergence(grid)
    assert (values.diff() < 0).all()
    assert 0 < values[-1] < 1e-4


def test_divergence_knows_no_scale() -> None:
    mean, log_variance = torch.randn(2, 50, dtype=torch.float64, generator=torch.manual_seed(0))
    scaled = log_alpha(-3 * mean, log_variance + 2 * np.log(3))
    torch.testing.assert_close(scaled, log_alpha(mean, log_variance))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_weights_have_finite_gradients(dtype: torch.dtype) -> None:
    mean = torch.tensor([0.0, 1e-30, 1e-8, 1.0, 1e15], dtype=dtype, requires_grad=True)
    log_variance = torch.full((5,), -4.0, dtype=dtype, requires_grad=True)
    ratios = log_alpha(mean, log_variance)
    divergence(ratios).sum().backward()
    assert ratios.tolist() == pytest.approx([10.0, 10.0, 10.0, -4.0, -10.0])
    for leaf in (mean, log_variance):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()


def test_threshold_is_a_dropout_rate_of_nineteen_in_twenty() -> None:
    alpha = np.exp(PRUNING_THRESHOLD)  # of Bernoulli dropout with rate p: p / (1 - p)
    assert alpha / (1 + alpha) == pytest.approx(0.95, abs=0.005)

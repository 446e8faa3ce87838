"""The posterior bootstrap: weights, modes, spread and coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit

from bayesrbf.base.rows import Subjects
from bayesrbf.families.kernel_network.posterior import KernelNetworkLogPosterior
from bayesrbf.inference.laplace import bootstrap, bootstrap_weights, mode_of


def test_weights_are_shares_of_the_whole_and_rows_of_a_unit_share_theirs() -> None:
    """Two equal people, one row, a row of weight six, and two rows of one unit."""
    rng = np.random.default_rng(0)
    given = np.array([2.0, 1.0, 6.0, 1.0, 2.0])
    subjects = Subjects(np.array([0, 1, 2, 3, 3]), np.array([2.0, 1.0, 1.0, 0.5, 0.5]))
    drawn = np.array([bootstrap_weights(given, rng, subjects) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.sum(axis=1), 12.0)
    assert (drawn > 0).all()
    np.testing.assert_allclose(drawn[:, 4], 2 * drawn[:, 3])
    gamma = np.column_stack([rng.gamma(2.0, size=20_000), rng.exponential(size=(20_000, 3))])
    raw = gamma[:, [0, 1, 2, 3, 3]] * [1.0, 1.0, 6.0, 1.0, 2.0]
    expected = 12 * raw / raw.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(drawn.mean(axis=0), expected.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(drawn.var(axis=0), expected.var(axis=0), rtol=0.06)


def test_no_rows_have_no_weights() -> None:
    """Where every class is one row, no fold of a stack holds one out."""
    assert bootstrap_weights(np.zeros(0), np.random.default_rng(0)).shape == (0,)


def logistic(
    n: int, seed: int, curved: float = 0.0
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], KernelNetworkLogPosterior]]:
    """Rows of a logistic model with slope 1 and intercept 0; curved: one that is not logistic."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    labels = (rng.random(n) < expit(x[:, 0] + curved * (x[:, 0] ** 2 - 1))).astype(np.intp)
    return (
        x,
        labels,
        lambda weights: KernelNetworkLogPosterior(x, labels, weights, 2, 1e-2),
    )


def test_the_weights_of_the_fit_give_the_fit() -> None:
    _, _, reweighted = logistic(80, 0)
    fit = mode_of(reweighted(np.ones(80)), np.zeros(2))
    np.testing.assert_allclose(mode_of(reweighted(np.ones(80)), fit), fit, atol=1e-4)
    many = Subjects(np.arange(80), np.full(80, 1e8))
    sure = bootstrap(
        lambda w: reweighted(w / 1e8), np.full(80, 1e8), fit, subjects=many, draws=5, random_state=0
    )
    np.testing.assert_allclose(sure.theta[0], np.tile(fit, (5, 1)), atol=2e-3)


@pytest.mark.slow
def test_draws_spread_as_the_sandwich_says_where_the_model_is_wrong() -> None:
    x, labels, reweighted = logistic(400, 1, curved=1.5)
    fit = mode_of(reweighted(np.ones(400)), np.zeros(2))
    draws = bootstrap(reweighted, np.ones(400), fit, draws=600, random_state=0).theta[0]
    design = np.column_stack([x, np.ones(400)])
    p = expit(design @ fit)
    bread = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))
    scores = design * (labels - p)[:, None]
    sandwich = bread @ scores.T @ scores @ bread
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(np.diag(sandwich)), rtol=0.12)


@pytest.mark.slow
def test_intervals_hold_the_slope_and_half_as_wide_ones_do_not() -> None:
    ends = []
    for seed in range(100):
        _, _, reweighted = logistic(150, seed)
        fit = mode_of(reweighted(np.ones(150)), np.zeros(2))
        draws = bootstrap(reweighted, np.ones(150), fit, draws=60, random_state=seed)
        low, high = np.quantile(draws.theta[0, :, 0] - fit[0], (0.05, 0.95))
        ends.append((fit[0], low, high))
    centre, low, high = np.array(ends).T

    def held(width: float) -> float:
        return float(np.mean((centre + width * low <= 1.0) & (centre + width * high >= 1.0)))

    assert held(1.0) == pytest.approx(0.88, abs=0.09)  # of 60 draws, quantiles lie a little inside
    assert held(0.5) < 0.75


def test_no_draw_is_refused() -> None:
    _, _, reweighted = logistic(20, 0)
    with pytest.raises(ValueError, match=r"bootstrap\(draws=...\) must be at least 1"):
        bootstrap(reweighted, np.ones(20), np.zeros(2), draws=0)


def test_an_interrupt_keeps_what_was_drawn() -> None:
    _, _, reweighted = logistic(20, 0)
    asked = 0

    def interrupted(weights: np.ndarray) -> KernelNetworkLogPosterior:
        nonlocal asked
        asked += 1
        if asked > 4:  # the first is that of the fit
            raise KeyboardInterrupt
        return reweighted(weights)

    draws = bootstrap(interrupted, np.ones(20), np.zeros(2), draws=10, random_state=0)
    assert draws.n_draws == 3
    assert not draws.complete

"""The temperature against brute force and the laws of a rescaling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from bayesrbf.fit.calibration import fit_powers, fit_temperature, tempered
from tests.cases import some_quick


def out_of_fold(n: int = 400, seed: int = 0, sharpness: float = 1.0) -> tuple[np.ndarray, ...]:
    """Log probabilities that are right at temperature 1 / sharpness, and labels from them."""
    rng = np.random.default_rng(seed)
    truth = log_softmax(rng.normal(scale=2, size=(n, 3)), axis=1)
    labels = np.array([rng.choice(3, p=np.exp(row)) for row in truth])
    return sharpness * truth, labels, np.ones(n)


def objective(log_p: np.ndarray, labels: np.ndarray, weights: np.ndarray, t: float) -> float:
    held_out = log_softmax(t * log_p, axis=1)[np.arange(labels.size), labels]
    return float(2 * np.log(t) ** 2 - weights @ held_out)


@pytest.mark.parametrize("sharpness", some_quick([0.05, 0.5, 1.0, 3.0, 40.0], 0.05, 3.0))
def test_no_temperature_of_a_fine_grid_is_better(sharpness: float) -> None:
    rows = out_of_fold(sharpness=sharpness)
    best = objective(*rows, fit_temperature(*rows))
    grid = np.exp(np.linspace(-6, 6, 4001))
    assert best <= min(objective(*rows, t) for t in grid) + 1e-6


def test_the_deeper_of_two_valleys_is_found() -> None:
    log_p = np.log(np.tile([0.501, 0.499], (300, 1)))
    labels = np.zeros(300, dtype=int)
    t = fit_temperature(log_p, labels, np.ones(300))
    values = [objective(log_p, labels, np.ones(300), u) for u in (1.0, t)]
    assert values[1] < values[0] - 50


def test_many_rows_recover_the_temperature() -> None:
    log_p, labels, weights = out_of_fold(20_000, sharpness=2.5)
    assert fit_temperature(log_p, labels, weights) == pytest.approx(0.4, rel=0.05)


def test_one_absurd_row_of_a_hundred_moves_little() -> None:
    """A slip of a decimal point in a cell of a row makes a density sure of the wrong class."""
    log_p, labels, weights = out_of_fold(120)
    t = fit_temperature(log_p, labels, weights)
    log_p[0] = np.where(np.arange(3) == labels[0], -5000.0, 0.0)
    assert fit_temperature(log_p, labels, weights) == pytest.approx(t, rel=0.05)
    shares = np.log(np.full(3, 1 / 3))
    assert fit_powers(log_p, labels, weights, shares)[0] == pytest.approx(t, rel=0.1)


def test_few_rows_stay_near_one() -> None:
    log_p, labels, weights = out_of_fold(3, sharpness=5.0)
    assert abs(np.log(fit_temperature(log_p, labels, 0.01 * weights))) < 0.1


def test_weight_two_is_the_row_twice_and_zero_is_none() -> None:
    log_p, labels, _ = out_of_fold(60)
    weights = np.random.default_rng(1).integers(0, 3, 60)
    repeated = np.repeat(np.arange(60), weights)
    once = fit_temperature(log_p, labels, weights.astype(float))
    twice = fit_temperature(log_p[repeated], labels[repeated], np.ones(repeated.size))
    assert once == pytest.approx(twice, rel=1e-6)


def test_unnormalised_rows_and_renamed_classes_change_nothing() -> None:
    log_p, labels, weights = out_of_fold(80)
    t = fit_temperature(log_p, labels, weights)
    shifted = log_p + np.random.default_rng(0).normal(size=(80, 1)) * 1e3
    assert fit_temperature(shifted, labels, weights) == pytest.approx(t, rel=1e-6)
    turned = fit_temperature(log_p[:, [2, 0, 1]], np.array([1, 2, 0])[labels], weights)
    assert turned == pytest.approx(t, rel=1e-6)


def test_tempered_rows_sum_to_one_and_keep_their_order() -> None:
    log_joint = np.random.default_rng(0).normal(scale=500, size=(50, 4))
    log_p = tempered(log_joint, 0.3)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(log_p.argsort(axis=1), log_joint.argsort(axis=1))


def test_equal_draws_are_one_and_different_ones_are_tempered_each() -> None:
    log_p, labels, weights = out_of_fold(150, sharpness=3.0)
    t = fit_temperature(log_p, labels, weights)
    equal = np.repeat(log_p[:, None], 5, axis=1)
    assert fit_temperature(equal, labels, weights) == pytest.approx(t, rel=1e-6)
    draws = equal + np.random.default_rng(0).normal(scale=2, size=equal.shape)

    def value(t: float) -> float:
        p = np.exp(log_softmax(t * draws, axis=2)).mean(axis=1)
        return float(2 * np.log(t) ** 2 - np.log(p[np.arange(150), labels]).sum())

    best = value(fit_temperature(draws, labels, weights))
    assert best <= min(value(t) for t in np.exp(np.linspace(-5, 1, 2001))) + 1e-6
    mean = np.log(np.exp(log_softmax(draws, axis=2)).mean(axis=1))
    assert value(fit_temperature(mean, labels, weights)) > best

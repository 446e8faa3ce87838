"""Calibrated probabilities pass, wrong ones are caught, and the order of rows has no effect."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.answers.scores import calibration
from bayesrbf.base.arrays import brier, correct, log_loss, mean_over_folds
from bayesrbf.fit.calibration import calibration_slope
from tests.cases import some_quick


def simulated(
    seed: int, n: int = 1500, n_classes: int = 3, power: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from probabilities, and the probabilities raised to a power."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    labels = (p.cumsum(1)[:, :-1] < rng.random((n, 1))).sum(1)
    said = p**power
    return said / said.sum(1, keepdims=True), labels


def classwise_error(
    said: np.ndarray, labels: np.ndarray, *weights: np.ndarray, bins: int = 10
) -> float:
    """The error alone."""
    return calibration(said, labels, *weights, n_bins=bins, n_resamples=1).error


def test_log_loss_and_brier_are_proper() -> None:
    """The true probabilities score best in expectation."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        true, said = rng.dirichlet(np.ones(4), size=2)
        classes = np.arange(4)
        for score in (log_loss, brier):
            honest = true @ score(np.tile(true, (4, 1)), classes)
            other = true @ score(np.tile(said, (4, 1)), classes)
            assert honest < other


def test_scores_of_known_cases() -> None:
    certain = np.eye(3)
    assert log_loss(certain, np.arange(3)).tolist() == [0, 0, 0]
    assert brier(certain, np.array([1, 2, 0])).tolist() == [2, 2, 2]
    assert brier(np.eye(2), np.array([1, 0])).tolist() == [1, 1]
    assert np.isfinite(log_loss(certain, np.array([1, 2, 0]))).all()
    assert correct(np.full((1, 4), 0.25), np.array([2])).tolist() == [0.25]


def test_mean_over_folds_of_equal_folds_is_the_textbook_error() -> None:
    rng = np.random.default_rng(1)
    losses, folds = rng.random(50), np.repeat(np.arange(5), 10)
    mean, error = mean_over_folds(losses, folds)
    fold_means = losses.reshape(5, 10).mean(1)
    assert mean == pytest.approx(fold_means.mean())
    assert error == pytest.approx(fold_means.std(ddof=1) / np.sqrt(5))


def test_mean_over_folds_weights_are_repetitions() -> None:
    rng = np.random.default_rng(2)
    losses, folds = rng.random(40), rng.integers(0, 4, 40)
    weights = rng.integers(0, 4, 40)
    repeated = mean_over_folds(np.repeat(losses, weights), np.repeat(folds, weights))
    assert mean_over_folds(losses, folds, weights + 0.0) == pytest.approx(repeated)


def test_one_fold_has_no_error() -> None:
    assert np.isnan(mean_over_folds(np.ones(3), np.zeros(3, dtype=int))[1])


@pytest.mark.parametrize("n_classes", some_quick([2, 3, 6], 3))
def test_calibrated_predictions_lie_within_their_noise(n_classes: int) -> None:
    """The 90 % band covers nine times in ten: 40 runs, at least 30 inside."""
    inside = [
        calibration(*simulated(seed, 400, n_classes), n_resamples=200).within_noise
        for seed in range(40)
    ]
    # one-sided at the upper end of an equal-tailed band: 95 % expected
    assert sum(inside) >= 33


@pytest.mark.parametrize("power", [2.0, 0.5])
def test_extreme_and_timid_predictions_are_caught(power: float) -> None:
    found = calibration(*simulated(3, power=power), n_resamples=200)
    assert not found.within_noise
    assert found.error > 2 * found.noise[1]


def test_consistency_band_covers_the_curve() -> None:
    found = calibration(*simulated(4, 4000), n_resamples=400)
    inside = np.concatenate(
        [(c.lower <= c.observed) & (c.observed <= c.upper) for c in found.curves]
    )
    assert 0.75 <= inside.mean() <= 1.0
    planted = calibration(*simulated(4, 4000, power=2.0), n_resamples=400)
    outside = np.concatenate(
        [(c.observed < c.lower) | (c.observed > c.upper) for c in planted.curves]
    )
    assert outside.mean() > 0.5


def test_constant_class_frequencies_have_no_error() -> None:
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    said = np.tile([0.2, 0.3, 0.5], (100, 1))
    assert classwise_error(said, labels) == pytest.approx(0, abs=1e-15)


def test_single_bin_error_is_the_gap_of_the_means() -> None:
    said, labels = simulated(5, 200, power=3.0)
    gaps = [abs(said[:, c].mean() - (labels == c).mean()) for c in range(3)]
    assert classwise_error(said, labels, bins=1) == pytest.approx(np.mean(gaps))


def test_error_does_not_depend_on_order_and_weights_are_repetitions() -> None:
    said, labels = simulated(6, 150)
    rng = np.random.default_rng(7)
    weights = rng.integers(0, 4, labels.size)
    expected = classwise_error(said, labels, weights + 0.0)
    rows = rng.permutation(np.repeat(np.arange(labels.size), weights))
    assert classwise_error(said[rows], labels[rows]) == pytest.approx(expected, rel=1e-12)


def test_error_does_not_depend_on_the_names_of_the_classes() -> None:
    said, labels = simulated(8, 300)
    order = np.array([2, 0, 1])
    renamed = np.argsort(order)[labels]
    assert classwise_error(said[:, order], renamed) == pytest.approx(classwise_error(said, labels))


def test_bins_hold_all_the_weight_once_per_class() -> None:
    said, labels = simulated(9, 333)
    found = calibration(said, labels, n_resamples=10)
    for c, curve in enumerate(found.curves):
        assert curve.mass.sum() == pytest.approx(333)
        assert curve.mass @ curve.observed == pytest.approx((labels == c).sum())
        assert curve.mass @ curve.predicted == pytest.approx(said[:, c].sum())
        assert np.all(np.diff(curve.predicted) > 0)


def test_same_seed_same_band_other_seed_other_band() -> None:
    said, labels = simulated(10, 100)
    first, again = (calibration(said, labels, n_resamples=50) for _ in range(2))
    other = calibration(said, labels, n_resamples=50, random_state=1)
    assert first.noise == again.noise != other.noise


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_slope_undoes_the_power(power: float, n_classes: int) -> None:
    slope, error = calibration_slope(*simulated(11, 4000, n_classes, power))
    assert abs(slope - 1 / power) < 4 * error
    assert error < 0.1 / power


def test_slope_of_two_classes_is_logistic_recalibration() -> None:
    """The same as a logistic regression of the label on the logit, but for the weak prior."""
    from sklearn.linear_model import LogisticRegression

    said, labels = simulated(12, 2000, 2, 1.7)
    logit = np.log(said[:, 1] / said[:, 0])[:, None]
    expected = LogisticRegression(C=1e6, tol=1e-10).fit(logit, labels).coef_[0, 0]
    assert calibration_slope(said, labels)[0] == pytest.approx(expected, rel=2e-3)


def test_slope_exists_where_classes_are_told_apart_without_error() -> None:
    labels = np.repeat([0, 1], 20)
    said = np.where(labels[:, None] == [0, 1], 1.0, 0.0)
    slope, error = calibration_slope(said, labels)
    assert np.isfinite([slope, error]).all()
    assert slope >= 1
    assert error > 1  # and says that it knows nothing


def test_slope_weights_are_repetitions() -> None:
    said, labels = simulated(13, 200)
    weights = np.random.default_rng(14).integers(0, 3, 200)
    repeated = calibration_slope(np.repeat(said, weights, axis=0), np.repeat(labels, weights))
    assert calibration_slope(said, labels, weights + 0.0) == pytest.approx(repeated, rel=1e-8)

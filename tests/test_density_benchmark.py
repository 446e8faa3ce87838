"""The density's benchmark scores what it says: against brute force, scikit-learn and counting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score

from bayesrbf import MixtureDensity
from bench.density_models import Ours
from bench.density_scores import (
    at_resolution,
    auroc,
    average_precision,
    crps,
    held,
    level_loss,
    r_precision,
)
from bench.density_tables import KINDS, PLANTED, Cells, Task, plant


def test_crps_is_the_mean_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    draws, truth = rng.normal(size=(7, 3)).round(1), rng.normal(size=3)
    pairs = [np.abs(draws[a] - draws[b]) for a in range(7) for b in range(7) if a != b]
    expected = np.abs(draws - truth).mean(axis=0) - 0.5 * np.mean(pairs, axis=0)
    np.testing.assert_allclose(crps(draws, truth), expected)


def test_crps_of_normal_draws_is_the_integral_over_their_law() -> None:
    draws = np.random.default_rng(1).normal(size=(100_000, 1))
    expected = quad(lambda t: (norm.cdf(t) - (t >= 0.7)) ** 2, -9, 9, points=[0.7])[0]
    assert crps(draws, np.array([0.7]))[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("scale", [None, 2.0])
def test_intervals_of_the_law_itself_hold_their_share(level: float, scale: float | None) -> None:
    rng = np.random.default_rng(2)
    draws, truth = rng.normal(size=(39, 20_000)), rng.normal(size=20_000)
    if scale is not None:  # ties
        draws, truth = (draws * scale).round() + 9, (truth * scale).round() + 9
    assert held(draws, truth, level, rng).mean() == pytest.approx(level, abs=0.015)


def test_average_precision_and_auroc_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    wrong = rng.random(300) < 0.1
    for score in (rng.normal(size=300) + wrong, (rng.normal(size=300) + wrong).round()):
        assert average_precision(score, wrong) == pytest.approx(
            average_precision_score(wrong, score)
        )
        assert auroc(score, wrong) == pytest.approx(roc_auc_score(wrong, score))


def test_precision_at_the_number_of_errors_counts_ties_by_their_chance() -> None:
    wrong = np.array([True, False, True, False, True])
    assert r_precision(np.array([5.0, 4.0, 3.0, 2.0, 1.0]), wrong) == pytest.approx(2 / 3)
    assert r_precision(np.ones(5), wrong) == pytest.approx(3 / 5)
    assert r_precision(np.array([9.0, 1.0, 1.0, 1.0, 1.0]), wrong) == pytest.approx(2 / 3)


def test_a_level_that_never_was_drawn_has_a_finite_loss() -> None:
    losses = level_loss(np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([1, 1]))
    np.testing.assert_allclose(losses, -np.log([1e-3, 0.75]))


def test_a_mass_at_the_resolution_is_the_density_of_its_cell() -> None:
    """Half of the rows are exactly 0 in steps of 0.1; the others are uniform on (0, 1)."""
    at_point_mass = np.array([[True], [False]])
    found = at_resolution(np.log([0.5, 0.5]), at_point_mass, np.array([0.1]))
    np.testing.assert_allclose(np.exp(found), [5.0, 0.5])


class HalfZero:
    """Half of the rows are exactly 0, the others uniform on (0, 1): log mass and log density."""

    def score_samples(self, X: pd.DataFrame) -> np.ndarray:
        inside = (X["r0"] >= 0) & (X["r0"] < 1)
        return np.where(inside, np.log(0.5), -np.inf)


def test_cells_at_an_atom_are_not_jittered_and_count_by_their_mass() -> None:
    cells = Cells(np.array([[0.0], [0.5]]), np.empty((2, 0), int))
    jitter = np.array([[-0.04], [0.03]])  # which would take the point mass out of the support
    task = Task("hidden", cells, cells, jitter, jitter, np.array([0.1]), np.empty(0, int), cells)
    ours = Ours(MixtureDensity, point_masses=lambda density: [np.array([0.0])])
    np.testing.assert_allclose(np.exp(ours.log_density(HalfZero(), task)), [5.0, 0.5])


def test_planted_errors_have_their_share_and_only_they_differ() -> None:
    rng = np.random.default_rng(4)
    real = rng.normal(5, 1, size=(600, 4))
    codes = rng.integers(0, 3, size=(600, 2))
    real[rng.random(real.shape) < 0.1], codes[rng.random(codes.shape) < 0.1] = np.nan, -1
    cells = Cells(real, codes)
    spoilt, kinds = plant(cells, np.array([3, 3]), rng)
    assert (kinds.real > 0).sum() + (kinds.codes > 0).sum() == round(PLANTED * cells.n_cells)
    differs = (spoilt.real != real) & ~(np.isnan(spoilt.real) & np.isnan(real))
    np.testing.assert_array_equal(differs, kinds.real > 0)
    np.testing.assert_array_equal(spoilt.codes != codes, kinds.codes > 0)
    kinds_found = np.unique(np.concatenate([kinds.real.ravel(), kinds.codes.ravel()]))
    np.testing.assert_array_equal(kinds_found, np.arange(len(KINDS) + 1))

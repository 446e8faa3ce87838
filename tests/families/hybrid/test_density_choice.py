"""Densities chosen by the log density of held-out cells."""

from __future__ import annotations

import numpy as np
import pytest

import bayesrbf
from bayesrbf import MixtureDensity, MixturePrior
from bayesrbf.families.hybrid.density import N_COMPONENTS, PRIOR_STRENGTHS
from bayesrbf.families.hybrid.selection import COMPARED_TYPES

AUTO = MixtureDensity(
    "cv", covariance_type="cv", prior="cv", column_transforms="power", random_state=0
)


def clusters(n: int = 120, seed: int = 0) -> np.ndarray:
    """Two groups far apart, some cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 6 * rng.integers(0, 2, (n, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_two_groups_are_found_and_every_candidate_is_kept_best_first(tmp_path) -> None:
    density = MixtureDensity("cv", random_state=0).fit(clusters())
    assert density.candidates_[0].n_components == 2
    assert {one.n_components for one in density.candidates_} <= set(N_COMPONENTS)
    scores = [one.log_density for one in density.candidates_]
    assert scores == sorted(scores, reverse=True)
    density.save(tmp_path / "density.safetensors")
    assert bayesrbf.load(tmp_path / "density.safetensors").candidates_ == density.candidates_


def test_what_was_chosen_is_what_the_arguments_would_have_asked_for() -> None:
    X = clusters()
    chosen = AUTO.fit(X)
    best = chosen.candidates_[0]
    assert best.covariance_type in COMPARED_TYPES
    assert best.prior_strength in PRIOR_STRENGTHS
    default = 2.0 if best.covariance_type == "diag" else 3.0
    asked = MixtureDensity(
        best.n_components,
        covariance_type=best.covariance_type,
        prior=MixturePrior(degrees_of_freedom=best.prior_strength * default),
        column_transforms="power",
        random_state=0,
    ).fit(X)
    np.testing.assert_array_equal(asked.score_samples(X), chosen.score_samples(X))
    (only,) = asked.candidates_
    assert np.isnan(only.log_density)


def test_the_score_is_the_mean_log_density_of_rows_held_out() -> None:
    X = clusters()
    score = {
        one.n_components: one.log_density
        for one in MixtureDensity("cv", random_state=0).fit(X).candidates_
    }
    held = MixtureDensity(2, random_state=0).fit(X).score(clusters(5000, seed=1))
    assert abs(score[2] - held) < 0.3
    assert score[2] > score[1] + 0.5


def test_columns_that_are_nearly_functions_of_each_other_weaken_the_prior() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(150, 1))
    X = np.column_stack([z + 0.02 * rng.normal(size=(150, 1)) for _ in range(6)])
    new = np.column_stack([z[::-1] + 0.02 * rng.normal(size=(150, 1)) for _ in range(6)])
    chosen = MixtureDensity(prior="cv", random_state=0).fit(X)
    assert chosen.candidates_[0].prior_strength < 1
    assert chosen.score(new) > MixtureDensity(random_state=0).fit(X).score(new) + 1


@pytest.mark.parametrize("X", [np.zeros((1, 2)), np.full((4, 1), np.nan), np.eye(3)])
def test_tiny_tables_have_a_density(X: np.ndarray) -> None:
    assert np.isfinite(AUTO.fit(X).score_samples(X)).all()


def test_categories_have_no_covariance_to_choose() -> None:
    X = np.random.default_rng(0).choice(["a", "b"], size=(60, 2)).astype(object)
    chosen = AUTO.fit(X)
    assert {(one.covariance_type, one.prior_strength) for one in chosen.candidates_} == {
        ("full", 1.0)
    }

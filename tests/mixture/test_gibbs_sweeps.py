"""Sweeps: what is drawn given the parameters, and tables at the edge of sense."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bayesrbf.base.rows import Observations
from bayesrbf.mixture.gibbs import CellDraws, ComponentDraws, MixtureSweep, can_jump, slowness_of
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import COVARIANCES, hyperparameters, random_point, structure, table

REPEATS = 4000


def test_missing_cells_have_their_conditional_moments():
    specification = structure("full", False, (0, 1), 4)
    rows = table(specification, n_obs=6, missing=0.4)
    point = random_point(specification)
    components = np.arange(6) % 2
    copies = CellDraws(np.tile(rows.real, (REPEATS, 1)), specification)
    drawn = copies.draw(point, np.tile(components, REPEATS), np.random.default_rng(0))
    drawn = drawn.reshape(REPEATS, 6, 4)
    for block in laws_of(specification).reals.conditionals(rows.real, point):
        mine = np.arange(block.rows.size), components[block.rows]
        mean, variance = block.means[mine], block.variances[mine]
        found = drawn[:, block.rows]
        known = variance == 0
        np.testing.assert_array_equal(
            found[:, known], np.broadcast_to(mean[known], found[:, known].shape)
        )
        z = ((found - mean) / np.sqrt(np.where(known, 1, variance)))[:, ~known]
        assert np.abs(z.mean(axis=0) * np.sqrt(REPEATS)).max(initial=0) < 4.9
        assert np.abs((z**2).mean(axis=0) - 1).max(initial=0) < 4.9 * np.sqrt(2 / REPEATS)
        assert known.any()


def test_cells_of_a_row_are_drawn_together():
    """Two missing cells of one row have the covariance of their conditional law."""
    specification = structure("full", False, (0,), 3)
    real = np.array([[0.5, np.nan, np.nan]])
    rows = Observations(real, np.empty((1, 0), int), np.zeros(1, int), np.ones(1))
    point = random_point(specification)
    (block,) = laws_of(specification).reals.conditionals(rows.real, point)
    copies = CellDraws(np.tile(real, (REPEATS, 1)), specification)
    drawn = copies.draw(point, np.zeros(REPEATS, int), np.random.default_rng(1))[:, 1:]
    white = np.linalg.solve(block.roots[0, 0], (drawn - block.means[0, 0, 1:]).T)
    assert abs((white[0] * white[1]).mean()) * np.sqrt(REPEATS) < 4.9


@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_components_have_their_probabilities_within_the_label(covariance_type, shared_covariance):
    specification = structure(covariance_type, shared_covariance, (0, 0, 1, 2, 2), 2, (3,))
    rows = table(specification, n_obs=8, hidden=0.4)
    point = random_point(specification)
    whole = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    log_joint = whole._expectation.component_log_joint(point)
    classes = np.asarray(specification.component_class)
    barred = (rows.labels[:, None] >= 0) & (rows.labels[:, None] != classes)
    shares = np.exp(np.where(barred, -np.inf, log_joint))
    shares /= shares.sum(axis=1, keepdims=True)
    copies = rows.take(np.tile(np.arange(8), REPEATS))
    drawn = ComponentDraws(copies, specification).draw(point, np.random.default_rng(2))
    counts = (drawn.reshape(REPEATS, 8, 1) == np.arange(5)).sum(axis=0)
    assert not counts[barred].any()
    error = (counts - REPEATS * shares) / np.sqrt(REPEATS * shares * (1 - shares) + 1)
    assert np.abs(error).max() < 4.9


EDGES = {
    "no real column": (structure("full", False, (0, 0, 1), 0, (2, 3)), 12),
    "one real column": (structure("full", False, (0, 0, 1), 1), 12),
    "one component": (structure("full", False, (0,), 3), 12),
    "fewer rows than columns": (structure("full", False, (0, 0, 1), 6), 3),
    "fewer rows than components": (structure("full", False, (0, 0, 0, 0), 2), 2),
    "more components than jumps take": (structure("diag", False, (0,) * 6, 2), 12),
    "tied across classes": (structure("spherical", True, (0, 0, 1), 2), 12),
}


@pytest.mark.parametrize("name", EDGES)
def test_sweeps_at_the_edge(name):
    specification, n_obs = EDGES[name]
    rows = replace(table(specification, n_obs), weights=np.ones(n_obs))
    rows.real[-1], rows.codes[-1] = np.nan, -1  # a row without a cell
    target = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    kernel, rng = target.markov_kernel(), np.random.default_rng(0)
    theta, seen = np.zeros(target.dimension), []
    for _ in range(5):
        theta = kernel.sweep(theta, rng)
        seen.append(theta)
    learnt = kernel.adapted(np.array(seen))
    assert (learnt is not kernel) == can_jump(specification)
    for _ in range(5):
        theta = learnt.sweep(theta, rng)
    assert theta.shape == (target.dimension,)
    assert np.isfinite(target.value_and_gradient(theta)[0])


def test_columns_in_other_units_give_the_same_sweep():
    specification = structure("full", False, (0, 0, 1), 2)
    rows = replace(table(specification, 20), weights=np.ones(20))
    swept = []
    for location, scale in ((0.0, 1.0), (3.0, 4.0)):
        hyper = hyperparameters(specification, location, scale)
        kernel = MixtureSweep(rows, specification, hyper)
        values = kernel.sweep(
            MixtureLogPosterior(rows, specification, hyper).pack(
                random_point(specification).in_units(hyper.units)
            ),
            np.random.default_rng(0),
        )
        point = MixtureLogPosterior(rows, specification, hyper).unpack(values)
        swept.append(point.standardised(hyper.units))
    np.testing.assert_allclose(swept[0].means, swept[1].means, rtol=1e-9)
    np.testing.assert_allclose(
        swept[0].precisions_cholesky, swept[1].precisions_cholesky, rtol=1e-9
    )


def test_a_class_is_slow_where_its_largest_weight_is():
    """An autoregression of coefficient r forgets in (1 + r) / (1 - r) draws."""
    rng, remembered = np.random.default_rng(0), [0.0, 0.8]
    draws = np.zeros((20_000, 2))
    for before, after in pairwise(draws):
        after[:] = remembered * before + rng.standard_normal(2)
    first = 0.75 + 0.01 * draws
    weights = np.stack([first, 1 - first], axis=2).reshape(len(draws), 4)
    specification = structure("diag", False, (0, 0, 1, 1, 2), 2, ())
    slowness = slowness_of(np.column_stack([weights, np.ones(len(draws))]), specification)
    np.testing.assert_allclose(slowness[:2], [1, 9], rtol=0.6)  # 16 batches: a rough figure
    assert slowness[2] == 1
    swapped = np.where(rng.random((len(draws), 1)) < 0.5, weights[:, [1, 0]], weights[:, :2])
    relabelled = np.column_stack([swapped, weights[:, 2:], np.ones(len(draws))])
    np.testing.assert_array_equal(slowness_of(relabelled, specification), slowness)


@pytest.mark.parametrize(("holes", "hidden"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.4)])
def test_sweeps_are_independent_draws_where_nothing_is_latent(holes, hidden):
    specification = structure("full", False, (0, 1), 2, ())
    rows = replace(table(specification, 20, missing=holes, hidden=hidden), weights=np.ones(20))
    kernel = MixtureSweep(rows, specification, hyperparameters(specification))
    dimension = MixtureLogPosterior(rows, specification, hyperparameters(specification)).dimension
    thetas = np.random.default_rng(0).normal(size=(2, dimension))
    swept = [kernel.sweep(theta, np.random.default_rng(1)) for theta in thetas]
    assert np.array_equal(*swept) == (holes == hidden == 0)

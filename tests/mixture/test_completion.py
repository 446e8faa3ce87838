"""Completions of rows with holes, and means over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import softmax

from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.families.rbf_network.posterior import (
    Network,
    completed_linear,
    mean_log_probabilities,
)
from bayesrbf.families.rbf_network.records import RBFNetworkParameters, RBFNetworkSpecification
from bayesrbf.mixture.missing import complete, mostly_complete, with_holes

NAN = np.nan


def rows(real: list[list[float]], codes: list[list[int]]) -> Observations:
    n = len(real)
    return Observations(
        np.array(real),
        np.array(codes, dtype=int).reshape(n, -1),
        np.zeros(n, int),
        np.arange(1.0, n + 1),
    )


MIXED = MixtureSpecification(2, (3,), (0, 0), "diag")
PARAMETERS = MixtureParameters(
    np.ones(1),
    np.array([0.4, 0.6]),
    np.array([[0.0, 1.0], [2.0, -1.0]]),
    np.array([[1.0, 2.0], [0.5, 1.5]]),
    (np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),),
)
HOLES = rows([[0.1, 1.2], [NAN, 0.3], [0.5, -1.0]], [[0], [2], [-1]])


def test_what_was_seen_stays_and_the_rest_is_filled() -> None:
    points, starts = complete(HOLES, PARAMETERS, MIXED, draws=16)
    assert starts.tolist() == [0, 1, 17]
    assert not with_holes(points).any()
    np.testing.assert_array_equal(points.real[1:17, 1], 0.3)
    np.testing.assert_array_equal(points.codes[1:17, 0], 2)
    np.testing.assert_array_equal(points.real[17:], np.tile([0.5, -1.0], (16, 1)))
    np.testing.assert_array_equal(points.weights, np.repeat([1.0, 2.0, 3.0], [1, 16, 16]))
    assert np.isnan(HOLES.real[1, 0]), "the rows that were given are left alone"


def test_a_complete_table_is_itself() -> None:
    whole = HOLES.take(np.array([0, 0]))
    points, starts = complete(whole, PARAMETERS, MIXED, draws=16)
    assert starts.tolist() == [0, 1]
    np.testing.assert_array_equal(points.real, whole.real)


@pytest.mark.parametrize(("weight", "expected"), [(1.0, True), (3.0, False)])
def test_whether_a_table_is_mostly_complete_goes_by_weight(weight: float, expected: bool) -> None:
    table = Observations(
        np.array([[0.0], [NAN], [NAN]]),
        np.empty((3, 0), int),
        np.array([0, 1, -1]),  # the last has no label and no say
        np.array([1.0, weight, 9.0]),
    )
    assert mostly_complete(table) is expected


def integral(g, mixture: MixtureSpecification, hidden: MixtureParameters, seen: float):
    """Mean of g(x) over the first column, given the second, by Gauss and Hermite."""
    nodes, weights = hermegauss(80)
    sds = 1 / hidden.precisions_cholesky
    log_shares = np.log(hidden.weights) - 0.5 * ((seen - hidden.means[:, 1]) / sds[:, 1]) ** 2
    shares = np.exp(log_shares) / sds[:, 1]
    grids = [
        rows([[x, seen] for x in hidden.means[k, 0] + sds[k, 0] * nodes], [[] for _ in nodes])
        for k in range(2)
    ]
    means = [np.average(g(grid), axis=0, weights=weights) for grid in grids]
    return np.average(means, axis=0, weights=shares)


def test_a_mean_over_completions_is_the_integral() -> None:
    mixture = MixtureSpecification(2, (), (0, 0), "diag")
    hidden = replace(PARAMETERS, category_probabilities=())
    seen = 0.4
    table = rows([[NAN, seen], [0.7, seen]], [[], []])

    structure = RBFNetworkSpecification(mixture, 1, "responsibility", "number")
    point = RBFNetworkParameters(hidden, np.array([[1.0, -2.0]]), np.array([0.3]))
    found = completed_linear(table, point, structure, draws=1024)
    assert found.shape == (1024, 2, 1)
    whole = Network(table.take(np.array([1])), structure).linear(point)
    np.testing.assert_array_equal(found[:, 1, 0], whole[0, 0])
    expected = integral(lambda grid: Network(grid, structure).linear(point), mixture, hidden, seen)
    np.testing.assert_allclose(found[:, 0].mean(axis=0), expected, atol=2e-3)

    structure = RBFNetworkSpecification(mixture, 2, "log_density", "classes")
    point = RBFNetworkParameters(hidden, np.array([[1.0, -2.0], [0.5, 0.1]]), np.array([0.3, 0.0]))

    def probabilities(grid: Observations) -> np.ndarray:
        return softmax(Network(grid, structure).linear(point), axis=1)

    log_p = mean_log_probabilities(table, point, structure, draws=1024)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0)
    expected = integral(probabilities, mixture, hidden, seen)
    np.testing.assert_allclose(np.exp(log_p[0]), expected, atol=2e-3)
    np.testing.assert_allclose(np.exp(log_p[1]), probabilities(table)[1])

"""Mutual information under a mixture, against integrals on a grid and closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from bayesrbf.base.rows import MixtureParameters, MixtureSpecification
from bayesrbf.mixture.missing import mutual_information
from bayesrbf.mixture.points import component_covariances
from tests.cases import random_point, structure

GRID = np.linspace(-12, 12, 801)
STEP = GRID[1] - GRID[0]


def information(joint: np.ndarray) -> float:
    """Mutual information of the cells of a table of probabilities."""
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    seen = joint > 1e-300
    return float((joint[seen] * np.log(joint[seen] / outer[seen])).sum())


def by_grid(specification: MixtureSpecification, point: MixtureParameters) -> np.ndarray:
    """Of every two variables, from their joint density on a grid, component by component."""
    classes = np.asarray(specification.component_class)
    weights = point.class_probabilities[classes] * point.weights
    d, several = specification.n_features, specification.n_classes > 1
    codes = [np.eye(specification.n_classes)[classes]] if several else []
    columns = [*codes, *range(d), *point.category_probabilities]
    found = np.full((len(columns),) * 2, np.nan)
    for a, b in itertools.permutations(range(len(columns)), 2):
        joint: np.ndarray | float = 0.0
        for k, w in enumerate(weights):
            covariance = component_covariances(point, specification)[k]
            if all(isinstance(columns[c], int) for c in (a, b)):
                pair = [columns[a], columns[b]]
                law = multivariate_normal(point.means[k, pair], covariance[np.ix_(pair, pair)])
                cells = law.pdf(np.dstack(np.meshgrid(GRID, GRID, indexing="ij"))) * STEP**2
            else:
                sides = []
                for c in (columns[a], columns[b]):
                    if isinstance(c, int):
                        of_k = norm(point.means[k, c], np.sqrt(covariance[c, c]))
                        sides.append(of_k.pdf(GRID) * STEP)
                    else:
                        sides.append(c[k])
                cells = np.outer(*sides)
            joint = joint + w * cells
        found[a, b] = information(np.asarray(joint))
    return found


@pytest.mark.parametrize(
    ("covariance_type", "classes", "levels"),
    [
        ("full", (0, 0, 1), (3,)),
        ("tied", (0, 1, 2), ()),
        ("diag", (0, 0), (2, 4)),
        ("spherical", (0, 1), (2,)),
    ],
)
def test_information_equals_integrals_on_a_grid(
    covariance_type: str, classes: tuple[int, ...], levels: tuple[int, ...]
) -> None:
    specification = structure(covariance_type, False, classes, 2, levels)
    point = random_point(specification, seed=1)
    found = mutual_information(point, specification)
    np.testing.assert_allclose(found, by_grid(specification, point), atol=6e-3)
    np.testing.assert_array_equal(found, found.T)
    if levels:
        exact = slice(-len(levels), None)
        np.testing.assert_allclose(
            found[exact, exact], by_grid(specification, point)[exact, exact], atol=1e-12
        )


@pytest.mark.parametrize("correlation", [0.0, 0.3, -0.9])
def test_information_of_two_normal_columns_is_that_of_their_correlation(
    correlation: float,
) -> None:
    """In any units."""
    covariance = np.array([[1.0, correlation], [correlation, 1.0]]) * np.outer([3, 50], [3, 50])
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    point = MixtureParameters(np.ones(1), np.ones(1), np.array([[5.0, -7.0]]), factor[None], ())
    found = mutual_information(point, MixtureSpecification(2, (), (0,)))
    expected = -0.5 * np.log(1 - correlation**2)
    assert found[0, 1] == pytest.approx(expected, abs=6e-3)


def test_columns_that_share_only_the_component_tell_of_it() -> None:
    """Far apart, every column knows the class: information is the entropy of the class."""
    point = MixtureParameters(
        np.array([0.3, 0.7]),
        np.ones(2),
        np.array([[0.0, 0.0], [50.0, 50.0]]),
        np.ones((2, 2)),
        (np.array([[1.0, 0.0], [0.0, 1.0]]),),
    )
    found = mutual_information(point, MixtureSpecification(2, (2,), (0, 1), "diag"))
    entropy = -(0.3 * np.log(0.3) + 0.7 * np.log(0.7))
    np.testing.assert_allclose(found[~np.eye(4, dtype=bool)], entropy, atol=6e-3)


def test_information_does_not_depend_on_the_order_of_columns() -> None:
    specification = structure("full", False, (0, 0, 1), 3, (2,))
    point = random_point(specification, seed=2)
    flipped = MixtureParameters(
        point.class_probabilities,
        point.weights,
        point.means[:, ::-1].copy(),
        np.linalg.cholesky(
            np.linalg.inv(component_covariances(point, specification)[:, ::-1, ::-1])
        ),
        point.category_probabilities,
    )
    order = [0, 3, 2, 1, 4]
    found = mutual_information(point, specification)
    np.testing.assert_allclose(
        mutual_information(flipped, specification)[np.ix_(order, order)], found, atol=8e-3
    )

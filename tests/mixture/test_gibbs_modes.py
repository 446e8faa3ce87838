"""The proposal of jumps: its density by SciPy, its draws, and the symmetry of its components."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.base.rows import COVARIANCE_TYPES, MixtureParameters
from bayesrbf.mixture.gibbs import ModeProposal, assigned
from tests.cases import hyperparameters, structure
from tests.mixture.test_gibbs_conjugate import Given, log_density


def reference(covariance_type: str, seed: int) -> Given:
    specification = structure(covariance_type, False, (0, 0, 0), 2, (3,))
    rng = np.random.default_rng(seed)
    real, codes = rng.normal(size=(12, 2)) + seed, rng.integers(0, 3, (12, 1))
    components = np.arange(12) % 2  # the third is empty
    rows = assigned(real, codes, components, specification)
    return Given(rows, hyperparameters(specification, 0.5, 2.0), specification)


def reordered(point: MixtureParameters, order: tuple[int, ...]) -> MixtureParameters:
    places = list(order)
    own = len(point.precisions_cholesky) == len(places)
    return replace(
        point,
        weights=point.weights[places],
        means=point.means[places],
        precisions_cholesky=point.precisions_cholesky[places if own else [0]],
        category_probabilities=tuple(p[places] for p in point.category_probabilities),
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_density_is_the_mean_over_references_and_orders(covariance_type):
    references = [reference(covariance_type, seed) for seed in range(3)]
    shares = np.array([0.5, 0.2, 0.3])
    proposal = ModeProposal([one.posterior for one in references], shares)
    points = [proposal.draw(np.random.default_rng(seed)) for seed in range(2)]
    for point, found in zip(points, proposal.log_densities(*points), strict=True):
        terms = [
            np.log(share / 6) + log_density(one, reordered(point, order))
            for one, share in zip(references, shares, strict=True)
            for order in itertools.permutations(range(3))
        ]
        assert found == pytest.approx(np.logaddexp.reduce(terms), rel=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_density_does_not_know_the_order_of_components(covariance_type):
    proposal = ModeProposal([reference(covariance_type, 1).posterior], np.ones(1))
    point = proposal.draw(np.random.default_rng(0))
    one, two = proposal.log_densities(point, reordered(point, (2, 0, 1)))
    assert one == pytest.approx(two, rel=1e-12)

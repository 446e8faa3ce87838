"""Missing cells: what the companion draws, and why the components cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.arrays import normals, uniforms
from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Order,
    Standardisation,
)
from bayesrbf.families.sdgm.fitted import completions, predict
from bayesrbf.families.sdgm.posterior import quadratic_basis
from bayesrbf.families.sdgm.records import SDGMModes, SDGMParameters
from bayesrbf.mixture.fitted import FittedMixture
from bayesrbf.mixture.missing import conditional_cells

UNITS = Standardisation(np.array([5.0, -1.0, 0.0]), np.array([2.0, 0.5, 1.0]))


def complete(
    data: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    units: Standardisation,
    *,
    draws: int,
    replicate: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    levels = specification.levels
    prior = MixturePrior().resolve(specification, units, tuple(np.full(n, 1 / n) for n in levels))
    order = Order(np.arange(specification.n_features), np.arange(len(levels)), np.zeros(1, int))
    fitted = FittedMixture(specification, prior, parameters, order)
    return completions(fitted, data, draws, replicate)


def companion(kind: str = "full") -> tuple[MixtureParameters, MixtureSpecification]:
    rng = np.random.default_rng(0)
    roots = np.tril(rng.normal(scale=0.5, size=(2, 3, 3))) + 1.3 * np.eye(3)
    parameters = MixtureParameters(
        np.ones(1),
        np.array([0.3, 0.7]),
        rng.normal(size=(2, 3)),
        roots if kind == "full" else np.abs(rng.normal(size=(2, 3))) + 0.7,
        (np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),),
    )
    return parameters, MixtureSpecification(3, (3,), (0, 0), kind)


def rows() -> Observations:
    nan = np.nan
    real = np.array(
        [[5.0, -1.0, 0.3], [nan, -1.2, nan], [6.0, nan, 1.0], [nan, nan, nan], [4, 0, 1]]
    )
    codes = np.array([[0], [2], [-1], [-1], [1]])
    return Observations(real, codes, np.full(5, -1), np.ones(5))


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_completions_have_the_conditional_moments(kind: str) -> None:
    parameters, specification = companion(kind)
    data, draws = rows(), 4096
    points, starts = complete(data, parameters, specification, UNITS, draws=draws)
    sizes = np.diff(starts, append=len(points))
    assert sizes.tolist() == [1, draws, draws, draws, 1]
    standard = Observations(UNITS.forward(data.real), data.codes, data.labels, data.weights)
    mean, variance, (shares,) = conditional_cells(standard, parameters, specification)
    for row, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        mine = points[start : start + size]
        drawn = UNITS.forward(mine[:, :3])
        np.testing.assert_allclose(drawn.mean(axis=0), mean[row], atol=0.01)
        np.testing.assert_allclose(drawn.var(axis=0), variance[row], rtol=0.05, atol=1e-9)
        np.testing.assert_allclose(mine[:, 3:].mean(axis=0), shares[row], atol=0.02)
        seen = ~np.isnan(data.real[row])
        assert (mine[:, :3][:, seen] == data.real[row][seen]).all()


def test_a_row_is_completed_alike_in_any_company() -> None:
    parameters, specification = companion()
    points, starts = complete(rows(), parameters, specification, UNITS, draws=8)
    alone, _ = complete(rows().take(np.array([2])), parameters, specification, UNITS, draws=8)
    np.testing.assert_allclose(alone, points[starts[2] : starts[2] + 8], rtol=1e-12)
    other, _ = complete(
        rows().take(np.array([2])), parameters, specification, UNITS, draws=8, replicate=1
    )
    assert np.abs(other - alone).max() > 0.01


def test_numbers_are_even_and_stay_inside() -> None:
    assert normals(8, 0).shape == (8, 0)
    points = uniforms(128, 3)
    assert points.min() > 0
    assert points.max() < 1
    np.testing.assert_allclose(normals(1024, 2, 3).mean(axis=0), 0, atol=0.01)
    assert np.abs(uniforms(64, 2, 0) - uniforms(64, 2, 1)).max() > 0.1


# ---- the gauge

GAUGE = np.array([0.0, 0.0, 1.2, 0.0, 0.0, -1.5])
"""Weights of 1, a, b, aa, ab, bb: a quadratic that all components get."""


def two_components(gauge: np.ndarray) -> np.ndarray:
    """Weights of two components; every one with -b^2, so that b could be integrated out."""
    first = np.array([0.0, 1.0, 0.5, -0.2, 0.4, -1.0])
    second = np.array([0.3, -1.0, -1.0, -0.2, 0.0, -0.6])
    return np.column_stack([first, second]) + gauge[:, None]


def marginalised(weights: np.ndarray, a: float) -> np.ndarray:
    """Integrate every exp(w . phi(a, b)) over b as if it were a density of x, then normalise."""
    one, by_a, by_b, aa, ab, bb = weights
    slope = by_b + ab * a
    log_mass = one + by_a * a + aa * a**2 - slope**2 / (4 * bb) - 0.5 * np.log(-bb)
    shares = np.exp(log_mass - log_mass.max())
    return shares / shares.sum()


def test_marginalising_components_depends_on_what_the_model_does_not_determine() -> None:
    basis, point = quadratic_basis(2, ()), np.array([[0.4, -0.3]])
    plain, moved = two_components(np.zeros(6)), two_components(GAUGE)
    both = [np.exp(basis.at(point) @ w) for w in (plain, moved)]
    np.testing.assert_allclose(both[0] / both[0].sum(), both[1] / both[1].sum(), rtol=1e-12)
    shift = np.abs(marginalised(plain, 0.4) - marginalised(moved, 0.4)).max()
    assert shift > 0.15  # the same classifier, two answers: unsound


@pytest.mark.parametrize("gauge", [np.zeros(6), GAUGE])
def test_the_average_over_the_companion_is_the_integral_in_every_gauge(gauge: np.ndarray) -> None:
    weights = two_components(gauge)
    parameters = SDGMParameters(
        np.array([0, 1]),
        np.ones(2),
        np.repeat([0, 1], 6),
        np.tile(np.arange(6), 2),
        weights.T.reshape(-1),
        np.ones(12),
        np.zeros((12, 12)),
    )
    units = Standardisation(np.zeros(2), np.ones(2))
    root = np.array([[[1.2, 0.0], [-0.7, 0.9]]])
    density = MixtureParameters(np.ones(1), np.ones(1), np.array([[0.2, -0.4]]), root, ())
    specification = MixtureSpecification(2, (), (0,))
    row = Observations(
        np.array([[0.4, np.nan]]), np.empty((1, 0), np.intp), np.array([-1]), np.ones(1)
    )
    found, error = predict(
        SDGMModes((parameters,), np.ones(1)),
        quadratic_basis(2, ()),
        units,
        lambda r: complete(row, density, specification, units, draws=64, replicate=r),
        average=False,
    )
    b = np.linspace(-12, 12, 20001)
    deviations = np.column_stack([np.full_like(b, 0.2), b + 0.4])
    mass = np.exp(-0.5 * ((deviations @ root[0]) ** 2).sum(axis=1))
    logits = quadratic_basis(2, ()).at(np.column_stack([np.full_like(b, 0.4), b])) @ weights
    p = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
    exact = (p * mass).sum() / mass.sum()
    assert 0 < error[0, 0] < 2e-3
    assert abs(found[0, 0] - exact) < 5 * error[0, 0] + 1e-6

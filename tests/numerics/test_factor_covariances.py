"""Factor-analytic covariances: against dense ones, in every rotation, and between two shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayesrbf.numerics.mixture import gaussian_factors
from bayesrbf.numerics.mixture.array_expectation import ArrayExpectation
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.gaussian_factors import (
    FactorComponents,
    FactorMoments,
    inverse_and_log_determinant,
    upper_entries,
)
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.mixture.mixture_log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture.mixture_points import component_covariances, reordered
from bayesrbf.numerics.mixture.parts.factor_precisions import (
    side_by_side,
    uniquenesses_and_loadings,
)
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification, Order
from tests.cases import hyperparameters, random_point, structure, table

D, Q = 6, 2
WIDE = structure("factor", classes=(0, 0, 1), n_features=D)


def rotated(point: MixtureParameters, seed: int = 0) -> MixtureParameters:
    """The same mixture, the factors of every group in other directions."""
    rng = np.random.default_rng(seed)
    unique, loadings = uniquenesses_and_loadings(point.precisions_cholesky)
    q = loadings.shape[2]
    turns = np.linalg.qr(rng.normal(size=(len(unique), q, q)))[0]
    return replace(point, precisions_cholesky=side_by_side(unique, loadings @ turns))


def dense(point: MixtureParameters, rows: Observations) -> np.ndarray:
    """Log densities of the observed cells, row by row, by the dense covariances."""
    result = np.zeros((rows.n_obs, len(point.means)))
    for n, x in enumerate(rows.real):
        o = np.flatnonzero(~np.isnan(x))
        for k, (mean, covariance) in enumerate(
            zip(point.means, component_covariances(point, WIDE), strict=True)
        ):
            if o.size:
                law = multivariate_normal(mean[o], covariance[np.ix_(o, o)])
                result[n, k] = law.logpdf(x[o])
    return result


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_marginals_are_those_of_the_dense_covariances(missing: float) -> None:
    point, rows = random_point(WIDE, 1), table(WIDE, missing=missing)
    rows.real[0] = np.nan if missing else rows.real[0]
    log_joint = ArrayExpectation(rows, WIDE).component_log_joint(point)
    constants = np.log(point.class_probabilities[[0, 0, 1]]) + np.log(point.weights)
    np.testing.assert_allclose(log_joint, dense(point, rows) + constants, rtol=1e-10)


def test_moments_of_the_factors_are_those_of_regression() -> None:
    """E[f | x] and Cov[f | x] of the joint normal law of cells and factors."""
    point, rows = random_point(WIDE, 2), table(WIDE, missing=0.3)
    real, observed = np.nan_to_num(rows.real), ~np.isnan(rows.real)
    components = FactorComponents(point.means, point.precisions_cholesky)
    found = FactorMoments.of(real, observed, components)
    _, loadings = uniquenesses_and_loadings(point.precisions_cholesky)
    for n, o in enumerate(observed):
        for k, covariance in enumerate(component_covariances(point, WIDE)):
            slopes = np.linalg.solve(covariance[np.ix_(o, o)], loadings[k][o]).T
            expected = slopes @ (rows.real[n] - point.means[k])[o]
            np.testing.assert_allclose(found.expected[:, k, n], expected, atol=1e-10)
            rest = np.eye(Q) - slopes @ loadings[k][o]
            np.testing.assert_allclose(found.covariances[:, :, k, n], rest, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_roots_and_products_give_the_same_sums(
    missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    point, rows = random_point(WIDE, 2), table(WIDE, missing=missing)
    by_products = ArrayExpectation(rows, WIDE).statistics(point)
    monkeypatch.setattr(gaussian_factors, "MOST_SIZE", 0.0)
    by_roots = ArrayExpectation(rows, WIDE).statistics(point)
    for name in ("pointwise", "first", "second"):
        expected = getattr(by_products, name)
        np.testing.assert_allclose(getattr(by_roots, name), expected, rtol=1e-10, atol=1e-10)


def test_sweeps_invert_small_matrices() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 7, 4, 4))
    matrices = roots @ roots.swapaxes(2, 3)
    rows, columns = upper_entries(4)
    upper = np.moveaxis(matrices[..., rows, columns], -1, 0)
    inverse, log_determinants = inverse_and_log_determinant(upper, 4)
    expected = np.linalg.inv(np.eye(4) + matrices)
    np.testing.assert_allclose(np.moveaxis(inverse, (0, 1), (2, 3)), expected, atol=1e-10)
    np.testing.assert_allclose(log_determinants, np.linalg.slogdet(np.eye(4) + matrices)[1])


def test_cells_left_out_have_the_conditional_law_of_the_dense_covariance() -> None:
    point, rows = random_point(WIDE, 3), table(WIDE, missing=0.3)
    shift, precision = laws_of(WIDE).reals.leave_one_out(
        rows.real, point.means, point.precisions_cholesky
    )
    roots = np.linalg.cholesky(np.linalg.inv(component_covariances(point, WIDE)))
    law = laws_of(replace(WIDE, covariance_type="full", n_factors=0)).reals
    expected = law.leave_one_out(rows.real, point.means, roots)
    np.testing.assert_allclose(shift, expected[0], atol=1e-9)
    np.testing.assert_allclose(precision, expected[1], rtol=1e-9)


def test_neither_density_nor_prior_nor_coordinates_see_a_rotation() -> None:
    rows, hyper = table(WIDE), hyperparameters(WIDE, location=2.0, scale=3.0)
    target = MixtureLogPosterior(rows, WIDE, hyper)
    point = random_point(WIDE, 4)
    turned = rotated(point)
    assert not np.allclose(turned.precisions_cholesky, point.precisions_cholesky)
    one, other = (prepare(rows, WIDE).statistics(some) for some in (point, turned))
    np.testing.assert_allclose(other.pointwise, one.pointwise)
    law = laws_of(WIDE).reals
    prior = law.prior(hyper.standardised())
    assert prior.log_density(turned, True) == pytest.approx(prior.log_density(point, True))
    user = [target.pack(some.in_units(hyper.units)) for some in (point, turned)]
    np.testing.assert_allclose(user[0], user[1], atol=1e-9)
    np.testing.assert_allclose(
        component_covariances(target.unpack(user[0]), WIDE),
        component_covariances(point.in_units(hyper.units), WIDE),
    )


def test_columns_in_another_order_are_the_same_mixture() -> None:
    order = Order(np.array([3, 0, 5, 1, 4, 2]), np.zeros(0, dtype=int), np.arange(2))
    point = random_point(WIDE, 5)
    moved = component_covariances(reordered(point, order, WIDE), WIDE)
    expected = component_covariances(point, WIDE)[:, order.features][:, :, order.features]
    np.testing.assert_allclose(moved, expected)


def test_without_loadings_rows_have_the_density_under_diagonal_covariances() -> None:
    rows, diagonal = table(WIDE), structure("diag", classes=(0, 0, 1), n_features=D)
    own = random_point(diagonal, 6)
    roots = own.precisions_cholesky[:, :, None, None]
    factors = np.concatenate([roots, np.zeros((*roots.shape[:3], Q))], axis=3)
    point = replace(own, precisions_cholesky=factors)
    one, other = prepare(rows, WIDE).statistics(point), prepare(rows, diagonal).statistics(own)
    np.testing.assert_allclose(one.pointwise, other.pointwise)
    np.testing.assert_allclose(one.counts, other.counts)


def correlated(n_obs: int, seed: int) -> Observations:
    """Complete rows of one class whose covariance no few factors explain, standardised."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(4) + 0.5 * np.random.default_rng(0).normal(size=(4, 4))
    real = rng.normal(size=(n_obs, 4)) @ mixing
    real /= np.sqrt((mixing**2).sum(axis=0))
    return Observations(real, np.zeros((n_obs, 0), int), np.zeros(n_obs, int), np.ones(n_obs))


def test_as_many_factors_as_columns_are_as_good_as_full_covariances() -> None:
    rows, held_out = correlated(400, 1), correlated(400, 2)
    rows.real[np.random.default_rng(3).random(rows.real.shape) < 0.2] = np.nan
    scores = {}
    for name, q in (("full", 0), ("factor", 9), ("factor", 1), ("diag", 0)):
        specification = MixtureSpecification(4, (), (0,), name, n_factors=q)
        hyper = hyperparameters(specification)
        fit = fit_mixture(rows, specification, hyper, rng=np.random.default_rng(0))
        scores[name, q] = prepare(held_out, specification).statistics(fit.parameters).log_likelihood
    assert scores["factor", 9] > scores["full", 0] - 8
    assert scores["full", 0] > scores["factor", 1] + 20
    assert scores["factor", 1] > scores["diag", 0] + 20


@pytest.mark.parametrize(("shape", "n_factors"), [("factor", 0), ("full", 2)])
def test_factors_and_their_number_go_together(shape: str, n_factors: int) -> None:
    with pytest.raises(ValueError, match=r"n_factors must be positive for .*'factor'"):
        MixtureSpecification(3, (), (0,), shape, n_factors=n_factors)


def test_folding_changes_signs_of_factors_and_nothing_else() -> None:
    rows, hyper = table(WIDE), hyperparameters(WIDE)
    target = MixtureLogPosterior(rows, WIDE, hyper)
    thetas = np.random.default_rng(0).normal(size=(2, 3, target.dimension))
    folded = target.folded(thetas)
    assert not np.array_equal(folded, thetas)
    np.testing.assert_array_equal(np.abs(folded), np.abs(thetas))
    for theta, other in zip(thetas.reshape(6, -1), folded.reshape(6, -1), strict=True):
        value, again = (target.value_and_gradient(some)[0] for some in (theta, other))
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(target.pack(target.unpack(theta)), other, atol=1e-9)

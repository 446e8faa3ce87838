"""A new shape of covariance, planted in the place of full ones: one class serves all numerics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import gamma

from bayesrbf import HybridMixtureClassifier
from bayesrbf.base.rows import MixtureSpecification, Variable
from bayesrbf.mixture import compiled_density
from bayesrbf.mixture.em import EMSettings, fit_mixture, problem_of, starting_point
from bayesrbf.mixture.expectation import ArrayExpectation
from bayesrbf.mixture.gibbs import Assigned, posterior
from bayesrbf.mixture.laws import SHAPES, laws_of
from bayesrbf.mixture.matrices import Matrices
from bayesrbf.mixture.points import component_covariances, free_variables
from bayesrbf.mixture.posterior import MixtureLogPosterior
from bayesrbf.mixture.real_columns import (
    GammaPrecisions,
    RealColumns,
    log_gamma_constant,
)
from tests.cases import hyperparameters, table


class ExchangeableCovariances(RealColumns):
    r"""Equal variances and equal correlations, in units of the columns' scales.

    .. math:: A A' = b I + \frac{a - b}{D} 1 1', \quad a \sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2),
        \quad b \sim \mathrm{Gamma}((D - 1) \nu_0/2 + 1,\ (D - 1)/2)
    """

    form = Matrices

    def shape_variables(self):
        return Variable("along", (), (), "log"), Variable("across", (), (), "log")

    def shape_values(self, unit):
        return dict(zip(("along", "across"), self.two(unit @ unit.swapaxes(1, 2)), strict=True))

    def unit_factors(self, values):
        along, across = (values[name][..., None, None] for name in ("along", "across"))
        d = self.n_features
        return np.linalg.cholesky(across * np.eye(d) + (along - across) / d)

    def shape_gradient(self, values, pull):
        inverse = 1 / pull.row_scales[..., 0]
        found = []
        for value, stress, columns in zip(
            values.values(),
            self.two(self.matrices.scaled(pull.scatter, inverse)),
            (1, self.n_features - 1),
            strict=True,
        ):
            free = 0.5 * (pull.counts[:, 0] - value * (1 + stress)) + pull.powers[:, 0]
            found.append(columns * free)
        return dict(zip(values, found, strict=True))

    def log_normaliser(self, freedom):
        columns = (1, self.n_features - 1)
        return self.n_groups * sum(log_gamma_constant(freedom, n) for n in columns)

    def nearest(self, covariances, scale):
        d, units = self.n_features, np.tile(scale, (len(covariances), 1))
        along, across = self.two(self.matrices.scaled(covariances, 1 / units))[..., None, None]
        return self.matrices.scaled(across * np.eye(d) + (along - across) / d, units)

    def conjugate(self, scales, cells, inner):
        columns = np.array([1, self.n_features - 1])
        shapes = 1 + 0.5 * cells[:, :1] * columns
        return GammaPrecisions(scales, shapes, self.two(inner).T * columns, self)

    def two(self, matrices):
        """Means of the eigenvalues along 1 and across it, of every matrix."""
        d = self.n_features
        along = matrices.sum(axis=(-1, -2)) / d
        return np.stack([along, (np.trace(matrices, axis1=-2, axis2=-1) - along) / (d - 1)])


@pytest.fixture
def planted(monkeypatch) -> Iterator[MixtureSpecification]:
    """A mixture whose full covariances are exchangeable; the kernels of draws do not know them."""
    monkeypatch.setitem(SHAPES, "full", ExchangeableCovariances)
    monkeypatch.setattr(compiled_density, "KNOWN", ())
    clear()
    yield MixtureSpecification(3, (2,), (0, 0, 1))
    clear()


def clear() -> None:
    """Forget what is known of structures by their specification."""
    laws_of.cache_clear()
    free_variables.cache_clear()


@pytest.mark.parametrize("depends", [False, True])
def test_a_shape_that_needs_the_order_of_columns_has_the_users(
    planted, monkeypatch, depends
) -> None:
    monkeypatch.setattr(ExchangeableCovariances, "depends_on_order", depends)
    cells = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 5.0, 0.1]
    orders = []
    for columns in ([0, 1, 2], [2, 0, 1]):
        model = HybridMixtureClassifier(
            1, calibrate=False, objective="likelihood", column_transforms=None
        )
        fit = model.set_params(covariance_type="full", shared_covariance=False)
        fit.fit(cells[:, columns], np.arange(60) % 2)
        orders.append(np.array(columns)[fit.model_.order.features].tolist())
    assert (orders[0] == orders[1]) == (not depends)
    assert not depends or orders == [[0, 1, 2], [2, 0, 1]]


@pytest.mark.parametrize("jacobian", [False, True])
def test_a_planted_shape_has_a_gradient(planted, jacobian: bool) -> None:
    target = MixtureLogPosterior(
        table(planted, n_obs=40, missing=0.2), planted, hyperparameters(planted, 0.5, 2.0)
    )
    theta = np.random.default_rng(0).normal(size=target.points.dimension)
    gradient = target.value_and_gradient(theta, jacobian=jacobian)[1]
    slope = approx_fprime(theta, lambda t: target.value_and_gradient(t, jacobian=jacobian)[0])
    np.testing.assert_allclose(gradient, slope, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(target.pack(target.unpack(theta)), theta, atol=1e-10)


def test_em_never_falls_under_a_planted_shape(planted) -> None:
    table_, hyper = table(planted, n_obs=40, missing=0.2), hyperparameters(planted, 0.5, 2.0)
    step = problem_of(ArrayExpectation(table_, planted), planted, hyper).step
    point, last = starting_point(table_, planted, hyper, np.random.default_rng(0)), -np.inf
    for _ in range(12):
        now = step(point)
        assert now.log_posterior >= last - 1e-10 * abs(now.log_posterior)
        point, last = now.following, now.log_posterior


def test_a_planted_shape_ends_at_a_mode(planted) -> None:
    table_, hyper = table(planted, n_obs=60, missing=0.2), hyperparameters(planted)
    rng = np.random.default_rng(0)
    fit = fit_mixture(table_, planted, hyper, EMSettings(rng, tol=1e-14, max_iter=5000))
    target = MixtureLogPosterior(table_, planted, hyper)
    gradient = target.value_and_gradient(target.pack(fit.parameters), jacobian=False)[1]
    np.testing.assert_allclose(gradient, 0, atol=2e-4)
    for covariance in component_covariances(fit.parameters, planted):
        assert np.ptp(np.diag(covariance)) < 1e-9 * covariance[0, 0]


def test_a_planted_shape_is_drawn_from_its_prior(planted) -> None:
    hyper, one = hyperparameters(planted, 0.5, 2.0), replace(planted, component_class=(0,))
    none = (np.zeros(1), np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3, 3)))
    prior = posterior(Assigned(*none, (np.zeros((1, 2)),)), hyper, one)
    rng, law = np.random.default_rng(1), laws_of(one).reals
    factors = np.concatenate([prior.draw(rng).precisions_cholesky for _ in range(4000)])
    found, total = law.shape_values(factors * law.row_scales(hyper)), 0.0
    for value, columns in zip(found.values(), (1, 2), strict=True):
        freedom = hyper.degrees_of_freedom
        expected = gamma(columns * freedom / 2 + 1, scale=2 / columns)
        assert abs(value.mean() - expected.mean()) < 5 * expected.std() / 4000**0.5
        total = total + expected.logpdf(value)
    stacked = prior.precisions.stacked([prior.precisions])
    np.testing.assert_allclose(stacked.log_densities(factors)[0, :, 0], total)

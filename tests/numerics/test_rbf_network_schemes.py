"""The published rounds of RBF networks: fixed points, growth, components that leave."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.rbf_network.alternation import Alternation, imputed
from bayesrbf.numerics.rbf_network.elastic_net_output import Classes, OutputLayer
from bayesrbf.numerics.rbf_network.network_components import (
    idle_components,
    with_components_at,
    without,
)
from bayesrbf.numerics.rbf_network.network_fit import fit_joint
from bayesrbf.numerics.rbf_network.network_prior import relative_sizes
from bayesrbf.numerics.rbf_network.network_rows import Network
from bayesrbf.numerics.rbf_network.published_fit import NetworkProblem, Scheme, fit_published
from bayesrbf.records.rbf_network import (
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from tests.cases import structure, table
from tests.numerics.rbf_networks import prior, rows_and_labels, specified

pytestmark = pytest.mark.slow


def run(specification, scheme=None, rows=None, **settings):
    table_rows, output = rows_and_labels() if rows is None else rows
    settings = prior(specification, **{"intercept_scale": np.inf} | settings)
    problem = NetworkProblem(table_rows, output, settings, scheme or Scheme(), 60, 1e-4)
    return fit_published(problem, specification, rng=np.random.default_rng(0), n_init=2)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("link", [0.0, 50.0, np.inf])
def test_rounds_end_at_their_own_fixed_point(shared, link):
    """After the last round the weights obey the link; the output layer is optimal."""
    rows, output = rows_and_labels()
    specification = specified(shared)
    fit = run(specification, link=link, l1=0.0)
    rounds = Alternation(
        rows, output, specification, prior(specification, link=link, l1=0.0, intercept_scale=np.inf)
    )
    again = rounds.step(fit.parameters)
    np.testing.assert_allclose(again.mixture.weights, fit.parameters.mixture.weights, atol=0.02)
    if np.isinf(link):
        share = relative_sizes(fit.parameters.coefficients, specification)
        np.testing.assert_allclose(fit.parameters.mixture.weights, share, rtol=1e-10)
    assert np.isfinite(fit.joint).all()
    assert fit.joint.size == fit.conditional.size
    linear = Network(rows, specification).linear(fit.parameters)
    known = output.labels >= 0
    assert (linear.argmax(1) == output.labels)[known].mean() > 0.85


def test_an_output_sees_its_own_mixture_alone():
    specification = specified(shared=False)
    fit = run(specification, l1=0.0)
    assert np.all(fit.parameters.coefficients[~specification.connected] == 0)
    assert np.any(fit.parameters.coefficients[specification.connected] != 0)


def test_without_a_link_the_hidden_layer_is_em():
    """No label reaches the mixture: its log posterior rises as EM's does."""
    rows, output = rows_and_labels()
    specification = specified()
    settings = prior(specification, link=0.0, intercept_scale=np.inf)
    start = fit_mixture(
        rows,
        specification.mixture,
        settings.mixture,
        rng=np.random.default_rng(0),
        tol=1e-12,
        max_iter=5000,
    ).parameters
    rounds = Alternation(rows, output, specification, settings)
    layer = OutputLayer.empty(specification)
    begin = RBFNetworkParameters(start, layer.coefficients, layer.intercepts)
    following = rounds.step(begin).mixture
    np.testing.assert_allclose(following.means, start.means, atol=1e-4)
    np.testing.assert_allclose(following.weights, start.weights, atol=1e-4)


def test_idle_components_leave_and_never_the_last():
    specification = specified(shared=False)
    fit = run(specification, Scheme(annihilate=True), l1=1e4)
    sizes = np.bincount(fit.specification.mixture.component_class)
    assert sizes.tolist() == [1, 1]
    np.testing.assert_allclose(fit.parameters.mixture.weights, 1.0)
    assert not idle_components(fit.parameters, fit.specification).any()
    kept = run(specified(k=5), Scheme(annihilate=True), l1=2.0)
    assert 1 <= kept.specification.mixture.n_components < 5


def test_growth_joins_components_up_to_the_most():
    specification = specified(k=1)
    fit = run(specification, Scheme(growth=(1, 4)), l1=0.0, link=np.inf)
    assert 1 < fit.specification.mixture.n_components <= 4
    assert fit.conditional[-1] > fit.conditional[0]


@pytest.mark.parametrize("covariance_type", ["full", "tied", "spherical"])
def test_what_joins_can_leave_again(covariance_type):
    """The larger network with the new components taken out is the network before."""
    rows, _ = rows_and_labels()
    mixture = structure(covariance_type, False, (0, 0, 1, 1), 2, (3,))
    specification = RBFNetworkSpecification(mixture, 2)
    problem = NetworkProblem(rows, rows_and_labels()[1], prior(specification), Scheme(), 1, 1e-4)
    fit = fit_published(problem, specification, rng=np.random.default_rng(0), n_init=1)
    places = np.array([[0, 1], [2, 3]])
    larger, structure_of_larger = with_components_at(fit.parameters, specification, rows, places)
    assert structure_of_larger.mixture.component_class == (0,) * 4 + (1,) * 4
    np.testing.assert_allclose(larger.mixture.means[2], np.nan_to_num(rows.real[0]))
    new = np.array([False, False, True, True] * 2)
    assert np.all(larger.coefficients[:, new] == 0)
    back, structure_of_back = without(larger, structure_of_larger, new)
    assert structure_of_back == specification
    np.testing.assert_allclose(back.coefficients, fit.parameters.coefficients)
    np.testing.assert_allclose(back.mixture.weights, fit.parameters.mixture.weights)
    np.testing.assert_allclose(
        back.mixture.precisions_cholesky, fit.parameters.mixture.precisions_cholesky
    )


def test_imputing_changes_rows_with_holes_alone():
    rows, _ = rows_and_labels()
    specification = specified()
    fit = run(specification, Scheme(impute=True))
    filled = imputed(rows, fit.parameters.mixture, specification)
    assert not np.isnan(filled.real).any()
    known = ~np.isnan(rows.real)
    np.testing.assert_array_equal(filled.real[known], rows.real[known])
    complete = rows_and_labels(missing=0.0)
    marginal = run(specification, rows=complete)
    imputing = run(specification, Scheme(impute=True), rows=complete)
    np.testing.assert_allclose(marginal.joint, imputing.joint)
    assert not np.allclose(run(specification).conditional[-1], fit.conditional[-1])


def test_falls_are_counted():
    fit = run(specified(), link=1e4, l1=0.0)
    up_and_down = replace(fit, joint=np.array([0.0, 1.0, 0.5, 0.5, 2.0]), conditional=np.zeros(5))
    assert up_and_down.falls == 1


def test_densities_beyond_floats_stay_finite():
    """300 columns about a narrow component: the feature is held, the answer is finite."""
    mixture = structure("diag", False, (0, 0), 300)
    specification = RBFNetworkSpecification(mixture, 2, "density")
    rows = table(mixture, n_obs=10, missing=0.0)
    tiny = replace(rows, real=1e-6 * rows.real, labels=np.zeros(10, np.intp))
    settings = prior(specification)
    weak = replace(settings.mixture, degrees_of_freedom=1e-9, scale=np.full(300, 1e-6))
    settings = replace(settings, mixture=weak)
    labels = Classes(np.arange(10) % 2)
    fit = fit_joint(
        tiny, labels, specification, settings, rng=np.random.default_rng(0), max_iter=20
    )
    assert np.isfinite(fit.joint).all()
    assert np.isfinite(Network(tiny, specification).linear(fit.parameters)).all()

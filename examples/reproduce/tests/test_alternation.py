"""Published alternations: fixed points, growth, components that leave, and their classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bayesrbf.families.rbf_network.posterior import Network, OutputLayer, relative_sizes
from bayesrbf.families.rbf_network.records import RBFNetworkParameters, RBFNetworkSpecification
from bayesrbf.mixture.em import EMSettings, fit_mixture
from reproduce.alternation import (
    AlternatingFit,
    AlternatingNetwork,
    Problem,
    Rounds,
    fit_alternation,
    idle_components,
    with_components_at,
    without,
)
from tests.cases import structure
from tests.families.rbf_network.rbf_networks import prior, rows_and_labels, specified

SCHEMES = ("em_lr", "em_lr_link", "em_lr_link_k", "caetano")


def problem_of(specification: RBFNetworkSpecification, l1: float = 0.5, **scheme: Any) -> Problem:
    rows, output = rows_and_labels()
    return Problem(rows, output, prior(specification, l1=l1, intercept_scale=np.inf), **scheme)


def run(specification: RBFNetworkSpecification, **settings: Any) -> AlternatingFit:
    problem = problem_of(specification, **settings)
    return fit_alternation(problem, specification, rng=np.random.default_rng(0), n_init=2)


@pytest.mark.slow
@pytest.mark.parametrize("link", [0.0, 50.0, np.inf])
def test_rounds_end_at_their_own_fixed_point(link: float) -> None:
    """After the last round the weights obey the link; the output layer is optimal."""
    rows, output = rows_and_labels()
    specification = specified()
    fit = run(specification, link=link, l1=0.0)
    rounds = Rounds(problem_of(specification, link=link, l1=0.0), specification)
    again = rounds.step(fit.parameters)
    np.testing.assert_allclose(again.mixture.weights, fit.parameters.mixture.weights, atol=0.02)
    if np.isinf(link):
        share = relative_sizes(fit.parameters.coefficients)
        np.testing.assert_allclose(fit.parameters.mixture.weights, share, rtol=1e-10)
    assert np.isfinite(fit.joint).all()
    assert fit.joint.size == fit.conditional.size
    linear = Network(rows, specification).linear(fit.parameters)
    known = output.labels >= 0
    assert (linear.argmax(1) == output.labels)[known].mean() > 0.85


@pytest.mark.slow
def test_without_a_link_the_hidden_layer_is_em() -> None:
    """No label reaches the mixture: its log posterior rises as EM's does."""
    rows, _ = rows_and_labels()
    specification = specified()
    problem = problem_of(specification)
    start = fit_mixture(
        rows,
        specification.mixture,
        problem.prior.mixture,
        EMSettings(np.random.default_rng(0), tol=1e-12, max_iter=5000),
    ).parameters
    layer = OutputLayer.empty(specification)
    begin = RBFNetworkParameters(start, layer.coefficients, layer.intercepts)
    following = Rounds(problem, specification).step(begin).mixture
    np.testing.assert_allclose(following.means, start.means, atol=1e-4)
    np.testing.assert_allclose(following.weights, start.weights, atol=1e-4)


def test_labels_are_no_classes_of_the_mixture() -> None:
    """Whatever labels the rows carry, by the compiled E-step as by NumPy's."""
    mixture = structure("full", False, (0, 0), 2, (3,))
    specification = RBFNetworkSpecification(mixture, 2)
    fits = []
    for labels in (np.zeros(60, np.intp), np.arange(60) % 3):
        problem = problem_of(specification, max_iter=3)
        labelled = replace(problem.observations, labels=labels)
        problem = replace(problem, observations=labelled)
        fit = fit_alternation(problem, specification, rng=np.random.default_rng(0), n_init=1)
        fits.append(Network(labelled, specification).linear(fit.parameters))
    np.testing.assert_array_equal(*fits)


@pytest.mark.slow
def test_idle_components_leave_and_never_the_last() -> None:
    fit = run(specified(), annihilate=True, l1=1e4)
    assert fit.specification.mixture.n_components == 1
    np.testing.assert_allclose(fit.parameters.mixture.weights, 1.0)
    assert not idle_components(fit.parameters).any()
    kept = run(specified(k=5), annihilate=True, l1=2.0)
    assert 1 <= kept.specification.mixture.n_components < 5


@pytest.mark.slow
def test_growth_joins_components_up_to_the_most() -> None:
    fit = run(specified(k=1), growth=(1, 4), l1=0.0, link=np.inf)
    assert 1 < fit.specification.mixture.n_components <= 4
    assert fit.conditional[-1] > fit.conditional[0]


@pytest.mark.parametrize("covariance_type", ["full", "tied", "spherical"])
def test_what_joins_can_leave_again(covariance_type: str) -> None:
    """The larger network with the new components taken out is the network before."""
    rows, _ = rows_and_labels()
    mixture = structure(covariance_type, False, (0, 0), 2, (3,))
    specification = RBFNetworkSpecification(mixture, 2)
    problem = problem_of(specification, max_iter=1)
    fit = fit_alternation(problem, specification, rng=np.random.default_rng(0), n_init=1)
    larger, structure_of_larger = with_components_at(
        fit.parameters, specification, rows, np.array([0, 1])
    )
    assert structure_of_larger.mixture.component_class == (0,) * 4
    np.testing.assert_allclose(larger.mixture.means[2], np.nan_to_num(rows.real[0]))
    new = np.array([False, False, True, True])
    assert np.all(larger.coefficients[:, new] == 0)
    back, structure_of_back = without(larger, structure_of_larger, new)
    assert structure_of_back == specification
    np.testing.assert_allclose(back.coefficients, fit.parameters.coefficients)
    np.testing.assert_allclose(back.mixture.weights, fit.parameters.mixture.weights)
    np.testing.assert_allclose(
        back.mixture.precisions_cholesky, fit.parameters.mixture.precisions_cholesky
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_classify_a_table_with_holes_and_hidden_labels(scheme: str) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    X = X.mask(rng.random(X.shape) < 0.15)
    X["size"] = np.where(rng.random(150) < 0.1, None, np.where(y == 2, "big", "small"))
    truth = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    labels = truth.copy()
    labels[rng.random(150) < 0.3] = None
    model = AlternatingNetwork(
        3, scheme=scheme, grow=(2, 5), n_init=1, max_iter=60, tol=1e-3, random_state=0
    )
    p = model.fit(X, labels).predict_proba(X)
    assert (model.predict(X) == truth).mean() > 0.75
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    order = X.columns[::-1]
    other = AlternatingNetwork(**model.get_params()).fit(X[order], labels)
    np.testing.assert_allclose(other.predict_proba(X[order]), p, atol=1e-9)


def test_components_that_no_output_uses_leave() -> None:
    X, y = load_iris(return_X_y=True)
    model = AlternatingNetwork(8, l1=3.0, n_init=1, max_iter=50, tol=1e-3, random_state=0)
    assert model.fit(X, y).coef_.shape[1] < 8

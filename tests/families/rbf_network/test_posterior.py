"""The log posterior of an RBF network: gradient, units, symmetries, limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_softmax
from scipy.stats import dirichlet

from bayesrbf.families.rbf_network.posterior import Link, log_elastic_net_constant, relative_sizes
from bayesrbf.families.rbf_network.records import RBFNetworkSpecification
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import first_quick, structure, table
from tests.families.rbf_network.rbf_networks import network, random_theta

FEATURES = ("density", "responsibility", "log_density")


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("response", first_quick(["classes", "number"]))
@pytest.mark.parametrize(
    ("covariance_type", "n_features", "levels"),
    [
        ("full", 2, (3,)),
        ("diag", 1, (2, 2)),
        pytest.param("tied", 2, (), marks=pytest.mark.slow),
        pytest.param("spherical", 3, (), marks=pytest.mark.slow),
        pytest.param("full", 0, (3,), marks=pytest.mark.slow),
    ],
)
def test_gradient_equals_central_differences(
    features, response, covariance_type, n_features, levels
):
    target = network(features, response, covariance_type, n_features, levels)
    theta = random_theta(target)
    for jacobian in (True, False):
        _, gradient = target.value_and_gradient(theta, jacobian)
        for i, scale in enumerate(target.scales):
            step = np.zeros(theta.size)
            step[i] = 1e-5 * scale
            above, below = (
                target.value_and_gradient(theta + s, jacobian)[0] for s in (step, -step)
            )
            assert gradient[i] == pytest.approx((above - below) / (2 * step[i]), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("away", [-1000.0, 1000.0])
def test_a_search_may_try_a_noise_precision_that_is_no_number(away: float) -> None:
    target = network(response="number")
    theta = random_theta(target)
    theta[-1] = away  # its logarithm
    assert not np.isfinite(target.evaluate(theta)[0])


@pytest.mark.parametrize("features", FEATURES)
def test_without_responses_what_remains_is_the_mixture(features):
    """With kappa 1, without link and responses, the mixture's log posterior and priors remain."""
    target = network(features, link=0.0, kappa=1.0)
    target._output.labels[:] = -1
    theta = random_theta(target)
    mixture = target.network.mixture
    alone = MixtureLogPosterior(table(mixture, n_obs=15), mixture, target.prior.mixture)
    value, gradient = target.value_and_gradient(theta)
    expected, slope = alone.value_and_gradient(theta[: alone.dimension])
    np.testing.assert_allclose(gradient[: alone.dimension], slope, atol=1e-10)
    w, b = np.split(theta[alone.dimension :], [-3])
    l1, l2 = target.prior.l1, target.prior.l2
    integral = 2 * quad(lambda t: np.exp(-l1 * t - l2 * t**2 / 2), 0, np.inf)[0]
    elastic = -l1 * np.abs(w).sum() - l2 * (w**2).sum() / 2 - w.size * np.log(integral)
    wide = -(b**2).sum() / 200 - 3 * np.log(10 * np.sqrt(2 * np.pi))
    assert value == pytest.approx(expected + elastic + wide, rel=1e-12)


def test_the_elastic_net_integrates_to_one():
    for l1, l2 in [(0.7, 0.0), (0.0, 2.0), (3.0, 0.2), (40.0, 1e-3)]:
        integral = 2 * quad(lambda t, a=l1, b=l2: np.exp(-a * t - b * t**2 / 2), 0, 40)[0]
        assert log_elastic_net_constant(l1, l2) == pytest.approx(np.log(integral), abs=1e-8)


def test_the_link_is_a_dirichlet_about_the_shares():
    rng = np.random.default_rng(3)
    weights, w = rng.dirichlet(np.ones(3)), rng.normal(size=(3, 3))
    share = relative_sizes(w)
    np.testing.assert_allclose(share, np.abs(w).sum(0) / np.abs(w).sum(), atol=1e-5)
    link = Link.at(weights, w, 1.5, 20.0)
    expected = dirichlet.logpdf(weights, 1.5 + 20 * share) - dirichlet.logpdf(weights, [1.5] * 3)
    assert link.value == pytest.approx(expected, rel=1e-9)
    for k in range(3):
        up, down = w.copy(), w.copy()
        up[0, k] += 1e-6 * np.sign(w[0, k])
        down[0, k] -= 1e-6 * np.sign(w[0, k])
        slope = (
            Link.at(weights, up, 1.5, 20.0).value - Link.at(weights, down, 1.5, 20.0).value
        ) / 2e-6
        assert link.by_size[k] == pytest.approx(slope, rel=1e-5)
    nothing = Link.at(weights, np.zeros((3, 3)), 1.5, 20.0)
    assert np.isfinite(nothing.value)  # no output weight: equal shares, and no 0/0
    np.testing.assert_allclose(nothing.counts, 20 / 3)


def test_reordering_components_changes_no_density():
    target = network(link=7.0)
    theta = random_theta(target)
    order = np.array([2, 0, 1])
    moved = target.permute(theta, order)
    assert not np.allclose(moved, theta)
    assert target.value_and_gradient(moved)[0] == pytest.approx(
        target.value_and_gradient(theta)[0], rel=1e-12
    )
    np.testing.assert_allclose(
        target.component_log_joint(moved), target.component_log_joint(theta)[:, order]
    )
    np.testing.assert_allclose(target.permute(moved, np.argsort(order)), theta, atol=1e-12)


@pytest.mark.parametrize("response", ["classes", "number"])
def test_pack_inverts_unpack(response):
    target = network(response=response)
    theta = random_theta(target)
    np.testing.assert_allclose(target.pack(target.unpack(theta)), theta, atol=1e-10)


@pytest.mark.parametrize("features", FEATURES)
def test_the_predictor_is_the_likelihood_of_labelled_rows(features):
    """log p(c | x) and log p(x) of the training rows, put together again."""
    target = network(features)
    theta = random_theta(target)
    rows = table(target.network.mixture, n_obs=15)
    said = target.predictor(rows)(theta)
    log_density, log_p = said.log_density, log_softmax(said.log_probabilities, axis=1)
    mixture = MixtureLogPosterior(rows, target.network.mixture, target.prior.mixture)
    np.testing.assert_allclose(log_density, mixture.pointwise(theta[: mixture.dimension]))
    labels = target._output.labels
    known = labels >= 0
    conditional = np.where(known, log_p[np.arange(15), np.maximum(labels, 0)], 0)
    np.testing.assert_allclose(target.pointwise(theta), conditional + 0.4 * log_density)


def test_a_mixture_per_output_is_refused():
    apart = structure("full", False, (0, 1, 2), 2, (3,))
    with pytest.raises(ValueError, match="a mixture of one class"):
        RBFNetworkSpecification(apart, 3)

"""How much class probabilities move under half and twice the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixturePrior,
    RBFNetworkClassifier,
    StackedClassifier,
)
from bayesrbf.base.priors import POOL_PRIOR, Objective, PoolPrior
from bayesrbf.families.kernel_network import posterior as layer
from bayesrbf.families.stack import intervals
from bayesrbf.families.stack import posterior as pools
from bayesrbf.fit import calibration
from bayesrbf.fit.sensitivity import POWERS, PriorSensitivity, _refitted, prior_sensitivity
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.laplace import mode_of
from bayesrbf.mixture.objective import HybridLogPosterior
from tests.cases import generative

N = 24
LABELS = np.arange(N) % 2
Y = np.array(["no", "yes"])[LABELS]
X = np.random.default_rng(0).normal(size=(N, 2)) + 1.5 * LABELS[:, None]
NEW = np.random.default_rng(1).normal(size=(9, 2)) + 0.7


def blend(**options: object) -> HybridMixtureClassifier:
    settings = {"covariance_type": "diag", "column_transforms": None, "calibrate": False}
    return HybridMixtureClassifier(1, random_state=0, **{**settings, **options})


@pytest.mark.parametrize("objective", ["likelihood", "blend"])
def test_the_mode_under_a_power_of_the_prior_is_that_of_the_powered_density(objective):
    fit = blend(objective=objective).fit(X, Y).fitted_
    cells = fit.rows.take(np.arange(9))
    found = _refitted(fit, cells)
    rows, own = fit.model.density.standardise(fit.rows), fit.log_posterior
    plain = getattr(own, "objective", Objective("likelihood"))
    for power, probabilities in zip(POWERS, found, strict=True):

        class Raised(Objective):
            prior_power = power * plain.prior_power

        raised = Raised(**vars(plain))
        target = HybridLogPosterior(rows, own.specification, own.hyperparameters, raised)
        said = fit.model.predictor(target, cells)(mode_of(target, fit.point))
        expected = softmax(said.log_probabilities, axis=1)
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_a_stack_is_fitted_again_under_half_and_twice_its_prior(monkeypatch):
    model = StackedClassifier(["laplace", "normal"], cv=3, random_state=0).fit(X, Y).model_
    for power in POWERS:
        found = model.at_prior_power(power)
        constants = PoolPrior(POOL_PRIOR.pseudo_rows * power, POOL_PRIOR.sd * power**-0.5)
        with monkeypatch.context() as patch:
            for module in (pools, calibration):
                patch.setattr(module, "POOL_PRIOR", constants)
            expected = pools.fit_pools(model.held)
        for one, other in zip((found.pool, *found.knot_pools), expected, strict=True):
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
            assert one.temperature == pytest.approx(other.temperature, abs=1e-4)
            assert one.prior_exponent == pytest.approx(other.prior_exponent, abs=1e-4)


def test_weights_of_draws_are_powers_of_the_log_prior():
    model = blend(objective="likelihood").fit(X, Y).refine("laplace", draws=2000, random_state=0)
    found = model.prior_sensitivity(NEW)
    assert found.attrs["refitted"] == 0
    p = model.predict_posterior(NEW)["predictions"]["probability"]
    log_prior = model.posterior_["log_prior"]["log_prior"]
    for name, power in zip(("half", "as it is", "twice"), POWERS, strict=True):
        ratios = np.exp((power - 1) * (log_prior - log_prior.max()))
        expected = p.weighted(ratios).mean(("chain", "draw"))
        np.testing.assert_allclose(found["probability"].sel(prior=name), expected, atol=0.02)
    change = np.abs(found["probability"] - found["probability"].sel(prior="as it is"))
    np.testing.assert_allclose(found["change"], change.max(("prior", "label")))


def test_a_prior_that_dominates_is_told_and_one_that_does_not_is_not():
    strong = MixturePrior(mean_precision=30.0)
    few = blend(objective="likelihood", prior=strong).fit(X[:8], Y[:8])
    many = blend(objective="likelihood").fit(np.tile(X, (30, 1)) + noise(30 * N), np.tile(Y, 30))
    told = {}
    for name, model in {"few": few, "many": many}.items():
        fit = model.refine("laplace", draws=300, random_state=0).fitted_
        told[name] = prior_sensitivity(fit, fit.rows)
    assert not told["many"].matters
    assert told["few"].matters
    assert told["few"].change.max() > 0.02
    assert "label more rows" in told["few"].message
    assert model.prior_sensitivity(X).attrs["message"].endswith(".")


def noise(n: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(n, 2)) * 0.1


def test_a_change_is_told_only_where_arviz_finds_a_sensitivity_too():
    p = np.array([[[0.5, 0.5]], [[0.4, 0.6]], [[0.3, 0.7]]])
    assert not PriorSensitivity(p, 0.04, False).matters
    assert PriorSensitivity(p, 0.06, False).matters
    assert not PriorSensitivity(0.01 * p, 0.06, True).matters


def test_where_it_makes_no_sense_it_is_refused_by_name():
    network = RBFNetworkClassifier(1, n_init=1, calibrate=False, random_state=0).fit(X, Y)
    exemplars = MedianLVQClassifier(1, sigma="sample", random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"prior_sensitivity\(\) needs draws.*refine"):
        network.prior_sensitivity(X)
    cases = {
        "RBFNetworkClassifier.*l1, l2, link and kappa": network.refine("laplace", draws=20),
        "MedianLVQClassifier.*uniform prior": exemplars.refine("gibbs", draws=20, tune=10),
        "bootstrap": generative(random_state=0).fit(X, Y).refine("bootstrap", draws=5),
    }
    for message, model in cases.items():
        with pytest.raises(ValueError, match=message):
            model.prior_sensitivity(X)
        assert "log_prior" not in model.posterior_


def test_a_kernel_network_is_fitted_again_at_half_and_twice_its_scale():
    def network(scale: float) -> KernelNetworkClassifier:
        return KernelNetworkClassifier(scale=scale, calibrate=False, random_state=0).fit(X, Y)

    found = network(1.0).refine("laplace", draws=30, random_state=0).prior_sensitivity(NEW)
    told = found["probability_at_scale"]
    for one, scale in zip(told, POWERS, strict=True):
        np.testing.assert_allclose(one, network(scale).predict_proba(NEW), atol=1e-9)
    change = float(np.abs(told - told[1]).max())
    assert f"at half and twice the scale it is {change:.3g}." in found.attrs["message"]
    mixture = blend().fit(X, Y).refine("laplace", draws=30, random_state=0)
    assert "probability_at_scale" not in mixture.prior_sensitivity(NEW)


def test_a_kernel_network_is_asked_at_its_rates(monkeypatch):
    fit = KernelNetworkClassifier(calibrate=False, random_state=0).fit(X, Y).fitted_
    own = fit.log_posterior
    for power, found in zip(POWERS, _refitted(fit, fit.rows), strict=True):
        given = own._features, own._labels, own._weights, own.n_classes
        with monkeypatch.context() as patch:
            patch.setattr(layer, "INTERCEPT_SD", layer.INTERCEPT_SD * power**-0.5)
            raised = layer.KernelNetworkLogPosterior(*given, own.weight_precision * power)
            theta = layer.fit_output(raised, tol=1e-9, max_iter=1000).theta
        draws = Draws(theta[None, None], {"lp": np.zeros((1, 1))}, "map")
        expected = fit.replaced(draws=draws, raw=draws).chain.draws(fit.rows)[0][0, 0]
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_stack_is_asked_for_intervals_under_half_and_twice_the_prior_of_its_error(monkeypatch):
    """Against the law with other prior variances; wide ones are the prior's, known ones are not."""
    rng = np.random.default_rng(3)
    some, labels = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = StackedClassifier(["laplace", "normal"], cv=3, random_state=0).fit(some, labels)
    found = model.refine(draws=400).prior_sensitivity(NEW)
    whole = model.uncertainty(NEW)
    for end in ("lower", "upper"):
        np.testing.assert_array_equal(found[end].sel(prior="as it is"), whole[end])
    width = (found["upper"] - found["lower"]).mean(("obs", "label"))
    assert float(width.sel(prior="half")) > float(whole["upper"].mean() - whole["lower"].mean())
    assert float(width.sel(prior="twice")) < float(whole["upper"].mean() - whole["lower"].mean())
    assert "ends of 90 % intervals move by at most" in found.attrs["message"]
    monkeypatch.setattr(intervals, "VARIANCE", intervals.VARIANCE / 2)
    twice = model.refine(draws=400).uncertainty(NEW)
    for end in ("lower", "upper"):
        # Other inducing points may be chosen.
        np.testing.assert_allclose(found[end].sel(prior="twice"), twice[end], atol=1e-3)

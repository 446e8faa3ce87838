"""The estimated prevalence is the likelihood's maximum, and its error is its spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from bayesrbf.answers.probabilities import adapt_prior
from tests.cases import generative

TRAINED = np.array([0.5, 0.3, 0.2])


def population(shares: np.ndarray, n_obs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of rows under the trained prevalence, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=n_obs, p=shares)
    x = rng.normal(size=n_obs) + 1.5 * labels
    joint = -0.5 * (x[:, None] - 1.5 * np.arange(3)) ** 2 + np.log(TRAINED)
    return log_softmax(joint, axis=1), labels


def test_em_ends_at_the_maximum_of_the_likelihood():
    log_p, _ = population(np.array([0.1, 0.2, 0.7]), 300, seed=0)
    shift = adapt_prior(log_p, TRAINED, pseudo_rows=0.0)

    def loss(free: np.ndarray) -> float:
        prior = log_softmax(np.append(free, 0.0))
        return -float(logsumexp(log_p - np.log(TRAINED) + prior, axis=1).sum())

    best = minimize(loss, np.zeros(2), tol=1e-12)
    np.testing.assert_allclose(shift.prior, np.exp(log_softmax(np.append(best.x, 0))), atol=1e-4)
    assert shift.converged
    assert shift.gain == pytest.approx(loss(np.log(TRAINED[:2] / TRAINED[2])) - best.fun, rel=1e-6)


@pytest.mark.slow
def test_the_standard_error_is_the_spread_of_the_estimate():
    truth = np.array([0.2, 0.2, 0.6])
    shifts = [adapt_prior(population(truth, 400, seed)[0], TRAINED) for seed in range(200)]
    estimates = np.array([shift.prior for shift in shifts])
    errors = np.array([shift.standard_error for shift in shifts])
    np.testing.assert_allclose(estimates.std(axis=0), errors.mean(axis=0), rtol=0.25)
    z = (estimates - truth) / errors
    assert np.all(np.abs(z.mean(axis=0)) * np.sqrt(200) < 4.9)
    # The control: errors that forget how alike the classes look would be far too small.
    naive = np.sqrt(truth * (1 - truth) / 400)
    assert np.all(estimates.std(axis=0) > 1.25 * naive)


def test_weights_are_rows_and_no_shift_is_found_where_there_is_none():
    log_p, _ = population(TRAINED, 500, seed=3)
    twice = adapt_prior(np.repeat(log_p, 2, axis=0), TRAINED)
    weighted = adapt_prior(log_p, TRAINED, weights=np.full(500, 2.0))
    np.testing.assert_allclose(weighted.prior, twice.prior, atol=1e-9)
    np.testing.assert_allclose(weighted.covariance, twice.covariance, atol=1e-12)
    once = adapt_prior(log_p, TRAINED)
    assert 0 <= once.gain < 5
    assert np.all(np.abs(once.prior - TRAINED) < 4 * once.standard_error)


def test_a_class_that_is_gone_stays_possible():
    log_p, _ = population(np.array([0.0, 0.4, 0.6]), 2000, seed=4)
    shift = adapt_prior(log_p, TRAINED)
    assert 0 < shift.prior[0] < 0.05
    assert np.all(np.isfinite(shift.covariance))
    np.testing.assert_allclose(shift.covariance.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    "arguments", [{}, {"objective": "blend"}, {"objective": "conditional", "calibrate": True}]
)
def test_an_adapted_classifier_predicts_shifted_rows_better(arguments):
    rng = np.random.default_rng(5)

    def rows(shares: np.ndarray, n_obs: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.choice(2, size=n_obs, p=shares)
        X = rng.normal(size=(n_obs, 2)) + 1.3 * labels[:, None]
        X[rng.random(X.shape) < 0.1] = np.nan
        return X, labels

    X, y = rows(np.array([0.7, 0.3]), 300)
    new, truth = rows(np.array([0.1, 0.9]), 600)
    classifier = generative(random_state=0, **arguments).fit(X, y)

    def log_loss() -> float:
        return -float(classifier.predict_log_proba(new)[np.arange(600), truth].mean())

    before = log_loss()
    found = classifier.estimate_prior(new)
    assert log_loss() == before  # an estimate changes nothing
    assert classifier.adapt_prior(new) is classifier
    assert log_loss() < before - 0.1
    error = found["probability"] - np.array([0.1, 0.9])
    assert np.all(np.abs(error) < 0.1)
    np.testing.assert_allclose(found["trained"], [0.7, 0.3], atol=0.06)
    again = classifier.estimate_prior(new)  # from the trained prevalence, whatever came before
    np.testing.assert_array_equal(again["probability"], found["probability"])

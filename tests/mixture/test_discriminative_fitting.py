"""Fits of every objective: they rise, end at a maximum, and stop where iterations end."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.arrays import class_log_joint
from bayesrbf.base.priors import Fit, Objective, Status
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture import objective as hybrid_log_posterior
from bayesrbf.mixture.em import EMSettings, fit_mixture
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.objective import HybridLogPosterior, climb_objective
from bayesrbf.mixture.points import MixturePoints
from tests.cases import hyperparameters, structure, table


def start_of(rows: Observations, specification: MixtureSpecification) -> MixtureParameters:
    prior = hyperparameters(specification)
    em = EMSettings(np.random.default_rng(0))
    return fit_mixture(rows, specification, prior, em).parameters


def climb(
    rows: Observations,
    specification: MixtureSpecification,
    objective: Objective,
    start: MixtureParameters | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Fit:
    """The fit of an objective from where EM ended."""
    prior = hyperparameters(specification)
    return climb_objective(
        HybridLogPosterior(rows, specification, prior, objective),
        MixturePoints(specification, prior),
        start_of(rows, specification) if start is None else start,
        max_iter=max_iter,
        tolerance=tol * float(rows.weights.sum()),
    )


def accuracy(
    rows: Observations, specification: MixtureSpecification, point: MixtureParameters
) -> float:
    log_joint = prepare(rows, specification).component_log_joint(point)
    joint, _ = class_log_joint(log_joint, specification.class_slices)
    shown = rows.labels >= 0
    return float(np.mean(joint.argmax(axis=1)[shown] == rows.labels[shown]))


@pytest.mark.parametrize(
    ("name", "covariance_type"),
    [
        ("likelihood", "tied"),
        ("conditional", "spherical"),
        ("blend", "diag"),
        ("hinge", "full"),
        ("margin", "tied"),
    ],
)
def test_a_fit_rises_to_a_flat_point(name, covariance_type, monkeypatch):
    # Corners that are less sharp than those of use, so that the last steps are short.
    monkeypatch.setattr(hybrid_log_posterior, "SMOOTHING", 2.0)
    monkeypatch.setattr(hybrid_log_posterior, "SHARPNESS", 1.0)
    specification = structure(covariance_type, classes=(0, 0, 1, 2), n_features=2, levels=(2,))
    rows, prior = table(specification), hyperparameters(specification)
    objective = Objective(name)
    fit = climb(rows, specification, objective, max_iter=1000, tol=1e-12)
    assert fit.status is Status.CONVERGED
    assert np.all(np.diff(fit.trace.log_posterior) >= 0)
    target = HybridLogPosterior(rows, specification, prior, objective)
    value, gradient = target.value_and_gradient(target.pack(fit.parameters), jacobian=False)
    assert value == pytest.approx(fit.log_posterior, rel=1e-9)
    assert np.abs(gradient).max() < 1e-2


def test_the_likelihood_stays_where_em_ended():
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows = table(specification)
    start = start_of(rows, specification)
    fit = climb(rows, specification, Objective(), start)
    assert fit.trace.n_iter <= 5
    np.testing.assert_allclose(fit.parameters.means, start.means, atol=2e-3)


def wrong_model(n_obs: int = 300) -> tuple[Observations, MixtureSpecification]:
    """One Gaussian a class, where one class has an outlying seventh far on the other side."""
    rng = np.random.default_rng(1)
    labels = np.arange(n_obs) % 2
    centre = np.where(labels == 1, 1.5, 0.0)
    centre[np.flatnonzero(labels == 1)[::7]] = -6.0
    real = 0.5 * rng.normal(size=(n_obs, 2))
    real[:, 0] += centre
    real[::9, 1] = np.nan
    return (
        Observations(real, np.empty((n_obs, 0), int), labels, np.ones(n_obs)),
        structure(classes=(0, 1), n_features=2),
    )


@pytest.mark.parametrize("name", ["conditional", "blend", "hinge", "margin"])
def test_objectives_about_classes_classify_better_than_a_wrong_likelihood(name):
    rows, specification = wrong_model()
    start = start_of(rows, specification)
    fit = climb(rows, specification, Objective(name), start)
    before, after = (accuracy(rows, specification, p) for p in (start, fit.parameters))
    assert after > before


def test_a_short_fit_says_that_it_was_stopped():
    rows, specification = wrong_model()
    fit = climb(rows, specification, Objective("margin"), max_iter=3)
    assert fit.status is Status.STOPPED
    assert fit.trace.n_iter == 4  # the start, too


def test_extreme_cells_leave_a_finite_fit():
    rows, specification = wrong_model(60)
    rows.real[0, 1] = 1e8
    rows.real[1] = -1e6
    fit = climb(rows, specification, Objective("conditional"))
    assert np.all(np.isfinite(fit.parameters.precisions_cholesky))
    assert np.isfinite(fit.log_posterior)

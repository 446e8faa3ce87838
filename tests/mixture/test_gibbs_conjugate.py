"""The conjugate posterior of assigned rows: evidence, density and draws against each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import dirichlet, gamma, multivariate_t, norm

from bayesrbf.base import names
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.gaussian import LOG_2PI
from bayesrbf.mixture.gibbs import Assigned, Conjugate, assigned, posterior
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.matrices import lower_entries
from bayesrbf.mixture.points import DeclaredPrior, component_covariances, variables_of
from bayesrbf.mixture.real_columns import ConjugatePrecisions, FullPrecisions
from bayesrbf.mixture.statistics import sum_by_group
from tests.cases import COVARIANCES, hyperparameters, structure

CLASSES = (0, 0, 1, 1)


def case(covariance_type: str, shared_covariance: bool, n_obs: int = 9) -> tuple:
    """Rows with components: component 3 has none, and holes where none need be drawn."""
    specification = structure(covariance_type, shared_covariance, CLASSES, 3, (2, 3))
    rng = np.random.default_rng(5)
    real = rng.normal(size=(n_obs, 3)) * [1, 2, 0.5] + 1
    codes = np.stack([rng.integers(0, n, n_obs) for n in (2, 3)], axis=1)
    codes[::4] = -1
    if specification.shape != "full":
        real[::3, 1] = np.nan
    components = np.arange(n_obs) % 3
    return specification, hyperparameters(specification, 0.5, 2.0), real, codes, components


@dataclass(frozen=True)
class Given:
    """Rows with components, and the model they belong to."""

    statistics: Assigned
    hyperparameters: MixtureHyperparameters
    specification: MixtureSpecification

    @property
    def posterior(self) -> Conjugate:
        return posterior(self.statistics, self.hyperparameters, self.specification)


def log_density(given: Given, parameters: MixtureParameters) -> float:
    """Density of the conjugate posterior by SciPy, in the constrained variables."""
    specification, hyper = given.specification, given.hyperparameters
    rows = given.statistics
    values = variables_of(parameters, hyper, specification)
    total = 0.0
    counts = np.bincount(specification.component_class, weights=rows.counts)
    concentrations = {names.CLASS_PROBABILITIES: counts + hyper.class_concentration}
    for index, part in enumerate(specification.class_slices):
        name = names.class_weights(index, specification.n_classes)
        concentrations[name] = rows.counts[part] + hyper.weight_concentration
    for name, alpha in concentrations.items():
        total += dirichlet.logpdf(values[name], alpha)
    for index, prior in enumerate(hyper.category_concentrations):
        for row, n in zip(
            values[names.category_probability(index)], rows.categories[index], strict=True
        ):
            total += dirichlet.logpdf(row, prior + n)
    return total + _log_normal(given, parameters) + _log_factor(given, values)


def _log_normal(given: Given, parameters: MixtureParameters) -> float:
    """Density of the means given the covariances."""
    rows, hyper, specification = (
        given.statistics,
        given.hyperparameters,
        given.specification,
    )
    covariances = component_covariances(parameters, specification)
    total = 0.0
    for k in range(specification.n_components):
        strength = rows.cells[k] + hyper.mean_precision
        centre = (
            rows.cells[k] * rows.centres[k] + hyper.mean_precision * hyper.location
        ) / strength
        spread = covariances[k] / np.sqrt(np.outer(strength, strength))
        deviation = parameters.means[k] - centre
        root = np.linalg.cholesky(spread)
        total += norm.logpdf(np.linalg.solve(root, deviation)).sum() - np.log(np.diag(root)).sum()
    return total


def _log_factor(given: Given, values: dict[str, np.ndarray]) -> float:
    """Density of the variables behind the precision factors, group by group."""
    rows, hyper, specification = (
        given.statistics,
        given.hyperparameters,
        given.specification,
    )
    scales, freedom = laws_of(specification).reals.base_scales(hyper), hyper.degrees_of_freedom
    d = specification.n_features
    total = 0.0
    for g, scale in enumerate(scales):
        mine = np.flatnonzero(specification.covariance_group == g)
        cells = rows.cells[mine].sum(axis=0)
        scatter = 0.0
        for k in mine:
            pull = rows.centres[k] - hyper.location
            share = rows.cells[k] / (rows.cells[k] + hyper.mean_precision) * hyper.mean_precision
            squares = np.outer(share * pull, pull)
            scatter = scatter + rows.scatter[k]
            scatter = scatter + (squares if rows.scatter.ndim == 3 else np.diag(squares))
        diagonal = values[names.PRECISION_DIAGONAL].reshape(len(scales), -1)[g]
        if specification.shape == "spherical":
            rate = 0.5 * (d + (scatter / scale**2).sum())
            shape = 0.5 * (cells.sum() + d * freedom) + 1
            total += gamma.logpdf(diagonal, shape, scale=1 / rate).sum()
        elif specification.shape == "diag":
            rate = 0.5 * (1 + scatter / scale**2)
            total += gamma.logpdf(diagonal, 0.5 * (cells + freedom) + 1, scale=1 / rate).sum()
        else:
            inner = np.eye(d) + scatter / np.outer(scale, scale)
            upper = np.linalg.cholesky(inner[::-1, ::-1])[::-1, ::-1]
            unit = np.diag(np.sqrt(diagonal))
            unit[lower_entries(d)] = values[names.PRECISION_LOWER].reshape(len(scales), -1)[g]
            b = upper.T @ unit
            total += gamma.logpdf(np.diag(b) ** 2, 0.5 * (cells + freedom) + 1, scale=2).sum()
            total += norm.logpdf(b[lower_entries(d)]).sum()
            total += (np.log(np.diag(upper)) * (2 + np.arange(d))).sum()
    return total


def log_normaliser(density: Conjugate) -> float:
    """Log integral of a density without its constants, in nats."""

    def log_beta(concentration: np.ndarray) -> float:
        return float(gammaln(concentration).sum() - gammaln(concentration.sum(axis=-1)).sum())

    total = log_beta(density.classes) + sum(log_beta(level) for level in density.levels)
    total += sum(log_beta(density.weights[part]) for part in density.specification.class_slices)
    return (
        total - 0.5 * float(np.log(density.sample_size).sum()) + of_precisions(density.precisions)
    )


def of_precisions(density: ConjugatePrecisions) -> float:
    """The part of precision factors: one more log U_ii for each entry on and below the diagonal."""
    shapes, inner = density.shapes, density.inner
    if not isinstance(density, FullPrecisions):
        return float((gammaln(shapes) - shapes * np.log(0.5 * inner)).sum())
    powers = 2 * shapes + np.arange(inner.shape[1])
    stretch = shapes * np.log(2) - powers * np.log(density.upper.diagonal(0, 1, 2))
    return float(gammaln(shapes).sum() + stretch.sum())


def log_evidence(
    rows: Assigned, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> float:
    """Log probability of rows and of their components, all parameters integrated out, in nats."""
    none = Assigned(
        counts=np.zeros_like(rows.counts),
        cells=np.zeros_like(rows.cells),
        centres=np.zeros_like(rows.centres),
        scatter=np.zeros_like(rows.scatter),
        categories=tuple(np.zeros_like(value) for value in rows.categories),
    )
    after = posterior(rows, hyperparameters, specification)
    before = posterior(none, hyperparameters, specification)
    cells = sum_by_group(rows.cells, specification)
    units = float((cells * (0.5 * LOG_2PI + np.log(after.precisions.scales))).sum())
    return log_normaliser(after) - log_normaliser(before) - units


@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_evidence_is_joint_over_posterior_at_any_point(covariance_type, shared_covariance):
    specification, hyper, real, codes, components = case(covariance_type, shared_covariance)
    given = Given(assigned(real, codes, components, specification), hyper, specification)
    rows = Observations(real, codes, np.asarray(CLASSES)[components], np.ones(len(real)))
    expectation = prepare(rows, specification)
    rng = np.random.default_rng(0)
    nothing = assigned(real[:0], codes[:0], components[:0], specification)
    prior = posterior(nothing, hyper, specification)
    for parameters in (given.posterior.draw(rng), given.posterior.draw(rng), prior.draw(rng)):
        joint = expectation.component_log_joint(parameters)[np.arange(len(real)), components]
        declared = DeclaredPrior(hyper, specification)
        log_joint = joint.sum() + declared.log_density(parameters)
        found = log_joint - log_density(given, parameters)
        assert log_evidence(given.statistics, hyper, specification) == pytest.approx(found)


def test_evidence_of_nothing_is_one():
    specification, hyper, real, codes, components = case("full", False, 0)
    rows = assigned(real, codes, components, specification)
    assert log_evidence(rows, hyper, specification) == pytest.approx(0, abs=1e-12)


def test_one_more_row_has_student_t_density():
    """With one real column the declared prior is a chi-square, and its predictive a Student t."""
    specification = MixtureSpecification(1, (), (0,))
    hyper = hyperparameters(specification, 0.3, 2.0)
    x = np.random.default_rng(1).normal(size=(8, 1)) * 3
    seen = [
        assigned(x[:n], np.zeros((n, 0), int), np.zeros(n, int), specification) for n in range(9)
    ]
    evidence = [log_evidence(rows, hyper, specification) for rows in seen]
    nu, kappa = hyper.degrees_of_freedom, hyper.mean_precision
    for n in range(8):
        past = x[:n, 0]
        centre = (past.sum() + kappa * hyper.location[0]) / (n + kappa)
        squares = (nu + 1) * hyper.scale[0] ** 2 + (past**2).sum() + kappa * hyper.location[0] ** 2
        squares -= (n + kappa) * centre**2
        freedom = n + nu + 2
        shape = squares / freedom * (1 + 1 / (n + kappa))
        truth = multivariate_t([centre], [[shape]], df=freedom).logpdf(x[n])
        assert evidence[n + 1] - evidence[n] == pytest.approx(truth, rel=1e-9)

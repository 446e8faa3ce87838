"""A law of one's own for some columns: counts, in one file, join every step of a mixture.

``tests/inference/test_plug.py`` holds the same law's graph and numerics equal, and draws its
posterior by Laplace, the variational fit and NUTS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from bayesrbf.inference.gibbs import gibbs
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.mixture.conditional import conditional_moments, responsibilities
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.mixture.mixture_log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture.mixture_points import component_covariances, reordered
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.parts.column_law import ColumnLaw, column_law
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.sampling import conditional_draws, sample
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.specification import FurtherColumns, MixtureSpecification, Order
from tests.cases import hyperparameters, structure, table
from tests.poisson_columns import RATES, PoissonColumns

COUNTS = PoissonColumns(("visits", "calls"), shape=2.0, rate=0.5)
Z_BOUND = 4.9


def counted(missing: float = 0.3, **options: object) -> tuple[MixtureSpecification, Observations]:
    """A structure with two columns of counts, and rows with holes in all columns."""
    plain = structure(**options)
    rows = table(plain, missing=missing)
    rng = np.random.default_rng(1)
    counts = rng.poisson(2 + 4 * (np.arange(40) % 2)[:, None], (40, 2)).astype(float)
    counts[rng.random(counts.shape) < missing] = np.nan
    return replace(plain, further=(COUNTS,)), replace(rows, further=(counts,))


def point(specification: MixtureSpecification, seed: int = 0) -> MixtureParameters:
    """A draw of the prior, in standard units."""
    rng = np.random.default_rng(seed)
    prior, size = hyperparameters(specification), specification.n_components
    rows = Observations(
        rng.normal(size=(size, specification.n_features)),
        np.zeros((size, len(specification.levels)), int),
        np.asarray(specification.component_class),
        np.ones(size),
        (rng.poisson(4.0, (size, 2)).astype(float),),
    )
    fit = fit_mixture(rows, specification, prior, rng=rng, max_iter=2)
    rates = rng.gamma(3.0, 2.0, (size, 2))
    return replace(fit.parameters, further={RATES: rates}, means=rng.normal(size=(size, 3)))


def oracle(
    rows: Observations, parameters: MixtureParameters, specification: MixtureSpecification
) -> np.ndarray:
    """Log joint of every row and component, cell by cell, with SciPy."""
    covariances = component_covariances(parameters, specification)
    classes = parameters.class_probabilities[list(specification.component_class)]
    joint = np.empty((rows.n_obs, specification.n_components))
    for n, k in np.ndindex(joint.shape):
        seen = ~np.isnan(rows.real[n])
        joint[n, k] = np.log(classes[k] * parameters.weights[k])
        if seen.any():
            normal = stats.multivariate_normal(
                parameters.means[k, seen], covariances[k][np.ix_(seen, seen)]
            )
            joint[n, k] += normal.logpdf(rows.real[n, seen])
        for j, code in enumerate(rows.codes[n]):
            joint[n, k] += np.log(parameters.category_probabilities[j][k, code]) if code >= 0 else 0
        for j, count in enumerate(rows.further[0][n]):
            if not np.isnan(count):
                joint[n, k] += stats.poisson(parameters.further[RATES][k, j]).logpmf(count)
    return joint


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_log_joints_are_those_of_a_loop_over_the_cells(covariance_type, many):
    specification, rows = counted(covariance_type=covariance_type, levels=(3,))
    parameters = point(specification)
    expectation = prepare(rows, specification)
    if many:
        expectation = expectation.for_many()
    expected = oracle(rows, parameters, specification)
    np.testing.assert_allclose(expectation.component_log_joint(parameters), expected, rtol=1e-9)
    admitted = rows.labels[:, None] == np.asarray(specification.component_class)
    admitted |= rows.labels[:, None] < 0
    pointwise = logsumexp(np.where(admitted, expected, -np.inf), axis=1)
    np.testing.assert_allclose(expectation.statistics(parameters).pointwise, pointwise, rtol=1e-9)


@pytest.mark.parametrize("n_features", [0, 3])
@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_em_never_falls_and_ends_at_a_mode(n_features, acceleration):
    specification, rows = counted(n_features=n_features)
    prior = hyperparameters(specification)
    options = {"rng": np.random.default_rng(0), "tol": 1e-10, "acceleration": acceleration}
    fit = fit_mixture(rows, specification, prior, **options)
    assert (np.diff(fit.trace.log_posterior) > -1e-9).all()
    density = MixtureLogPosterior(rows, specification, prior)
    _, gradient = density.value_and_gradient(density.pack(fit.parameters), jacobian=False)
    np.testing.assert_allclose(gradient, 0, atol=1e-2)


def test_counts_alone_are_told_apart():
    rng = np.random.default_rng(0)
    first = np.arange(200) < 120
    counts = rng.poisson(np.where(first, 2.0, 15.0)[:, None], (200, 2)).astype(float)
    specification = MixtureSpecification(0, (), (0, 0), further=(COUNTS,))
    nothing, labels = np.empty((200, 0)), np.zeros(200, int)
    rows = Observations(nothing, nothing.astype(int), labels, np.ones(200), (counts,))
    fit = fit_mixture(rows, specification, hyperparameters(specification), rng=rng)
    rates = np.sort(fit.parameters.further[RATES][:, 0])
    np.testing.assert_allclose(rates, [2.0, 15.0], rtol=0.2)
    np.testing.assert_allclose(np.sort(fit.parameters.weights), [0.4, 0.6], atol=0.05)


def test_a_missing_count_is_summed_out_and_has_the_moments_of_its_row():
    """Against sums over all counts that the cell could have."""
    specification, rows = counted(classes=(0, 0), n_features=3)
    parameters, cell = point(specification), np.isnan(rows.further[0])
    assert cell.any()
    shares, [law] = (
        responsibilities(rows, parameters, specification),
        laws_of(specification).further,
    )
    means, variances = law.conditional(shares, parameters.further)
    [n, j] = np.argwhere(cell)[0]
    size = 200
    grid = rows.take(np.full(size, n))
    grid.further[0][:, j] = np.arange(size)
    joint = logsumexp(oracle(grid, parameters, specification), axis=1)
    whole = logsumexp(oracle(rows.take(np.array([n])), parameters, specification))
    assert logsumexp(joint) == pytest.approx(whole)
    probabilities = np.exp(joint - whole)
    mean = probabilities @ np.arange(size)
    assert means[n, j] == pytest.approx(mean)
    assert variances[n, j] == pytest.approx(probabilities @ (np.arange(size) - mean) ** 2)
    # What a count says of its row moves the reals, too.
    reals, _ = conditional_moments(grid, parameters, specification)
    hole = np.isnan(rows.real[n])
    assert not hole.any() or np.ptp(reals[:, hole]) > 0.1


def test_samples_and_conditional_draws_have_the_moments():
    specification, rows = counted(classes=(0, 0))
    parameters, n = point(specification), 20_000
    drawn, components = sample(parameters, specification, n, np.random.default_rng(0))
    for k, rates in enumerate(parameters.further[RATES]):
        mine = drawn.further[0][components == k]
        assert (np.abs(mine.mean(0) - rates) < Z_BOUND * np.sqrt(rates / len(mine))).all()
    one = rows.take(np.flatnonzero(np.isnan(rows.further[0]).any(axis=1))[:1])
    [whole] = conditional_draws(
        one.take(np.zeros(n, dtype=int)), parameters, specification, np.random.default_rng(0)
    )
    shares, [law] = responsibilities(one, parameters, specification), laws_of(specification).further
    mean, variance = law.conditional(shares, parameters.further)
    hole = np.isnan(one.further[0][0])
    assert np.isfinite(whole.further[0]).all()
    errors = np.sqrt(variance[0] / n)
    assert (np.abs(whole.further[0].mean(axis=0) - mean[0]) <= Z_BOUND * errors)[hole].all()
    assert (whole.further[0][:, ~hole] == one.further[0][0, ~hole]).all()


def test_gradients_of_other_objectives_reach_the_law():
    specification, rows = counted(levels=(2,))
    density = HybridLogPosterior(
        rows, specification, hyperparameters(specification), Objective("conditional")
    )
    theta = density.pack(point(specification))
    _, gradient = density.value_and_gradient(theta)
    for i in range(density.dimension):
        step = np.zeros(theta.size)
        step[i] = 1e-5
        above, below = (density.value_and_gradient(theta + s * step)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_gibbs_draws_have_the_posterior_of_known_components():
    """One component a class: the rates' posterior is gamma in closed form."""
    specification, rows = counted(classes=(0, 1))
    known = rows.take(rows.labels >= 0)
    known = replace(known, weights=np.ones(known.n_obs))
    prior = hyperparameters(specification)
    density = MixtureLogPosterior(known, specification, prior)
    start = density.pack(point(specification))
    draws = gibbs(density, start, draws=2000, tune=10, chains=2, random_state=0)
    rates = density.constrained(draws.theta.reshape(-1, density.dimension))[RATES]
    for k in range(2):
        cells = known.further[0][known.labels == k]
        shape = np.nansum(cells, axis=0) + COUNTS.shape
        rate = (~np.isnan(cells)).sum(axis=0) + COUNTS.rate
        errors = np.sqrt(shape) / rate / np.sqrt(len(rates))
        assert (np.abs(rates[:, k].mean(axis=0) - shape / rate) < Z_BOUND * errors).all()


def test_the_order_of_columns_and_classes_does_not_matter():
    specification, rows = counted(classes=(0, 0, 1), levels=(2, 3))
    parameters = point(specification)
    order = Order(np.array([2, 0, 1]), np.array([1, 0]), np.array([1, 0]))
    other = order_of(specification, rows, parameters, order)
    given = prepare(rows, specification).statistics(parameters).pointwise
    np.testing.assert_allclose(prepare(*other[:2]).statistics(other[2]).pointwise, given)


def order_of(
    specification: MixtureSpecification,
    rows: Observations,
    parameters: MixtureParameters,
    order: Order,
) -> tuple[Observations, MixtureSpecification, MixtureParameters]:
    """The same in another order of columns and classes."""
    moved = reordered(parameters, order, specification)
    return rows.reordered(order), specification.reordered(order), moved


def test_a_law_that_nobody_registered_is_named():
    with pytest.raises(TypeError, match="FurtherColumns has no law in the numerics"):
        laws_of(MixtureSpecification(0, (), (0,), further=(FurtherColumns(("a",)),)))


@dataclass(frozen=True)
class UnconjugateColumns(PoissonColumns):
    """The same counts, under a law that cannot draw its rates."""


class UnconjugateLaw(column_law.dispatch(PoissonColumns)):  # type: ignore[misc]
    """Counts without conjugate draws."""

    draw = ColumnLaw.draw


column_law.register(UnconjugateColumns, UnconjugateLaw)


def test_gibbs_refuses_a_law_without_conjugate_draws():
    specification, rows = counted()
    specification = replace(specification, further=(UnconjugateColumns(COUNTS.columns),))
    rows = replace(rows, weights=np.ones(rows.n_obs))
    density = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    with pytest.raises(ValueError, match="UnconjugateLaw does not have: use inference='nuts'"):
        density.markov_kernel()


def test_the_prior_of_the_law_is_in_the_declared_prior():
    specification, _ = counted()
    parameters, prior = point(specification), hyperparameters(specification)
    plain = replace(specification, further=())
    expected = stats.gamma(COUNTS.shape, scale=1 / COUNTS.rate)
    rise = DeclaredPrior(prior, specification).log_density(parameters)
    rise -= DeclaredPrior(prior, plain).log_density(parameters)
    assert rise == pytest.approx(expected.logpdf(parameters.further[RATES]).sum())

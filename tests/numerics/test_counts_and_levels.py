"""The laws of counts and of ordered levels, each against SciPy, sums and finite differences.

``tests/inference/test_plug.py`` holds their graph and numerics equal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayesrbf.fitted.mixture_fitting import Solver, fit_mixture_rows
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.mixture.conditional import responsibilities
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.mixture.mixture_log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture.parts.column_law import ColumnLaw
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.records import names
from bayesrbf.records.column_laws import CountColumns, OrdinalColumns
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import FurtherColumns, MixtureSpecification
from bayesrbf.table import canonical_order, distinct
from tests.cases import hyperparameters, random_point, structure, table
from tests.models.further_columns import COUNTS, LEVELS, further_cells

K = 3
Z_BOUND = 4.9
RECORDS = {"counts": (COUNTS, 0), "levels": (LEVELS, 1)}
each_law = pytest.mark.parametrize("name", RECORDS)


def rows_of(name: str, n_rows: int = 60, missing: float = 0.3) -> np.ndarray:
    plain = table(structure(classes=(0, 1)), n_obs=n_rows)
    return further_cells(plain, missing)[RECORDS[name][1]]


def law_of(name: str) -> ColumnLaw:
    specification = MixtureSpecification(0, (), (0,) * K, further=(RECORDS[name][0],))
    return laws_of(specification).further[0]


def values_of(name: str, seed: int = 0, k: int = K) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name == "counts":
        means, dispersions = rng.gamma(2.0, 3.0, (k, 2)), rng.gamma(2.0, 0.5, (k, 2))
        return {names.COUNT_MEANS: means, names.COUNT_DISPERSIONS: dispersions}
    locations, slopes = rng.normal(0, 1.5, (k, 3)), rng.gamma(2.0, 1.0, (k, 3))
    return {names.ORDINAL_LOCATIONS: locations, names.ORDINAL_SLOPES: slopes}


def cell_law(name: str, j: int, values: dict[str, np.ndarray], k: int) -> np.ndarray:
    """Probabilities of every count up to 2000, or of every level, by SciPy."""
    if name == "counts":
        mean, dispersion = (values[key][k, j] for key in values)
        return stats.nbinom(1 / dispersion, 1 / (1 + mean * dispersion)).pmf(np.arange(2000))
    location, slope = (values[key][k, j] for key in values)
    edges = slope * np.array([-np.inf, *LEVELS.cuts[j], np.inf])
    return np.diff(stats.logistic(location).cdf(edges))


@each_law
def test_log_densities_are_those_of_a_loop_over_the_cells(name):
    law, cells, values = law_of(name), rows_of(name), values_of(name)
    expected = np.zeros((len(cells), K))
    for (n, j), cell in np.ndenumerate(cells):
        for k in range(K if not np.isnan(cell) else 0):
            expected[n, k] += np.log(cell_law(name, j, values, k)[int(cell)])
    np.testing.assert_allclose(law.log_density(cells, values), expected, rtol=1e-9, atol=1e-12)


def test_levels_far_in_a_tail_keep_their_log_probability():
    law = law_of("levels")
    values = {
        names.ORDINAL_LOCATIONS: np.full((K, 3), -60.0),
        names.ORDINAL_SLOPES: np.ones((K, 3)),
    }
    found = law.log_density(np.array([[2.0, np.nan, np.nan]]), values)
    expected = logsumexp([-0.5, -1.2], b=[1, -1]) - 60  # both cut points in the exponential tail
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@each_law
def test_statistics_are_linear_in_the_weights(name):
    law, cells = law_of(name), rows_of(name)
    one, two = np.random.default_rng(0).normal(size=(2, len(cells), K))
    both = law.statistics(cells, one - 2 * two)
    expected = law.statistics(cells, one) - 2 * law.statistics(cells, two)
    np.testing.assert_allclose(both, expected, atol=1e-12)


def expected_log_posterior(name, values, cells, weights) -> float:
    law = law_of(name)
    return float((weights * law.log_density(cells, values)).sum() + law.log_prior(values))


@each_law
@pytest.mark.parametrize("seed", [0, 1])
def test_the_gradient_is_the_difference_of_values(name, seed):
    law, cells, values = law_of(name), rows_of(name), values_of(name, seed)
    weights = np.random.default_rng(1).uniform(size=(len(cells), K))
    gradient = law.gradient(values, law.statistics(cells, weights))
    for key, value in values.items():
        for place in np.ndindex(value.shape):
            step = np.zeros(value.shape)
            step[place] = 1e-5 * max(1.0, abs(value[place]))
            above, below = (
                expected_log_posterior(name, values | {key: value + s * step}, cells, weights)
                for s in (1, -1)
            )
            slope = (above - below) / (2 * step[place])
            assert gradient[key][place] == pytest.approx(slope, rel=1e-5, abs=1e-5)


@each_law
def test_the_prior_is_the_declared_one(name):
    values = values_of(name)
    first, second = values.values()
    if name == "counts":
        expected = stats.gamma(1 + 0.1 * np.array(COUNTS.means), scale=10).logpdf(first).sum()
        expected += stats.gamma(2, scale=np.array(COUNTS.dispersions)).logpdf(second).sum()
    else:
        expected = stats.norm(0, 3).logpdf(first).sum() + stats.gamma(2).logpdf(second).sum()
    assert law_of(name).log_prior(values) == pytest.approx(expected)


@each_law
@pytest.mark.parametrize("seed", range(4))
def test_the_mode_is_never_below_the_values_and_is_where_an_optimiser_ends(name, seed):
    law, cells, values = law_of(name), rows_of(name), values_of(name, seed)
    weights = np.random.default_rng(seed).uniform(size=(len(cells), K))
    sums, here = law.statistics(cells, weights), values
    heights = [expected_log_posterior(name, here, cells, weights)]
    for _ in range(30):
        here = law.mode(here, sums)
        heights.append(expected_log_posterior(name, here, cells, weights))
    assert (np.diff(heights) > -1e-9 * np.abs(heights[-1])).all()
    variables = law.variables

    def falling(theta: np.ndarray) -> float:
        first, second = theta.reshape(2, *variables[0].shape)
        first = np.exp(first) if variables[0].transform == "log" else first
        found = dict(zip(values, (first, np.exp(second)), strict=True))
        return -expected_log_posterior(name, found, cells, weights)

    begin = np.concatenate([np.zeros(variables[0].size), np.zeros(variables[1].size)])
    best = minimize(falling, begin, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-13})
    assert heights[-1] >= -best.fun - 1e-6
    slopes = law.gradient(here, sums)
    assert max(np.abs(slope).max() for slope in slopes.values()) < 1e-5


@each_law
def test_a_component_without_rows_is_the_column_itself(name):
    law = law_of(name)
    nothing = law.statistics(rows_of(name), np.zeros((60, K)))
    for key, value in law.mode(values_of(name), nothing).items():
        np.testing.assert_allclose(value, law.prior_mode()[key], rtol=1e-6, atol=1e-6)
    if name == "levels":
        shares = [cell_law(name, j, law.prior_mode(), 0) for j in range(3)]
        cumulated = stats.logistic.cdf(LEVELS.cuts[0])
        np.testing.assert_allclose(np.cumsum(shares[0])[:-1], cumulated)


@each_law
def test_moments_and_samples_are_those_of_the_law(name):
    law, values, n = law_of(name), values_of(name), 40_000
    means, variances = law.moments(values)
    drawn = law.sample(np.zeros(n, int), values, np.random.default_rng(0))
    for j in range(means.shape[1]):
        probabilities = cell_law(name, j, values, 0)
        places = np.arange(probabilities.size)
        mean = probabilities @ places
        assert means[0, j] == pytest.approx(mean)
        assert variances[0, j] == pytest.approx(probabilities @ (places - mean) ** 2, rel=1e-6)
        seen = np.bincount(drawn[:, j].astype(int), minlength=places.size)[: places.size] / n
        errors = np.sqrt(probabilities * (1 - probabilities) / n)
        assert (np.abs(seen - probabilities) <= Z_BOUND * errors + 2 / n).all()


def test_the_prior_is_centred_on_the_rows_that_are_fitted():
    cells, weights = rows_of("counts"), np.random.default_rng(0).uniform(size=60)
    twice = np.concatenate([cells, cells]), np.concatenate([weights, weights])
    one, two = COUNTS.centred(cells, 2 * weights), COUNTS.centred(*twice)
    np.testing.assert_allclose(one.means, two.means)
    np.testing.assert_allclose(one.dispersions, two.dispersions)
    levels = rows_of("levels")
    given = LEVELS.centred(levels, weights)
    assert given.n_levels == LEVELS.n_levels
    counts = np.array([weights[levels[:, 0] == level].sum() + 0.5 for level in range(4)])
    shares = np.cumsum(counts / counts.sum())[:-1]
    np.testing.assert_allclose(stats.logistic.cdf(given.cuts[0]), shares)
    assert FurtherColumns(("a",)).centred(cells, weights) == FurtherColumns(("a",))


def mixed(**options: object) -> tuple[MixtureSpecification, Observations]:
    """A structure with counts and levels beside other columns, and rows with holes."""
    plain = structure(**options)
    rows = table(plain, n_obs=60)
    rows = replace(rows, further=further_cells(rows, 0.3))
    return replace(plain, further=(COUNTS, LEVELS)), rows


@pytest.mark.parametrize("n_features", [0, 2])
@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_em_never_falls_and_ends_at_a_mode(n_features, acceleration):
    specification, rows = mixed(n_features=n_features, levels=(2,))
    prior = hyperparameters(specification)
    options = {"rng": np.random.default_rng(0), "tol": 1e-11, "acceleration": acceleration}
    fit = fit_mixture(rows, specification, prior, max_iter=3000, **options)
    assert (np.diff(fit.trace.log_posterior) > -1e-9).all()
    density = MixtureLogPosterior(rows, specification, prior)
    _, gradient = density.value_and_gradient(density.pack(fit.parameters), jacobian=False)
    np.testing.assert_allclose(gradient, 0, atol=1e-2)


def drawn_point(specification: MixtureSpecification) -> MixtureParameters:
    point = random_point(replace(specification, further=()))
    k = specification.n_components
    return replace(point, further=values_of("counts", 3, k) | values_of("levels", 4, k))


def test_missing_cells_are_summed_out_and_have_the_moments_of_their_row():
    specification, rows = mixed(classes=(0, 0), n_features=2, levels=(3,))
    point = drawn_point(specification)
    shares = responsibilities(rows, point, specification)
    moments = [law.conditional(shares, point.further) for law in laws_of(specification).further]

    def density(some: Observations) -> np.ndarray:
        return logsumexp(prepare(some, specification).component_log_joint(point), axis=1)

    for law, n_values in ((0, 3000), (1, 4)):
        cells = rows.further[law]
        n = int(np.flatnonzero(np.isnan(cells[:, 0]))[0])
        size = n_values
        grid = rows.take(np.full(size, n))
        grid.further[law][:, 0] = np.arange(size)
        joint, whole = density(grid), density(rows.take(np.array([n])))[0]
        assert logsumexp(joint) == pytest.approx(whole, rel=1e-9)
        probabilities = np.exp(joint - whole)
        mean = probabilities @ np.arange(size)
        assert moments[law][0][n, 0] == pytest.approx(mean, rel=1e-6)
        expected = probabilities @ (np.arange(size) - mean) ** 2
        assert moments[law][1][n, 0] == pytest.approx(expected, rel=1e-5)


def test_gradients_of_other_objectives_reach_the_laws():
    specification, rows = mixed(levels=(2,), n_features=1)
    density = HybridLogPosterior(
        rows, specification, hyperparameters(specification), Objective("blend", kappa=0.3)
    )
    theta = density.pack(drawn_point(specification))
    _, gradient = density.value_and_gradient(theta)
    for i in range(density.dimension):
        step = np.zeros(theta.size)
        step[i] = 1e-5
        above, below = (density.value_and_gradient(theta + s * step)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-4)


def fitted(rows: Observations, specification: MixtureSpecification) -> tuple[float, np.ndarray]:
    once, _ = distinct(rows)
    solver = Solver(2, 2000, 1e-10, 0)
    mixture, fit = fit_mixture_rows(once, specification, MixturePrior(), solver)
    return fit.log_posterior, mixture.log_density(rows)


def test_weight_two_is_the_row_twice_and_no_order_matters():
    """Columns and rows come in any order."""
    specification, rows = mixed(classes=(0, 0), n_features=2, levels=(2,))
    height, density = fitted(rows, specification)
    turn = np.random.default_rng(0).permutation(rows.n_obs)
    twice = rows.take(np.concatenate([turn, turn]))
    twice = replace(twice, weights=twice.weights / 2)
    again, copies = fitted(twice, specification)
    assert again == pytest.approx(height, rel=1e-9)
    np.testing.assert_allclose(copies[: rows.n_obs], density[turn], rtol=1e-6)
    counts, levels = rows.further
    moved = replace(
        rows,
        real=rows.real[:, ::-1],
        further=(counts[:, ::-1].copy(), levels[:, [2, 0, 1]].copy()),
    )
    cuts = LEVELS.cuts
    records = (
        CountColumns(COUNTS.columns[::-1], COUNTS.means[::-1], COUNTS.dispersions[::-1]),
        OrdinalColumns(("sex", "stage", "pain"), (cuts[2], cuts[0], cuts[1])),
    )
    found, others = fitted(moved, replace(specification, further=records))
    assert found == pytest.approx(height, rel=1e-9)
    np.testing.assert_allclose(others, density, rtol=1e-6)
    assert np.array_equal(canonical_order(moved).features, 1 - canonical_order(rows).features)


def test_the_law_of_counts_beats_the_normal_one_on_overdispersed_counts():
    """Held-out log probability of counts; the normal density stands for an interval of width 1."""
    rng = np.random.default_rng(0)
    group = rng.random((800, 1)) < 0.4
    counts = rng.negative_binomial(0.8, 1 / (1 + np.where(group, 12.0, 3.0)), (800, 3)) + 0.0
    nothing = np.zeros((800, 0))
    labels, weights = np.zeros(800, int), np.ones(800)
    as_counts = Observations(nothing, nothing.astype(int), labels, weights, (counts,))
    as_reals = Observations(counts, nothing.astype(int), labels, weights)
    record = CountColumns.of(("a", "b", "c"), counts, weights)
    structures = (
        MixtureSpecification(0, (), (0, 0), further=(record,)),
        MixtureSpecification(3, (), (0, 0)),
    )
    scores = []
    for rows, specification in zip((as_counts, as_reals), structures, strict=True):
        solver = Solver(2, 500, 1e-6, 0)
        train, _ = distinct(rows.take(np.arange(400)))
        mixture, _ = fit_mixture_rows(train, specification, MixturePrior(), solver)
        scores.append(mixture.log_density(rows.take(np.arange(400, 800))).mean())
    assert scores[0] > scores[1] + 0.5


def test_the_law_of_levels_beats_the_categorical_one_where_levels_are_ordered():
    """Held-out log probability of seven levels whose latent variable moves with a group."""
    rng = np.random.default_rng(0)
    latent = rng.logistic(size=(900, 3)) + np.where(rng.random((900, 1)) < 0.4, 1.5, -0.5)
    codes = (latent[..., None] > np.array([-2.0, -1.0, 0.0, 0.7, 1.4, 2.5])).sum(axis=-1)
    nothing, labels, weights = np.zeros((900, 0)), np.zeros(900, int), np.ones(900)
    further = (codes.astype(float),)
    record = OrdinalColumns.of(("a", "b", "c"), (7, 7, 7), further[0], weights)
    cases = (
        (
            Observations(nothing, nothing.astype(int), labels, weights, further),
            MixtureSpecification(0, (), (0, 0), further=(record,)),
        ),
        (
            Observations(nothing, codes, labels, weights),
            MixtureSpecification(0, (7, 7, 7), (0, 0)),
        ),
    )
    scores = []
    for rows, specification in cases:
        train, _ = distinct(rows.take(np.arange(150)))
        solver = Solver(2, 500, 1e-6, 0)
        mixture, _ = fit_mixture_rows(train, specification, MixturePrior(), solver)
        scores.append(mixture.log_density(rows.take(np.arange(150, 900))).mean())
    assert scores[0] > scores[1] + 0.05


def test_samples_of_a_mixture_have_counts_and_levels():
    specification, _ = mixed(classes=(0, 0), n_features=1)
    drawn, _ = sample(drawn_point(specification), specification, 500, np.random.default_rng(0))
    counts, levels = drawn.further
    assert (counts >= 0).all()
    assert (levels < LEVELS.n_levels).all()
    np.testing.assert_array_equal(levels, np.round(levels))


def test_gibbs_refuses_laws_without_conjugate_draws():
    specification, rows = mixed(n_features=1)
    rows = replace(rows, weights=np.ones(rows.n_obs))
    density = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    with pytest.raises(ValueError, match="CountLaw does not have: use inference='nuts'"):
        density.markov_kernel()

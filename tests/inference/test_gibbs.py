from __future__ import annotations

import _thread
import itertools
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest

from bayesrbf.base.log_posterior import MarkovKernel
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.nuts import gibbs
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import hyperparameters, structure, table
from tests.inference.moments import BOUND, moment_errors
from tests.inference.targets import Gaussian
from tests.inference.test_conjugate import problem, worst_errors

pytestmark = pytest.mark.usefixtures("unchecked")


@dataclass
class Autoregression(MarkovKernel):
    """A reversible kernel of a Gaussian, theta' = m + r (theta - m) + noise, that counts."""

    target: Gaussian
    memory: float = 0.5
    learnt: list[tuple[int, ...]] = field(default_factory=list)

    def sweep(self, theta, rng):
        noise = np.linalg.cholesky(self.target.covariance) @ rng.standard_normal(theta.size)
        step = self.memory * (theta - self.target.mean)
        return self.target.mean + step + np.sqrt(1 - self.memory**2) * noise

    def adapted(self, thetas):
        self.learnt.append(thetas.shape)
        return self


class Swept(Gaussian):
    """A Gaussian with a Markov kernel of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = Autoregression(self)

    def markov_kernel(self):
        return self.kernel


@cache
def of_gaussian() -> tuple[Swept, Draws]:
    target = Swept()
    return target, gibbs(target, np.zeros(5), draws=500, tune=40, thin=2, random_state=1)


def test_a_kernel_that_learns_nothing_stays_as_it_is():
    class Constant(MarkovKernel):
        def sweep(self, theta, rng):
            return theta

    kernel = Constant()
    assert kernel.adapted(np.zeros((3, 1))) is kernel


def test_moments_of_a_gaussian():
    target, draws = of_gaussian()
    found = moment_errors(draws.theta, target.mean, target.covariance)
    assert np.abs(found).max() < BOUND


def test_statistics_are_those_of_the_draws():
    target, draws = of_gaussian()
    assert draws.complete
    assert draws.method == "gibbs"
    assert set(draws.stats) == {"lp"}
    lp = [target.value_and_gradient(one)[0] for one in draws.theta[1, :50]]
    np.testing.assert_allclose(draws.stats["lp"][1, :50], lp, rtol=1e-9)


def test_the_kernel_learns_from_all_chains_in_rounds():
    target = Swept()
    gibbs(target, np.zeros(5), draws=1, tune=10, chains=3, random_state=0)
    assert target.kernel.learnt == [(3 * seen, 5) for seen in (1, 3, 4, 6)]


def mixture(weights: np.ndarray | None = None, shape: str = "full") -> MixtureLogPosterior:
    """Two components a class, holes and hidden labels; every row weighs 1 if not told."""
    specification = structure(shape, False, (0, 0, 1), 2, (3,))
    rows = table(specification, n_obs=30)
    rows = replace(rows, weights=np.ones(30) if weights is None else weights)
    return MixtureLogPosterior(rows, specification, hyperparameters(specification))


def test_same_seed_same_bits_and_another_seed_others():
    target = mixture()
    start = np.zeros(target.dimension)
    one, two, three = (
        gibbs(target, start, draws=2, tune=4, thin=2, chains=3, random_state=seed)
        for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(one.theta, two.theta)
    np.testing.assert_array_equal(one.stats["lp"], two.stats["lp"])
    assert not np.array_equal(one.theta, three.theta)
    assert len(np.unique(one.theta[:, -1, 0])) == 3


def test_a_row_of_weight_two_is_the_row_twice():
    weights = np.ones(30)
    weights[7], weights[9] = 2, 0
    one = mixture(weights)
    two = mixture()
    two._observations = two._observations.take(np.repeat(np.arange(30), weights.astype(int)))
    start = np.zeros(one.dimension)
    sweeps = [t.markov_kernel().sweep(start, np.random.default_rng(0)) for t in (one, two)]
    np.testing.assert_array_equal(*sweeps)


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [(0.5, "whole numbers.*a weight of 0.5.*inference='nuts'"), (1e8, "add up to.*1e\\+08")],
)
def test_weights_that_are_no_rows_are_told(weight, sentence):
    weights = np.ones(30)
    weights[3] = weight
    target = mixture(weights)
    with pytest.raises(ValueError, match=sentence):
        gibbs(target, np.zeros(target.dimension))


def test_interrupted_chains_have_drawn_as_much_as_each_other():
    draws = gibbs(Interrupting(3000), np.zeros(5), draws=10**6, tune=20, random_state=0, cores=1)
    assert draws.theta.shape[:2] == (4, (3000 - 80) // 4 // 4)


@pytest.mark.parametrize(("argument", "least"), [("draws", 1), ("thin", 1), ("chains", 1)])
def test_numbers_that_cannot_be_are_named(argument, least):
    with pytest.raises(ValueError, match=f"{argument}=...\\) must be at least {least}"):
        gibbs(Swept(), np.zeros(5), **{argument: 0})


class Interrupting(Swept):
    """Presses Ctrl-C after some sweeps."""

    def __init__(self, after: int) -> None:
        super().__init__()
        sweeps, sweep = itertools.count(1), self.kernel.sweep

        def counted(theta, rng):
            if next(sweeps) == after:
                _thread.interrupt_main()
            return sweep(theta, rng)

        self.kernel.sweep = counted


def test_an_interrupt_returns_what_was_drawn():
    draws = gibbs(Interrupting(3000), np.zeros(5), draws=10**6, tune=20, random_state=0, cores=1)
    assert not draws.complete
    chains, n_draws, _ = draws.theta.shape
    assert chains >= 1
    assert 0 < n_draws < 10**6
    assert np.isfinite(draws.theta).all()
    assert draws.stats["lp"].shape == (chains, n_draws)


def test_an_interrupt_before_the_first_draw_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        gibbs(Interrupting(100), np.zeros(5), draws=100, tune=10**6, random_state=0, cores=1)


class Failing(Swept):
    """A kernel that fails in one chain."""

    def __init__(self) -> None:
        super().__init__()
        sweeps = itertools.count(1)

        def failing(theta, rng):
            if next(sweeps) == 500:
                raise ZeroDivisionError("in a chain")
            return theta

        self.kernel.sweep = failing


def test_an_error_of_a_chain_ends_all():
    with pytest.raises(ZeroDivisionError, match="in a chain"):
        gibbs(Failing(), np.zeros(5), draws=10**7, tune=4, random_state=0, cores=1)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    gibbs(Swept(), np.zeros(5), draws=2, tune=4, chains=1, random_state=0, progress_bar=True)
    assert "gibbs" in capsys.readouterr().out
    monkeypatch.setenv("TERM", "dumb")
    gibbs(Swept(), np.zeros(5), draws=2, tune=4, chains=1, random_state=0, progress_bar=True)
    assert not capsys.readouterr().out, "nothing can be removed from a log"


def test_gibbs_has_the_exact_moments_of_one_component_on_complete_rows():
    log_posterior = problem()[2]
    start = np.zeros(log_posterior.dimension)
    draws = gibbs(log_posterior, start, draws=250, tune=4, thin=1, random_state=0)
    worst = worst_errors(log_posterior, draws.theta)
    assert max(worst.values()) < BOUND, worst


@pytest.fixture(scope="module")
def beside_nuts() -> tuple[np.ndarray, np.ndarray]:
    """Invariant figures (chain, draw, figure) of both samplers, with holes and two components."""
    pytest.importorskip("nutpie", reason="nutpie is an extra")
    from bayesrbf.inference.nuts import nuts

    target = mixture(shape="diag")
    start = np.zeros(target.dimension)
    of_gibbs = gibbs(target, start, draws=200, tune=40, thin=2, chains=2, random_state=0)
    of_nuts = nuts(target, start, draws=200, tune=150, chains=2, random_state=0)
    return tuple(_figures(target, draws.theta) for draws in (of_gibbs, of_nuts))


def _figures(target, theta: np.ndarray) -> np.ndarray:
    """Log likelihood, log density, and class log odds of some rows."""
    classify = target.predictor(target._observations.take(np.arange(4)))

    def figures(point):
        joints = classify(point).log_probabilities
        likelihood = target.pointwise(point).sum()
        lp = target.value_and_gradient(point)[0]
        return [likelihood, lp, *(joints[:, 0] - joints[:, 1])]

    return np.array([[figures(point) for point in chain] for chain in theta])


def agreement(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Differences of means and of squares, in combined Monte Carlo standard errors."""
    from arviz_stats.base.array import array_stats

    centre, sd = one.mean(axis=(0, 1)), one.std(axis=(0, 1))
    found = []
    for power in (1, 2):
        values = [((draws - centre) / sd) ** power for draws in (one, two)]
        means = [v.mean(axis=(0, 1)) for v in values]
        sizes = [array_stats.ess(v, chain_axis=0, draw_axis=1, method="mean") for v in values]
        variances = [v.var(axis=(0, 1)) / n for v, n in zip(values, sizes, strict=True)]
        found.append((means[0] - means[1]) / np.sqrt(sum(variances)))
    return np.concatenate(found)


@pytest.mark.slow
def test_gibbs_and_nuts_agree(beside_nuts):
    assert np.abs(agreement(*beside_nuts)).max() < BOUND


@pytest.mark.slow
def test_agreement_notices_a_planted_defect(beside_nuts):
    one, two = beside_nuts
    wider = one.mean(axis=(0, 1)) + 1.5 * (one - one.mean(axis=(0, 1)))
    assert np.abs(agreement(wider, two)).max() > BOUND


def test_a_family_without_known_conditionals_is_told_so():
    target = Gaussian()
    with pytest.raises(
        ValueError, match=r"known conditionals.*received a Gaussian.*refine\('nuts'\)"
    ):
        gibbs(target, np.zeros(target.dimension), draws=1)

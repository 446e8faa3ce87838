"""One component a class on complete rows: the posterior is known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf import MixturePrior
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import nuts
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.inference.moments import BOUND, errors

pytestmark = pytest.mark.usefixtures("unchecked")

N_OBS, D = 60, 2
SPECIFICATION = MixtureSpecification(D, (), (0, 1), "full")


def rows() -> Observations:
    rng = np.random.default_rng(3)
    labels = np.arange(N_OBS) % 2
    real = rng.normal(size=(N_OBS, D)) @ rng.normal(size=(D, D)) + labels[:, None]
    return Observations(real, np.empty((N_OBS, 0), dtype=np.intp), labels, np.ones(N_OBS))


def problem() -> tuple[Observations, MixtureHyperparameters, MixtureLogPosterior]:
    """Rows in units of 2 and 20 around 5, as the kernel sees them."""
    table = rows()
    units = Standardisation(np.full(D, 5.0), 2.0 * 10.0 ** np.arange(D))
    hyper = MixturePrior().resolve(SPECIFICATION, units, ())
    return table, hyper, MixtureLogPosterior(table, SPECIFICATION, hyper)


def exact_draws(n_draws: int, seed: int = 0) -> dict[str, np.ndarray]:
    r"""Independent draws of the posterior of the declared graph.

    With the mean integrated out, the scatter about the prior mean is
    :math:`S + n k/(n + k) (\bar x - m)(\bar x - m)'`, T = I + L0' S L0 = U U' with U
    upper triangular, and A = U'^-1 B with B_ii^2 ~ Gamma((n + nu)/2 + 1, 1/2),
    B_ij ~ Normal(0, 1) below; mean | P ~ Normal(., ((n + k) P)^-1).
    """
    table, hyper, _ = problem()
    rng = np.random.default_rng(seed)
    nu, kappa = hyper.degrees_of_freedom, hyper.mean_precision
    base = np.eye(D) / np.sqrt(nu + 1)  # standard units; one mean under each covariance
    means, diagonals, lowers = [], [], []
    for label in (0, 1):
        x = table.real[table.labels == label]
        n, centre = len(x), x.mean(axis=0)
        scatter = (x - centre).T @ (x - centre)
        scatter += n * kappa / (n + kappa) * np.outer(centre, centre)
        inner = np.eye(D) + base.T @ scatter @ base
        upper = np.linalg.cholesky(inner[::-1, ::-1])[::-1, ::-1]
        b = np.tril(rng.normal(size=(n_draws, D, D)), -1)
        b[:, range(D), range(D)] = np.sqrt(rng.gamma((n + nu) / 2 + 1, 2, size=(n_draws, D)))
        a = np.linalg.solve(upper.T, b)
        factor = base @ a
        noise = np.linalg.solve(factor.swapaxes(1, 2), rng.normal(size=(n_draws, D, 1)))[..., 0]
        mean = n * centre / (n + kappa) + noise / np.sqrt(n + kappa)
        means.append(hyper.location + hyper.scale * mean)
        diagonals.append(np.einsum("sii->si", a) ** 2)
        lowers.append(a[:, *np.tril_indices(D, -1)])
    counts = np.bincount(table.labels)
    return {
        "class_probabilities": rng.dirichlet(counts + hyper.class_concentration, n_draws),
        "means": np.stack(means, axis=1),
        "precision_diagonal": np.stack(diagonals, axis=1),
        "precision_lower": np.stack(lowers, axis=1),
    }


EXACT_DRAWS = 200_000


def worst_errors(log_posterior: MixtureLogPosterior, theta: np.ndarray) -> dict[str, float]:
    """Largest error of means and squares of every variable, in combined standard errors."""
    exact = exact_draws(EXACT_DRAWS)
    found = log_posterior.constrained(theta)
    worst = {}
    for name, truth in exact.items():
        truth = truth.reshape(EXACT_DRAWS, -1)
        centre, sd = truth.mean(axis=0), truth.std(axis=0)
        scaled = (found[name].reshape((*theta.shape[:2], -1)) - centre) / sd
        square = ((truth - centre) / sd) ** 2
        parts = [errors(scaled, np.zeros(sd.size)), errors(scaled**2, square.mean(axis=0))]
        worst[name] = float(np.abs(np.concatenate(parts)).max())
    return worst


@pytest.fixture(scope="module")
def start() -> np.ndarray:
    _, _, log_posterior = problem()
    exact = {name: values[:1000].mean(axis=0) for name, values in exact_draws(1000).items()}
    from bayesrbf.base.log_posterior import to_unconstrained

    return to_unconstrained(log_posterior.variables, exact)


@pytest.fixture(scope="module")
def sampled(start) -> np.ndarray:
    pytest.importorskip("nutpie", reason="nutpie is an extra")
    draws = nuts(problem()[2], start, draws=250, tune=100, random_state=0)
    assert not draws.stats["diverging"].any()
    return draws.theta


def test_nuts_has_the_exact_moments(sampled):
    worst = worst_errors(problem()[2], sampled)
    assert max(worst.values()) < BOUND, worst


@pytest.mark.parametrize("defect", ["sd x 1.2", "no prior on the mean", "a row dropped"])
def test_the_moments_notice_a_planted_defect(sampled, defect):
    log_posterior = problem()[2]
    theta = sampled
    if defect == "sd x 1.2":
        centre = theta.mean(axis=(0, 1))
        theta = centre + 1.2 * (theta - centre)
    elif defect == "no prior on the mean":
        theta = theta + 0.3 * theta.std(axis=(0, 1))
    else:
        theta = theta - 0.25 * theta.std(axis=(0, 1))
    assert max(worst_errors(log_posterior, theta).values()) > BOUND


def test_laplace_is_near_the_exact_moments(start):
    log_posterior = problem()[2]
    draws = laplace(log_posterior, start, draws=500, random_state=0)
    exact = exact_draws(EXACT_DRAWS)["means"]
    means = log_posterior.constrained(draws.theta)["means"]
    shift = (means.mean(axis=(0, 1)) - exact.mean(axis=0)) / exact.std(axis=0)
    ratio = means.std(axis=(0, 1)) / exact.std(axis=0)
    assert np.abs(shift).max() < 0.1
    assert np.abs(ratio - 1).max() < 0.15


def test_resampled_laplace_is_nearer_in_the_skewed_coordinates(start):
    log_posterior = problem()[2]
    exact = exact_draws(EXACT_DRAWS)["precision_diagonal"]
    distance = []
    for resample in (False, True):
        draws = laplace(log_posterior, start, draws=500, random_state=0, resample=resample)
        found = log_posterior.constrained(draws.theta)["precision_diagonal"]
        shift = (found.mean(axis=(0, 1)) - exact.mean(axis=0)) / exact.std(axis=0)
        distance.append(np.abs(shift).mean())
    assert distance[1] < distance[0]

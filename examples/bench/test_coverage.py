"""Do 90 % intervals of class probabilities hold the truth 90 % of the time?

Parameters are drawn from the prior, rows from the parameters; an interval of the class
probability at fixed points is compared with what the drawn parameters say. Over the prior,
exact draws cover exactly; the figures of the approximations are printed beside. Quantiles of N
draws hold a new draw (N - 1) / (N + 1) times as often as they say. An exact method may be off by
four standard errors, and draws with four fifths of the spread must be off by more.
``BAYESRBF_REPLICATIONS`` sets the number of tables (2,400) for exact draws, and for Gibbs where
there are none; the approximations get a quarter of them, NUTS, which takes a second a table, a
twenty-fourth. Below 600 tables the planted defect may not be seen. Some ten minutes a kind of table
on two cores.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from scipy.special import softmax

from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import gibbs, nuts
from bayesrbf.inference.variational import advi
from bayesrbf.mixture.em import fit_mixture
from bayesrbf.mixture.gibbs import assigned, posterior
from bayesrbf.mixture.missing import sample
from bayesrbf.mixture.posterior import MixtureLogPosterior
from bench.figures import show
from tests.cases import hyperparameters

REPLICATIONS = int(os.environ.get("BAYESRBF_REPLICATIONS", "2400"))
PROB, DRAWS, N_OBS = 0.9, 200, 24
SPECIFICATION = MixtureSpecification(2, (), (0, 1), "full")
PRIOR = hyperparameters(SPECIFICATION)
POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.5, np.nan], [np.nan, np.nan]])
"""Where class probabilities are judged: cells may be missing."""
MOST_ERRORS = 4.0
DEFECT = "a planted defect: sd x 0.8"


def observations(real: np.ndarray, labels: np.ndarray) -> Observations:
    codes = np.empty((len(real), 0), dtype=np.intp)
    return Observations(real, codes, labels, np.ones(len(real)))


@dataclass(frozen=True)
class Replication:
    """A table from the prior, and what is asked of its posterior."""

    truth: MixtureParameters
    rows: Observations
    seed: int

    @cached_property
    def log_posterior(self) -> MixtureLogPosterior:
        return MixtureLogPosterior(self.rows, SPECIFICATION, PRIOR)

    @cached_property
    def start(self) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        fit = fit_mixture(self.rows, SPECIFICATION, PRIOR, rng=rng, n_init=1)
        return self.log_posterior.pack(fit.parameters)

    def probabilities(self, thetas: np.ndarray) -> np.ndarray:
        """Probability of class 0 at every point, (draw, point)."""
        predict = self.log_posterior.predictor(observations(POINTS, np.full(len(POINTS), -1)))
        return np.array(
            [softmax(predict(theta).log_probabilities, axis=1)[:, 0] for theta in thetas]
        )

    def covered(self, method: Callable[[Replication], np.ndarray]) -> np.ndarray:
        """Whether the interval of each point holds the truth."""
        truth = self.probabilities(self.log_posterior.pack(self.truth)[None])[0]
        tails = ((1 - PROB) / 2, (1 + PROB) / 2)
        lower, upper = np.quantile(self.probabilities(method(self)), tails, axis=0)
        return (lower <= truth) & (truth <= upper)


def replications(number: int, holes: float, hidden: float, seed: int) -> Iterator[Replication]:
    """Tables from the prior; with holes, the label of some rows is hidden too."""
    rng = np.random.default_rng(seed)
    nothing = assigned(np.empty((0, 2)), np.empty((0, 0), int), np.empty(0, int), SPECIFICATION)
    prior = posterior(nothing, PRIOR, SPECIFICATION)
    for _ in range(number):
        truth = prior.draw(rng)
        rows, _ = sample(truth, SPECIFICATION, N_OBS, rng)
        real, labels = rows.real, rows.labels
        real[rng.random(real.shape) < holes] = np.nan
        labels[rng.random(N_OBS) < hidden] = -1
        yield Replication(truth, observations(real, labels), int(rng.integers(2**31)))


def exact(one: Replication) -> np.ndarray:
    """Independent draws of the posterior: one component a class, complete rows."""
    rng = np.random.default_rng(one.seed)
    rows = one.rows
    known = posterior(
        assigned(rows.real, rows.codes, rows.labels, SPECIFICATION), PRIOR, SPECIFICATION
    )
    return np.array([one.log_posterior.pack(known.draw(rng)) for _ in range(DRAWS)])


def by(method: Callable[..., Draws], **options: object) -> Callable[[Replication], np.ndarray]:
    """A method of inference as coordinates of its draws."""

    def draw(one: Replication) -> np.ndarray:
        made = method(one.log_posterior, one.start, random_state=one.seed, **options)
        return made.theta.reshape(made.n_draws, -1)

    return draw


def too_narrow(one: Replication) -> np.ndarray:
    """A planted defect: four fifths of the posterior's spread."""
    thetas = exact(one)
    return thetas.mean(axis=0) + 0.8 * (thetas - thetas.mean(axis=0))


SIZE = {"chains": 1, "draws": DRAWS}
EXACT = {
    "exact": exact,
    "Gibbs": by(gibbs, chains=2, draws=DRAWS // 2, tune=50, thin=2),
    "NUTS": by(nuts, chains=2, draws=150, tune=150),
}
APPROXIMATE = {
    "Laplace": by(laplace, **SIZE),
    "Laplace, resampled": by(laplace, resample=True, **SIZE),
    "ADVI": by(advi, **SIZE),
    "ADVI, mean field": by(advi, covariance="mean_field", **SIZE),
    DEFECT: too_narrow,
}
TABLES = {"complete": (0.0, 0.0), "a third of the cells and labels hidden": (1 / 3, 1 / 3)}


def contestants(holes: float) -> dict[str, tuple[Callable[[Replication], np.ndarray], int]]:
    """Methods and their numbers of tables; exact draws exist for complete rows only."""
    shares = dict.fromkeys(APPROXIMATE, 4) | {"NUTS": 24, "Gibbs": 1 if holes else 4, DEFECT: 1}
    return {
        name: (method, max(REPLICATIONS // shares.get(name, 1), 2))
        for name, method in (EXACT | APPROXIMATE).items()
        if not (holes and method in (exact, too_narrow))
    }


def rates(name: str, seed: int) -> pd.DataFrame:
    """Coverage of every method, on both cores."""
    figures = {}
    with Parallel(n_jobs=-1) as parallel:
        for method, (draw, number) in contestants(TABLES[name][0]).items():
            tables = replications(number, *TABLES[name], seed)
            covered = np.array(parallel(delayed(Replication.covered)(one, draw) for one in tables))
            # Points of one table are not independent; tables are.
            error = covered.mean(axis=1).std() / np.sqrt(number)
            figures[method] = {
                "tables": number,
                "coverage %": 100 * covered.mean(),
                "s.e.": 100 * error,
            }
    return pd.DataFrame(figures).T


@pytest.mark.parametrize("name", TABLES)
def test_intervals_hold_the_truth(name: str) -> None:
    seed = int(os.environ.get("BAYESRBF_SEED", secrets.randbelow(2**31)))
    table = rates(name, seed)
    print(f"seed {seed}")
    show(
        f"coverage/{'complete' if name == 'complete' else 'with_holes'}",
        table.rename_axis(name).astype({"tables": int}),
        2,
        {"tables for exact draws": (REPLICATIONS, 2400)},
    )
    off = (table["coverage %"] - 100 * PROB * (DRAWS - 1) / (DRAWS + 1)) / table["s.e."]
    for method in EXACT.keys() & set(table.index):
        assert abs(off[method]) <= MOST_ERRORS, method
    if DEFECT in table.index:
        assert off[DEFECT] < -MOST_ERRORS

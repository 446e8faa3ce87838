"""Class probabilities and intervals over tables drawn from the prior: does what is said happen?

A table, and a row beside it, are drawn from one drawn point. The posterior's probability of the
row's class is right as often as it says, and its intervals hold the true probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.variational import advi
from bayesrbf.mixture.em import EMSettings, fit_mixture
from bayesrbf.mixture.missing import sample
from tests.inference.drawing_graphs import SIMULATORS
from tests.inference.drawn_tables import Table, tables
from tests.inference.sbc import Replication, Setting, place, simulate
from tests.inference.simulations import LONE, conjugate

DRAWS = 100
BOUND = 4.9
LEVELS = (50, 80, 95)
HIDDEN = slice(None, None, 4)
"""Rows whose labels are hidden in the tables of the graphs."""
WITH_HOLES = Setting(MixtureSpecification(2, (3,), (0, 1)), n_obs=24)
"""A quarter of the cells and three tenths of the labels are hidden."""


def standard(rows: Observations, setting: Setting) -> Observations:
    """Rows in standard units, a quarter of the cells of real columns hidden."""
    hyper = setting.hyperparameters
    units = Standardisation(hyper.location, hyper.scale)
    return replace(rows, real=units.forward(rows.real))


def probabilities(replication: Replication, thetas: np.ndarray, rows: Observations) -> np.ndarray:
    """Class probabilities of rows, (draw, row, class)."""
    predictor = replication.log_posterior().predictor(rows.unlabelled())
    logs = predictor.at_all(thetas).log_probabilities
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def outcomes(number: int, seed: int) -> Iterator[tuple[float, bool]]:
    """Probability of the second class, and whether a new row has it; its cells are hidden in part.

    One component a class and whole rows of the table: draws of the posterior are exact.
    """
    for rng in np.random.default_rng(seed).spawn(number):
        replication = simulate(LONE, rng)
        target = replication.log_posterior()
        truth = target.points.unpack(replication.truth)
        new, _ = sample(truth, LONE.specification, 1, rng)
        new = standard(new, LONE)
        new.real[rng.random(new.real.shape) < 0.25] = np.nan
        said = probabilities(replication, conjugate(replication, DRAWS, rng), new)
        yield float(said[:, 0, 1].mean()), bool(new.labels[0] == 1)


@dataclass(frozen=True)
class Reliability:
    """Standard errors that outcomes are away from the probabilities, in all and in ten bins."""

    overall: float
    bins: np.ndarray

    @property
    def worst(self) -> float:
        return float(max(abs(self.overall), np.abs(self.bins).max()))


def reliability(said: np.ndarray, happened: np.ndarray) -> Reliability:
    """Outcomes against probabilities; bins hold a tenth of the tables each."""

    def errors(rows: np.ndarray) -> float:
        p = said[rows]
        return float((happened[rows] - p).sum() / np.sqrt((p * (1 - p)).sum()))

    bins = np.array_split(np.argsort(said, kind="stable"), 10)
    return Reliability(errors(np.arange(said.size)), np.array([errors(rows) for rows in bins]))


METHODS = {
    "Laplace": lambda *given, **options: laplace(*given, **options),
    "Laplace, resampled": lambda *given, **options: laplace(*given, resample=True, **options),
    "ADVI": lambda *given, **options: advi(*given, **options),
    "ADVI, mean field": lambda *given, **options: advi(*given, covariance="mean_field", **options),
}
FIXED = np.array(
    [[0.5, -0.5], [-1, 0], [1.5, np.nan], [0, 0], [-1.5, 1], [1, 1.5], [0.5, -1.5], [np.nan, 0.8]]
)
"""Cells of rows whose class probability is asked for; their categories are known in part."""
APPROXIMATED = [
    *(("mixture of two classes", name) for name in METHODS),
    ("kernel network", "Laplace"),
    ("kernel network", "ADVI"),
    ("sparse discriminative mixture", "Laplace"),
]
"""Three families, and approximations."""


@dataclass(frozen=True)
class Coverage:
    """Rates in per cent at which central intervals held the truth, and errors, by level."""

    rates: dict[int, float]
    errors: dict[int, float]


def coverage(pit: np.ndarray) -> Coverage:
    """Of the truth's places among draws (table, probability).

    Probabilities of one table depend on each other: the error of a rate is that of the tables'
    mean, and at least the binomial one of all intervals.
    """
    rates, errors = {}, {}
    for level in LEVELS:
        within = 100.0 * (np.abs(pit - 0.5) < level / 200)
        binomial = np.sqrt(level * (100 - level) / pit.size)
        of_tables = within.mean(axis=1).std() / np.sqrt(len(pit))
        rates[level], errors[level] = float(within.mean()), float(max(binomial, of_tables))
    return Coverage(rates, errors)


Probabilities = Callable[[np.ndarray], np.ndarray]
"""Of points (draw, coordinate): what is asked for at each, (draw, probability)."""


def approximated(family: str, name: str, number: int, seed: int) -> Iterator[np.ndarray]:
    """Places of true probabilities among those of an approximation."""
    drawn = of_mixture if family == "mixture of two classes" else partial(of_family, family)
    for truth, thetas, probability, rng in drawn(name, number, seed):
        true, said = probability(truth[None])[0], probability(thetas).T
        yield np.array([place(*one, rng) for one in zip(true, said, strict=True)])


Drawn = Iterator[tuple[np.ndarray, np.ndarray, Probabilities, np.random.Generator]]


def of_mixture(name: str, number: int, seed: int) -> Drawn:
    """Class probabilities of fixed rows, from tables with holes and hidden labels."""
    count = len(FIXED)
    codes = np.resize([0, 1, 2, -1], (count, 1))
    rows = Observations(FIXED, codes, np.full(count, -1), np.ones(count))
    for rng in np.random.default_rng(seed).spawn(number):
        replication = simulate(WITH_HOLES, rng)
        setting, target = replication.setting, replication.log_posterior()
        model = setting.specification, setting.hyperparameters.standardised()
        fit = fit_mixture(replication.rows, *model, EMSettings(rng, n_init=1))
        start = target.pack(fit.parameters.in_units(setting.hyperparameters.units))
        thetas = METHODS[name](target, start, chains=1, draws=DRAWS, random_state=rng).theta[0]

        def probability(points: np.ndarray, replication: Replication = replication) -> np.ndarray:
            return probabilities(replication, points, rows)[..., 1]

        yield replication.truth, thetas, probability, rng


def of_family(family: str, name: str, number: int, seed: int) -> Drawn:
    """Likelihoods of rows whose labels were hidden, in tables of a family."""
    rngs = np.random.default_rng(seed).spawn(number)
    for table, rng in zip(tables(SIMULATORS[family](), number, seed), rngs, strict=True):
        start = table.start
        thetas = METHODS[name](table.target, start, chains=1, draws=DRAWS, random_state=rng).theta

        def probability(points: np.ndarray, table: Table = table) -> np.ndarray:
            return np.array([table.held.pointwise(theta)[HIDDEN] for theta in points])

        yield table.truth, thetas[0], probability, rng

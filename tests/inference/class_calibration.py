"""Class probabilities and intervals over tables drawn from the prior: does what is said happen?

A table, and a row beside it, are drawn from one drawn point. The posterior's probability of the
row's class is right as often as it says, and its intervals hold the true probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.variational import advi
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.specification import MixtureSpecification
from tests.inference.drawing_graphs import SIMULATORS
from tests.inference.drawn_tables import tables
from tests.inference.sbc import Replication, Setting, simulate
from tests.inference.simulations import LONE, conjugate

DRAWS = 100
BOUND = 4.9
LEVELS = (50, 80, 95)
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
BANDS = {50: (40, 60), 80: (70, 88), 95: (88, 99)}
"""Declared: per cent of intervals that hold the truth."""
SLACK = 3.0
"""Standard errors of simulation by which a rate may lie beyond its band."""


@dataclass(frozen=True)
class Coverage:
    """Rates in per cent at which central intervals held the truth, by level."""

    rates: dict[int, float]
    number: int  # Of the intervals of a level.

    @property
    def outside(self) -> list[int]:
        """Levels whose rate lies beyond its band, by more than chance explains."""
        return [level for level, rate in self.rates.items() if self._away(level, rate)]

    def _away(self, level: int, rate: float) -> bool:
        lower, upper = BANDS[level]
        slack = SLACK * np.sqrt(level * (100 - level) / self.number)
        return not lower - slack <= rate <= upper + slack


def coverage(truths: np.ndarray, draws: np.ndarray) -> Coverage:
    """Of intervals of draws (draw, truth)."""
    rates = {}
    for level in LEVELS:
        lower, upper = np.percentile(draws, [50 - level / 2, 50 + level / 2], axis=0)
        rates[level] = float(100 * np.mean((lower <= truths) & (truths <= upper)))
    return Coverage(rates, truths.size)


def covered(name: str, number: int, seed: int) -> Coverage:
    """Intervals of class probabilities at three fixed rows, with holes and hidden labels."""
    points = np.array([[0.5, -0.5], [-1.0, 0.0], [1.5, np.nan]])
    found = []
    for rng in np.random.default_rng(seed).spawn(number):
        replication = simulate(WITH_HOLES, rng)
        setting, target = replication.setting, replication.log_posterior()
        model = setting.specification, setting.hyperparameters.standardised()
        fit = fit_mixture(replication.rows, *model, rng=rng, n_init=1)
        start = target.pack(fit.parameters.in_units(setting.hyperparameters.units))
        drawn = METHODS[name](target, start, chains=1, draws=200, random_state=rng).theta[0]
        thetas = np.vstack([replication.truth, drawn])
        codes, none = np.full((3, 1), -1), np.full(3, -1)
        rows = Observations(points, codes, none, np.ones(3))
        found.append(probabilities(replication, thetas, rows)[..., 1])
    said = np.concatenate(found, axis=1)
    return coverage(said[0], said[1:])


def covered_in(family: str, name: str, number: int, seed: int) -> Coverage:
    """Intervals of the likelihood of a row whose label was hidden, in tables of a family."""
    found = []
    rngs = np.random.default_rng(seed).spawn(number)
    for table, rng in zip(tables(SIMULATORS[family](), number, seed), rngs, strict=True):
        drawn = METHODS[name](table.target, table.start, chains=1, draws=100, random_state=rng)
        thetas = np.vstack([table.truth, drawn.theta[0]])
        found.append([table.held.pointwise(theta)[0] for theta in thetas])
    said = np.array(found).T
    return coverage(said[0], said[1:])


APPROXIMATED = [
    (family, name)
    for family in SIMULATORS
    if family != "exemplars"  # Which have no gradient.
    for name in ("Laplace", "ADVI")
]
"""Families and approximations; those of mixtures have tables of their own, too."""

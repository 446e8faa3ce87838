"""Simulation-based calibration: does a sampler give posteriors that the truth is a draw of?

Parameters are drawn from the declared prior, rows from the parameters, and the sampler is
handed the rows. In a sound sampler the truth is one more draw: its rank among them (PIT) is
uniform, for parameters and for what depends on the rows alike. The ECDF of the ranks must stay
in a band of constant width (Kolmogorov), z = probit(PIT) must have mean 0 and variance 1.

Talts, Betancourt, Simpson, Vehtari, Gelman (2018), arXiv 1804.06788;
Modrak et al. (2025), Bayesian Analysis 20, on quantities that depend on the data;
Besag and Clifford (1989), Biometrika 76: exact ranks from one reversible chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import kstest

from bayesrbf.base import names
from bayesrbf.base.log_posterior import to_unconstrained
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.missing import sample
from bayesrbf.mixture.points import free_variables, parameters_of
from bayesrbf.mixture.posterior import MixtureLogPosterior

FAMILY_ERROR = 1e-3
"""Probability that some band is left by a sound sampler."""

MAX_STANDARD_ERRORS = 4.9
"""Of the mean and variance of z: one in a million each."""


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    specification: MixtureSpecification
    n_obs: int
    missing: float = 0.25
    hidden: float = 0.3
    x: tuple[float, ...] = (0.5, -0.5)

    @property
    def hyperparameters(self) -> MixtureHyperparameters:
        """A prior that holds a small table, in units of its own."""
        d = self.specification.n_features
        return MixtureHyperparameters(
            degrees_of_freedom=4.0,
            mean_precision=0.4,
            location=np.arange(d) + 1.0,
            scale=2.0 ** np.arange(d),
            weight_concentration=2.0,
            class_concentration=3.0,
            category_concentrations=tuple(
                1.5 + np.arange(size) / size for size in self.specification.levels
            ),
        )


@dataclass(frozen=True)
class Replication:
    """One simulated problem: the truth as coordinates, and the rows in standard units."""

    setting: Setting
    truth: np.ndarray
    rows: Observations

    def log_posterior(self) -> MixtureLogPosterior:
        """What a sound sampler is handed."""
        setting = self.setting
        return MixtureLogPosterior(self.rows, setting.specification, setting.hyperparameters)


def from_prior(
    specification: MixtureSpecification, hyper: MixtureHyperparameters, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw the free variables from the declared prior, one distribution after the other."""
    values: dict[str, np.ndarray] = {}
    spherical, d = specification.shape == "spherical", specification.n_features
    for variable in free_variables(specification):
        if variable.name == names.PRECISION_DIAGONAL:
            factor = d if spherical else 1
            shape = factor * hyper.degrees_of_freedom / 2 + 1
            values[variable.name] = rng.gamma(shape, 2 / factor, variable.shape)
        elif variable.name == names.PRECISION_LOWER:
            values[variable.name] = rng.standard_normal(variable.shape)
        elif variable.name == names.MEANS:
            values[variable.name] = np.zeros(variable.shape)  # the precisions come first
        else:
            alpha = hyper.weight_concentration
            if variable.name == names.CLASS_PROBABILITIES:
                alpha = hyper.class_concentration
            if variable.name.startswith(names.PROBABILITY):
                alpha = hyper.category_concentrations[int(variable.name.rsplit("_")[-1])]
            concentration = np.broadcast_to(alpha, variable.shape[-1:])
            values[variable.name] = rng.dirichlet(concentration, variable.shape[:-1])
    if d:
        factors = laws_of(specification).reals.factors(values, hyper)[
            specification.covariance_group
        ]
        noise = rng.standard_normal(values[names.MEANS].shape)
        steps = (
            noise / factors
            if factors.ndim == 2
            else np.stack([np.linalg.solve(f.T, e) for f, e in zip(factors, noise, strict=True)])
        )
        values[names.MEANS] = hyper.location + steps / np.sqrt(hyper.mean_precision)
    return values


def simulate(setting: Setting, rng: np.random.Generator) -> Replication:
    """Draw parameters, then rows, then the masks of cells and labels."""
    specification, hyper = setting.specification, setting.hyperparameters
    values = from_prior(specification, hyper, rng)
    parameters = parameters_of(values, hyper, specification)
    rows, _ = sample(parameters, specification, setting.n_obs, rng)
    codes, labels = rows.codes, rows.labels
    real = Standardisation(hyper.location, hyper.scale).forward(rows.real)
    real[rng.random(real.shape) < setting.missing] = np.nan
    codes[rng.random(codes.shape) < setting.missing] = -1
    if specification.n_classes > 1:
        labels = np.where(rng.random(labels.size) < setting.hidden, -1, labels)
    rows = Observations(real, codes, labels, np.ones(setting.n_obs))
    truth = to_unconstrained(free_variables(specification), values)
    return Replication(setting, truth, rows)


def quantities(replication: Replication, thetas: np.ndarray) -> dict[str, np.ndarray]:
    """What is ranked: parameters, their products, and what the rows make of them."""
    setting, log_posterior = replication.setting, replication.log_posterior()
    specification = setting.specification
    values = log_posterior.constrained(thetas)
    found = {"log likelihood": np.array([log_posterior.pointwise(t).sum() for t in thetas])}
    if specification.n_classes > 1:
        classify = log_posterior.predictor(_fixed_row(setting))
        joints = np.array([classify(t).log_probabilities[0] for t in thetas])
        found["log odds at x"] = joints[:, 0] - joints[:, 1]
    for name, value in values.items():
        flat = value.reshape(len(thetas), -1)
        found[f"first of {name}"], found[f"last of {name}"] = flat[:, 0], flat[:, -1]
    if specification.n_features:
        means, precision = values[names.MEANS], values[names.PRECISION_DIAGONAL]
        found["mean x mean"] = means[:, 0, 0] * means[:, -1, -1]
        found["mean x precision"] = means[:, 0, 0] * precision.reshape(len(thetas), -1)[:, 0]
    return found


def _fixed_row(setting: Setting) -> Observations:
    """A row of fixed cells, whose class is asked for."""
    specification = setting.specification
    real = np.resize(setting.x, (1, specification.n_features))
    codes = np.zeros((1, len(specification.levels)), dtype=np.intp)
    return Observations(real, codes, np.full(1, -1), np.ones(1))


Sampler = Callable[[Replication, np.random.Generator], np.ndarray]
"""Draws (draw, coordinate) of the posterior of a replication, as independent as can be."""


def calibrate(
    setting: Setting,
    sampler: Sampler,
    replications: int,
    seed: int,
    change: Callable[[np.ndarray], np.ndarray] = lambda draws: draws,
) -> dict[str, np.ndarray]:
    """PIT of every quantity in every replication; ``change`` plants a defect in their draws."""
    ranks: dict[str, list[float]] = {}
    for rng in np.random.default_rng(seed).spawn(replications):
        replication = simulate(setting, rng)
        draws = sampler(replication, rng)
        found = quantities(replication, np.concatenate([replication.truth[None], draws]))
        for name, values in found.items():
            ranks.setdefault(name, []).append(place(values[0], change(values[1:]), rng))
    return {name: np.array(values) for name, values in ranks.items()}


def place(truth: float, draws: np.ndarray, rng: np.random.Generator) -> float:
    """PIT of the truth among draws: uniform in a sound sampler, ties told apart by chance."""
    ties = 1 + np.sum(draws == truth)
    return float((np.sum(draws < truth) + ties * rng.random()) / (len(draws) + 1))


def failures(ranks: dict[str, np.ndarray]) -> list[str]:
    """What is not calibrated, in words; empty for a sound sampler."""
    found = []
    for name, pit in ranks.items():
        p_value = kstest(pit, "uniform").pvalue
        if p_value < FAMILY_ERROR / len(ranks):
            found.append(f"{name}: ECDF leaves its band, p = {p_value:.1e}")
        z, n = ndtri(pit), pit.size
        errors = {"mean": z.mean() * np.sqrt(n), "variance": (z.var() - 1) * np.sqrt(n / 2)}
        found += [
            f"{name}: {moment} of z is {error:.1f} standard errors off"
            for moment, error in errors.items()
            if abs(error) > MAX_STANDARD_ERRORS
        ]
    return found


def reversible(
    sweep: Callable[[np.ndarray, np.random.Generator], np.ndarray],
    truth: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Other points of a stationary chain in which the truth has a random place: exact ranks.

    A reversible chain runs backwards as it runs forwards, and the truth is a draw of the
    posterior: no burn-in, no thinning, and no convergence is asked for.
    """
    before = int(rng.integers(draws + 1))
    points = []
    for length in (before, draws - before):
        theta = truth
        for _ in range(length):
            theta = sweep(theta, rng)
            points.append(theta)
    return np.stack(points)


def changed(replication: Replication, **fields: np.ndarray) -> Replication:
    """The replication with other rows: how a defect is planted."""
    return replace(replication, rows=replace(replication.rows, **fields))

"""Small tables and structures that cover every pair of options, and their compiled graphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pymc as pm

from bayesrbf import MixturePrior
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import COVARIANCE_TYPES, MixtureSpecification, Observations, Standardisation
from bayesrbf.mixture.em import EMSettings, fit_mixture, problem_of
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.posterior import MixtureLogPosterior
from bayesrbf.models.mixture import declare_hybrid_mixture
from tests.oracles import MixtureOracle, constrain

FACTORS: dict[str, tuple[object, ...]] = {
    "covariance_type": COVARIANCE_TYPES,
    "components": ("one", "two", "unequal"),
    "shared_covariance": (False, True),
    "missing": (False, True),
    "categorical": (False, True),
    "hidden_labels": (False, True),
    "weighted": (False, True),
    "n_features": (3, 1),
    "n_classes": (2, 1),
}
COMPONENTS = {"one": (1, 1), "two": (2, 2), "unequal": (1, 3)}
N_OBS = 12
SEED = 4
"""Of the shuffle before the greedy choice; this one needs 13 configurations."""


@dataclass(frozen=True)
class Configuration:
    """One structure and one table."""

    covariance_type: str
    components: str
    shared_covariance: bool
    missing: bool
    categorical: bool
    hidden_labels: bool
    weighted: bool
    n_features: int
    n_classes: int

    @property
    def possible(self) -> bool:
        """One class has no label to hide and no other class to differ from."""
        several = self.n_classes > 1
        cells = self.categorical or self.n_features > 0
        return cells and (several or not (self.hidden_labels or self.components == "unequal"))

    @property
    def specification(self) -> MixtureSpecification:
        sizes = COMPONENTS[self.components][: self.n_classes]
        classes = tuple(c for c, size in enumerate(sizes) for _ in range(size))
        levels = (3, 2) if self.categorical else ()
        return MixtureSpecification(
            self.n_features, levels, classes, self.covariance_type, self.shared_covariance
        )

    @cached_property
    def observations(self) -> Observations:
        """Rows in units far from standard; with holes, one row has no cell at all."""
        rng = np.random.default_rng(20240501)
        d, j = self.n_features, len(self.specification.levels)
        units = self.units
        labels = rng.integers(0, self.n_classes, size=N_OBS)
        real = units.backward(rng.normal(size=(N_OBS, d)) + labels[:, None])
        codes = np.column_stack(
            [rng.integers(0, size, size=N_OBS) for size in self.specification.levels]
            or [np.empty((N_OBS, 0), dtype=np.intp)]
        )
        if self.missing:
            real[rng.random((N_OBS, d)) < 0.3] = np.nan
            codes[rng.random((N_OBS, j)) < 0.3] = -1
            real[0], codes[0] = np.nan, -1
        if self.hidden_labels:
            labels[rng.random(N_OBS) < 0.4] = -1
            labels[:2] = -1
        weights = rng.uniform(0.2, 3.0, size=N_OBS) if self.weighted else np.ones(N_OBS)
        return Observations(real, codes, labels, weights)

    @property
    def units(self) -> Standardisation:
        location, scale = np.array([5.0, -300.0, 0.02]), np.array([2.0, 40.0, 0.005])
        return Standardisation(location[: self.n_features], scale[: self.n_features])

    @property
    def hyperparameters(self) -> MixtureHyperparameters:
        marginals = tuple(
            np.arange(1.0, size + 1) / np.arange(1.0, size + 1).sum()
            for size in self.specification.levels
        )
        return MixturePrior().resolve(self.specification, self.units, marginals)

    @property
    def standard_observations(self) -> Observations:
        rows = self.observations
        return replace(rows, real=self.units.forward(rows.real))

    @property
    def log_posterior(self) -> MixtureLogPosterior:
        """The numerics' form of the density."""
        return MixtureLogPosterior(
            self.standard_observations, self.specification, self.hyperparameters
        )

    @property
    def oracle(self) -> MixtureOracle:
        return MixtureOracle(self.observations, self.specification, self.hyperparameters)

    def declare(self, **options: object) -> pm.Model:
        return declare_hybrid_mixture(
            self.observations, self.specification, self.hyperparameters, **options
        )


def at_rest(configuration: Configuration) -> np.ndarray:
    """Coordinates where EM stands still."""
    rows, specification = configuration.standard_observations, configuration.specification
    prior = configuration.hyperparameters.standardised()
    fit = fit_mixture(rows, specification, prior, EMSettings(np.random.default_rng(0), tol=1e-10))
    problem = problem_of(prepare(rows, specification), specification, prior)
    parameters = fit.parameters
    for _ in range(3000):
        following = problem.step(parameters).following
        moved = np.max(np.abs(problem.pack(following) - problem.pack(parameters)))
        parameters = following
        if moved < 1e-11:
            break
    return configuration.log_posterior.pack(parameters.in_units(configuration.units))


def product() -> Iterator[Configuration]:
    """Every possible configuration."""
    for values in itertools.product(*FACTORS.values()):
        configuration = Configuration(*values)
        if configuration.possible:
            yield configuration


def pairs(configuration: Configuration) -> set[tuple[tuple[str, object], ...]]:
    """All pairs of options that a configuration has."""
    options = [(name, getattr(configuration, name)) for name in FACTORS]
    return set(itertools.combinations(options, 2))


@cache
def covering_array() -> tuple[Configuration, ...]:
    """Few configurations that have every possible pair of options: greedy, fixed seed."""
    candidates = list(product())
    rng = np.random.default_rng(SEED)
    order = [candidates[i] for i in rng.permutation(len(candidates))]
    owned = {configuration: pairs(configuration) for configuration in order}
    missing, chosen = set().union(*owned.values()), []
    while missing:
        best = max(order, key=lambda configuration: len(owned[configuration] & missing))
        chosen.append(best)
        missing -= owned[best]
    return tuple(chosen)


@dataclass(frozen=True)
class Evaluation:
    """What a graph says at one point."""

    value: np.ndarray
    gradient: np.ndarray
    value_with_jacobian: np.ndarray
    gradient_with_jacobian: np.ndarray
    rows: np.ndarray
    deterministic: dict[str, np.ndarray]


@dataclass(frozen=True)
class CompiledGraph:
    """A graph whose value, gradient, rows and deterministics are one compiled function."""

    model: pm.Model
    function: Callable[..., list[np.ndarray]]
    shapes: dict[str, tuple[int, ...]]
    """Unconstrained shape of every free variable, in the graph's order."""

    def at(self, theta: np.ndarray) -> Evaluation:
        results = self.function(*self.split(theta).values())
        named = zip(self.model.deterministics, results[5:], strict=True)
        return Evaluation(*results[:5], {variable.name: value for variable, value in named})

    def split(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Coordinates of every free variable, by its name."""
        edges = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(theta, edges[:-1])
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def constrained(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Values of every free variable, by the oracle's transforms."""
        return {name: constrain(name, part) for name, part in self.split(theta).items()}

    def random_theta(self, configuration: Configuration, seed: int) -> np.ndarray:
        """Coordinates within a few standard deviations of the prior's centre."""
        rng = np.random.default_rng(seed)
        parts = []
        for name, shape in self.shapes.items():
            noise = rng.normal(size=shape)
            part = configuration.units.backward(noise) if name == "means" else 0.7 * noise
            parts.append(part.ravel())
        return np.concatenate(parts)


def compile_graph(model: pm.Model) -> CompiledGraph:
    """Compile a graph with one observed node."""
    [rows] = model.logp(vars=model.observed_RVs, sum=False)
    outputs = [
        model.logp(jacobian=False),
        model.dlogp(jacobian=False),
        model.logp(jacobian=True),
        model.dlogp(jacobian=True),
        rows,
        *model.replace_rvs_by_values(model.deterministics),
    ]
    function = model.compile_fn(
        outputs, inputs=model.value_vars, mode="FAST_COMPILE", point_fn=False
    )
    point = model.initial_point(0)
    shapes = {
        rv.name: point[value.name].shape
        for rv, value in zip(model.free_RVs, model.value_vars, strict=True)
    }
    return CompiledGraph(model, function, shapes)


@cache
def compiled(configuration: Configuration) -> CompiledGraph:
    """The configuration's graph, compiled once a session."""
    return compile_graph(configuration.declare())


def name_of(configuration: Configuration) -> str:
    """What a test's report calls a configuration."""
    flags = ("shared_covariance", "missing", "categorical", "hidden_labels", "weighted")
    shape = f"{configuration.n_features}x{configuration.n_classes}"
    kind = f"{configuration.covariance_type}-{configuration.components}-{shape}"
    return "-".join([kind, *(flag for flag in flags if getattr(configuration, flag))])


def assert_close(actual: np.ndarray, expected: np.ndarray, rtol: float = 1e-9) -> None:
    """Relative to the largest entry: a gradient's small entries are differences of large ones."""
    scale = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * scale)


def assert_same_density(
    graph: CompiledGraph, log_posterior: MixtureLogPosterior, theta: np.ndarray
) -> None:
    """Value and gradient, without and with Jacobian."""
    expected = graph.at(theta)
    value, gradient = log_posterior.value_and_gradient(theta, jacobian=False)
    assert_close(value, expected.value)
    assert_close(gradient, expected.gradient)
    value, gradient = log_posterior.value_and_gradient(theta, jacobian=True)
    assert_close(value, expected.value_with_jacobian)
    assert_close(gradient, expected.gradient_with_jacobian)

"""Every configuration of a mixture: numerics against 50 digits, and against the declared graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesrbf.base.priors import PowerTransforms
from bayesrbf.base.rows import COVARIANCE_TYPES, MixtureParameters, Observations
from bayesrbf.mixture.compiled_expectation import CompiledExpectation
from bayesrbf.mixture.expectation import ArrayExpectation
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.missing import conditional_cells, sample
from bayesrbf.mixture.posterior import MixtureLogPosterior
from bayesrbf.models.mixture import declare_hybrid_mixture
from tests.models.configurations import Configuration, assert_same_density, compile_graph
from tests.precise import PreciseMixture

FACTORS: dict[str, tuple[object, ...]] = {
    "covariance_type": COVARIANCE_TYPES,
    "components": ("one", "two", "unequal"),
    "shared_covariance": (False, True),
    "missing": (False, True),
    "categorical": (False, True),
    "hidden_labels": (False, True),
    "weighted": (False,),
    "n_features": (3, 1, 0),
    "n_classes": (2, 1),
    "mapped": (False, True),
}
TOLERANCE = 1e-9
MAX_CONDITION = 1e8
ROWS = 5


@dataclass(frozen=True)
class Case(Configuration):
    """A configuration with or without transforms of the real columns."""

    mapped: bool

    @property
    def possible(self) -> bool:
        """Tables have a column, and transforms and tied covariances have reals."""
        several = self.n_classes > 1
        cells = self.categorical or self.n_features > 0
        plain = self.covariance_type == "full" and not (self.shared_covariance or self.mapped)
        return (
            cells
            and (plain or self.n_features > 0)
            and (several or not (self.hidden_labels or self.components == "unequal"))
        )

    @cached_property
    def observations(self) -> Observations:
        """Rows in the user's units, before any transform."""
        return super().observations.take(np.arange(ROWS))

    @property
    def transforms(self) -> PowerTransforms | None:
        """A logarithm, a root, and a power that grows; the last cells lie beyond the range."""
        if not self.mapped:
            return None
        d, units = self.n_features, self.units
        powers = np.array([0.4, 1.7, 0.0])[:d]
        return PowerTransforms(
            units.location, units.scale, powers, np.full(d, -1.5), np.full(d, 1.2)
        )

    @property
    def standard_observations(self) -> Observations:
        return self.standard(self.observations)

    def standard(self, rows: Observations) -> Observations:
        """Rows mapped, and in standard units."""
        mapped = rows if self.transforms is None else self.transforms.applied(rows)
        return replace(mapped, real=self.units.forward(mapped.real))

    def rows_at(
        self, parameters: MixtureParameters, seed: int
    ) -> tuple[Observations, Observations]:
        """Rows of the table, and rows of a point with the same holes; in both units.

        The latter lie where the density is: what a narrow covariance loses is not hidden behind a
        row's distance. Where columns are mapped there are only the former.
        """
        rows = self.observations
        if not self.mapped:
            rng = np.random.default_rng(seed)
            drawn, _ = sample(parameters, self.specification, ROWS, rng)
            real = np.where(np.isnan(rows.real), np.nan, drawn.real)
            rows = rows.take(np.tile(np.arange(ROWS), 2))
            rows.real[ROWS:] = real
        return rows, self.standard(rows)

    def declare(self, **options: object):
        model = self.specification, self.hyperparameters
        return declare_hybrid_mixture(
            self.observations, *model, column_transforms=self.transforms, **options
        )


def cases() -> Iterator[Case]:
    """The whole product."""
    for values in itertools.product(*FACTORS.values()):
        case = Case(*values)
        if case.possible:
            yield case


def some(number: int, seed: int) -> list[Case]:
    """Configurations drawn from the product."""
    every = list(cases())
    chosen = np.random.default_rng(seed).choice(len(every), min(number, len(every)), replace=False)
    return [every[i] for i in np.sort(chosen)]


def coordinates(
    target: MixtureLogPosterior, case: Case, spread: float, seed: int, lean: float = 0.0
) -> np.ndarray:
    """A random point.

    ``spread`` is that of the logarithms of the precisions; ``lean`` the logarithm of what
    multiplies their other entries, so that columns depend on each other.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for variable in target.variables:
        noise = 0.7 * rng.normal(size=variable.unconstrained_shape)
        if variable.name == "means":
            noise = case.units.backward(noise)
        if variable.name == "precision_diagonal":
            noise = rng.uniform(-spread, spread, noise.shape)
        if variable.name == "precision_lower":
            noise = noise * np.exp(lean)
        parts.append(noise.ravel())
    return np.concatenate(parts)


def conditions(target: MixtureLogPosterior, theta: np.ndarray) -> float:
    """Largest condition number of the covariances, in standard units."""
    values = target.points.standard_values(theta)
    law = laws_of(target.specification).reals
    if not target.specification.n_features:
        return 1.0
    covariances = law.matrices.covariances(law.factors(values, target.points.standard))
    return float(np.linalg.cond(law.matrices.whole(covariances)).max())


POINTS: dict[str, Callable[[float], dict[str, float]]] = {
    "columns of unlike size": lambda size: {"spread": size},
    "columns that depend on each other": lambda size: {"spread": 1.0, "lean": size},
}
"""Ways to ill-conditioned covariances, by the size of what makes them so."""


@dataclass(frozen=True)
class Digits:
    """Largest relative errors at a point; of log densities and means below one, absolute ones."""

    log_density: float
    conditional: float  # Of means and variances of missing reals.
    condition: float


def furthest(case: Case, kind: str, seed: int = 0, most: float = MAX_CONDITION) -> Digits:
    """Errors by either E-step at the point of a kind that is nearest to a condition number."""
    target, structure = case.log_posterior, case.specification
    for size in np.arange(12.0, 0.0, -0.25):
        theta = coordinates(target, case, seed=seed, **POINTS[kind](size))
        condition = conditions(target, theta)
        if condition <= most:
            break
    exact = PreciseMixture(
        structure, case.hyperparameters, target.constrained(theta), case.transforms
    )
    user, rows = case.rows_at(target.points.unpack(theta), seed)
    expected = np.array([float(v) for v in exact.log_density(user)])
    point = target.points.unpack_standard(theta)
    errors = []
    for way in (ArrayExpectation, CompiledExpectation):
        expectation = way(rows, structure)
        found = expectation.statistics(point).pointwise + case.units.log_unit(rows)
        errors.append(away(found, expected))
    cells, units = np.isnan(user.real), case.units
    means, variances = exact.conditional_moments(user)
    found = conditional_cells(rows, point, structure)
    of_means = away(found[0][cells], units.forward(means)[cells])
    exact_variances = (variances / units.scale**2)[cells]
    of_variances = away(found[1][cells] / exact_variances, np.ones(exact_variances.size))
    return Digits(max(errors), max(of_means, of_variances), condition)


def away(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest error, relative to numbers above one."""
    return float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max(initial=0.0))


def graph_equals_numerics(case: Case) -> None:
    """Assert that value and gradient of the graph equal those of the numerics."""
    graph, target = compile_graph(case.declare()), case.log_posterior
    for seed in (1, 2):
        assert_same_density(graph, target, coordinates(target, case, 1.0, seed))

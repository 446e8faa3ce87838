"""Frozen records of sparse discriminative Gaussian mixtures: bases, points, outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base.priors import PrecisionPrior, Status
from bayesrbf.base.records import (
    ANY_NUMBER,
    MAX_LOG,
    MAX_PARTS,
    Requirements,
    by_class,
    classes_in_order,
    scales,
    simplex,
    stored,
    within,
)
from bayesrbf.base.rows import Order

KERNELS = ("polynomial", "gaussian")


@stored
class QuadraticBasis:
    """Monomials of degree at most two: the primal form."""

    factors: Int[np.ndarray, "feature 2"]
    """Coordinates whose product a feature is; -1 stands for the number 1.

    So (-1, -1) is the intercept and (-1, i) the coordinate i itself.
    """

    kernel: ClassVar[None] = None

    @property
    def n_features(self) -> int:
        """Number H of features."""
        return self.factors.shape[0]

    def at(
        self, points: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point feature"]:
        """Every feature at every complete point, in standard units."""
        extended = np.column_stack([points, np.ones(len(points))])  # factor -1 is the last column
        return extended[:, self.factors[:, 0]] * extended[:, self.factors[:, 1]]

    def fits(self, n_coordinates: int) -> bool:
        """Whether the features are defined on points of ``n_coordinates`` coordinates."""
        return within(self.factors, -1, n_coordinates)

    def take(self, used: Int[np.ndarray, " used"]) -> QuadraticBasis:
        """Basis of the features at the sorted indices ``used``."""
        return QuadraticBasis(self.factors[used])

    def reordered(self, coordinates: Int[np.ndarray, " coordinate"]) -> QuadraticBasis:
        """The features of points whose coordinate i is the old coordinate ``coordinates[i]``."""
        inverse = np.append(np.argsort(coordinates), -1)
        return QuadraticBasis(np.sort(inverse[self.factors], axis=1))

    def named(self, coordinates: Sequence[str]) -> list[str]:
        """Names of the features: products of coordinates."""
        factors = [*coordinates, ""]  # factor -1 is the last: no name
        pairs = ([factors[i] for i in pair if i >= 0] for pair in self.factors)
        return [" * ".join(pair) or "1" for pair in pairs]

    def __laws__(self) -> Requirements:
        yield within(self.factors, -1, MAX_PARTS), "coordinates, or -1 for the number 1"


@stored
class KernelBasis:
    """Intercept and kernel values at exemplar rows: the dual form."""

    kernel: Any
    """``"polynomial"``, ``"gaussian"``, or a function of points (n, d), (m, d) to values (n, m)."""
    exemplars: Float[np.ndarray, "exemplar coordinate"]
    """Training rows, in standard units; feature 0 is the intercept, so there are one fewer."""

    @property
    def n_features(self) -> int:
        """Number H of features."""
        return self.exemplars.shape[0] + 1

    def at(
        self, points: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point feature"]:
        """Every feature at every complete point, in standard units."""
        values = kernel_values(self.kernel, points, self.exemplars)
        return np.column_stack([np.ones(len(points)), values])

    def fits(self, n_coordinates: int) -> bool:
        """Whether the features are defined on points of ``n_coordinates`` coordinates."""
        return self.exemplars.shape[1] == n_coordinates

    def take(self, used: Int[np.ndarray, " used"]) -> KernelBasis:
        """Basis of the features at the sorted indices ``used``, the first of which is 0."""
        return KernelBasis(self.kernel, self.exemplars[used[1:] - 1])

    def reordered(self, coordinates: Int[np.ndarray, " coordinate"]) -> KernelBasis:
        """The features of points whose coordinate i is the old coordinate ``coordinates[i]``."""
        return KernelBasis(self.kernel, self.exemplars.take(coordinates, 1))

    def named(self, coordinates: Sequence[str]) -> list[str]:
        """Names of the features: numbers of exemplars."""
        return ["1", *(f"exemplar {i}" for i in range(self.n_features - 1))]


Basis = QuadraticBasis | KernelBasis


def kernel_values(kernel: object, left: np.ndarray, right: np.ndarray) -> Float[np.ndarray, "n m"]:
    """Kernel ``k(left_n, right_m)``; ValueError if a user's function is not finite there."""
    if kernel == "polynomial":
        return (left @ right.T + 1) ** 2
    if kernel == "gaussian":
        squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
        return np.exp(-0.5 * np.maximum(squares, 0))  # rounding may make them negative
    if not callable(kernel):
        raise ValueError(f"kernel must be one of {KERNELS} or a function; received {kernel!r}.")
    values = np.asarray(kernel(left, right), dtype=np.float64)
    if values.shape != (len(left), len(right)) or not np.isfinite(values).all():
        raise ValueError(
            f"kernel(left, right) must return finite values of shape {(len(left), len(right))} "
            f"for points of shapes {left.shape} and {right.shape}; received shape {values.shape} "
            f"with {int((~np.isfinite(values)).sum())} values that are not finite."
        )
    return values


@dataclass(frozen=True)
class CompletedRows:
    """Labelled rows as complete points; a row with missing cells has several completions."""

    points: Float[np.ndarray, "point coordinate"]
    """Completions in the user's units, row by row: real columns, then indicators of all levels."""
    starts: Int[np.ndarray, " row"]  # First point of every row.
    allowed: Bool[np.ndarray, "row label"]
    """The classes that a row may have; all of them where its label is hidden."""
    weights: Float[np.ndarray, " row"]  # Factor of each row's log likelihood, at least 0.

    @cached_property
    def sizes(self) -> Int[np.ndarray, " row"]:
        """Number of completions of every row."""
        return np.diff(self.starts, append=self.points.shape[0])


@dataclass(frozen=True)
class SDGMSpecification:
    r"""Structure of the posterior of the weights.

    .. math:: p(c, m | x) \propto \pi_{cm} \exp(w_{cm}^\top \phi(x)), \quad
        w_h \sim N(0, \alpha_h^{-1})
    """

    component_class: Int[np.ndarray, " component"]  # Class of every component, non-decreasing.
    proportions: Float[np.ndarray, " component"]
    """Component probabilities pi: constants of the posterior."""
    component: Int[np.ndarray, " weight"]  # Component of every weight, non-decreasing.
    feature: Int[np.ndarray, " weight"]  # Feature of every weight.
    precisions: Float[np.ndarray, " weight"] | PrecisionPrior
    """Precisions alpha as constants, or the prior under which they are learned."""

    @property
    def n_components(self) -> int:
        """Number of components of all classes together."""
        return self.component_class.size

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.component.size


@stored
class SDGMParameters:
    r"""Mode of the weights with its Laplace covariance; only active weights are stored.

    .. math:: p(c, m | x) \propto \pi_{cm} \exp(w_{cm}^\top \phi(x))
    """

    component_class: Int[np.ndarray, " component"]
    """Class of every surviving component, non-decreasing."""
    proportions: Float[np.ndarray, " component"]
    """Component probabilities pi, summing to one within each class."""
    component: Int[np.ndarray, " weight"]  # Component of every active weight, non-decreasing.
    feature: Int[np.ndarray, " weight"]  # Feature of every active weight.
    coefficients: Float[np.ndarray, " weight"]  # Active weights w at the mode.
    precisions: Float[np.ndarray, " weight"]  # Prior precisions alpha of the active weights.
    covariance: Float[np.ndarray, "weight weight"]
    """Inverse of the negative Hessian of the log posterior of w at the mode."""

    @property
    def n_components(self) -> int:
        """Number of surviving components of all classes together."""
        return self.component_class.size

    @property
    def n_weights(self) -> int:
        """Number of active weights, intercepts included."""
        return self.coefficients.size

    @property
    def specification(self) -> SDGMSpecification:
        """The posterior of the active weights, precisions as constants."""
        return SDGMSpecification(
            self.component_class, self.proportions, self.component, self.feature, self.precisions
        )

    @cached_property
    def root(self) -> Float[np.ndarray, "weight weight"]:
        """R with ``R R'`` the covariance: axes from the longest on, none opposed to the weights."""
        variances, axes = np.linalg.eigh(self.covariance)
        axes = axes * np.where(self.coefficients @ axes < 0, -1.0, 1.0)
        # Rounding makes eigenvalues of 0 slightly negative.
        return (axes * np.sqrt(np.maximum(variances, 0)))[:, ::-1]

    def reordered(self, order: Order) -> SDGMParameters:
        """Put the classes in another order; features keep their numbers."""
        classes = order.new_codes[self.component_class]
        components = np.argsort(classes, kind="stable")
        component = np.argsort(components)[self.component]
        weights = np.argsort(component, kind="stable")
        return SDGMParameters(
            classes[components],
            self.proportions[components],
            component[weights],
            self.feature[weights],
            self.coefficients[weights],
            self.precisions[weights],
            self.covariance[np.ix_(weights, weights)],
        )

    def dense(self, n_features: int) -> Float[np.ndarray, "feature component"]:
        """The weights with their zeros, one column a component."""
        weights = np.zeros((n_features, self.n_components))
        weights[self.feature, self.component] = self.coefficients
        return weights

    def __laws__(self) -> Requirements:
        k, spread = self.n_components, self.covariance
        yield classes_in_order(self.component_class), "classes in order"
        yield self.proportions.size == k, "a share of every component"
        yield by_class(self.proportions, self.component_class), "shares that sum to one by class"
        yield within(self.component, 0, k) and within(self.feature, 0), "components and features"
        yield within(np.diff(self.component), 0), "components in order"
        yield scales(self.precisions), "positive precisions"
        yield within(abs(self.coefficients), 0, MAX_LOG), "weights"
        yield within(abs(spread), 0, 1e12) and within(np.diag(spread), 0), "a covariance"
        yield np.allclose(spread, spread.T, rtol=1e-6, atol=1e-9), "a symmetric covariance"


@stored
class SDGMModes:
    """Distinct modes of the weights and their probabilities."""

    parameters: tuple[SDGMParameters, ...]
    """Point and spread of every mode, the most probable first."""
    probabilities: Float[np.ndarray, " mode"]
    """Fraction of the evidence of every mode, precisions integrated out; they sum to one."""

    @property
    def best(self) -> SDGMParameters:
        """The most probable mode."""
        return self.parameters[0]

    @property
    def alone(self) -> SDGMModes:
        """A copy with the most probable mode only."""
        return SDGMModes(self.parameters[:1], np.ones(1))

    def __laws__(self) -> Requirements:
        yield 0 < len(self.parameters) == self.probabilities.size, "a probability of every mode"
        yield simplex(self.probabilities), "probabilities that sum to one"


@stored
class SDGMTrace:
    """Path of the type-II maximisation, one entry a step.

    The evidence is the Laplace approximation of the log evidence in nats. While weights are very
    many, it is that of every component with the others held. It need not rise: the updates of
    alpha and pi are fixed-point steps.
    """

    evidence: Float[np.ndarray, " iteration"] = field(metadata=ANY_NUMBER)
    n_weights: Int[np.ndarray, " iteration"]  # Active weights.
    n_components: Int[np.ndarray, " iteration"]  # Surviving components.


@dataclass(frozen=True)
class SDGMFit:
    """Modes of a fit, with trace, status and diagnostics of the most probable mode."""

    modes: SDGMModes
    trace: SDGMTrace
    status: Status
    log_posterior: float  # Log density of the active weights given their precisions, at the point.
    restarts: Float[np.ndarray, " restart"]  # Log evidence that every restart reached.
    n_indefinite: int
    """Directions not curving downwards at the point: they have the complete-data spread."""
    completion_error: float
    """Standard error of the log likelihood, in nats, by finitely many completions of rows."""

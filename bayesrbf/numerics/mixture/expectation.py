"""The E-step: rows prepared once, then expected statistics at any parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from bayesrbf.blocks import Blocks
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.array_expectation import LOWEST, ArrayExpectation
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import JointPoint, Statistics
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

COMPILED_FROM = 200_000
"""Multiply-adds of an iteration above which loading the compiled kernels pays."""


@runtime_checkable
class Sums(Protocol):
    """Sums over rows, in memory or elsewhere, as EM asks for them."""

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        ...


@runtime_checkable
class Expectation(Protocol):
    """Rows of one table under one specification, ready for any parameters in standard units."""

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        ...

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        ...

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Log joints of every row and component, ready to carry gradients back."""
        ...

    def for_many(self) -> Expectation:
        """These rows, prepared for so many E-steps that loading compiled code pays."""
        ...


class BlockExpectation:
    """E-step over blocks of rows in standard units, which stay where they are.

    Sums alone come back, so ``pointwise`` is empty. ``passes`` counts the E-steps.
    """

    def __init__(self, rows: Blocks[Observations], specification: MixtureSpecification) -> None:
        self._prepared = rows.map(partial(prepare, specification=specification)).kept()
        self.passes = 0

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        self.passes += 1
        return self._prepared.map(partial(_sums, parameters=parameters)).reduce(Statistics.joined)


def _sums(rows: Sums, parameters: MixtureParameters) -> Statistics:
    """Statistics of a block, without what has a number a row."""
    with one_blas_thread():
        return replace(rows.statistics(parameters), pointwise=np.zeros(0))


def prepare(observations: Observations, specification: MixtureSpecification) -> Expectation:
    """Prepare rows for repeated E-steps, in NumPy or in compiled kernels.

    Both give the same numbers but for rounding.
    """
    return preparation(observations, specification)(observations, specification)


def preparation(
    observations: Observations, specification: MixtureSpecification
) -> Callable[[Observations, MixtureSpecification], Expectation]:
    """The way to prepare such rows.

    Small tables stay in NumPy, which needs no compiled code to be loaded, and so do factors, whose
    E-step is a few matrix products. Large ones, and full covariances with missing cells, use the
    compiled kernels.
    """
    kind: Callable[[Observations, MixtureSpecification], Expectation] = ArrayExpectation
    law, (rows, d) = laws_of(specification).reals, observations.real.shape
    width = (d if specification.independent else d * d) + len(specification.levels)
    dependent = not specification.independent and bool(np.isnan(observations.real).any())
    large = dependent or rows * law.n_components * width >= COMPILED_FROM
    if rows and law.in_kernels and large:
        from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation

        kind = CompiledExpectation
    return partial(_with_further, kind) if specification.further else kind


class FurtherExpectation:
    """Rows of real, categorical and further columns.

    The laws of the further columns add their log densities and statistics to those of the others,
    whatever evaluates these.
    """

    def __init__(
        self, others: Expectation, observations: Observations, specification: MixtureSpecification
    ) -> None:
        self._others, self._observations, self._specification = others, observations, specification
        self._laws = laws_of(specification).further
        labels = observations.labels[:, None]
        self._excluded = (labels >= 0) & (labels != np.asarray(specification.component_class))

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        point = self.at(parameters)
        admitted = np.where(self._excluded, -np.inf, point.log_joint)
        pointwise, responsibilities = log_sum_exp(admitted, axis=1)
        weights = self._observations.weights
        found = point.statistics(weights[:, None] * responsibilities)
        return replace(found, log_likelihood=float(weights @ pointwise), pointwise=pointwise)

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        return self._joined(self._others.component_log_joint(parameters), parameters)

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Log joints of every row and component, ready to carry gradients back."""
        others = self._others.at(parameters)
        return JointPoint(
            self._joined(others.log_joint, parameters), partial(self._weighted, others)
        )

    def for_many(self) -> FurtherExpectation:
        """These rows, the other columns prepared for so many E-steps that compiled code pays."""
        return FurtherExpectation(self._others.for_many(), self._observations, self._specification)

    def _joined(
        self, log_joint: Float[np.ndarray, "obs component"], parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """Log joints of the others, and the log densities of the further columns."""
        for law, cells in zip(self._laws, self._observations.further, strict=True):
            log_joint = log_joint + law.log_density(cells, parameters.further)
        return np.maximum(log_joint, LOWEST)

    def _weighted(
        self, others: JointPoint, gradients: Float[np.ndarray, "obs component"]
    ) -> Statistics:
        """Sums over the rows with gradients in the place of weighted responsibilities."""
        pairs = zip(self._laws, self._observations.further, strict=True)
        further = tuple(law.statistics(cells, gradients) for law, cells in pairs)
        return replace(others.statistics(gradients), further=further)


def _with_further(
    kind: Callable[[Observations, MixtureSpecification], Expectation],
    observations: Observations,
    specification: MixtureSpecification,
) -> FurtherExpectation:
    """Rows with further columns, the others prepared as ``kind`` has them."""
    return FurtherExpectation(kind(observations, specification), observations, specification)

"""The E-step: rows prepared once, then expected statistics at any parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from bayesrbf.blocks import Blocks
from bayesrbf.numerics.mixture.array_expectation import ArrayExpectation
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

    Small tables stay in NumPy, which needs no compiled code to be loaded. Large ones, and full
    covariances with missing cells, use the compiled kernels.
    """
    rows, d = observations.real.shape
    width = (d if specification.independent else d * d) + len(specification.levels)
    dependent = not specification.independent and bool(np.isnan(observations.real).any())
    large = dependent or rows * specification.n_components * width >= COMPILED_FROM
    if rows and large:
        from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation

        return CompiledExpectation
    return ArrayExpectation

"""The E-step over blocks of rows: sums of every block, added up."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bayesrbf.blocks import Blocks
from bayesrbf.numerics.mixture.expectation import Sums, prepare
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification


class BlockExpectation:
    """E-step over blocks of rows in standard units, which stay where they are.

    Sums alone come back, so ``pointwise`` is empty. ``passes`` counts the E-steps.
    """

    def __init__(self, rows: Blocks[Observations], specification: MixtureSpecification) -> None:
        self._prepared = rows.map(partial(_prepared, specification=specification)).kept()
        self.passes = 0

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        self.passes += 1
        return self._prepared.map(partial(_sums, parameters=parameters)).reduce(Statistics.joined)


def _prepared(rows: Observations, specification: MixtureSpecification) -> Sums:
    """Rows of a block, ready for any parameters."""
    return prepare(rows, specification)


def _sums(rows: Sums, parameters: MixtureParameters) -> Statistics:
    """Statistics of a block, without what has a number a row."""
    with one_blas_thread():
        return replace(rows.statistics(parameters), pointwise=np.zeros(0))

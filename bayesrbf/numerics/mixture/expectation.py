"""The E-step: rows prepared once, then expected statistics at any parameters."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.array_expectation import ArrayExpectation
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

COMPILED_FROM = 200_000
"""Multiply-adds of an iteration above which loading the compiled kernels pays."""


@runtime_checkable
class Expectation(Protocol):
    """Rows of one table under one specification, ready for any parameters; in standard units."""

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Compute expected sufficient statistics; labels restrict the components of a row."""
        ...

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """Compute ``log pi_c + log w_k + log p(x_o | k)`` in nats, labels ignored."""
        ...


def prepare(
    observations: Observations, specification: MixtureSpecification, *, many: bool = False
) -> Expectation:
    """Prepare rows for repeated E-steps.

    Small complete tables stay in NumPy, which needs no compiled code to be
    loaded; large ones, and full covariances with missing cells, use the
    compiled kernels. Both give the same numbers but for rounding. ``many`` says that so many
    thousands of E-steps follow that loading compiled code, half a second, pays for a small table
    too. Rows are in standard units.
    """
    if specification.further:
        from bayesrbf.numerics.mixture.weighted_statistics import JointExpectation

        return JointExpectation(observations, specification, many=many)
    if observations.n_obs == 0 or (not many and is_small(observations, specification)):
        return ArrayExpectation(observations, specification)
    from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation

    return CompiledExpectation(observations, specification)


def is_small(observations: Observations, specification: MixtureSpecification) -> bool:
    """Whether NumPy is quick enough for an iteration over these rows."""
    rows, d = observations.real.shape
    independent = specification.independent
    if not independent and np.isnan(observations.real).any():
        return False
    width = (d if independent else d * d) + len(specification.levels)
    return bool(rows * specification.n_components * width < COMPILED_FROM)

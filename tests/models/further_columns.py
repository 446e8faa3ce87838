"""A table with columns of counts and of ordered levels, for the graph and for the families."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesrbf.records.column_laws import CountColumns, OrdinalColumns
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import MixtureSpecification
from tests.models.configurations import Configuration

COUNTS = CountColumns(("visits", "calls"), means=(2.0, 9.0), dispersions=(0.5, 1.5))
LEVELS = OrdinalColumns(("stage", "pain", "sex"), cuts=((-1.0, 0.5, 1.2), (-0.3, 0.8), (0.2,)))


@dataclass(frozen=True)
class Further(Configuration):
    """A configuration with two columns of counts and three of levels, some cells missing."""

    @property
    def specification(self) -> MixtureSpecification:
        return replace(super().specification, further=(COUNTS, LEVELS))

    @cached_property
    def observations(self) -> Observations:
        rows = super().observations
        return replace(rows, further=further_cells(rows, 0.3 * self.missing))


def further_cells(rows: Observations, missing: float) -> tuple[np.ndarray, ...]:
    """Counts and levels that depend on the class, some of them missing."""
    rng = np.random.default_rng(7)
    shift = np.maximum(rows.labels, 0)[:, None]
    counts = rng.negative_binomial(1.5, 1 / (1 + np.array([2.0, 6.0]) * (1 + shift)))
    codes = np.floor(rng.beta(1 + shift, 1.0, (rows.n_obs, 3)) * LEVELS.n_levels)
    return tuple(
        np.where(rng.random(cells.shape) < missing, np.nan, cells.astype(float))
        for cells in (counts, codes)
    )

"""Counts as a law of their own: the graph's half, one function; and a table that has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesrbf.models.column_laws import LawNodes, declare_law
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import MixtureSpecification
from tests.models.configurations import Configuration
from tests.poisson_columns import COUNT, RATES, PoissonColumns

COUNTS = PoissonColumns(("visits", "calls"), shape=2.0, rate=0.5)


@declare_law.register
def declare_counts(record: PoissonColumns, n_components: int) -> LawNodes:
    """Rates with their gamma prior, and the counts of rows under them."""
    pm.modelcontext(None).add_coords({COUNT: record.columns})
    rates = pm.Gamma(
        RATES, np.float64(record.shape), np.float64(record.rate), dims=(names.COMPONENT, COUNT)
    )
    return LawNodes(
        n_columns=len(record.columns),
        nodes=(rates,),
        logp=lambda counts, observed, rates: (
            observed * (counts * pt.log(rates) - rates - pt.gammaln(counts + 1))
        ).sum(-1),
        draw=lambda rates: pm.Poisson.dist(rates),
    )


@dataclass(frozen=True)
class Counted(Configuration):
    """A configuration with two columns of counts, some of them missing."""

    @property
    def specification(self) -> MixtureSpecification:
        return replace(super().specification, further=(COUNTS,))

    @cached_property
    def observations(self) -> Observations:
        rows = super().observations
        rng = np.random.default_rng(7)
        counts = rng.poisson(3.0 + 3 * np.maximum(rows.labels, 0)[:, None], (rows.n_obs, 2))
        holes = self.missing & (rng.random(counts.shape) < 0.3)
        return replace(rows, further=(np.where(holes, np.nan, counts),))

"""Training rows of a stack's members, and everything that these members share.

Real columns are standardised and mapped towards a normal shape in front of every
member: half ranks for kernels, Yeo-Johnson's powers for mixtures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.fitted.companions import Companions, fit_companions, shared_prior
from bayesrbf.fitted.fitted_kernel_network import (
    Exemplars,
    HiddenLayer,
    KernelSettings,
    find_exemplars,
    hidden_layer,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import (
    Solver,
    component_class,
    fit_mixture_rows,
    start_near,
)
from bayesrbf.fitted.sampling import weighted_sample
from bayesrbf.numerics.column_maps import HalfRankMaps, fit_half_rank, fit_power
from bayesrbf.numerics.kernel_network.learned_rates import RateSearch
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import CovarianceType, MixtureSpecification
from bayesrbf.records.stored import stored

Shape = Literal["half_rank", "power", "values"]

EM_STARTS, EM_TOL, EM_ITERATIONS = 3, 1e-3, 40
"""One start of three components is a matter of luck: of three, the best is worth .01 to .03
nats to such a mixture, where ten times the tolerance is worth nothing."""
NETWORK_ROWS: Final = 20_000
"""Rows that kernel networks are fitted to, at most: they have a thousand exemplars."""
N_EXEMPLARS = 1000
"""Twice as many were level on adult and waveform, from 2,000 to 8,000 rows."""
SEARCH: Final = RateSearch(subsamples=2, steps=15)
SEARCH_NEAR: Final = RateSearch(subsamples=1, steps=3)
"""How rates are learned from rows, and from there under other weights of the rows."""


@stored
class ValueMaps:
    """Reals of few values as categories, the others by half ranks."""

    few: FewValues
    others: HalfRankMaps

    @property
    def units(self) -> Standardisation:
        """Location and scale of the columns that stay real."""
        return self.others.units

    @property
    def rounded(self) -> ValueMaps:
        """Maps with the digits of single precision."""
        return replace(self, others=self.others.rounded)

    def applied(self, rows: Observations) -> Observations:
        """Rows as a member behind the maps sees them."""
        return self.others.applied(self.few.as_categories(rows))

    def in_table(self, of_columns: Float[np.ndarray, " column"]) -> Float[np.ndarray, " column"]:
        """Numbers of the columns that a member sees, in the order of the table's columns."""
        n_few, n_others = len(self.few.features), self.others.units.scale.size
        return of_columns[self.few.places(n_others + n_few, of_columns.size - n_others - n_few)]


ColumnMaps = HalfRankMaps | PowerMaps | ValueMaps
"""Real columns towards a normal shape, or towards categories."""


LayerKey = tuple[tuple[int, ...], KernelSettings]
"""What networks share whatever the rows: levels of the columns that they see, and settings."""


class MixtureForm(NamedTuple):
    """What mixtures fitted by EM share whatever the rows."""

    n_components: int
    """Most components of a class."""
    covariance_type: CovarianceType
    tied: bool


@dataclass(frozen=True)
class Starts:
    """What was fitted to rows: where searches under other weights of the same rows start."""

    companions: Mapping[tuple[int, ...], Companions]
    """By the levels of the columns that they see."""
    mixtures: Mapping[MixtureForm, FittedMixture]
    rate_points: Mapping[LayerKey, Float[np.ndarray, " coordinate"]]
    """Where the searches of rates ended."""


@dataclass(frozen=True)
class SharedTraining:
    """Training rows, and what the members fitted to them share."""

    rows: Observations
    """Distinct weighted rows, in the user's units."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    """Declared prior of mixtures and companion."""
    seed: int
    starts: Starts | None = None
    """What was fitted to the same rows under their own weights. A fit to a part of the rows that
    the others judge has none: groups of a mixture and few steps of a search remember them."""
    few: FewValues = field(default_factory=FewValues)
    """Real columns that a member may take for categories."""
    of_cells: Exemplars | None = None
    """The exemplars, where they were found in the same cells under other weights."""
    _layers: dict[LayerKey, HiddenLayer] = field(default_factory=dict, init=False)
    _mixtures: dict[MixtureForm, FittedMixture] = field(default_factory=dict, init=False)
    _mapped: dict[Shape, Observations] = field(default_factory=dict, init=False)

    @cached_property
    def of_networks(self) -> SharedTraining:
        """The rows of kernel networks: of very many some, with equally many of every class."""
        if self.rows.n_obs <= NETWORK_ROWS:
            return self
        return replace(self, rows=weighted_sample(self.rows, NETWORK_ROWS, self.seed))

    @cached_property
    def with_categories(self) -> SharedTraining:
        """These rows, reals of few values as categories."""
        if not self.few.features:
            return self
        rows, levels = self.few.as_categories(self.rows), self.levels + self.few.levels
        return replace(self, rows=rows, levels=levels, few=FewValues(), of_cells=None)

    @cached_property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return table.standardisation(self.rows.real, self.rows.weights)

    @cached_property
    def half_rank(self) -> HalfRankMaps:
        """Half ranks of the rows."""
        return fit_half_rank(self.units, self.rows.real, self.rows.weights)

    @cached_property
    def power(self) -> PowerMaps:
        """Yeo-Johnson's powers of the rows."""
        return fit_power(self.units, self.rows.real, self.rows.weights)

    @cached_property
    def values(self) -> ValueMaps:
        """Reals of few values as categories, half ranks of the others."""
        return ValueMaps(self.few, self.with_categories.half_rank)

    @cached_property
    def companions(self) -> Companions:
        """The mixtures that fill in the missing cells of the kernels."""
        rows = self.mapped("half_rank")
        near = None if self.starts is None else self.starts.companions.get(self.levels)
        return fit_companions(rows, self.levels, self.n_classes, self.prior, self.seed, near)

    @cached_property
    def cells(self) -> CellMoments:
        """The rows as the kernels see them."""
        return self.companions.cells(self.mapped("half_rank"))

    @cached_property
    def exemplars(self) -> Exemplars:
        """The rows that carry the kernels."""
        if self.of_cells is not None:
            return self.of_cells
        return find_exemplars(self.mapped("half_rank"), N_EXEMPLARS, self.seed)

    def layer(self, settings: KernelSettings) -> HiddenLayer:
        """The hidden layer of a network; networks that differ in their output alone share it."""
        # The same key in every fold, whose seeds differ, and for networks of other penalties.
        key = self.levels, replace(settings, l2=1.0, seed=0)
        if key not in self._layers:
            start = None if self.starts is None else self.starts.rate_points.get(key)
            searched = replace(settings, search=SEARCH if start is None else SEARCH_NEAR)
            rows = self.mapped("half_rank")
            self._layers[key] = hidden_layer(
                rows, self.cells, self.companions, searched, self.exemplars, start
            )
        return self._layers[key]

    def mixture(self, form: MixtureForm) -> FittedMixture:
        """A mixture fitted by EM to the rows behind the power maps; members share it."""
        if form not in self._mixtures:
            rows = self.mapped("power")
            near = None if self.starts is None else self.starts.mixtures.get(form)
            if near is None:
                classes, start = component_class(rows, self.n_classes, form.n_components), None
            else:
                classes, start = near.specification.component_class, start_near(near, rows)
            structure = MixtureSpecification(
                rows.real.shape[1], self.levels, classes, form.covariance_type, form.tied
            )
            # A covariance that all share leaves less to luck.
            starts = 1 if form.tied else EM_STARTS
            solver = Solver(starts, EM_ITERATIONS, EM_TOL, self.seed)
            prior = shared_prior(self.prior, structure)
            self._mixtures[form] = fit_mixture_rows(rows, structure, prior, solver, start)[0]
        return self._mixtures[form]

    @property
    def as_starts(self) -> Starts:
        """What members fitted to these rows found."""
        if self.of_networks is not self:
            return replace(self.of_networks.as_starts, mixtures=dict(self._mixtures))
        layers = self._layers.items()
        points = {key: one.rate_point for key, one in layers if one.rate_point is not None}
        # Only what was asked for: a complete table may need no companion.
        companions = {self.levels: self.companions} if self._layers else {}
        if self.few.features:
            others = self.with_categories.as_starts
            companions |= others.companions
            points |= others.rate_points
        return Starts(companions, dict(self._mixtures), points)

    def maps(self, shape: Shape) -> ColumnMaps:
        """The maps of a kind."""
        if shape == "values":
            return self.values
        return self.half_rank if shape == "half_rank" else self.power

    def mapped(self, shape: Shape) -> Observations:
        """The rows behind the maps of a kind."""
        if shape not in self._mapped:
            self._mapped[shape] = self.maps(shape).applied(self.rows)
        return self._mapped[shape]

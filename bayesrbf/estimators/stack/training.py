"""What the members of a stack that are fitted to the same rows share.

Real columns are standardised and mapped towards a normal shape in front of every
member: half ranks for kernels, Yeo-Johnson's powers for mixtures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.fitted.companions import Companions, fit_companions
from bayesrbf.fitted.fitted_kernel_network import (
    Exemplars,
    HiddenLayer,
    KernelSettings,
    find_exemplars,
    hidden_layer,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import Solver, component_class, fit_mixture_rows
from bayesrbf.numerics.column_maps import HalfRankMaps, fit_half_rank, fit_power
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification

Shape = Literal["half_rank", "power"]

EM_STARTS, EM_TOL, EM_ITERATIONS = 3, 1e-3, 40
"""One start of three components is a matter of luck: of three, the best is worth .01 to .03
nats to such a mixture, where ten times the tolerance is worth nothing."""
DENSITY_COMPONENTS = 3
N_EXEMPLARS = 2000


ColumnMaps = HalfRankMaps | PowerMaps
"""Real columns towards a normal shape."""


def behind(maps: ColumnMaps, rows: Observations) -> Observations:
    """Rows as a member behind maps of their columns sees them."""
    return replace(rows, real=maps.forward(rows.real))


class Views:
    """Rows as members see them: what several members see alike is made once."""

    def __init__(self, rows: Observations) -> None:
        self._rows = rows
        self._mapped: dict[int, Observations] = {}
        self._cells: dict[int, CellMoments] = {}

    def mapped(self, columns: ColumnMaps) -> Observations:
        """The rows behind maps."""
        if id(columns) not in self._mapped:
            self._mapped[id(columns)] = behind(columns, self._rows)
        return self._mapped[id(columns)]

    def cells(self, columns: ColumnMaps, companions: Companions) -> CellMoments:
        """The rows as kernels with a map and companions see them."""
        if id(companions) not in self._cells:
            self._cells[id(companions)] = companions.cells(self.mapped(columns))
        return self._cells[id(companions)]


LearnedRates = Mapping[KernelSettings, Float[np.ndarray, " column"]]
"""Rates that kernels learned, by what their networks share whatever the rows."""


@dataclass(frozen=True)
class Training:
    """Training rows, and what the members fitted to them share."""

    rows: Observations
    """Distinct weighted rows, in the user's units."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    """Declared prior of mixtures and companion."""
    seed: int
    of_folds: Sequence[LearnedRates] = ()
    """What was learned without each fold, and is averaged with what is learned from the rows."""
    _layers: dict[KernelSettings, HiddenLayer] = field(default_factory=dict, init=False)

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
    def companions(self) -> Companions:
        """The mixtures that fill in the missing cells of the kernels."""
        rows = self.mapped("half_rank")
        return fit_companions(rows, self.levels, self.n_classes, self.prior, self.seed)

    @cached_property
    def cells(self) -> CellMoments:
        """The rows as the kernels see them."""
        return self.companions.cells(self.mapped("half_rank"))

    @cached_property
    def exemplars(self) -> Exemplars:
        """The rows that carry the kernels."""
        return find_exemplars(self.mapped("half_rank"), N_EXEMPLARS, self.seed)

    def layer(self, settings: KernelSettings) -> HiddenLayer:
        """The hidden layer of a network; networks that differ in their output alone share it."""
        key = replace(settings, l2=1.0, seed=0)
        if key not in self._layers:
            rows = self.mapped("half_rank")
            others = [rates[key] for rates in self.of_folds if key in rates]
            known = rows, self.cells, self.companions, settings, self.exemplars
            self._layers[key] = hidden_layer(*known, others)
        return self._layers[key]

    @property
    def learned_rates(self) -> LearnedRates:
        """Rates of the kernels, of those that learn them."""
        layers = self._layers.items()
        return {key: basis.kernel.rates for key, (basis, _) in layers if key.rates != "fixed"}

    def maps(self, shape: Shape) -> ColumnMaps:
        """The maps of a kind."""
        return self.half_rank if shape == "half_rank" else self.power

    def mapped(self, shape: Shape) -> Observations:
        """The rows behind the maps of a kind."""
        return behind(self.maps(shape), self.rows)


def fit_density(
    rows: Observations, levels: tuple[int, ...], n_classes: int, prior: MixturePrior, seed: int
) -> FittedMixture:
    """Fit the density of the columns as they are: as G2, but without a map."""
    classes = component_class(rows, n_classes, DENSITY_COMPONENTS)
    specification = MixtureSpecification(rows.real.shape[1], levels, classes)
    solver = Solver(EM_STARTS, EM_ITERATIONS, EM_TOL, "squarem", seed)
    return fit_mixture_rows(rows, specification, prior, solver)[0]

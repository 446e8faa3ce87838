"""What the members of a stack that are fitted to the same rows share.

Real columns are standardised and mapped towards a normal shape in front of every
member: half ranks for kernels, Yeo-Johnson's powers for mixtures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from bayesrbf import table
from bayesrbf.fitted.fitted_kernel_network import (
    HiddenLayer,
    KernelSettings,
    cells_of,
    fit_companion,
    hidden_layer,
)
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import Solver, fit_mixture_rows
from bayesrbf.numerics.column_maps import HalfRankMaps, fit_half_rank, fit_power
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments
from bayesrbf.records.column_maps import PowerMaps
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification

Shape = Literal["half_rank", "power"]

ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""
EM_STARTS, EM_TOL, EM_ITERATIONS = 3, 1e-3, 40
"""One start of three components is a matter of luck: of three, the best is worth .01 to .03
nats to such a mixture, where ten times the tolerance is worth nothing."""
DENSITY_COMPONENTS = 3


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

    def cells(self, columns: ColumnMaps, companion: FittedMixture) -> CellMoments:
        """The rows as kernels with a map and a companion see them."""
        if id(companion) not in self._cells:
            self._cells[id(companion)] = cells_of(self.mapped(columns), companion)
        return self._cells[id(companion)]


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
    def companion(self) -> FittedMixture:
        """The mixture that fills in the missing cells of the kernels."""
        rows = self.mapped("half_rank")
        return fit_companion(rows, self.levels, self.n_classes, self.prior, self.seed)

    @cached_property
    def cells(self) -> CellMoments:
        """The rows as the kernels see them."""
        return cells_of(self.mapped("half_rank"), self.companion)

    def layer(self, settings: KernelSettings) -> HiddenLayer:
        """The hidden layer of a network; networks that differ in their output alone share it."""
        key = replace(settings, l2=1.0)
        if key not in self._layers:
            rows = self.mapped("half_rank")
            self._layers[key] = hidden_layer(rows, self.cells, self.companion, settings)
        return self._layers[key]

    def maps(self, shape: Shape) -> ColumnMaps:
        """The maps of a kind."""
        return self.half_rank if shape == "half_rank" else self.power

    def mapped(self, shape: Shape) -> Observations:
        """The rows behind the maps of a kind."""
        return behind(self.maps(shape), self.rows)


def component_class(rows: Observations, n_classes: int, most: int) -> tuple[int, ...]:
    """Class of every component; small classes have fewer.

    Examples
    --------
    >>> labels = np.repeat([0, 1], [20, 5])
    >>> rows = Observations(np.zeros((25, 1)), np.zeros((25, 0), int), labels, np.ones(25))
    >>> component_class(rows, 2, 3)
    (0, 0, 1)
    """
    labelled = rows.labels >= 0
    counts = np.bincount(rows.labels[labelled], rows.weights[labelled], minlength=n_classes)
    sizes = np.clip(counts // ROWS_PER_COMPONENT, 1, most).astype(int)
    return tuple(np.repeat(np.arange(n_classes), sizes).tolist())


def fit_density(
    rows: Observations, levels: tuple[int, ...], n_classes: int, prior: MixturePrior, seed: int
) -> FittedMixture:
    """Fit the density of the columns as they are: as G2, but without a map."""
    classes = component_class(rows, n_classes, DENSITY_COMPONENTS)
    specification = MixtureSpecification(rows.real.shape[1], levels, classes)
    solver = Solver(EM_STARTS, EM_ITERATIONS, EM_TOL, "squarem", seed)
    return fit_mixture_rows(rows, specification, prior, solver)[0]

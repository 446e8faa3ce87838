"""A law of further columns as a part of a mixture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.coordinates import in_coordinates, log_jacobian, slices
from bayesrbf.numerics.mixture.parts.column_law import ColumnLaw
from bayesrbf.numerics.mixture.parts.part import (
    Assignment,
    Hyper,
    Memberships,
    Part,
    Point,
    Rng,
    Rows,
    Values,
)
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.specification import Variable


@dataclass(frozen=True)
class FurtherPart(Part):
    """A law of further columns at its place among those of the mixture; it is its own prior."""

    law: ColumnLaw
    place: int

    constant: ClassVar[float] = 0.0

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables of the law."""
        return self.law.variables

    def values(self, point: Point, hyper: Hyper) -> Values:
        """Values of the variables."""
        return {variable.name: point.further[variable.name] for variable in self.variables}

    def placed(self, point: Point, values: Values, hyper: Hyper) -> Point:
        """The point at given values of the variables."""
        own = {variable.name: values[variable.name] for variable in self.variables}
        return replace(point, further={**point.further, **own})

    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """The M-step of the law."""
        own = self.law.mode(point.further, statistics.further[self.place])
        return replace(point, further={**point.further, **own})

    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """An M-step from the mode of the prior."""
        statistics = self.law.statistics(rows.further[self.place], memberships)
        own = self.law.mode(self.law.prior_mode(), statistics)
        return replace(point, further={**point.further, **own})

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row coordinate"]:
        """Rows as points, as the law has them."""
        return self.law.embedding(rows.further[self.place], rows.weights)

    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with their missing cells drawn given the components."""
        further = list(rows.further)
        cells, drawn = further[self.place], self.law.sample(components, point.further, rng)
        further[self.place] = np.where(np.isnan(cells), drawn, cells)
        return replace(rows, further=tuple(further))

    def prior(self, hyper: Hyper) -> FurtherPart:
        """The prior of the law, which is in the specification."""
        return self

    def log_density(self, parameters: Point, jacobian: bool) -> float:
        """Log density of the prior at one point in nats."""
        total = self.law.log_prior(parameters.further)
        return total + (log_jacobian(self.variables, parameters.further)[0] if jacobian else 0.0)

    def gradient(
        self, values: Values, parameters: Point, statistics: Statistics, jacobian: bool
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        by_value = self.law.gradient(values, statistics.further[self.place])
        gradient = in_coordinates(self.variables, values, by_value)
        if jacobian:
            gradient += log_jacobian(self.variables, values)[1]
        return {variable.name: gradient[part] for variable, part in slices(self.variables)}

r"""Monotone maps of real columns towards a normal shape, one power a column.

With :math:`t = (x - \text{location}) / \text{scale}` and h the number in [low, high] nearest to t,

.. math:: g(x) = \text{location} + \text{scale}\,(\psi(h) + \psi'(h) (t - h)), \quad
   \psi(h) = \mathrm{sign}(h) \frac{(1 + |h|)^p - 1}{p}, \quad
   \log g'(x) = (\lambda - 1) \, \mathrm{sign}(h) \log(1 + |h|)

with :math:`p = \lambda` for :math:`h \ge 0` and :math:`p = 2 - \lambda` below (Yeo and Johnson,
2000). Beyond the training cells the map goes on as a straight line: it takes the real line to the
whole real line, so it has an inverse everywhere. A power of 1 changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.specification import Order
from bayesrbf.records.stored import Requirements, stored, within

LEAST_EXPONENT = 1e-12
"""Exponents nearer to zero than this are zero: the map is a logarithm."""
MARGIN = 0.5
"""Cells that a model makes lie within the training cells' range, widened on either side by this
share of it: the inverse of a map can be steep."""


@stored
class PowerMaps:
    """The map of every real column."""

    location: Float[np.ndarray, " feature"]
    scale: Float[np.ndarray, " feature"]
    powers: Float[np.ndarray, " feature"]
    """Called lambda above."""
    low: Float[np.ndarray, " feature"]
    """Smallest training cell, in standard units."""
    high: Float[np.ndarray, " feature"]
    """Largest training cell, in standard units."""

    few: ClassVar = FewValues()
    """None is taken for a category."""

    @property
    def units(self) -> Standardisation:
        """Location and scale as a change of units."""
        return Standardisation(self.location, self.scale)

    @property
    def rounded(self) -> PowerMaps:
        """The maps themselves: they keep nothing that is large."""
        return self

    def forward(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Map cells: ``g(real)``."""
        return self.with_log_slope(real)[0]

    @np.errstate(over="ignore")  # beyond every scale a cell is infinite, and held by its reader
    def with_log_slope(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> tuple[Float[np.ndarray, "*rows feature"], Float[np.ndarray, "*rows feature"]]:
        """Mapped cells ``g(real)``, and ``log g'(real)`` in nats."""
        t = (real - self.location) / self.scale
        held = np.clip(t, self.low, self.high)
        log_slope = self._log_slope(held)
        mapped = yeo_johnson(held, self.powers) + np.exp(log_slope) * (t - held)
        return self.location + self.scale * mapped, log_slope

    def backward(
        self, mapped: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """The cells that are mapped to given numbers: the inverse of :meth:`forward`."""
        u = self.units.forward(mapped)
        inside = np.clip(u, yeo_johnson(self.low, self.powers), yeo_johnson(self.high, self.powers))
        held = _inverse(inside, self.powers)
        return self.units.backward(held + (u - inside) * np.exp(-self._log_slope(held)))

    def applied(self, rows: Observations) -> Observations:
        """Rows with their real cells mapped, and what that does to their log densities."""
        mapped, log_slope = self.with_log_slope(rows.real)
        change = np.nansum(log_slope, axis=1)
        return replace(rows, real=mapped, log_jacobian=rows.log_jacobian + change)

    def within_range(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Cells held within the range of the training cells, widened by half of it."""
        room = MARGIN * (self.high - self.low)
        lowest, highest = self.units.backward(np.stack([self.low - room, self.high + room]))
        return np.clip(real, lowest, highest)

    def reordered(self, order: Order) -> PowerMaps:
        """The maps of columns in another order."""
        fields = {name: value[order.features] for name, value in vars(self).items()}
        return PowerMaps(**fields)

    def _log_slope(self, held: np.ndarray) -> np.ndarray:
        """``log psi'`` at standard cells within the range."""
        return (self.powers - 1) * np.sign(held) * np.log1p(np.abs(held))

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"
        yield within(self.powers, -10, 10), "powers between -10 and 10"
        yield bool((self.low <= self.high).all()), "a range of every column"
        yield within((self.low, self.high), -1e6, 1e6), "ranges in standard units"


def yeo_johnson(
    x: Float[np.ndarray, "*rows feature"], powers: Float[np.ndarray, " feature"]
) -> Float[np.ndarray, "*rows feature"]:
    """Yeo-Johnson's power transformation psi of every column, see above.

    >>> yeo_johnson(np.array([[3.0], [-3.0]]), np.array([0.5])).ravel()
    array([ 2.        , -4.66666667])
    """
    exponent = np.where(x >= 0, powers, 2 - powers)
    logs = np.log1p(np.abs(x))
    none = np.abs(exponent) < LEAST_EXPONENT
    grown = np.expm1(exponent * logs) / np.where(none, 1.0, exponent)
    return np.sign(x) * np.where(none, logs, grown)


def _inverse(u: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """The x with ``yeo_johnson(x) = u``, for u that some x is mapped to."""
    exponent = np.where(u >= 0, powers, 2 - powers)
    none = np.abs(exponent) < LEAST_EXPONENT
    size = np.abs(u)
    logs = np.log1p(exponent * size) / np.where(none, 1.0, exponent)
    return np.sign(u) * np.expm1(np.where(none, size, logs))

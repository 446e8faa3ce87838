r"""Maps of real columns in a declared graph.

The powers are data, not free variables: they are found from every column alone, before the
mixture, so that given them the mixture keeps its conjugate priors. ``pm.set_data`` exchanges them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.models import densities
from bayesrbf.records.column_maps import LEAST_EXPONENT, PowerMaps


@dataclass(frozen=True)
class MapNodes:
    """The map of every real column, its power a node."""

    maps: PowerMaps
    powers: TensorVariable

    def forward(self, real: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        """Mapped cells, and the log derivatives of the map there."""
        t = (real - self.maps.location) / self.maps.scale
        held = pt.clip(t, self.maps.low, self.maps.high)
        log_slope = self._log_slope(held)
        mapped = self._power(held) + pt.exp(log_slope) * (t - held)
        return self.maps.location + self.maps.scale * mapped, log_slope

    def backward(self, mapped: TensorVariable) -> TensorVariable:
        """The cells that are mapped to given numbers."""
        u = (mapped - self.maps.location) / self.maps.scale
        lowest, highest = (
            self._power(pt.as_tensor(end)) for end in (self.maps.low, self.maps.high)
        )
        inside = pt.clip(u, lowest, highest)
        exponent = self._exponent(inside)
        size = pt.abs(inside)
        none = pt.lt(pt.abs(exponent), LEAST_EXPONENT)
        logs = pt.switch(none, size, pt.log1p(exponent * size) / pt.switch(none, 1.0, exponent))
        held = pt.sign(inside) * pt.expm1(logs)
        t = held + (u - inside) * pt.exp(-self._log_slope(held))
        return self.maps.location + self.maps.scale * t

    def _exponent(self, at: TensorVariable) -> TensorVariable:
        """lambda on the positive side, 2 - lambda on the other."""
        return pt.switch(pt.ge(at, 0), self.powers, 2 - self.powers)

    def _power(self, held: TensorVariable) -> TensorVariable:
        """Yeo-Johnson's transformation psi."""
        exponent = self._exponent(held)
        none = pt.lt(pt.abs(exponent), LEAST_EXPONENT)
        logs = pt.log1p(pt.abs(held))
        grown = pt.expm1(exponent * logs) / pt.switch(none, 1.0, exponent)
        return pt.sign(held) * pt.switch(none, logs, grown)

    def _log_slope(self, held: TensorVariable) -> TensorVariable:
        """``log psi'`` within the range of the training cells."""
        return (self.powers - 1) * pt.sign(held) * pt.log1p(pt.abs(held))


def masked_logp(
    maps: PowerMaps | None,
    value: TensorVariable,
    mean: TensorVariable,
    covariance: TensorVariable,
    observed: TensorVariable,
    *powers: TensorVariable,
) -> TensorVariable:
    """Log density of the observed real cells of a row, given its component."""
    change = 0.0
    if maps is not None:
        value, log_slopes = MapNodes(maps, *powers).forward(value)
        change = pt.sum(log_slopes * observed, axis=-1)
    factors = densities.observed_cholesky(covariance, observed)
    return densities.normal_logp(value, observed, mean, factors) + change


def masked_draw(
    maps: PowerMaps | None,
    mean: TensorVariable,
    covariance: TensorVariable,
    observed: TensorVariable,
    *rest: Variable,
) -> TensorVariable:
    """The real cells of a row given its component, 0 where missing; the last argument is a size."""
    real = densities.normal_draw(mean, covariance)
    return (real if maps is None else MapNodes(maps, *rest[:-1]).backward(real)) * observed

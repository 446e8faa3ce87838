"""The law of a cell given other cells of its row: tails, means and intervals, in logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr, logsumexp, ndtr

from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.quasi_random import QUADRATURE
from bayesrbf.records.mixture import ColumnAtoms, MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

ROUNDING_OF_LEVEL_PROBABILITIES = 1e-9
"""Levels that are more probable than the observed one by this factor count as just as probable."""
HALVINGS: Final = 36
"""Of the range that a quantile lies in."""
FARTHEST: Final = 12.0
"""Quantiles lie within so many standard deviations of some component."""

LEAST_PLACE_WEIGHT: Final = 1e-4
"""Least weight of a place that stands for a cell."""


@dataclass(frozen=True)
class CellLaw:
    """The law of the cells of a row given others: a mixture in its own units."""

    parameters: MixtureParameters
    specification: MixtureSpecification
    in_users_units: Callable[[np.ndarray], np.ndarray]
    """Takes reals out of the units of the parameters."""
    atoms: Sequence[ColumnAtoms] = ()
    prob: float | None = None
    """Probability of the central intervals; None: there are none, which is quicker."""

    def log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Log joint of rows and components; -inf for those that are not of the row's class."""
        prepared = prepare(rows, self.specification)
        has_label = rows.labels >= 0
        classes = np.asarray(self.specification.component_class)
        other = has_label[:, None] & (classes != rows.labels[:, None])
        return np.where(other, -np.inf, prepared.component_log_joint(self.parameters))


@dataclass(frozen=True)
class RealLaws:
    """Laws of real cells: a normal law under every component, and the masses of atoms."""

    means: Float[np.ndarray, "row component feature"]
    sds: Float[np.ndarray, "row component feature"]
    log_shares: Float[np.ndarray, "row component *feature"]
    """Log responsibilities given other cells of the row."""
    law: CellLaw

    def judge(
        self, z: Float[np.ndarray, "row feature"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Log tail, mean and the ends of the interval of every cell; cells are in the law's units.

        There are no intervals where the law asks for none.
        """
        away = (z[:, None] - self.means) / self.sds
        log_below = logsumexp(self._log_free + log_ndtr(away), axis=1)
        log_above = logsumexp(self._log_free + log_ndtr(-away), axis=1)
        for atoms, mass in self._atoms:
            at = z[:, atoms.feature, None]
            for log_side, side in (
                (log_below, atoms.standard <= at),
                (log_above, atoms.standard >= at),
            ):
                # there may be no atom on that side, and a cell that is not judged is NaN
                with np.errstate(divide="ignore", invalid="ignore"):
                    beyond = np.log(np.where(side, mass, 0.0).sum(axis=1))
                    log_side[:, atoms.feature] = np.logaddexp(log_side[:, atoms.feature], beyond)
        # An atom at the cell counts on both sides, so twice the smaller tail can exceed 1.
        log_tail = np.minimum(np.log(2) + np.minimum(log_below, log_above), 0.0)
        if self.law.prob is None:
            lower, upper = (np.full(z.shape, np.nan) for _ in range(2))
        else:
            tails = 0.5 - 0.5 * self.law.prob, 0.5 + 0.5 * self.law.prob
            lower, upper = (self.quantile(share) for share in tails)
        return log_tail, self.mean(), lower, upper

    def mean(self) -> Float[np.ndarray, "row feature"]:
        """Means, in the user's units."""
        return self._moment(1, np.zeros_like(self.means[:, 0]))

    def sd(self) -> Float[np.ndarray, "row feature"]:
        """Standard deviations, in the user's units."""
        return np.sqrt(self._moment(2, self.mean()))

    def quantile(self, share: float) -> Float[np.ndarray, "row feature"]:
        """The number below which that share of the law lies, by halving, in the user's units."""
        low = (self.means - FARTHEST * self.sds).min(axis=1)
        high = (self.means + FARTHEST * self.sds).max(axis=1)
        for atoms, _ in self._atoms:
            low[:, atoms.feature] = np.minimum(low[:, atoms.feature], atoms.standard[0] - 1)
            high[:, atoms.feature] = np.maximum(high[:, atoms.feature], atoms.standard[-1] + 1)
        # Halving needs no derivative, and none exists at an atom, where the function jumps.
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = self._below(middle) >= share
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        quantiles = self.law.in_users_units(high)
        for atoms, mass in self._atoms:
            # Halving ends beside an atom: where the level lies within its jump, it is the quantile.
            for place, value in enumerate(atoms.values):
                at = np.full(low.shape, np.nan)
                at[:, atoms.feature] = atoms.standard[place]
                upto = self._below(at)[:, atoms.feature]
                jump = (upto - mass[:, place] < share) & (share <= upto)
                quantiles[jump, atoms.feature] = value
        return quantiles

    def points(
        self, feature: int
    ) -> tuple[Float[np.ndarray, "row point"], Float[np.ndarray, "row point"]]:
        """Places that stand for the cells of a column, in the user's units, and their weights.

        They are the nodes of every component's quadrature and the atoms. Places that weigh less
        than ``LEAST_PLACE_WEIGHT`` weigh nothing.
        """
        nodes, masses = QUADRATURE
        means, sds = self.means[..., None], self.sds[..., None]
        cells = np.moveaxis(means + sds * nodes, 3, 2)  # the feature is last
        values = self.law.in_users_units(cells)[..., feature]
        weights = self._free[:, :, feature, None] * masses
        values, weights = (of_node.reshape(len(means), -1) for of_node in (values, weights))
        for atoms, mass in self._atoms:
            if atoms.feature == feature:
                values = np.hstack([values, np.broadcast_to(atoms.values, mass.shape)])
                weights = np.hstack([weights, mass])
        weights = np.where(weights < LEAST_PLACE_WEIGHT, 0.0, weights)
        return values, weights / weights.sum(axis=1, keepdims=True)

    def _below(self, z: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        """Distribution function at numbers in the law's units."""
        below = (self._free * ndtr((z[:, None] - self.means) / self.sds)).sum(axis=1)
        for atoms, mass in self._atoms:
            under = atoms.standard <= z[:, atoms.feature, None]
            below[:, atoms.feature] += np.where(under, mass, 0.0).sum(axis=1)
        return below

    def _moment(
        self, order: int, centre: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row feature"]:
        """Moments about a centre, both in the user's units."""
        # Maps bend the units, so a moment in the user's units is a quadrature, not a formula.
        total = np.zeros_like(centre)
        for node, mass in zip(*QUADRATURE, strict=True):
            away = self.law.in_users_units(self.means + node * self.sds) - centre[:, None]
            total += mass * (self._free * away**order).sum(axis=1)
        for atoms, mass in self._atoms:
            away = atoms.values - centre[:, atoms.feature, None]
            total[:, atoms.feature] += (mass * away**order).sum(axis=1)
        return total

    @cached_property
    def _atoms(self) -> list[tuple[ColumnAtoms, Float[np.ndarray, "row atom"]]]:
        """Atoms and their probabilities."""
        masses = []
        for atoms in self.law.atoms:
            theta = self.law.parameters.category_probabilities[atoms.category]
            shares = np.broadcast_to(np.exp(self.log_shares), self.means.shape)
            masses.append((atoms, shares[:, :, atoms.feature] @ theta[:, 1:]))
        return masses

    @cached_property
    def _log_free(self) -> Float[np.ndarray, "row component feature"]:
        """Log probabilities of the components and of no atom."""
        log_free = np.broadcast_to(self.log_shares, self.means.shape).copy()
        for atoms in self.law.atoms:
            theta = self.law.parameters.category_probabilities[atoms.category]
            log_free[:, :, atoms.feature] += np.log(theta[:, 0])
        return log_free

    @cached_property
    def _free(self) -> Float[np.ndarray, "row component feature"]:
        """Probabilities of the components and of no atom."""
        return np.exp(self._log_free)


def level_tails(
    log_shares: Float[np.ndarray, "row component"],
    theta: Float[np.ndarray, "component level"],
    cell: Int[np.ndarray, " row"],
) -> tuple[Float[np.ndarray, " row"], Int[np.ndarray, " row"]]:
    """Log tail of cells of a categorical column, and its most probable level."""
    levels = logsumexp(log_shares[:, :, None] + np.log(theta), axis=1)
    own = levels[np.arange(cell.size), cell]
    # Levels that are equally probable but for rounding must all count, whichever was observed.
    at_most = np.where(levels <= own[:, None] + ROUNDING_OF_LEVEL_PROBABILITIES, levels, -np.inf)
    return np.minimum(logsumexp(at_most, axis=1), 0.0), levels.argmax(axis=1)

"""Missing and observed cells under a mixture: their laws, tails, novelty, completed rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, product
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_ndtr, log_softmax, logsumexp, ndtr

from bayesrbf.base.arrays import EVEN_QUADRATURE, QUADRATURE
from bayesrbf.base.rows import (
    ColumnPointMasses,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    in_blocks,
)
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.fitted import FittedMixture
from bayesrbf.mixture.gaussian import Conditional, leave_one_out
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.missing import conditional_draws, sample
from bayesrbf.mixture.posterior import joined
from bayesrbf.table.columns import Columns
from bayesrbf.table.order import distinct

# The law of a cell given other cells of its row: tails, means and intervals, in logs.


ROUNDING_OF_LEVEL_PROBABILITIES = 1e-9
"""Log probabilities of levels that differ by less are equal: rounding must not rank levels."""
HALVINGS: Final = 36
"""Bisections for a quantile; the bracket shrinks by 2^36 = 7e10."""
FARTHEST: Final = 12.0
"""Standard deviations about the means that bracket a quantile; less than 1e-32 lies beyond."""

MIN_POINT_WEIGHT: Final = 1e-4
"""Smallest weight of a quadrature point of a missing cell; lighter points are dropped."""


@dataclass(frozen=True)
class CellLaw:
    """Mixture that predicts cells of a row from its other cells, in standard units."""

    parameters: MixtureParameters
    specification: MixtureSpecification
    in_users_units: Callable[[np.ndarray], np.ndarray]
    """Takes reals out of the units of the parameters, to numbers of the table."""
    point_masses: Sequence[ColumnPointMasses] = ()
    together: Sequence[range] = ()
    """Reals that are of one column: a cell is judged by all of them."""
    is_smooth: bool = True
    """Whether numbers of the table are smooth functions of the reals, and not rounded."""
    prob: float | None = None
    """Probability of the central intervals; None: there are none, which is quicker."""

    def log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log p(x_o, k)`` in nats; -inf under components of other classes than the label's."""
        prepared = prepare(rows, self.specification)
        has_label = rows.labels >= 0
        classes = np.asarray(self.specification.component_class)
        other = has_label[:, None] & (classes != rows.labels[:, None])
        return np.where(other, -np.inf, prepared.component_log_joint(self.parameters))


@dataclass(frozen=True)
class RealLaws:
    """Laws of real cells: mixtures of normal laws and point masses, one a row and column."""

    means: Float[np.ndarray, "row component feature"]
    sds: Float[np.ndarray, "row component feature"]
    log_shares: Float[np.ndarray, "row component *feature"]
    """Log responsibilities given other cells of the row."""
    law: CellLaw
    roots: Sequence[Float[np.ndarray, "row component n n"]] = ()
    """R with R R' the covariance of the reals of a column, for every column with several."""

    def judge(
        self, z: Float[np.ndarray, "row feature"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        r"""Log two-sided tail, mean, lower end and upper end of the interval of every cell.

        Each of the four has shape (row, feature). ``z`` is in the standard units of the law; means
        and ends are in the user's units. The log tail is
        :math:`\log 2 \min(P(X \le z), P(X \ge z))`, at most 0. The interval is central with
        probability ``law.prob``; both ends are NaN if ``law.prob`` is None. The tail of a cell that
        is NaN is NaN.
        """
        away = (z[:, None] - self.means) / self.sds
        log_below = logsumexp(self._log_free + log_ndtr(away), axis=1)
        log_above = logsumexp(self._log_free + log_ndtr(-away), axis=1)
        for point_masses, mass in self._point_masses:
            at = z[:, point_masses.feature, None]
            for log_side, side in (
                (log_below, point_masses.standard <= at),
                (log_above, point_masses.standard >= at),
            ):
                # there may be no point mass on that side, and a cell that is not judged is NaN
                with np.errstate(divide="ignore", invalid="ignore"):
                    beyond = np.log(np.where(side, mass, 0.0).sum(axis=1))
                    log_side[:, point_masses.feature] = np.logaddexp(
                        log_side[:, point_masses.feature], beyond
                    )
        # A point mass at the cell counts on both sides, so twice the smaller tail can exceed 1.
        log_tail = np.minimum(np.log(2) + np.minimum(log_below, log_above), 0.0)
        if self.law.prob is None:
            lower, upper = (np.full(z.shape, np.nan) for _ in range(2))
        else:
            tails = 0.5 - 0.5 * self.law.prob, 0.5 + 0.5 * self.law.prob
            lower, upper = (self.quantile(share) for share in tails)
        return log_tail, self.mean(), lower, upper

    def mean(self) -> Float[np.ndarray, "row feature"]:
        r"""Means, in the user's units.

        .. math:: \sum_k s_k \Bigl(\theta_{k0} \, E_k[g^{-1}(z)] + \sum_a \theta_{ka} a\Bigr),

        with the shares s of the components, and :math:`E_k` by Gauss-Hermite quadrature.
        """
        return self._moment(1, np.zeros_like(self.means[:, 0]))

    def sd(self) -> Float[np.ndarray, "row feature"]:
        """Standard deviations, in the user's units."""
        return np.sqrt(self._moment(2, self.mean()))

    def quantile(self, share: float) -> Float[np.ndarray, "row feature"]:
        """Quantile of every cell at probability ``share``, by bisection, in the user's units."""
        low = (self.means - FARTHEST * self.sds).min(axis=1)
        high = (self.means + FARTHEST * self.sds).max(axis=1)
        for point_masses, _ in self._point_masses:
            # A point mass may lie outside of the bracket of all normal laws.
            low[:, point_masses.feature] = np.minimum(
                low[:, point_masses.feature], point_masses.standard[0] - 1
            )
            high[:, point_masses.feature] = np.maximum(
                high[:, point_masses.feature], point_masses.standard[-1] + 1
            )
        # Bisection needs no derivative, and none exists at a point mass, where the function jumps.
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = self.below(middle) >= share
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        quantiles = self.law.in_users_units(high)
        for point_masses, mass in self._point_masses:
            # Bisection ends next to a point mass: it is the quantile if its jump crosses the level.
            for index, value in enumerate(point_masses.values):
                at = np.full(low.shape, np.nan)
                at[:, point_masses.feature] = point_masses.standard[index]
                upto = self.below(at)[:, point_masses.feature]
                jump = (upto - mass[:, index] < share) & (share <= upto)
                quantiles[jump, point_masses.feature] = value
        return quantiles

    def points(
        self, features: range
    ) -> tuple[Float[np.ndarray, "row point real"], Float[np.ndarray, "row point"]]:
        """Points and weights of a discrete law of a column's cells, in the user's units.

        The points are the quadrature nodes of every component and the point masses. Weights below
        ``MIN_POINT_WEIGHT`` become 0. Where a column has several reals, nodes lie along one axis
        after the other, at distances that keep the variances.
        """
        nodes, masses = QUADRATURE
        n_rows, n_axes = len(self.means), len(features)
        steps = np.zeros((n_axes * nodes.size, self.means.shape[2]))
        for axis, feature in enumerate(features):
            steps[axis * nodes.size :][: nodes.size, feature] = np.sqrt(n_axes) * nodes
        cells = self.means[:, :, None] + self.sds[:, :, None] * steps
        values = self.law.in_users_units(cells)[..., features].reshape(n_rows, -1, n_axes)
        weights = self._free[:, :, features[0], None] * np.tile(masses / n_axes, n_axes)
        weights = weights.reshape(n_rows, -1)
        for point_masses, mass in self._point_masses:
            if point_masses.feature in features:
                added = np.broadcast_to(point_masses.values[:, None], (*mass.shape, 1))
                values = np.concatenate([values, added], axis=1)
                weights = np.hstack([weights, mass])
        weights = np.where(weights < MIN_POINT_WEIGHT, 0.0, weights)
        return values, weights / weights.sum(axis=1, keepdims=True)

    def below(self, z: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        r"""Distribution function at ``z`` in standard units, point masses a included.

        .. math:: F(z) = \sum_k s_k \Bigl(\theta_{k0} \, \Phi\bigl((z - \mu_k) / \sigma_k\bigr)
            + \sum_{a \le z} \theta_{ka}\Bigr)
        """
        below = (self._free * ndtr((z[:, None] - self.means) / self.sds)).sum(axis=1)
        for point_masses, mass in self._point_masses:
            under = point_masses.standard <= z[:, point_masses.feature, None]
            below[:, point_masses.feature] += np.where(under, mass, 0.0).sum(axis=1)
        return below

    def _moment(
        self, order: int, centre: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row feature"]:
        """``E[(x - centre)^order]`` of every cell, in the user's units."""
        # Maps bend the units, so a moment in the user's units is a quadrature, not a formula.
        nodes, masses = QUADRATURE if self.law.is_smooth else EVEN_QUADRATURE
        total = self._mean_of(order, centre, self.sds[..., None], nodes[:, None], masses)
        for features, roots in zip(self.law.together, self.roots, strict=True):
            nodes, masses = (np.array([*product(x, repeat=len(features))]) for x in QUADRATURE)
            of_column = np.zeros((*self.means.shape, len(features)))
            of_column[:, :, features] = roots
            moments = self._mean_of(order, centre, of_column, nodes, masses.prod(axis=1))
            total[:, features] = moments[:, features]
        for point_masses, mass in self._point_masses:
            away = point_masses.values - centre[:, point_masses.feature, None]
            total[:, point_masses.feature] += (mass * away**order).sum(axis=1)
        return total

    def _mean_of(
        self,
        order: int,
        centre: Float[np.ndarray, "row feature"],
        roots: Float[np.ndarray, "row component feature axis"],
        nodes: Float[np.ndarray, "node axis"],
        masses: Float[np.ndarray, " node"],
    ) -> Float[np.ndarray, "row feature"]:
        """``E[(x - centre)^order]`` by quadrature at ``means + roots @ node``, no point masses."""
        total = np.zeros_like(centre)
        for block in in_blocks(len(nodes), self.means.size):
            cells = self.means + np.moveaxis(roots @ nodes[block].T, -1, 0)
            away = self.law.in_users_units(cells) - centre[:, None]
            total += np.einsum("n,rkf,nrkf->rf", masses[block], self._free, away**order)
        return total

    @cached_property
    def _point_masses(self) -> list[tuple[ColumnPointMasses, Float[np.ndarray, "row point_mass"]]]:
        """Point masses of every column with point masses, and their probabilities."""
        masses = []
        for point_masses in self.law.point_masses:
            theta = self.law.parameters.category_probabilities[point_masses.category]
            shares = np.broadcast_to(np.exp(self.log_shares), self.means.shape)
            masses.append((point_masses, shares[:, :, point_masses.feature] @ theta[:, 1:]))
        return masses

    @cached_property
    def _log_free(self) -> Float[np.ndarray, "row component feature"]:
        """``log p(k, no point mass)`` of every cell."""
        log_free = np.broadcast_to(self.log_shares, self.means.shape).copy()
        for point_masses in self.law.point_masses:
            theta = self.law.parameters.category_probabilities[point_masses.category]
            log_free[:, :, point_masses.feature] += np.log(theta[:, 0])
        return log_free

    @cached_property
    def _free(self) -> Float[np.ndarray, "row component feature"]:
        """``p(k, no point mass)`` of every cell."""
        return np.exp(self._log_free)


def level_tails(
    log_shares: Float[np.ndarray, "row component"],
    theta: Float[np.ndarray, "component level"],
    cell: Int[np.ndarray, " row"],
) -> tuple[Float[np.ndarray, " row"], Int[np.ndarray, " row"]]:
    r"""Log probability of levels at most as probable as the cell, and the most probable level.

    .. math:: \log \sum_{l : p(l) \le p(x)} p(l), \quad p(l) = \sum_k s_k \theta_k[l],

    with the shares s of the components given the rest of the row.
    """
    levels = logsumexp(log_shares[:, :, None] + np.log(theta), axis=1)
    log_p = levels[np.arange(cell.size), cell]
    # Levels that are equally probable but for rounding must all count, whichever was observed.
    at_most = np.where(levels <= log_p[:, None] + ROUNDING_OF_LEVEL_PROBABILITIES, levels, -np.inf)
    # Sums of all levels exceed 1 by rounding.
    return np.minimum(logsumexp(at_most, axis=1), 0.0), levels.argmax(axis=1)


# Tail probabilities of observed cells, each given the rest of its row.
#
# Everything is computed in logs: a tail may be far smaller than the smallest number.


ODD: Final = float(np.log(0.005))
"""Log tail below which a cell may be an error and is left out of predictions of other cells."""
LOOKS: Final = 2
"""Repeats of the predictions of a row with outlying cells, each without these cells."""


@dataclass(frozen=True)
class JudgedCells:
    """Leave-one-cell-out prediction of every observed cell; NaN where the cell is missing."""

    log_tail: Float[np.ndarray, "obs feature"]
    """``log 2 min(P(X <= x), P(X >= x))`` at the cell x, given the rest of the row; at most 0."""
    expected: Float[np.ndarray, "obs feature"]
    """``E[X | rest of the row]`` in the user's units."""
    lower: Float[np.ndarray, "obs feature"]
    """Lower end of the central prediction interval, in the user's units; NaN without ``prob``."""
    upper: Float[np.ndarray, "obs feature"]
    """Upper end of the central prediction interval."""
    level_log_tail: Float[np.ndarray, "obs categorical"]
    """Log probability of all levels at most as probable as the observed one."""
    level_expected: Int[np.ndarray, "obs categorical"]
    """Most probable level given the rest of the row; -1 where missing."""

    @property
    def tail(self) -> Float[np.ndarray, "obs feature"]:
        """``2 min(P(X <= x), P(X >= x))``."""
        return np.exp(self.log_tail)

    def completed_by(self, other: JudgedCells) -> JudgedCells:
        """A copy with the values of ``other`` at cells that have none."""
        fields = {
            name: np.where(value < 0 if value.dtype.kind == "i" else np.isnan(value), more, value)
            for (name, value), more in zip(vars(self).items(), vars(other).values(), strict=True)
        }
        return JudgedCells(**fields)

    def with_rows(self, positions: Int[np.ndarray, " row"], rows: JudgedCells) -> JudgedCells:
        """A copy whose rows at ``positions`` are replaced by ``rows``."""
        fields = {name: value.copy() for name, value in vars(self).items()}
        for name, value in vars(rows).items():
            fields[name][positions] = value
        return JudgedCells(**fields)


def judge_cells(rows: Observations, law: CellLaw) -> JudgedCells:
    """Prediction of every observed cell given the rest of its row without outlying cells.

    An error spoils the predictions of its neighbours. So all cells of a row with outlying cells,
    these included, are predicted again from the other cells. Rows are in the units of the law.
    """
    verdict = leave_one_cell_out(rows, law)
    for _ in range(LOOKS):
        odd, odd_levels = verdict.log_tail < ODD, verdict.level_log_tail < ODD
        positions = np.flatnonzero(odd.any(axis=1) | odd_levels.any(axis=1))
        odd_rows = rows.take(positions)
        rest = without(odd_rows, odd[positions], odd_levels[positions], law.point_masses)
        anew = leave_one_cell_out(rest, law).completed_by(masked_cells(rest, odd_rows, law))
        verdict = verdict.with_rows(positions, anew)
    return verdict


def without(
    rows: Observations,
    reals: Bool[np.ndarray, "obs feature"],
    levels: Bool[np.ndarray, "obs categorical"],
    point_masses: Sequence[ColumnPointMasses] = (),
) -> Observations:
    """Rows with the marked cells set to missing, codes of point masses included."""
    levels = levels.copy()
    for column in point_masses:
        levels[:, column.category] |= reals[:, column.feature]
    return replace(
        rows, real=np.where(reals, np.nan, rows.real), codes=np.where(levels, -1, rows.codes)
    )


def leave_one_cell_out(rows: Observations, law: CellLaw) -> JudgedCells:
    r"""Leave-one-cell-out prediction of every observed cell, given the label where there is one.

    A component has the share

    .. math:: p(k | x_{o \setminus j}) \propto p(k, x_o) / p(x_j | x_{o \setminus j}, k)

    in the prediction of cell j, so a cell has no say in how it is judged.

    Rows are in the units of the law. The category of a column's point masses is judged with the
    real column, and is no cell of its own.

    Two columns that are nearly equal; the second row breaks the pattern:

    >>> from bayesrbf.base.rows import MixtureParameters
    >>> from bayesrbf.base.rows import MixtureSpecification
    >>> real = np.array([[1.0, 1.1], [1.0, -1.0], [np.nan, 1.0]])
    >>> rows = Observations(real, np.zeros((3, 0), int), np.zeros(3, int), np.ones(3))
    >>> factor = np.linalg.cholesky(np.linalg.inv([[1.0, 0.95], [0.95, 1.0]]))
    >>> point = MixtureParameters(np.ones(1), np.ones(1), np.zeros((1, 2)), factor[None], ())
    >>> law = CellLaw(point, MixtureSpecification(2, (), (0,)), lambda real: real)
    >>> leave_one_cell_out(rows, law).tail.round(3)
    array([[0.885, 0.631],
           [0.   , 0.   ],
           [  nan, 0.317]])
    """
    log_joint = law.log_joint(rows)
    # The closed form is for normal laws. A column with point masses is hidden below and judged by
    # what the rest of the row says of it, like a missing cell.
    reals = _reals(rows.real, log_joint, law)
    log_tails, best = _levels(rows.codes, log_joint, law.parameters)
    nothing = np.zeros(rows.real.shape, dtype=bool), np.zeros(rows.codes.shape, dtype=bool)
    for features in (*([point_masses.feature] for point_masses in law.point_masses), *law.together):
        column = nothing[0].copy()
        column[:, features] = True
        verdict = masked_cells(without(rows, column, nothing[1], law.point_masses), rows, law)
        alone = (verdict.log_tail, verdict.expected, verdict.lower, verdict.upper)
        for every, of_column in zip(reals, alone, strict=True):
            every[:, features] = of_column[:, features]
    for point_masses in law.point_masses:
        log_tails[:, point_masses.category], best[:, point_masses.category] = np.nan, -1
    log_tail, expected, lower, upper = reals
    return JudgedCells(log_tail, expected, lower, upper, log_tails, best)


def masked_cells(rest: Observations, rows: Observations, law: CellLaw) -> JudgedCells:
    """Predictions of the cells that ``rows`` has and ``rest`` lacks, given ``rest``; else NaN.

    Both are in the units of the law. Tails are at the cells of ``rows``.
    """
    log_shares = log_softmax(law.log_joint(rest), axis=1)
    z = rows.real.copy()
    theta = law.parameters.category_probabilities
    for point_masses in law.point_masses:
        at = rows.codes[:, point_masses.category]
        # A cell at a point mass is NaN among the reals and gets the value of the point mass. Codes
        # 0 (no point mass) and -1 (missing) pick a number here that the next line does not use.
        standard = np.append(point_masses.standard, np.nan)[at - 1]
        z[:, point_masses.feature] = np.where(at > 0, standard, z[:, point_masses.feature])
    results = [np.full_like(z, np.nan) for _ in range(4)]
    for block_rows, laws in missing_reals(rest.real, log_shares, law):
        masked = np.isnan(rest.real[block_rows]) & ~np.isnan(z[block_rows])
        for result, values in zip(results, laws.judge(z[block_rows]), strict=True):
            result[block_rows] = np.where(masked, values, np.nan)
    log_tails = np.full(rows.codes.shape, np.nan)
    best = np.full(rows.codes.shape, -1)
    for column in range(rows.codes.shape[1]):
        masked_rows = np.flatnonzero((rest.codes[:, column] < 0) & (rows.codes[:, column] >= 0))
        cell = rows.codes[masked_rows, column]
        of_column = level_tails(log_shares[masked_rows], theta[column], cell)
        log_tails[masked_rows, column], best[masked_rows, column] = of_column
    for point_masses in law.point_masses:
        log_tails[:, point_masses.category], best[:, point_masses.category] = np.nan, -1
    log_tail, expected, lower, upper = results
    for features in law.together:
        # Bonferroni: log p of a cell is the smallest of its reals plus the log of their number.
        least = log_tail[:, features].min(axis=1, keepdims=True) + np.log(len(features))
        # Bonferroni's bound may exceed 1.
        log_tail[:, features] = np.minimum(least, 0.0)
    return JudgedCells(log_tail, expected, lower, upper, log_tails, best)


def missing_reals(
    real: Float[np.ndarray, "obs feature"],
    log_shares: Float[np.ndarray, "obs component"],
    law: CellLaw,
) -> Iterator[tuple[Int[np.ndarray, " row"], RealLaws]]:
    """Pairs of row indices and RealLaws of these rows, block by block; every row comes once.

    ``real`` is in standard units, with NaN at missing cells. ``log_shares`` are log
    responsibilities of the components given the observed cells. RealLaws has arrays (row,
    component, feature) over all real cells of the rows, also of rows without a missing cell. The
    law of a missing cell is given the observed cells of its row. Entries at observed cells are
    placeholders, and the caller ignores these entries.
    """
    for block in laws_of(law.specification).reals.conditionals(real, law.parameters):
        hole = np.isnan(real[block.rows])
        # The law of an observed cell is not read; its variance is 0, and 1 divides safely.
        sds = np.sqrt(np.where(hole[:, None], block.variances, 1.0))
        roots = [
            _joint_roots(block, hole, sds[..., features], features) for features in law.together
        ]
        yield block.rows, RealLaws(block.means, sds, log_shares[block.rows, :, None], law, roots)


def _joint_roots(
    block: Conditional,
    hole: Bool[np.ndarray, "row feature"],
    sds: Float[np.ndarray, "row component n"],
    features: range,
) -> Float[np.ndarray, "row component n n"]:
    """R with R R' the conditional covariance of the reals of one column, missing together.

    Elsewhere, and without covariances in ``block``, R is diagonal with ``sds``.
    """
    roots = sds[..., None] * np.eye(len(features))
    if block.covariances is not None:
        rows = np.flatnonzero(hole[:, features].all(axis=1))
        positions = (hole.cumsum(axis=1) - 1)[rows][:, features]
        pairs = rows[:, None, None], slice(None), positions[:, :, None], positions[:, None, :]
        roots[rows] = np.linalg.cholesky(np.moveaxis(block.covariances[pairs], -1, 1))
    return roots


def _reals(
    real: Float[np.ndarray, "obs feature"],
    log_joint: Float[np.ndarray, "obs component"],
    law: CellLaw,
) -> list[np.ndarray]:
    """Log tails, means, lower and upper ends of all real cells, each given the rest of its row.

    The cells are in standard units, means and ends in the user's. Point masses do not count, and a
    column of several reals is not taken together. Missing cells have NaN.
    """
    n_features = law.specification.n_features
    plain = replace(law, point_masses=(), together=())
    results = [np.full_like(real, np.nan) for _ in range(4)]
    if n_features == 0:
        return results
    point, group = law.parameters, law.specification.covariance_group
    width = n_features * max(n_features, law.specification.n_components)
    for rows in in_blocks(len(real), width):
        observed = ~np.isnan(real[rows])
        shift, precision = leave_one_out(real[rows], point.means, point.precisions_cholesky, group)
        # Log p(x_j | rest, k) but for a constant; taken off the joint, the cell has no say in the
        # shares by which it is judged.
        log_own = 0.5 * (np.log(precision) - shift**2 * precision)
        log_shares = log_softmax(log_joint[rows, :, None] - log_own, axis=1)
        # Any number does for a missing cell: its results are dropped.
        z = np.nan_to_num(real[rows])
        laws = RealLaws(z[:, None] - shift, precision**-0.5, log_shares, plain)
        for result, values in zip(results, laws.judge(z), strict=True):
            result[rows] = np.where(observed, values, np.nan)
    return results


def _levels(
    codes: Int[np.ndarray, "obs categorical"],
    log_joint: Float[np.ndarray, "obs component"],
    parameters: MixtureParameters,
) -> tuple[Float[np.ndarray, "obs categorical"], Int[np.ndarray, "obs categorical"]]:
    """Log tails and most probable levels of categorical cells given the rest; missing: NaN, -1."""
    log_tail, expected = np.full(codes.shape, np.nan), np.full(codes.shape, -1)
    for column, theta in enumerate(parameters.category_probabilities):
        present = np.flatnonzero(codes[:, column] >= 0)
        cell = codes[present, column]
        # Categories are independent within a component: a cell leaves the joint by a subtraction.
        log_shares = log_softmax(log_joint[present] - np.log(theta[:, cell].T), axis=1)
        log_tail[present, column], expected[present, column] = level_tails(log_shares, theta, cell)
    return log_tail, expected


# The law of a row's missing cells given its observed ones: a mixture again.


@dataclass(frozen=True)
class ConditionalLaw:
    r"""``p(x_m | x_o)`` of every row, averaged over points of the parameters, in standard units.

    .. math:: p(x_m | x_o) = \frac1S \sum_s \sum_k p_s(k | x_o) \,
        N(x^r_m; \mu_{k,m|o}, \Sigma_{k,m|o}) \prod_{j \in m} \theta_{kj}[x_j],

    a mixture of the components k of all points s.
    """

    rows: Observations
    law: CellLaw
    """Law of a cell, with the components of all points, point by point."""
    n_points: int = 1

    @cached_property
    def log_shares(self) -> Float[np.ndarray, "obs component"]:
        """``log p_s(k | x_o) / S`` of every component k at every point s, point by point."""
        log_joint = self._by_point(self.rows)
        shares = log_softmax(log_joint, axis=2) - np.log(self.n_points)
        return shares.reshape(len(shares), -1)

    @cached_property
    def shares(self) -> Float[np.ndarray, "obs component"]:
        """``p_s(k | x_o) / S`` of every component k at every point s, point by point."""
        return np.exp(self.log_shares)

    def mean(self) -> Float[np.ndarray, "obs feature"]:
        """Means of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.mean())

    def sd(self) -> Float[np.ndarray, "obs feature"]:
        """Standard deviations of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.sd())

    def quantile(self, share: float) -> Float[np.ndarray, "obs feature"]:
        """Quantiles of the missing reals in the user's units; NaN elsewhere."""
        return self._of_reals(lambda laws: laws.quantile(share))

    def levels(self, category: int) -> Float[np.ndarray, "obs level"]:
        """Probabilities of the levels of a category, as if its cells were all missing."""
        return self.shares @ self.law.parameters.category_probabilities[category]

    def log_density(self, whole: Observations) -> Float[np.ndarray, " obs"]:
        """Log density of cells, ``log p(x_o, x_m) - log p(x_o)``, in the units of the law.

        ``whole`` are these rows with missing cells filled; cells that are still missing are
        integrated out.
        """
        log_whole = logsumexp(self._by_point(whole), axis=2)
        log_given = logsumexp(self._by_point(self.rows), axis=2)
        # Every point divides by its own p(given) before the mean over points is taken: a mixture of
        # conditionals, not the conditional of a mixture.
        log_density: Float[np.ndarray, " obs"] = logsumexp(log_whole - log_given, axis=1)
        return log_density - np.log(self.n_points)

    def _by_point(self, rows: Observations) -> Float[np.ndarray, "obs point component"]:
        """``log p_s(x, k)`` of every row, point s and component k, labels ignored."""
        log_joint = self.law.log_joint(rows.unlabelled())
        return log_joint.reshape(rows.n_obs, self.n_points, -1)

    def reals(self) -> Iterator[tuple[Int[np.ndarray, " row"], RealLaws]]:
        """Row indices and laws of the missing reals by block; laws of observed cells are unused."""
        yield from missing_reals(self.rows.real, self.log_shares, self.law)

    def _of_reals(
        self, of: Callable[[RealLaws], Float[np.ndarray, "row feature"]]
    ) -> Float[np.ndarray, "obs feature"]:
        """A statistic of the law of every missing real; NaN at other cells."""
        real = self.rows.real
        figures = np.full_like(real, np.nan)
        for rows, laws in self.reals():
            figures[rows] = np.where(np.isnan(real[rows]), of(laws), np.nan)
        return figures


# Rows whose cells a mixture fills or takes away: for a person, for a fit.


MAX_TRIMMED: Final = 0.05
"""Maximum fraction of a column's cells set to missing, by weight: most cells must be trusted."""
MIN_ROWS_AFTER_TRIM: Final = 4
"""Minimum of distinct numbers after trimming; a column with fewer is not trimmed."""

Cells = tuple[Float[np.ndarray, "obs feature"], Int[np.ndarray, "obs categorical"]]
"""Real cells and codes."""


def column_point_masses(mixture: FittedMixture, columns: Columns) -> tuple[ColumnPointMasses, ...]:
    """Point masses of the real columns, as numbers of the table and in standard units."""
    point_masses = []
    for feature, category in columns.atomic.items():
        standard = _in_standard_units(
            mixture, columns, feature, np.array(columns.point_masses[feature])
        )
        values = np.array(columns.codes[category].levels[1:])
        point_masses.append(ColumnPointMasses(feature, category, values, standard))
    return tuple(point_masses)


def _in_standard_units(
    mixture: FittedMixture, columns: Columns, feature: int, reals: Float[np.ndarray, " real"]
) -> Float[np.ndarray, " real"]:
    """``reals`` of one feature, mapped from the user's units to standard units."""
    real = np.full((reals.size, len(columns.real_positions)), np.nan)
    real[:, feature] = reals
    masked, none = np.full((reals.size, len(columns.codes)), -1), np.full(reals.size, -1)
    rows = Observations(real, masked, none, np.ones(reals.size))
    return mixture.standardise(rows).real[:, feature]


def cell_law(mixture: FittedMixture, columns: Columns, prob: float | None = None) -> CellLaw:
    """The mixture at its fitted point, as a CellLaw that predicts cells from the rest of a row.

    The result has the parameters of the components in standard units, the map to the user's units
    and the point masses of ``columns``, but no rows. ``prob`` is the probability of the central
    intervals of cells; None: no intervals.
    """
    return CellLaw(
        mixture.parameters,
        mixture.specification,
        partial(_numbers, mixture, columns),
        column_point_masses(mixture, columns),
        [features for features in columns.features if len(features) > 1],
        all(kind.is_plain or kind.n_reals != 1 for kind in columns.kinds),
        prob,
    )


def _numbers(
    mixture: FittedMixture, columns: Columns, standard: Float[np.ndarray, "*row feature"]
) -> Float[np.ndarray, "*row feature"]:
    """Numbers of the table from reals in standard units; an angle as its cosine and sine."""
    numbers = columns.decoded(mixture.in_users_units(standard))
    for kind, features in zip(columns.kinds, columns.features, strict=True):
        if len(features) > 1:
            cells = kind.decode(numbers[..., features].reshape(-1, len(features)))
            numbers[..., features] = kind.encode(cells).reshape(*numbers.shape[:-1], -1)
    return numbers


def conditional_law(
    mixture: FittedMixture,
    rows: Observations,
    columns: Columns,
    points: Sequence[MixtureParameters],
) -> ConditionalLaw:
    """``p(x_m | x_o)`` of rows in the user's units, averaged over points of the parameters."""
    parameters, specification = joined(points, mixture.specification)
    law = cell_law(mixture, columns)
    law = replace(law, parameters=parameters, specification=specification)
    return ConditionalLaw(mixture.standardise(rows), law, len(points))


def levels_of(
    law: ConditionalLaw, mixture: FittedMixture, columns: Columns, position: int
) -> tuple[tuple[object, ...], Float[np.ndarray, "obs level"]] | None:
    """Levels or point masses of a column and their probabilities in every row; None without any."""
    if position in columns.code_of:
        return columns.kinds[position].levels, law.levels(columns.code_of[position])
    if columns.kinds[position].has_levels:
        return columns.kinds[position].levels, _shares_of_levels(law, mixture, columns, position)
    atomic = {columns.real_positions[j]: category for j, category in columns.atomic.items()}
    if position in atomic:
        return columns.codes[atomic[position]].levels, law.levels(atomic[position])
    return None


def _shares_of_levels(
    law: ConditionalLaw, mixture: FittedMixture, columns: Columns, position: int
) -> Float[np.ndarray, "obs level"]:
    """Probability of every level of an ordinal column: the mass of the reals nearest to it."""
    kind, (feature,) = columns.kinds[position], columns.features[position]
    n_levels = len(kind.levels)
    ends = kind.encode(np.arange(n_levels - 1) + 0.5)[:, 0]
    standard = _in_standard_units(mixture, columns, feature, ends)
    below = np.zeros((law.rows.n_obs, n_levels + 1))
    below[:, -1] = 1.0
    for rows, laws in law.reals():
        for level, end in enumerate(standard, 1):
            z = np.full(laws.means[:, 0].shape, end)
            below[rows, level] = laws.below(z)[:, feature]
    return np.diff(below, axis=1)


def most_likely(mixture: FittedMixture, rows: Observations, columns: Columns) -> Cells:
    """Reals and codes, missing cells at their conditional mean or most probable level.

    Rows and result are in the user's units.
    """
    real, codes = np.empty_like(rows.real), np.empty_like(rows.codes)
    for block, block_rows in rows.in_blocks():
        law = conditional_law(mixture, block_rows, columns, [mixture.parameters])
        best = np.zeros_like(block_rows.codes)
        for category in range(best.shape[1]):
            best[:, category] = law.levels(category).argmax(axis=1)
        for point_masses in law.law.point_masses:
            best[:, point_masses.category] = 0  # a mean is at no point mass
        real[block], codes[block] = _fill(block_rows, columns.encoded(law.mean()), best)
    return real, codes


def drawn(
    mixture: FittedMixture,
    rows: Observations,
    points: Sequence[MixtureParameters],
    rng: np.random.Generator,
) -> Iterator[Cells]:
    """Reals and codes of the rows for each point, missing cells drawn jointly given the others.

    Rows and result are in the user's units, and points in standard units. Where a point follows
    itself, the conditional distributions are computed once.
    """
    standard = mixture.standardise(rows)
    for _, same in groupby(points, key=id):
        point, *more = same
        draws = 1 + len(more)
        for whole in conditional_draws(standard, point, mixture.specification, rng, draws):
            yield _fill(rows, mixture.in_users_units(whole.real), whole.codes)


def _fill(rows: Observations, real: np.ndarray, codes: np.ndarray) -> Cells:
    """Observed cells of ``rows``, with missing cells from the completed ones."""
    return (
        np.where(np.isnan(rows.real), real, rows.real),
        np.where(rows.codes < 0, codes, rows.codes),
    )


def hide_masked(
    real: Float[np.ndarray, "obs feature"],
    codes: Int[np.ndarray, "obs categorical"],
    columns: Columns,
) -> Cells:
    """Set cells of drawn rows to missing where their missing indicator was drawn as 1."""
    # A drawn mask says that the cell would not have been observed.
    masked = np.zeros((len(codes), len(columns.names)), dtype=bool)
    masked[:, columns.masked] = codes[:, columns.masks] == 1
    reals, of_codes = columns.taken(masked, masks=False)
    return np.where(reals, np.nan, real), np.where(of_codes, -1, codes)


def trimmed(rows: Observations, mixture: FittedMixture, columns: Columns) -> Observations:
    """Weighted rows in the user's units, outlying cells under a mixture set to missing.

    A mixture fitted to wrong cells spends components on them.
    """
    # Duplicates are evaluated once.
    once, positions = distinct(rows)
    law = cell_law(mixture, columns)
    verdict = judge_cells(mixture.standardise(once), law)
    reals = _oddest(verdict.log_tail, once.weights)
    levels = _oddest(verdict.level_log_tail, once.weights)
    for feature in range(once.real.shape[1]):
        remaining = once.real[~reals[:, feature], feature]
        if np.unique(remaining[~np.isnan(remaining)]).size < MIN_ROWS_AFTER_TRIM:
            reals[:, feature] = False
    levels[:, len(columns.levels) :] = False  # missing indicators are no cells
    return without(rows, reals[positions], levels[positions], law.point_masses)


def _oddest(
    log_tail: Float[np.ndarray, "obs column"], weights: Float[np.ndarray, " obs"]
) -> Bool[np.ndarray, "obs column"]:
    """Mask of cells with tails below ``ODD``, the smallest first up to ``MAX_TRIMMED``."""
    order = np.argsort(log_tail, axis=0, kind="stable")  # NaN comes last
    present = ~np.isnan(log_tail)
    total = weights @ present
    # Weight of the cells at least as odd, in every column.
    before = np.cumsum(np.take_along_axis(weights[:, None] * present, order, axis=0), axis=0)
    rank = np.empty_like(before)
    np.put_along_axis(rank, order, before, axis=0)
    return present & (log_tail < ODD) & (rank <= MAX_TRIMMED * total)


# Novelty of a row under a mixture, comparable between patterns of missing cells.


SIMULATED: Final = 500
"""Simulated rows per pattern of missing cells, the reference distribution of s."""
ROUNDING_OF_STATISTIC: Final = 1e-9
"""Values of s that differ by less are ties, and a smaller standard deviation is zero: rounding."""


def novelty(
    rows: Observations, law: CellLaw, rng: np.random.Generator
) -> Float[np.ndarray, " obs"]:
    r"""Fraction of simulated rows with the same missing cells and a larger s, ties counted half.

    A row may be improbable jointly, or by its single cells:

    .. math:: u = \log p(x_o), \qquad v = \sum_{j \in o} \log p(x_j), \qquad
       s = \log \Phi\Big(\frac{u - \bar u}{\mathrm{sd}(u)}\Big)
       + \log \Phi\Big(\frac{v - \bar v}{\mathrm{sd}(v)}\Big),

    with means and standard deviations over the simulated rows. Rows are in the units of the law,
    and densities of transformed cells in standard units.
    """
    together, alone = np.empty(rows.n_obs), np.empty(rows.n_obs)
    for block, block_rows in rows.in_blocks():
        together[block] = _log_density(block_rows, law)
        alone[block] = _cells_alone(block_rows, law).sum(axis=1)
    drawn, _ = sample(law.parameters, law.specification, SIMULATED, rng)
    for point_masses in law.point_masses:
        # A drawn cell at a point mass is NaN among the reals, as it is in a user's rows.
        drawn.real[drawn.codes[:, point_masses.category] > 0, point_masses.feature] = np.nan
    drawn_alone = _cells_alone(drawn, law)
    reals = ~np.isnan(rows.real)
    for point_masses in law.point_masses:
        reals[:, point_masses.feature] |= rows.codes[:, point_masses.category] > 0
    observed = np.hstack([reals, rows.codes >= 0])
    patterns, pattern_of_row = np.unique(observed, axis=0, return_inverse=True)
    pattern_of_row = pattern_of_row.ravel()
    by_pattern = np.argsort(pattern_of_row, kind="stable")
    ends = np.searchsorted(pattern_of_row[by_pattern], np.arange(len(patterns) + 1))
    result = np.empty(rows.n_obs)
    for block in in_blocks(len(patterns), SIMULATED * observed.shape[1]):
        block_patterns = patterns[block]
        simulated = _log_density(_with_holes(drawn, block_patterns, rows.real.shape[1]), law)
        pairs = zip(block_patterns, simulated.reshape(len(block_patterns), SIMULATED), strict=True)
        for number, (pattern, drawn_together) in enumerate(pairs, block.start):
            alike = by_pattern[ends[number] : ends[number + 1]]
            # Logs of cells by themselves add up, so one pass over the rows serves all patterns.
            joint, drawn_joint = _log_tails(together[alike], drawn_together)
            cells, drawn_cells = _log_tails(alone[alike], drawn_alone @ pattern)
            result[alike] = _share_above(joint + cells, drawn_joint + drawn_cells)
    return result


def _log_tails(values: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log normal tails of values and of ``reference``, standardised by the reference's moments."""
    centre, spread = float(reference.mean()), float(reference.std())
    spread = spread if spread > ROUNDING_OF_STATISTIC else 1.0  # of rows without a cell, say
    return log_ndtr((values - centre) / spread), log_ndtr((reference - centre) / spread)


def _share_above(
    values: Float[np.ndarray, " row"], reference: Float[np.ndarray, " reference"]
) -> Float[np.ndarray, " row"]:
    """Share of ``reference`` above each of ``values``, with half of the ties."""
    reference = np.sort(reference)
    below = np.searchsorted(reference, values - ROUNDING_OF_STATISTIC, "left")
    upto = np.searchsorted(reference, values + ROUNDING_OF_STATISTIC, "right")
    share: Float[np.ndarray, " row"] = 1 - 0.5 * (below + upto) / reference.size
    return share


def _log_density(rows: Observations, law: CellLaw) -> Float[np.ndarray, " obs"]:
    """Log density of the observed cells, in the units of the law; labels are not used."""
    log_joint = law.log_joint(rows.unlabelled())
    log_density: Float[np.ndarray, " obs"] = logsumexp(log_joint, axis=1)
    return log_density


def _cells_alone(rows: Observations, law: CellLaw) -> Float[np.ndarray, "obs cell"]:
    """Marginal log density of every cell, 0 where missing: reals first, then categories."""
    n_cells = rows.real.shape[1] + rows.codes.shape[1]
    log_densities = np.empty((rows.n_obs, n_cells))
    for cell in range(n_cells):
        alone = np.arange(n_cells)[None] == cell
        log_densities[:, cell] = _log_density(_with_holes(rows, alone, rows.real.shape[1]), law)
    return log_densities


def _with_holes(
    rows: Observations, patterns: Bool[np.ndarray, "pattern cell"], n_features: int
) -> Observations:
    """Every row under every pattern of observed cells, pattern by pattern.

    Labels are hidden and weights are 1.
    """
    shown = np.repeat(patterns, rows.n_obs, axis=0)
    real, codes = np.tile(rows.real, (len(patterns), 1)), np.tile(rows.codes, (len(patterns), 1))
    n = len(shown)
    return Observations(
        np.where(shown[:, :n_features], real, np.nan),
        np.where(shown[:, n_features:], codes, -1),
        np.full(n, -1),
        np.ones(n),
    )

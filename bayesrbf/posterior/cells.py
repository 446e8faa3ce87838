r"""Tail probabilities of observed cells, each given the rest of its row.

For a real cell, with o the observed cells, :math:`Q = \Sigma_{oo}^{-1}` and
:math:`d = x_o - \mu_o`, every leave-one-out conditional of a component comes from one
inverse: :math:`x_j | x_{o \setminus j}, k \sim N(x_j - (Q d)_j / Q_{jj}, 1 / Q_{jj})`.
Components are weighted by :math:`p(k | x_{o \setminus j}) \propto p(k, x_o) / p(x_j |
x_{o \setminus j}, k)`, so a cell has no say in how it is judged. In a column with atoms a
the distribution is :math:`F(x) = \sum_k p(k | x_{o \setminus j}) (\theta_{kj0}
\Phi_k(x) + \sum_{a \le x} \theta_{kja})`. Everything is computed in logs: a tail may be far
smaller than the smallest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.posterior.cell_laws import (
    CellLaw,
    RealLaws,
    level_tails,
)
from bayesrbf.records.mixture import ColumnAtoms, MixtureParameters, Observations, in_blocks

ODD: Final = float(np.log(0.005))
"""Log tail below which a cell may be an error, and has no say in how others are judged."""
LOOKS: Final = 2
"""Times that the cells of a row with odd ones are judged anew."""


@dataclass(frozen=True)
class JudgedCells:
    """Every observed cell beside what the rest of its row suggests; NaN where missing."""

    log_tail: Float[np.ndarray, "obs feature"]
    """``log 2 min(P(X <= x), P(X >= x))`` at the cell x, given the rest of the row; at most 0."""
    expected: Float[np.ndarray, "obs feature"]
    """Mean of that distribution, in the user's units."""
    lower: Float[np.ndarray, "obs feature"]
    """Lower end of its central interval, in the user's units; NaN where none was asked for."""
    upper: Float[np.ndarray, "obs feature"]
    """Upper end."""
    level_log_tail: Float[np.ndarray, "obs categorical"]
    """Log probability of all levels at most as probable as the observed one."""
    level_expected: Int[np.ndarray, "obs categorical"]
    """Most probable level given the rest of the row; -1 where missing."""

    @property
    def tail(self) -> Float[np.ndarray, "obs feature"]:
        """``2 min(P(X <= x), P(X >= x))``."""
        return np.exp(self.log_tail)

    def completed_by(self, other: JudgedCells) -> JudgedCells:
        """A copy in which cells that are missing here are judged as in ``other``."""
        fields = {
            name: np.where(value < 0 if value.dtype.kind == "i" else np.isnan(value), more, value)
            for (name, value), more in zip(vars(self).items(), vars(other).values(), strict=True)
        }
        return JudgedCells(**fields)

    def with_rows(self, places: Int[np.ndarray, " row"], rows: JudgedCells) -> JudgedCells:
        """A copy with some rows in place of those at the given places."""
        fields = {name: value.copy() for name, value in vars(self).items()}
        for name, value in vars(rows).items():
            fields[name][places] = value
        return JudgedCells(**fields)


def judge_cells(rows: Observations, law: CellLaw) -> JudgedCells:
    """Judge every cell by the rest of its row, without cells there that look wrong themselves.

    An error spoils the verdict on its neighbours. So a row with odd cells is judged again without
    them: these cells, too, by what is left.
    """
    verdict = leave_one_cell_out(rows, law)
    for _ in range(LOOKS):
        odd, odd_levels = verdict.log_tail < ODD, verdict.level_log_tail < ODD
        places = np.flatnonzero(odd.any(axis=1) | odd_levels.any(axis=1))
        some = rows.take(places)
        rest = without(some, odd[places], odd_levels[places], law.atoms)
        anew = leave_one_cell_out(rest, law).completed_by(hidden_cells(rest, some, law))
        verdict = verdict.with_rows(places, anew)
    return verdict


def without(
    rows: Observations,
    reals: Bool[np.ndarray, "obs feature"],
    levels: Bool[np.ndarray, "obs categorical"],
    atoms: Sequence[ColumnAtoms] = (),
) -> Observations:
    """Rows less some of their cells; with a real cell goes what is said of its atoms."""
    levels = levels.copy()
    for column in atoms:
        levels[:, column.category] |= reals[:, column.feature]
    return replace(
        rows, real=np.where(reals, np.nan, rows.real), codes=np.where(levels, -1, rows.codes)
    )


def leave_one_cell_out(rows: Observations, law: CellLaw) -> JudgedCells:
    """Judge every observed cell by the rest of its row, and by its label where there is one.

    Rows are in the units of the law. The category of a column's atoms is judged with the real
    column, and is no cell of its own.

    Two columns that are nearly equal; the second row breaks the pattern:

    >>> from bayesrbf.records.mixture import MixtureParameters
    >>> from bayesrbf.records.specification import MixtureSpecification
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
    # The closed form is for normal laws. A column with atoms is hidden below and judged by what
    # the rest of the row says of it, like a missing cell.
    reals = _reals(rows.real, log_joint, law)
    log_tails, best = _levels(rows.codes, log_joint, law.parameters)
    nothing = np.zeros(rows.real.shape, dtype=bool), np.zeros(rows.codes.shape, dtype=bool)
    for atoms in law.atoms:
        column = nothing[0].copy()
        column[:, atoms.feature] = True
        verdict = hidden_cells(without(rows, column, nothing[1], law.atoms), rows, law)
        alone = (verdict.log_tail, verdict.expected, verdict.lower, verdict.upper)
        for every, of_column in zip(reals, alone, strict=True):
            every[:, atoms.feature] = of_column[:, atoms.feature]
        log_tails[:, atoms.category], best[:, atoms.category] = np.nan, -1
    log_tail, expected, lower, upper = reals
    return JudgedCells(log_tail, expected, lower, upper, log_tails, best)


def hidden_cells(rest: Observations, rows: Observations, law: CellLaw) -> JudgedCells:
    """Judge the cells of rows that are missing from their rest, by all that the rest has."""
    log_shares = log_softmax(law.log_joint(rest), axis=1)
    z, theta = rows.real.copy(), law.parameters.category_probabilities
    for atoms in law.atoms:
        at = rows.codes[:, atoms.category]
        # A cell at an atom is NaN among the reals; what is judged is the atom's value. Codes 0 (no
        # atom) and -1 (missing) pick a number here that the next line does not use.
        here = np.append(atoms.standard, np.nan)[at - 1]
        z[:, atoms.feature] = np.where(at > 0, here, z[:, atoms.feature])
    results = [np.full_like(z, np.nan) for _ in range(4)]
    for block in laws_of(law.specification).reals.conditionals(rest.real, law.parameters):
        hidden = np.isnan(rest.real[block.rows]) & ~np.isnan(z[block.rows])
        sd = np.sqrt(np.where(hidden[:, None], block.variances, 1.0))
        laws = RealLaws(block.means, sd, log_shares[block.rows, :, None], law)
        for result, values in zip(results, laws.judge(z[block.rows]), strict=True):
            result[block.rows] = np.where(hidden, values, np.nan)
    log_tails = np.full(rows.codes.shape, np.nan)
    best = np.full(rows.codes.shape, -1)
    for column in range(rows.codes.shape[1]):
        here = np.flatnonzero((rest.codes[:, column] < 0) & (rows.codes[:, column] >= 0))
        cell = rows.codes[here, column]
        of_column = level_tails(log_shares[here], theta[column], cell)
        log_tails[here, column], best[here, column] = of_column
    for atoms in law.atoms:
        log_tails[:, atoms.category], best[:, atoms.category] = np.nan, -1
    log_tail, expected, lower, upper = results
    return JudgedCells(log_tail, expected, lower, upper, log_tails, best)


def _reals(
    real: Float[np.ndarray, "obs feature"],
    log_joint: Float[np.ndarray, "obs component"],
    law: CellLaw,
) -> list[np.ndarray]:
    """Log tail, mean and interval of every real cell given the rest, block by block."""
    n_features, plain = law.specification.n_features, replace(law, atoms=())
    results = [np.full_like(real, np.nan) for _ in range(4)]
    if n_features == 0:
        return results
    reals = laws_of(law.specification).reals
    width = n_features * max(n_features, law.specification.n_components)
    for rows in in_blocks(len(real), width):
        observed = ~np.isnan(real[rows])
        shift, precision = reals.leave_one_out(
            real[rows], law.parameters.means, law.parameters.precisions_cholesky
        )
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
    """Log tail and most probable level of every category given the rest."""
    log_tail, expected = np.full(codes.shape, np.nan), np.full(codes.shape, -1)
    for column, theta in enumerate(parameters.category_probabilities):
        present = np.flatnonzero(codes[:, column] >= 0)
        cell = codes[present, column]
        # Categories are independent within a component: a cell leaves the joint by a subtraction.
        log_shares = log_softmax(log_joint[present] - np.log(theta[:, cell].T), axis=1)
        log_tail[present, column], expected[present, column] = level_tails(log_shares, theta, cell)
    return log_tail, expected

r"""Rows as complete points, and the features of a point.

The components of this family are no densities of x: adding one quadratic function to all of them
changes every "marginal" and no :math:`p(c | x)`. So missing cells cannot be integrated out of the
components. What is valid is

.. math:: p(c | x_o) = \int p(c | x) \, p(x_m | x_o) \, dx_m

with a density of x from a companion mixture that never sees the labels. A row with missing cells
becomes several points, drawn from that companion.

Features are monomials of degree two, or kernels with training rows. The one-half of a quadratic
form is not in the features but in the weights: a normal component with mean mu and precision P has,
up to a constant, :math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} = -P_{ij}`.

See Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR, section
2.1 (primal) and 2.4 (kernel).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.categories import one_hot
from bayesrbf.numerics.mixture import completion
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.sdgm import QuadraticBasis
from bayesrbf.records.specification import MixtureSpecification, Order

MOST_FEATURES = 2000  # With more features than this, categorical columns enter without products.
FARTHEST = 1e6
"""Points are clipped to this many standard units from the centre, so that no square overflows."""


def complete(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    units: Standardisation,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of every row, and the first point of each row.

    A complete row is its own only point; a row with missing cells has ``draws`` completions, a
    power of two, drawn from the companion mixture, whose parameters are in standard units.
    ``replicate`` numbers independent sets of draws; cells are drawn in ``order``. Points are the
    reals in the user's units, then the indicators of all levels. Labels are not used.
    """
    standard = replace(observations, real=units.forward(observations.real))
    rows, starts = completion.complete(
        standard, parameters, specification, draws=draws, replicate=replicate, order=order
    )
    sizes = np.diff(starts, append=rows.n_obs)
    # Observed cells keep their values to the last bit.
    seen = np.repeat(observations.real, sizes, axis=0)
    real = np.where(np.isnan(seen), units.backward(rows.real), seen)
    return np.column_stack([real, one_hot(rows.codes, specification.levels)]), starts


def quadratic_basis(n_reals: int, levels: tuple[int, ...]) -> QuadraticBasis:
    """All monomials of degree at most two that are not sums of others.

    These are the intercept, every coordinate and every product of two. The first ``n_reals``
    coordinates are real columns; the indicators of all levels of the categorical columns follow.
    Products within one categorical column are left out: an indicator is its own square, and two of
    one column are never 1 together. Where all these were more than ``MOST_FEATURES``, products with
    indicators are left out, too.

    >>> quadratic_basis(2, ()).factors.tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, 0], [0, 1], [1, 1]]
    """
    categorical = n_reals + np.repeat(np.arange(len(levels)), levels)
    column = np.concatenate([np.arange(n_reals), categorical]).astype(np.intp)
    multiplied = column.size if has_all_products(n_reals, levels) else n_reals
    first, second = np.triu_indices(multiplied)
    kept = (column[first] != column[second]) | ((first == second) & (first < n_reals))
    linear = np.column_stack([np.full(column.size, -1), np.arange(column.size)])
    products = np.column_stack([first[kept], second[kept]])
    return QuadraticBasis(np.concatenate([[[-1, -1]], linear, products]).astype(np.intp))


def has_all_products(n_reals: int, levels: tuple[int, ...]) -> bool:
    """Whether products with indicators are in the basis: not where they would be too many.

    >>> has_all_products(5, (3, 4)), has_all_products(5, (40, 40))
    (True, False)
    """
    size = n_reals + sum(levels)
    # Beside the intercept there are size linear features and size (size + 1) / 2 products.
    return not levels or size * (size + 3) // 2 < MOST_FEATURES


def standard_points(
    points: Float[np.ndarray, "point coordinate"], units: Standardisation
) -> Float[np.ndarray, "point coordinate"]:
    """Points in standard units, clipped to ``FARTHEST`` from the centre."""
    with np.errstate(over="ignore"):
        return np.clip(units.forward(points), -FARTHEST, FARTHEST)


def numbers_of(some: QuadraticBasis, basis: QuadraticBasis) -> Int[np.ndarray, " feature"]:
    """Numbers of some features in a basis that has them.

    >>> numbers_of(QuadraticBasis(np.array([[-1, 1], [0, 1]])), quadratic_basis(2, ())).tolist()
    [2, 4]
    """
    place = {tuple(pair): number for number, pair in enumerate(basis.factors.tolist())}
    return np.array([place[tuple(pair)] for pair in some.factors.tolist()], dtype=np.intp)

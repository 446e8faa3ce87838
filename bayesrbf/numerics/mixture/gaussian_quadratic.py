r"""Complete rows under full covariances, by the products of their cells.

With b = (x, 1) and the products :math:`\phi = (b_i b_j)_{i \le j}` of a row, a log
density is linear and the statistics are sums of :math:`\phi`:

.. math:: \log N(x; \mu, \Sigma) = w \cdot \phi, \qquad
    \sum_n r_n b_n b_n' = \mathrm{unfold}(\textstyle\sum_n r_n \phi_n),

so that an E-step is two matrix products over products made once. Squares that are
summed before the mean is taken away cancel where a component is narrow or far out:
then :class:`bayesrbf.numerics.mixture.gaussian.CompleteMoments`, which centres first, is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import LOG_2PI, FullComponents

LARGEST_FORM: Final = 1e3
"""Entries of a quadratic form up to which cancellation costs at most three digits."""
MOST_PRODUCTS: Final = 2**24
"""Numbers that the products of a table may take: 128 MiB."""


def quadratic_forms(
    components: FullComponents,
) -> Float[np.ndarray, "component product"]:
    """Coefficients of log densities, in nats, in the products of a row."""
    maps = components.maps
    form = -0.5 * (maps.swapaxes(1, 2) @ maps)
    form[:, -1, -1] += components.log_determinants - 0.5 * components.means.shape[1] * LOG_2PI
    places, factors = _upper_places(form.shape[1])
    return form.reshape(len(form), -1).take(places, axis=1) * factors


def exact(forms: Float[np.ndarray, "component product"]) -> Bool[np.ndarray, " component"]:
    """Components that the forms serve; others are so narrow or far out that sums cancel."""
    return np.abs(forms).max(axis=1, initial=0.0) <= LARGEST_FORM


def products(
    bordered: Float[np.ndarray, "obs bordered"],
) -> Float[np.ndarray, "product obs"]:
    """Products ``b_i b_j``, i <= j, of complete rows that carry a trailing 1."""
    rows, columns = upper_entries(bordered.shape[1])
    return bordered.T[rows] * bordered.T[columns]


@dataclass(frozen=True)
class QuadraticMoments:
    """Complete rows under full covariances that are neither narrow nor far out."""

    log_density: Float[np.ndarray, "component obs"]
    products: Float[np.ndarray, "product obs"]

    def sums(
        self, weights: Float[np.ndarray, "component obs"]
    ) -> Float[np.ndarray, "component product"]:
        """``sum r b b'``, upper triangles, to be centred when all rows are in them."""
        return weights @ self.products.T


def centred_moments(
    sums: Float[np.ndarray, "component product"], means: Float[np.ndarray, "component feature"]
) -> tuple[Float[np.ndarray, "component feature"], Float[np.ndarray, "component feature feature"]]:
    """``sum r (x - mu)`` and ``sum r (x - mu)(x - mu)'`` from sums of products."""
    k, d = means.shape
    rows, columns = upper_entries(d + 1)
    raw = np.empty((k, d + 1, d + 1))
    raw[:, rows, columns] = raw[:, columns, rows] = sums
    totals, counts = raw[:, :d, d], raw[:, d, d, None]
    first = totals - counts * means
    # S - mu s' - (s - n mu) mu'
    second = raw[:, :d, :d] - means[:, :, None] * totals[:, None, :]
    second -= first[:, :, None] * means[:, None, :]
    return first, second


@cache
def upper_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the upper triangle of a matrix, row by row."""
    rows, columns = np.triu_indices(size)
    return rows, columns


@cache
def _upper_places(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the upper triangle in a flattened matrix, and how often each is in a product."""
    rows, columns = upper_entries(size)
    return rows * size + columns, np.where(rows == columns, 1.0, 2.0)

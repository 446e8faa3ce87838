r"""Complete rows under full covariances, by the products of their cells.

With b = (x, 1) and the products :math:`\phi = (b_i b_j)_{i \le j}` of a row, a log
density is linear and the statistics are sums of :math:`\phi`:

.. math:: \log N(x; \mu, \Sigma) = w \cdot \phi, \qquad
    \sum_n r_n b_n b_n' = \mathrm{unfold}(\textstyle\sum_n r_n \phi_n),

so that an E-step is two matrix products over products made once. Squares that are
summed before the mean is taken away cancel where a component is narrow or far out:
then :class:`bayesrbf.numerics.gaussian.CompleteMoments`, which centres first, is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.gaussian import LOG_2PI, FullComponents

LARGEST_FORM: Final = 1e3
"""Entries of a quadratic form up to which cancellation costs at most three digits."""
MOST_PRODUCTS: Final = 2**24
"""Numbers that the products of a table may take: 128 MiB."""


class QuadraticComponents(FullComponents):
    """Components with full covariances, as quadratic forms of rows with a trailing 1."""

    @cached_property
    def forms(self) -> Float[np.ndarray, "component product"]:
        """Coefficients of the log density in the products of a row."""
        maps = self.maps
        form = -0.5 * (maps.swapaxes(1, 2) @ maps)
        form[:, -1, -1] += self.log_determinants - 0.5 * self.means.shape[1] * LOG_2PI
        rows, columns = upper_entries(form.shape[1])
        return form[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)

    @cached_property
    def exact(self) -> bool:
        """Whether no component is so narrow or far out that its sums would cancel."""
        return bool(np.abs(self.forms).max(initial=0.0) <= LARGEST_FORM)


def products(
    bordered: Float[np.ndarray, "obs bordered"],
) -> Float[np.ndarray, "obs product"]:
    """Products of all pairs of cells of every row.

    Parameters
    ----------
    bordered : ndarray of shape (n_obs, n_features + 1)
        Complete rows, each with a trailing 1.

    Returns
    -------
    ndarray of shape (n_obs, (n_features + 1) (n_features + 2) / 2)
        ``b_i b_j`` for i <= j, row by row of the upper triangle.
    """
    rows, columns = upper_entries(bordered.shape[1])
    return bordered[:, rows] * bordered[:, columns]


@dataclass(frozen=True)
class QuadraticMoments:
    """Complete rows under full covariances that are neither narrow nor far out.

    Attributes
    ----------
    log_density : ndarray of shape (n_components, n_obs)
        Log densities in nats.
    products : ndarray of shape (n_obs, n_products)
        Products of the cells of every row.
    means : ndarray of shape (n_components, n_features)
        Component means.
    """

    log_density: Float[np.ndarray, "component obs"]
    products: Float[np.ndarray, "obs product"]
    means: Float[np.ndarray, "component feature"]

    @classmethod
    def of(cls, products: np.ndarray, components: QuadraticComponents) -> Self:
        """Evaluate the rows.

        Parameters
        ----------
        products : ndarray of shape (n_obs, n_products)
            What :func:`products` makes of complete rows.
        components : QuadraticComponents
            The components.

        Returns
        -------
        QuadraticMoments
            Log densities, and what the statistics need.
        """
        return cls(components.forms @ products.T, products, components.means)

    def add_to(self, first: np.ndarray, second: np.ndarray, shares: np.ndarray) -> None:
        """Add the centred moments in place.

        Parameters
        ----------
        first : ndarray of shape (n_components, n_features)
            Sums of ``r (x - mu)``.
        second : ndarray of shape (n_components, n_features, n_features)
            Sums of ``r (x - mu)(x - mu)'``.
        shares : ndarray of shape (n_components, n_obs)
            Weights r of the rows.
        """
        k, d = self.means.shape
        rows, columns = upper_entries(d + 1)
        raw = np.empty((k, d + 1, d + 1))
        raw[:, rows, columns] = raw[:, columns, rows] = shares @ self.products
        sums, counts = raw[:, :d, d], raw[:, d, d, None]
        centred = sums - counts * self.means
        first += centred
        # S - mu s' - (s - n mu) mu'
        second += raw[:, :d, :d]
        second -= self.means[:, :, None] * sums[:, None, :]
        second -= centred[:, :, None] * self.means[:, None, :]


@cache
def upper_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the upper triangle of a matrix, row by row.

    Parameters
    ----------
    size : int
        Size of the matrix.

    Returns
    -------
    rows : ndarray of shape (n_entries,)
        Row indices.
    columns : ndarray of shape (n_entries,)
        Column indices.
    """
    rows, columns = np.triu_indices(size)
    return rows, columns

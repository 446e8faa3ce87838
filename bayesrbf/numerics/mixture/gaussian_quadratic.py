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
    """Coefficients of log densities in the products of a row.

    Parameters
    ----------
    components : FullComponents
        The components.

    Returns
    -------
    ndarray of shape (n_components, n_products)
        Their log densities, in nats, are these times :func:`products`.
    """
    maps = components.maps
    form = -0.5 * (maps.swapaxes(1, 2) @ maps)
    form[:, -1, -1] += components.log_determinants - 0.5 * components.means.shape[1] * LOG_2PI
    places, factors = _upper_places(form.shape[1])
    return form.reshape(len(form), -1).take(places, axis=1) * factors


def exact(forms: Float[np.ndarray, "component product"]) -> Bool[np.ndarray, " component"]:
    """Which components are neither so narrow nor so far out that their sums would cancel.

    Parameters
    ----------
    forms : ndarray of shape (n_components, n_products)
        What :func:`quadratic_forms` gives.

    Returns
    -------
    ndarray of shape (n_components,)
        Whether products serve the component.
    """
    return np.abs(forms).max(axis=1, initial=0.0) <= LARGEST_FORM


def products(
    bordered: Float[np.ndarray, "obs bordered"],
) -> Float[np.ndarray, "product obs"]:
    """Products of all pairs of cells of every row.

    Parameters
    ----------
    bordered : ndarray of shape (n_obs, n_features + 1)
        Complete rows, each with a trailing 1.

    Returns
    -------
    ndarray of shape ((n_features + 1) (n_features + 2) / 2, n_obs)
        ``b_i b_j`` for i <= j, row by row of the upper triangle.
    """
    rows, columns = upper_entries(bordered.shape[1])
    return bordered.T[rows] * bordered.T[columns]


@dataclass(frozen=True)
class QuadraticMoments:
    """Complete rows under full covariances that are neither narrow nor far out.

    Attributes
    ----------
    log_density : ndarray of shape (n_components, n_obs)
        Log densities in nats.
    products : ndarray of shape (n_products, n_obs)
        Products of the cells of every row.
    """

    log_density: Float[np.ndarray, "component obs"]
    products: Float[np.ndarray, "product obs"]

    def sums(
        self, shares: Float[np.ndarray, "component obs"]
    ) -> Float[np.ndarray, "component product"]:
        """Weighted sums of the products, to be centred when all rows are in them.

        Parameters
        ----------
        shares : ndarray of shape (n_components, n_obs)
            Weights r of the rows.

        Returns
        -------
        ndarray of shape (n_components, n_products)
            ``sum r b b'``, upper triangles.
        """
        return shares @ self.products.T


def centred_moments(
    sums: Float[np.ndarray, "component product"], means: Float[np.ndarray, "component feature"]
) -> tuple[Float[np.ndarray, "component feature"], Float[np.ndarray, "component feature feature"]]:
    """Moments about the means from weighted sums of products.

    Parameters
    ----------
    sums : ndarray of shape (n_components, n_products)
        ``sum r b b'`` of each component, with weights r of the rows.
    means : ndarray of shape (n_components, n_features)
        Component means.

    Returns
    -------
    first : ndarray of shape (n_components, n_features)
        ``sum r (x - mu)``.
    second : ndarray of shape (n_components, n_features, n_features)
        ``sum r (x - mu)(x - mu)'``.
    """
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


@cache
def _upper_places(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the upper triangle in a flattened matrix, and how often each is in a product."""
    rows, columns = upper_entries(size)
    return rows * size + columns, np.where(rows == columns, 1.0, 2.0)

"""Gaussian components over rows with missing cells: log densities and moments.

All work from the precision factor L, ``P = L L'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Bool, Float, Int

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class FullComponents:
    """Components with full covariances, and cached factors for all blocks of rows."""

    means: Float[np.ndarray, "component feature"]
    factors: Float[np.ndarray, "group feature feature"]
    """Lower precision factors L: one a component, or for rows with missing cells one for all."""

    @cached_property
    def maps(self) -> Float[np.ndarray, "component feature bordered"]:
        """``[L', -L' mu]``: whitens and centres a row that carries a trailing 1."""
        transposed = self.factors.swapaxes(1, 2)
        return np.concatenate([transposed, -(transposed @ self.means[:, :, None])], axis=2)

    @cached_property
    def back(self) -> Float[np.ndarray, "component feature feature"]:
        """``L^-T``, from whitened rows back to centred ones."""
        return np.linalg.inv(self.factors).swapaxes(1, 2)

    @cached_property
    def precisions(self) -> Float[np.ndarray, "group feature feature"]:
        """``L L'``."""
        return self.factors @ self.factors.swapaxes(1, 2)

    @cached_property
    def log_determinants(self) -> Float[np.ndarray, " group"]:
        """Half the log determinants of the precisions."""
        return np.log(self.factors.diagonal(0, 1, 2)).sum(axis=1)

    def moments(
        self,
        bordered: Float[np.ndarray, "obs bordered"],
        observed: Bool[np.ndarray, "obs feature"],
        missing: Int[np.ndarray, "obs m"],
    ) -> CompleteMoments | MissingMoments:
        """Moments of rows with a trailing 1 that lack the same number of cells.

        ``missing`` are the columns of the missing cells.
        """
        if missing.shape[1] == 0:
            return CompleteMoments.of(bordered, self)
        return MissingMoments.of(bordered[:, :-1], missing, self)

    def conditional(
        self, rows: Int[np.ndarray, " row"], real: Float[np.ndarray, "row feature"]
    ) -> Conditional:
        """Conditional moments ``p(x_m | x_o, k)`` of rows with the same number of missing cells."""
        hole, cells = np.isnan(real), np.nan_to_num(real)
        missing = np.nonzero(hole)[1].reshape(len(rows), -1)
        moments = MissingMoments.of(cells, missing, self)
        expected = np.where(hole[:, None, :], moments.deviations + self.means, cells[:, None, :])
        variances = np.zeros_like(expected)
        spread = np.einsum("nkii->nki", moments.covariances)
        variances[np.arange(len(rows))[:, None], :, missing] = np.moveaxis(spread, 1, 2)
        return Conditional(rows, expected, variances, moments.covariances)


@dataclass(frozen=True)
class IndependentComponents:
    """Components with diagonal covariances."""

    means: Float[np.ndarray, "component feature"]
    factors: Float[np.ndarray, "group feature"]
    """Square roots of the precisions: one a component, or one for all."""

    def moments(
        self,
        bordered: Float[np.ndarray, "obs bordered"],
        observed: Bool[np.ndarray, "obs feature"],
        missing: Int[np.ndarray, "obs m"],
    ) -> DiagonalMoments:
        """Evaluate rows, with a trailing 1, of any missing cells."""
        return DiagonalMoments.of(bordered[:, :-1], observed, self.means, self.factors)

    def conditional(
        self, rows: Int[np.ndarray, " row"], real: Float[np.ndarray, "row feature"]
    ) -> Conditional:
        """Conditional moments of rows; a missing cell has its component's mean and variance."""
        hole = np.isnan(real)[:, None, :]
        expected = np.where(hole, self.means, np.nan_to_num(real)[:, None, :])
        variances = np.broadcast_to(self.factors**-2.0, self.means.shape)
        return Conditional(rows, expected, np.where(hole, variances, 0.0), None)


Components = FullComponents | IndependentComponents


def components_at(
    means: Float[np.ndarray, "component feature"], factors: Float[np.ndarray, "group *entry"]
) -> Components:
    """Components with full or, for factors of two axes, diagonal covariances."""
    kind = IndependentComponents if factors.ndim == 2 else FullComponents
    return kind(means, factors)


def leave_one_out(
    real: Float[np.ndarray, "row feature"],
    means: Float[np.ndarray, "component feature"],
    factors: Float[np.ndarray, "group *entry"],
    group: Int[np.ndarray, " component"],
) -> tuple[Float[np.ndarray, "row component feature"], Float[np.ndarray, "row component feature"]]:
    """``x_j - E[x_j | rest, k]`` and ``1 / Var[x_j | rest, k]``; 0 and 1 where missing."""
    observed = ~np.isnan(real)
    deviations = np.where(observed[:, None], np.nan_to_num(real)[:, None] - means, 0.0)
    if factors.ndim == 2:  # the rest of a row says nothing of the cell
        return deviations, np.where(observed[:, None], factors[group] ** 2, 1.0)
    shift, precision = np.zeros_like(deviations), np.ones_like(deviations)
    pairs = observed[:, :, None] & observed[:, None, :]
    hole = np.where(observed, 0.0, 1.0)[:, :, None] * np.eye(real.shape[1])
    roots = np.linalg.inv(factors)
    for g, covariance in enumerate(roots.swapaxes(1, 2) @ roots):
        inverse = np.linalg.inv(np.where(pairs, covariance, hole))
        diagonal = np.diagonal(inverse, axis1=1, axis2=2)
        for k in np.flatnonzero(group == g):
            precision[:, k] = diagonal
            shift[:, k] = np.einsum("nij,nj->ni", inverse, deviations[:, k]) / diagonal
    return shift, precision


@dataclass(frozen=True)
class CompleteMoments:
    r"""Log densities and moments of complete rows under full covariances.

    .. math:: \log N(x; \mu, P^{-1}) = \sum_i \log L_{ii} - \tfrac12 |y|^2
        - \tfrac D2 \log 2\pi, \quad y = L'(x - \mu), \qquad
        \sum_n r_n (x_n - \mu)(x_n - \mu)' = L^{-T} \sum_n r_n y_n (x_n - \mu)',

    centred, so that nothing cancels where a component is narrow. Rows have a trailing 1: one
    product whitens and centres them, another gives both sums.
    """

    log_density: Float[np.ndarray, "component obs"]
    bordered: Float[np.ndarray, "obs bordered"]
    whitened: Float[np.ndarray, "component feature obs"]  # L_k' (x - mu_k).
    components: FullComponents

    @classmethod
    def of(cls, bordered: np.ndarray, components: FullComponents) -> Self:
        """Log densities and whitened deviations of complete rows, each with a trailing 1."""
        k, d = components.means.shape
        maps = components.maps.reshape(k * d, d + 1)
        whitened = (maps @ bordered.T).reshape(k, d, len(bordered))
        log_density = -0.5 * np.einsum("kdn,kdn->kn", whitened, whitened)
        log_density += (components.log_determinants - 0.5 * d * LOG_2PI)[:, None]
        return cls(log_density, bordered, whitened, components)

    def add_to(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> None:
        """Add ``sum w (x - mu)`` and ``sum w (x - mu)(x - mu)'``; w is (component, obs)."""
        components = self.components
        k, d = components.means.shape
        weighted = (self.whitened * weights[:, None, :]).reshape(k * d, len(self.bordered))
        products = (weighted @ self.bordered).reshape(k, d, d + 1)
        sums = components.back @ products[:, :, d:]
        # sum r (x - mu) x' less sum r (x - mu) times mu': both factors are centred.
        scatter = components.back @ products[:, :, :d] - sums * components.means[:, None, :]
        second += 0.5 * (scatter + scatter.swapaxes(1, 2))
        first += sums[:, :, 0]


@dataclass(frozen=True)
class MissingMoments:
    r"""Log densities and moments of rows that lack m cells each, under full covariances.

    With :math:`d = x - \mu`, zero at the missing cells m,

    .. math:: E[d_m | x_o] = -P_{mm}^{-1} (P d)_m, \quad \mathrm{Cov}[x_m | x_o] = P_{mm}^{-1}, \\
        \log N(x_o; \mu_o, \Sigma_{oo}) = \sum_i \log L_{ii} - \tfrac12 |L' \bar d|^2
        - \tfrac12 \log |P_{mm}| - \tfrac{D - m}{2} \log 2\pi,

    where :math:`\bar d` has the conditional mean at m.
    """

    log_density: Float[np.ndarray, "component obs"]  # log p(x_o | k), in nats.
    deviations: Float[np.ndarray, "obs component feature"]  # E[x - mu_k | x_o, k].
    covariances: Float[np.ndarray, "obs group m m"]  # Cov[x_m | x_o, k].
    missing: Int[np.ndarray, "obs m"]  # Columns of the missing cells.

    @classmethod
    def of(cls, real: np.ndarray, missing: np.ndarray, components: FullComponents) -> Self:
        """Log densities and conditional moments of rows that each miss the m columns ``missing``.

        Values of ``real`` in missing cells are not used.
        """
        n, m = missing.shape
        d = real.shape[1]
        precisions = components.precisions
        deviations = real[:, None, :] - components.means
        lane = np.arange(n)[:, None]
        deviations[lane, :, missing] = 0.0
        pulls = (precisions @ deviations[..., None])[..., 0]
        blocks = precisions[:, missing[:, :, None], missing[:, None, :]].swapaxes(0, 1)
        roots = np.linalg.cholesky(blocks)
        inverse_roots = np.linalg.inv(roots)
        covariances = inverse_roots.swapaxes(-1, -2) @ inverse_roots
        pull = np.moveaxis(pulls[lane, :, missing], 1, 2)
        deviations[lane, :, missing] = -np.moveaxis((covariances @ pull[..., None])[..., 0], 1, 2)
        # A cell at its conditional mean adds nothing to the squared distance of the observed ones.
        whitened = (components.factors.swapaxes(1, 2) @ deviations[..., None])[..., 0]
        log_density = -0.5 * np.einsum("nki,nki->kn", whitened, whitened)
        log_density += (components.log_determinants - 0.5 * (d - m) * LOG_2PI)[:, None]
        log_density -= np.log(np.einsum("nkii->nki", roots)).sum(axis=2).T
        return cls(log_density, deviations, covariances, missing)

    def add_to(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> None:
        """Add ``sum w (x - mu)`` and ``sum w (x - mu)(x - mu)'``; w is (component, obs)."""
        weighted = self.deviations * weights.T[:, :, None]
        first += weighted.sum(axis=0)
        second += np.einsum("nki,nkj->kij", weighted, self.deviations, optimize=True)
        spread = weights.T[:, :, None, None] * self.covariances
        rows, columns = self.missing[:, :, None], self.missing[:, None, :]
        for j in range(len(second)):
            np.add.at(second[j], (rows, columns), spread[:, j])


@dataclass(frozen=True)
class DiagonalMoments:
    r"""Log densities and moments of rows with any missing cells, under diagonal covariances.

    With the roots s of the precisions,

    .. math:: \log N(x_o; \mu_o, \Sigma_{oo}) = \sum_{i \in o}
        \bigl(\log s_i - \tfrac12 s_i^2 (x_i - \mu_i)^2 - \tfrac12 \log 2\pi\bigr).

    A missing cell adds its variance to the second moment and nothing else.
    """

    log_density: Float[np.ndarray, "component obs"]  # log p(x_o | k), in nats.
    whitened: Float[np.ndarray, "component feature obs"]  # (x - mu) s, zero where missing.
    observed: Bool[np.ndarray, "obs feature"]
    factors: Float[np.ndarray, "component feature"]  # Square roots s of the precisions.

    @classmethod
    def of(
        cls, real: np.ndarray, observed: np.ndarray, means: np.ndarray, factors: np.ndarray
    ) -> Self:
        """Moments of rows; the values of missing cells are not used."""
        whitened = (real.T - means[:, :, None]) * factors[:, :, None]
        whitened *= observed.T
        log_density = -0.5 * np.einsum("kdn,kdn->kn", whitened, whitened)
        log_density += (np.log(factors) - 0.5 * LOG_2PI) @ observed.T
        return cls(log_density, whitened, observed, factors)

    def add_to(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> None:
        """Add ``sum w (x - mu)`` and ``sum w (x - mu)(x - mu)'``; w is (component, obs)."""
        weighted = self.whitened * weights[:, None, :]
        first += weighted.sum(axis=2) / self.factors
        squares = np.einsum("kdn,kdn->kd", weighted, self.whitened)
        # A missing cell has the variance 1 in whitened units.
        second += (squares + weights @ ~self.observed) / self.factors**2


@dataclass(frozen=True)
class Conditional:
    """Conditional moments of the reals of some rows under every component."""

    rows: Int[np.ndarray, " row"]
    means: Float[np.ndarray, "row component feature"]  # An observed cell is its own mean.
    variances: Float[np.ndarray, "row component feature"]  # Zero for an observed cell.
    covariances: Float[np.ndarray, "row group m m"] | None
    """Covariance of the missing cells, by component or common; None if they are independent."""

    @cached_property
    def roots(self) -> Float[np.ndarray, "row component m m"] | None:
        """R with R R' the covariance of the missing cells."""
        if self.covariances is None:
            return None
        roots = np.linalg.cholesky(self.covariances)
        m = roots.shape[-1]
        return np.broadcast_to(roots, (*self.means.shape[:2], m, m))


Moments = CompleteMoments | MissingMoments | DiagonalMoments
"""Rows of a block under some components; the log density is changed in place."""


LARGEST_FORM: Final = 1e3
"""Entries of a quadratic form up to which cancellation costs at most three digits."""
MAX_PRODUCTS: Final = 2**24
"""Numbers that the products of a table may take: 128 MiB."""


def quadratic_forms(
    components: FullComponents,
) -> Float[np.ndarray, "component product"]:
    """Coefficients w of ``log p(x | k) = w . phi``, in nats, phi the products of a row."""
    maps = components.maps
    form = -0.5 * (maps.swapaxes(1, 2) @ maps)
    # The constant goes with the product of the trailing 1 with itself.
    form[:, -1, -1] += components.log_determinants - 0.5 * components.means.shape[1] * LOG_2PI
    indices, factors = _upper_indices(form.shape[1])
    return form.reshape(len(form), -1).take(indices, axis=1) * factors


def exact(forms: Float[np.ndarray, "component product"]) -> Bool[np.ndarray, " component"]:
    """Mask of components whose forms are accurate; narrow or distant ones cancel digits."""
    return np.abs(forms).max(axis=1, initial=0.0) <= LARGEST_FORM


def products(
    bordered: Float[np.ndarray, "obs bordered"],
) -> Float[np.ndarray, "product obs"]:
    """Products ``b_i b_j``, i <= j, of complete rows that carry a trailing 1."""
    rows, columns = upper_entries(bordered.shape[1])
    return bordered.T[rows] * bordered.T[columns]


@dataclass(frozen=True)
class QuadraticMoments:
    r"""Log densities and moments of complete rows, as quadratic forms of full covariances.

    With b = (x, 1) and the products :math:`\phi = (b_i b_j)_{i \le j}` of a row, a log
    density is linear and the statistics are sums of :math:`\phi`:

    .. math:: \log N(x; \mu, \Sigma) = w \cdot \phi, \qquad
        \sum_n r_n b_n b_n' = \mathrm{unfold}(\textstyle\sum_n r_n \phi_n),

    so that an E-step is two matrix products over products computed once. Uncentred squares
    cancel where a component is narrow or distant: then :class:`CompleteMoments`, which
    centres first, is used.
    """

    log_density: Float[np.ndarray, "component obs"]
    products: Float[np.ndarray, "product obs"]

    def sums(
        self, weights: Float[np.ndarray, "component obs"]
    ) -> Float[np.ndarray, "component product"]:
        """``sum r b b'``, upper triangles, to be centred after the sum over all blocks."""
        return weights @ self.products.T


def centred_moments(
    sums: Float[np.ndarray, "component product"], means: Float[np.ndarray, "component feature"]
) -> tuple[Float[np.ndarray, "component feature"], Float[np.ndarray, "component feature feature"]]:
    """``sum r (x - mu)`` and ``sum r (x - mu)(x - mu)'`` from sums of products."""
    d = means.shape[1]
    raw = sums.take(_unfolded_indices(d + 1), axis=1)
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
def _unfolded_indices(size: int) -> Int[np.ndarray, "row column"]:
    """Index of every entry of a symmetric matrix among the entries of the upper triangle."""
    indices = np.empty((size, size), np.intp)
    rows, columns = upper_entries(size)
    indices[rows, columns] = indices[columns, rows] = np.arange(rows.size)
    return indices


@cache
def _upper_indices(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Flat indices of the upper triangle, and the multiplicity of each in a quadratic form."""
    rows, columns = upper_entries(size)
    return rows * size + columns, np.where(rows == columns, 1.0, 2.0)

r"""Factor-analytic covariances: a few factors and a diagonal a group.

.. math:: \Sigma_g = \Lambda_g \Lambda_g' + \Psi_g, \quad \Psi = b^2 / u, \quad
   \Lambda = \Psi^{1/2} B, \quad b = s \sqrt{(\nu_0 + G_g) / (1 + q)}

with u in ``precision_diagonal``. B is known up to a rotation of its columns, which neither density
nor prior sees: ``loadings`` are the entries of the lower triangular rotation, on and below the
diagonal, and every other rotation of a point packs into the same. Their signs stay open, column
by column.

Given the factors f of its rows a column is a regression on them, under the prior
:math:`(\mu_k, \lambda) \mid \psi \sim N((m_0, 0),\ \psi\, \mathrm{diag}(1 / \kappa_0, 1))`.
With sums over the rows in which the column is observed, those of the prior among them, and the
intercepts profiled out, the M-step is

.. math::
   \lambda = (S_{ff} + I)^{-1} S_{fx}, \quad
   \psi = \frac{S_{xx} - S_{xf} \lambda + b^2}{n + \nu_0 + G}.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import Conditional
from bayesrbf.numerics.mixture.gaussian_factors import FactorComponents, FactorMoments
from bayesrbf.numerics.mixture.parts.arguments import (
    Assignment,
    Hyper,
    Memberships,
    Point,
    Rng,
    Values,
)
from bayesrbf.numerics.mixture.parts.factor_precisions import (
    FactorPrecisions,
    FactorPrior,
    leading_axes,
    lower_places,
    lower_triangular,
    side_by_side,
    uniquenesses_and_loadings,
)
from bayesrbf.numerics.mixture.parts.real_columns import (
    START_VARIANCE,
    ByCell,
    Centres,
    Factors,
    Matrices,
    RealColumns,
    Vectors,
)
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.specification import MixtureSpecification, Variable


class FactorCovariances(RealColumns):
    """Real columns that depend on each other through a few factors."""

    in_kernels: ClassVar[bool] = False
    latent: ClassVar[bool] = True

    def __init__(self, specification: MixtureSpecification) -> None:
        super().__init__(specification)
        self.rank = specification.rank

    # Variables of the graph

    def _precision_variables(self) -> tuple[Variable, ...]:
        """A precision a column, in units of its prior, and the loadings."""
        dims, shape = self.specification.group_dims, self.specification.group_shape
        axes, sizes = (*dims, names.FEATURE), (*shape, self.n_features)
        entries = (*shape, self._places[0].size)
        return (
            Variable(names.PRECISION_DIAGONAL, axes, sizes, "log"),
            Variable(names.LOADINGS, (*dims, names.LOADING_ENTRY), entries, "identity"),
        )

    @cached_property
    def _places(self) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
        """Columns and factors of the loadings' entries."""
        return lower_places(self.n_features, self.rank)

    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        shape, roots = self.specification.group_shape, unit[:, :, 0, 0]
        loadings = lower_triangular(unit[:, :, 0, 1:] / roots[:, :, None])
        columns, factors = self._places
        return {
            names.PRECISION_DIAGONAL: (roots**2).reshape((*shape, self.n_features)),
            names.LOADINGS: loadings[:, columns, factors].reshape((*shape, columns.size)),
        }

    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Values
    ) -> Float[np.ndarray, "*batch group root 1 column"]:
        columns, factors = self._places
        unit = np.zeros((*roots.shape, 1, 1 + self.rank))
        unit[..., 0, 0] = 1.0
        entries = values[names.LOADINGS].reshape((*roots.shape[:-1], columns.size))
        unit[..., columns, 0, 1 + factors] = entries
        return unit * roots[..., None, None]

    def base_scales(self, hyper: Hyper) -> Float[np.ndarray, "group feature"]:
        """b: a column's whole variance is centred at that of the table."""
        return super().base_scales(hyper) / np.sqrt(1 + self.rank)

    def prior(self, hyper: Hyper) -> FactorPrior | None:
        """The declared prior, prepared for many points; None without columns."""
        return FactorPrior(self, hyper) if self.n_features else None

    # Matrices of this shape

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one precision factor: ``Psi^-1/2`` and ``Psi^-1 Lambda``, side by side."""
        return self.n_features, 1, 1 + self.rank

    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """``Psi^-1/2`` of every column."""
        return matrices[:, :, 0, 0]

    def covariances(
        self, factors: Float[np.ndarray, "*shape d 1 column"]
    ) -> Float[np.ndarray, "*shape d d"]:
        """``Lambda Lambda' + Psi`` as whole matrices."""
        variances, loadings = uniquenesses_and_loadings(factors)
        diagonal = variances[..., None] * np.eye(self.n_features)
        return loadings @ loadings.swapaxes(-1, -2) + diagonal

    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        r"""Noise of every covariance, by the root :math:`\Psi^{1/2} (I + B C B')`.

        There :math:`C = (I + (I + B'B)^{1/2})^{-1}`.
        """
        roots, loadings = factors[:, :, 0, 0], factors[:, :, 0, 1:] / factors[:, :, 0, :1]
        values, axes = np.linalg.eigh(loadings.swapaxes(1, 2) @ loadings)
        along = loadings @ axes
        weights = 1 / (1 + np.sqrt(1 + np.maximum(values, 0.0)))
        told = ((noise @ along) * weights[:, None, :]) @ along.swapaxes(1, 2)
        return (noise + told) / roots[:, None, :]

    # Statistics and mode

    def no_moments(self) -> tuple[Vectors, Matrices]:
        """First moments, and second ones of (x - mu, f, 1) for every column, of an empty table."""
        first = np.zeros((self.n_components, self.n_features))
        return first, np.zeros((*first.shape, self.rank + 2, self.rank + 2))

    def _start(
        self, real: Float[np.ndarray, "row feature"], memberships: Memberships, means: Vectors
    ) -> Factors:
        """The leading axes of every group's covariance."""
        return leading_axes(real, memberships, means, START_VARIANCE, self.specification)

    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """Means, uniquenesses and loadings of the M-step: a regression on the factors a column."""
        kappa = hyper.mean_precision
        away = hyper.location - point.means
        moments = statistics.second[..., :-1, :-1].copy()
        totals = statistics.second[..., :-1, -1].copy()
        moments[..., 0, 0] += kappa * away**2
        totals[..., 0] += kappa * away
        counts = statistics.second[..., -1, -1]
        centres = totals / (counts + kappa)[..., None]
        moments -= centres[..., :, None] * totals[..., None, :]
        scatter = sum_by_group(moments, self.specification)
        places = 1 + np.arange(self.rank)
        scatter[..., places, places] += 1.0
        cross = scatter[..., 1:, 0]
        loadings = np.linalg.solve(scatter[..., 1:, 1:], cross[..., None])[..., 0]
        rest = np.maximum(scatter[..., 0, 0] - (loadings * cross).sum(axis=-1), 0.0)
        strength = hyper.degrees_of_freedom + self.specification.group_sizes
        total = sum_by_group(counts, self.specification) + strength[:, None]
        unique = (rest + self.base_scales(hyper) ** 2) / total
        own = self.by_component(loadings)
        shift = centres[..., 0] - (centres[..., 1:] * own).sum(axis=-1)
        means, factors = point.means + shift, side_by_side(unique, loadings)
        return replace(point, means=means, precisions_cholesky=factors)

    def recentred(self, statistics: Statistics, shift: Vectors) -> Matrices:
        """Moments of (x - mu, f, 1) about means that are moved by a shift."""
        change = np.zeros_like(statistics.second) + np.eye(statistics.second.shape[-1])
        change[..., 0, -1] = -shift
        return change @ statistics.second @ change.swapaxes(-1, -2)

    # Rows

    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells."""
        return (~observed).sum(axis=1)

    def kept_apart(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Zero: an E-step takes rows with any holes together."""
        return np.zeros(len(observed), dtype=int)

    def numbers_a_row(self, n_missing: int) -> int:
        """Numbers that an E-step holds at once for a row under a component."""
        return max(self.rank**2, 1)

    def components(self, means: Vectors, factors: Matrices) -> FactorComponents:
        """Components at a point, ready for blocks of rows."""
        return FactorComponents(means, factors)

    def conditional(
        self,
        rows: Int[np.ndarray, " row"],
        real: Float[np.ndarray, "row feature"],
        means: Vectors,
        factors: Matrices,
    ) -> Conditional:
        """Moments of rows that miss the same number of cells."""
        hole, cells = np.isnan(real), np.nan_to_num(real)
        moments = FactorMoments.of(cells, ~hole, FactorComponents(means, factors))
        unique, loadings = uniquenesses_and_loadings(factors)
        expected = means + np.einsum("kdq,qkn->nkd", loadings, moments.expected)
        expected = np.where(hole[:, None, :], expected, cells[:, None, :])
        places = np.nonzero(hole)[1].reshape(len(rows), -1)
        own = loadings[:, places].swapaxes(0, 1)
        of_factors = np.moveaxis(moments.covariances, (2, 3), (1, 0))
        covariances = own @ of_factors @ own.swapaxes(2, 3)
        diagonal = unique[:, places].swapaxes(0, 1)
        covariances += diagonal[..., None] * np.eye(places.shape[1])
        return Conditional.of(rows, expected, covariances, places)

    def leave_one_out(
        self, real: Float[np.ndarray, "row feature"], means: Vectors, factors: Factors
    ) -> tuple[ByCell, ByCell]:
        """Conditionals of every observed cell, from the law of its row's factors."""
        observed, components = ~np.isnan(real), FactorComponents(means, self.by_component(factors))
        moments = FactorMoments.of(np.nan_to_num(real), observed, components)
        pull, precision = moments.leave_one_out()
        return pull / precision, np.where(observed[:, None], precision, 1.0)

    # Conjugate draws

    def augmented(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Assignment,
        parameters: Point,
        rng: Rng,
    ) -> Float[np.ndarray, "row _"]:
        """Rows with a draw of their factors beside them."""
        factors = rng.standard_normal((len(real), self.rank))
        known, cells = ~np.isnan(real), np.nan_to_num(real)
        own = self.by_component(parameters.precisions_cholesky)
        for k in range(self.n_components):
            mine = np.flatnonzero(components == k)
            component = FactorComponents(parameters.means[k : k + 1], own[k : k + 1])
            moments = FactorMoments.of(cells[mine], known[mine], component)
            roots = np.linalg.cholesky(moments.covariances[:, :, 0].transpose(2, 0, 1))
            steps = (roots @ factors[mine, :, None])[..., 0]
            factors[mine] = moments.expected[:, 0].T + steps
        return np.concatenate([real, factors], axis=1)

    def assigned(
        self,
        real: Float[np.ndarray, "row _"],
        components: Assignment,
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Centres, Matrices]:
        """Known cells of every column, and means and scatter of these and their rows' factors."""
        cells, factors = real[:, : self.n_features], real[:, self.n_features :]
        known, cells = (~np.isnan(cells)).astype(float), np.nan_to_num(cells)
        width = self.rank + 1
        moments = np.zeros((self.n_components, self.n_features, width, width))
        totals = np.zeros((self.n_components, self.n_features, width))
        counts = member.astype(float) @ known
        for k, mine in enumerate(member):
            x, f, mask = cells[mine], factors[mine], known[mine]
            moments[k, :, 0, 0] = (x**2).sum(axis=0)
            moments[k, :, 0, 1:] = moments[k, :, 1:, 0] = x.T @ f
            moments[k, :, 1:, 1:] = np.einsum("nd,ni,nj->dij", mask, f, f, optimize=True)
            totals[k, :, 0], totals[k, :, 1:] = x.sum(axis=0), mask.T @ f
        centres = totals / np.maximum(counts, 1)[..., None]
        return counts, centres, moments - centres[..., :, None] * totals[..., None, :]

    def posterior(
        self, cells: Vectors, centres: Centres, scatter: Matrices, hyper: Hyper
    ) -> tuple[FactorPrecisions, Centres, Vectors]:
        """Law of uniquenesses and loadings given such rows, the means integrated out."""
        kappa = hyper.mean_precision
        strength, origin = cells + kappa, np.zeros((self.n_features, self.rank + 1))
        origin[:, 0] = hyper.location
        pull = centres - origin
        about = scatter + (cells * kappa / strength)[..., None, None] * (
            pull[..., :, None] * pull[..., None, :]
        )
        by_group = sum_by_group(cells, self.specification)
        precisions = FactorPrecisions(
            self.base_scales(hyper),
            1 + 0.5 * (by_group + hyper.degrees_of_freedom),
            sum_by_group(about, self.specification),
        )
        middle = (cells[..., None] * centres + kappa * origin) / strength[..., None]
        return precisions, middle, strength

    def draw_means(
        self, centres: Centres, strength: Vectors, factors: Matrices, rng: Rng
    ) -> Vectors:
        """Means of every component given its uniquenesses and loadings."""
        unique, loadings = uniquenesses_and_loadings(factors)
        noise = rng.standard_normal(strength.shape) * np.sqrt(unique / strength)
        return centres[..., 0] - (centres[..., 1:] * loadings).sum(axis=-1) + noise

r"""Shapes of covariances whose precision is a product of factors.

The precision of covariance group g is :math:`P = L L'`, :math:`L = L_0 A`, with
:math:`L_0 = \mathrm{diag}(1 / (s \sqrt{\nu_0 + G_g}))` for column scales s, and A lower triangular
with diagonal :math:`\sqrt d` (``precision_diagonal``) and strict lower part ``precision_lower``:
all of it, its diagonal, or one number.

The M-step, with counts :math:`n`, :math:`G_g` means and the scatter :math:`S_g` about the new ones:

.. math::
   \mu_k &= (\textstyle\sum_n r_{nk} x_n + \kappa_0 m_0) / (n_k + \kappa_0) \\
   \Sigma_g &= \frac{S_g + (\nu_0 + G_g) S_0
       + \kappa_0 \sum_k (\mu_k - m_0)(\mu_k - m_0)'}{n_g + \nu_0 + G_g}
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.arguments import Hyper, Memberships, Point, Rng, Values
from bayesrbf.numerics.mixture.parts.precision_factors import ConjugatePrecisions
from bayesrbf.numerics.mixture.parts.real_columns import (
    START_VARIANCE,
    Centres,
    Factors,
    Matrices,
    RealColumns,
    Vectors,
)
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names

if TYPE_CHECKING:
    from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
    from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
    from bayesrbf.numerics.kernels.gaussian_pattern import GaussiansWithHoles

Weights = Float[np.ndarray, "component _"]


class KernelNormals(NamedTuple):
    """Normals as the compiled kernels read them, and the log normalisers of the components."""

    constants: np.ndarray
    full: FullGaussians | None
    holes: GaussiansWithHoles | None
    diagonal: DiagonalGaussians | None


class PrecisionColumns(RealColumns):
    """Real columns whose precision is a product of factors."""

    conjugate_family: type[ConjugatePrecisions]

    @property
    def columns_a_gamma(self) -> int:
        """Columns whose precisions are the same gamma variable."""
        return 1

    def prior(self, hyper: Hyper) -> NormalPrior | None:
        """The declared prior, prepared for many points; None without columns."""
        return NormalPrior(self, hyper) if self.n_features else None

    # Matrices of this shape

    @abstractmethod
    def outer(self, vectors: Vectors, factor: float | Weights) -> Matrices:
        """``factor v v'`` for every component."""

    @abstractmethod
    def product(self, matrices: Factors, factors: Factors) -> Factors:
        """Matrix products."""

    @abstractmethod
    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*shape"]:
        """Matrices of given diagonals."""

    def pooled(self, by_column: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch gamma"]:
        """Sums over the columns of each gamma variable."""
        return by_column

    @abstractmethod
    def whiten(
        self, deviations: Float[np.ndarray, "*batch component row d"], factors: Matrices
    ) -> Float[np.ndarray, "*batch component row d"]:
        """``L' (x - mu)`` of rows under every component."""

    # Prior: what depends on the shape

    @abstractmethod
    def unit_entries(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """Free entries of A, and those on its diagonal, the roots of ``precision_diagonal``."""

    def lower_scales(
        self, scales: Float[np.ndarray, "group feature"]
    ) -> Float[np.ndarray, "group entry"]:
        """The base scales of the rows that the entries of ``precision_lower`` are in."""
        return np.zeros((self.n_groups, 0))

    def lower_gradient(
        self, stress: Factors, values: Values, scales: Float[np.ndarray, "group entry"]
    ) -> dict[str, np.ndarray]:
        """Gradient in ``precision_lower``, where there is one; stress is ``(S + kappa0 M) L``."""
        return {}

    @abstractmethod
    def precision_times(self, force: Vectors, factors: Matrices) -> Vectors:
        """``P f`` for every component."""

    # Statistics and mode

    def no_moments(self) -> tuple[Vectors, Matrices]:
        """First and second moments of an empty table."""
        first = np.zeros((self.n_components, self.n_features))
        return first, np.zeros((self.n_components, *self.matrix_shape))

    def _start(
        self, real: Float[np.ndarray, "row feature"], memberships: Memberships, means: Vectors
    ) -> Factors:
        return self.of_diagonal(np.full((self.n_groups, self.n_features), START_VARIANCE**-0.5))

    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """Means and precision factors of the M-step.

        A component without rows keeps m0 and S0: the prior preserves the mean covariance instead
        of shrinking it.
        """
        if not self.n_features:
            return point
        kappa, pull = hyper.mean_precision, point.means - hyper.location
        rows = statistics.counts[:, None] + kappa
        shift = (statistics.first - kappa * pull) / rows
        means = point.means + shift
        # The scatter about the new means and the prior's pull on these, both from the old ones.
        scatter = statistics.second + self.outer(pull, kappa)
        scatter -= self.outer(shift, rows)
        strength = hyper.degrees_of_freedom + self.specification.group_sizes
        total = sum_by_group(statistics.counts, self.specification) + strength
        prior = strength[:, None] * hyper.scale**2
        sums = sum_by_group(scatter, self.specification)
        factors = self._mode_factors(sums, prior, total, hyper.scale)
        return replace(point, means=means, precisions_cholesky=factors)

    @abstractmethod
    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        """Precision factors of the covariances ``(scatter + diag(prior)) / total``."""

    # Kernels

    @abstractmethod
    def kernel_normals(self, means: Vectors, factors: Factors, with_holes: bool) -> KernelNormals:
        """The normals at a point in the form that the kernels read."""

    @abstractmethod
    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""

    # Conjugate draws

    def posterior(
        self, cells: Vectors, centres: Centres, scatter: Matrices, hyper: Hyper
    ) -> tuple[ConjugatePrecisions, Centres, Vectors]:
        """Law of the precision factors given such rows, the means integrated out."""
        kappa, location = hyper.mean_precision, hyper.location
        strength = cells + kappa
        about = scatter + self.outer(centres - location, cells * kappa / strength)
        sums = sum_by_group(about, self.specification)
        inner = self.inner(sums, self.base_scales(hyper))
        by_group = sum_by_group(cells, self.specification)
        precisions = self.conjugate(by_group, inner, hyper)
        return precisions, (cells * centres + kappa * location) / strength, strength

    def draw_means(
        self, centres: Centres, strength: Vectors, factors: Matrices, rng: Rng
    ) -> Vectors:
        """Means of every component given its precision factor."""
        noise = rng.standard_normal(centres.shape) / np.sqrt(strength)
        return centres + self.spread(noise[:, None, :], factors)[:, 0]

    def conjugate(
        self, cells: Float[np.ndarray, "group feature"], inner: Factors, hyper: Hyper
    ) -> ConjugatePrecisions:
        """Density of the prior's family behind so many cells; inner is T of every column."""
        shapes = 1 + self.pooled(0.5 * (cells + hyper.degrees_of_freedom))
        scales = self.base_scales(hyper)
        return self.conjugate_family(scales, shapes, self.pooled(inner))

    @abstractmethod
    def inner(self, scatter: Factors, scales: Float[np.ndarray, "group feature"]) -> Factors:
        """``T = I + L0' S L0``."""

    @abstractmethod
    def inner_at(
        self,
        factors: Factors,
        strength: Float[np.ndarray, "group feature"],
        scales: Float[np.ndarray, "group feature"],
    ) -> Factors:
        """T of the density behind so many rows whose mode has these factors."""


class NormalPrior:
    """Prior of means and precision factors of any shape.

    ``gamma_powers`` are the powers of ``precision_diagonal``, without and with Jacobian, and
    ``rate`` is that of its gamma distribution.
    """

    def __init__(self, law: PrecisionColumns, hyper: Hyper) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location = hyper.location
        self._kappa = kappa = hyper.mean_precision
        self.rate = 0.5 * law.columns_a_gamma
        shape = self.rate * hyper.degrees_of_freedom + 1
        n_gammas = d // law.columns_a_gamma
        powers = np.repeat(shape - 1 + self.rate * sizes, n_gammas).reshape(-1, n_gammas)
        self.gamma_powers = [powers, powers + 1]
        scales = law.base_scales(hyper)
        self._lower_scales = law.lower_scales(scales)
        self._row_scales = law.row_scales(hyper)
        self.constant = powers.size * float(shape * np.log(self.rate) - gammaln(shape))
        self.constant += 0.5 * law.n_components * d * float(np.log(kappa) - LOG_2PI)
        self.constant -= float(sizes @ np.log(scales).sum(axis=1))
        self.constant -= 0.5 * self._lower_scales.size * LOG_2PI

    def log_density(self, parameters: Point, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant."""
        law, factors = self._law, parameters.precisions_cholesky
        entries, roots = law.unit_entries(factors * self._row_scales)
        # Under full covariances the rate is 1/2, as is that of the squares below the diagonal.
        total = 2 * float(np.vdot(self.gamma_powers[jacobian], np.log(roots)))
        total -= self.rate * float(np.vdot(entries, entries))
        pull = parameters.means - self._location
        if law.n_groups == 1:  # all are under one factor, in one product
            whitened = law.whiten(pull[None], factors)
        else:
            whitened = law.whiten(pull[:, None, :], law.by_component(factors))
        return total - 0.5 * self._kappa * float(np.vdot(whitened, whitened))

    def gradient(
        self, values: Values, parameters: Point, statistics: Statistics, jacobian: bool
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        law, factors = self._law, parameters.precisions_cholesky
        pull = parameters.means - self._location
        force = statistics.first - self._kappa * pull
        # (S + kappa0 M) L: what pulls a precision factor towards zero.
        scatter = statistics.second + law.outer(pull, self._kappa)
        stress = law.product(sum_by_group(scatter, self._specification), factors)
        # In log d, where dL_ii / d log d_i = L_ii / 2.
        diagonal = values[names.PRECISION_DIAGONAL].reshape(len(factors), -1)
        counts = sum_by_group(statistics.counts, self._specification)[:, None]
        squares = law.pooled(law.diagonal(stress) * law.diagonal(factors))
        by_log = self.rate * (counts - diagonal) - 0.5 * squares
        by_log += self.gamma_powers[jacobian]
        return {
            names.MEANS: law.precision_times(force, law.by_component(factors)),
            names.PRECISION_DIAGONAL: by_log,
            **law.lower_gradient(stress, values, self._lower_scales),
        }

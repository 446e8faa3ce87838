r"""Real columns: normal given the component, under covariances of one shape.

The precision of covariance group g is :math:`P = L L'`, :math:`L = L_0 A`, with
:math:`L_0 = \mathrm{diag}(1 / (s \sqrt{\nu_0 + G_g}))` for column scales s, and A lower triangular
with diagonal :math:`\sqrt d` (``precision_diagonal``) and strict lower part ``precision_lower``.
Which components share a covariance is the specification's to say; a shape says what one matrix
is: all of it, its diagonal, or one number.

The M-step, with counts :math:`n`, :math:`G_g` means and the scatter :math:`S_g` about the new ones:

.. math::
   \mu_k &= (\textstyle\sum_n r_{nk} x_n + \kappa_0 m_0) / (n_k + \kappa_0) \\
   \Sigma_g &= \frac{S_g + (\nu_0 + G_g) S_0
       + \kappa_0 \sum_k (\mu_k - m_0)(\mu_k - m_0)'}{n_g + \nu_0 + G_g}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import Components, Conditional
from bayesrbf.numerics.mixture.parts.conjugate_precisions import ConjugatePrecisions
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Variable

if TYPE_CHECKING:
    from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
    from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
    from bayesrbf.numerics.kernels.gaussian_pattern import GaussiansWithHoles

Vectors = Float[np.ndarray, "component feature"]
Matrices = Float[np.ndarray, "component *feature"]
Factors = Float[np.ndarray, "group *feature"]
Weights = Float[np.ndarray, "component _"]


class KernelNormals(NamedTuple):
    """Normals as the compiled kernels read them, and the log normalisers of the components."""

    constants: np.ndarray
    full: FullGaussians | None
    holes: GaussiansWithHoles | None
    diagonal: DiagonalGaussians | None


class RealColumns(ABC):
    """The real columns of a mixture; a subclass is one shape of their covariances."""

    conjugate_family: type[ConjugatePrecisions]

    def __init__(self, specification: MixtureSpecification) -> None:
        self.specification = specification
        self.n_components, self.n_features = specification.n_components, specification.n_features
        self.group = specification.covariance_group
        self.n_groups = specification.group_sizes.size

    # Variables of the graph

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: the means, and what stands behind the precision factors."""
        if not self.n_features:
            return ()
        dims, shape = (names.COMPONENT, names.FEATURE), (self.n_components, self.n_features)
        return (Variable(names.MEANS, dims, shape, "identity"), *self._precision_variables())

    @abstractmethod
    def _precision_variables(self) -> tuple[Variable, ...]:
        """The variables behind the precision factors."""

    def values(
        self, parameters: MixtureParameters, hyperparameters: MixtureHyperparameters
    ) -> dict[str, np.ndarray]:
        """Values of the variables at a point, in the units of the prior."""
        values = {names.MEANS: parameters.means}
        if self.n_features:
            scales = self.row_scales(hyperparameters)
            values |= self._precision_values(parameters.precisions_cholesky * scales)
        return values

    @abstractmethod
    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        """Values of the variables behind the factors A."""

    def means(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, "*batch component d"]:
        """Component means at given values of the variables."""
        return values[names.MEANS] if self.n_features else np.zeros((self.n_components, 0))

    def factors(
        self, values: Mapping[str, np.ndarray], hyperparameters: MixtureHyperparameters
    ) -> Float[np.ndarray, "*shape"]:
        """Precision factors of all groups at given values, of one point or of many."""
        if not self.n_features:
            return np.zeros((self.n_groups, *self.matrix_shape))
        batch = values[names.MEANS].shape[:-2]
        roots = np.sqrt(values[names.PRECISION_DIAGONAL]).reshape((*batch, self.n_groups, -1))
        return self._unit_factors(roots, values) / self.row_scales(hyperparameters)

    @abstractmethod
    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Mapping[str, np.ndarray]
    ) -> Float[np.ndarray, "*shape"]:
        """Factors A with that diagonal."""

    def base_scales(
        self, hyperparameters: MixtureHyperparameters
    ) -> Float[np.ndarray, "group feature"]:
        """Inverse diagonal of L0: ``s sqrt(nu0 + G)`` of every covariance group."""
        strength = hyperparameters.degrees_of_freedom + self.specification.group_sizes
        return np.sqrt(strength)[:, None] * hyperparameters.scale

    @abstractmethod
    def row_scales(self, hyperparameters: MixtureHyperparameters) -> Float[np.ndarray, "*shape"]:
        """The base scales as what multiplies the rows of a factor."""

    # Matrices of this shape

    @property
    @abstractmethod
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one covariance as an array."""

    @property
    def columns_a_gamma(self) -> int:
        """Columns whose precisions are the same gamma variable."""
        return 1

    @abstractmethod
    def outer(self, vectors: Vectors, factor: float | Weights) -> Matrices:
        """``factor v v'`` for every component."""

    @abstractmethod
    def product(self, matrices: Factors, factors: Factors) -> Factors:
        """Matrix products."""

    @abstractmethod
    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """Diagonals."""

    @abstractmethod
    def of_diagonal(self, diagonal: Float[np.ndarray, "group feature"]) -> Factors:
        """Matrices of given diagonals."""

    def pooled(self, by_column: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch gamma"]:
        """Sums over the columns of each gamma variable."""
        return by_column

    @abstractmethod
    def covariances(self, factors: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape d d"]:
        """``(L L')^-1`` as whole matrices."""

    @abstractmethod
    def whiten(
        self, deviations: Float[np.ndarray, "*batch component row d"], factors: Matrices
    ) -> Float[np.ndarray, "*batch component row d"]:
        """``L' (x - mu)`` of rows under every component."""

    @abstractmethod
    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        """``L'^-1 z`` of rows under every component: noise of their covariance."""

    def by_component(self, factors: Factors) -> Matrices:
        """The factor that each component uses."""
        return factors if self.n_groups == self.n_components else factors[self.group]

    # Prior: what depends on the shape

    @abstractmethod
    def unit_squares(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """Squares of the free entries of A, and those on its diagonal, ``precision_diagonal``."""

    def lower_scales(
        self, scales: Float[np.ndarray, "group feature"]
    ) -> Float[np.ndarray, "group entry"]:
        """The base scales of the rows that the entries of ``precision_lower`` are in."""
        return np.zeros((self.n_groups, 0))

    def lower_gradient(
        self,
        stress: Factors,
        values: Mapping[str, np.ndarray],
        scales: Float[np.ndarray, "group entry"],
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

    @abstractmethod
    def recentred(self, statistics: Statistics, shift: Vectors) -> Matrices:
        """Second moments about means that lie a shift further."""

    def mode(
        self,
        statistics: Statistics,
        parameters: MixtureParameters,
        hyperparameters: MixtureHyperparameters,
    ) -> tuple[Vectors, Factors]:
        """Means and precision factors of the M-step.

        A component without rows keeps m0 and S0: the prior preserves the mean covariance instead
        of shrinking it.
        """
        kappa, centre = hyperparameters.mean_precision, hyperparameters.location
        counts = statistics.counts[:, None]
        shift = (statistics.first + kappa * (centre - parameters.means)) / (counts + kappa)
        means = parameters.means + shift
        scatter = self.recentred(statistics, shift)
        scatter += self.outer(means - centre, kappa)
        strength = hyperparameters.degrees_of_freedom + self.specification.group_sizes
        total = sum_by_group(statistics.counts, self.specification) + strength
        prior = strength[:, None] * hyperparameters.scale**2
        sums = sum_by_group(scatter, self.specification)
        return means, self._mode_factors(sums, prior, total, hyperparameters.scale)

    @abstractmethod
    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        """Precision factors of the covariances ``(scatter + diag(prior)) / total``."""

    def at_floor(self, factors: Factors) -> bool:
        """Whether the floor of the eigenvalues shapes some covariance."""
        return False

    # Rows

    @abstractmethod
    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells by which rows must be kept apart."""

    @abstractmethod
    def components(self, means: Vectors, factors: Matrices) -> Components:
        """Components at a point, ready for blocks of rows."""

    @abstractmethod
    def conditional(
        self,
        rows: Int[np.ndarray, " row"],
        real: Float[np.ndarray, "row feature"],
        means: Vectors,
        factors: Matrices,
    ) -> Conditional:
        """Moments of rows that :meth:`holes` does not keep apart."""

    @abstractmethod
    def kernel_normals(self, means: Vectors, factors: Factors, with_holes: bool) -> KernelNormals:
        """The normals at a point in the form that the kernels read."""

    @abstractmethod
    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""

    # Conjugate draws

    @abstractmethod
    def assigned(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Int[np.ndarray, " row"],
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Vectors, Matrices]:
        """Cells, their means and the scatter about these, of rows whose components are known."""

    def conjugate(
        self,
        cells: Float[np.ndarray, "group feature"],
        inner: Factors,
        hyperparameters: MixtureHyperparameters,
    ) -> ConjugatePrecisions:
        """Density of the prior's family behind so many cells; inner is T of every column."""
        shapes = 1 + self.pooled(0.5 * (cells + hyperparameters.degrees_of_freedom))
        scales = self.base_scales(hyperparameters)
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

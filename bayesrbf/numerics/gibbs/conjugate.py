r"""The declared prior is conjugate: exact draws and exact evidence once rows have components.

Given which component every row belongs to, with n its rows, :math:`\bar x` their mean and S
the scatter about it, the mean integrates out: the scatter becomes
:math:`S + \frac{n\kappa_0}{n + \kappa_0}(\bar x - m_0)(\bar x - m_0)'`, summed over the
components under one covariance. With :math:`T = I + L_0' S L_0 = U U'`, U upper triangular,

.. math::
   A = U'^{-1} B, \quad B_{ii}^2 \sim \mathrm{Gamma}((n + \nu_0)/2 + 1,\ 1/2), \quad
   B_{ij} \sim N(0, 1), \quad
   \mu \mid P \sim N\Big(\frac{n \bar x + \kappa_0 m_0}{n + \kappa_0},\
   ((n + \kappa_0) P)^{-1}\Big).

Diagonal and spherical covariances have the diagonal alone, and need no cell that is missing;
simplices are Dirichlet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayesrbf.numerics.mixture.mixture_variables import base_scales, lower_places
from bayesrbf.numerics.mixture.statistics import sum_by_class, sum_by_group
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Assigned:
    """Statistics of rows whose components are known."""

    counts: Float[np.ndarray, " component"]
    # Real cells of every component; all its rows under full covariances.
    cells: Float[np.ndarray, "component feature"]
    centres: Float[np.ndarray, "component feature"]  # Means of those cells; 0 where there is none.
    # Sums of squares and products about the centres; the diagonal alone for diagonal and spherical
    # covariances.
    scatter: Float[np.ndarray, "component *feature"]
    # Counts of the observed levels, one array per categorical column.
    categories: tuple[Float[np.ndarray, "component _"], ...]


def assigned(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    components: Int[np.ndarray, " row"],
    specification: MixtureSpecification,
) -> Assigned:
    """Sum up rows whose components are known.

    Under full covariances the rows must be complete.
    """
    k, full = specification.n_components, specification.shape == "full"
    of_component = components == np.arange(k)[:, None]
    member = of_component.astype(float)
    counts = member.sum(axis=1)
    if full:
        cells = np.repeat(counts[:, None], real.shape[1], axis=1)
        centres = (member @ real) / np.maximum(cells, 1)
        deviations = real - centres[components]
        parts = [deviations[rows] for rows in of_component]
        scatter = np.stack([part.T @ part for part in parts])
    else:
        known = ~np.isnan(real)
        cells = member @ known
        centres = (member @ np.nan_to_num(real)) / np.maximum(cells, 1)
        scatter = member @ np.where(known, real - centres[components], 0.0) ** 2
    categories = tuple(
        _level_counts(column, components, k, n_levels)
        for column, n_levels in zip(codes.T, specification.levels, strict=True)
    )
    return Assigned(counts, cells, centres, scatter, categories)


def _level_counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """How often each component has each level of a column."""
    known = codes >= 0
    places = components[known] * n_levels + codes[known]
    return np.bincount(places, minlength=k * n_levels).reshape(k, n_levels).astype(float)


@dataclass(frozen=True)
class Conjugate:
    """A density of the declared prior's family: the prior, or the posterior of assigned rows."""

    specification: MixtureSpecification
    scales: Float[np.ndarray, "group feature"]  # Inverse diagonals of L0.
    # Dirichlet parameters: of the class probabilities, of the weights of each class one after the
    # other, and of every categorical column.
    classes: Float[np.ndarray, " label"]
    weights: Float[np.ndarray, " component"]
    levels: tuple[Float[np.ndarray, "component _"], ...]
    centres: Float[np.ndarray, "component feature"]
    # Rows behind the centres, those of the prior among them.
    strength: Float[np.ndarray, "component feature"]
    # Of the gamma variables; one a group for spherical covariances.
    shapes: Float[np.ndarray, "group gamma"]
    # T; its diagonal for diagonal covariances, the sum of that for spherical ones.
    inner: Float[np.ndarray, "group *gamma"]

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """An exact, independent draw of all parameters, in the units of the rows."""
        factors = self._draw_factors(rng)
        return MixtureParameters(
            class_probabilities=_dirichlet(self.classes, rng),
            weights=self._draw_weights(rng),
            means=self._draw_means(factors, rng),
            precisions_cholesky=factors,
            category_probabilities=tuple(_dirichlet(level, rng) for level in self.levels),
        )

    @property
    def log_normaliser(self) -> float:
        """Log integral of the density without its constants, in nats."""
        total = _log_beta(self.classes)
        total += sum(_log_beta(self.weights[part]) for part in self.specification.class_slices)
        total += sum(_log_beta(level) for level in self.levels)
        total += float(gammaln(self.shapes).sum() - 0.5 * np.log(self.strength).sum())
        if self.inner.ndim == 2:
            return total - float((self.shapes * np.log(0.5 * self.inner)).sum())
        # U'^-1 stretches column j of B on and below the diagonal: one more log U_ii a column.
        log_upper = np.log(self.upper.diagonal(0, 1, 2))
        powers = 2 * self.shapes + np.arange(self.inner.shape[1])
        return total + float((self.shapes * np.log(2) - powers * log_upper).sum())

    @cached_property
    def upper(self) -> Float[np.ndarray, "group feature feature"]:
        """U with T = U U', under full covariances."""
        return np.linalg.cholesky(self.inner[:, ::-1, ::-1])[:, ::-1, ::-1]

    @cached_property
    def _lower(self) -> Float[np.ndarray, "group feature feature"]:
        """``U'^-1``, from B to A."""
        return np.linalg.inv(self.upper).swapaxes(1, 2)

    def _draw_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Weights of every component within its class."""
        specification = self.specification
        if specification.n_components == specification.n_classes:
            return np.ones(specification.n_components)
        gammas = _gammas(self.weights, rng)
        sums = sum_by_class(gammas, specification)
        return gammas / sums[np.asarray(specification.component_class)]

    def _draw_factors(self, rng: np.random.Generator) -> np.ndarray:
        """Precision factors of every covariance group, the means integrated out."""
        gammas = 2.0 * rng.standard_gamma(self.shapes)
        if self.inner.ndim == 2:
            return np.sqrt(gammas / self.inner) / self.scales
        n_groups, d = gammas.shape
        unit = np.zeros((n_groups, d * d))
        unit[:, :: d + 1] = np.sqrt(gammas)
        unit[:, lower_places(d)] = rng.standard_normal((n_groups, d * (d - 1) // 2))
        return (self._lower @ unit.reshape(self.inner.shape)) / self.scales[:, :, None]

    def _draw_means(self, factors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Means of every component given the precision factors."""
        noise = rng.standard_normal(self.centres.shape) / np.sqrt(self.strength)
        group = self.specification.covariance_group
        if factors.ndim == 2:
            return self.centres + noise / factors[group]
        transposed = factors.swapaxes(1, 2)[group]
        return self.centres + np.linalg.solve(transposed, noise[:, :, None])[:, :, 0]


def posterior(
    rows: Assigned, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> Conjugate:
    """The posterior of the parameters given rows with components; the prior, given none."""
    kappa = hyperparameters.mean_precision
    scales = base_scales(hyperparameters, specification)
    strength = rows.cells + kappa
    pull = rows.centres - hyperparameters.location
    share = rows.cells * kappa / strength
    cells = sum_by_group(rows.cells, specification)
    if rows.scatter.ndim == 2:
        scatter = sum_by_group(rows.scatter + share * pull**2, specification)
        inner = 1 + scatter / scales**2
    else:
        outer = (share * pull)[:, :, None] * pull[:, None, :]
        scatter = sum_by_group(rows.scatter + outer, specification)
        inner = scatter / scales[:, :, None] / scales[:, None, :]
        inner += np.eye(scales.shape[1])
    if specification.shape == "spherical":
        inner = inner.sum(axis=1, keepdims=True)
    concentrations = hyperparameters.category_concentrations
    return Conjugate(
        specification=specification,
        scales=scales,
        classes=sum_by_class(rows.counts, specification) + hyperparameters.class_concentration,
        weights=rows.counts + hyperparameters.weight_concentration,
        levels=tuple(n + a for n, a in zip(rows.categories, concentrations, strict=True)),
        centres=(rows.cells * rows.centres + kappa * hyperparameters.location) / strength,
        strength=strength,
        shapes=gamma_shapes(cells, hyperparameters, specification),
        inner=inner,
    )


def gamma_shapes(
    cells: Float[np.ndarray, "group feature"],
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "group gamma"]:
    """Shapes of the gamma variables behind the precision factors.

    ``(n + nu0) / 2 + 1``, summed over the features for spherical covariances.
    """
    halves = 0.5 * (cells + hyperparameters.degrees_of_freedom)
    return 1 + (halves.sum(axis=1, keepdims=True) if specification.shape == "spherical" else halves)


def log_evidence(
    rows: Assigned, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> float:
    """Log probability of rows and of their components, all parameters integrated out.

    Exact, in nats, in the units of the rows.
    """
    none = Assigned(
        counts=np.zeros_like(rows.counts),
        cells=np.zeros_like(rows.cells),
        centres=np.zeros_like(rows.centres),
        scatter=np.zeros_like(rows.scatter),
        categories=tuple(np.zeros_like(value) for value in rows.categories),
    )
    after = posterior(rows, hyperparameters, specification)
    before = posterior(none, hyperparameters, specification)
    cells = sum_by_group(rows.cells, specification)
    units = float((cells * (0.5 * _LOG_2PI + np.log(after.scales))).sum())
    return after.log_normaliser - before.log_normaliser - units


def _dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw simplices on the last axis."""
    draws = _gammas(concentration, rng)
    return draws / draws.sum(axis=-1, keepdims=True)


def _gammas(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw gamma variables, positive even where a draw underflows."""
    return np.maximum(rng.standard_gamma(shapes), np.finfo(float).tiny)


def _log_beta(concentration: np.ndarray) -> float:
    """Sum of the log multivariate beta functions of the last axis."""
    return float(gammaln(concentration).sum() - gammaln(concentration.sum(axis=-1)).sum())

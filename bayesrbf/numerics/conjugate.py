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

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayesrbf.numerics.maximisation import precision_factor
from bayesrbf.numerics.mixture_variables import base_scales
from bayesrbf.numerics.statistics import sum_by_class, sum_by_group
from bayesrbf.parameters import MixtureParameters
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.specification import MixtureSpecification

_LOG_PI = float(np.log(np.pi))


@dataclass(frozen=True)
class Assigned:
    """Statistics of rows whose components are known.

    Attributes
    ----------
    counts : ndarray of shape (n_components,)
        Rows of every component.
    cells : ndarray of shape (n_components, n_features)
        Real cells of every component; all its rows under full covariances.
    centres : ndarray of shape (n_components, n_features)
        Means of those cells; 0 where there is none.
    scatter : ndarray of shape (n_components, n_features, n_features) or (n_components, n_features)
        Sums of squares and products about the centres; the diagonal alone for
        diagonal and spherical covariances.
    categories : tuple of ndarray of shape (n_components, n_levels)
        Counts of the observed levels, one array per categorical column.
    """

    counts: Float[np.ndarray, " component"]
    cells: Float[np.ndarray, "component feature"]
    centres: Float[np.ndarray, "component feature"]
    scatter: Float[np.ndarray, "component *feature"]
    categories: tuple[Float[np.ndarray, "component _"], ...]

    def with_components(self, places: Int[np.ndarray, " some"], other: Assigned) -> Assigned:
        """Replace the statistics of some components.

        Parameters
        ----------
        places : ndarray of shape (n_replaced,)
            Components to replace.
        other : Assigned
            Their statistics, in the order of ``places``.

        Returns
        -------
        Assigned
            A copy.
        """
        changed = {}
        for name in ("counts", "cells", "centres", "scatter"):
            changed[name] = getattr(self, name).copy()
            changed[name][places] = getattr(other, name)
        categories = tuple(values.copy() for values in self.categories)
        for values, replacement in zip(categories, other.categories, strict=True):
            values[places] = replacement
        return Assigned(**changed, categories=categories)


def assigned(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    components: Int[np.ndarray, " row"],
    specification: MixtureSpecification,
) -> Assigned:
    """Sum up rows whose components are known.

    Parameters
    ----------
    real : ndarray of shape (n_rows, n_features)
        Real cells; without NaN under full covariances.
    codes : ndarray of shape (n_rows, n_categorical)
        Level codes, -1 where missing.
    components : ndarray of shape (n_rows,)
        Component of every row.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    Assigned
        The statistics.
    """
    k, full = specification.n_components, specification.shape == "full"
    member = (components == np.arange(k)[:, None]).astype(float)
    counts = member.sum(axis=1)
    if full:
        cells = np.repeat(counts[:, None], real.shape[1], axis=1)
        centres = (member @ real) / np.maximum(cells, 1)
        scatter = _scatter(real - centres[components], components, k)
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


def _scatter(deviations: np.ndarray, components: np.ndarray, k: int) -> np.ndarray:
    """Sums of products of the deviations of every component's rows."""
    order = np.argsort(components, kind="stable")
    parts = np.split(deviations[order], np.searchsorted(components[order], np.arange(1, k)))
    return np.stack([part.T @ part for part in parts])


def _level_counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """How often each component has each level of a column."""
    known = codes >= 0
    places = components[known] * n_levels + codes[known]
    return np.bincount(places, minlength=k * n_levels).reshape(k, n_levels).astype(float)


@dataclass(frozen=True)
class Conjugate:
    """The posterior given the statistics of assigned rows.

    Attributes
    ----------
    statistics : Assigned
        Statistics of the rows.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in the units of the rows.
    specification : MixtureSpecification
        Structure of the mixture.
    """

    statistics: Assigned
    hyperparameters: MixtureHyperparameters
    specification: MixtureSpecification

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """Draw all parameters at once; without rows, from the prior.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        MixtureParameters
            An exact, independent draw, in the units of the rows.
        """
        factors = self._draw_factors(rng)
        return MixtureParameters(
            class_probabilities=_dirichlet(self._class_concentration(), rng),
            weights=np.concatenate(
                [_dirichlet(self._weights()[part], rng) for part in self.specification.class_slices]
            ),
            means=self._draw_means(factors, rng),
            precisions_cholesky=factors,
            category_probabilities=tuple(_dirichlet(level, rng) for level in self._levels()),
        )

    def log_evidence(self) -> float:
        """Log probability of the rows and of their components, all parameters integrated out.

        Returns
        -------
        float
            Exact, in nats, in the units of the rows.
        """
        hyper, specification = self.hyperparameters, self.specification
        total = _log_dirichlet_ratio(self._class_concentration(), hyper.class_concentration)
        for part in specification.class_slices:
            total += _log_dirichlet_ratio(self._weights()[part], hyper.weight_concentration)
        for levels, prior in zip(self._levels(), hyper.category_concentrations, strict=True):
            total += _log_dirichlet_ratio(levels, prior)
        return total + self._log_evidence_of_reals() if specification.n_features else total

    def _class_concentration(self) -> np.ndarray:
        """Dirichlet parameters of the class probabilities."""
        counts = sum_by_class(self.statistics.counts, self.specification)
        return counts + self.hyperparameters.class_concentration

    def _weights(self) -> np.ndarray:
        """Dirichlet parameters of the component weights, in the flat order."""
        return self.statistics.counts + self.hyperparameters.weight_concentration

    def _levels(self) -> list[np.ndarray]:
        """Dirichlet parameters of every categorical column."""
        priors = self.hyperparameters.category_concentrations
        return [n + a for n, a in zip(self.statistics.categories, priors, strict=True)]

    def _inner(self) -> tuple[np.ndarray, np.ndarray]:
        """Cells (group, feature) and T, or its diagonal, of every covariance group."""
        rows, hyper = self.statistics, self.hyperparameters
        pull = rows.centres - hyper.location
        share = rows.cells * hyper.mean_precision / (rows.cells + hyper.mean_precision)
        scales = base_scales(hyper, self.specification)
        cells = sum_by_group(rows.cells, self.specification)
        if rows.scatter.ndim == 2:
            scatter = sum_by_group(rows.scatter + share * pull**2, self.specification)
            return cells, 1 + scatter / scales**2
        outer = (share * pull)[:, :, None] * pull[:, None, :]
        scatter = sum_by_group(rows.scatter + outer, self.specification)
        scatter /= scales[:, :, None] * scales[:, None, :]
        return cells, np.eye(scales.shape[1]) + scatter

    def _draw_factors(self, rng: np.random.Generator) -> np.ndarray:
        """Precision factors of every covariance group, the means integrated out."""
        cells, inner = self._inner()
        scales = base_scales(self.hyperparameters, self.specification)
        freedom = self.hyperparameters.degrees_of_freedom
        if self.specification.shape == "spherical" and cells.shape[1]:
            shape = 0.5 * (cells.sum(axis=1) + cells.shape[1] * freedom) + 1
            unit = rng.gamma(shape) / (0.5 * inner.sum(axis=1))
            return np.sqrt(unit)[:, None] / scales
        squares = rng.gamma(0.5 * (cells + freedom) + 1, 2.0)
        if inner.ndim == 2:
            return np.sqrt(squares / inner) / scales
        d = cells.shape[1]
        unit = np.tril(rng.standard_normal(inner.shape), -1)
        unit[:, range(d), range(d)] = np.sqrt(squares)
        return (precision_factor(inner) @ unit) / scales[:, :, None]

    def _draw_means(self, factors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Means of every component given the precision factors."""
        rows, kappa = self.statistics, self.hyperparameters.mean_precision
        strength = rows.cells + kappa
        centre = (rows.cells * rows.centres + kappa * self.hyperparameters.location) / strength
        noise = rng.standard_normal(centre.shape) / np.sqrt(strength)
        group = self.specification.covariance_group
        if factors.ndim == 2:
            return centre + noise / factors[group]
        transposed = factors.swapaxes(1, 2)[group]
        return centre + np.linalg.solve(transposed, noise[:, :, None])[:, :, 0]

    def _log_evidence_of_reals(self) -> float:
        """Log probability of the real cells given the components."""
        hyper = self.hyperparameters
        cells, inner = self._inner()
        d, freedom = cells.shape[1], hyper.degrees_of_freedom
        log_scales = np.log(base_scales(hyper, self.specification))
        kappa = hyper.mean_precision
        total = 0.5 * np.log(kappa / (kappa + self.statistics.cells)).sum()
        total -= (cells * (0.5 * _LOG_PI + log_scales)).sum()
        if self.specification.shape == "spherical":
            prior = 0.5 * d * freedom + 1
            shape = prior + 0.5 * cells.sum(axis=1)
            mean = inner.mean(axis=1)
            total -= 0.5 * np.log(d) * cells.sum()
            return float(total + (gammaln(shape) - gammaln(prior) - shape * np.log(mean)).sum())
        prior = 0.5 * freedom + 1
        shape = prior + 0.5 * cells
        total += (gammaln(shape) - gammaln(prior)).sum()
        if inner.ndim == 2:
            return float(total - (shape * np.log(inner)).sum())
        # U'^-1 stretches column j of B below and on the diagonal: one more log U_ii per column.
        log_upper = -np.log(np.einsum("gii->gi", precision_factor(inner)))
        return float(total - ((2 * shape + np.arange(d)) * log_upper).sum())


def _dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw simplices on the last axis; positive even where a gamma draw underflows."""
    draws = np.maximum(rng.gamma(concentration), np.finfo(float).tiny)
    return draws / draws.sum(axis=-1, keepdims=True)


def _log_dirichlet_ratio(posterior: np.ndarray, prior: np.ndarray | float) -> float:
    """Log probability of what was counted, the simplices integrated out."""
    before = np.broadcast_to(prior, posterior.shape)
    ratio = gammaln(posterior).sum(axis=-1) - gammaln(posterior.sum(axis=-1))
    ratio -= gammaln(before).sum(axis=-1) - gammaln(before.sum(axis=-1))
    return float(ratio.sum())

"""Statistics of rows whose components are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.specification import MixtureSpecification


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

r"""Second derivatives of the likelihood of labels in the weights.

With p, r and t as in :mod:`bayesrbf.numerics.sdgm.likelihood`, the complete-data
negative Hessian :math:`t (\mathrm{diag}\, p - p p^\top)` is never indefinite; the
observed one lacks the variance of the complete-data score over what is hidden,
:math:`t (\mathrm{diag}\, r - r r^\top)` and the variance of
:math:`(r - p) \otimes \phi` over the completions.

References
----------
Louis (1982), Finding the observed information matrix when using the EM
algorithm, JRSS B 44, section 3.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.numerics.sdgm.likelihood import (
    Designs,
    Expectation,
    Labels,
    gradient,
    places,
    to_logits,
)

BLOCK_NUMBERS = 4_000_000
"""Numbers held at once per array of a block of rows."""


def complete_curvature(
    designs: Designs, labels: Labels, expectation: Expectation
) -> Float[np.ndarray, "weight weight"]:
    """Complete-data negative Hessian of the weighted log likelihood.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    labels : Labels
        What is known of the rows.
    expectation : Expectation
        At the weights.

    Returns
    -------
    ndarray of shape (n_weights, n_weights)
        ``sum t (diag p - p p')``, between features: never indefinite.
    """
    return _spread(designs, labels, expectation, expectation.probabilities)


def component_curvatures(
    designs: Designs, expectation: Expectation
) -> list[Float[np.ndarray, "_ _"]]:
    """Diagonal blocks of the complete-data curvature: every component on its own.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    expectation : Expectation
        At the weights.

    Returns
    -------
    list of ndarray of shape (n_weights of the component, n_weights of the component)
        ``X_k' t p_k (1 - p_k) X_k``.
    """
    p = expectation.probabilities
    roots = np.sqrt(expectation.weights[:, None] * p * (1 - p))
    scaled = (design * roots[:, k, None] for k, design in enumerate(designs))
    return [part.T @ part for part in scaled]


def curvature_product(
    designs: Designs, expectation: Expectation, vector: Float[np.ndarray, " weight"]
) -> Float[np.ndarray, " weight"]:
    """The complete-data curvature times a vector, without the matrix.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    expectation : Expectation
        At the weights.
    vector : ndarray of shape (n_weights,)
        Any change of the weights.

    Returns
    -------
    ndarray of shape (n_weights,)
        What it changes the complete-data gradient by, with the other sign.
    """
    p = expectation.probabilities
    moves = to_logits(designs, vector, np.zeros(len(designs)))
    centred = moves - (p * moves).sum(axis=1, keepdims=True)
    return gradient(designs, expectation.weights[:, None] * p * centred)


def hidden_information(
    designs: Designs, labels: Labels, expectation: Expectation
) -> Float[np.ndarray, "weight weight"]:
    """What the complete-data curvature has more than the observed one.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    labels : Labels
        What is known of the rows.
    expectation : Expectation
        At the weights.

    Returns
    -------
    ndarray of shape (n_weights, n_weights)
        Variance of the complete-data score over components and completions.
    """
    total = _spread(designs, labels, expectation, expectation.responsibilities)
    if labels.starts.size == labels.allowed.shape[0]:
        return total
    residual = expectation.responsibilities - expectation.probabilities
    several = labels.sizes > 1
    for rows in _blocks(designs, labels, several):
        points = _points(labels, rows)
        score = _scaled(designs, points, residual)
        local = np.cumsum(labels.sizes[rows]) - labels.sizes[rows]
        mean = np.add.reduceat(score * expectation.shares[points, None], local, axis=0)
        total += score.T @ (score * expectation.weights[points, None])
        total -= mean.T @ (mean * labels.weights[rows, None])
    return total


def _spread(
    designs: Designs, labels: Labels, expectation: Expectation, shares: np.ndarray
) -> Float[np.ndarray, "weight weight"]:
    """``sum t (diag q - q q')`` between features, for shares q of the components."""
    slots = places(designs)
    total = np.zeros((slots[-1].stop, slots[-1].stop))
    for rows in _blocks(designs, labels, np.ones(labels.starts.size, dtype=bool)):
        points = _points(labels, rows)
        weights = expectation.weights[points]
        scaled = _scaled(designs, points, shares)
        for design, slot in zip(designs, slots, strict=True):
            chosen = design[points]
            total[slot, slot] += chosen.T @ (scaled[:, slot] * weights[:, None])
        scaled *= np.sqrt(weights)[:, None]
        total -= scaled.T @ scaled
    return total


def _scaled(
    designs: Designs, points: slice | np.ndarray, factors: np.ndarray
) -> Float[np.ndarray, "chosen weight"]:
    """Features of all weights side by side, each times its component's factor."""
    return np.concatenate(
        [design[points] * factors[points, k, None] for k, design in enumerate(designs)], axis=1
    )


def _blocks(designs: Designs, labels: Labels, chosen: Bool[np.ndarray, " row"]) -> list[np.ndarray]:
    """Chosen rows, some at a time."""
    rows = np.flatnonzero(chosen)
    points_before = np.cumsum(labels.sizes[rows])
    most = max(1, BLOCK_NUMBERS // max(1, places(designs)[-1].stop))
    if rows.size == 0 or points_before[-1] <= most:
        return [rows] if rows.size else []
    cuts = np.searchsorted(points_before, np.arange(most, points_before[-1], most))
    return [part for part in np.split(rows, cuts) if part.size]


def _points(labels: Labels, rows: np.ndarray) -> slice | np.ndarray:
    """The points of rows; a slice, which copies nothing, where the rows are neighbours."""
    first, sizes = labels.starts[rows], labels.sizes[rows]
    if rows[-1] - rows[0] + 1 == rows.size:
        return slice(int(first[0]), int(first[-1] + sizes[-1]))
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(first, sizes) + offsets

r"""The likelihood of labels under a softmax whose components are summed within classes.

With logits z of the components, p their softmax, S the components of the classes
that a row may have, and s the row's completions,

.. math:: \log p(S | x) = \log \frac1n \sum_s \sum_{k \in S} p_{sk}.

r is p within S, t the probability of a completion given S. The gradient in the
logits is :math:`t (r - p)`.

The complete-data negative Hessian :math:`t (\mathrm{diag}\, p - p p^\top)` is never
indefinite. The observed one lacks the variance of the complete-data score over what is
hidden: :math:`t (\mathrm{diag}\, r - r r^\top)`, and the variance of
:math:`(r - p) \otimes \phi` over the completions.

See Louis (1982), Finding the observed information matrix when using the EM algorithm, JRSS B 44,
section 3.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.log_sums import log_sum_exp

Designs = tuple[Float[np.ndarray, "point _"], ...]
"""Features of every component's own weights, one array a component."""
BLOCK_NUMBERS = 4_000_000
"""Rows are summed in blocks of so many numbers; a sum in other parts may prune other weights."""


@dataclass(frozen=True)
class Labels:
    """The components that the row of every point may have.

    ``starts`` is the first point of every row, and ``weights`` are row weights.
    """

    allowed: Bool[np.ndarray, "point component"]
    starts: Int[np.ndarray, " row"]
    weights: Float[np.ndarray, " row"]

    @cached_property
    def sizes(self) -> Int[np.ndarray, " row"]:
        """Number of points of every row."""
        return np.diff(self.starts, append=self.allowed.shape[0])


@dataclass(frozen=True)
class LabelExpectation:
    """The E-step: all that the value and its derivatives need at one point of the logits."""

    pointwise: Float[np.ndarray, " row"]  # Unweighted log likelihood of every row.
    probabilities: Float[np.ndarray, "point component"]  # p, the softmax over all components.
    responsibilities: Float[np.ndarray, "point component"]
    """r, the softmax over the components that the row may have."""
    completion_probabilities: Float[np.ndarray, " point"]
    """t, the probability of each completion among those of its row."""
    weights: Float[np.ndarray, " point"]  # Row weight times t.
    log_likelihood: float

    @property
    def logit_gradient(self) -> Float[np.ndarray, "point component"]:
        """Gradient of the weighted log likelihood in the logits."""
        return self.weights[:, None] * (self.responsibilities - self.probabilities)


def expect(labels: Labels, logits: Float[np.ndarray, "point component"]) -> LabelExpectation:
    """The E-step at logits ``log pi + w . phi``."""
    log_all, probabilities = log_sum_exp(logits, axis=1)
    log_some, responsibilities = log_sum_exp(np.where(labels.allowed, logits, -np.inf), axis=1)
    log_point = log_some - log_all
    sizes = labels.sizes
    # The mean over the completions of a row, in logs.
    pointwise = np.logaddexp.reduceat(log_point, labels.starts) - np.log(sizes)
    completion_probabilities = np.exp(log_point - np.repeat(pointwise + np.log(sizes), sizes))
    return LabelExpectation(
        pointwise=pointwise,
        probabilities=probabilities,
        responsibilities=responsibilities,
        completion_probabilities=completion_probabilities,
        weights=completion_probabilities * np.repeat(labels.weights, sizes),
        log_likelihood=float(labels.weights @ pointwise),
    )


def completion_error(labels: Labels, expectation: LabelExpectation) -> float:
    r"""Standard error, in nats, of the log likelihood for the finite number of completions.

    With n completions of relative probabilities :math:`n t_s`, the error of the log of their mean
    is :math:`\mathrm{sd}(n t_s) / \sqrt n`. It is an upper bound in practice, because quasi-random
    draws are more even than independent ones. Complete rows have none.
    """
    sizes = labels.sizes
    relative = expectation.completion_probabilities * np.repeat(sizes, sizes)
    squares = np.add.reduceat((relative - 1) ** 2, labels.starts)
    variances = np.where(sizes > 1, squares / (np.maximum(sizes - 1, 1) * sizes), 0.0)
    return float(np.sqrt(labels.weights**2 @ variances))


def to_logits(
    designs: Designs,
    coefficients: Float[np.ndarray, " weight"],
    log_proportions: Float[np.ndarray, " component"],
) -> Float[np.ndarray, "point component"]:
    """Logits of all points, ``log pi_k + X_k w_k``."""
    logits = np.empty((designs[0].shape[0], len(designs)))
    for k, (design, place) in enumerate(zip(designs, places(designs), strict=True)):
        logits[:, k] = design @ coefficients[place] + log_proportions[k]
    return logits


def places(designs: Designs) -> tuple[slice, ...]:
    """Slice of each component's weights in the vector of all."""
    edges = np.cumsum([0] + [design.shape[1] for design in designs]).tolist()
    return tuple(slice(a, b) for a, b in itertools.pairwise(edges))


def weight_gradient(
    designs: Designs, gradient: Float[np.ndarray, "point component"]
) -> Float[np.ndarray, " weight"]:
    """Gradient in the weights, ``X_k' g_k``, from the gradient g in the logits."""
    return np.concatenate([design.T @ gradient[:, k] for k, design in enumerate(designs)])


def class_log_probabilities(
    logits: Float[np.ndarray, "*points component"], component_class: Int[np.ndarray, " component"]
) -> Float[np.ndarray, "*points label"]:
    """Log of the softmax summed within classes.

    ``component_class`` must be non-decreasing, and every class must have a component.
    """
    log_all, _ = log_sum_exp(logits, axis=-1)
    starts = np.flatnonzero(np.diff(component_class, prepend=-1))
    return np.logaddexp.reduceat(logits, starts, axis=-1) - log_all[..., None]


def complete_curvature(
    designs: Designs, labels: Labels, expectation: LabelExpectation
) -> Float[np.ndarray, "weight weight"]:
    """Complete-data negative Hessian of the weighted log likelihood, which is never indefinite.

    It is ``sum t (diag p - p p')`` between features.
    """
    return _spread(designs, labels, expectation, expectation.probabilities)


def component_curvatures(
    designs: Designs, expectation: LabelExpectation
) -> list[Float[np.ndarray, "_ _"]]:
    """Diagonal blocks of the complete-data curvature, ``X_k' t p_k (1 - p_k) X_k``."""
    p = expectation.probabilities
    roots = np.sqrt(expectation.weights[:, None] * p * (1 - p))
    scaled = (design * roots[:, k, None] for k, design in enumerate(designs))
    return [part.T @ part for part in scaled]


def curvature_product(
    designs: Designs, expectation: LabelExpectation, vector: Float[np.ndarray, " weight"]
) -> Float[np.ndarray, " weight"]:
    """The complete-data curvature times a vector of weights, without forming the matrix."""
    p = expectation.probabilities
    moves = to_logits(designs, vector, np.zeros(len(designs)))
    # (diag p - p p') z is p times z less its mean under p.
    centred = moves - (p * moves).sum(axis=1, keepdims=True)
    return weight_gradient(designs, expectation.weights[:, None] * p * centred)


def hidden_information(
    designs: Designs, labels: Labels, expectation: LabelExpectation
) -> Float[np.ndarray, "weight weight"]:
    """The complete-data curvature less the observed one.

    It is the variance of the complete-data score over components and completions.
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
        mean = np.add.reduceat(
            score * expectation.completion_probabilities[points, None], local, axis=0
        )
        total += score.T @ (score * expectation.weights[points, None])
        # The variance over completions: the mean of squares less the square of the mean.
        total -= mean.T @ (mean * labels.weights[rows, None])
    return total


def _spread(
    designs: Designs, labels: Labels, expectation: LabelExpectation, probabilities: np.ndarray
) -> Float[np.ndarray, "weight weight"]:
    """``sum t (diag q - q q')`` between features, for probabilities q of the components."""
    slots = places(designs)
    total = np.zeros((slots[-1].stop, slots[-1].stop))
    for rows in _blocks(designs, labels, np.ones(labels.starts.size, dtype=bool)):
        points = _points(labels, rows)
        weights = expectation.weights[points]
        scaled = _scaled(designs, points, probabilities)
        for design, slot in zip(designs, slots, strict=True):
            chosen = design[points]
            total[slot, slot] += chosen.T @ (scaled[:, slot] * weights[:, None])
        # One product gives the off-diagonal blocks, too.
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
    """Chosen rows in blocks of limited size."""
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

r"""The likelihood of labels under a softmax whose components are summed within classes.

With logits z of the components, p their softmax, S the components of the classes
that a row may have, and s the row's completions,

.. math:: \log p(S | x) = \log \frac1n \sum_s \sum_{k \in S} p_{sk}.

r is p within S, t the share of a completion in the sum. The gradient in the
logits is :math:`t (r - p)`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.log_sums import log_sum_exp


@dataclass(frozen=True)
class Labels:
    """What is known of the components of every point.

    Attributes
    ----------
    allowed : ndarray of shape (n_points, n_components)
        The components that the point's row may have.
    starts : ndarray of shape (n_rows,)
        First point of every row.
    weights : ndarray of shape (n_rows,)
        Row weights.
    """

    allowed: Bool[np.ndarray, "point component"]
    starts: Int[np.ndarray, " row"]
    weights: Float[np.ndarray, " row"]

    @cached_property
    def sizes(self) -> Int[np.ndarray, " row"]:
        """Number of points of every row."""
        return np.diff(self.starts, append=self.allowed.shape[0])


@dataclass(frozen=True)
class Expectation:
    """Everything that value and derivatives need at one point of the logits.

    Attributes
    ----------
    pointwise : ndarray of shape (n_rows,)
        Unweighted log likelihood of every row.
    probabilities : ndarray of shape (n_points, n_components)
        p, the softmax.
    responsibilities : ndarray of shape (n_points, n_components)
        r, p within the components that the row may have.
    shares : ndarray of shape (n_points,)
        t, the share of a completion in its row.
    weights : ndarray of shape (n_points,)
        Row weight times t.
    log_likelihood : float
        Weighted sum of ``pointwise``.
    """

    pointwise: Float[np.ndarray, " row"]
    probabilities: Float[np.ndarray, "point component"]
    responsibilities: Float[np.ndarray, "point component"]
    shares: Float[np.ndarray, " point"]
    weights: Float[np.ndarray, " point"]
    log_likelihood: float

    @property
    def slope(self) -> Float[np.ndarray, "point component"]:
        """Gradient of the weighted log likelihood in the logits."""
        return self.weights[:, None] * (self.responsibilities - self.probabilities)


def expect(labels: Labels, logits: Float[np.ndarray, "point component"]) -> Expectation:
    """One E-step.

    Parameters
    ----------
    labels : Labels
        What is known of the rows.
    logits : ndarray of shape (n_points, n_components)
        log pi + w . phi of every point and component.

    Returns
    -------
    Expectation
        Likelihood, probabilities and responsibilities.
    """
    log_all, probabilities = log_sum_exp(logits, axis=1)
    log_some, responsibilities = log_sum_exp(np.where(labels.allowed, logits, -np.inf), axis=1)
    log_point = log_some - log_all
    sizes = labels.sizes
    pointwise = np.logaddexp.reduceat(log_point, labels.starts) - np.log(sizes)
    shares = np.exp(log_point - np.repeat(pointwise + np.log(sizes), sizes))
    return Expectation(
        pointwise=pointwise,
        probabilities=probabilities,
        responsibilities=responsibilities,
        shares=shares,
        weights=shares * np.repeat(labels.weights, sizes),
        log_likelihood=float(labels.weights @ pointwise),
    )


def completion_error(labels: Labels, expectation: Expectation) -> float:
    r"""Standard error of the log likelihood by the finite number of completions.

    With n completions of relative probabilities :math:`n t_s`, the error of the log
    of their mean is :math:`\mathrm{sd}(n t_s) / \sqrt n`: an upper bound in practice,
    for quasi-random draws are more even than independent ones.

    Parameters
    ----------
    labels : Labels
        What is known of the rows.
    expectation : Expectation
        At the weights.

    Returns
    -------
    float
        In nats; 0 where no row has a hole.
    """
    sizes = labels.sizes
    relative = expectation.shares * np.repeat(sizes, sizes)
    squares = np.add.reduceat((relative - 1) ** 2, labels.starts)
    variances = np.where(sizes > 1, squares / (np.maximum(sizes - 1, 1) * sizes), 0.0)
    return float(np.sqrt(labels.weights**2 @ variances))


Designs = tuple[Float[np.ndarray, "point _"], ...]
"""Features of every component's own weights, one array a component."""


def to_logits(
    designs: Designs,
    coefficients: Float[np.ndarray, " weight"],
    log_proportions: Float[np.ndarray, " component"],
) -> Float[np.ndarray, "point component"]:
    """Logits of all points: log pi_k + X_k w_k.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    coefficients : ndarray of shape (n_weights,)
        Weights of all components, side by side.
    log_proportions : ndarray of shape (n_components,)
        log pi.

    Returns
    -------
    ndarray of shape (n_points, n_components)
        The logits.
    """
    logits = np.empty((designs[0].shape[0], len(designs)))
    for k, (design, place) in enumerate(zip(designs, places(designs), strict=True)):
        logits[:, k] = design @ coefficients[place] + log_proportions[k]
    return logits


def places(designs: Designs) -> tuple[slice, ...]:
    """Where each component's weights lie in the vector of all.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.

    Returns
    -------
    tuple of slice
        One a component.
    """
    edges = np.cumsum([0] + [design.shape[1] for design in designs]).tolist()
    return tuple(slice(a, b) for a, b in itertools.pairwise(edges))


def gradient(
    designs: Designs, slope: Float[np.ndarray, "point component"]
) -> Float[np.ndarray, " weight"]:
    """Gradient in the weights of what has a known gradient in the logits.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_weights of the component)
        Features, component by component.
    slope : ndarray of shape (n_points, n_components)
        That in the logits; of the log likelihood it is ``Expectation.slope``.

    Returns
    -------
    ndarray of shape (n_weights,)
        ``X_k' slope_k``, side by side.
    """
    return np.concatenate([design.T @ slope[:, k] for k, design in enumerate(designs)])

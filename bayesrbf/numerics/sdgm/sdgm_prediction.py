r"""Class probabilities of points, at the mode and averaged over the posterior of the weights.

.. math:: \bar p(c | x) = \sum_j q_j \int p(c | x, w) \, N(w; \hat w_j, \Sigma_j) \, dw

with q the probabilities of the modes. The average is a mean over quasi-random draws of
the weights along the principal axes of their covariance, dealt among the modes, in
replicates whose spread is its error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from bayesrbf.numerics.log_sums import at_prevalence, log_sum_exp
from bayesrbf.numerics.quasi_random import uniforms
from bayesrbf.numerics.sdgm.label_likelihood import class_log_probabilities
from bayesrbf.numerics.sdgm.sdgm_features import standard_points
from bayesrbf.records.mixture import Standardisation, in_blocks
from bayesrbf.records.sdgm import Basis, SDGMModes, SDGMParameters

REPLICATES = 8
"""Independent sets of quasi-random draws, whose spread is the numerical error of a prediction."""
DRAWS = 256  # Draws of the weights in a replicate.
DRAWS_OF_COMPLETED = 32
"""Draws of the weights for each completion of a row with missing cells.

Fewer are enough, because completions differ more than draws.
"""
Completion = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Number of a replicate -> points of all rows in the user's units, first point of every row."""


@dataclass(frozen=True)
class WeightDraws:
    """Draws of a mode and its active weights.

    ``number`` is the mode of every draw; ``weights`` has the draws of each mode's weights.
    """

    modes: tuple[SDGMParameters, ...]
    number: Int[np.ndarray, " draw"]
    weights: tuple[Float[np.ndarray, "_ _"], ...]


def weight_draws(modes: SDGMModes, n_draws: int, replicate: int, *, average: bool) -> WeightDraws:
    """Quasi-random draws of a mode and its weights, the longest axis of their covariance first.

    ``n_draws`` are dealt among the modes in proportion to their probabilities, to within one or
    two. ``replicate`` numbers independent sets of draws. Without ``average``, the most probable
    mode is the only draw.
    """
    if not average:
        alone = modes.best.coefficients[None]
        return WeightDraws(modes.parameters[:1], np.zeros(1, dtype=np.intp), (alone,))
    widest = max(mode.n_weights for mode in modes.parameters)
    numbers = uniforms(n_draws, 1 + widest, replicate)
    # Without the last sum, which rounding may leave below 1.
    chosen = np.searchsorted(np.cumsum(modes.probabilities)[:-1], numbers[:, 0], side="right")
    normals = (
        ndtri(numbers[chosen == number, 1 : 1 + mode.n_weights])
        for number, mode in enumerate(modes.parameters)
    )
    pairs = zip(modes.parameters, normals, strict=True)
    weights = tuple(mode.coefficients + normal @ mode.root.T for mode, normal in pairs)
    return WeightDraws(modes.parameters, chosen, weights)


def replicated_draws(modes: SDGMModes) -> Float[np.ndarray, "replicate draw place"]:
    """The draws from the Laplace posterior that a prediction averages over, all replicates.

    Each draw is the number of its mode, that mode's active weights, and zeros.
    """
    widest = max(mode.n_weights for mode in modes.parameters)
    result = np.zeros((REPLICATES, DRAWS, 1 + widest))
    for replicate in range(REPLICATES):
        drawn = weight_draws(modes, DRAWS, replicate, average=True)
        # Every other point of a quasi-random sequence lies in one half of the cube. A permutation
        # makes thinned draws representative.
        order = np.random.default_rng(replicate).permutation(DRAWS)
        result[replicate, order, 0] = drawn.number
        for number, weights in enumerate(drawn.weights):
            mine = order[drawn.number == number]
            result[replicate, mine, 1 : 1 + weights.shape[1]] = weights
    return result


def predict(
    modes: SDGMModes,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
    temperature: float = 1.0,
    log_ratio: Float[np.ndarray, " label"] | float = 0.0,
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """Class probabilities of rows, and their standard errors by the spread of the replicates.

    The average is over the posterior of the weights, else they stay at the most probable mode.
    Under every draw and completion log probabilities are multiplied by ``temperature``. Bayes'
    rule with ``log_ratio``, of the prevalences of use to those of training, is applied to the
    means. The error is 0 where nothing was drawn.
    """
    estimates = []
    for replicate in range(REPLICATES):
        points, starts = completion(replicate)
        phi = basis.at(standard_points(points, units))
        sizes = np.diff(starts, append=len(points))
        whole = np.repeat(sizes == 1, sizes)
        by_point = np.empty((len(points), modes.best.component_class[-1] + 1))
        for chosen, n_draws in ((whole, DRAWS), (~whole, DRAWS_OF_COMPLETED)):
            if chosen.any():
                drawn = weight_draws(modes, n_draws, replicate, average=average)
                by_point[chosen] = _mean_over_modes(phi[chosen], drawn, temperature)
        estimates.append(np.add.reduceat(by_point, starts, axis=0) / sizes[:, None])
        # Neither weights nor cells were drawn: all replicates would be the same.
        if not average and len(points) == len(starts):
            return _moved(estimates[0], log_ratio), np.zeros_like(estimates[0])
    found = np.stack(estimates)
    error = _moved(found, log_ratio).std(axis=0, ddof=1) / np.sqrt(REPLICATES)
    return _moved(found.mean(axis=0), log_ratio), error


def _moved(
    probabilities: Float[np.ndarray, "*rows label"], log_ratio: Float[np.ndarray, " label"] | float
) -> Float[np.ndarray, "*rows label"]:
    """Class probabilities at the prevalences of use."""
    with np.errstate(divide="ignore"):
        return np.exp(at_prevalence(np.log(probabilities), log_ratio))


def _mean_over_modes(
    phi: Float[np.ndarray, "point feature"], drawn: WeightDraws, temperature: float
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of all modes."""
    parts = [
        len(weights) * mean_probabilities(phi, weights, mode, temperature)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        if len(weights)
    ]
    return np.sum(parts, axis=0) / drawn.number.size


def component_probabilities(
    parameters: SDGMParameters, basis: Basis, units: Standardisation, completion: Completion
) -> Float[np.ndarray, "obs component"]:
    """Probabilities ``p(c, m | x)`` of classes and their components together, at the mode."""
    points, starts = completion(0)
    phi = basis.at(standard_points(points, units))
    logits = phi @ parameters.dense(phi.shape[1]) + np.log(parameters.proportions)
    sizes = np.diff(starts, append=len(points))
    return np.add.reduceat(log_sum_exp(logits, axis=1)[1], starts, axis=0) / sizes[:, None]


def mean_probabilities(
    phi: Float[np.ndarray, "point feature"],
    draws: Float[np.ndarray, "draw weight"],
    parameters: SDGMParameters,
    temperature: float,
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of the active weights of one mode.

    Under every draw probabilities are proportional to their power ``temperature``.
    """
    k, classes = parameters.n_components, parameters.component_class
    # Draws come last: sums over few components in the last place would take ten times as long.
    dense = np.zeros((phi.shape[1], k, len(draws)))
    dense[parameters.feature, parameters.component] = draws.T
    flat = dense.reshape(phi.shape[1], -1)
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    result = np.empty((len(phi), classes[-1] + 1))
    for part in in_blocks(len(phi), flat.shape[1], cached=True):
        logits = (phi[part] @ flat).reshape(-1, k, len(draws))
        logits += np.log(parameters.proportions)[:, None]
        by_class = np.add.reduceat(log_sum_exp(logits, axis=1)[1], starts, axis=1)
        if temperature != 1:
            by_class **= temperature
            by_class /= by_class.sum(axis=1, keepdims=True)
        result[part] = by_class.mean(axis=2)
    return result


def drawn_log_probabilities(
    modes: SDGMModes, basis: Basis, units: Standardisation, completion: Completion, *, average: bool
) -> Float[np.ndarray, "obs draw label"]:
    """Class log probabilities of rows under draws of the weights and of their missing cells.

    Every draw takes one draw of the weights and one completion of every row. Without
    ``average``, the weights stay at the most probable mode.
    """
    points, starts = completion(0)
    phi = basis.at(standard_points(points, units))
    sizes = np.diff(starts, append=len(points))
    drawn = weight_draws(modes, DRAWS, 0, average=average)
    points_of_modes = [
        replace(mode, coefficients=coefficients)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        for coefficients in weights
    ]
    if not average:
        points_of_modes *= sizes.max(initial=1)
    # Draws of weights and of cells with the same number are of one quasi-random point, and so
    # dependent. A permutation pairs them at random.
    order = np.random.default_rng(0).permutation(len(points_of_modes))
    result = []
    for s, mode in zip(order, points_of_modes, strict=True):
        logits = phi[starts + s % sizes] @ mode.dense(phi.shape[1]) + np.log(mode.proportions)
        result.append(class_log_probabilities(logits, mode.component_class))
    return np.stack(result, axis=1)

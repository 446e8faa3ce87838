"""Quasi-random draws of a mode and its weights: the posterior that a fit makes anyway."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from bayesrbf.numerics.quasi_random import uniforms
from bayesrbf.sdgm_parameters import SDGMModes, SDGMParameters

REPLICATES = 8
DRAWS = 256
"""Quasi-random draws of the weights in a replicate."""
DRAWS_OF_COMPLETED = 32
"""For each completion of a row with holes: completions differ more."""


@dataclass(frozen=True)
class Drawn:
    """Draws of a mode and its weights.

    Attributes
    ----------
    modes : tuple of SDGMParameters
        The modes.
    number : ndarray of shape (n_draws,)
        Mode of every draw.
    weights : tuple of ndarray of shape (n_draws of the mode, n_weights)
        Active weights in the draws of every mode.
    """

    modes: tuple[SDGMParameters, ...]
    number: Int[np.ndarray, " draw"]
    weights: tuple[Float[np.ndarray, "_ _"], ...]


def weight_draws(modes: SDGMModes, n_draws: int, replicate: int, *, average: bool) -> Drawn:
    """Quasi-random draws of a mode and its weights, those along its longest axis first.

    Parameters
    ----------
    modes : SDGMModes
        Fitted points and the spread around them.
    n_draws : int
        Draws of all modes together.
    replicate : int
        Which of the independent sets of draws.
    average : bool
        Draw; else the most probable mode is the only draw.

    Returns
    -------
    Drawn
        Every mode has its share of the draws, to one or two.
    """
    if not average:
        alone = modes.best.coefficients[None]
        return Drawn(modes.parameters[:1], np.zeros(1, dtype=np.intp), (alone,))
    widest = max(mode.n_weights for mode in modes.parameters)
    numbers = uniforms(n_draws, 1 + widest, replicate)
    chosen = np.searchsorted(np.cumsum(modes.probabilities)[:-1], numbers[:, 0], side="right")
    normals = (
        ndtri(numbers[chosen == number, 1 : 1 + mode.n_weights])
        for number, mode in enumerate(modes.parameters)
    )
    pairs = zip(modes.parameters, normals, strict=True)
    weights = tuple(mode.coefficients + normal @ mode.root.T for mode, normal in pairs)
    return Drawn(modes.parameters, chosen, weights)


def replicated_draws(modes: SDGMModes) -> Float[np.ndarray, "replicate draw place"]:
    """Draws of the Laplace posterior of the weights, all replicates.

    Parameters
    ----------
    modes : SDGMModes
        Fitted points and the spread around them.

    Returns
    -------
    ndarray of shape (REPLICATES, DRAWS, 1 + most weights of a mode)
        What a prediction averages over: the number of the mode, its active
        weights, and zeros.
    """
    widest = max(mode.n_weights for mode in modes.parameters)
    result = np.zeros((REPLICATES, DRAWS, 1 + widest))
    for replicate in range(REPLICATES):
        drawn = weight_draws(modes, DRAWS, replicate, average=True)
        # Every other quasi-random number lies in one half: thinned draws must not.
        order = np.random.default_rng(replicate).permutation(DRAWS)
        result[replicate, order, 0] = drawn.number
        for number, weights in enumerate(drawn.weights):
            mine = order[drawn.number == number]
            result[replicate, mine, 1 : 1 + weights.shape[1]] = weights
    return result

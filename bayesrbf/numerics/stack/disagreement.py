r"""Draws of a pool in which disagreement counts: the truth is one kind of model more.

A family of models, fitted to rows that another family made, agrees with itself and is wrong. How
far, other families show. Let the log odds of the truth and of J kinds of members be independent
draws from one normal distribution, of whose mean the pool is the estimate and of whose variance
nothing is known. Then the truth given the kinds is Student's t,

.. math:: l_0 - \bar l \sim \sqrt{\frac{J + 1}{J \chi^2_{J - 1}} \sum_j (l_j - \bar l)^2} \; N(0, 1)
    = \sum_j f_j (l_j - \bar l), \quad f_j = \sqrt{\frac{J + 1}{J \chi^2_{J - 1}}} \; z_j,

with one chi-squared number and J normal ones a draw. They are the same for all rows and classes:
a draw is a function of the row. Members of one kind err together, so the mean of their log odds
is what their kind says, and counts once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.log_sums import log_softmax

LEAST_SAID: Final = np.log(1e-4)
"""Log probabilities are held above this: beyond it, members disagree about nothing that matters."""


def disagreement_factors(
    n_draws: int, kinds: Int[np.ndarray, " member"], rng: np.random.Generator
) -> Float[np.ndarray, "draw member"]:
    """Factors f of the members' deviations from their pool; one kind disagrees with none."""
    sizes = np.bincount(kinds)
    if sizes.size == 1:
        return np.zeros((n_draws, kinds.size))
    chi_squared = rng.chisquare(sizes.size - 1, size=(n_draws, 1))
    scale = np.sqrt((sizes.size + 1) / (sizes.size * chi_squared))
    return (scale * rng.standard_normal((n_draws, sizes.size)) / sizes)[:, kinds]


def disagreed(
    members: Float[np.ndarray, "row member label"],
    pool: Float[np.ndarray, "row label"],
    factors: Float[np.ndarray, " member"],
) -> Float[np.ndarray, "row label"]:
    """Log probabilities of the pool, moved by factors of its members' deviations from it."""
    centre = np.maximum(pool, LEAST_SAID)
    deviations = np.maximum(members, LEAST_SAID) - centre[:, None]
    return log_softmax(centre + np.einsum("j,njc->nc", factors, deviations), axis=-1)

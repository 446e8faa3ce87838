"""Draws of a stack: its own weights and temperatures, beside its members' parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesrbf.estimators.stack.fitting import FittedMembers, bounded_log_probabilities
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.pooling_posterior import StackLogPosterior
from bayesrbf.parameters import Observations

MOST_COORDINATES = 2000
"""Members with more stay at their point: the Hessian alone would cost minutes."""

MemberDraws = tuple[Draws | None, ...]
Predictor = Callable[[np.ndarray], np.ndarray]


def draw_members(
    members: FittedMembers, rows: Observations, shape: tuple[int, int], seed: int
) -> MemberDraws:
    """Draw the parameters of every member that has a posterior of moderate size.

    Parameters
    ----------
    members : FittedMembers
        Members fitted to the rows.
    rows : Observations
        Training rows in the user's units.
    shape : tuple of int
        Number of chains and of draws of each.
    seed : int
        Seed of the draws.

    Returns
    -------
    tuple of Draws or None
        From the Laplace approximation of every own member; None for those that stay
        at their fitted point.
    """
    from bayesrbf.inference.laplace import laplace

    chains, draws = shape
    result: list[Draws | None] = []
    for number, member in enumerate(members.own):
        log_posterior = member.log_posterior(rows)
        if log_posterior.dimension > MOST_COORDINATES:
            result.append(None)
            continue
        rng = np.random.default_rng([seed, number])
        start = member.point(log_posterior)
        result.append(laplace(log_posterior, start, draws=draws, chains=chains, random_state=rng))
    return tuple(result)


def joint_predictor(
    log_posterior: StackLogPosterior, members: FittedMembers, rows: Observations, drawn: MemberDraws
) -> Callable[[Observations], Predictor]:
    """Prepare rows for the class log probabilities of the whole stack at many points.

    Parameters
    ----------
    log_posterior : StackLogPosterior
        Gives the stack's own coordinates their meaning.
    members : FittedMembers
        Fitted members.
    rows : Observations
        Training rows in the user's units.
    drawn : tuple of Draws or None
        Draws of own members.

    Returns
    -------
    callable
        Maps new rows to a function of coordinates: the stack's own, followed by those
        of every drawn member in order, or by none, and then members are at their
        fitted points.
    """
    varying = [
        (j, members.own[j], members.own[j].log_posterior(rows))
        for j, draws in enumerate(drawn)
        if draws is not None
    ]

    def prepare(new: Observations) -> Predictor:
        fixed = members.log_probabilities(new)
        predictors = [
            (j, of_member.dimension, member.predictor(of_member, new))
            for j, member, of_member in varying
        ]

        def predict(theta: np.ndarray) -> np.ndarray:
            own, rest = theta[: log_posterior.dimension], theta[log_posterior.dimension :]
            values = fixed.copy() if rest.size else fixed
            for j, dimension, predictor in predictors if rest.size else []:
                values[:, j] = bounded_log_probabilities(predictor(rest[:dimension]))
                rest = rest[dimension:]
            return log_posterior.pooled(values, own)

        return predict

    return prepare

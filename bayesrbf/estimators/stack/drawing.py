"""Draws of a stack: its own weights and temperatures, beside its members' parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayesrbf.estimators.stack.fitting import FittedMembers, bounded_log_probabilities
from bayesrbf.estimators.warning import warn
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.hidden_share import hidden_share
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.records.mixture import Observations
from bayesrbf.records.results import ClassPrediction

MOST_COORDINATES = 2000
"""Members with more stay at their point: the Hessian alone would cost minutes."""

_ENTRIES = 2**20
"""Numbers that members' log probabilities of one block of draws may take: 8 MiB."""

MemberDraws = tuple[Draws | None, ...]


def draw_members(
    members: FittedMembers, rows: Observations, shape: tuple[int, int], seed: int
) -> MemberDraws:
    """Draw the parameters of every member by its Laplace approximation; None for large ones."""
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


def left_at_point(members: tuple[str, ...], drawn: MemberDraws, owner: str) -> tuple[str, ...]:
    """Names of the members that stay at their fitted point, which a warning tells."""
    of_own = zip(members[: len(drawn)], drawn, strict=True)
    fixed = tuple(name for name, draws in of_own if draws is None) + members[len(drawn) :]
    if fixed:
        warn(
            f"{owner}: left at the fitted point: {', '.join(fixed)}; so the draws understate what "
            "is not known."
        )
    return fixed


def joint_predictor(
    log_posterior: Any, members: FittedMembers, rows: Observations, drawn: MemberDraws
) -> Callable[[Observations, np.ndarray], JointPredictor]:
    """Prepare rows for predictions of the whole stack at many points."""
    varying = [
        (j, members.own[j], members.own[j].log_posterior(rows))
        for j, draws in enumerate(drawn)
        if draws is not None
    ]

    def prepare(new: Observations, log_density: np.ndarray) -> JointPredictor:
        predictors = [
            (j, of_member.dimension, member.predictor(of_member, new))
            for j, member, of_member in varying
        ]
        fixed = members.log_probabilities(new)
        return JointPredictor(log_posterior, fixed, hidden_share(new), predictors, log_density)

    return prepare


class JointPredictor(Predictor):
    """What the whole stack says of some rows at any draw."""

    def __init__(
        self,
        log_posterior: StackLogPosterior,
        fixed: np.ndarray,
        hidden: np.ndarray,
        predictors: list[tuple[int, int, Predictor]],
        log_density: np.ndarray,
    ) -> None:
        self._log_posterior = log_posterior
        self._fixed, self._hidden = fixed, hidden
        self._predictors = predictors
        self._log_density = log_density

    def at_all(self, thetas: np.ndarray) -> ClassPrediction:
        """Predict at many draws."""
        result = np.empty((len(thetas), self._fixed.shape[0], self._fixed.shape[2]))
        size = max(1, _ENTRIES // max(1, self._fixed.size))
        for start in range(0, len(thetas), size):
            some = thetas[start : start + size]
            own, rest = np.split(some, [self._log_posterior.dimension], axis=1)
            values = np.repeat(self._fixed[None], len(some), axis=0)
            for j, dimension, predictor in self._predictors if rest.size else []:
                said = predictor.at_all(rest[:, :dimension])
                values[:, :, j] = bounded_log_probabilities(said.log_probabilities)
                rest = rest[:, dimension:]
            result[start : start + size] = [
                self._log_posterior.pooled(of_members, self._hidden, theta)
                for of_members, theta in zip(values, own, strict=True)
            ]
        density = np.broadcast_to(self._log_density, result.shape[:2])
        return ClassPrediction(result, density)

"""Draws of the parameters of a stack's members, beside those of its pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.stack.fitted_stack import FittedStack
from bayesrbf.fitted.stack.members import FittedMembers
from bayesrbf.fitted.stack.stack_posterior import MemberDraws, NewRows, Numbers, RowsUnderDraws
from bayesrbf.inference.draws import Draws, one_after_another
from bayesrbf.numerics.log_posterior import LogPosterior, Predictor
from bayesrbf.numerics.stack.pooling import bounded_log_probabilities
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import Requirements, stored

MOST_COORDINATES: Final = 2000
"""Members with more stay at their point: the Hessian alone would cost minutes."""


@stored
class DrawnMembers(MemberDraws):
    """Draws of the parameters of members; all others stay at their fitted point."""

    draws: tuple[Draws | None, ...] = ()
    """Of own members, in their order; None where a member stays at its point."""

    def __laws__(self) -> Requirements:
        shapes = {one.theta.shape[:2] for one in self.draws if one is not None}
        yield len(shapes) <= 1, "as many draws of every member"

    @property
    def n_draws(self) -> int | None:
        """Draws of a chain; None where all members stay at their point."""
        return next((one.theta.shape[1] for one in self.draws if one is not None), None)

    def pointwise(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the members that stay at their fitted point."""
        drawn = {names[place] for place, one in enumerate(self.draws) if one is not None}
        return tuple(name for name in names if name not in drawn)

    def strays(self, model: FittedStack) -> None:
        """None: draws of a posterior know of no strays."""
        return None

    def rows_under_draws(
        self, model: FittedStack, training: Observations
    ) -> Callable[[NewRows], RowsUnderDraws]:
        """Prepare the log posteriors of the members that vary."""
        own = model.members.own
        varying = {
            place: own[place].log_posterior(training)
            for place, one in enumerate(self.draws)
            if one is not None
        }
        return partial(self._of_rows, model, varying)

    def _of_rows(
        self, model: FittedStack, varying: Mapping[int, LogPosterior], new: NewRows
    ) -> RowsOfDrawnMembers:
        """Prepare new rows for predictions by members under their draws."""
        predictors = {
            place: (
                model.members.own[place].predictor(log_posterior, new.rows),
                one_after_another(draws.theta),
            )
            for place, log_posterior in varying.items()
            if (draws := self.draws[place]) is not None
        }
        return RowsOfDrawnMembers(new.values, predictors)


@dataclass(frozen=True)
class RowsOfDrawnMembers(RowsUnderDraws):
    """Predictions of members for some rows, under draws of their own parameters."""

    fixed: Float[np.ndarray, "obs member label"]
    """What they say at their fitted point."""
    varying: Mapping[int, tuple[Predictor, Float[np.ndarray, "draw _"]]]
    """Predictor and draws of every member that does not stay there, by its place."""

    def values(self, numbers: Numbers) -> Float[np.ndarray, "draw obs member label"]:
        """Class log probabilities of every member before temperatures, in nats."""
        values = np.repeat(self.fixed[None], numbers.size, axis=0)
        for place, (predictor, thetas) in self.varying.items():
            log_joint = predictor.at_all(thetas[numbers]).log_probabilities
            values[:, :, place] = bounded_log_probabilities(log_joint)
        return values


def draw_members(
    members: FittedMembers, rows: Observations, chains: int, draws: int, seed: int
) -> DrawnMembers:
    """Draw the parameters of members by their Laplace approximations; none of the large ones.

    An interrupt leaves one of them fewer draws, and the others follow it.
    """
    from bayesrbf.inference.laplace import laplace

    result: list[Draws | None] = []
    for number, member in enumerate(members.own):
        log_posterior = member.log_posterior(rows)
        if log_posterior.dimension > MOST_COORDINATES:
            result.append(None)
            continue
        rng = np.random.default_rng([seed, number])
        start = member.point(log_posterior)
        result.append(laplace(log_posterior, start, draws=draws, chains=chains, random_state=rng))
    made = min((drawn.theta.shape[1] for drawn in result if drawn), default=draws)
    return DrawnMembers(tuple(drawn and drawn.first(made) for drawn in result))

"""Class probabilities of rows under the draws of a stack, of which each is known by its number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fitted.stack.fitted_stack import FittedStack
from bayesrbf.inference.draws import Draws, one_after_another
from bayesrbf.numerics.hidden_share import hidden_share, powers
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.posterior.shares_in_doubt import at_drawn_shares, share_draws
from bayesrbf.posterior.stray_labels import StrayLabels
from bayesrbf.records.mixture import Observations, in_blocks
from bayesrbf.records.results import ClassPrediction

Numbers = Int[np.ndarray, " draw"]
"""Numbers of draws, those of all chains one after another."""


@dataclass(frozen=True)
class NewRows:
    """Rows that a stack predicts, with the predictions of its members at the fit."""

    rows: Observations
    values: Float[np.ndarray, "obs member label"]
    """Class log probabilities before temperatures, in nats."""
    hidden: Float[np.ndarray, " obs"]
    """Share of hidden cells."""


class RowsUnderDraws(ABC):
    """Predictions of a stack's members for some rows, under any of its draws."""

    stretch: Float[np.ndarray, "obs label"] | None = None
    """How much further out than the fitted pool the median of the draws lies, in log odds."""

    @abstractmethod
    def values(self, numbers: Numbers) -> Float[np.ndarray, "draw obs member label"]:
        """Class log probabilities of every member before temperatures, in nats."""

    def moved(
        self,
        log_members: Float[np.ndarray, "draw obs member label"],
        log_pool: Float[np.ndarray, "draw obs label"],
        numbers: Numbers,
    ) -> Float[np.ndarray, "draw obs label"]:
        """The pool of every draw as the draw moves it; most kinds of draws leave it."""
        return log_pool


@dataclass(frozen=True)
class StackPredictor(Predictor):
    """Class probabilities of some rows under draws of the pool, its members and class shares."""

    log_posterior: StackLogPosterior
    thetas: Float[np.ndarray, "draw coordinate"]
    """Weights and temperatures of every draw."""
    hidden: Float[np.ndarray, " obs"]
    log_density: Float[np.ndarray, " obs"]
    members: RowsUnderDraws
    delivered: Float[np.ndarray, "obs label"] = field()
    pull: Float[np.ndarray, " obs"]
    """Exponent of the class shares at every row."""
    moves: Float[np.ndarray, "draw label"] | None
    """Log ratios of the class shares of every draw to those of training; None: there are none."""

    @property
    def stretch(self) -> Float[np.ndarray, "obs label"] | None:  # type: ignore[override]
        """Factor from the delivered log odds to the median of the draws."""
        return self.members.stretch

    def at_all(self, thetas: Int[np.ndarray, "draw 1"]) -> ClassPrediction:
        """Predict at draws by their numbers, some of them at a time."""
        numbers = thetas[:, 0]
        log_p = np.empty((numbers.size, *self.delivered.shape))
        numbers_a_draw = self.delivered.size * self.log_posterior.n_members
        for part in in_blocks(numbers.size, numbers_a_draw):
            some = numbers[part]
            pool = self.log_posterior.of_rows(self.hidden, self.thetas[some])
            members = pool.members(self.members.values(some))
            log_pool = pool.pooled(members)
            log_p[part] = self.members.moved(np.log(members), log_pool, some)
        if self.moves is not None:
            log_p = at_drawn_shares(log_p, self.pull, self.moves[numbers])
        return ClassPrediction(log_p, np.broadcast_to(self.log_density, log_p.shape[:2]))


class MemberDraws(ABC):
    """How the members of a stack vary between its draws: the state of the draws beside the pool."""

    @abstractmethod
    def pointwise(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the members that stay at their fitted point."""

    @abstractmethod
    def rows_under_draws(
        self, model: FittedStack, training: Observations
    ) -> Callable[[NewRows], RowsUnderDraws]:
        """Prepare for the training rows once what predicts new rows."""

    @abstractmethod
    def strays(self, model: FittedStack) -> StrayLabels | None:
        """Stray labels that the draws know of; None: of none."""

    def class_posterior(
        self,
        model: FittedStack,
        training: Observations,
        draws: Draws | None,
        log_ratio: Float[np.ndarray, " label"],
        seed: int,
    ) -> ClassPosterior:
        """The posterior of class probabilities: draws of pool, members and class shares.

        ``seed`` is that of the class shares. Without draws, the fitted point is the only one.
        """
        theta = model.fitted_point[None, None] if draws is None else draws.theta
        numbers = np.arange(theta.shape[0] * theta.shape[1]).reshape(*theta.shape[:2], 1)
        moves, log_temperatures, pulls = None, np.zeros(0), np.zeros(0)
        # A point estimate has no doubt about the class shares.
        if (calibration := model.calibration) is not None and numbers.size > 1:
            labelled = training.n_labelled
            counts = labelled * np.exp(calibration.log_shares)
            moves = share_draws(counts, numbers.size, np.random.default_rng(seed))
            log_temperatures, pulls = np.log(calibration.temperatures), calibration.pulls
        prepare = self.rows_under_draws(model, training)

        def predictor(rows: Observations) -> StackPredictor:
            new = NewRows(rows, model.members.log_probabilities(rows), hidden_share(rows))
            pull = np.zeros(rows.n_obs)
            if moves is not None:
                _, pull = powers(new.hidden, log_temperatures, pulls)
            return StackPredictor(
                model.pool_posterior,
                one_after_another(theta),
                new.hidden,
                model.companion.log_density(rows),
                prepare(new),
                model.pooled(new.values, new.hidden),
                pull,
                moves,
            )

        return ClassPosterior(predictor, numbers, log_ratio, strays=self.strays(model))

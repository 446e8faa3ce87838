r"""The chain of a class probability: a model, then one stage after the other.

A model gives class probabilities at its fitted point, and under every draw. The stages follow in
the order of :attr:`bayesrbf.fit.table.FittedTable.chain`. The point passes every stage at its
centre. A stage with an uncertainty has as many draws as the model, one for each draw of the model.
The reported probability is the point, or the mean over the draws of the model (``is_mean``), to
which prevalences and updates are then applied. Intervals are of all draws, shifted to lie around
the reported probability (:func:`bayesrbf.fit.probabilities.centred_draws`).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.special import logsumexp, softmax

from bayesrbf.base import names
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.fit.decisions import expected_costs, is_best
from bayesrbf.fit.label_noise import LabelNoise
from bayesrbf.fit.probabilities import (
    PredictiveSummary,
    centred_draws,
    label_information,
    outer_ends,
    summarised,
)
from bayesrbf.inference.draws import MEMORY

Draws = Int[np.ndarray, " draw"]
"""Draws of a posterior by their numbers, those of the first chain first."""


@dataclass(frozen=True)
class State:
    """Class probabilities of rows between two stages, under some draws; one at the point."""

    log_p: Float[np.ndarray, "draw obs label"]
    """Log probabilities; unnormalised before the first stage, up to a constant per row."""
    log_density: Float[np.ndarray, "draw obs"] | None = None
    """Log density of the observed cells; None at the point, where it is not used."""
    log_weights: Float[np.ndarray, "draw obs"] | None = None
    """Log weights of the draws at a row; None: equal weights."""
    median_correction: Float[np.ndarray, "obs label"] | None = None
    """Ratio of log odds: median of the draws over reported probability; None: 1."""
    labels_near: Float[np.ndarray, "obs label"] | None = None
    """Equivalent number of labels of rows exactly like the row; None: unknown."""


@runtime_checkable
class Seen(Protocol):
    """Rows prepared for predictions by a model, at the point and under all draws."""

    @property
    def rows(self) -> Observations:
        """Rows of the table, encoded."""

    @property
    def missing_fraction(self) -> Float[np.ndarray, " obs"]:
        """Missing fraction of every row."""

    def state(self, draws: Draws | None) -> State:
        """Class log probabilities under some draws; None: at the fitted point."""


Step = Callable[[State, State, Draws | None], State]
"""Next state from the state under some draws and the state at the point; draws are None for the
point itself."""


class Stage(ABC):
    """One stage in the chain of a class probability."""

    name: str = ""
    """Name of the uncertainty that the stage adds; empty where it adds none."""

    @abstractmethod
    def on(self, seen: Seen) -> Step:
        """Step from the state of the rows before the stage to the state behind it."""

    @property
    def components(self) -> dict[str, Stage]:
        """Stages with one component of its uncertainty each, by name."""
        return {self.name: self} if self.name else {}

    def at_prior_power(self, power: float) -> Stage:
        """The stage with its prior raised to a power, where it has one."""
        return self


@dataclass(frozen=True)
class AtCentre(Stage):
    """A stage at its centre, without its uncertainty."""

    stage: Stage

    def on(self, seen: Seen) -> Step:
        """Step of the stage that treats every draw as the point."""
        step = self.stage.on(seen)
        return lambda state, point, draws: step(state, point, None)


# A model with probabilities at its point and under draws of its parameters.


@dataclass(frozen=True)
class Source:
    """A fitted model with its draws, as the source of a chain."""

    shape: tuple[int, int]
    """Chains and draws of each."""
    theta: Callable[[], Real[np.ndarray, "chain draw coordinate"]]
    """Gives the draws, when they are asked for."""
    predictor: Callable[[Observations], Predictor]
    """Gives the class log probabilities of rows at any draw."""
    point: Callable[[Observations], Float[np.ndarray, "obs label"]]
    """Class log probabilities at the fitted point, up to a constant a row."""
    missing_fraction: Callable[[Observations], np.ndarray]

    def on(self, rows: Observations) -> SeenByModel:
        """Look at some rows."""
        return SeenByModel(self, rows)


@dataclass(frozen=True)
class SeenByModel:
    """Rows prepared for predictions by a model and its draws."""

    source: Source
    rows: Observations

    @cached_property
    def missing_fraction(self) -> Float[np.ndarray, " obs"]:
        """Missing fraction of every row."""
        share: np.ndarray = self.source.missing_fraction(self.rows)
        return share

    @cached_property
    def predictor(self) -> Predictor:
        """The rows, prepared for any draw."""
        return self.source.predictor(self.rows)

    def state(self, draws: Draws | None) -> State:
        """Class log probabilities and log density under some draws; None: at the fitted point."""
        if draws is None:
            return State(self.source.point(self.rows)[None])
        theta = self.source.theta()
        flat = theta.reshape(theta.shape[0] * theta.shape[1], theta.shape[2])
        prediction = self.predictor.at_all(flat[draws])
        return State(prediction.log_probabilities, prediction.log_density)


@runtime_checkable
class AnySource(Protocol):
    """Source of the chain: a fitted model, or predictions of held-out rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws of each."""

    def on(self, rows: Observations) -> Seen:
        """Look at some rows."""


# The chain.


BLOCK = 2**13
"""Rows in a block: members of a stack hold hundreds of numbers of every row."""
_COPIES = 5
"""Arrays over draws that a summary holds at once: logarithms, probabilities, workspace."""


def blocks_of(n_obs: int, size: int) -> list[Int[np.ndarray, " row"]]:
    """Positions of rows in blocks, of which there is at least one."""
    return [np.arange(a, min(a + size, n_obs)) for a in range(0, max(n_obs, 1), size)]


@dataclass(frozen=True)
class Chain:
    """A model and the stages behind it: class probabilities of rows, at the point and over draws.

    Answers are made block of rows by block, so that arrays over draws fit into the memory.
    """

    source: AnySource
    stages: tuple[Stage, ...]
    """Stages of the population of training."""
    use: tuple[Stage, ...]
    """Stages of the population of use: prevalences, updates."""
    numbers: Int[np.ndarray, "chain draw"]
    """Draws by their numbers."""
    n_classes: int
    is_mean: bool = False
    """Whether the mean over the draws of the model is reported, and not its point."""
    is_centred: bool = True
    """Whether draws are shifted to lie around the reported probability."""
    label_noise: Callable[[], LabelNoise | None] | None = None
    """Gives the label noise of centred draws; None: no label noise."""
    memory: int = MEMORY
    """Bytes that arrays over draws may take."""
    has_draws: bool = True
    """Whether draws of the model's parameters count; else all draws start at the point."""

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return self.numbers.size

    # ---- components of the uncertainty

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the components of the uncertainty that stages and label noise add."""
        named = [name for stage in (*self.stages, *self.use) for name in stage.components]
        return (*named, *([] if self.label_noise is None else [names.LABEL_NOISE]))

    def only(self, name: str) -> Chain:
        """The chain with one component of the uncertainty alone, by its name.

        The model stays at its fitted point, and stages without the component at their centres.
        """

        def left(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
            return tuple(
                stage.components.get(name, AtCentre(stage)) if stage.components else stage
                for stage in stages
            )

        return replace(
            self,
            stages=left(self.stages),
            use=left(self.use),
            has_draws=False,
            label_noise=self.label_noise if name == names.LABEL_NOISE else None,
        )

    def thinned(self, most: int | None) -> Chain:
        """At most ``most`` draws, evenly spaced, as one chain; all draws for None."""
        if most is None:
            return self
        positions = np.linspace(0, self.n_draws - 1, min(most, self.n_draws)).round().astype(int)
        return replace(self, numbers=self.numbers.reshape(1, -1)[:, positions])

    # ---- predictions

    def on(self, rows: Observations) -> Walk:
        """Prepare some rows."""
        return Walk(self, self.source.on(rows))

    def reported(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Reported class log probabilities, block by block of rows."""
        blocks = [self.on(rows.take(block)).reported for block in blocks_of(rows.n_obs, BLOCK)]
        return np.concatenate(blocks)

    def point(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point."""
        return self.on(rows).point.log_p[0]

    # ---- functions of all draws

    def draws(
        self, observations: Observations
    ) -> tuple[Float[np.ndarray, "chain draw obs label"], int]:
        """Class probabilities of every row under every k-th draw, and k.

        k is 1 where all draws fit into the memory; there is a warning otherwise. ValueError if not
        even one draw of each chain fits.
        """
        thinning = self._thinning(observations.n_obs)
        numbers = self.numbers[:, ::thinning]
        result = np.empty((*numbers.shape, observations.n_obs, self.n_classes))
        for rows in self._row_blocks(observations.n_obs):
            walk = self.on(observations.take(rows))
            for chain, chain_numbers in enumerate(numbers):
                result[chain][:, rows] = np.exp(walk.at(chain_numbers).log_p)
        return result, thinning

    def summary(
        self,
        observations: Observations,
        prob: float = 0.9,
        reported: Float[np.ndarray, "obs label"] | None = None,
    ) -> PredictiveSummary:
        """Summary of the class probabilities over draws.

        ``prob`` is the probability inside the equal-tailed intervals; ValueError if it is not
        strictly between 0 and 1. ``reported`` are probabilities in place of the chain's own.
        """
        if not 0 < prob < 1:
            raise ValueError(
                f"prob must lie strictly between 0 and 1, such as 0.9; received {prob!r}."
            )
        blocks = [
            self._block(
                self.on(observations.take(rows)), prob, None if reported is None else reported[rows]
            )
            for rows in self._row_blocks(observations.n_obs)
        ]
        fields = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        return PredictiveSummary(prob=prob, **fields)

    def _block(
        self, walk: Walk, prob: float, reported: Float[np.ndarray, "obs label"] | None
    ) -> dict[str, np.ndarray]:
        """Fields of the summary of a block of rows whose draws fit into the memory."""
        if reported is None and (self.is_centred or not self.is_mean):
            reported = np.exp(walk.reported)
        p, weights, state = self._of_draws(walk, reported)
        summary = summarised(p, weights, prob, reported)
        if self.label_noise is not None:
            summary |= outer_ends(summary["lower"], summary["upper"])
        log_density = np.full(p.shape[1], np.nan)
        if state.log_density is not None:
            log_density = logsumexp(state.log_density, axis=0) - np.log(len(state.log_density))
        return {**summary, "log_density": log_density}

    def _of_draws(
        self, walk: Walk, reported: Float[np.ndarray, "obs label"] | None
    ) -> tuple[Float[np.ndarray, "draw obs label"], Float[np.ndarray, "draw obs"] | None, State]:
        """Class probabilities of every draw, their weights, and the state behind all stages.

        A centred chain centres the probabilities on ``reported``, unless None. Weights sum to one
        over the draws of a row; None: equal weights. Probabilities of the state are not centred.
        """
        state = walk.at(self.numbers.ravel())
        p, weights = np.exp(state.log_p), state.log_weights
        weights = None if weights is None else softmax(weights, axis=0)
        if self.is_centred and reported is not None:
            label_noise = None if self.label_noise is None else self.label_noise()
            rates = None if label_noise is None else label_noise.rates(len(p))
            p = centred_draws(p, weights, reported, state.median_correction, rates)
        return p, weights, state

    def labels_near(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Equivalent number of labels: what the labels held out tell of each class probability.

        The result has shape (obs, label). So many labels of rows exactly like a row would tell
        as much of the error of the class probability as all labels held out do. NaN stands for a
        row without an observed cell, and for a chain without a stage that models this error.
        """
        result = np.full((rows.n_obs, self.n_classes), np.nan)
        for block in self._row_blocks(rows.n_obs):
            near = self.on(rows.take(block)).at(self.numbers.ravel()[:1]).labels_near
            if near is not None:
                result[block] = near
        return result

    def information(self, observations: Observations) -> Float[np.ndarray, " obs"]:
        """Mutual information of the label of every row and the parameters, in nats.

        It is that of draws that are not centred on the reported probabilities.
        """
        information = np.empty(observations.n_obs)
        for rows in self._row_blocks(observations.n_obs):
            p, weights, _ = self._of_draws(self.on(observations.take(rows)), None)
            shares = np.full(p.shape[:2], 1 / len(p)) if weights is None else weights
            information[rows] = label_information(p, shares)
        return information

    def probability_best(
        self,
        observations: Observations,
        decisions: Int[np.ndarray, " obs"],
        costs: Float[np.ndarray, "label decision"],
        reported: Float[np.ndarray, "obs label"],
    ) -> Float[np.ndarray, " obs"]:
        """Weighted share of the draws under which the decision of each row costs least.

        Draws are centred on ``reported`` as in :meth:`summary`, and sum to one over the classes
        again.
        """
        shares = np.empty(observations.n_obs)
        for rows in self._row_blocks(observations.n_obs):
            p, weights, _ = self._of_draws(self.on(observations.take(rows)), reported[rows])
            p = p / p.sum(axis=2, keepdims=True)
            best = is_best(expected_costs(p, costs), decisions[rows])
            shares[rows] = np.average(best, axis=0, weights=weights)
        return shares

    # ---- memory

    def _thinning(self, n_obs: int) -> int:
        """Smallest step k such that every k-th draw fits into the memory; a warning if k exceeds 1.

        ValueError if not even one draw of each chain fits.
        """
        chains, n_draws = self.numbers.shape
        row_bytes = 8 * chains * self.n_classes * n_obs
        affordable = int(self.memory // row_bytes) if row_bytes else n_draws
        if affordable == 0:
            raise ValueError(
                f"Probabilities of {n_obs} rows under one draw of each chain need "
                f"{row_bytes / 2**30:.3g} GiB, more than the {self.memory / 2**30:.3g} GiB "
                "allowed: ask for fewer rows at a time, or use uncertainty()."
            )
        thinning = -(-n_draws // affordable)
        if thinning > 1:
            warnings.warn(
                f"Probabilities of {n_obs} rows under {n_draws} draws of {chains} chains would "
                f"take more than {self.memory / 2**30:.3g} GiB: one draw in {thinning} is kept. "
                "uncertainty() uses every draw.",
                stacklevel=4,
            )
        return thinning

    def _row_blocks(self, n_obs: int) -> list[Int[np.ndarray, " row"]]:
        """Rows whose arrays over all draws fit into the memory together."""
        size = max(1, self.memory // (8 * self.n_draws * self.n_classes * _COPIES))
        return blocks_of(n_obs, min(size, BLOCK))


class Walk:
    """Prepared rows at every stage of a chain."""

    def __init__(self, chain: Chain, seen: Seen) -> None:
        self._chain, self._seen = chain, seen
        self._stages = [stage.on(seen) for stage in chain.stages]
        self._use = [stage.on(seen) for stage in chain.use]

    @cached_property
    def _points(self) -> list[State]:
        """The state at the point before every stage, and behind the last."""
        states = [self._seen.state(None)]
        for step in (*self._stages, *self._use):
            states.append(step(states[-1], states[-1], None))
        return states

    @property
    def point(self) -> State:
        """The state at the fitted point behind all stages."""
        return self._points[-1]

    @cached_property
    def reported(self) -> Float[np.ndarray, "obs label"]:
        """Reported class log probabilities: at the fitted point, or of the mean over all draws."""
        chain = self._chain
        if not chain.is_mean:
            return self.point.log_p[0]
        total = np.zeros((self._seen.rows.n_obs, chain.n_classes))
        for block in in_blocks(chain.n_draws, total.size):
            state = self._seen.state(chain.numbers.ravel()[block])
            for step in self._stages:
                state = step(state, state, None)
            total += np.exp(state.log_p).sum(axis=0)
        with np.errstate(divide="ignore"):  # a class that no draw finds possible stays so
            state = State(np.log(total / chain.n_draws)[None])
        for step in self._use:
            state = step(state, state, None)
        return state.log_p[0]

    def at(self, draws: Draws) -> State:
        """State of the rows behind all stages, under the draws of these numbers."""
        if self._chain.has_draws:
            state = self._seen.state(draws)
        else:
            point = self._points[0]
            shape = (draws.size, *point.log_p.shape[1:])
            state = replace(point, log_p=np.broadcast_to(point.log_p, shape))
        for step, point in zip((*self._stages, *self._use), self._points, strict=False):
            state = step(state, point, draws)
        return state

"""Draws of a stack: the bootstrap of members, and the posterior of its pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base.arrays import log_odds, single_digits
from bayesrbf.base.hidden_share import hats, hidden_share, powers
from bayesrbf.base.log_posterior import LogPosterior, Predictor
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.records import MOST_LOG, Requirements, stored, within
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.kernel_network.fitted import Exemplars
from bayesrbf.families.stack.disagreement import (
    UsualRows,
    bounded_spread,
    disagreed,
    disagreement_draws,
    root_share,
    squared_scale,
    stretch_of_median,
    typicality,
    usual_rows,
)
from bayesrbf.families.stack.fitted import FittedStack, StackSettings, packed
from bayesrbf.families.stack.members import FittedMembers, Starts, fit_members
from bayesrbf.families.stack.pool import Pool, fit_pools
from bayesrbf.families.stack.posterior import StackLogPosterior, bounded_log_probabilities
from bayesrbf.fit.probabilities import (
    LEAST_DOUBT,
    ClassPosterior,
    StrayLabels,
    at_drawn_shares,
    share_draws,
    stray_labels,
)
from bayesrbf.inference.draws import Draws, check_numbers, one_after_another
from bayesrbf.inference.laplace import bootstrap_weights
from bayesrbf.mixture.cells import CellLaw
from bayesrbf.mixture.fitted import FittedMixture

# Class probabilities of rows under the draws of a stack, of which each is known by its number.


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


# The posterior bootstrap of a stack: members fitted to re-weighted rows, and pools of them.


DRAWS, REFITS = 200, 12
"""Draws, and refits of the members that they share: pools and factors differ in every draw."""


@stored
class StackRefits(MemberDraws):
    """The part of a bootstrapped stack's draws beside weights and temperatures of the pool."""

    members: tuple[FittedMembers, ...]
    """Members fitted to re-weighted rows; draw s has those of number s modulo their number."""
    factors: Float[np.ndarray, "draw member"]
    """Factors of the members' deviations from their pool."""
    shifts: Float[np.ndarray, "draw label"]
    """What is added to the log probabilities of all rows."""
    table_variance: float
    """Mean variance of the kinds of members about their pool, over rows held out."""
    usual: UsualRows
    """Rows held out of companions: at rows unlike them draws spread further."""

    def __laws__(self) -> Requirements:
        names = {members.names for members in self.members}
        yield len(names) == 1, "refits, all of the same members"
        yield {one.n_classes for one in self.members} == {self.shifts.shape[1]}, "classes"
        yield self.factors.shape[1] == len(names.pop()), "a factor of every member"
        numbers = self.factors, self.shifts
        yield all(within(abs(one), 0, MOST_LOG) for one in numbers), "factors and shifts"
        yield within(self.table_variance, 0, MOST_LOG), "a variance"

    @property
    def numbers(self) -> Int[np.ndarray, " draw"]:
        """Number of the refit of every draw."""
        return np.arange(len(self.factors)) % len(self.members)

    def pointwise(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """None of the members stays at its fitted point."""
        return ()

    def strays(self, model: FittedStack) -> StrayLabels:
        """What labels of rows held out leave open."""
        return strays_of(model)

    def rows_under_draws(
        self, model: FittedStack, training: Observations
    ) -> Callable[[NewRows], RefittedRows]:
        """Prepare nothing: refits know the rows that they were fitted to."""
        return partial(self._of_rows, model)

    def _of_rows(self, model: FittedStack, new: NewRows) -> RefittedRows:
        """Predictions of the refits for new rows, and how far their draws are moved."""
        pool, variance = model.pool_and_variance(new.values, new.hidden)
        usual_variance = self._usual_variance(model, new.hidden)
        scale = squared_scale(variance, usual_variance, np.unique(model.kinds).size)
        stretch = stretch_of_median(scale)
        companion = model.companion
        spread = self.usual.spread(companion.standardise(new.rows), cell_law_of(companion))
        bounded = bounded_spread(spread, scale, stretch * log_odds(np.exp(pool), LEAST_DOUBT))
        shifted = np.zeros(new.hidden.size)
        if self.table_variance:
            shifted = np.sqrt(usual_variance / self.table_variance)
        return RefittedRows(
            np.stack([one.log_probabilities(new.rows) for one in self.members]),
            self,
            np.where(scale.any(axis=1), bounded, 0.0),  # 0 where kinds cannot disagree
            shifted,
            stretch,
        )

    def _usual_variance(
        self, model: FittedStack, hidden: Float[np.ndarray, " obs"]
    ) -> Float[np.ndarray, " obs"]:
        """Mean variance of the kinds at rows of which a share of the cells is hidden."""
        if model.held.masked is None:
            return np.full(hidden.size, self.table_variance)
        return np.where(hidden < 1, hats(hidden) @ model.knot_variances, 0.0)


@dataclass(frozen=True)
class RefittedRows(RowsUnderDraws):
    """Predictions of the refitted members for some rows."""

    by_refit: Float[np.ndarray, "refit obs member label"]
    """Class log probabilities before temperatures, in nats."""
    refits: StackRefits
    spread: Float[np.ndarray, " obs"]
    """How many times as far draws spread: further at rows unlike those held out."""
    shifted: Float[np.ndarray, " obs"]
    """What the shift is of that of the table: less where kinds disagree less."""
    stretch: Float[np.ndarray, "obs label"]

    def values(self, numbers: Numbers) -> Float[np.ndarray, "draw obs member label"]:
        """Class log probabilities of the members that a draw has, before temperatures."""
        return self.by_refit[self.refits.numbers[numbers]]

    def moved(
        self,
        log_members: Float[np.ndarray, "draw obs member label"],
        log_pool: Float[np.ndarray, "draw obs label"],
        numbers: Numbers,
    ) -> Float[np.ndarray, "draw obs label"]:
        """The pool of every draw, moved by how far its members disagree."""
        factors, shifts = self.refits.factors[numbers], self.refits.shifts[numbers]
        return disagreed(log_members, log_pool, factors, shifts, self.spread, self.shifted)


def bootstrap_stack(
    model: FittedStack,
    settings: StackSettings,
    rows: Observations,
    folds: Int[np.ndarray, " obs"],
    *,
    draws: int = DRAWS,
    refits: int = REFITS,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress_bar: bool = False,
) -> tuple[Draws, StackRefits]:
    """Draw pools of members: one chain of draws in random order, which share the refits in turn.

    Rows weigh as in the Bayesian bootstrap. Members are fitted to them anew, maps of the
    columns and companions included, from the fit to the rows as they are. Weights and
    temperatures of the pool are fitted to the rows held out, re-weighted likewise. What members
    then say apart from their pool, at the row and over all rows held out, counts as if the truth
    were one kind of member more (:mod:`bayesrbf.families.stack.disagreement`), and counts more
    at rows unlike those held out (:mod:`bayesrbf.families.stack.disagreement`). The rows are the
    distinct training rows with their weights; ``folds`` has the number of the fold that each is
    held out of companions in, -1 for none. The draws hold weights and temperatures of the pool,
    the refits the rest.
    """
    check_numbers("bootstrap", draws=draws)
    if refits < 1:
        raise ValueError(f"bootstrap(refits=...) must be at least 1; received {refits!r}.")
    rng = np.random.default_rng(random_state)
    # All weights are drawn before any fit: draws do not depend on the number of processes.
    weights = [bootstrap_weights(rows.weights, rng, rows.units) for _ in range(min(refits, draws))]
    whole = settings.training(rows, 0)
    fit_members(whole, settings.smooth)
    # Maps are monotone: the weights play no part in the exemplars.
    starts, exemplars = whole.as_starts, whole.of_networks.exemplars
    refit = partial(_refit, settings, rows, starts, exemplars)
    refitted = run_tasks(refit, weights, "Refits", n_jobs, progress_bar)
    theta = _pools(model, draws, len(refitted), rng)
    lp = np.array([model.pool_posterior.value_and_gradient(one)[0] for one in theta])
    table_variance = table_variance_of(model, rows)
    n_classes = settings.n_classes
    factors, shifts = disagreement_draws(draws, model.kinds, n_classes, table_variance, rng)
    usual = rows_held_out(settings, rows, folds)
    refits_of_draws = StackRefits(tuple(refitted), factors, shifts, table_variance, usual)
    return Draws(theta[None], {"lp": lp[None]}, "bootstrap"), refits_of_draws


def _refit(
    settings: StackSettings,
    rows: Observations,
    starts: Starts,
    exemplars: Exemplars,
    weights: Float[np.ndarray, " obs"],
) -> FittedMembers:
    """Members fitted to re-weighted rows, of which only predictions are asked.

    Single precision is enough for what spreads a draw, and a file of many refits is smaller.
    """
    weighted = replace(rows, weights=weights)
    return settings.fit(settings.training(weighted, 0, starts, exemplars)).condensed.rounded


def rows_held_out(
    settings: StackSettings, rows: Observations, folds: Int[np.ndarray, " obs"]
) -> UsualRows:
    """Rows as companions see them that were fitted without them, fold by fold."""
    figures = [np.zeros((3, 0))]
    for fold in np.unique(folds[folds >= 0]):
        test = rows.take(folds == fold)
        companion = settings.fit_density(rows.take(folds != fold))
        typical = typicality(companion.standardise(test), cell_law_of(companion))
        figures.append(np.stack([typical, root_share(test), test.weights]))
    return usual_rows(*np.concatenate(figures, axis=1))


def cell_law_of(companion: FittedMixture) -> CellLaw:
    """The law of cells under a companion."""
    return CellLaw(companion.parameters, companion.specification, companion.in_users_units)


def strays_of(model: FittedStack) -> StrayLabels:
    """What the labels of rows held out say of stray ones, by what the pool gave them."""
    rows = model.held
    p = np.exp(model.pooled(rows.values, model.held_share))
    of_labels = p[np.arange(rows.labels.size), rows.labels]
    return stray_labels(of_labels, rows.weights, model.members.n_classes)


def table_variance_of(model: FittedStack, rows: Observations) -> float:
    """Mean over rows held out of the variance of the kinds; over those of training without any."""
    values, weights, hidden = model.held.values, model.held.weights, model.held_share
    if not weights.size:
        values, weights = model.members.log_probabilities(rows), rows.weights
        hidden = hidden_share(rows)
    _, variance = model.pool_and_variance(values, hidden)
    return float(np.average(variance.mean(axis=1), weights=weights))


def _pools(
    model: FittedStack, draws: int, shared: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw coordinate"]:
    """Weights and temperatures fitted to re-weighted rows held out.

    Draws share those for rows with hidden cells, as they share the refits of the members.
    """

    def fitted(knots: slice) -> tuple[Pool, ...]:
        weights = bootstrap_weights(model.held.weights, rng, model.held.units)
        return fit_pools(replace(model.held, weights=weights), knots)

    emptier = [fitted(slice(1, None)) if model.emptier else () for _ in range(shared)]
    pools = ((*fitted(slice(1)), *emptier[draw % shared]) for draw in range(draws))
    return single_digits(np.stack([packed(model.pool_posterior, of_draw) for of_draw in pools]))


# Draws of the parameters of a stack's members, beside those of its pool.


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

"""The posterior bootstrap of a stack: members fitted to re-weighted rows, and pools of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fitted.fitted_kernel_network import Exemplars
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.stack.fitted_stack import FittedStack, packed
from bayesrbf.fitted.stack.members import FittedMembers, fit_members
from bayesrbf.fitted.stack.pool import Pool, fit_pools
from bayesrbf.fitted.stack.shared_training import Starts
from bayesrbf.fitted.stack.stack_fitting import StackSettings
from bayesrbf.fitted.stack.stack_posterior import MemberDraws, NewRows, Numbers, RowsUnderDraws
from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.inference.bootstrap import bootstrap_weights
from bayesrbf.inference.draws import Draws, check_numbers
from bayesrbf.numerics.hidden_share import hats, hidden_share
from bayesrbf.numerics.log_sums import log_odds
from bayesrbf.numerics.rounding import single_digits
from bayesrbf.numerics.stack.disagreement import (
    bounded_spread,
    disagreed,
    disagreement_draws,
    squared_scale,
    stretch_of_median,
)
from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.posterior.stray_labels import StrayLabels, stray_labels
from bayesrbf.posterior.uncertainty import LEAST_DOUBT
from bayesrbf.posterior.usual_rows import UsualRows, root_share, typicality, usual_rows
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import MOST_LOG, Requirements, stored, within

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
    were one kind of member more (:mod:`bayesrbf.numerics.stack.disagreement`), and counts more
    at rows unlike those held out (:mod:`bayesrbf.posterior.usual_rows`). The rows are the
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

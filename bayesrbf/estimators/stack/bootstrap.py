"""The posterior bootstrap of a stack: members fitted to re-weighted rows, and pools of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.estimators.stack.fitted_stack import FittedStack, packed
from bayesrbf.estimators.stack.fitting import (
    FittedMembers,
    Pool,
    StackSettings,
    default_folds,
    fit_pools,
)
from bayesrbf.estimators.stack.training import fit_density
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.folds import stratified_folds
from bayesrbf.inference.bootstrap import bootstrap_weights
from bayesrbf.inference.draws import Draws, check_numbers
from bayesrbf.inference.progress import progress
from bayesrbf.numerics.hidden_share import hats, hidden_share
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.numerics.rounding import single_digits
from bayesrbf.numerics.stack.disagreement import (
    bounded_spread,
    disagreed,
    disagreement_draws,
    squared_scale,
    stretch_of_median,
)
from bayesrbf.numerics.stack.pooling import tempered_members
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.posterior.uncertainty import log_odds
from bayesrbf.posterior.usual_rows import UsualRows, root_share, typicality, usual_rows
from bayesrbf.records.mixture import Observations
from bayesrbf.records.results import ClassPrediction

DRAWS, REFITS = 200, 25
"""Draws, and refits of the members that they share: pools and factors differ in every draw."""
_ENTRIES = 2**20
"""Numbers that members' probabilities of one block of draws may take: 8 MiB."""


@dataclass(frozen=True)
class StackRefits:
    """What draws of a bootstrapped stack have beside weights and temperatures of the pool."""

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

    @property
    def coordinates(self) -> Float[np.ndarray, "draw coordinate"]:
        """Factors and shifts of every draw, and the number of its refit."""
        numbers = np.arange(len(self.factors)) % len(self.members)
        return np.column_stack([self.factors, self.shifts, numbers])


def bootstrap_stack(
    model: FittedStack,
    settings: StackSettings,
    rows: Observations,
    *,
    draws: int = DRAWS,
    refits: int = REFITS,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    progress_bar: bool = False,
) -> tuple[Draws, StackRefits]:
    """Draw pools of members: one chain of draws in random order, which share the refits in turn.

    Rows weigh as in the Bayesian bootstrap. Members are fitted to them anew, maps of the
    columns and companions included, from the same starts. Weights and temperatures of the
    pool are fitted to the rows held out, re-weighted likewise. What members then say apart
    from their pool, at the row and over all rows held out, counts as if the truth were one kind
    of member more (:mod:`bayesrbf.numerics.stack.disagreement`), and counts more at rows unlike
    those held out (:mod:`bayesrbf.posterior.usual_rows`). The rows are the distinct training rows
    with their weights. The draws hold weights and temperatures of the pool, the
    refits the rest.
    """
    check_numbers("bootstrap", draws=draws)
    if refits < 1:
        raise ValueError(f"bootstrap(refits=...) must be at least 1; received {refits!r}.")
    rng = np.random.default_rng(random_state)
    weights = [bootstrap_weights(rows.weights, rng) for _ in range(min(refits, draws))]
    with progress(progress_bar) as track:
        refitted = Parallel(n_jobs=n_jobs)(
            delayed(_refit)(settings, replace(rows, weights=one))
            for one in track(weights, "Refits")
        )
    log_posterior = model.log_posterior(rows)
    theta = _pools(model, log_posterior, draws, len(refitted), rng)
    lp = np.array([log_posterior.value_and_gradient(one)[0] for one in theta])
    table_variance = _table_variance(model, rows)
    n_classes = settings.n_classes
    moves = disagreement_draws(draws, model.kinds, n_classes, table_variance, rng)
    return (
        Draws(theta[None], {"lp": lp[None]}, "bootstrap"),
        StackRefits(tuple(refitted), *moves, table_variance, _usual_rows(settings, rows)),
    )


def _refit(settings: StackSettings, rows: Observations) -> FittedMembers:
    """Members fitted to re-weighted rows, of which only predictions are asked.

    Single precision is enough for what spreads a draw, and a file of many refits is smaller.
    """
    return settings.fit(rows, 0).condensed.rounded


def _usual_rows(settings: StackSettings, rows: Observations) -> UsualRows:
    """Rows as companions see them that were fitted without them, fold by fold."""
    folds = stratified_folds(rows.labels, default_folds(rows), settings.seed)
    levels, n_classes = settings.levels, settings.n_classes
    found = []
    for fold in np.unique(folds[folds >= 0]):
        train, test = rows.take(folds != fold), rows.take(folds == fold)
        companion = fit_density(train, levels, n_classes, settings.prior, settings.seed)
        typical = typicality(companion.standardise(test), _law(companion))
        found.append(np.stack([typical, root_share(test), test.weights]))
    return usual_rows(*np.concatenate([np.zeros((3, 0)), *found], axis=1))


def _law(companion: FittedMixture) -> CellLaw:
    """What a companion says of cells."""
    return CellLaw(companion.parameters, companion.specification, companion.in_users_units)


def _table_variance(model: FittedStack, rows: Observations) -> float:
    """Mean over rows held out of the variance of the kinds; over those of training without any."""
    values, weights, hidden = model.held.values, model.held.weights, model.held_share
    if not weights.size:
        values, weights = model.members.log_probabilities(rows), rows.weights
        hidden = hidden_share(rows)
    _, variance = model.pool_and_variance(values, hidden)
    return float(np.average(variance.mean(axis=1), weights=weights))


def bootstrap_stretch(
    model: FittedStack, refits: StackRefits, rows: Observations
) -> Float[np.ndarray, "obs label"]:
    """How much further out than what is delivered for new rows the median of the draws lies."""
    _, scale = _pool_and_scale(model, refits, rows)
    return stretch_of_median(scale)


def bootstrap_spread(
    model: FittedStack, refits: StackRefits, rows: Observations
) -> Float[np.ndarray, " obs"]:
    """How many times as far draws spread at new rows: further at those unlike the rows held out.

    It is 0 where kinds cannot disagree.
    """
    companion = model.companion
    spread = refits.usual.spread(companion.standardise(rows), _law(companion))
    pool, scale = _pool_and_scale(model, refits, rows)
    bounded = bounded_spread(spread, scale, stretch_of_median(scale) * log_odds(np.exp(pool)))
    return np.where(scale.any(axis=1), bounded, 0.0)


def bootstrap_shift(
    model: FittedStack, refits: StackRefits, rows: Observations
) -> Float[np.ndarray, " obs"]:
    """What the shift of new rows is of that of the table: less where kinds disagree less."""
    variance = _usual_variance(model, refits, hidden_share(rows))
    if refits.table_variance == 0:
        return np.zeros(rows.n_obs)
    shift: Float[np.ndarray, " obs"] = np.sqrt(variance / refits.table_variance)
    return shift


def _pool_and_scale(
    model: FittedStack, refits: StackRefits, rows: Observations
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """The fitted pool of new rows and the squared scale of what one kind of member more may say."""
    hidden = hidden_share(rows)
    pool, variance = model.pool_and_variance(model.members.log_probabilities(rows), hidden)
    n_kinds = np.unique(model.kinds).size
    return pool, squared_scale(variance, _usual_variance(model, refits, hidden), n_kinds)


def _usual_variance(
    model: FittedStack, refits: StackRefits, hidden: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " obs"]:
    """Mean variance of the kinds at rows of which a share of the cells is hidden."""
    if model.held.masked is None:
        return np.full(hidden.size, refits.table_variance)
    return np.where(hidden < 1, hats(hidden) @ model.knot_variances, 0.0)


def _pools(
    model: FittedStack,
    log_posterior: StackLogPosterior,
    draws: int,
    shared: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "draw coordinate"]:
    """Weights and temperatures fitted to re-weighted rows held out.

    Draws share those for rows with hidden cells, as they share the refits of the members.
    """

    def fitted(knots: slice) -> tuple[Pool, ...]:
        weights = bootstrap_weights(model.held.weights, rng)
        return fit_pools(replace(model.held, weights=weights), knots)

    emptier = [fitted(slice(1, None)) if model.emptier else () for _ in range(shared)]
    pools = ((*fitted(slice(1)), *emptier[draw % shared]) for draw in range(draws))
    return single_digits(np.stack([packed(log_posterior, of_draw) for of_draw in pools]))


def bootstrap_predictor(
    model: FittedStack, log_posterior: StackLogPosterior, refits: StackRefits
) -> Callable[[Observations, np.ndarray], Predictor]:
    """Prepare rows for predictions of the whole stack under its draws.

    Maps new rows and their log densities, which no draw changes, to a function of coordinates:
    those of the pool, then factors, shifts and number of the refit; or of the pool alone, with
    members as fitted.
    """

    def prepare(new: Observations, log_density: np.ndarray) -> Predictor:
        moved = bootstrap_spread(model, refits, new), bootstrap_shift(model, refits, new)
        return BootstrapPredictor(log_posterior, model.members, refits, new, log_density, *moved)

    return prepare


class BootstrapPredictor(Predictor):
    """What a bootstrapped stack says of some rows at any draws."""

    def __init__(
        self,
        log_posterior: StackLogPosterior,
        members: FittedMembers,
        refits: StackRefits,
        rows: Observations,
        log_density: np.ndarray,
        spread: Float[np.ndarray, " obs"],
        shifted: Float[np.ndarray, " obs"],
    ) -> None:
        self._log_posterior = log_posterior
        self._n_members = refits.factors.shape[1]
        self._hidden, self._fitted = hidden_share(rows), partial(members.log_probabilities, rows)
        self._refitted = np.stack([one.log_probabilities(rows) for one in refits.members])
        self._log_density, self._spread, self._shifted = log_density, spread, shifted

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict at many draws, of which some are worked on at once."""
        _, n_obs, _, n_classes = self._refitted.shape
        said = np.empty((len(thetas), n_obs, n_classes))
        size = max(1, _ENTRIES // max(1, self._refitted[0].size))
        for start in range(0, len(thetas), size):
            some = slice(start, start + size)
            said[some] = self._at(thetas[some])
        return ClassPrediction(said, np.broadcast_to(self._log_density, said.shape[:2]))

    def _at(self, thetas: np.ndarray) -> Float[np.ndarray, "draw obs label"]:
        """Class log probabilities under a few draws."""
        own, rest = np.split(thetas, [self._log_posterior.dimension], axis=1)
        of_rows = self._log_posterior.of_rows(self._hidden, own)
        values = self._refitted[rest[:, -1].astype(np.intp)] if rest.size else self._fitted()
        members = tempered_members(
            np.broadcast_to(values, (len(own), *values.shape[-3:])), of_rows.member_temperatures
        )
        said = of_rows.of_pool(np.log(np.einsum("snj,snjc->snc", of_rows.weights, members)))
        if not rest.size:
            return said
        factors, shifts = np.split(rest[:, :-1], [self._n_members], axis=1)
        return disagreed(np.log(members), said, factors, shifts, self._spread, self._shifted)

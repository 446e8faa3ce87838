r"""Intervals of a stack: rules that make and spread its draws, in the order of the calls.

Rules 4, 5 and 12 to 15 are those of all estimators and stand where they are named.

``refine("bootstrap")`` makes the draws, in :func:`bootstrap_stack`:

1. *Refits.* All members are fitted anew to rows that weigh as in the Bayesian bootstrap.
2. *Pools.* Weights, temperatures and pulls are fitted to the rows held out, re-weighted likewise.
3. *Disagreement.* A family of models, fitted to rows that another family made, agrees with itself
   and is wrong. How far, other families show. Let the log odds of the truth and of J kinds of
   members be independent draws from one normal distribution, of whose mean the pool is the
   estimate. Then the truth given the kinds is Student's t. A draw is a function of the row: with
   the pool's log odds l, the factors :math:`f_j` of the deviations of the kinds and the shift g are
   the same for all rows (:func:`disagreement_draws`),

   .. math:: l_0 = l + \sum_j f_j (l_j - l) + g, \quad
       f_j = c \, z_j, \quad g = c \, s_0 \sqrt{J - 1} \, z_0, \quad
       c^2 = \frac{J + 1}{J \, \chi^2_{2 (J - 1)}}.

``uncertainty`` first makes the posterior, in :meth:`MemberDraws.class_posterior`:

4. *Class shares*, which are all that is known of a row without a cell, are frequencies of so many
   rows: every draw has its own (:func:`bayesrbf.fit.probabilities.share_draws`).
5. *Stray labels* have a rate that the labels of rows held out leave open: every draw has its own
   (:func:`bayesrbf.fit.probabilities.stray_labels`).

It then prepares rows, block by block, in :meth:`StackRefits.of_rows`:

6. *Scale.* Members of one kind err together, so the mean of their log odds counts once. Kinds that
   happen to agree at one row are no proof there, so the variance of a row is moderated [1]_: its
   squared scale v is halfway between that of the row itself and the usual one, the mean over rows
   held out (:func:`variance_of_kinds`, :func:`squared_scale`),

   .. math:: v(x) = \frac{J + 1}{J} \; \frac{s^2(x) + s_0^2(x)}{2}, \quad
       s^2(x) = \frac{1}{J - 1} \sum_j (l_j(x) - l(x))^2.

   What is usual counts as much as J - 1 deviations at the row: hence 2 (J - 1) degrees of freedom.
   Kinds disagree less where fewer cells are known, and not at all about a row without a cell. So
   the usual variance :math:`s_0^2` is one at every knot of the share of hidden cells
   (:class:`KindVariance`), and the shift of a row is in proportion to its root.
7. *Stretch.* What a pool says is calibrated: it is the *mean* of the frequencies that rows like
   this have. The mean of the logistic of a normal variable lies nearer to 1/2 than its median. So
   the draws have their median m further out [2]_ (:func:`stretch_of_median`),

   .. math:: m = \sqrt{1 + \pi v / 8} \; l.

8. *Spread.* At a row unlike those held out, what is added to the pool is s times as large. Within
   component k of the density the log density of the observed cells has a mean and a variance of
   its own: with d observed reals, :math:`m_k^2` their squared Mahalanobis distance, and categories
   j with entropies :math:`H_{kj}` and variances :math:`V_{kj}` of :math:`\log \theta_{kj}`, the
   typicality of a row is

   .. math:: t_k = \frac{-\frac12 (m_k^2 - d) + \sum_j (\log \theta_{kj}[x_j] + H_{kj})}
       {\sqrt{\frac{d}{2} + \sum_j V_{kj}}}, \qquad t = \sum_k p(k \mid x_o) \, t_k .

   With a the share of its cells that are observed, it is compared with rows that were held out of
   the density (:class:`UsualRows`):

   .. math:: \pi(x) = \frac{1 + \sum_i w_i \, [u_i \le u(x)]}{1 + \sum_i w_i}, \quad
       u = t - b \sqrt{a}, \quad s(x) = \max\left(1, \frac{q}{\pi(x)}\right),

   with q = 0.15: draws spread further in the least usual rows, 15 in 100. t is a sum over cells
   over the square root of their number, so where the density is wrong by the same in every cell
   its mean grows as the square root of a; b is that slope, by least squares.
9. *Bound.* There the kinds know little, but no less than nothing. A probability of which nothing is
   known is Beta(1/2, 1/2) by Jeffreys' rule. Its log odds have the mean 0 and the variance
   :math:`2 \psi'(1/2) = \pi^2`, and lie :math:`\pi^2 + m^2` from m in mean square. So draws spread
   no further than to that scale, over all classes (:func:`bounded_spread`),

   .. math:: s^2(x) \le \max\left(1, \frac{\sum_c (\pi^2 + m_c^2(x))}{\sum_c v_c(x)}\right).

Under every draw, in :meth:`StackPredictor.at_all`:

10. *Pool.* The members of the refit, at the weights, temperatures and pull of the draw.
11. *Moves.* That pool is moved by rule 3, s times as far (:func:`disagreed`), and by rule 4.

What follows is the same for every estimator:

12. *Far rows* are given the class shares, the more the further (``FarRows`` in ``fit/table.py``).
13. *Prevalences.* Draws weigh as they find such a row probable where classes are as in use
    (:class:`bayesrbf.fit.probabilities.ClassPosterior`).
14. *Centre.* Each class is moved in log odds to have the median of rule 7, around what is given
    out; then strays are mixed in (:func:`bayesrbf.fit.probabilities.centred_draws`).
15. *Ends* are quantiles of these draws, and 0 or 1 where they are nearer to it than anybody may
    dispute (:func:`bayesrbf.fit.probabilities.outer_ends`).

Draws of the posterior of the pool (``refine("laplace")``) know rules 4, 10 and 12 to 15:
:class:`DrawnMembers`. Another classifier beside a stack has a rule of its own in place of 1 to 3
(:mod:`bayesrbf.families.stack.model_doubt`).

.. [1] Smyth (2004), Linear models and empirical Bayes methods for assessing differential
   expression in microarray experiments, Statistical Applications in Genetics 3, section 4.
.. [2] MacKay (1992), The evidence framework applied to classification networks, Neural
   Computation 4, section 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls
from scipy.special import chdtri, ndtri, softmax
from scipy.stats.qmc import Halton

from bayesrbf.base.arrays import (
    LEAST_DISPUTED_PROBABILITY,
    log_odds,
    log_softmax,
    single_digits,
)
from bayesrbf.base.hidden_share import hats, missing_share
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import POOL_PRIOR, ClassPrediction
from bayesrbf.base.records import MOST_LOG, Requirements, stored, within
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.kernel_network.fitted import Exemplars
from bayesrbf.families.stack.fitted import FittedStack, StackSettings
from bayesrbf.families.stack.members import FittedMembers, Starts, fit_members
from bayesrbf.families.stack.posterior import (
    Pool,
    StackLogPosterior,
    bounded_log_probabilities,
    fit_pools,
)
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

Rows = Float[np.ndarray, " obs"]
Numbers = Int[np.ndarray, " draw"]
"""Numbers of draws, those of all chains one after another."""
OfMembers = Callable[[Numbers], Float[np.ndarray, "draw obs member label"]]
"""Gives class log probabilities of members for some rows before temperatures, in nats."""
OfRows = Callable[
    [Observations, Float[np.ndarray, "obs member label"]], "tuple[OfMembers, Disagreement | None]"
]
"""Maps rows, and what members say of them at the fit, to what these say under draws."""


# Draws of a stack, of any kind: rules 4, 5, 10 and 11.


@dataclass(frozen=True)
class Disagreement:
    """Factors, shifts, spread and stretch of draws at some rows, where kinds disagree."""

    factors: Float[np.ndarray, "draw member"]
    shifts: Float[np.ndarray, "draw label"]
    spread: Rows
    """Factor of the moves of the draws; 0 where kinds cannot disagree."""
    relative_shift: Rows
    """Ratio of the shift of a row to that of the table."""
    stretch: Float[np.ndarray, "obs label"]
    """Ratio of the median of the draws to what is given out, in log odds."""


@dataclass(frozen=True)
class StackPredictor(Predictor):
    """Class probabilities of some rows under draws of the pool, its members and class shares."""

    log_posterior: StackLogPosterior
    thetas: Float[np.ndarray, "draw coordinate"]
    """Weights and temperatures of every draw."""
    hidden: Rows
    """Share of hidden cells."""
    log_density: Rows
    members: OfMembers
    disagreement: Disagreement | None
    delivered: Float[np.ndarray, "obs label"] = field()
    pull: Rows
    """Exponent of the class shares at every row."""
    moves: Float[np.ndarray, "draw label"] | None
    """Log ratios of the class shares of every draw to those of training; None: there are none."""

    @property
    def stretch(self) -> Float[np.ndarray, "obs label"] | None:  # type: ignore[override]
        """Ratio of the median of the draws to what is given out, in log odds."""
        return None if self.disagreement is None else self.disagreement.stretch

    def at_all(self, thetas: Int[np.ndarray, "draw 1"]) -> ClassPrediction:
        """Predict at draws by their numbers, some of them at a time."""
        numbers = thetas[:, 0]
        log_p = np.empty((numbers.size, *self.delivered.shape))
        numbers_a_draw = self.delivered.size * self.log_posterior.n_members
        for part in in_blocks(numbers.size, numbers_a_draw):
            some, how = numbers[part], self.disagreement
            pool = self.log_posterior.of_rows(self.hidden, self.thetas[some])
            members = pool.members(self.members(some))
            log_p[part] = pool.pooled(members)
            if how is not None:
                moves = how.factors[some], how.shifts[some], how.spread, how.relative_shift
                log_p[part] = disagreed(np.log(members), log_p[part], *moves)
        if self.moves is not None:
            log_p = at_drawn_shares(log_p, self.pull, self.moves[numbers])
        return ClassPrediction(log_p, np.broadcast_to(self.log_density, log_p.shape[:2]))


class MemberDraws(ABC):
    """Variation of a stack's members between its draws: the state of the draws beside the pool."""

    @abstractmethod
    def pointwise(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the members that stay at their fitted point."""

    @abstractmethod
    def strays(self, model: FittedStack) -> StrayLabels | None:
        """Stray labels that the draws know of; None: of none."""

    @abstractmethod
    def prepared(self, model: FittedStack, training: Observations) -> OfRows:
        """Prepare for the training rows once what predicts new rows under draws."""

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
        moves = None
        # A point estimate has no doubt about the class shares.
        if (calibration := model.calibration) is not None and numbers.size > 1:
            counts = training.n_labelled * np.exp(calibration.log_shares)
            moves = share_draws(counts, numbers.size, np.random.default_rng(seed))
        of_rows = self.prepared(model, training)

        def predictor(rows: Observations) -> StackPredictor:
            values, hidden = model.members.log_probabilities(rows), missing_share(rows)
            at_point = model.pool_posterior.of_rows(hidden, model.fitted_point)
            return StackPredictor(
                model.pool_posterior,
                one_after_another(theta),
                hidden,
                model.companion.log_density(rows),
                *of_rows(rows, values),
                at_point.pooled(at_point.members(values)),
                at_point.pull,
                moves,
            )

        return ClassPosterior(predictor, numbers, log_ratio, strays=self.strays(model))


def strays_of(model: FittedStack) -> StrayLabels:
    """Stray labels by the labels of held-out rows and the pool's probabilities of these."""
    rows = model.held
    p = np.exp(model.pooled(rows.values, model.held_share))
    of_labels = p[np.arange(rows.labels.size), rows.labels]
    return stray_labels(of_labels, rows.weights, model.members.n_classes)


# The posterior bootstrap of a stack: rules 1 to 3 make its draws, and 6 to 9 spread them.


DRAWS, REFITS = 200, 12
"""Draws, and refits of the members that they share: pools and factors differ in every draw. With 25
refits coverage and width were the same."""


@stored
class StackRefits(MemberDraws):
    """The part of a bootstrapped stack's draws beside weights and temperatures of the pool."""

    members: tuple[FittedMembers, ...]
    """Members fitted to re-weighted rows; draw s has those of number s modulo their number."""
    factors: Float[np.ndarray, "draw member"]
    """Factors of the members' deviations from their pool."""
    shifts: Float[np.ndarray, "draw label"]
    """Shifts of the log probabilities of a row of usual variance."""
    variance: KindVariance
    usual: UsualRows

    def __laws__(self) -> Requirements:
        names = {members.names for members in self.members}
        yield len(names) == 1, "refits, all of the same members"
        yield {one.n_classes for one in self.members} == {self.shifts.shape[1]}, "classes"
        yield self.factors.shape[1] == len(names.pop()), "a factor of every member"
        numbers = self.factors, self.shifts
        yield all(within(abs(one), 0, MOST_LOG) for one in numbers), "factors and shifts"

    def pointwise(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """None of the members stays at its fitted point."""
        return ()

    def strays(self, model: FittedStack) -> StrayLabels:
        """Rate of stray labels, by the labels of held-out rows."""
        return strays_of(model)

    def prepared(self, model: FittedStack, training: Observations) -> OfRows:
        """Prepare nothing: refits know the rows that they were fitted to."""
        return partial(self.of_rows, model)

    def of_rows(
        self,
        model: FittedStack,
        rows: Observations,
        values: Float[np.ndarray, "obs member label"],
    ) -> tuple[OfMembers, Disagreement]:
        """Predictions of the refits for new rows, and how far their draws are moved."""
        hidden = missing_share(rows)
        pool, variance = pool_and_variance(model, values, hidden)
        usual_variance = self.variance.at(hidden)
        scale = squared_scale(variance, usual_variance, np.unique(model.kinds).size)
        stretch = stretch_of_median(scale)
        median = stretch * log_odds(np.exp(pool), LEAST_DOUBT)
        relative_shift = np.zeros(rows.n_obs)  # where kinds never disagree there is no shift
        if self.variance.of_table:
            relative_shift = np.sqrt(usual_variance / self.variance.of_table)
        by_refit = np.stack([one.log_probabilities(rows) for one in self.members])
        spread = self.usual.bounded(model.companion, rows, scale, median)
        return (
            lambda numbers: by_refit[numbers % len(by_refit)],
            Disagreement(self.factors, self.shifts, spread, relative_shift, stretch),
        )


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

    Members are fitted anew, maps of the columns and companions included, from the fit to the rows
    as they are. The rows are the distinct training rows with their weights; ``folds`` has the
    number of the fold that each is held out of companions in, -1 for none. The draws hold weights
    and temperatures of the pool, the refits the rest.
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
    variance = kind_variance_of(model, rows)
    of_table = draws, model.kinds, settings.n_classes, variance.of_table
    factors, shifts = disagreement_draws(*of_table, rng)
    usual = rows_held_out(settings, rows, folds)
    refits_of_draws = StackRefits(tuple(refitted), factors, shifts, variance, usual)
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
    return single_digits(np.stack([model.pool_posterior.pack(of_draw) for of_draw in pools]))


# Rules 3 and 11: draws of how far the truth is from the pool.


LEAST_DISPUTED_LOG: Final = np.log(LEAST_DISPUTED_PROBABILITY)
NOTHING_KNOWN: Final = np.pi
"""Standard deviation of the log odds of a probability under Jeffreys' prior."""


def disagreement_draws(
    n_draws: int,
    kinds: Int[np.ndarray, " member"],
    n_classes: int,
    table_variance: float,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "draw member"], Float[np.ndarray, "draw label"]]:
    """Factors f of the members' deviations, and shifts of log probabilities; one kind has none.

    They fill their distribution evenly (a scrambled Halton sequence in random order): by the tail
    of 200 independent draws all intervals of a fit would be too wide, or all too narrow.
    """
    sizes = np.bincount(kinds)
    n_kinds = sizes.size
    if n_kinds == 1:
        return np.zeros((n_draws, kinds.size)), np.zeros((n_draws, n_classes))
    even = Halton(1 + n_kinds + n_classes, seed=rng).random(n_draws)
    chi_squared, z = np.split(rng.permutation(even), [1], axis=1)
    chi_squared, z = chdtri(2 * (n_kinds - 1), chi_squared), ndtri(z)
    scale = np.sqrt((n_kinds + 1) / (n_kinds * chi_squared))
    factors = (scale * z[:, :n_kinds] / sizes)[:, kinds]
    # Log odds of two classes are the difference of two shifts: each has half the variance.
    shift_sd = np.sqrt((n_kinds - 1) * table_variance / 2)
    return factors, scale * shift_sd * z[:, n_kinds:]


def disagreed(
    members: Float[np.ndarray, "... row member label"],
    pool: Float[np.ndarray, "... row label"],
    factors: Float[np.ndarray, "*draws member"],
    shift: Float[np.ndarray, "*draws label"],
    spread: Float[np.ndarray, " row"] | float = 1.0,
    relative_shift: Float[np.ndarray, " row"] | float = 1.0,
) -> Float[np.ndarray, "*draws row label"]:
    """Log probabilities of the pool, moved by its members' deviations from it and by a shift.

    Log probabilities are held above where disputes end. ``spread`` is the factor of rows unlike
    those of the fit; ``relative_shift`` is the ratio of a row's shift to the table's.
    """
    centre = np.maximum(pool, LEAST_DISPUTED_LOG)
    deviations = np.maximum(members, LEAST_DISPUTED_LOG) - centre[..., None, :]
    moves = np.einsum("...j,...njc->...nc", factors, deviations)
    moves += np.reshape(relative_shift, (-1, 1)) * shift[..., None, :]
    moved = centre + np.reshape(spread, (-1, 1)) * moves
    return log_softmax(moved, axis=-1)


# Rule 6: how far kinds of members disagree, at a row and usually.


@stored
class KindVariance:
    """Mean variance of the kinds of members about their pool, over rows held out."""

    of_table: float
    """Over the rows as they are."""
    at_knots: Float[np.ndarray, " knot"] | None
    """At the knots of the share of hidden cells; None where no cells were hidden."""

    def __laws__(self) -> Requirements:
        yield within(self.of_table, 0, MOST_LOG), "a variance"
        if self.at_knots is not None:
            knots = self.at_knots.shape == (len(POOL_PRIOR.knots),)
            yield knots and within(self.at_knots, 0, MOST_LOG), "a variance at every knot"

    def at(self, hidden: Rows) -> Rows:
        """Usual variance ``s_0^2`` of rows by their share of hidden cells."""
        if self.at_knots is None:
            return np.full(hidden.size, self.of_table)
        # Of a row without a cell all kinds say the class shares.
        return np.where(hidden < 1, hats(hidden) @ self.at_knots, 0.0)


def kind_variance_of(model: FittedStack, rows: Observations) -> KindVariance:
    """The variance of the kinds over rows held out; without any, over those of training.

    At the knots by least squares over the rows held out, as they are and with some cells hidden.
    """
    held, masked = model.held, model.held.masked
    values, weights, hidden = held.values, held.weights, model.held_share
    if not weights.size:
        values, weights = model.members.log_probabilities(rows), rows.weights
        hidden = missing_share(rows)
    _, variance = pool_and_variance(model, values, hidden)
    of_table = float(np.average(variance.mean(axis=1), weights=weights))
    if masked is None:
        return KindVariance(of_table, None)
    values = np.concatenate([held.values[:, None], masked.values], axis=1)
    hidden = masked.hidden.reshape(-1)
    _, variance = pool_and_variance(model, values.reshape(-1, *values.shape[2:]), hidden)
    # Rows without a cell are left out: about these kinds cannot disagree.
    root = np.sqrt(np.repeat(held.weights, values.shape[1]) * (hidden < 1))
    return KindVariance(
        of_table, nnls(root[:, None] * hats(hidden), root * variance.mean(axis=1))[0]
    )


def pool_and_variance(
    model: FittedStack, values: Float[np.ndarray, "row member label"], hidden: Rows
) -> tuple[Float[np.ndarray, "row label"], Float[np.ndarray, "row label"]]:
    """Class log probabilities of the fitted pool and the variance of the kinds about it.

    ``values`` are what members say before temperatures.
    """
    at_point = model.pool_posterior.of_rows(hidden, model.fitted_point)
    members = at_point.members(values)
    pool = at_point.pooled(members)
    variance = variance_of_kinds(np.log(members), pool, model.kinds)
    if model.held.masked is not None:
        # Of a row without a cell all that is said is the class shares, whoever says it.
        variance[hidden == 1] = 0
    return pool, variance


def variance_of_kinds(
    members: Float[np.ndarray, "row member label"],
    pool: Float[np.ndarray, "row label"],
    kinds: Int[np.ndarray, " member"],
) -> Float[np.ndarray, "row label"]:
    """Variance ``s^2`` of the log odds of the kinds of members about their pool."""
    sizes = np.bincount(kinds)
    if sizes.size == 1:
        return np.zeros(pool.shape)
    # Members of one kind err together: their mean counts as one.
    by_kind = np.eye(sizes.size)[kinds].T / sizes[:, None]
    of_members = log_odds(np.exp(members), LEAST_DISPUTED_PROBABILITY)
    of_pool = log_odds(np.exp(pool), LEAST_DISPUTED_PROBABILITY)
    deviations = np.einsum("kj,njc->nkc", by_kind, of_members - of_pool[:, None])
    variance: np.ndarray = np.square(deviations).sum(axis=1) / (sizes.size - 1)
    return variance


def squared_scale(
    variance: Float[np.ndarray, "row label"],
    table_variance: Float[np.ndarray, " row"] | float,
    n_kinds: int,
) -> Float[np.ndarray, "row label"]:
    """Squared scale ``v`` of what one kind of model more may say, in log odds."""
    return (n_kinds + 1) / n_kinds * (variance + np.reshape(table_variance, (-1, 1))) / 2


# Rule 7: the median of the draws.


def stretch_of_median(
    scale: Float[np.ndarray, "row label"],
) -> Float[np.ndarray, "row label"]:
    """Factor from the pool's log odds to the median of the draws.

    Examples
    --------
    >>> stretch_of_median(squared_scale(np.array([[4.0, 0.0]]), 2.0, 3)).round(2)
    array([[1.6 , 1.23]])
    """
    stretch: np.ndarray = np.sqrt(1 + np.pi * scale / 8)
    return stretch


# Rules 8 and 9: draws spread further at rows unlike those held out, within bounds.


UNUSUAL: Final = 0.15
"""Share of rows at which draws spread further: of a class left out, rows had intervals at least
twice as wide on six of eight tables (two of seven without), and those of known rows held the truth
less than .01 more often."""
LEAST_ROW_VARIANCE: Final = 1e-9
"""Least variance: of a row without a cell, say."""


@stored
class UsualRows:
    """Typicalities of rows that were held out of a density, which others are compared with."""

    excess: Float[np.ndarray, " row"]
    """``u`` of rule 8."""
    weights: Float[np.ndarray, " row"]
    slope: float

    def spread(self, rows: Observations, law: CellLaw) -> Rows:
        """Factor by which draws spread at rows, which are in the units of the law."""
        own = typicality(rows, law) - self.slope * root_share(rows)
        order = np.argsort(self.excess)
        below = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        rank = below[np.searchsorted(self.excess[order], own, side="right")]
        spread: Rows = np.maximum(1, UNUSUAL * (1 + below[-1]) / (1 + rank))
        return spread

    def bounded(
        self,
        companion: FittedMixture,
        rows: Observations,
        scale: Float[np.ndarray, "obs label"],
        median: Float[np.ndarray, "obs label"],
    ) -> Rows:
        """Factor by which draws spread at rows in the user's units; 0 where kinds cannot disagree.

        ``scale`` is the squared scale of the draws, ``median`` that of their log odds.
        """
        spread = self.spread(companion.standardise(rows), cell_law_of(companion))
        return np.where(scale.any(axis=1), bounded_spread(spread, scale, median), 0.0)

    def __laws__(self) -> Requirements:
        yield self.excess.size == self.weights.size, "a weight of every row"
        yield within(self.weights, 0) and within(abs(self.excess), 0, MOST_LOG), "typicalities"
        yield within(abs(self.slope), 0, MOST_LOG), "a slope"


def usual_rows(typical: Rows, shares: Rows, weights: Rows) -> UsualRows:
    """Learn the slope from held-out rows: typicalities, roots of shares observed, weights."""
    squares = weights @ shares**2
    slope = float(weights @ (typical * shares) / squares) if squares > 0 else 0.0
    return UsualRows(typical - slope * shares, weights, slope)


def root_share(rows: Observations) -> Rows:
    """Square root of the share of cells that are observed."""
    root: Rows = np.sqrt(1 - missing_share(rows))
    return root


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


def typicality(rows: Observations, law: CellLaw) -> Float[np.ndarray, " obs"]:
    """``t`` of rule 8: standard deviations by which a row is likelier than those of components."""
    point = law.parameters
    rows = rows.unlabelled()
    shares = softmax(law.log_joint(rows), axis=1)
    observed = ~np.isnan(rows.real)
    patterns, place = np.unique(observed, axis=0, return_inverse=True)
    bare = replace(rows, codes=np.full_like(rows.codes, -1))
    excess = law.log_joint(bare)
    # Less the log joint at the component's own mean what is left is -m² / 2: the determinant,
    # which depends on the pattern of holes, cancels.
    excess -= _at_means(patterns, rows, law)[place.ravel()]
    # m² is chi-squared: -m² / 2 has mean -d / 2 and variance d / 2.
    excess += 0.5 * observed.sum(axis=1, keepdims=True)
    variance = np.repeat(0.5 * observed.sum(axis=1, keepdims=True), len(point.means), axis=1)
    for column, theta in enumerate(point.category_probabilities):
        present = np.flatnonzero(rows.codes[:, column] >= 0)
        log_theta = np.log(theta)
        mean = (theta * log_theta).sum(axis=1)
        excess[present] += log_theta[:, rows.codes[present, column]].T - mean
        variance[present] += ((theta * log_theta**2).sum(axis=1) - mean**2)[None]
    result: Float[np.ndarray, " obs"] = (
        shares * excess / np.sqrt(variance + LEAST_ROW_VARIANCE)
    ).sum(axis=1)
    return result


def _at_means(
    patterns: Bool[np.ndarray, "pattern feature"], like: Observations, law: CellLaw
) -> Float[np.ndarray, "pattern component"]:
    """Log joint of components and their own means, some reals missing, without categories."""
    result = np.empty((len(patterns), len(law.parameters.means)))
    n = len(patterns)
    nothing = np.full((n, like.codes.shape[1]), -1)
    for k, mean in enumerate(law.parameters.means):
        real = np.where(patterns, mean, np.nan)
        rows = Observations(real, nothing, np.full(n, -1), np.ones(n))
        result[:, k] = law.log_joint(rows)[:, k]
    return result


def bounded_spread(
    spread: Float[np.ndarray, " row"],
    scale: Float[np.ndarray, "row label"],
    median: Float[np.ndarray, "row label"],
) -> Float[np.ndarray, " row"]:
    """Factor by which draws spread, bounded where they would be further out than for no knowledge.

    ``scale`` is their squared scale, ``median`` that of their log odds.

    Examples
    --------
    >>> scale, median = np.array([[1.0], [1.0], [100.0]]), np.array([[0.0], [4.0], [0.0]])
    >>> bounded_spread(np.full(3, 45.0), scale, median).round(2)
    array([3.14, 5.09, 1.  ])
    """
    nothing = (NOTHING_KNOWN**2 + median**2).sum(axis=1)
    with np.errstate(divide="ignore"):  # no bound where kinds cannot disagree
        most = np.sqrt(np.maximum(1, nothing / scale.sum(axis=1)))
    bounded: np.ndarray = np.minimum(spread, most)
    return bounded


# Draws of the posteriors of members: they know of no other kind.


MOST_COORDINATES: Final = 2000
"""Members with more stay at their point: the Hessian alone would cost minutes."""


@stored
class DrawnMembers(MemberDraws):
    """Draws of the parameters of members; all others stay at their fitted point."""

    draws: tuple[Draws | None, ...] = ()
    """Draws of own members, in their order; None where a member stays at its point."""

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

    def prepared(self, model: FittedStack, training: Observations) -> OfRows:
        """Prepare the log posteriors of the members that vary."""
        own = model.members.own
        varying = {
            place: (own[place].log_posterior(training), one_after_another(one.theta))
            for place, one in enumerate(self.draws)
            if one is not None
        }

        def of_rows(
            rows: Observations, fixed: Float[np.ndarray, "obs member label"]
        ) -> tuple[OfMembers, None]:
            predictors = {
                place: (own[place].predictor(log_posterior, rows), thetas)
                for place, (log_posterior, thetas) in varying.items()
            }

            def values(numbers: Numbers) -> Float[np.ndarray, "draw obs member label"]:
                result = np.repeat(fixed[None], numbers.size, axis=0)
                for place, (predictor, thetas) in predictors.items():
                    log_joint = predictor.at_all(thetas[numbers]).log_probabilities
                    result[:, :, place] = bounded_log_probabilities(log_joint)
                return result

            return values, None

        return of_rows


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

"""A fitted stack, and the steps from a training table to its fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base import names
from bayesrbf.base.arrays import log_loss
from bayesrbf.base.log_posterior import OneByOne
from bayesrbf.base.missing_fraction import missing_fraction_of
from bayesrbf.base.priors import POOL_PRIOR, ClassPrediction, MixturePrior
from bayesrbf.base.records import Requirements, stored, within
from bayesrbf.base.rows import (
    MixtureSpecification,
    Observations,
    default_shape,
    joined_rows,
)
from bayesrbf.families.stack.intervals import (
    ErrorCoordinates,
    ErrorOfRows,
    PoolError,
    PoolErrorStage,
    error_coordinates,
    pool_error,
    training_levels,
)
from bayesrbf.families.stack.matrix_scaling import MatrixScaling, fit_matrix_scaling
from bayesrbf.families.stack.members import (
    EM_ITERATIONS,
    EM_STARTS,
    EM_TOL,
    MEMBERS,
    TREES,
    FittedMembers,
    OtherMember,
    SharedTraining,
    fit_members,
    fit_trees,
    recipe_of,
)
from bayesrbf.families.stack.missingness import Missingness
from bayesrbf.families.stack.posterior import (
    Pool,
    StackLogPosterior,
    fit_pools,
)
from bayesrbf.fit.chain import State
from bayesrbf.fit.held_out import HeldOut, Masking, NumberedFold, hold_out_folds
from bayesrbf.fit.label_noise import LabelNoise, fit_label_noise
from bayesrbf.fit.model import Axes, Description, FittedModel
from bayesrbf.fit.stages import Calibration
from bayesrbf.fit.table import TrainingTable
from bayesrbf.inference.draws import Draws
from bayesrbf.mixture.fitted import FittedMixture, Solver, component_class, fit_mixture_rows
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm


# A fitted stack: members, the pool of their class probabilities, and a density of the columns.


@stored
class FittedStack(FittedModel):
    """A fitted stack, with the posterior of the pool's weights and temperatures."""

    pools = True

    members: FittedMembers
    pool: Pool
    """Pool of rows with all cells."""
    held: HeldOut
    """Held-out predictions of the members."""
    companion: FittedMixture
    names: tuple[str, ...]
    """Names of the members."""
    knot_pools: tuple[Pool, ...]
    """Pools of rows with more and more cells masked: at the knots after the first."""
    prior: MixturePrior
    """Declared prior of the mixtures."""
    missingness: Missingness | None = None
    """Evidence of missing indicators about the class, for rows that come as in training; None
    without any."""
    message: str = ""
    """Message on the held-out gain in log score by missing indicators; empty where few cells were
    missing."""
    matrix_scaling: MatrixScaling | None = None
    """Matrix scaling after the pool; None for two classes, or without a held-out gain."""
    column_of: Int[np.ndarray, " cell"] | None = None
    """Column of every real, then of every code; None: each is a column, as in older files."""

    @property
    def density(self) -> FittedMixture:
        """The companion, on columns as they are."""
        return self.companion

    @property
    def n_scored(self) -> int:
        """Number of rows held out."""
        return int(self.held.labels.size)

    def missing_fraction(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Missing fraction of every row: the share of its columns without a cell."""
        n_cells = rows.real.shape[1] + rows.codes.shape[1]
        return missing_fraction_of(
            rows, np.arange(n_cells) if self.column_of is None else self.column_of
        )

    def labelled(self, rows: Observations) -> Bool[np.ndarray, " scored"]:
        """True: rows without a label are not held out."""
        return np.ones(self.n_scored, dtype=bool)

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point in nats."""
        return SeenByPool(self, rows).log_p

    def reported(
        self, log_q: Float[np.ndarray, "row label"], rows: Observations
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities given missing indicators, from log probabilities of the pool."""
        return log_q if self.missingness is None else self.missingness.reported(log_q, rows)

    def reported_held_out(
        self, log_q: Float[np.ndarray, "held label"]
    ) -> Float[np.ndarray, "held label"]:
        """Class log probabilities of unmasked held-out rows given missing indicators, likewise."""
        return log_q if self.missingness is None else self.missingness.reported_held_out(log_q)

    @property
    def evident_columns(self) -> tuple[int, ...]:
        """Positions of columns with evident missing indicators; empty if the exponent is 0."""
        if self.missingness is None or self.missingness.exponent == 0:
            return ()
        patterns = self.missingness.patterns
        return tuple(np.sort(patterns.columns[patterns.evident]).tolist())

    def familiarity(self, rows: Observations) -> Float[np.ndarray, " row"]:
        """Probability that cells are missing as in training; NaN without missing indicators."""
        if self.missingness is None:
            return np.full(rows.n_obs, np.nan)
        patterns = self.missingness.patterns
        return patterns.familiarity(patterns.indicators(rows))

    def pooled(
        self,
        values: Float[np.ndarray, "row member label"],
        missing_fraction: Float[np.ndarray, " row"],
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of the fitted pool, from log probabilities of its members."""
        return self.scaled(
            self.pool_posterior.pooled(values, missing_fraction, self.fitted_point),
            missing_fraction,
        )

    def scaled(
        self, log_q: Float[np.ndarray, "row label"], missing_fraction: Float[np.ndarray, " row"]
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities after the matrix scaling of pooled log probabilities."""
        if self.matrix_scaling is None:
            return log_q
        if self.held.missing_fractions is None:  # nothing is known by the missing fraction
            missing_fraction = np.zeros_like(missing_fraction)
        return self.matrix_scaling.scaled(log_q, missing_fraction)

    def chain_source(
        self,
        log_posterior: Callable[[], Any],
        rows: Observations,
        draws: Draws | None,
        temperature: float,
        missing_fraction: Callable[[Observations], np.ndarray],
    ) -> PoolSource:
        """Source of the chain of a class probability: the pool at its fitted point."""
        return PoolSource(self, (1, 1) if draws is None else draws.theta.shape[:2])

    def at_prior_power(self, power: float) -> FittedStack:
        """The stack, fitted to its held-out rows under a power of the prior of the pool."""
        return self.refitted(np.ones(self.n_scored, dtype=bool), power)

    def refitted(self, rows: Bool[np.ndarray, " obs"], prior_power: float = 1.0) -> FittedStack:
        """Copy with pools, matrix scaling and missing indicators fitted to the held-out ``rows``.

        The members stay. ``prior_power`` is the power of the pools' prior.
        """
        held = self.held.take(rows)
        pool, *knot_pools = fit_pools(held, prior_power)
        stack = replace(
            self, held=held, pool=pool, knot_pools=tuple(knot_pools), missingness=None
        ).with_matrix_scaling()
        if self.missingness is None:
            return stack
        with_evidence = self.missingness.exponent > 0
        missingness = self.missingness.take(rows).fitted(held, stack.held_out, with_evidence)
        return replace(stack, missingness=missingness)

    def with_matrix_scaling(self) -> FittedStack:
        """The stack with the matrix scaling fitted to held-out rows."""
        held, plain = self.held, replace(self, matrix_scaling=None)
        scaling = fit_matrix_scaling(plain.pooled(held.values, held.missing_fraction), held)
        return replace(plain, matrix_scaling=scaling)

    def error(self, n_draws: int, seed: int, rows: Observations) -> PoolErrorStage:
        """Stage that shifts the log probabilities of draws by the error of the pool."""
        return PoolErrorStage(cache(partial(self.pool_error, n_draws, seed, rows)))

    def error_coordinates(
        self,
        values: Float[np.ndarray, "row member label"],
        missing_fraction: Float[np.ndarray, " row"],
        report: Callable[[np.ndarray], np.ndarray] = lambda log_q: log_q,
    ) -> tuple[list[ErrorCoordinates], Float[np.ndarray, "row label"]]:
        """Coordinates of rows for the error, one for each class, and reported log probabilities.

        ``values`` are log probabilities by the members; ``report`` maps those of the pool to the
        reported ones.
        """
        at_point = self.pool_posterior.of_rows(missing_fraction, self.fitted_point)
        members = at_point.members(values)
        pool = self.scaled(at_point.pooled(members), missing_fraction)
        # Without copies of rows with cells masked a pool does not know that it knows nothing.
        known = (missing_fraction < 1) | (self.held.masked is None)
        log_p = report(pool)
        coordinates = error_coordinates(
            members,
            np.exp(pool),
            np.exp(log_p),
            missing_fraction,
            known,
            groups=self.member_groups,
            weights=self.pool.weights,
        )
        return coordinates, log_p

    def pool_error(self, n_draws: int, seed: int, rows: Observations) -> PoolError:
        """The error of the pool, given the labels of the rows held out and the training rows."""
        held = self.held
        values, missing_fraction = held.values, held.missing_fraction
        weights = held.weights * held.subject_weights
        if held.masked is not None and held.missing_fractions is not None:
            values = np.concatenate([values, held.masked.reshape(-1, *values.shape[1:])])
            missing_fraction = np.concatenate(
                [missing_fraction, held.missing_fractions[:, 1:].ravel()]
            )
            weights = np.append(weights, np.repeat(weights, held.masked.shape[1]))
        n = held.labels.size

        def report(log_q: np.ndarray) -> np.ndarray:
            # Of a cell that the package hides nobody knows whether it was measured.
            return np.concatenate([self.reported_held_out(log_q[:n]), log_q[n:]])

        coordinates, log_p = self.error_coordinates(values, missing_fraction, report)
        q = np.exp(log_p)
        information = weights[:, None] * q * (1 - q)
        information[:, held.never_held_out] = 0
        return pool_error(coordinates, information, n, training_levels(rows), n_draws, seed)

    def label_noise(self) -> LabelNoise:
        """Label noise by the labels of held-out rows and the pool's probabilities of these."""
        p = np.exp(self.held_out)
        of_labels = p[np.arange(self.held.labels.size), self.held.labels]
        return fit_label_noise(of_labels, self.held.weights, self.members.n_classes)

    def log_posterior(self, rows: Observations) -> StackLogPosterior:
        """The log posterior of weights and temperatures, given the rows held out."""
        return self.pool_posterior

    @cached_property
    def pool_posterior(self) -> StackLogPosterior:
        """Log posterior of the pool's parameters, given the held-out rows alone."""
        return StackLogPosterior(self.held)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        return self.fitted_point

    @cached_property
    def fitted_point(self) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        return self.pool_posterior.pack((self.pool, *self.knot_pools))

    @property
    def held_out(self) -> Float[np.ndarray, "obs label"]:
        """Reported class log probabilities of the rows held out, at the fitted point."""
        return self.reported_held_out(self.pooled(self.held.values, self.held.missing_fraction))

    def out_of_fold(self) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of held-out rows, by pools fitted to the rows of other folds."""
        held = self.held
        result = np.empty((self.n_scored, self.members.n_classes))
        for fold in np.unique(held.pool_folds):
            in_fold = held.pool_folds == fold
            stack = self.refitted(~in_fold)
            result[in_fold] = stack.pooled(held.values[in_fold], held.missing_fraction[in_fold])
            if stack.missingness is not None and self.missingness is not None:
                missingness = stack.missingness.with_rows_of(self.missingness.take(in_fold))
                result[in_fold] = missingness.reported_held_out(result[in_fold])
        return result

    @property
    def member_groups(self) -> Int[np.ndarray, " member"]:
        """Group of every member, as a number; every member of another library is a group."""
        groups = [recipe_of(name).group for name in self.members.names]
        groups += [f"extra {name}" for name in self.names[len(groups) :]]
        return np.unique(groups, return_inverse=True)[1]

    @property
    def calibration(self) -> Calibration:
        """Temperatures and exponents of the class shares in the pool, at the knots where known."""
        if self.held.masked is None:
            return Calibration(self.pool.temperature)
        pools = (self.pool, *self.knot_pools)
        temperatures, prior_exponents = np.array(
            [(pool.temperature, pool.prior_exponent) for pool in pools]
        ).T.copy()
        return Calibration(
            self.pool.temperature, temperatures, prior_exponents, self.held.log_shares
        )

    @property
    def log_density_at_point(self) -> float:
        """Log posterior density of the fitted weights and temperatures, without Jacobian."""
        return self.pool_posterior.value_and_gradient(self.fitted_point, jacobian=False)[0]

    def predictor(
        self, log_posterior: StackLogPosterior, rows: Observations, temperature: float = 1.0
    ) -> OneByOne:
        """Predictor of the rows at any weights and temperatures of the pool, members as fitted."""
        values, missing_fraction = self.members.log_probabilities(rows), self.missing_fraction(rows)
        density = self.companion.log_density(rows)
        return OneByOne(
            lambda theta: ClassPrediction(
                self.scaled(
                    log_posterior.pooled(values, missing_fraction, theta), missing_fraction
                ),
                density,
            )
        )

    def out_of_fold_table(self, training: TrainingTable) -> pd.DataFrame:
        """Class probabilities of the training rows that were held out, by their positions."""
        import pandas as pd

        p = np.exp(self.out_of_fold())
        assert training.copies is not None  # a stack knows where its rows were held out
        positions, held_positions = training.copies
        columns = pd.Index(training.class_labels, name=names.LABEL)
        return pd.DataFrame(p[held_positions], pd.Index(positions, name=names.OBS), columns)

    def relevance_table(self, columns: Columns) -> pd.DataFrame:
        """Relevance of every column in every member that learns its rates."""
        import pandas as pd

        learning = [
            member for member in self.members.fitted if MEMBERS[member.name].rates != "fixed"
        ]
        learned = {member.name: member.relevance for member in learning}
        index = pd.Index(columns.real_names + columns.categorical_names, name=names.COLUMN)
        values = np.reshape(list(learned.values()), (len(learned), len(index))).T
        return pd.DataFrame(values, index, pd.Index(list(learned), name=names.MEMBER))

    def member_table(self, seed: int) -> pd.DataFrame:
        """Weights, their posterior, temperatures and held-out losses in nats, member by member.

        The last line is the stack. Interval ends are quantiles at 5 % and 95 %.
        """
        import pandas as pd

        from bayesrbf.inference.laplace import laplace

        pool, log_posterior = self.pool, self.pool_posterior
        draws = laplace(log_posterior, self.fitted_point, draws=500, chains=1, random_state=seed)
        weights = log_posterior.constrained(draws.theta)[names.WEIGHTS]
        n_members = len(self.names)
        # Of the pools at the knots the first is for rows with all cells.
        weights = weights.reshape(-1, n_members * (1 + len(self.knot_pools)))[:, :n_members]
        return pd.DataFrame(
            {
                "weight": [*pool.weights, 1.0],
                "mean": [*weights.mean(axis=0), np.nan],
                "sd": [*weights.std(axis=0), np.nan],
                "lower": [*np.quantile(weights, 0.05, axis=0), np.nan],
                "upper": [*np.quantile(weights, 0.95, axis=0), np.nan],
                "temperature": [*pool.member_temperatures, pool.temperature],
                "log_loss": self._losses(),
            },
            index=pd.Index([*self.names, "stack"], name=names.MEMBER),
        )

    def _losses(self) -> list[float]:
        """Mean held-out log loss of every member and, last, of the stack; NaN without rows."""
        held_out = self.held
        if held_out.labels.size == 0:
            return [np.nan] * (len(self.names) + 1)
        at_point = self.pool_posterior.of_rows(self.held.missing_fraction, self.fitted_point)
        members = at_point.members(held_out.values)
        whole = np.exp(self.held_out)
        every = [*np.moveaxis(members, 1, 0), whole]
        return [
            float(np.average(log_loss(p, held_out.labels), weights=held_out.weights)) for p in every
        ]

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of weights and temperatures on the rows held out."""
        from bayesrbf.models.stack import declare_stack

        assert axes.classes is not None
        judged_rows = self.held.among_judged()
        return declare_stack(
            judged_rows.values,
            judged_rows.labels,
            judged_rows.ignorable_weights,
            member_names=self.names,
            class_names=axes.classes.tolist(),
            prior=POOL_PRIOR,
            masked=judged_rows.masked,
            missing_fractions=judged_rows.missing_fractions,
            log_shares=judged_rows.log_shares,
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Coordinates, labels and weights of the held-out rows, for the DataTree."""
        coords = {
            names.MEMBER: list(self.names),
            names.MISSING_FRACTION: list(POOL_PRIOR.knots),
            names.OBS: np.arange(self.held.labels.size),
            names.LABEL: axes.classes,
        }
        return Description(
            coords,
            {names.OBSERVED_LABEL: ((names.OBS,), self.held.labels)},
            {"row_weight": ((names.OBS,), self.held.weights)},
            names.OBSERVED_LABEL,
        )

    def __laws__(self) -> Requirements:
        n, n_classes = len(self.names), self.members.n_classes
        member_names = self.members.names
        yield member_names == self.names and len(set(member_names)) == n, "its members' names"
        yield self.pool.weights.size == n, "a weight of every member"
        yield self.held.values.shape[1:] == (n, n_classes), "held-out rows of its members"
        yield within(self.held.labels, 0, n_classes), "held-out rows of its classes"
        seen = self.companion.specification
        shape = seen.n_features, seen.levels, seen.n_classes
        yield shape == self.members.table_shape, "a companion of its columns"
        n_cells = seen.n_features + len(seen.levels)
        yield self.column_of is None or self.column_of.size == n_cells, "a column of every cell"
        if (scaling := self.matrix_scaling) is not None:
            yield scaling.offsets.size == n_classes, "a matrix of its classes"
        if (missingness := self.missingness) is not None:
            yield within(missingness.patterns.features, 0, n_cells), "indicators of its columns"
            held_out = missingness.evidence.shape == (self.n_scored, n_classes)
            yield held_out, "evidence about its held-out rows"


# The source of the chain of a class probability.


@dataclass(frozen=True)
class PoolSource:
    """Source of a chain: a stack at its fitted point, whose only draws are of the error."""

    pool: FittedStack
    shape: tuple[int, int]

    def on(self, rows: Observations) -> SeenByPool:
        """Look at some rows."""
        return SeenByPool(self.pool, rows)


@dataclass(frozen=True)
class SeenByPool:
    """Rows that the members of a stack have looked at.

    Rows held out are their indices in ``whole``: members predict them by the fits without their
    fold.
    """

    pool: FittedStack
    rows: Observations

    @cached_property
    def held(self) -> Int[np.ndarray, " obs"] | None:
        """Indices of rows held out."""
        return None if self.rows.whole is None else self.rows.whole[:, 0]

    @cached_property
    def missing_fraction(self) -> Float[np.ndarray, " obs"]:
        """Missing fraction of every row: the share of its columns without a cell."""
        if self.held is not None:
            return self.pool.held.missing_fraction[self.held]
        return self.pool.missing_fraction(self.rows)

    @cached_property
    def values(self) -> Float[np.ndarray, "obs member label"]:
        """Class log probabilities by every member."""
        return self.pool.members.log_probabilities(self.rows)

    def error_under(self, error: PoolError) -> ErrorOfRows:
        """Error of the pool; for held-out rows, given the labels of all other rows."""
        if self.held is None:
            report = partial(self.pool.reported, rows=self.rows)
            coordinates, _ = self.pool.error_coordinates(self.values, self.missing_fraction, report)
            return error.at(coordinates, self.rows.codes)
        held = self.pool.held
        copies = 0 if held.masked is None else held.masked.shape[1]
        of_copies = self.pool.n_scored + self.held[:, None] * copies + np.arange(copies)
        return error.left_out(np.column_stack([self.held, of_copies]), self.rows.codes)

    @cached_property
    def log_p(self) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of the pool."""
        if self.held is not None:
            return self.pool.held_out[self.held]
        return self.pool.reported(self.pool.pooled(self.values, self.missing_fraction), self.rows)

    @cached_property
    def log_density(self) -> Float[np.ndarray, " obs"]:
        """Log density of the cells; 0 of rows held out."""
        if self.held is not None:
            return np.zeros(self.rows.n_obs)
        return self.pool.companion.log_density(self.rows)

    def state(self, draws: Int[np.ndarray, " draw"] | None) -> State:
        """Log probabilities of the pool at its fitted point, the same under every draw."""
        if draws is None:
            return State(self.log_p[None])
        log_p = np.broadcast_to(self.log_p, (draws.size, *self.log_p.shape))
        return State(log_p, np.broadcast_to(self.log_density, log_p.shape[:2]))


# How a stack is fitted: members held out fold by fold, and all of them to all rows.


MIN_WEIGHT: Final = 0.05
"""Weight in the pool of the first fold from which a member on trial stays. Boosting had .1 and more
on the tables that lose without it, and .045 at most on the others."""
Answer = tuple[Float[np.ndarray, "row member label"], Sequence[Observations]]
"""Predictions of rows held out, and the versions of these rows."""
DENSITY_COMPONENTS = 3
"""Components that a class of the stack's density has at most."""


@dataclass(frozen=True)
class StackSettings:
    """Settings of the fits of every fold and of the whole table."""

    members: tuple[str, ...]
    """Names of own members, trees last."""
    extra: tuple[OtherMember, ...]
    """Members of other libraries, not fitted."""
    levels: tuple[int, ...]
    n_classes: int
    prior: MixturePrior
    seed: int
    """Seed of starts and exemplars."""
    masking: Masking | None = None
    """Copies of held-out rows with cells masked; None: no copies."""
    missingness: Literal["cv", "ignorable", "informative"] = "ignorable"
    """Whether missing indicators may tell of the label."""
    on_trial: tuple[str, ...] = ()
    """Members that leave if the first fold gives them little weight."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all members."""
        return self.members + tuple(member.name for member in self.extra)

    @property
    def smooth(self) -> tuple[str, ...]:
        """Names of the own members that are no trees."""
        return tuple(name for name in self.members if name not in TREES)

    def training(
        self,
        rows: Observations,
        seed: int,
    ) -> SharedTraining:
        """Training rows, and the transforms, layers and mixtures that members share."""
        return SharedTraining(rows, self.levels, self.n_classes, self.prior, self.seed + seed)

    def fit(self, training: SharedTraining) -> FittedMembers:
        """Members of every kind, fitted to the training rows."""
        extra = tuple(member.fit(training.rows) for member in self.extra)
        trees = [name for name in self.members if name in TREES]
        return FittedMembers(
            fit_members(training, self.smooth),
            extra,
            self.n_classes,
            fit_trees(training.rows, trees, self.n_classes, training.seed),
        )

    def without(self, names: Sequence[str]) -> StackSettings:
        """The settings without some own members."""
        return replace(self, members=tuple(name for name in self.members if name not in names))

    def fit_density(self, rows: Observations) -> FittedMixture:
        """Fit the density of the untransformed columns: up to three Gaussians a class."""
        components = component_class(rows, self.n_classes, DENSITY_COMPONENTS)
        d = rows.real.shape[1]
        specification = MixtureSpecification(d, self.levels, components, default_shape(d))
        return fit_mixture_rows(rows, specification, self.prior, self.solver)[0]

    @property
    def solver(self) -> Solver:
        """Settings of EM for the density and the indicators of missing cells."""
        return Solver(EM_STARTS, EM_ITERATIONS, EM_TOL, self.seed)

    def hold_out(self, numbered: NumberedFold) -> Answer:
        """Log probabilities (row, member, label) of held-out rows of a fold, and their versions.

        Versions are the rows as they are and, if all members take missing cells, copies with cells
        masked. The log probabilities are of all versions, one after another.
        """
        fold, train, test = numbered
        members = self.fit(self.training(train, fold + 1)).condensed
        masking, versions = self.masking, [test]
        if masking is not None and self._takes_missing(members, test):
            versions = masking.versions(fold, train, test)
        return members.log_probabilities(joined_rows(versions)), versions

    def _takes_missing(self, members: FittedMembers, rows: Observations) -> bool:
        """Whether members of other libraries predict rows with missing cells."""
        if not self.extra:
            return True
        row = rows.take(np.arange(min(1, rows.n_obs)))
        try:
            members.log_probabilities(
                replace(row, real=np.full_like(row.real, np.nan), codes=np.full_like(row.codes, -1))
            )
        except (TypeError, ValueError):
            return False
        return True

    def hold_out_folds(
        self, folds: Sequence[NumberedFold], n_jobs: int | None, first: Answer | None = None
    ) -> HeldOut | None:
        """Predictions of the members for the rows held out in all folds; ``first`` are known.

        None where no row could be held out. ``n_jobs`` processes share the folds. Where a member of
        another library takes no missing cells, rows are predicted as they are alone.
        """
        answer = self.hold_out if first is None else partial(self._known_first, folds[0][0], first)
        return hold_out_folds(folds, answer, self.n_classes, n_jobs, self.masking)

    def _known_first(self, number: int, first: Answer, fold: NumberedFold) -> Answer:
        """Predictions of a fold; known ones for the fold with this number."""
        return first if fold[0] == number else self.hold_out(fold)

    def hold_out_in_turn(
        self, folds: Sequence[NumberedFold], n_jobs: int | None
    ) -> tuple[StackSettings, HeldOut | None, str]:
        """Settings, held-out predictions of all folds, and a message on members that left.

        A member on trial leaves after the first fold if its weight there is below the minimum.
        """
        trial = [index for index, name in enumerate(self.names) if name in self.on_trial]
        if not trial or len(folds) < 2:
            return self, self.hold_out_folds(folds, n_jobs), ""
        values, versions = self.hold_out(folds[0])
        first_fold = self.hold_out_folds(folds[:1], None, (values, versions))
        assert first_fold is not None  # a fold
        weights = fit_pools(first_fold)[0].weights
        useless = [index for index in trial if weights[index] < MIN_WEIGHT]
        left = [self.names[index] for index in useless]
        settings = self.without(left)
        values = np.delete(values, useless, axis=1)
        held_out = settings.hold_out_folds(folds, n_jobs, (values, versions))
        message = f"The first fold gave {' and '.join(left)} little weight, so it is no member."
        return settings, held_out, message if left else ""


def stack_of(
    members: FittedMembers,
    rows: Observations,
    settings: StackSettings,
    pools: Sequence[Pool],
    held_out: HeldOut,
    column_of: Int[np.ndarray, " cell"],
) -> FittedStack:
    """Members and pools as a stack, with the density of the distinct rows.

    Of members only what predicts is kept, with the digits of single precision: what they predict
    moves in its seventh digit.
    """
    pool, *knot_pools = pools
    return FittedStack(
        members.condensed.rounded,
        pool,
        held_out,
        settings.fit_density(rows),
        settings.names,
        tuple(knot_pools),
        settings.prior,
        column_of=column_of,
    ).with_matrix_scaling()

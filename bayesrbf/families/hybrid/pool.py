"""Densities chosen by cells held out, and a pool of several, which is a mixture again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.base.priors import Fit, MixturePrior
from bayesrbf.base.records import ANY_NUMBER, stored
from bayesrbf.base.rows import (
    CovarianceType,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    joined_points,
)
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.hybrid.selection import SHAPES
from bayesrbf.fit.calibration import Selection
from bayesrbf.fit.held_out import Fold, HeldOut, hold_out, split_rows
from bayesrbf.mixture.cells import trimmed
from bayesrbf.mixture.fitted import (
    ROWS_PER_COMPONENT,
    ColumnMaps,
    FittedMixture,
    Solver,
    fit_mixture_rows,
)
from bayesrbf.mixture.laws import laws_of
from bayesrbf.table.columns import Columns
from bayesrbf.table.order import distinct_rows

# A pool of densities: fits of several candidates side by side, which is a mixture again.
#
# .. math:: p(x) = \sum_m s_m \sum_k w_{mk} \, p_{mk}(x), \quad
#    s = \operatorname*{arg\,max}_s \sum_i v_i \log \sum_m s_m \, p_m(x_i)
#
# The rows i of the second sum are held out of the fits, and v are their weights (stacking of
# densities; Smyth and Wolpert, 1999): :func:`stacking_shares`.


Refit = Callable[[int, Observations, int], FittedMixture]
"""Fit a candidate, by its place, to weighted rows, from starts of a seed."""


def members(shares: Float[np.ndarray, " candidate"], size: int) -> list[tuple[int, float]]:
    """Candidate and share of every fit of a pool of about so many; each has one fit at least.

    >>> members(np.array([0.75, 0.0, 0.25]), 4)
    [(0, 0.25), (0, 0.25), (0, 0.25), (2, 0.25)]
    """
    fits = np.where(shares > 0, np.maximum(np.round(size * shares), 1), 0).astype(int)
    return [(m, float(shares[m] / n)) for m, n in enumerate(fits) for _ in range(n)]


def pooled(
    alone: FittedMixture,
    rows: Observations,
    shares: Float[np.ndarray, " candidate"],
    size: int,
    refit: Refit,
    seed: int,
) -> FittedMixture:
    """Fits to rows of random weights, side by side behind the maps and in the units of one.

    A row that stands for v rows has a weight of Gamma(v), as in the Bayesian bootstrap.
    """
    rng = np.random.default_rng(seed)
    mapped, tasks = alone.mapped(rows), []
    for number, (place, share) in enumerate(members(shares, size)):
        weights = rng.standard_gamma(rows.weights)
        weights *= rows.weights.sum() / weights.sum()
        tasks.append((share, place, weights, seed + number))

    def fitted(
        task: tuple[float, int, Float[np.ndarray, " obs"], int],
    ) -> tuple[float, FittedMixture]:
        share, place, own, seed = task
        return share, refit(place, replace(mapped, weights=own), seed)

    return side_by_side(alone, run_tasks(fitted, tasks, "Fits"))


def side_by_side(
    alone: FittedMixture, parts: Sequence[tuple[float, FittedMixture]]
) -> FittedMixture:
    """The components of several densities, in the units and behind the maps of another."""
    points = [mixture.start.standardised(alone.units) for _, mixture in parts]
    shapes = {mixture.specification.shape for _, mixture in parts}
    specification = replace(
        alone.specification,
        component_class=(0,) * sum(mixture.specification.n_components for _, mixture in parts),
        covariance_type="full" if len(shapes) > 1 else shapes.pop(),
    )
    own = [
        replace(
            point,
            weights=share * point.weights,
            precisions_cholesky=_own(point, mixture.specification, specification),
        )
        for (share, mixture), point in zip(parts, points, strict=True)
    ]
    return replace(alone, specification=specification, parameters=joined_points(own))


def _own(
    point: MixtureParameters, own: MixtureSpecification, joint: MixtureSpecification
) -> Float[np.ndarray, "component *feature"]:
    """A factor of the precisions for every component, whole where the joint ones are."""
    roots = point.precisions_cholesky[own.covariance_group]
    if joint.shape == own.shape:
        return roots
    return laws_of(joint).reals.of_diagonal(laws_of(own).reals.diagonal(roots))


# Components, covariances and strength of the prior by the density of cells held out.


N_FOLDS: Final = 3
N_COMPONENTS: Final = (1, 2, 3, 5, 8, 12)
STRENGTHS: Final = (1.0, 0.3, 0.1, 0.02)
"""Parts of the default strength of the covariance prior: where columns are nearly functions of
each other, the default is far too strong."""
FIRST: Final = 3
"""Components with which shapes and strengths are compared first."""
MOST_SELECTION_ROWS: Final = 2000
"""Rows that the choice looks at; it costs some forty fits to them."""
TOLERANCE, ITERATIONS, STARTS = 1e-4, 100, 2


@dataclass(frozen=True)
class DensityOptions:
    """What a density leaves to the rows held out; an entry each where that is nothing."""

    n_components: tuple[int, ...] = (1,)
    covariance_type: tuple[CovarianceType, ...] = ("full",)
    strength: tuple[float, ...] = (1.0,)

    @classmethod
    def of(
        cls,
        n_components: int | Literal["cv"],
        covariance_type: CovarianceType | Literal["cv"],
        any_strength: bool,
    ) -> DensityOptions:
        """What arguments leave open."""
        return cls(
            N_COMPONENTS if n_components == "cv" else (n_components,),
            SHAPES if covariance_type == "cv" else (covariance_type,),
            STRENGTHS if any_strength else (1.0,),
        )

    @property
    def first(self) -> DensityCandidate:
        """The candidate with which the comparison begins, not judged yet."""
        k = FIRST if FIRST in self.n_components else self.n_components[0]
        shape, strength = self.covariance_type[0], self.strength[0]
        return DensityCandidate(k, shape, strength, NOT_JUDGED)

    @property
    def axes(self) -> tuple[Sequence[Change], ...]:
        """Changes of shape, of strength and of the number of components, in the order of trial."""
        return (
            [partial(replace, covariance_type=shape) for shape in self.covariance_type],
            [partial(replace, strength=strength) for strength in self.strength],
            [partial(replace, n_components=k) for k in self.n_components],
        )

    @property
    def are_one(self) -> bool:
        """Whether there is nothing to choose."""
        return all(len(changes) == 1 for changes in self.axes)

    def for_rows(self, rows: Observations) -> DensityOptions:
        """What such rows can bear: few rows few components, and no reals no covariances."""
        most = max(1, rows.n_obs * (N_FOLDS - 1) // (N_FOLDS * ROWS_PER_COMPONENT))
        reals = None if rows.real.shape[1] else 1
        return replace(
            self,
            n_components=tuple(
                k for k in self.n_components if k <= most or len(self.n_components) == 1
            ),
            covariance_type=self.covariance_type[:reals],
            strength=self.strength[:reals],
        )


@stored
class DensityCandidate:
    """One density that was judged."""

    n_components: int
    covariance_type: CovarianceType
    strength: float
    """Part of the default strength of the covariance prior."""
    log_density: float = field(metadata=ANY_NUMBER)
    """Of a held-out row, in nats and in the units of the table; NaN if nothing was compared."""
    share: float = 0.0
    """What part of a pool its fits are; 0 without a pool."""

    def specification(self, n_features: int, levels: tuple[int, ...]) -> MixtureSpecification:
        """Structure of the density."""
        classes = (0,) * self.n_components
        return MixtureSpecification(
            n_features,
            levels,
            classes,
            self.covariance_type,
        )


NOT_JUDGED: Final = -np.inf
"""The log density of a candidate that is still to be judged: unlike NaN it is equal to itself."""
ALONE: Final = DensityCandidate(1, "full", 1.0, np.nan)


Change = Callable[[DensityCandidate], DensityCandidate]
"""Makes a candidate of another one."""


@dataclass(frozen=True)
class Settings:
    """How a density is found."""

    prior: MixturePrior
    options: DensityOptions
    solver: Solver
    column_maps: ColumnMaps
    trim: bool
    """Whether cells that look wrong are left out."""
    pool: int | None = None
    """Number of fits side by side."""


@dataclass(frozen=True)
class FoundDensity:
    """A density, and what was compared on the way to it."""

    rows: Observations
    """Those it was fitted to, in the user's units, less the cells that were left out."""
    model: FittedMixture
    fit: Fit
    candidates: tuple[DensityCandidate, ...]


def find_density(rows: Observations, columns: Columns, settings: Settings) -> FoundDensity:
    """Choose what was left open, and fit: twice more before, where odd cells are left out.

    They are judged by one component first, which explains no error, then by the density that is
    chosen without them. A pool stands beside the last fit, behind its maps.
    """

    def fitted(some: Observations, one: DensityCandidate) -> tuple[FittedMixture, Fit]:
        structure = one.specification(some.real.shape[1], columns.n_levels)
        prior = settings.prior.weakened(one.strength, structure)
        return fit_mixture_rows(  # nothing here holds the distinct rows: they are let go in there
            distinct_rows(some), structure, prior, settings.solver, None, settings.column_maps
        )

    kept = rows
    if settings.trim:
        kept = trimmed(rows, fitted(rows, ALONE)[0], columns)
    candidates = choose_density(kept, columns.n_levels, settings)
    if settings.trim:
        kept = trimmed(rows, fitted(kept, candidates[0])[0], columns)
    alone, fit = fitted(kept, candidates[0])
    if settings.pool is None:
        return FoundDensity(kept, alone, fit, candidates)

    def refit(place: int, some: Observations, seed: int) -> FittedMixture:
        structure = candidates[place].specification(some.real.shape[1], columns.n_levels)
        prior = settings.prior.weakened(candidates[place].strength, structure)
        solver = replace(settings.solver, n_init=1, seed=seed)
        return fit_mixture_rows(some, structure, prior, solver)[0]

    shares = np.array([one.share for one in candidates])
    once, seed = distinct_rows(kept), settings.solver.seed
    model = pooled(alone, once, shares, settings.pool, refit, seed)
    return FoundDensity(kept, model, replace(fit, parameters=model.parameters), candidates)


def choose_density(
    rows: Observations, levels: tuple[int, ...], settings: Settings
) -> tuple[DensityCandidate, ...]:
    """Every candidate that was judged, the best one first; weighted rows need not be distinct."""
    seed, options = settings.solver.seed, settings.options
    folds: list[Fold] = []
    if not options.are_one:
        some = distinct_rows(rows)
        if some.n_obs > MOST_SELECTION_ROWS:
            chosen = np.random.default_rng(seed).permutation(some.n_obs)[:MOST_SELECTION_ROWS]
            some = some.take(np.sort(chosen))
        options = options.for_rows(some)
        folds = list(split_rows(N_FOLDS, some, np.arange(some.n_obs), seed))
    if not folds or options.are_one:
        return (replace(options.first, log_density=np.nan, share=1.0),)
    solver = Solver(STARTS, ITERATIONS, TOLERANCE, seed)

    def judge(candidates: Sequence[DensityCandidate]) -> HeldOut:
        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            densities = []
            for one in candidates:
                structure = one.specification(rows.real.shape[1], levels)
                prior = settings.prior.weakened(one.strength, structure)
                maps = settings.column_maps
                mixture, _ = fit_mixture_rows(train, structure, prior, solver, None, maps)
                densities.append(mixture.log_density(test))
            return np.stack(densities, axis=1)

        scores = hold_out(folds, predict, None)
        assert scores is not None  # every fold holds a row out
        return scores

    selection = ascend(options.first, options.axes, judge)
    shares = np.zeros(len(selection.candidates))
    order = np.argsort(-selection.scores, kind="stable")
    if settings.pool is not None:
        shares[order] = stacking_shares(selection.row_scores[order], selection.weights)
    return tuple(
        replace(
            selection.candidates[place],
            log_density=float(selection.scores[place]),
            share=float(shares[place]),
        )
        for place in order.tolist()
    )


def ascend(
    first: DensityCandidate,
    axes: Sequence[Sequence[Change]],
    judge: Callable[[Sequence[DensityCandidate]], HeldOut],
) -> Selection[DensityCandidate]:
    """Vary one field at a time, the others as they are best so far, until no change is better."""
    first_scores = judge((first,))
    judged = {first: first_scores.values[:, 0]}
    best, before = first, None
    while best != before:
        before = best
        for changes in axes:
            line = tuple(change(best) for change in changes)
            new = [one for one in line if one not in judged]
            judged |= zip(new, judge(new).values.T, strict=True) if new else ()
            best = Selection(
                line, np.array([judged[one] for one in line]), first_scores.weights
            ).chosen
    return Selection(tuple(judged), np.array([*judged.values()]), first_scores.weights)


LEAST_SHARE: Final = 0.03
"""Densities with less of a pool of densities are left out of it."""
DENSITY_STEPS: Final = 200
"""Iterations of EM for the shares of densities."""


def stacking_shares(
    log_density: Float[np.ndarray, "density obs"], weights: Float[np.ndarray, " obs"]
) -> Float[np.ndarray, " density"]:
    r"""Shares of a linear pool of densities by EM, without a prior; small ones are 0.

    .. math:: s_m \leftarrow \frac{\sum_n v_n r_{mn}}{\sum_n v_n}, \quad
        r_{mn} = \frac{s_m p_m(x_n)}{\sum_i s_i p_i(x_n)}

    ``log_density`` is that of held-out rows.

    >>> stacking_shares(np.log([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]]), np.ones(3)).round(2)
    array([0.71, 0.29])
    """
    shares = np.full(len(log_density), 1 / len(log_density))
    for _ in range(DENSITY_STEPS):
        with np.errstate(divide="ignore"):
            # In logs: densities of one row can be hundreds of nats apart.
            responsibilities = softmax(np.log(shares)[:, None] + log_density, axis=0)
        shares = responsibilities @ weights / weights.sum()
    # The largest stays, even where all are small.
    shares = np.where(shares < min(LEAST_SHARE, shares.max()), 0.0, shares)
    return shares / shares.sum()

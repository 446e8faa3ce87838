"""Components, covariances and strength of the prior by the held-out density of the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.mixture.density_pool import pooled, stacking_shares
from bayesrbf.fitted.completed_rows import trimmed
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.folds import Fold, split_rows
from bayesrbf.fitted.mixture_fitting import ColumnMaps, Solver, fit_mixture_rows
from bayesrbf.inference.progress import progress
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import (
    CovarianceType,
    FurtherColumns,
    MixtureSpecification,
)
from bayesrbf.table import Columns, distinct_rows, further_laws

N_FOLDS: Final = 3
N_COMPONENTS: Final = (1, 2, 3, 5, 8, 12)
SHAPES: Final[tuple[CovarianceType, ...]] = ("full", "diag")
STRENGTHS: Final = (1.0, 0.3, 0.1, 0.02)
"""Parts of the default strength of the covariance prior: where columns are nearly functions of
each other, the default is far too strong."""
FIRST: Final = 3
"""Components with which shapes and strengths are compared first."""
ROWS_PER_COMPONENT: Final = 8
MOST_ROWS: Final = 2000
"""Rows that the choice looks at; it costs some forty fits to them."""
TOLERANCE, ITERATIONS, STARTS = 1e-4, 100, 2


@dataclass(frozen=True)
class Asked:
    """What the arguments of a density leave to the held-out rows."""

    n_components: int | Literal["auto"]
    covariance_type: CovarianceType | Literal["auto"]
    any_strength: bool
    n_factors: int = 0
    """Of ``"factor"`` covariances, 0 for others."""

    def options(
        self, most: int, has_reals: bool
    ) -> tuple[Sequence[CovarianceType], Sequence[float], Sequence[int]]:
        """Shapes, strengths and numbers of components to compare; at most so many components."""
        shapes = SHAPES if self.covariance_type == "auto" else (self.covariance_type,)
        strengths = STRENGTHS if self.any_strength else (1.0,)
        counts = [k for k in N_COMPONENTS if k <= most]
        return (
            shapes if has_reals else shapes[:1],
            strengths if has_reals else (1.0,),
            counts if self.n_components == "auto" else (self.n_components,),
        )


@dataclass(frozen=True)
class DensityCandidate:
    """One density that was judged."""

    n_components: int
    covariance_type: CovarianceType
    strength: float
    """Part of the default strength of the covariance prior."""
    log_density: float
    """Of a held-out row, in nats and in the units of the table; NaN if nothing was compared."""
    n_factors: int = 0
    """Of ``"factor"`` covariances, 0 for others."""
    share: float = 0.0
    """What part of a pool its fits are; 0 without a pool."""

    def specification(
        self, n_features: int, levels: tuple[int, ...], further: tuple[FurtherColumns, ...]
    ) -> MixtureSpecification:
        """Structure of the density."""
        classes = (0,) * self.n_components
        return MixtureSpecification(
            n_features,
            levels,
            classes,
            self.covariance_type,
            further=further,
            n_factors=self.n_factors,
        )


ALONE: Final = DensityCandidate(1, "full", 1.0, np.nan)


@dataclass(frozen=True)
class Settings:
    """How a density is found."""

    prior: MixturePrior
    asked: Asked
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


def find_density(
    rows: Observations,
    columns: Columns,
    settings: Settings,
    start: Callable[[MixtureSpecification], MixtureParameters | None],
) -> FoundDensity:
    """Choose what was left open, and fit: twice more before, where odd cells are left out.

    They are judged by one component first, which explains no error, then by the density that is
    chosen without them. The start is that of the last fit. A pool stands beside that fit, behind
    its maps.
    """
    further = further_laws(columns, rows)

    def fitted(some: Observations, one: DensityCandidate, *, last: bool) -> tuple[Any, Fit]:
        structure = one.specification(some.real.shape[1], columns.n_levels, further)
        prior = settings.prior.weakened(one.strength, structure)
        begin = start(structure) if last else None
        return fit_mixture_rows(  # nothing here holds the distinct rows: they are let go in there
            distinct_rows(some), structure, prior, settings.solver, begin, settings.column_maps
        )

    kept = rows
    if settings.trim:
        kept = trimmed(rows, fitted(rows, ALONE, last=False)[0], columns)
    candidates = choose_density(kept, columns.n_levels, settings, further)
    if settings.trim:
        kept = trimmed(rows, fitted(kept, candidates[0], last=False)[0], columns)
    alone, fit = fitted(kept, candidates[0], last=True)
    if settings.pool is None:
        return FoundDensity(kept, alone, fit, candidates)

    def refit(place: int, some: Observations, seed: int) -> FittedMixture:
        structure = candidates[place].specification(some.real.shape[1], columns.n_levels, further)
        prior = settings.prior.weakened(candidates[place].strength, structure)
        solver = replace(settings.solver, n_init=1, seed=seed)
        return fit_mixture_rows(some, structure, prior, solver)[0]

    shares = np.array([one.share for one in candidates])
    once, seed = distinct_rows(kept), settings.solver.seed
    model = pooled(alone, once, shares, settings.pool, refit, seed)
    return FoundDensity(kept, model, replace(fit, parameters=model.parameters), candidates)


def choose_density(
    rows: Observations,
    levels: tuple[int, ...],
    settings: Settings,
    further: tuple[FurtherColumns, ...],
) -> tuple[DensityCandidate, ...]:
    """Every candidate that was judged, the best one first; weighted rows need not be distinct.

    One of the three is varied at a time, the others as they are best so far, until none changes.
    """
    seed, asked = settings.solver.seed, settings.asked
    k, shape = asked.n_components, asked.covariance_type
    if k != "auto" and shape != "auto" and not asked.any_strength:
        return (DensityCandidate(k, shape, 1.0, np.nan, asked.n_factors, 1.0),)
    some = distinct_rows(rows)
    if some.n_obs > MOST_ROWS:
        chosen = np.random.default_rng(seed).permutation(some.n_obs)[:MOST_ROWS]
        some = some.take(np.sort(chosen))
    most = max(1, some.n_obs * (N_FOLDS - 1) // (N_FOLDS * ROWS_PER_COMPONENT))
    shapes, strengths, counts = asked.options(most, rows.real.shape[1] > 0)
    first = (shapes[0], strengths[0], FIRST if FIRST in counts else counts[0])
    folds = list(split_rows(N_FOLDS, some, np.arange(some.n_obs), seed))
    if not folds or len(counts) == len(shapes) == len(strengths) == 1:
        return (DensityCandidate(first[2], first[0], first[1], np.nan, asked.n_factors, 1.0),)
    solver = Solver(STARTS, ITERATIONS, TOLERANCE, "squarem", seed)
    weights = np.concatenate([test.weights for _, test in folds])
    held_out: dict[DensityCandidate, Float[np.ndarray, " obs"]] = {}

    def judge(shape: CovarianceType, strength: float, k: int) -> DensityCandidate:
        candidate = DensityCandidate(k, shape, strength, np.nan, asked.n_factors)
        structure = candidate.specification(rows.real.shape[1], levels, further)
        declared = settings.prior.weakened(strength, structure)
        scores = _held_out(folds, structure, declared, solver, settings.column_maps)
        judged = replace(candidate, log_density=float(weights @ scores / weights.sum()))
        held_out[judged] = scores
        return judged

    _ascend(first, [shapes, strengths, counts], judge)
    found = sorted(held_out, key=lambda one: -one.log_density)
    if settings.pool is None:
        return tuple(found)
    shares = stacking_shares(np.array([held_out[one] for one in found]), weights).tolist()
    return tuple(replace(one, share=share) for one, share in zip(found, shares, strict=True))


def _ascend(
    first: tuple[Any, ...],
    options: Sequence[Sequence[Any]],
    judge: Callable[..., DensityCandidate],
) -> None:
    """Judge one change after another, up to a place that no change of one entry betters."""
    judged: dict[tuple[Any, ...], DensityCandidate] = {}
    best, before = first, None
    with progress(False) as track:
        while best != before:
            before = best
            for axis, values in enumerate(options):
                line = [(*best[:axis], value, *best[axis + 1 :]) for value in values]
                new = [place for place in line if place not in judged]
                judged |= {place: judge(*place) for place in track(new, "Comparing densities")}
                best = max(line, key=lambda place: judged[place].log_density)


def _held_out(
    folds: Sequence[Fold],
    specification: MixtureSpecification,
    prior: MixturePrior,
    solver: Solver,
    column_maps: ColumnMaps,
) -> Float[np.ndarray, " obs"]:
    """Log densities of the rows held out, fold after fold, in nats."""
    found = []
    for train, test in folds:
        mixture, _ = fit_mixture_rows(train, specification, prior, solver, None, column_maps)
        found.append(mixture.log_density(test))
    return np.concatenate(found)

"""What the model learned: which columns matter, how the classes differ, what it fills in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import rel_entr
from scipy.stats import norm

from bayesrbf import names
from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.parameters import Observations
from bayesrbf.posterior.cells import LeftOut
from bayesrbf.posterior.temperature import tempered
from bayesrbf.report.doubts import component_names
from bayesrbf.report.job import Job
from bayesrbf.report.model_records import Density, Learned
from bayesrbf.report.row_records import Filled, Imputations
from bayesrbf.report.words import number, percent
from bayesrbf.table import encode

MOST_ROWS = 2_000
BARS, DENSITIES, MEANS = 15, 6, 12
GRID = 121
NOMINAL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
DRAWS = 100
"""Completed tables behind the intervals of missing cells."""
EXAMPLES = 12


def read_learned(
    job: Job, model: HybridMixtureClassifier, refined: HybridMixtureClassifier
) -> Learned:
    """Contributions, densities and means.

    Parameters
    ----------
    job : Job
        The table.
    model : HybridMixtureClassifier
        The fitted point.
    refined : HybridMixtureClassifier
        The same with a posterior.

    Returns
    -------
    Learned
        Columns in the order of what they contribute.
    """
    added = contributions(job, model)
    leading = [name for name, _ in added]
    structure, parameters = model._mixture.specification, model._mixture.parameters
    shares = parameters.class_probabilities[list(structure.component_class)] * parameters.weights
    return Learned(
        contributions=tuple(added[:BARS]),
        densities=tuple(_density(job, model, name) for name in leading[:DENSITIES]),
        component_names=component_names(model),
        weights=tuple(map(float, shares)),
        means=_means(model, refined, leading),
    )


def contributions(job: Job, model: HybridMixtureClassifier) -> list[tuple[str, float]]:
    """What each column adds to the others: mean Kullback-Leibler divergence.

    ``mean_n KL(p(y | x_n) || p(y | x_n without column j))``: leaving a column out is exact,
    its cells are summed out. 0 in rows where the cell is missing anyway.

    Parameters
    ----------
    job : Job
        The table.
    model : HybridMixtureClassifier
        The fitted point.

    Returns
    -------
    list of (str, float)
        Column and nats, largest first.
    """
    step = -(-len(job.X) // MOST_ROWS)
    table = encode(job.X.iloc[::step], model._columns)
    n_rows = len(table.real)
    rows = Observations(table.real, table.codes, np.full(n_rows, -1), np.ones(n_rows))
    columns = model._columns

    def probabilities(seen: Observations) -> Float[np.ndarray, "obs label"]:
        return np.exp(tempered(model._mixture.class_log_joint(seen), model.temperature_))

    everything = probabilities(rows)
    found = []
    for kind, positions in (
        ("real", columns.real_positions),
        ("codes", columns.categorical_positions),
    ):
        for place, position in enumerate(positions):
            if position in columns.empty:
                continue  # it has nothing to add, and no range to draw
            cells = getattr(rows, kind).copy()
            cells[:, place] = np.nan if kind == "real" else -1
            without = probabilities(replace(rows, **{kind: cells}))
            gained = rel_entr(everything, np.maximum(without, 1e-300)).sum(1).mean()
            found.append((columns.names[position], float(max(gained, 0.0))))
    return sorted(found, key=lambda pair: -pair[1])


def _density(job: Job, model: HybridMixtureClassifier, name: str) -> Density:
    """Marginal distribution of one column in every class."""
    columns, parameters = model._columns, model._mixture.parameters
    structure = model._mixture.specification
    position = columns.names.index(name)
    if columns.kinds[position] == "categorical":
        place = columns.categorical_positions.index(position)
        theta = parameters.category_probabilities[place]
        of_class = [parameters.weights[s] @ theta[s] for s in structure.class_slices]
        levels = tuple(map(str, columns.levels[place]))
        return Density(
            name, "categorical", np.arange(len(levels)) + 0.0, levels, np.stack(of_class)
        )
    place = columns.real_positions.index(position)
    location = float(model._mixture.units.location[place])
    scale = float(model._mixture.units.scale[place])
    seen = job.X[name].to_numpy(dtype=float)
    low, high = np.nanquantile(seen, [0.005, 0.995])
    grid = np.linspace(low, high if high > low else low + scale, GRID)
    sd = np.sqrt(parameters.covariances()[structure.covariance_group, place, place])
    each = norm.pdf(((grid - location) / scale)[:, None], parameters.means[:, place], sd) / scale
    curves = [each[:, s] @ parameters.weights[s] for s in structure.class_slices]
    return Density(name, "real", grid, (), np.stack(curves))


def _means(
    model: HybridMixtureClassifier, refined: HybridMixtureClassifier, leading: list[str]
) -> tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]:
    """Component means of the leading real columns, with posterior standard deviations."""
    mixture = model._mixture
    means = mixture.parameters.in_units(mixture.units).means
    if means.shape[1] == 0:
        return ()
    drawn = refined.posterior_[names.POSTERIOR][names.MEANS].to_numpy()
    single = drawn.shape[0] * drawn.shape[1] == 1
    spread = np.full(means.shape, np.nan) if single else drawn.std(axis=(0, 1))
    reals = list(model._columns.real_names)
    chosen = [name for name in leading if name in reals][:MEANS]
    return tuple(
        (
            name,
            tuple(map(float, means[:, reals.index(name)])),
            tuple(map(float, spread[:, reals.index(name)])),
        )
        for name in chosen
    )


def read_imputations(job: Job, refined: HybridMixtureClassifier, cells: LeftOut) -> Imputations:
    """Missing cells with intervals, and whether such intervals can be trusted.

    Where the hidden cells are known they are the test; else every observed cell is left
    out in turn.

    Parameters
    ----------
    job : Job
        The table.
    refined : HybridMixtureClassifier
        A fitted classifier, with a posterior if there is one.
    cells : LeftOut
        Every observed cell against the rest of its row.

    Returns
    -------
    Imputations
        Examples and coverage.
    """
    missing = job.X.isna().to_numpy()
    holes = np.flatnonzero(missing.any(1))
    holes = (
        holes[np.unique(np.linspace(0, max(len(holes) - 1, 0), MOST_ROWS).astype(int))]
        if holes.size
        else holes
    )
    drawn = _Draws.of(job.X.iloc[holes], refined, job) if holes.size else None
    if drawn is not None and job.truth is not None:
        return _against_truth(job, int(missing.sum()), drawn, holes)
    tails = cells.tail[~np.isnan(cells.tail)]
    covered = np.array([(tails >= 1 - p).mean() if tails.size else np.nan for p in NOMINAL])
    observed = ~np.isnan(cells.expected)
    reals = list(refined._columns.real_positions)
    scaled = _scaled(job.X.iloc[:, reals].to_numpy(dtype=float), refined)
    misses = (scaled - cells.expected)[observed]
    return Imputations(
        missing=int(missing.sum()),
        examples=() if drawn is None else _examples(job, drawn, holes),
        nominal=NOMINAL,
        covered=covered,
        known=int(tails.size),
        hidden_truth=False,
        truth=np.zeros(0),
        filled=np.zeros(0),
        error=_errors(misses, scaled[observed]),
    )


class _Draws:
    """Completed tables: reals as numbers, the rest as they are."""

    def __init__(self, tables: list[pd.DataFrame], reals: list[str], X: pd.DataFrame) -> None:
        self.X, self.reals, self.tables = X, reals, tables
        self.values = np.stack([table[reals].to_numpy(dtype=float) for table in tables])
        self.missing = X[reals].isna().to_numpy()

    @classmethod
    def of(cls, X: pd.DataFrame, refined: HybridMixtureClassifier, job: Job) -> _Draws:
        """Draw completed tables."""
        reals = [name for name in X.columns if job.kinds[name] == "real"]
        return cls(refined.impute(X, draws=DRAWS), reals, X)


def _scaled(
    values: Float[np.ndarray, "obs feature"], model: HybridMixtureClassifier
) -> Float[np.ndarray, "obs feature"]:
    """Real cells in column standard deviations."""
    return model._mixture.units.forward(values)


def _errors(misses: np.ndarray, values: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Root mean squared errors of the model and of column means."""
    if misses.size == 0:
        return ()
    return (
        ("this model, from the rest of the row", float(np.sqrt(np.mean(misses**2)))),
        ("the column's mean", float(np.sqrt(np.mean(values**2)))),
    )


def _against_truth(job: Job, missing: int, drawn: _Draws, rows: np.ndarray) -> Imputations:
    """Coverage and error where the hidden cells are known."""
    truth = _known(job, drawn, rows)
    observed = job.X[drawn.reals]
    centre, scale = observed.mean().to_numpy(), observed.std().to_numpy()
    rank = ((drawn.values < truth).sum(0) + 0.5) / (len(drawn.values) + 1)
    depth = np.abs(2 * rank - 1)[drawn.missing]
    true = ((truth - centre) / scale)[drawn.missing]
    filled = ((drawn.values.mean(0) - centre) / scale)[drawn.missing]
    return Imputations(
        missing=missing,
        examples=_examples(job, drawn, rows),
        nominal=NOMINAL,
        covered=np.array([(depth <= p).mean() for p in NOMINAL]),
        known=int(depth.size),
        hidden_truth=True,
        truth=true,
        filled=filled,
        error=_errors(true - filled, true),
    )


def _known(job: Job, drawn: _Draws, rows: np.ndarray) -> Float[np.ndarray, "obs feature"]:
    """True real cells of some rows; NaN where there is no truth."""
    if job.truth is None:
        return np.full((len(rows), len(drawn.reals)), np.nan)
    return job.truth.X[drawn.reals].iloc[rows].to_numpy(dtype=float)


def _examples(job: Job, drawn: _Draws, rows: np.ndarray) -> tuple[Filled, ...]:
    """A few missing cells, chosen at random."""
    places = np.argwhere(drawn.X.isna().to_numpy())
    chosen = np.random.default_rng(job.seed).permutation(len(places))[:EXAMPLES]
    return tuple(_filled(job, drawn, rows, *places[i].tolist()) for i in np.sort(chosen))


def _filled(job: Job, drawn: _Draws, rows: np.ndarray, place: int, column: int) -> Filled:
    """One missing cell in words."""
    name = drawn.X.columns[column]
    true: Any = "" if job.truth is None else job.truth.X[name].iloc[rows[place]]
    if name in drawn.reals:
        values = drawn.values[:, place, drawn.reals.index(name)]
        low, high = np.quantile(values, [0.05, 0.95])
        value, interval = number(float(values.mean())), f"{number(low)} to {number(high)}"
        truth = "" if job.truth is None else number(float(true))
    else:
        levels = pd.Series([table[name].iloc[place] for table in drawn.tables]).value_counts()
        value, interval = str(levels.index[0]), percent(levels.iloc[0] / levels.sum())
        truth = str(true)
    return Filled(int(rows[place]) + 1, str(name), value, interval, truth)

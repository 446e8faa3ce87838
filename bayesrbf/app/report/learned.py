"""What the model learned: columns, components and members, and the effect of each column."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import rel_entr

from bayesrbf import table
from bayesrbf.app.report.families import FAMILIES, Drawn
from bayesrbf.app.report.job import Job
from bayesrbf.base import names
from bayesrbf.base.tasks import run_tasks
from bayesrbf.families.hybrid.density import MixtureDensity

# How far each column moves the class probabilities, alone and beside all others.


MOST_EFFECT_ROWS: Final = 2_000
MOST_EFFECT_CELLS: Final = 6_000
FEWEST_EFFECT_ROWS: Final = 100
"""Limits on the rows that contributions are averaged over: each row costs a prediction a column."""
EFFECT_POINTS: Final = 13
"""Values of a real column at which its effect is drawn, equally many rows apart."""
MOST_EFFECT_LEVELS: Final = 12
LEAST_WITHOUT: Final = 1e-300
MOST_LEFT_OUT: Final = 60
"""Columns that are left out, at most."""


@dataclass(frozen=True)
class Contribution:
    """Mean move of the class probabilities by one column, in nats a row."""

    name: str
    alone: float
    """Mean Kullback-Leibler divergence of the probabilities that know this column alone from those
    that know none."""
    beside: float
    """Mean divergence of the probabilities that know every column from those that lack this one."""

    @property
    def most(self) -> float:
        """The larger of both: of two columns that say the same, each has little ``beside``."""
        return max(self.alone, self.beside)


@dataclass(frozen=True)
class Effect:
    """Class probabilities where only one column is known, over its values."""

    name: str
    levels: tuple[str, ...]  # Empty for a real column.
    grid: Float[np.ndarray, " point"]  # Values; level numbers for a categorical column.
    weights: Float[np.ndarray, " point"]  # Shares of the observed cells at the points.
    probabilities: Float[np.ndarray, "point label"]


@dataclass(frozen=True)
class Moves:
    """Effects of the columns of a table on the class probabilities."""

    contributions: tuple[Contribution, ...]  # Of every column with a value, the largest first.
    effects: tuple[Effect, ...]  # Of the same columns in the same order.
    base: Float[np.ndarray, " label"]  # Probabilities of a row without a cell.


def read_moves(job: Job, model: Any) -> Moves:
    """Contributions and effects of all columns."""
    effects, base = read_effects(job, model)
    added = contributions(job, model, effects, base)
    leading = [one.name for one in added]
    ordered = sorted(effects, key=lambda effect: leading.index(effect.name))
    return Moves(tuple(added), tuple(ordered), base)


def contributions(
    job: Job, model: Any, effects: tuple[Effect, ...], nothing: Float[np.ndarray, " label"]
) -> list[Contribution]:
    """Contribution of every column that has an effect, the largest first.

    A column is left out as if its cells were missing; in rows where they are it moves nothing. Of
    a wide table only the columns that say most alone are left out, each of which takes a
    prediction of all columns; the others add 0.
    ``nothing`` are the probabilities of a row without a cell.
    """
    n_rows = max(FEWEST_EFFECT_ROWS, MOST_EFFECT_CELLS // job.X.shape[1])
    X = job.X.iloc[:: -(-len(job.X) // min(MOST_EFFECT_ROWS, n_rows))]
    everything = model.predict_proba(X)
    alone = {}
    for effect in effects:
        moved = rel_entr(effect.probabilities, np.maximum(nothing, LEAST_WITHOUT)).sum(axis=1)
        observed = float(job.X[effect.name].notna().mean())
        alone[effect.name] = max(float(effect.weights @ moved) * observed, 0.0)
    leading, moves = sorted(alone, key=lambda name: -alone[name]), []
    for place, name in enumerate(leading):
        there, beside = X[name].notna().to_numpy(), 0.0
        if there.any() and place < MOST_LEFT_OUT:
            hidden = np.zeros((int(there.sum()), X.shape[1]), dtype=bool)
            hidden[:, list(X.columns).index(name)] = True
            without = _predicted(model, X[there], hidden, with_pattern=True)
            without = np.maximum(without, LEAST_WITHOUT)
            beside = max(float(rel_entr(everything[there], without).sum() / len(X)), 0.0)
        moves.append(Contribution(name, alone[name], beside))
    return sorted(moves, key=lambda move: -move.most)


def read_effects(job: Job, model: Any) -> tuple[tuple[Effect, ...], Float[np.ndarray, " label"]]:
    """Effects of all columns that have a value, and the probabilities of a row without a cell.

    All other cells are summed out given the one that is known, so that columns which go with it
    move as they do in the table: no row is asked about that does not exist.
    """
    grids = [_grid(job, name) for name in job.X.columns if job.X[name].notna().any()]
    names = [name for name, *_ in grids]
    rows = [pd.DataFrame({name: values}) for name, values, _ in grids]
    blank = job.X.iloc[:1].reset_index(drop=True)
    grid = pd.concat([*rows, blank], ignore_index=True).reindex(columns=job.X.columns)
    grid = grid.astype(job.X.dtypes)
    hidden = np.ones(grid.shape, dtype=bool)
    starts = np.cumsum([0, *(len(frame) for frame in rows)])
    for name, start, stop in zip(names, starts[:-1], starts[1:], strict=True):
        hidden[start:stop, list(job.X.columns).index(name)] = False
    p = _predicted(model, grid, hidden, with_pattern=False)
    effects = []
    for (name, values, weights), start, stop in zip(grids, starts[:-1], starts[1:], strict=True):
        real = not job.kinds[name].has_levels
        effects.append(
            Effect(
                str(name),
                () if real else tuple(map(str, values)),
                values.astype(float) if real else np.arange(len(values)) + 0.0,
                weights,
                p[start:stop],
            )
        )
    return tuple(effects), p[-1]


def _grid(job: Job, name: str) -> tuple[str, np.ndarray, Float[np.ndarray, " point"]]:
    """Values of a column to ask about, and the shares of its cells that they stand for."""
    cells = job.X[name].dropna()
    if job.kinds[name].has_levels:
        counts = cells.value_counts(normalize=True)[:MOST_EFFECT_LEVELS]
        shares = counts.to_numpy(dtype=float)
        return name, counts.index.to_numpy(dtype=object), shares / shares.sum()
    values = cells.to_numpy(dtype=float)
    grid = np.unique(np.quantile(values, np.linspace(0, 1, EFFECT_POINTS), method="inverted_cdf"))
    nearest = np.searchsorted((grid[1:] + grid[:-1]) / 2, values)
    return name, grid, np.bincount(nearest, minlength=grid.size) / values.size


def _predicted(
    model: Any, X: pd.DataFrame, hidden: Bool[np.ndarray, "obs column"], *, with_pattern: bool
) -> Float[np.ndarray, "obs label"]:
    """Class probabilities where some cells are hidden, with or without the pattern of missing ones.

    No column is given what the pattern contributes.
    """
    columns = model.columns_
    if model.model_.density is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are missing: they are hidden here
            probabilities: np.ndarray = model.predict_proba(X.mask(hidden))
        return probabilities
    rows = table.encode(X, columns)
    if not with_pattern:
        rows = table.without_indicators(rows, columns)
    rows = table.hide(rows, hidden, columns, indicators=False)
    return np.exp(model.fitted_.class_log_probabilities(rows))


# Frozen records about the model's columns, components and members.


@dataclass(frozen=True)
class ClassCells:
    """The labelled cells of one class in one column, as shares of all of them."""

    cells: int  # How many there are.
    bars: Float[np.ndarray, " bar"]  # In every bin, atoms left out; or at every level.
    atoms: Float[np.ndarray, " atom"] = field(default_factory=lambda: np.zeros(0))
    masses: Float[np.ndarray, " atom"] = field(default_factory=lambda: np.zeros(0))
    grid: Float[np.ndarray, " point"] = field(default_factory=lambda: np.zeros(0))
    curve: Float[np.ndarray, " point"] = field(default_factory=lambda: np.zeros(0))
    """Share in a bin around each value, under the class's own density; empty without one."""


@dataclass(frozen=True)
class ClassColumn:
    """A column class by class."""

    name: str
    edges: Float[np.ndarray, " edge"]  # Ends of the bins, or of places for the levels.
    levels: tuple[str, ...]  # Empty for a real column.
    classes: tuple[ClassCells, ...]


@dataclass(frozen=True)
class Member:
    """One member of a stack; mean and 90 % interval of its weight are NaN without a posterior."""

    name: str  # In words.
    fitted: float  # Weight at the fitted point.
    mean: float  # Of the weight, as are the limits.
    lower: float
    upper: float
    temperature: float  # Factor of its log probabilities.
    log_loss: float  # Held out, of it alone, tempered, in nats.


@dataclass(frozen=True)
class Learned:
    """Everything that the model learned; parts that need components are empty without any."""

    contributions: tuple[Contribution, ...]  # The largest first.
    effects: tuple[Effect, ...]  # Of the columns that contribute most.
    base: Float[np.ndarray, " label"]  # Probabilities of a row without a cell.
    by_class: tuple[ClassColumn, ...]  # The columns that contribute most, class by class.
    component_names: tuple[str, ...]
    weights: tuple[float, ...]  # ``p(class) p(component | class)``.
    means: tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...]
    """Column, its mean in every component as text, and their posterior standard deviations."""
    members: tuple[Member, ...] = ()  # Of a stack; empty for other families.
    relevances: tuple[tuple[str, float], ...] = ()
    """Column and its relevance to the likeness of rows, the largest first; learned by a stack."""


# The labelled cells of a column class by class, and the density that each class has by itself.


BINS: Final = 30
CURVE_POINTS: Final = 121
MOST_VALUES: Final = 30
"""Different cells up to which a column is drawn value by value, without curves."""
FEWEST_FOR_CURVE: Final = 20
"""Cells beside atoms from which a class has a curve."""
DRAWN_QUANTILES: Final = (0.005, 0.995)
"""Quantiles of the labelled cells between which a column is drawn."""
FINE_STEPS: Final = 8
"""Steps of the column's cells a bin from which bins need not end between them."""


def read_class_column(job: Job, name: str, classes: list[str]) -> ClassColumn:
    """The labelled cells of one column."""
    labels = job.y.astype(object).map(str, na_action="ignore").to_numpy()
    cells = [job.X[name].to_numpy()[labels == label] for label in classes]
    cells = [column[~pd.isna(column)] for column in cells]
    if job.kinds[name].has_levels:
        levels = sorted({str(cell) for column in cells for cell in column})
        texts = [np.array([str(cell) for cell in column]) for column in cells]
        shares = [np.array([_share(text == level) for level in levels]) for text in texts]
        own = tuple(ClassCells(len(t), share) for t, share in zip(texts, shares, strict=True))
        return ClassColumn(name, np.arange(len(levels) + 1.0), tuple(levels), own)
    reals = [column.astype(float) for column in cells]
    edges, few = _edges(np.concatenate(reals))
    return ClassColumn(
        name,
        edges,
        (),
        tuple(_class_cells(column, edges, few, job.seed) for column in reals),
    )


def _share(marked: np.ndarray) -> float:
    """Share of what is marked; 0 of nothing."""
    return float(marked.mean()) if marked.size else 0.0


def _edges(cells: Float[np.ndarray, " cell"]) -> tuple[Float[np.ndarray, " edge"], bool]:
    """Ends of equal bins, and whether each value of the column has bars of its own.

    Where cells lie on a coarse grid, every bin has as many of its points as the others.
    """
    if cells.size == 0:
        return np.array([0.0, 1.0]), True
    values = np.unique(cells)
    few = values.size <= MOST_VALUES
    low, high = values[[0, -1]] if few else np.quantile(cells, DRAWN_QUANTILES)
    if values.size == 1:
        return np.array([low - 0.5, low + 0.5]), True
    step = float(np.diff(values).min())
    points = (high - low) / step
    if points > BINS * FINE_STEPS:
        return np.linspace(low, high, BINS + 1), few
    width = step * max(1.0, np.ceil(points / BINS))
    return low - step / 2 + width * np.arange(np.floor((points + 0.5) * step / width) + 2), few


def _class_cells(
    cells: Float[np.ndarray, " cell"], edges: Float[np.ndarray, " edge"], few: bool, seed: int
) -> ClassCells:
    """Bars of a class's cells; where there are enough, atoms and a density of its own."""
    if few or np.unique(cells).size <= 1 or cells.size < FEWEST_FOR_CURVE:
        return ClassCells(cells.size, _bars(cells, cells.size, edges))
    density = MixtureDensity(
        "cv", column_maps="power", atoms="auto", n_init=1, random_state=seed
    ).fit(cells[:, None])
    (atoms,) = density.atoms_.values() or ({},)
    free = cells[~np.isin(cells, list(atoms))]
    bars = _bars(free, cells.size, edges)
    at, mass = np.array([*atoms]), np.array([*atoms.values()])
    if free.size < FEWEST_FOR_CURVE:
        return ClassCells(cells.size, bars, at, mass)
    grid = np.linspace(edges[0], edges[-1], CURVE_POINTS)
    # An atom has a probability where other cells have a density: the curve passes beside it.
    grid = np.where(np.isin(grid, at), np.nextafter(grid, np.inf), grid)
    curve = np.exp(density.score_samples(grid[:, None])) * (edges[1] - edges[0])
    return ClassCells(cells.size, bars, at, mass, grid, curve)


def _bars(
    cells: Float[np.ndarray, " cell"], of: int, edges: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, " bar"]:
    """Share of a class's cells in every bin."""
    return np.histogram(cells, edges)[0] / max(of, 1)


# What the model learned: columns that matter, components, members, how the classes differ.


BARS, EFFECTS, BY_CLASS, MEANS = 15, 6, 6, 12


@dataclass(frozen=True)
class Densities:
    """The mixture that a classifier's rows come from; None where they come from none."""

    point: Any  # Without draws.
    drawn: Any  # With its posterior.


def densities_of(job: Job, drawn: Drawn) -> Densities:
    """The mixture of a classifier: itself, or its hidden layer.

    Stacks, sparse mixtures and exemplars have none.
    """
    if FAMILIES[job.family].has_components:
        return Densities(drawn.model, drawn.refined)
    return Densities(None, None)


def component_names(density: Any) -> tuple[str, ...]:
    """Components in words, such as "benign" or "benign 2 of 3".

    The hidden layer of an RBF network has the same ones for all classes.
    """
    structure = density.model_.density.specification
    shared = structure.n_classes < density.classes_.size
    labels = ["component"] if shared else list(map(str, density.classes_))
    names = []
    for label, members in zip(labels, structure.class_slices, strict=True):
        size = members.stop - members.start
        names += [label if size == 1 else f"{label} {i + 1} of {size}" for i in range(size)]
    return tuple(names)


def read_learned(job: Job, model: Any, refined: Any, densities: Densities, moves: Moves) -> Learned:
    """Contributions, effects, members, classes and means; columns are ordered by contribution.

    Components are the classifier's own.
    """
    density, leading = densities.point, [one.name for one in moves.contributions]
    components: dict[str, Any] = {"component_names": (), "weights": (), "means": ()}
    if density is not None:
        components = {
            "component_names": component_names(density),
            "weights": _shares(density),
            "means": _means(job, density, densities.drawn, leading),
        }
    classes, pools = list(map(str, model.classes_)), FAMILIES[job.family].pools
    return Learned(
        contributions=moves.contributions[:BARS],
        effects=moves.effects[:EFFECTS],
        base=moves.base,
        by_class=tuple(
            run_tasks(
                lambda name: read_class_column(job, name, classes), leading[:BY_CLASS], "Columns"
            )
        ),
        members=read_members(refined) if pools else (),
        relevances=read_relevances(model) if pools else (),
        **components,
    )


def read_relevances(model: Any) -> tuple[tuple[str, float], ...]:
    """Mean relevance of columns over the members of a stack that learned it; empty without any.

    Members count by their weights, as in the probabilities that are given out.
    """
    relevance, weights = model.relevance_, dict(zip(model.members_, model.weights_, strict=True))
    if not relevance.size:
        return ()
    counts = np.array([weights[name] for name in relevance.columns])
    means = (relevance @ (counts / counts.sum())).sort_values(ascending=False, kind="stable")
    return tuple((str(name), float(mean)) for name, mean in means.items())


def _shares(density: Any) -> tuple[float, ...]:
    """``p(class) p(component | class)`` of every component."""
    structure, parameters = density.model_.density.specification, density.model_.density.parameters
    shares = parameters.class_probabilities[list(structure.component_class)] * parameters.weights
    return tuple(map(float, shares))


def _means(
    job: Job, density: Any, drawn: Any, leading: list[str]
) -> tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...]:
    """Component means of the leading real columns, with posterior standard deviations."""
    mixture = density.model_.density
    columns = density.columns_
    means = columns.decoded(mixture.in_users_units(mixture.parameters.means))
    if means.shape[1] == 0:
        return ()
    spread = np.full(means.shape, np.nan)
    if drawn.draws_ is not None:
        draws = drawn.posterior_[names.POSTERIOR][names.MEANS].to_numpy()
        in_units = columns.decoded(mixture.in_users_units(mixture.units.forward(draws)))
        spread = in_units.std(axis=(0, 1))
    places = {columns.names[i]: feature for i, feature in columns.number_features.items()}
    chosen = [name for name in leading if name in places][:MEANS]
    return tuple(
        (
            name,
            tuple(job.mean(name, float(mean)) for mean in means[:, places[name]]),
            tuple(map(float, spread[:, places[name]])),
        )
        for name in chosen
    )


MEMBER_WORDS: Final = {
    "laplace": "kernel network, Laplace kernel, silent columns shrunk",
    "laplace_short": "kernel network, short Laplace kernel, silent columns shrunk",
    "laplace_evidence": "kernel network, Laplace kernel, rates by their evidence",
    "gaussian_loo": "kernel network, Gaussian kernel, rates by leave-one-out",
    "linear": "logistic regression, its penalty by the evidence",
    "normal": "one Gaussian a class, one covariance for all",
    "mixture": "three Gaussians a class, full covariances",
    "normal_blend": (
        "one Gaussian a class, one covariance for all, fitted to tell the classes apart"
    ),
    "mixture_blend": (
        "three Gaussians a class, one covariance for all, fitted to tell the classes apart"
    ),
    "forest": "forest of 60 trees",
    "extra_trees": "60 trees that split at random places",
    "boosting": "boosting, 100 small trees",
}


def read_members(refined: Any) -> tuple[Member, ...]:
    """Members of a stack, the largest weight in the probabilities that are given out first."""
    table = refined.member_table().drop(index="stack")
    drawn = np.full((3, len(table)), np.nan)
    if refined.draws_ is not None:
        weights = refined.posterior_[names.POSTERIOR][names.WEIGHTS].to_numpy()
        weights = weights.reshape(-1, len(table))
        drawn = np.stack([weights.mean(axis=0), *np.quantile(weights, [0.05, 0.95], axis=0)])
    members = [
        Member(
            name=MEMBER_WORDS.get(str(name), str(name)),
            fitted=float(line.weight),
            mean=float(mean),
            lower=float(lower),
            upper=float(upper),
            temperature=float(line.temperature),
            log_loss=float(line.log_loss),
        )
        for (name, line), mean, lower, upper in zip(table.iterrows(), *drawn, strict=True)
    ]
    return tuple(sorted(members, key=lambda member: -member.fitted))

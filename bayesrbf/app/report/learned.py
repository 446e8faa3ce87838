"""What the model learned: members, components, how the classes differ, what makes rows alike."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float
from markupsafe import Markup

from bayesrbf import MixtureDensity
from bayesrbf.app.report.column_effects import MAX_LINES, ColumnEffects
from bayesrbf.app.report.drawing import SMALL_WIDTH, WIDE_WIDTH, bars, foot, legend, level_names
from bayesrbf.app.report.families import FAMILIES
from bayesrbf.app.report.job import Job
from bayesrbf.app.svg import PlotArea, element, picture, points, rect, segment
from bayesrbf.app.words import clipped, listing, number, percent, plural
from bayesrbf.base import names
from bayesrbf.base.tasks import run_tasks


@dataclass(frozen=True)
class ClassCells:
    """The labelled cells of one class in one column, as shares of all of them."""

    cells: int  # How many there are.
    bars: Float[np.ndarray, " bar"]  # In every bin, point masses left out; or at every level.
    point_masses: Float[np.ndarray, " point_mass"] = field(default_factory=lambda: np.zeros(0))
    masses: Float[np.ndarray, " point_mass"] = field(default_factory=lambda: np.zeros(0))
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
    ends: tuple[str, str] = ("", "")  # Of a column of texts, such as dates.


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

    by_class: tuple[ClassColumn, ...]  # The columns that contribute most, class by class.
    component_names: tuple[str, ...]
    weights: tuple[float, ...]  # ``p(class) p(component | class)``.
    means: tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...]
    """Column, its mean in every component as text, and their posterior standard deviations."""
    members: tuple[Member, ...] = ()  # Of a stack; empty for other families.
    relevances: tuple[tuple[str, float], ...] = ()
    """Column and its relevance to the likeness of rows, the largest first; learned by a stack."""


BINS: Final = 30
CURVE_POINTS: Final = 121
MAX_VALUES: Final = 30
"""Different cells up to which a column is drawn value by value, without curves."""
MIN_FOR_CURVE: Final = 20
"""Cells beside point masses from which a class has a curve."""
DRAWN_QUANTILES: Final = (0.005, 0.995)
"""Quantiles of the labelled cells between which a column is drawn."""
FINE_STEPS: Final = 8
"""Steps of the column's cells a bin from which bins need not end between them."""


def read_class_column(job: Job, name: str, classes: list[str]) -> ClassColumn:
    """Histograms and densities of the labelled cells of one column, by class."""
    labels = job.y.astype(object).map(str, na_action="ignore").to_numpy()
    cells = [job.X[name].to_numpy()[labels == label] for label in classes]
    cells = [column[~pd.isna(column)] for column in cells]
    if job.kinds[name].has_levels:
        levels = sorted({str(cell) for column in cells for cell in column})
        texts = [np.array([str(cell) for cell in column]) for column in cells]
        shares = [np.array([_share(text == level) for level in levels]) for text in texts]
        found = tuple(ClassCells(len(t), share) for t, share in zip(texts, shares, strict=True))
        return ClassColumn(name, np.arange(len(levels) + 1.0), tuple(levels), found)
    reals = [column.astype(float) for column in cells]
    edges, few = _edges(np.concatenate(reals))
    return ClassColumn(
        name,
        edges,
        (),
        tuple(_class_cells(column, edges, few, job.seed) for column in reals),
        job.ends(name, float(edges[0]), float(edges[-1])),
    )


def _share(marked: np.ndarray) -> float:
    """Fraction of True; 0 of an empty array."""
    return float(marked.mean()) if marked.size else 0.0


def _edges(cells: Float[np.ndarray, " cell"]) -> tuple[Float[np.ndarray, " edge"], bool]:
    """Bin edges of equal width, and whether the column has few distinct values.

    Where cells lie on a coarse grid, every bin has as many of its points as the others.
    """
    if cells.size == 0:
        return np.array([0.0, 1.0]), True
    values = np.unique(cells)
    few = values.size <= MAX_VALUES
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
    """Histogram of the cells of a class; from enough cells on, point masses and a density."""
    if few or np.unique(cells).size <= 1 or cells.size < MIN_FOR_CURVE:
        return ClassCells(cells.size, _bars(cells, cells.size, edges))
    density = MixtureDensity(
        "cv", column_transforms="power", point_masses="auto", n_init=1, random_state=seed
    ).fit(cells[:, None])
    (point_masses,) = density.point_masses_.values() or ({},)
    free = cells[~np.isin(cells, list(point_masses))]
    bars = _bars(free, cells.size, edges)
    at, mass = np.array([*point_masses]), np.array([*point_masses.values()])
    if free.size < MIN_FOR_CURVE:
        return ClassCells(cells.size, bars, at, mass)
    grid = np.linspace(edges[0], edges[-1], CURVE_POINTS)
    # A point mass has a probability where other cells have a density: the curve passes beside it.
    grid = np.where(np.isin(grid, at), np.nextafter(grid, np.inf), grid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other classes have cells far from those of this one
        curve = np.exp(density.score_samples(grid[:, None])) * (edges[1] - edges[0])
    return ClassCells(cells.size, bars, at, mass, grid, curve)


def _bars(
    cells: Float[np.ndarray, " cell"], of: int, edges: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, " bar"]:
    """Fraction of the cells of a class in every bin."""
    return np.histogram(cells, edges)[0] / max(of, 1)


BY_CLASS, MEANS = 6, 12
"""Columns that are shown: class by class, and with the means of components."""
MAX_BARS = 15
LITTLE_RELEVANCE = 0.1
"""Relevance below which a column hardly counts."""


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


def compute(job: Job, model: Any, refined: Any, effects: ColumnEffects) -> Learned:
    """Members, classes and means; columns are ordered by contribution.

    Components are the classifier's own, or those of its hidden layer: stacks, sparse mixtures and
    exemplars have none.
    """
    leading = [contribution.name for contribution in effects.contributions]
    components: dict[str, Any] = {"component_names": (), "weights": (), "means": ()}
    if FAMILIES[job.family].has_components:
        components = {
            "component_names": component_names(model),
            "weights": _shares(model),
            "means": _means(job, model, refined, leading),
        }
    classes = list(map(str, model.classes_))
    pools = FAMILIES[job.family].pools
    return Learned(
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
    relevance = model.relevance_
    weights = dict(zip(model.members_, model.weights_, strict=True))
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
    features = {columns.names[i]: feature for i, feature in columns.number_features.items()}
    chosen = [name for name in leading if name in features][:MEANS]
    return tuple(
        (
            name,
            tuple(job.mean(name, float(mean)) for mean in means[:, features[name]]),
            tuple(map(float, spread[:, features[name]])),
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
    """Members of a stack, the largest weight in the reported probabilities first."""
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


def say(learned: Learned) -> dict[str, str]:
    """The first member of a stack, and what makes rows alike; empty without any."""
    members = relevances = ""
    if learned.members:
        first = learned.members[0]
        members = (
            f"Of {plural(len(learned.members), 'member')} the largest weight has “{first.name}”: "
            f"{percent(first.fitted)}."
        )
        if first.mean == first.mean:
            members += (
                f" Under the posterior its weight is {percent(first.mean)} in the mean, with "
                f"{percent(0.9)} probability between {percent(first.lower)} and "
                f"{percent(first.upper)}."
            )
    if columns := learned.relevances:
        named = listing([f"“{clipped(name, 30)}”" for name, _ in columns[:3]])
        few = sum(value < LITTLE_RELEVANCE for _, value in columns)
        verb = "counts" if few == 1 else "count"
        rest = f"{few} of {plural(len(columns), 'column')} hardly {verb}"
        rest = rest if few else "no column is left out"
        relevances = f"Whether two rows count as alike depends most on {named}; {rest}."
    return {"members": members, "relevances": relevances}


def show(learned: Learned, classes: Sequence[str], drawn: list[int]) -> dict[str, Any]:
    """Weights of members, likeness of rows, and columns in the classes at some positions."""
    shown = sorted(drawn) or list(range(len(classes)))[:MAX_LINES]
    rows = learned.relevances[:MAX_BARS]
    first = ", ".join(f"{name} {number(value)}" for name, value in rows[:5])
    marks = {
        f"posterior mean and {percent(0.9)} interval": "dot c0",
        "fitted, step by step": "ring c1",
    }
    return {
        "relevances": bars(
            [(name, [(value, "fill c0")]) for name, value in rows],
            1.0,
            2,
            "over the largest",
            f"How much a difference in a column counts, over the largest of its kind: {first}",
        ),
        "weights": _weights(learned.members) if learned.members else None,
        "weight_marks": legend(marks),
        "by_class": [by_class(column, classes, shown) for column in learned.by_class],
        "classes": legend({classes[c]: f"bar c{c % 8}" for c in shown}),
    }


def _weights(members: Sequence[Member]) -> Markup:
    """Weights of the members: the fitted one a ring, the mean a dot with its 90 % interval."""
    step, top, width = 42.0, 8.0, WIDE_WIDTH
    bottom = top + step * len(members)
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (10.0, top, width - 14, bottom))
    marks: list[Markup] = []
    for i, member in enumerate(members):
        y = top + step * (i + 0.68)
        marks.append(element("text", clipped(member.name, 100), class_="name", x=13.0, y=y - 11))
        if np.isfinite(member.mean):
            low, high = axes.at_x(member.lower), axes.at_x(member.upper)
            marks += [
                element("line", class_="stroke c0 thick", x1=low, x2=high, y1=y, y2=y),
                element("circle", class_="fill c0", cx=axes.at_x(member.mean), cy=y, r=5),
            ]
        marks.append(element("circle", class_="stroke c1", cx=axes.at_x(member.fitted), cy=y, r=5))
    text = "; ".join(
        f"{member.name} {number(member.fitted)}"
        + (f", {number(member.lower)} to {number(member.upper)}" if member.mean >= 0 else "")
        for member in members
    )
    frame = axes.frame("weight in the pool")
    return picture(width, bottom + 40, f"Weights of the members: {text}", frame, *marks)


CLASS_LANE = 56.0
"""Height of a class's lane."""
POINT_MASS_WIDTH = 3.0
"""Width of the bar of a point mass."""


def by_class(column: ClassColumn, classes: Sequence[str], shown: Sequence[int]) -> Markup:
    """The labelled cells of a column in some classes: bars, point masses, and their density."""
    named = listing([classes[c] for c in shown], len(shown))
    title = f"Distribution of {column.name} in the classes {named}"
    left, right, top = 12.0, 284.0, 18.0
    if column.levels:
        of_levels = (-0.5, len(column.levels) - 0.5)
        axes = PlotArea(of_levels, (0.0, 1.0), (left, 10.0, right, 150.0))
        bars_and_names = _level_bars(column, axes, shown)
        return picture(SMALL_WIDTH, foot(axes, column.levels), title, *bars_and_names)
    limits = (float(column.edges[0]), float(column.edges[-1]))
    marks = []
    bottom = top
    for c in shown:
        cells = column.classes[c]
        most = max(float(bar.max(initial=0.0)) for bar in (cells.bars, cells.masses, cells.curve))
        axes = PlotArea(limits, (0.0, most or 1.0), (left, bottom, right, bottom + CLASS_LANE))
        marks += _lane(column, cells, axes, c)
        label = f"{clipped(classes[c], 24)} ({plural(cells.cells, 'cell')})"
        marks.append(element("text", label, class_="tick end", x=right, y=bottom - 4))
        bottom += CLASS_LANE + top
    ends = PlotArea(limits, (0.0, 1.0), (left, top, right, bottom - top))
    frame = ends.frame(clipped(column.name, 36), x_ticks=4, x_ends=column.ends)
    return picture(SMALL_WIDTH, bottom - top + 40, title, frame, *marks)


def _lane(column: ClassColumn, cells: ClassCells, axes: PlotArea, c: int) -> list[Markup]:
    """Bars of a class's cells, point masses as narrow full ones, and its curve."""
    bins = zip(column.edges[:-1], column.edges[1:], cells.bars, strict=True)
    shapes = [
        *((low, high, share, "veil ") for low, high, share in bins),
        *((at, at, mass, "") for at, mass in zip(cells.point_masses, cells.masses, strict=True)),
    ]
    base = axes.at_y(0.0)
    marks = []
    for low, high, share, look in shapes:
        wide = max(
            axes.at_x(float(high)) - axes.at_x(float(low)) - 0.5,
            POINT_MASS_WIDTH if low == high else 1,
        )
        start = axes.at_x(float(low)) - (wide / 2 if low == high else 0.0)
        y = axes.at_y(float(share))
        style = f"{look}fill c{c % 8}"
        bar = element("rect", class_=style, x=start, y=y, width=wide, height=base - y)
        marks += [bar] if share > 0 else []
    marks.append(element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=base, y2=base))
    if cells.curve.size:
        line = points(map(axes.at_x, cells.grid), map(axes.at_y, cells.curve))
        marks.append(element("polyline", class_=f"line c{c % 8}", points=line))
    return marks


def _level_bars(column: ClassColumn, axes: PlotArea, shown: Sequence[int]) -> list[Markup]:
    """Groups of bars, one group a level."""
    most = max(float(column.classes[c].bars.max(initial=0.0)) for c in shown) * 1.06 or 1.0
    base = axes.box[3]
    wide = 0.8 * (axes.at_x(1.0) - axes.at_x(0.0)) / len(shown)
    marks = []
    for level in range(len(column.levels)):
        start = axes.at_x(level - 0.4)
        for lane, c in enumerate(shown):
            y = axes.at_y(float(column.classes[c].bars[level]) / most)
            x, width = start + lane * wide, max(wide - 1, 1.0)
            marks.append(rect(x, y, width, base - y, f"fill c{c % 8}"))
    names = level_names(axes, column.name, column.levels)
    return [segment(axes.box[0], base, axes.box[2], base, "axis"), names, *marks]

"""A table looked at without a model: columns, holes, duplicates, associations; page and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from markupsafe import Markup
from scipy.stats import chi2, fisher_exact, rankdata
from scipy.stats import t as student

from bayesrbf import ReadTable, TableError
from bayesrbf.app import words
from bayesrbf.app.report.drawing import legend, share_bar, stacked
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.reading import (
    BARS,
    MAX_LEVEL_BARS,
    Column,
    Reading,
    missingness,
)
from bayesrbf.app.report.reading import compute as read_columns
from bayesrbf.app.report.render import environment
from bayesrbf.app.svg import element, picture, segment
from bayesrbf.app.words import between, clipped, count, listing, number, percent, plural
from bayesrbf.table.kinds import Kind
from bayesrbf.version import __version__

# Associations between two columns of any kind: their strength, and a test against chance.
#
# ========================  =====================================  =====================
# kinds                     measure, from 0 to 1                   test of independence
# ========================  =====================================  =====================
# real and real             :math:`\lvert\rho\rvert` of the ranks  t
# categorical and real      correlation ratio of the ranks         Kruskal and Wallis
# both categorical          Cramér's V, without its bias           chi-squared or Fisher
# ========================  =====================================  =====================
#
# All look at ranks or counts, so that neither a far cell nor a unit changes them. The correlation
# ratio and V are corrected for what they are on average where nothing is associated.


MIN_ROWS: Final = 10
"""Rows with both cells that a pair of columns needs."""
EXPECTED: Final = 5.0
"""Rows that independence must expect in every cell of a table of two categorical columns; rarer
levels are pooled until it does, because chi-squared takes chance for more where it does not."""

AssociatedColumn = Float[np.ndarray, " obs"] | Int[np.ndarray, " obs"]
"""A real column, missing cells NaN, or level codes of a categorical one, missing ones -1."""


@dataclass(frozen=True)
class Association:
    """Two associated columns."""

    first: int  # Position of a column, as is the second.
    second: int
    strength: float  # From 0 to 1.
    sign: int  # Of a rank correlation; 0 for other measures.
    measure: str  # In words.
    rows: int  # With both cells.
    chance: float  # Probability of so much where nothing is associated.


def associations(
    columns: Sequence[AssociatedColumn],
    pairs: Iterable[tuple[int, int]],
    level: float = 0.01,
    least: float = 0.0,
) -> tuple[Association, ...]:
    """Significant associations of at least a strength, the strongest first.

    A pair counts if its probability times the number of pairs looked at is below ``level``
    (Bonferroni): at most this share of the tables without any association yields a pair.

    >>> up = np.arange(20.0)
    >>> [pair] = associations([up, up**3, np.tile([0, 1], 10)], [(0, 1), (0, 2), (1, 2)])
    >>> pair.first, pair.second, pair.strength, pair.sign, pair.rows
    (0, 1, 1.0, 1, 20)
    """
    looked = list(pairs)
    candidates = [association for pair in looked for association in _associated(columns, *pair)]
    significant = [
        association
        for association in candidates
        if association.chance * len(looked) < level and association.strength >= least
    ]
    return tuple(sorted(significant, key=lambda association: -association.strength))


def _associated(columns: Sequence[AssociatedColumn], i: int, j: int) -> Iterator[Association]:
    """Association of two columns; none where few rows have both cells or a column is constant."""
    a, b = columns[i], columns[j]
    both = _observed(a) & _observed(b)
    n = int(both.sum())
    if n < MIN_ROWS:
        return
    real = [column.dtype.kind == "f" for column in (a, b)]
    a, b = a[both], b[both]
    if any(np.all(column == column[0]) for column in (a, b)):
        return
    if all(real):
        rho, chance = _rank_correlation(a, b)
        yield Association(i, j, abs(rho), int(np.sign(rho)), "rank correlation", n, chance)
    elif any(real):
        values, codes = (a, b) if real[0] else (b, a)
        strength, chance = _correlation_ratio(values, _pooled(codes, EXPECTED))
        yield Association(i, j, strength, 0, "correlation ratio of ranks", n, chance)
    else:
        strength, chance = _cramer(_counts(a, b))
        yield Association(i, j, strength, 0, "Cramér's V", n, chance)


def _observed(column: AssociatedColumn) -> np.ndarray:
    """Mask of the observed cells."""
    return np.isfinite(column) if column.dtype.kind == "f" else column >= 0


def _rank_correlation(
    a: Float[np.ndarray, " obs"], b: Float[np.ndarray, " obs"]
) -> tuple[float, float]:
    """Spearman's rank correlation and its two-sided p-value."""
    # Rounding may take a correlation beyond 1.
    rho = float(np.clip(np.corrcoef(rankdata(a), rankdata(b))[0, 1], -1.0, 1.0))
    freedom = a.size - 2
    # At |rho| = 1 the statistic is infinite; the floor makes it a large number, whose tail is 0.
    t = rho * np.sqrt(freedom / max(1 - rho**2, 1e-300))
    return rho, float(2 * student.sf(abs(t), freedom))


def _correlation_ratio(
    values: Float[np.ndarray, " obs"], codes: Int[np.ndarray, " obs"]
) -> tuple[float, float]:
    """Bias-corrected correlation ratio of the ranks by level, and the Kruskal-Wallis p-value."""
    ranks, n = rankdata(values), values.size
    sizes = np.bincount(codes)
    means = np.bincount(codes, ranks)[sizes > 0] / sizes[sizes > 0]
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return 0.0, 1.0
    share = float(np.sum(sizes * (means - ranks.mean()) ** 2) / np.sum((ranks - ranks.mean()) ** 2))
    # Without association the share is (levels - 1) / (n - 1) in the mean, as R² is; adjusting
    # for the degrees of freedom takes it off. (n - 1) times the share is Kruskal and Wallis' H.
    unbiased = 1 - (1 - share) * (n - 1) / max(n - sizes.size, 1)
    return float(np.sqrt(np.clip(unbiased, 0, 1))), float(chi2.sf(share * (n - 1), sizes.size - 1))


def _cramer(counts: Int[np.ndarray, "level other"]) -> tuple[float, float]:
    """Bias-corrected Cramér's V (Bergsma 2013) and its p-value."""
    if min(counts.shape) < 2:
        return 0.0, 1.0
    n, (rows, columns) = counts.sum(), counts.shape
    expected = np.outer(counts.sum(1), counts.sum(0)) / n
    squared = float(np.sum((counts - expected) ** 2 / expected))
    freedom = (rows - 1) * (columns - 1)
    # The bias is the mean under independence, so the difference may be below 0.
    phi = max(0.0, squared / n - freedom / (n - 1))
    width = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    strength = float(np.sqrt(min(1.0, phi / max(width, 1e-300))))
    # Pooling ends at two by two, however few rows are expected there: the test is exact.
    if counts.shape == (2, 2):
        return strength, float(fisher_exact(counts).pvalue)
    return strength, float(chi2.sf(squared, freedom))


def _pooled(codes: Int[np.ndarray, " obs"], fewest: float) -> Int[np.ndarray, " obs"]:
    """Codes with rare levels pooled, together with the next rarest until the pool has enough."""
    sizes = np.bincount(codes)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    below = int(np.searchsorted(np.cumsum(sizes[order]) >= fewest, True)) + 1
    pooled = order[: max(below, int((sizes[order] < fewest).sum()))]
    pooled_codes = np.arange(sizes.size)
    pooled_codes[pooled] = pooled[0]
    return np.asarray(pooled_codes[codes])


def _counts(
    a: Int[np.ndarray, " obs"], b: Int[np.ndarray, " obs"]
) -> Int[np.ndarray, "level other"]:
    """Contingency table; rare levels are pooled until all expected counts are large enough."""
    a, b = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
    counts = np.bincount(a * (b.max() + 1) + b, minlength=(a.max() + 1) * (b.max() + 1))
    table = counts.reshape(a.max() + 1, b.max() + 1)
    n_rows = table.sum()
    # The fewest rows that independence expects are those of the rarest levels of both.
    while max(table.shape) > 2 and table.sum(1).min() * table.sum(0).min() < EXPECTED * n_rows:
        # Levels are merged along the longer side, so that neither column is left with a single one.
        if table.shape[0] < table.shape[1]:
            table = table.T
        order = np.argsort(table.sum(1), kind="stable")
        table = np.vstack([table[order[:2]].sum(0), table[order[2:]]])
    return table


# A table looked at without a model: columns, holes, duplicates, associations.


LOOKED_AT_ROWS: Final = 20_000
"""Rows that are looked at; of a longer table, so many at random."""
PAIRED: Final = 60
"""Columns of which every pair is looked at; of a wider table, the first ones."""
STRONG: Final = 0.3
"""Strength from which an association is told; one with the target is told from less."""
WITH_TARGET: Final = 0.1
MAX_LINES: Final = 40
MAX_PATTERNS: Final = 8
COLOURED_CLASSES: Final = 8
"""Classes that distributions are coloured by; codes of so many values are classes."""
PAIR_BY_CHANCE: Final = 0.01


@dataclass(frozen=True)
class Pair:
    """Two associated columns."""

    first: str
    second: str
    strength: float  # From 0 to 1.
    falling: bool  # Whether one falls where the other rises.
    measure: str
    rows: int  # With both cells.


@dataclass(frozen=True)
class Pattern:
    """Cells that are missing together."""

    columns: tuple[str, ...]  # Empty where no cell is missing.
    rows: int


@dataclass(frozen=True)
class Spread:
    """Range, quartiles and levels of the cells of a column."""

    column: Column
    bars: Float[np.ndarray, "series bar"]  # Rows by class of the target, or one series.
    ends: tuple[str, str]  # Of a real column; empty texts otherwise.
    levels: tuple[str, ...]  # Under the bars of a categorical column.
    more: int  # Levels that are not drawn.
    facts: str  # Quartiles, or distinct values.


@dataclass(frozen=True)
class Look:
    """A first look at a table, before any model is fitted."""

    title: str
    target: str  # Empty where none was named.
    classes: tuple[str, ...]  # Of the target that distributions are coloured by; may be empty.
    reading: Reading
    spreads: tuple[Spread, ...]
    kinds: Mapping[str, int]  # Columns by kind.
    patterns: tuple[Pattern, ...]  # The most frequent first.
    repeated: int  # Rows that equal an earlier one.
    contradicting: int  # Rows that equal one of another class in all but the target.
    alike: tuple[tuple[str, str], ...]  # Columns that hold the same in every row.
    with_target: tuple[Pair, ...]  # The strongest first.
    pairs: tuple[Pair, ...]  # Of other columns.
    missing_with_target: tuple[tuple[str, float], ...] = ()
    """Columns whose missing cells go with the target, and how strongly; the strongest first."""
    remarks: tuple[str, ...] = field(default=())  # What was sampled or left out.


def look(table: ReadTable, title: str, target: str | None = None, seed: int = 0) -> Look:
    """Look at a table that was read without a target; ``target`` is one of its columns.

    Raises TableError where the target is none of its columns.
    """
    if target is not None and target not in table.frame.columns:
        if target in table.options.ignore:
            why = next((f" {note}" for note in table.notes if repr(target) in note), "")
            raise TableError(f"{title}: column {target!r} was left out.{why}")
        column_names = listing([repr(str(name)) for name in table.frame.columns])
        raise TableError(f"{title} has no column {target!r} to look at; it has {column_names}.")
    frame = table.frame
    remarks = []
    if len(frame) > LOOKED_AT_ROWS:
        rng = np.random.default_rng(seed)
        frame = frame.iloc[np.sort(rng.choice(len(frame), LOOKED_AT_ROWS, replace=False))]
        remarks.append(
            f"The table has {plural(len(table.frame), 'row')}; all that follows is about "
            f"{count(LOOKED_AT_ROWS)} of them, drawn at random."
        )
    job = Job(
        title=title,
        target=target or "",
        X=frame,
        y=_classes(frame, target),
        kinds=table.kinds,
        inference="map",
        seed=seed,
        notes=table.notes,
        reading=table.options,
    )
    alone = pd.Series(["row"] * len(frame), dtype=object)
    reading = read_columns(replace(job, y=alone))
    if job.y.notna().any():  # what tells the target by itself is a note, too
        target_notes = table.telling(frame.drop(columns=[target]), job.labels)
        reading = replace(reading, notes=(*target_notes, *reading.notes))
    if len(frame.columns) > PAIRED:
        remarks.append(
            f"Of {plural(len(frame.columns), 'column')}, pairs of the first {PAIRED} were looked "
            "at, and every column beside the target."
        )
    pairs = _pairs(frame, table.kinds, target)
    return Look(
        title=title,
        target=target or "",
        classes=tuple(map(str, sorted(job.y.dropna().unique()))),
        reading=reading,
        spreads=tuple(_spread(job, column) for column in reading.columns),
        kinds=Counter(kind.word for kind in table.kinds.values()),
        patterns=_patterns(frame),
        repeated=int(frame.duplicated().sum()),
        contradicting=_contradicting(frame, target),
        alike=tuple(_alike(frame)),
        with_target=tuple(pair for pair in pairs if target in (pair.first, pair.second)),
        pairs=tuple(pair for pair in pairs if target not in (pair.first, pair.second)),
        missing_with_target=_missing_with(frame, table.kinds, target),
        remarks=tuple(remarks),
    )


def _missing_with(
    frame: pd.DataFrame, kinds: Mapping[str, Kind], target: str | None
) -> tuple[tuple[str, float], ...]:
    """Columns whose missing indicators go with the target beyond chance."""
    if target is None:
        return ()
    names = [name for name in frame if name != target and frame[name].isna().any()]
    indicators = [frame[name].isna().to_numpy().astype(np.int64) for name in names]
    columns = [_cells(frame[target], not kinds[target].has_levels, True), *indicators]
    pairs = [(0, column) for column in range(1, len(columns))]
    found = associations(columns, pairs, PAIR_BY_CHANCE, WITH_TARGET)
    return tuple((str(names[pair.second - 1]), pair.strength) for pair in found)


def _classes(frame: pd.DataFrame, target: str | None) -> pd.Series:
    """Classes by which distributions are coloured: missing throughout where there are none."""
    none = pd.Series([None] * len(frame), dtype=object)
    if target is None:
        return none
    values = frame[target].reset_index(drop=True)
    distinct = values.dropna().unique()
    if not 2 <= len(distinct) <= COLOURED_CLASSES:
        return none
    if values.dtype.kind == "f":
        return values.map(lambda value: f"{value:g}", na_action="ignore").astype(object)
    return values.astype(object).where(values.notna(), None)


def _pairs(frame: pd.DataFrame, kinds: Mapping[str, Kind], target: str | None) -> tuple[Pair, ...]:
    """Significant associations: first with the target, then others, each the strongest first."""
    names = list(frame.columns)
    columns = [_cells(frame[name], not kinds[name].has_levels, name == target) for name in names]
    few = range(min(len(names), PAIRED))
    at = [] if target is None else [names.index(target)]
    beside = [(at[0], j) for j in range(len(names)) if j not in at] if at else []
    rest = [(i, j) for i, j in combinations(few, 2) if i not in at and j not in at]
    links = chain(
        associations(columns, beside, PAIR_BY_CHANCE, WITH_TARGET),
        associations(columns, rest, PAIR_BY_CHANCE, STRONG),
    )
    return tuple(
        Pair(names[a.first], names[a.second], a.strength, a.sign < 0, a.measure, a.rows)
        for a in links
    )


def _cells(values: pd.Series, real: bool, target: bool) -> AssociatedColumn:
    """A column as values or level codes; a numeric target of few values becomes codes."""
    few = target and values.nunique() <= COLOURED_CLASSES
    if real and not few:
        return values.to_numpy(dtype=float)
    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def _patterns(frame: pd.DataFrame) -> tuple[Pattern, ...]:
    """Missingness patterns of the rows, the most frequent first."""
    missing = frame.isna().to_numpy()
    which, rows = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-rows, kind="stable")[:MAX_PATTERNS]
    names = frame.columns.to_numpy()
    return tuple(Pattern(tuple(map(str, names[which[i]])), int(rows[i])) for i in order)


def _contradicting(frame: pd.DataFrame, target: str | None) -> int:
    """Number of labelled rows that equal another row in all cells but the target."""
    if target is None or len(frame.columns) < 2:
        return 0
    rest = [name for name in frame.columns if name != target]
    labelled = frame[frame[target].notna()]
    same = labelled[labelled.duplicated(rest, keep=False)]
    if same.empty:
        return 0
    values = same.groupby(rest, dropna=False, sort=False)[target].transform("nunique")
    return int((values > 1).sum())


def _alike(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Pairs of an earlier column and a column with the same partition of the rows."""
    first_names: dict[bytes, str] = {}
    for name in frame.columns:
        codes = pd.factorize(frame[name])[0]
        earlier = first_names.setdefault(codes.tobytes(), str(name))
        if earlier != name and codes.max(initial=-1) > 0:
            yield earlier, str(name)


def _spread(job: Job, column: Column) -> Spread:
    """The bars of a column, by class where there are some."""
    values = job.X[column.name].reset_index(drop=True)
    groups = [values[(job.y == label).to_numpy()] for label in sorted(job.y.dropna().unique())]
    groups = groups or [values]
    kind = job.kinds[column.name]
    if kind.has_levels:
        frequent = values.value_counts().index[:MAX_LEVEL_BARS]
        if kind.is_ordered:
            frequent = frequent.sort_values(key=lambda levels: levels.map(kind.levels.index))
        bars = np.array([[float((rows == level).sum()) for level in frequent] for rows in groups])
        more = int(values.nunique()) - len(frequent)
        levels = tuple(map(str, frequent))
        most = values.value_counts(normalize=True)
        facts = plural(int(values.nunique()), "level")
        if len(most):
            facts += f"; {percent(float(most.iloc[0]))} {clipped(most.index[0], 20)}"
        return Spread(column, bars, ("", ""), levels, more, facts)
    numbers = values.dropna().to_numpy(dtype=float)
    if not numbers.size:
        return Spread(column, np.zeros((1, 0)), ("", ""), (), 0, "no value")
    low, high = float(numbers.min()), float(numbers.max())
    wide = (low, high) if high > low else (low - 0.5, high + 0.5)
    bars = np.array(
        [
            np.histogram(data.dropna().to_numpy(dtype=float), _bins(numbers), wide)[0].astype(float)
            for data in groups
        ]
    )
    quarter, middle, three = (
        job.cell(column.name, q) for q in np.quantile(numbers, [0.25, 0.5, 0.75])
    )
    facts = f"median {middle}, half of the cells {between(quarter, three)}"
    if not kind.is_ordered:  # a circle has no middle cell
        facts = plural(np.unique(numbers).size, "value")
    ends = job.cell(column.name, low), job.cell(column.name, high)
    return Spread(column, bars, ends, (), 0, facts)


def _bins(values: Float[np.ndarray, " value"]) -> int:
    """A bar for every whole number where there are few, else the report's number."""
    span = int(np.ptp(values)) + 1 if np.all(values == np.round(values)) else BARS + 1
    return span if span <= BARS else BARS


def opening(look: Look) -> str:
    """A sentence: rows, columns of every kind, and missing cells."""
    reading = look.reading
    kinds = [plural(n, f"{kind} column") for kind, n in sorted(look.kinds.items(), reverse=True)]
    holes = "no cell is missing"
    if reading.missing:
        holes = f"{percent(reading.missing)} of the cells are missing"
    return f"{plural(reading.rows, 'row')} with {listing(kinds)}; {holes}."


def of_holes(look: Look) -> str:
    """Sentences on missing cells, and on complete rows."""
    columns = [column for column in look.reading.columns if column.missing]
    if not columns:
        return "No cell is missing."
    worst = sorted(columns, key=lambda column: -column.missing)
    most = [f"“{clipped(column.name, 30)}” ({percent(column.missing)})" for column in worst[:3]]
    complete = next((pattern.rows for pattern in look.patterns if not pattern.columns), 0)
    verb = "has" if len(columns) == 1 else "have"
    rows = f"{plural(complete, 'row is', 'rows are')} complete, of {count(look.reading.rows)}"
    if not complete:
        rows = "complete rows are rare, or there are none"
    text = (
        f"{plural(len(columns), 'column')} of {len(look.reading.columns)} {verb} missing cells, "
        f"most in {listing(most)}; {rows}."
    )
    if not look.missing_with_target:
        return text
    named = [f"“{clipped(name, 30)}” ({number(size)})" for name, size in look.missing_with_target]
    return (
        f"{text} More than chance explains, “{clipped(look.target)}” goes with whether a cell is "
        f"missing of {listing(named)}: will cells of new rows be missing for the same reasons?"
    )


def of_duplicates(look: Look) -> str:
    """Rows and columns that are there twice."""
    sentences = []
    if look.repeated:
        is_single = look.repeated == 1
        sentences.append(
            f"{plural(look.repeated, 'row')} {'equals' if is_single else 'equal'} an earlier row "
            "in every cell: if the same one is there twice, held-out rows are not new"
        )
    if look.contradicting:
        sentences.append(
            f"{plural(look.contradicting, 'row')} are equal in all but “{clipped(look.target)}”, "
            "in which they differ"
        )
    sentences += [
        f"“{clipped(second)}” tells the same as “{clipped(first)}”, row by row"
        for first, second in look.alike[:6]
    ]
    return f"{'; '.join(sentences)}." if sentences else "No row and no column is there twice."


def of_pairs(look: Look) -> str:
    """The strongest association, or that there is none."""
    pairs = look.with_target or look.pairs
    if not pairs:
        return "No two columns hang together strongly and beyond chance."
    pair = pairs[0]
    head = f"{plural(len(look.with_target) + len(look.pairs), 'pair')} of columns hang together"
    return (
        f"{head}, more than chance explains; first “{clipped(pair.first)}” and "
        f"“{clipped(pair.second)}” ({number(pair.strength)}, where 1 is the most)."
    )


# Renders the first look at a table, as a page and as lines for the terminal.


LINES: Final = 30
"""Columns, and pairs of them, that have a line in the terminal."""
WIDTH, HEIGHT = 232.0, 96.0


def render_look(first_look: Look) -> str:
    """The page as HTML without scripts, control characters or anything from outside."""
    template = environment().get_template("look.html")
    page = template.render(
        look=first_look,
        sentence={
            "opening": opening(first_look),
            "holes": of_holes(first_look),
            "duplicates": of_duplicates(first_look),
            "pairs": of_pairs(first_look),
        },
        pictures=[spread(bars) for bars in first_look.spreads],
        missingness=missingness(first_look.reading),
        classes=legend({name: f"bar c{c % 8}" for c, name in enumerate(first_look.classes)}),
        share=share_bar,
        most=MAX_LINES,
        version=__version__,
    )
    return words.harmless(page)


def spread(drawn: Spread) -> Markup:
    """A column as a picture: stacked bars, with the ends or the levels below."""
    styles = [f"fill c{c % 8}" for c in range(len(drawn.bars))]
    bars = stacked(drawn.bars, WIDTH, HEIGHT, styles)
    axis = segment(0, HEIGHT, WIDTH, HEIGHT, "axis")
    title = f"Distribution of {drawn.column.name}: {drawn.facts}"
    return picture(
        WIDTH, HEIGHT + 20, title, *bars, axis, *_under(drawn, WIDTH / max(drawn.bars.shape[1], 1))
    )


def _under(bars: Spread, wide: float) -> Iterator[Markup]:
    """Ends of a real column, or levels as far as they fit."""
    y = HEIGHT + 15
    if not bars.levels:
        yield element("text", bars.ends[0], class_="tick start", x=0, y=y)
        yield element("text", bars.ends[1], class_="tick end", x=WIDTH, y=y)
        return
    letters = int(wide / 8.5)
    for i, level in enumerate(bars.levels):
        if letters >= 3:
            middle = (i + 0.5) * wide
            yield element("text", clipped(level, letters), class_="tick", x=middle, y=y)
    if letters < 3:
        yield element("text", clipped(bars.levels[0], 14), class_="tick start", x=0, y=y)
        last = clipped(bars.levels[-1], 14)
        yield element("text", last, class_="tick end", x=WIDTH, y=y)


def lines_of_look(first_look: Look) -> Iterator[str]:
    """The content of the page as lines for the terminal."""
    yield f"{first_look.title}: {opening(first_look)}"
    yield from first_look.remarks
    shown = first_look.reading.columns[:LINES]
    wide = max(len(clipped(column.name, 24)) for column in shown)
    yield f"  {'column':<{wide}}  {'kind':<11}  {'missing':>8}  range or levels"
    for column in shown:
        name = f"{clipped(column.name, 24):<{wide}}"
        missing, content = percent(column.missing), clipped(column.content, 80)
        yield f"  {name}  {column.kind:<11}  {missing:>8}  {content}"
    if len(first_look.reading.columns) > LINES:
        yield f"  and {plural(len(first_look.reading.columns) - LINES, 'column')} more"
    for note in first_look.reading.notes:
        yield f"  note: {note}"
    yield f"Missing: {of_holes(first_look)}"
    for pattern in first_look.patterns if first_look.reading.missing else ():
        names = listing([clipped(name, 24) for name in pattern.columns], 5)
        yield f"  {count(pattern.rows):>8} {f'without {names}' if names else 'complete'}"
    yield f"Twice: {of_duplicates(first_look)}"
    yield f"Associations: {of_pairs(first_look)}"
    yield from _of_pairs((*first_look.with_target, *first_look.pairs))


def _of_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each of the strongest pairs."""
    for pair in pairs[:LINES]:
        names = f"{clipped(pair.first, 24)} – {clipped(pair.second, 24)}"
        measure = f"{pair.measure}{', falling' if pair.falling else ''}"
        yield f"  {number(pair.strength):>6}  {names}  ({measure}, {count(pair.rows)} rows)"
    if len(pairs) > LINES:
        yield f"  and {plural(len(pairs) - LINES, 'pair')} more"

"""What was read: the columns of the table, its labels and missing cells, and what looks odd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from markupsafe import Markup

from bayesrbf.app.report.drawing import share_bar, stacked
from bayesrbf.app.report.job import Job
from bayesrbf.app.svg import element, picture, rect
from bayesrbf.app.words import between, clipped, count, listing, number, percent, plural
from bayesrbf.fit.asking import missingness_changes
from bayesrbf.table.encode import encode_labels

BANDS = 40
"""Most bands of rows in the picture of missing cells."""
BARS = 20
MAX_LEVEL_BARS = 12
MISSING_BY_CHANCE = 0.05
"""Probability that any class is said to lack cells of a column though chance explains it."""
NEAR = 0.999
"""Correlation above which two columns are reported as the same."""
MAX_COLUMNS = 60
"""Columns in the picture of missing cells: those with most of them."""


@dataclass(frozen=True)
class Column:
    """Summary of one column."""

    name: str
    kind: str  # In words.
    missing: float  # A share.
    content: str  # Range, or most frequent levels.
    histogram: Float[np.ndarray, " bar"]
    """Counts in equal bins of a real column, or of the most frequent levels."""
    missing_more: tuple[tuple[str, float], ...] = ()
    """Classes of which more cells are missing, beyond chance, and their shares."""


@dataclass(frozen=True)
class Reading:
    """Summary of the table."""

    rows: int
    columns: tuple[Column, ...]  # Without the target.
    class_counts: Mapping[str, int]  # Labelled rows by class.
    unlabelled: int  # Rows without a label.
    holes: Float[np.ndarray, "band column"]  # Share of missing cells by band of consecutive rows.
    band: int  # Rows in a band.
    patterns: int  # Number of distinct patterns of missing cells.
    notes: tuple[str, ...]  # Sentences on what looked odd.
    missingness: str = ""  # What held-out rows gain by missing indicators.

    @property
    def missing(self) -> float:
        """Share of missing cells of the whole table."""
        shares = [column.missing for column in self.columns]
        return float(np.mean(shares)) if shares else 0.0


def compute(job: Job, missingness: str = "") -> Reading:
    """Summarise the columns of a table, its missing cells and its oddities."""
    missing = job.X.isna().to_numpy()
    classes, labels = encode_labels(job.y)
    band = -(-len(job.X) // BANDS)
    starts = range(0, len(job.X), band)
    holes = np.stack([missing[start : start + band].mean(0) for start in starts])
    counts = np.bincount(labels[labels >= 0], minlength=classes.size)
    more = _missing_more(job, missing, list(map(str, classes)), labels)
    return Reading(
        rows=len(job.X),
        columns=tuple(
            replace(_column(job, name), missing_more=tuple(more.get(name, ())))
            for name in job.X.columns
        ),
        class_counts={str(c): int(n) for c, n in zip(classes, counts, strict=True)},
        unlabelled=int((labels < 0).sum()),
        holes=holes,
        band=band,
        patterns=len(np.unique(missing, axis=0)),
        notes=(*job.notes, *_near_duplicates(job)),
        missingness=missingness,
    )


def _missing_more(
    job: Job,
    missing: Bool[np.ndarray, "row column"],
    classes: Sequence[str],
    labels: Int[np.ndarray, " row"],
) -> dict[str, list[tuple[str, float]]]:
    """By column, classes with a significantly larger missing fraction than all other classes."""
    found: dict[str, list[tuple[str, float]]] = {}
    for position, label in enumerate(classes if len(classes) > 1 else ()):
        labelled, inside = labels >= 0, labels == position
        rest, cells = missing[labelled & ~inside], missing[labelled & inside]
        chance = MISSING_BY_CHANCE / len(classes)
        for change in missingness_changes(list(job.X), rest, cells, chance, together=False):
            if change.is_more:
                found.setdefault(change.columns[0], []).append((label, change.now))
    return found


def _column(job: Job, name: str) -> Column:
    """Summarise one column."""
    values = job.X[name]
    share = float(values.isna().mean())
    if not job.kinds[name].has_levels:
        numbers = values.dropna().to_numpy(dtype=float)
        content = "no value"
        if numbers.size:
            content = between(job.cell(name, numbers.min()), job.cell(name, numbers.max()))
        bars = _histogram(numbers)
        return Column(name, job.kinds[name].word, share, content, bars)
    levels = values.dropna().astype(str).value_counts()
    content = f"{plural(len(levels), 'level')}: {listing([clipped(v, 24) for v in levels.index])}"
    bars = levels.to_numpy(dtype=float)[:MAX_LEVEL_BARS]
    return Column(name, job.kinds[name].word, share, content, bars)


def _histogram(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " bar"]:
    """Counts in equal bins between the extremes."""
    if values.size == 0:
        return np.zeros(0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([float(values.size)])
    bar = ((values / (high - low) - low / (high - low)) * BARS).astype(int)
    # The maximum lies on the upper edge of the last bin.
    return np.bincount(np.clip(bar, 0, BARS - 1), minlength=BARS).astype(float)


def _near_duplicates(job: Job) -> Iterator[str]:
    """Pairs of real columns with an absolute correlation close to one."""
    reals = job.lines
    if len(reals) < 2:
        return
    with np.errstate(all="ignore"):  # constant columns have no correlation
        related = job.X[reals].corr(min_periods=10).abs().to_numpy()
    pairs = np.argwhere(np.triu(related, 1) > NEAR)
    if len(pairs):
        named = [f"“{reals[i]}” and “{reals[j]}” ({number(related[i, j])})" for i, j in pairs]
        yield f"Nearly the same, by their correlation, are {listing(named)}."


def say(reading: Reading) -> dict[str, str]:
    """Message on rows, columns, classes and missing cells."""
    kinds = [column.kind for column in reading.columns]
    kind_counts = [
        plural(kinds.count(kind), f"{kind} column")
        for kind in dict.fromkeys(sorted(kinds, reverse=True))
    ]
    holes = f"{percent(reading.missing)} of the cells are missing"
    if reading.missing == 0:
        holes = "no cell is missing"
    unlabelled = plural(reading.unlabelled, "row has", "rows have")
    labels = f", {unlabelled} no label" if reading.unlabelled else ""
    rows = plural(reading.rows, "row")
    classes = len(reading.class_counts)
    return {"read": f"{rows} with {listing(kind_counts)} and {classes} classes; {holes}{labels}."}


def show(reading: Reading) -> dict[str, Any]:
    """Missing cells, and of every column its distribution and the share that is missing."""
    return {
        "missingness": missingness(reading),
        "histograms": [
            picture(
                88.0,
                22.0,
                f"Distribution of {c.name}",
                *stacked(c.histogram[None], 88.0, 22.0, ["fill c0"]),
            )
            for c in reading.columns
        ],
        "shares": [share_bar(c.missing, f"{percent(c.missing)} missing") for c in reading.columns],
    }


def missingness(reading: Reading) -> Markup | None:
    """Share of missing cells: bands of rows down, columns across; None where nothing is missing."""
    if reading.missing == 0:
        return None
    worst = sorted(range(len(reading.columns)), key=lambda j: -reading.columns[j].missing)
    shown = sorted(worst[:MAX_COLUMNS])
    names, holes = [reading.columns[j].name for j in shown], reading.holes[:, shown]
    n_bands, n_columns = holes.shape
    cell, high, left = 18.0, max(4.0, min(14.0, 220 / n_bands)), 74.0
    texts = [clipped(name, 40) for name in names]
    longest = max(map(len, texts), default=0)
    top = 14.0 + 6.0 * longest  # Names are turned: they stand up, and lean to the right.
    squares = [
        rect(
            left + cell * j,
            top + high * i,
            cell - 1,
            high - min(1.0, high / 6),
            "fill c0",
            fill_opacity=float(share),
        )
        for (i, j), share in np.ndenumerate(holes)
        if share > 0
    ]
    labels = []
    for j, text in enumerate(texts):
        x, y = left + cell * (j + 0.65), top - 6
        turned = f"rotate(-60 {x:.1f} {y:.1f})"
        labels.append(element("text", text, class_="tick start", x=x, y=y, transform=turned))
    bottom = top + high * n_bands
    rows = [
        element("text", "row 1", class_="tick end", x=left - 8, y=top + 10),
        element("text", f"row {count(reading.rows)}", class_="tick end", x=left - 8, y=bottom),
        rect(left, top, cell * n_columns, high * n_bands, "outline"),
    ]
    title = (
        f"Missing cells by column and by bands of {reading.band} rows; most in "
        f"{names[int(holes.mean(0).argmax())] if n_columns else ''}, "
        f"{percent(float(holes.mean(0).max(initial=0)))}"
    )
    return picture(
        left + cell * n_columns + 10 + 3.5 * longest, bottom + 8, title, *squares, *labels, *rows
    )

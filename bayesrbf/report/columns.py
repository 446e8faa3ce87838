"""A summary of every column, and what looks odd about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import rankdata

from bayesrbf.report.job import Job
from bayesrbf.report.records import Column, Reading
from bayesrbf.report.words import between, clipped, listing, number, percent, plural
from bayesrbf.table import encode_labels

BANDS = 40
"""Most bands of rows in the picture of missing cells."""
BARS = 20
MOST_LEVEL_BARS = 12
NEAR = 0.999
"""Correlation above which two columns are reported as the same."""
TELLING = 0.99
"""Area under the ROC curve above which one column alone tells a class."""


def read_columns(job: Job) -> Reading:
    """Summarise the columns of a table, its missing cells and its oddities."""
    missing = job.X.isna().to_numpy()
    classes, labels = encode_labels(job.y)
    band = -(-len(job.X) // BANDS)
    starts = range(0, len(job.X), band)
    holes = np.stack([missing[start : start + band].mean(0) for start in starts])
    counts = np.bincount(labels[labels >= 0], minlength=classes.size)
    return Reading(
        rows=len(job.X),
        columns=tuple(_column(job, name) for name in job.X.columns),
        class_counts={str(c): int(n) for c, n in zip(classes, counts, strict=True)},
        hidden=int((labels < 0).sum()),
        holes=holes,
        band=band,
        patterns=len(np.unique(missing, axis=0)),
        notes=(*_leaks(job, labels), *job.notes, *_near_duplicates(job)),
    )


def _column(job: Job, name: str) -> Column:
    """Summarise one column."""
    values = job.X[name]
    share = float(values.isna().mean())
    if job.kinds[name] == "real":
        numbers = values.dropna().to_numpy(dtype=float)
        content = "no value"
        if numbers.size:
            content = between(job.cell(name, numbers.min()), job.cell(name, numbers.max()))
        bars = _histogram(numbers)
        return Column(name, "real", share, content, bars)
    levels = values.dropna().astype(str).value_counts()
    content = f"{plural(len(levels), 'level')}: {listing([clipped(v, 24) for v in levels.index])}"
    bars = levels.to_numpy(dtype=float)[:MOST_LEVEL_BARS]
    return Column(name, "categorical", share, content, bars)


def _histogram(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " bar"]:
    """Counts in equal bins between the extremes."""
    if values.size == 0:
        return np.zeros(0)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([float(values.size)])
    place = ((values / (high - low) - low / (high - low)) * BARS).astype(int)
    return np.bincount(np.clip(place, 0, BARS - 1), minlength=BARS).astype(float)


def _leaks(job: Job, labels: Int[np.ndarray, " obs"]) -> Iterator[str]:
    """Columns, or their missing cells, that alone separate a class from the others."""
    alone, missing_alone = {}, {}
    for name in job.X.columns:
        missing = job.X[name].isna().to_numpy()
        missing_alone[name] = _best_area(missing.astype(float), labels)
        if job.kinds[name] == "real":
            values = np.where(missing, np.nan, job.X[name].to_numpy(dtype=float))
            alone[name] = _best_area(values, np.where(missing, -1, labels))
        else:
            alone[name] = _level_purity(job.X[name], labels)
    leaks = [f"“{name}” ({percent(area)})" for name, area in alone.items() if area > TELLING]
    if leaks:
        yield (
            f"{listing(leaks)} {'tells' if len(leaks) == 1 else 'each tell'} a class from the "
            "others without any other column (in brackets: pairs of rows put in the right order). "
            f"{'Is it' if len(leaks) == 1 else 'Are they'} known before the label is? If not, "
            "leave out by --ignore: the figures of a fit would be too good."
        )
    leaks = [f"“{n}” ({percent(area)})" for n, area in missing_alone.items() if area > TELLING]
    if leaks:
        yield (
            f"Whether a cell of {listing(leaks)} is missing tells a class from the others without "
            "any other column (in brackets: pairs of rows put in the right order). Were cells "
            "left empty because the label was known? If so, leave out by --ignore."
        )


def _near_duplicates(job: Job) -> Iterator[str]:
    """Pairs of real columns with an absolute correlation close to one."""
    reals = [name for name in job.X.columns if job.kinds[name] == "real"]
    if len(reals) < 2:
        return
    with np.errstate(all="ignore"):  # constant columns have no correlation
        related = job.X[reals].corr(min_periods=10).abs().to_numpy()
    pairs = np.argwhere(np.triu(related, 1) > NEAR)
    if len(pairs):
        named = [f"“{reals[i]}” and “{reals[j]}” ({number(related[i, j])})" for i, j in pairs]
        yield f"Nearly the same, by their correlation, are {listing(named)}."


def _best_area(values: Float[np.ndarray, " obs"], labels: Int[np.ndarray, " obs"]) -> float:
    """Largest area under the ROC curve of a class against the rest, in either direction."""
    labelled = labels >= 0
    ranks, codes = rankdata(values[labelled]), labels[labelled]
    areas = []
    for code in np.unique(codes):
        own = codes == code
        n, m = int(own.sum()), int((~own).sum())
        if min(n, m) >= 5:
            area = (ranks[own].sum() - n * (n + 1) / 2) / (n * m)
            areas.append(max(area, 1 - area))
    return float(max(areas, default=0.0))


def _level_purity(values: pd.Series, labels: Int[np.ndarray, " obs"]) -> float:
    """Largest area under the ROC curve when levels are ranked by a class's frequency in them."""
    labelled = (labels >= 0) & values.notna().to_numpy()
    if values[labelled].nunique() > max(20, 0.2 * labelled.sum()):
        return 0.0  # with so many levels any column separates the classes
    areas = [0.0]
    for code in np.unique(labels[labelled]):
        own = pd.Series((labels == code).astype(float), index=values.index)[labelled]
        share = own.groupby(values[labelled].to_numpy()).transform("mean").to_numpy()
        areas.append(_best_area(share, own.to_numpy().astype(int)))
    return max(areas)

"""Whether probabilities come true in every part of the table: levels and ranges of its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from bayesrbf.posterior.chance import holm, two_sided
from bayesrbf.posterior.held_out import Interval, proportion
from bayesrbf.report.job import Job
from bayesrbf.report.performance import class_of_interest
from bayesrbf.report.validate import HeldOutRows
from bayesrbf.report.words import between, clipped

QUARTERS: Final = (0.25, 0.5, 0.75)
MOST_LEVEL_GROUPS: Final = 12
"""Levels of a column that are groups; all others are one together."""
FEWEST_IN_GROUP: Final = 5
"""Rows of a group below which it is not looked at."""
WRONGLY: Final = 0.05
"""Probability with which any group is told as off although the model is calibrated."""
LISTED_GROUPS: Final = 12


@dataclass(frozen=True)
class Subgroup:
    """One class in one part of the held-out rows."""

    name: str
    label: str
    rows: int
    predicted: float  # Mean probability of the class.
    came: Interval  # Share of the class.
    chance: float  # Probability of such a share, or a rarer one, for a calibrated model.


@dataclass(frozen=True)
class Subgroups:
    """Parts of the table in which probabilities do not come true beyond chance."""

    looked_at: int  # Pairs of a part and a class.
    off: tuple[Subgroup, ...]  # The least probable first.


def read_subgroups(job: Job, held_out: HeldOutRows, model: str) -> Subgroups:
    """Hold said against come true in every group, for every class; for one where there are two.

    For a calibrated model the number of rows of a class in a group has a Poisson-binomial law.
    Holm's method counts how many groups were looked at.
    """
    rows = held_out.scored
    p, labels = held_out.probabilities[model][rows], held_out.labels[rows]
    frequent = np.bincount(labels, minlength=len(held_out.classes)) >= FEWEST_IN_GROUP
    binary = len(held_out.classes) == 2
    classes = [class_of_interest(held_out, job.costs)] if binary else np.flatnonzero(frequent)
    parts = []
    for name, inside in groups_of(job, rows):
        size = int(inside.sum())
        for c in classes if FEWEST_IN_GROUP <= size < len(rows) else ():
            came = int((labels[inside] == c).sum())
            own = p[inside, c]
            parts.append(
                Subgroup(
                    name,
                    str(held_out.classes[c]),
                    size,
                    float(own.mean()),
                    proportion(came / size, size),
                    two_sided(own, came),
                )
            )
    off = holm(np.array([group.chance for group in parts]), WRONGLY)
    listed = sorted((group for group, bad in zip(parts, off, strict=True) if bad), key=_chance)
    return Subgroups(len(parts), tuple(listed[:LISTED_GROUPS]))


def _chance(group: Subgroup) -> float:
    """Sort key of a group: the p value of its deviation."""
    return group.chance


def groups_of(job: Job, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names of groups and which of some rows are in them: levels, quarters, missing cells."""
    for name in job.X.columns:
        column = job.X[name].iloc[rows].reset_index(drop=True)
        shown = clipped(name, 30)
        if job.kinds[name] == "real":
            yield from _quarters(job, name, column.to_numpy(dtype=float), shown)
        else:
            yield from _levels(column, shown)
        missing = column.isna().to_numpy()
        if missing.any():
            yield f"{shown} missing", missing


def _quarters(
    job: Job, name: str, values: np.ndarray, shown: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Four ranges with about as many rows each; fewer where values repeat."""
    observed = values[~np.isnan(values)]
    if not observed.size:
        return
    cuts = np.unique(np.quantile(observed, QUARTERS, method="inverted_cdf"))
    part = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
    for value in np.unique(part[part >= 0]):
        inside = part == value
        low, high = (job.cell(name, float(f(values[inside]))) for f in (np.min, np.max))
        yield f"{shown} {between(low, high)}", inside


def _levels(column: pd.Series, shown: str) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent levels, and all others together."""
    frequent = column.dropna().value_counts().index[:MOST_LEVEL_GROUPS]
    for level in frequent:
        inside = column.eq(level).to_numpy(dtype=bool, na_value=False)
        yield f"{shown} = {clipped(level, 24)}", inside
    others = (column.notna() & ~column.isin(frequent)).to_numpy()
    if others.any():
        yield f"{shown}: other levels", others

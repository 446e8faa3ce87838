"""From a file that was read to a job; everything is checked before work begins."""

from __future__ import annotations

import hashlib
import math
import platform
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from bayesrbf.reading import ReadTable, TableError
from bayesrbf.report.families import check_method
from bayesrbf.report.job import FamilyName, Inference, Job, Truth
from bayesrbf.version import __version__

MOST_CLASSES = 50
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pymc", "arviz")


def prepare(
    table: ReadTable,
    target: str,
    *,
    title: str,
    family: FamilyName,
    inference: Inference,
    seed: int,
    facts: tuple[tuple[str, str], ...],
    costs: Mapping[str, float] | None = None,
    truth: pd.DataFrame | None = None,
    rehearse: bool = False,
) -> Job:
    """Set the label column apart and refuse a table or an inference that cannot be run."""
    check_method(family, inference)
    if rehearse and inference == "map":
        raise ValueError(
            "--rehearse tries intervals, and --inference map makes none; leave one of the two out."
        )
    if len(table.kinds) == 1:
        raise TableError(f"{title} has no column beside the target {target!r}: nothing to learn.")
    named = table.frame.index.name is not None
    frame = table.frame if named else table.frame.reset_index(drop=True)
    labels = frame[target].astype(object)
    y = labels.where(labels.notna(), None)
    _check_classes(y, target)
    _check_costs({} if costs is None else costs, y, target)
    X = frame.drop(columns=target)
    kinds = {name: kind for name, kind in table.kinds.items() if name != target}
    known = None if truth is None else Truth(truth[X.columns], truth[target])
    return Job(
        title=title,
        target=target,
        X=X,
        y=y,
        kinds=kinds,
        inference=inference,
        seed=seed,
        notes=table.notes,
        facts=facts,
        truth=known,
        family=family,
        costs=costs or {},
        rehearse=rehearse,
    )


def _check_classes(y: pd.Series, target: str) -> None:
    """Refuse fewer than two classes of two rows, and a class for every other row."""
    counts = Counter(y.dropna().tolist())
    if not counts:
        raise TableError(f"Target {target!r} is empty: at least two classes need labelled rows.")
    if len(counts) == 1:
        only = next(iter(counts))
        raise TableError(
            f"Target {target!r} has one class, {str(only)!r}: a classifier needs at least two."
        )
    if len(counts) > max(2, min(MOST_CLASSES, counts.total() / 2)):
        raise TableError(
            f"Target {target!r} has {len(counts)} different values in {counts.total()} labelled "
            "rows: a classifier needs few classes with many rows; is it a number to predict?"
        )
    if sum(rows >= 2 for rows in counts.values()) < 2:
        raise TableError(
            f"Target {target!r} has no two classes with two labelled rows each, so nothing can be "
            "held out; label more rows."
        )


def _check_costs(costs: Mapping[str, float], y: pd.Series, target: str) -> None:
    """Refuse costs of unknown classes, and costs that are not above 0."""
    classes = sorted({str(label) for label in y.dropna()})
    for name, cost in costs.items():
        if name not in classes:
            raise TableError(
                f"--cost names {name!r}, which is no class of {target!r}: {', '.join(classes)}."
            )
        if not (math.isfinite(cost) and cost > 0):
            raise TableError(f"--cost {name}={cost:g} must be above 0 and finite.")


def facts_of(command: str, path: Path) -> tuple[tuple[str, str], ...]:
    """What is needed to run again: command, versions, digest of the file."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        ("command", command),
        ("data", f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}"),
        ("bayesrbf", __version__),
        ("libraries", f"{libraries}; Python {platform.python_version()}"),
    )

"""From a file that was read to a job; everything is checked before work begins."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrbf.estimators.reading import units_in
from bayesrbf.estimators.stack.stack_folds import usual_folds
from bayesrbf.reading import ReadTable, TableError
from bayesrbf.records.units import copies_sentence
from bayesrbf.report.families import FAMILIES, check_method
from bayesrbf.report.job import Job, Truth
from bayesrbf.report.options import FamilyName, Inference
from bayesrbf.version import __version__

FOLDS, FEWER = 5, 3
"""Folds of the validation, at most, of tables and of large ones."""
MOST_IN_FIVE = 2_000
"""Rows up to which there are five: two thirds of more teach nearly as much as four fifths, and
every fold of another family than the stack costs a fit."""
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pymc", "arviz")


def prepare(
    table: ReadTable,
    *,
    title: str,
    family: FamilyName,
    inference: Inference,
    seed: int,
    facts: tuple[tuple[str, str], ...],
    costs: Mapping[str, float] | None = None,
    truth: pd.DataFrame | None = None,
    rehearse: bool = False,
    judged: bool = True,
    draws: int | None = None,
    jobs: int = 1,
) -> Job:
    """A job of a table that was read with its target; refuse an inference that cannot be run.

    A job that is not judged holds no row out, so the order of its rows plays no part.
    """
    check_method(family, inference)
    if rehearse and inference == "map":
        raise ValueError(
            "--rehearse tries intervals, and --inference map makes none; leave one of the two out."
        )
    if table.target is None:
        raise ValueError("a report needs a target: name the column of labels.")
    target = str(table.target.name)
    units, repeated = units_in(
        table.frame, None if table.groups is None else table.groups.to_numpy(), "prepare"
    )
    complete = None if truth is None else Truth(truth[table.frame.columns], truth[target])
    job = Job(
        title=title,
        target=target,
        X=table.frame,
        y=table.target.where(table.target.notna(), None).reset_index(drop=True),
        kinds=table.kinds,
        inference=inference,
        seed=seed,
        notes=table.notes,
        facts=facts,
        truth=complete,
        family=family,
        costs=costs or {},
        rehearse=rehearse,
        draws=draws,
        jobs=jobs,
        folds=_folds(table, family),
        reading=table.options,
        groups=None if units is None else units.numbers,
        times=table.times.to_numpy() if judged and table.times is not None else None,
    )
    _check_splits(job)
    sentences = [
        job.splits.sentence if table.groups is not None or job.times is not None else "",
        copies_sentence(repeated) if repeated else "",
        "" if judged else _unjudged(table),
    ]
    return replace(job, notes=(*filter(None, sentences), *job.notes))


def _folds(table: ReadTable, family: FamilyName) -> int:
    """Folds at most. A stack has those of its own pool, which cost it nothing more."""
    if FAMILIES[family].pools:
        return usual_folds(0.0 if table.target is None else float(table.target.notna().sum()))
    return FOLDS if len(table.frame) <= MOST_IN_FIVE else FEWER


def _unjudged(table: ReadTable) -> str:
    """A sentence on the column that orders the rows, where no row is held out."""
    if table.times is None:
        return ""
    return (
        f"Column {str(table.times.name)!r} orders the rows and is no part of the model. No row is "
        "held out here; report judges the model on the latest rows."
    )


def _check_splits(job: Job) -> None:
    """Refuse groups or times by which nothing can be held out, or a class is never taught."""
    splits = job.splits
    if not splits.numbers.size:
        part = "--time" if job.times is not None else "--group"
        raise TableError(
            f"{part} leaves no row to be held out: too few times or groups have rows of two "
            "classes; leave the option out."
        )
    present = np.unique(job.labels[job.labels >= 0])
    for fold in splits.numbers.tolist():
        absent = np.setdiff1d(present, job.labels[splits.training(fold)])
        if absent.size:
            label = sorted({str(one) for one in job.y.dropna()})[absent[0]]
            raise TableError(
                f"Before some of the rows that are held out, no row has the class {label!r}, so "
                "it cannot be learnt from them; leave --time or --group out."
            )


def facts_of(command: str, path: Path) -> tuple[tuple[str, str], ...]:
    """Facts that reproduce a run: command, versions, digest of the file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        ("command", command),
        ("data", f"{path.name}, SHA-256 {digest}"),
        ("bayesrbf", __version__),
        ("libraries", f"{libraries}; Python {platform.python_version()}"),
    )

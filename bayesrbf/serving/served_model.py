"""A model folder, opened: the model, the fields of its form, and what its card says."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from bayesrbf.estimators.saving import load
from bayesrbf.new_rows.new_row_files import refuse_kinds
from bayesrbf.new_rows.training_cells import training_cells
from bayesrbf.reading.notation import date_of
from bayesrbf.report.costs import costs_of, problems_of_costs
from bayesrbf.report.options import ReportOptions, read_options
from bayesrbf.report.output import MODEL, PREDICTIONS, spelled
from bayesrbf.report.words import cell, decimals_of
from bayesrbf.serving.settings import ModelFolder
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.estimators.classifier import Classifier

HELD_OUT: Final = "held_out_"
"""How the columns of predictions.csv begin that have probabilities of held-out rows."""
FEW: Final = 10
"""Held-out rows of a class below which they say little of it."""
N_BARS: Final = 22
TAILS: Final = 0.01
"""Share of the training cells below the field's slider, and above it."""


@dataclass(frozen=True)
class Field:
    """A column of the model as a field of a form."""

    position: int
    name: str
    is_number: bool
    is_date: bool
    missing: float  # Share of the training cells.
    levels: tuple[tuple[str, float], ...]  # With their shares; empty of numbers.
    low: float  # Ends of the slider, NaN of levels.
    high: float
    decimals: int | None  # Of its cells; None where powers of ten serve them better.
    extent: str  # The training cells in words.
    bars: tuple[float, ...]  # The distribution of the training cells, at most 1.

    @property
    def step(self) -> float:
        """Step of the slider."""
        return float(10.0 ** -_places(self.decimals))

    def written(self, value: float) -> str:
        """A cell in words."""
        return date_of(value) if self.is_date else cell(value, self.decimals)


@dataclass(frozen=True)
class HeldOut:
    """How the model did on training rows that its fits had not seen."""

    rows: int
    log_loss: float  # In nats.
    frequencies_log_loss: float  # Of the class frequencies of these rows.
    accuracy: float
    rare: tuple[str, ...]  # Classes of so few held-out rows that they say little of them.


@dataclass(frozen=True)
class ServedModel:
    """A model and all that its pages say of it."""

    name: str
    prefix: str
    folder: Path
    estimator: Classifier
    options: ReportOptions
    costs: Mapping[str, float]
    refer: float | None
    digest: str
    written: str  # The day on which the file was written.

    @classmethod
    def of(cls, served: ModelFolder) -> ServedModel:
        """Open a folder; ValueError or OSError where it cannot be, or costs are of no class."""
        file = served.folder / MODEL
        estimator, options = load(file), read_options(served.folder)
        if not is_classifier(estimator):
            raise ValueError(
                f"{file} holds a {type(estimator).__name__}, which has no classes; serve answers "
                "about classes."
            )
        refuse_kinds(estimator, file)
        costs = dict(served.costs or options.costs)
        if served.refer is not None and not costs:
            raise ValueError(
                "--refer needs the costs of mistaken rows beside it; name them by --cost."
            )
        problems = list(problems_of_costs(costs, estimator.classes_, f"the model {file}"))
        if problems:
            raise ValueError(" ".join(problems))
        return cls(
            name=served.name,
            prefix=served.prefix,
            folder=served.folder,
            estimator=estimator,
            options=options,
            costs=costs,
            refer=served.refer,
            digest=hashlib.sha256(file.read_bytes()).hexdigest(),
            written=datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat(),
        )

    @property
    def title(self) -> str:
        """What the pages call it."""
        return self.name or self.folder.resolve().name

    @property
    def classes(self) -> list[str]:
        """Classes in the order of the model."""
        return [str(label) for label in self.estimator.classes_]

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the classes in training."""
        shares = self.estimator.fitted_.class_shares.tolist()
        return dict(zip(self.classes, shares, strict=True))

    @property
    def has_density(self) -> bool:
        """Whether rows have a density: cells can then be judged, and what they would tell."""
        return self.estimator.model_.density is not None

    @property
    def of_interest(self) -> str:
        """The class that is explained at first: the dearest to mistake, else the rarest."""
        costs = costs_of(self.classes, self.costs)
        return self.classes[int(np.lexsort((np.array(list(self.shares.values())), -costs))[0])]

    @cached_property
    def plain_reals(self) -> frozenset[str]:
        """Columns of numbers that are no dates."""
        return frozenset(self.estimator.columns_.real_names) - {*self.options.table.dates}

    @property
    def decimal(self) -> str:
        """The decimal mark of the table: a comma where points stand between thousands."""
        return "," if self.options.table.thousands == "." else "."

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells that it was fitted to."""
        return training_cells(self.estimator)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its form."""
        dates, levels = self.options.table.dates, self.estimator.columns_.levels_of
        return tuple(
            _field(place, name, self.cells[name], name in dates, levels.get(name))
            for place, name in enumerate(self.estimator.columns_.names)
        )

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions of its training rows, where the folder has them; else an empty frame."""
        file, names = self.folder / PREDICTIONS, ("label", self.options.table.id)
        if not file.exists():
            return pd.DataFrame()
        texts = {name: str for name in names if name is not None}
        frame = pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=[""])
        frame.columns = pd.Index(map(spelled, frame.columns))
        return frame.assign(
            **{name: frame[name].map(spelled, "ignore") for name in texts if name in frame}
        )

    @cached_property
    def held_out(self) -> HeldOut | None:
        """How it did on held-out rows; None where the folder does not say."""
        names = [HELD_OUT + label for label in self.classes]
        if not {"label", *names} <= {*self.predictions.columns}:
            return None
        judged = self.predictions.dropna(subset=["label", *names])
        codes = pd.Categorical(judged["label"], categories=self.classes).codes
        judged, codes = judged[codes >= 0], codes[codes >= 0]
        if not len(judged):
            return None
        p = judged[names].to_numpy()
        own = p[np.arange(len(p)), codes]
        counts = np.bincount(codes, minlength=len(names))
        shares = counts[counts > 0] / counts.sum()
        return HeldOut(
            rows=len(p),
            log_loss=float(-np.log(np.maximum(own, np.finfo(float).tiny)).mean()),
            frequencies_log_loss=float(-(shares * np.log(shares)).sum()),
            accuracy=float((p.argmax(axis=1) == codes).mean()),
            rare=tuple(np.array(self.classes)[counts < FEW].tolist()),
        )

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the model is, as JSON has it."""
        fit = self.estimator.fitted_
        return {
            "model": self.title,
            "estimator": type(self.estimator).__name__,
            "version": __version__,
            "digest": self.digest,
            "written": self.written,
            "target": self.options.target,
            "classes": self.classes,
            "rows": len(self.cells),
            "has_intervals": fit.draws is not None,
            "intervals_assume_the_model": bool(fit.assumes_model),
            "costs": dict(self.costs),
            "refer": self.refer,
            "held_out": self.held_out,
            "columns": [
                {
                    "name": one.name,
                    "kind": "date" if one.is_date else "number" if one.is_number else "levels",
                    "missing": one.missing,
                    "training": [level for level, _ in one.levels] or one.extent,
                }
                for one in self.fields
            ],
        }


def _places(decimals: int | None) -> int:
    """Decimals of a slider."""
    return 15 if decimals is None else decimals


def _field(
    position: int,
    name: str,
    cells: pd.Series,
    is_date: bool,
    of_column: tuple[object, ...] | None,
) -> Field:
    """A column as a field, by its training cells, and its levels where it has any."""
    missing, observed = float(cells.isna().mean()), cells.dropna()
    if of_column is None:
        return _number(position, name, observed.to_numpy(dtype=float), is_date, missing)
    shares = observed.map(str).value_counts(normalize=True)
    levels = tuple((name, float(shares.get(name, 0.0))) for name in map(str, of_column))
    most = max(share for _, share in levels)
    bars = tuple(share / most for _, share in levels)
    extent = f"{len(levels)} levels"
    return Field(position, name, False, False, missing, levels, np.nan, np.nan, 0, extent, bars)


def _number(position: int, name: str, cells: np.ndarray, is_date: bool, missing: float) -> Field:
    """A column of numbers as a field."""
    if not cells.size:
        return Field(position, name, True, is_date, 1.0, (), 0.0, 1.0, 0, "never observed", ())
    low, high = (float(end) for end in np.quantile(cells, [TAILS, 1 - TAILS]))
    if low == high:
        low, high = float(cells.min()), float(cells.max())
    decimals = 0 if is_date else decimals_of(cells)
    if decimals is not None:
        places = 10.0**decimals
        low, high = math.floor(low * places) / places, math.ceil(high * places) / places
    write = date_of if is_date else (lambda value: cell(value, decimals))
    counts, _ = np.histogram(cells, N_BARS, (low, high) if low < high else None)
    return Field(
        position=position,
        name=name,
        is_number=True,
        is_date=is_date,
        missing=missing,
        levels=(),
        low=low,
        high=high,
        decimals=decimals,
        extent=f"{write(float(cells.min()))} to {write(float(cells.max()))}",
        bars=tuple((counts / max(counts.max(), 1)).tolist()),
    )

"""Requests, access, model folders, and a model opened with its fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from bayesrbf import load
from bayesrbf.app.check import training_cells
from bayesrbf.app.predict import refuse_kinds
from bayesrbf.app.report.costs import (
    costs_of,
    problems_of_focus,
)
from bayesrbf.app.report.options import MODEL, PAGE, Focus, ReportOptions, read_options
from bayesrbf.app.report.output import read_figures, read_predictions
from bayesrbf.app.words import cell, decimals_of
from bayesrbf.table.kinds import Kind
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.families.classifier import Classifier


# What is served, where, and how much of it one request may take.


JSON: Final = "application/json"
CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True)
class ModelFolder:
    """A folder that report or fit wrote, and how its model is served."""

    name: str  # Empty for the only one, which is at the root.
    folder: Path
    costs: Mapping[str, float] = field(default_factory=dict)
    """Cost of a mistaken row by class, in place of those in the folder."""
    refer: float | None = None
    """Cost of referring a row to somebody else; None where that is no choice."""
    shows_rows: bool = True
    """Whether its page fills in rows of the training table."""
    missingness: Literal["as_trained", "ignorable"] = "as_trained"
    """Why cells of the rows that it is asked about are missing."""

    @property
    def prefix(self) -> str:
        """Beginning of the addresses of its pages."""
        return f"/{self.name}" if self.name else ""


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of the requests that wait."""

    rows: int = 10_000
    bytes: int = 10_000_000
    seconds: float = 30.0
    waiting: int = 64
    """Requests that wait for a process; one more is refused."""


@dataclass(frozen=True)
class Access:
    """Hosts and tokens that may ask."""

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    """Names under which the server may be addressed, beside addresses and localhost."""
    token: str = ""
    """Token that a request must have; empty: none."""


@dataclass(frozen=True)
class ModelRequest:
    """A request as a process of the pool takes it."""

    model: str
    task: str
    body: bytes = b""
    media_type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    address: str = "http://127.0.0.1:8000/"
    """Address at which the server was reached."""


@dataclass(frozen=True)
class Tally:
    """Counts of an answer, for the metrics."""

    rows: int = 0
    novel: int = 0  # Of those judged, unlike the training table.
    judged: int = 0
    probability: Mapping[str, float] = field(default_factory=dict)  # Sums over the rows, by class.


NOTHING: Final = Tally()


@dataclass(frozen=True)
class Reply:
    """Reply of a process to a request."""

    content: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # Beside those of every reply.
    tally: Tally = NOTHING


class RequestError(ValueError):
    """A request that cannot be answered: the status, and every problem of it."""

    def __init__(self, status: int, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.status = status
        self.problems = problems


# A model folder, opened: the model, the fields of its form, and what its card says.


ON_CARD: Final = ("verdict", "evidence", "events", "surprise", "unvalidated")
"""Messages of the report and of the validation that the model card has."""
N_BARS: Final = 22
TAILS: Final = 0.01
"""Share of the training cells below the field's slider, and above it."""


@dataclass(frozen=True)
class Field:
    """A column of the model as a field of a form."""

    position: int
    name: str
    kind: Kind
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
        return self.kind.written(value) or cell(value, self.decimals)


@dataclass(frozen=True)
class ServedModel:
    """A model, its training cells, predictions and figures, as pages show them."""

    name: str
    prefix: str
    folder: Path
    estimator: Classifier
    options: ReportOptions
    focus: Focus
    refer: float | None
    shows_rows: bool
    digest: str
    written: str  # The day on which the file was written.

    @classmethod
    def of(cls, served: ModelFolder) -> ServedModel:
        """Open a folder; ValueError or OSError where it cannot be, or costs are of no class."""
        file = served.folder / MODEL
        estimator, options = load(file), read_options(served.folder)
        if served.missingness == "ignorable":
            estimator.assume_missingness(served.missingness)
        if not is_classifier(estimator):
            raise ValueError(
                f"{file} holds a {type(estimator).__name__}, which has no classes; serve answers "
                "about classes."
            )
        refuse_kinds(estimator, file)
        focus = options.focus
        if served.costs:
            focus = replace(focus, costs=served.costs, threshold=None)
        if served.refer is not None and not focus.costs:
            raise ValueError(
                "--refer needs the costs of mistaken rows beside it; name them by --cost."
            )
        problems = list(problems_of_focus(focus, estimator.classes_, f"the model {file}"))
        if problems:
            raise ValueError(" ".join(problems))
        return cls(
            name=served.name,
            prefix=served.prefix,
            folder=served.folder,
            estimator=estimator,
            options=options,
            focus=focus,
            refer=served.refer,
            shows_rows=served.shows_rows,
            digest=hashlib.sha256(file.read_bytes()).hexdigest(),
            written=datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat(),
        )

    @property
    def title(self) -> str:
        """Title on the pages."""
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
        """Whether the model has a density of rows, which judges cells and their worth."""
        return self.estimator.model_.density is not None

    @property
    def of_interest(self) -> str:
        """The class that is explained at first: the event, the dearest to mistake, the rarest."""
        if self.focus.event is not None:
            return self.focus.event
        costs = costs_of(self.classes, self.focus.costs)
        return self.classes[int(np.lexsort((np.array(list(self.shares.values())), -costs))[0])]

    @cached_property
    def plain_reals(self) -> frozenset[str]:
        """Columns of numbers that are written as plain numbers."""
        columns = self.estimator.columns_
        return frozenset(n for n in columns.number_names if not columns.kind_of[n].of_texts)

    @property
    def decimal(self) -> str:
        """The decimal mark of the table: a comma where points stand between thousands."""
        return "," if self.options.table.thousands == "." else "."

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The cells of the training rows."""
        return training_cells(self.estimator)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Minimum and maximum of the training cells of every linear column of numbers."""
        kinds = self.estimator.columns_.kind_of.items()
        lines = [name for name, kind in kinds if not kind.has_levels and kind.is_ordered]
        cells = self.cells[lines].astype(float)
        ends = zip(lines, cells.min().tolist(), cells.max().tolist(), strict=True)
        return {name: (low, high) for name, low, high in ends if low == low}

    @cached_property
    def usual(self) -> pd.DataFrame:
        """A row of usual cells, medians and the most frequent levels: an example, and nobody's."""
        columns = {}
        for column in self.fields:
            known = self.cells[column.name].dropna()
            middle = known.sort_values()[len(known) // 2 :]
            usual = known.mode() if column.kind.has_levels else middle
            columns[column.name] = usual[:1].reset_index(drop=True)
        return pd.DataFrame(columns, pd.RangeIndex(1))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its form."""
        kinds = self.estimator.columns_.kind_of.items()
        return tuple(
            _field(i, name, self.cells[name], kind) for i, (name, kind) in enumerate(kinds)
        )

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions of the training rows; an empty frame where the folder has none."""
        return read_predictions(self.folder)

    @cached_property
    def held_out(self) -> dict[str, Any] | None:
        """Figures of held-out rows, and what the report says of them; None without a report."""
        return self.figures(PAGE)

    def figures(self, page: str) -> dict[str, Any] | None:
        """Figures of a page in the folder that is about this model; None without one.

        Of the messages there are those of the model card alone: others may name training rows.
        """
        found = read_figures(self.folder, page, self.digest)
        if found is not None:
            messages = found["sentences"]
            found["sentences"] = {name: messages[name] for name in ON_CARD if messages.get(name)}
        return found

    @cached_property
    def card(self) -> dict[str, Any]:
        """The model card as JSON."""
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
            "updates": [update.sentence for update in fit.updates],
            "has_intervals": fit.draws is not None,
            "intervals_assume_the_model": bool(fit.assumes_model),
            "costs": dict(self.focus.costs),
            "event": self.focus.event,
            "actions": dict(self.focus.actions),
            "refer": self.refer,
            "held_out": self.held_out,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind.word,
                    "missing": column.missing,
                    "training": [level for level, _ in column.levels] or column.extent,
                }
                for column in self.fields
            ],
        }


def _places(decimals: int | None) -> int:
    """Decimals of a slider."""
    return 15 if decimals is None else decimals


def _field(
    position: int,
    name: str,
    cells: pd.Series,
    kind: Kind,
) -> Field:
    """A column as a field, by its training cells, and its levels where it has any."""
    missing = float(cells.isna().mean())
    observed = cells.dropna()
    if not kind.has_levels:
        return _number(position, name, observed.to_numpy(dtype=float), kind, missing)
    shares = observed.map(str).value_counts(normalize=True)
    levels = tuple((name, float(shares.get(name, 0.0))) for name in map(str, kind.levels_in_order))
    most = max(share for _, share in levels)
    bars = tuple(share / most for _, share in levels)
    extent = f"{len(levels)} levels"
    return Field(position, name, kind, missing, levels, np.nan, np.nan, 0, extent, bars)


def _number(position: int, name: str, cells: np.ndarray, kind: Kind, missing: float) -> Field:
    """A column of numbers as a field."""
    if not cells.size:
        return Field(position, name, kind, 1.0, (), 0.0, 1.0, 0, "never observed", ())
    low, high = (float(end) for end in np.quantile(cells, [TAILS, 1 - TAILS]))
    if low == high:
        low, high = float(cells.min()), float(cells.max())
    decimals = decimals_of(cells)
    if decimals is not None:
        factor = 10.0**decimals
        low, high = math.floor(low * factor) / factor, math.ceil(high * factor) / factor
    least, most = (
        kind.written(end) or cell(end, decimals) for end in (float(cells.min()), float(cells.max()))
    )
    counts, _ = np.histogram(cells, N_BARS, (low, high) if low < high else None)
    return Field(
        position=position,
        name=name,
        kind=kind,
        missing=missing,
        levels=(),
        low=low,
        high=high,
        decimals=decimals,
        extent=f"{least} to {most}",
        bars=tuple((counts / max(counts.max(), 1)).tolist()),
    )

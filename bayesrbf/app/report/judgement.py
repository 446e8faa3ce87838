"""Performance on rows that a model had not seen: held out, or new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.answers.comparisons import GivenScore, Parts
from bayesrbf.app.report import costs, performance, scores, subgroups, trust
from bayesrbf.app.report.costs import Costs
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.performance import Judged
from bayesrbf.app.report.scores import MeanScores
from bayesrbf.app.report.subgroups import Subgroups
from bayesrbf.app.report.trust import JudgedByRivals
from bayesrbf.app.words import percent

MODEL, FREQUENCIES = "this model", "class frequencies"

MAX_CLASSES = 12
"""Classes with pictures of their own: the most frequent."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The records of the sections about rows that a model had not seen, and what they share."""

    title: str
    target: str  # Name of the label column.
    classes: tuple[str, ...]
    judged: JudgedByRivals
    scores: tuple[MeanScores, ...]  # The model first, then the class frequencies and the rivals.
    performance: Judged
    subgroups: Subgroups
    parts: tuple[Parts, ...] = ()  # By the columns that were asked for.
    score: GivenScore | None = None  # That was given beside the model.
    costs: Costs | None = None  # Where costs were given.
    focus: Focus = ANYTHING  # What figures and decisions are about.
    too_good: str = ""  # Why figures may be better than those of new rows.
    warned: bool = False  # Whether something was found that keeps it from a plain yes.
    where: str = "held out"  # What the rows are.
    held_out: str = ""  # How they were held out, where not by chance.
    before: Judged | None = None  # On training rows that were held out, where the rows are new.

    @property
    def class_counts(self) -> Mapping[str, int]:
        """Rows of every class."""
        rows = self.performance.confusion.sum(axis=1).tolist()
        return dict(zip(self.classes, rows, strict=True))

    @property
    def unvalidated(self) -> Mapping[str, int]:
        """Classes of too few rows for any figure."""
        return performance.unvalidated(self.class_counts)

    @property
    def drawn(self) -> list[int]:
        """Positions of the other classes, the most frequent first, as many as have pictures."""
        rows = list(self.class_counts.items())
        validated = [c for c, (name, _) in enumerate(rows) if name not in self.unvalidated]
        return sorted(validated, key=lambda c: -rows[c][1])[:MAX_CLASSES]

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections behind the records."""
        return JUDGED


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Labelled rows with probabilities by fits that had not seen them."""

    job: Job
    held_out: HeldOutRows
    rival: str | None = None  # Of least log loss.
    known: Int[np.ndarray, " row"]  # Positions of rows whose label no fit had seen.
    widths: Float[np.ndarray, "row label"]  # Of their intervals.


@dataclass(frozen=True)
class Section:
    """A section of a page: functions of its record, messages, pictures, lines and figures."""

    record: str  # The field of the record of all.
    computed: Callable[[Any], Any]  # Of Unseen, or of Fits.
    messages: Callable[[Any], Mapping[str, str]] = lambda _: {}  # Sentences by name.
    pictures: Callable[[Any], Mapping[str, Any]] = lambda _: {}  # Pictures by name.
    lines: Callable[[Any], Iterable[tuple[str, str]]] = lambda _: ()  # Lines of a terminal.
    figures: Callable[[Any], Mapping[str, Any]] = (
        lambda _: {}
    )  # For machines and the model card: of no single row.


JUDGED: Final = (
    Section(
        "scores",
        lambda at: tuple(
            scores.compute(at.held_out, name, at.job.subjects, at.job.focus.level)
            for name in at.held_out.probabilities
        ),
        pictures=lambda of: scores.show(of.scores, of.classes, of.drawn, of.focus.level),
        lines=lambda of: scores.tell(of.scores),
        figures=lambda of: scores.figures(of.scores),
    ),
    Section(
        "judged",
        lambda at: trust.compute(
            at.held_out, at.job.focus, MODEL, FREQUENCIES, at.rival, at.job.groups
        ),
        lambda of: trust.say(
            judged=of.judged,
            scores=of.scores[0],
            performance=of.performance,
            too_good=of.too_good,
            level=of.focus.level,
            warned=of.warned,
        ),
        lines=lambda of: trust.tell(of.judged),
        figures=lambda of: trust.figures(of.judged),
    ),
    Section(
        "performance",
        lambda at: performance.compute(at.held_out, at.job.focus, MODEL, at.rival, at.job.subjects),
        lambda of: performance.say(
            of.performance, of.class_counts, of.focus, costs=of.costs is not None, where=of.where
        ),
        lambda of: performance.show(
            of.performance, of.judged.rival and of.judged.rival.name, of.score, of.focus.level
        ),
        lambda of: performance.tell(of.performance, of.before, of.score),
        lambda of: {**performance.figures(of.performance), "unvalidated": of.unvalidated},
    ),
    Section(
        "score",
        lambda at: performance.read_score(at.job, at.held_out, MODEL),
        figures=lambda of: {"score": of.score},
    ),
    Section(
        "costs",
        lambda at: costs.compute(
            at.held_out, at.job.focus.costs, [*filter(None, (MODEL, at.rival))]
        ),
        lambda of: costs.say(of.costs, of.focus.threshold, of.where),
        lambda of: costs.show(of.costs),
    ),
    Section(
        "subgroups",
        lambda at: subgroups.compute(at.job, at.held_out, MODEL),
        lambda of: subgroups.say(of.subgroups, len(of.classes)),
    ),
    Section(
        "parts",
        lambda at: subgroups.read_parts(at.job, at.held_out, MODEL, at.known, at.widths),
        lines=lambda of: subgroups.tell(of.parts),
        figures=lambda of: {"parts": of.parts},
    ),
)
"""The parts about rows that a model had not seen: held out of its table, or new."""


def sentences(record: Judgement) -> dict[str, str]:
    """The sentences of all sections by name; empty where there is nothing to say."""
    found = (section.messages(record).items() for section in record.sections)
    return dict(chain.from_iterable(found))


def pictures(record: Judgement) -> dict[str, Any]:
    """The pictures of all sections by name, ready to be placed."""
    found = (section.pictures(record).items() for section in record.sections)
    return dict(chain.from_iterable(found))


def lines(record: Judgement) -> Iterator[tuple[str, str]]:
    """Names and figures of all sections, as a terminal has them."""
    for section in record.sections:
        yield from section.lines(record)
    units = "rows" if record.judged.groups is None else "groups"
    level = percent(record.focus.level)
    yield "in brackets", f"intervals of {level}; those of leads count {units}"


def figures(record: Judgement) -> dict[str, Any]:
    """The verdict, the figures of all sections by name, and what they say, for machines."""
    messages = sentences(record)
    found = {
        "target": record.target,
        "classes": record.classes,
        "prob": record.focus.level,
        "verdict": messages["verdict"],
        "evidence": messages["evidence"],
        "sentences": messages,
        "lines": [*lines(record)],
    }
    for section in record.sections:
        found |= section.figures(record)
    return found


def compute(at: Unseen, sections: Iterable[Section]) -> dict[str, Any]:
    """The records of some sections by the names of their fields."""
    return {section.record: section.computed(at) for section in sections}

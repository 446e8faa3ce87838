"""What a report knows of the items of TRIPOD+AI, and what its author writes.

The statement is Collins et al. (2024), TRIPOD+AI statement: updated guidance for reporting clinical
prediction models that use regression or machine learning methods, BMJ 385:e078378. It has 27 items
in 52 parts, each of which is described here in a few words that are not those of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Final

from bayesrbf.app.report.collect import Report
from bayesrbf.app.report.judgement import sentences
from bayesrbf.app.report.options import MODEL, PAGE, POSTERIOR, PREDICTIONS
from bayesrbf.app.words import clipped, count, harmless, listing, number, percent, plural, with_ends

if TYPE_CHECKING:
    from bayesrbf.answers.performance import EventPerformance

TABLE: Final = "templates/tripod.md"
"""The items and what is said of them, as the documentation has them."""
SECTIONS: Final[Mapping[str, str]] = {
    "top": "top",
    "section 1": "trust",
    "section 2": "read",
    "section 3": "good",
    "section 4": "unsure",
    "section 8": "model",
}
"""Ids of the places of the page."""


@dataclass(frozen=True)
class Item:
    """An item of the statement: content and section of the report, and what its author writes."""

    section: str  # Of a paper.
    number: str
    topic: str
    known: str  # What the report says, in a few words; empty where it knows nothing.
    page_section: str  # On the page; empty likewise.
    author: str  # What the author writes; empty where the report says all.


def _read(table: str) -> Iterator[Item]:
    """The items of a table in Markdown; a dash is an empty cell."""
    section = ""
    for line in table.splitlines():
        cells = ["" if cell.strip() == "–" else cell.strip() for cell in line.split("|")[1:-1]]
        if line.startswith("## "):
            section = line[3:]
        elif cells and cells[0][:1].isdigit():
            yield Item(section, *cells)


ITEMS: Final = tuple(_read(files("bayesrbf.app.report").joinpath(TABLE).read_text("utf-8")))


# What the report says of an item, in sentences.


def _named(names: Iterable[str]) -> str:
    return listing([f"“{clipped(name, 40)}”" for name in names], 30)


def _counted(rows: Mapping[str, int]) -> str:
    return listing([f"“{clipped(name, 24)}” {count(rows[name])}" for name in rows], 30)


def _facts(report: Report, *names: str) -> str:
    facts = [f"{name}: {text}" for name, text in report.described.facts if name in names]
    return f"{'; '.join(facts)}." if facts else ""


def _messages(report: Report, *names: str) -> str:
    messages = sentences(report)
    return " ".join(messages[name] for name in names)


def _title(report: Report) -> str:
    return (
        f"A model that gives the probability of “{clipped(report.target)}” being "
        f"{_named(report.classes)} was developed, and judged on rows held out."
    )


def _purpose(report: Report) -> str:
    purpose = report.focus.purpose
    texts = {"Intended use": purpose.intended_use, "Population": purpose.population}
    return " ".join(f"{name}: {text.rstrip('.')}." for name, text in texts.items() if text)


def _columns(report: Report) -> str:
    kinds: dict[str, list[str]] = {}
    for column in report.reading.columns:
        kinds.setdefault(column.kind, []).append(column.name)
    return "; ".join(f"{kind}: {_named(names)}" for kind, names in kinds.items()) + "."


def _size(report: Report) -> str:
    reading, labelled = report.reading, sum(report.reading.class_counts.values())
    return (
        f"{plural(reading.rows, 'row')} and {plural(len(reading.columns), 'column')}; "
        f"{plural(labelled, 'row')} with a label: {_counted(reading.class_counts)}."
    )


def _missing(report: Report) -> str:
    holed = sorted(report.reading.columns, key=lambda column: -column.missing)
    most = [f"“{clipped(c.name)}” {percent(c.missing)}" for c in holed if c.missing > 0]
    by_column = f" By column: {listing(most, 10)}." if most else ""
    left = "No row was left out because a cell is missing."
    return f"{_messages(report, 'read')}{by_column} {left} {report.reading.missingness}"


def _held_out(report: Report) -> str:
    return report.held_out or "Folds are by chance; no groups, times or centres were named."


def _split(report: Report) -> str:
    return (
        f"Rows of the table were held out in {plural(report.folds, 'fold')}, and predicted by fits "
        f"that had not seen them. {_held_out(report)} The model itself is fitted to all rows."
    )


def _parts(report: Report) -> str:
    columns = [f"“{clipped(c.by)}” ({plural(len(c.parts), 'part')})" for c in report.parts]
    return f"The page tells figures apart by {listing(columns)}." if columns else ""


def _output(report: Report) -> str:
    costed = [f"“{clipped(c, 24)}” {number(cost)}" for c, cost in report.focus.costs.items()]
    costs = f" Costs of a mistaken row: {listing(costed, 30)}." if costed else ""
    events = _messages(report, "events")
    return f"Probabilities of the classes. {report.uncertain_rows.intervals} {events}{costs}"


def _analysed(report: Report) -> str:
    class_rows = report.performance.confusion.sum(axis=1).tolist()
    held_out = dict(zip(report.classes, class_rows, strict=True))
    rows, groups = plural(report.judged.rows, "row"), report.judged.groups
    rows += "" if groups is None else f" in {plural(groups, 'group')}"
    again = ""
    if (stability := report.refits.stability) is not None:
        again = f" Fitted again: {plural(len(stability.refits), 'sample')} of the rows."
    return f"Fitted: {_size(report)} Held out: {rows}, {_counted(held_out)}.{again}"


def _of_class(name: str, event: EventPerformance) -> str:
    texts = [f"{word} {with_ends(figure)}" for word, figure in event.figures.items()]
    texts += [f"{word} {with_ends(share, percent)}" for word, share in event.decisions.items()]
    return f"“{clipped(name, 24)}” ({plural(event.events, 'row')}): {'; '.join(texts)}."


def _performance(report: Report) -> str:
    model = report.performance.model
    by_class = " ".join(_of_class(name, of_class) for name, of_class, _ in report.performance.drawn)
    return (
        f"{plural(report.judged.rows, 'row')} held out; in brackets, intervals of "
        f"{percent(report.focus.level)}. Log loss {with_ends(model.log_loss)} nats; right answers "
        f"{with_ends(model.accuracy, percent)}. {by_class} {_parts(report)}"
    )


def _limits(report: Report) -> str:
    messages = _messages(report, "unvalidated", "computation", "open_intervals", "stability")
    first = (
        "No rows beside this table were predicted, and nothing is said of the time until an event "
    )
    return f"{first}or of causes. {messages}"


_MEASURES: Final = (
    "Log loss, Brier score, share of right answers, AUROC, sensitivity, specificity, PPV, NPV, "
    "O:E, intercept, slope, error and curve of calibration; net benefit. Rivals on the same rows: "
)
_UPDATED: Final = "Nothing was updated: the model was fitted anew."
_SAID: Final[Mapping[str, Callable[[Report], str]]] = {
    "1": lambda report: f"{_title(report)} {_purpose(report)}",
    "3b": _purpose,
    "4": lambda _: "A model was developed, and judged on rows of the same table.",
    "5a": lambda report: _facts(report, "data"),
    "7": lambda report: (
        f"{plural(len(report.reading.notes), 'note')} on how the table was read. "
        f"{_messages(report, 'odd')}"
    ),
    "8a": lambda report: _messages(report, "events"),
    "9a": lambda report: f"The model was offered {plural(len(report.reading.columns), 'column')}.",
    "9b": _columns,
    "10": lambda report: (
        f"{_size(report)} {report.refits.learning.sentence if report.refits.learning else ''}"
    ),
    "11": _missing,
    "12a": _split,
    "12b": lambda report: f"{_columns(report)} {report.described.assumptions}",
    "12c": lambda report: " ".join(
        [
            f"{report.described.estimator}. {report.described.message}",
            f"{report.diagnostics.inference} {_held_out(report)}",
        ]
    ),
    "12d": _held_out,
    "12e": lambda report: f"{_MEASURES}{listing([score.name for score in report.scores[1:]])}.",
    "12f": lambda _: _UPDATED,
    "12g": lambda _: (
        f"Probabilities of rows held out are in {PREDICTIONS}; bayesrbf predict makes those of new "
        f"rows from {MODEL}."
    ),
    "13": lambda _: (
        "No class was weighted or sampled anew. Costs change decisions, and no probability."
    ),
    "14": lambda report: f"{_messages(report, 'subgroups')} {_parts(report)}",
    "15": _output,
    "16": lambda report: f"Both are rows of one table. {_held_out(report)}",
    "18f": lambda report: _facts(report, "command", "bayesrbf", "libraries", "seed"),
    "20a": _size,
    "20b": lambda report: _messages(report, "read"),
    "21": _analysed,
    "22": lambda report: (
        f"The model is in {MODEL}, its posterior in {POSTERIOR}. "
        f"{_facts(report, 'bayesrbf', 'model', 'seed')}"
    ),
    "23a": _performance,
    "23b": _parts,
    "24": lambda _: _UPDATED,
    "25": lambda report: _messages(report, "verdict", "evidence"),
    "26": _limits,
    "27a": lambda _: (
        "Any cell of a new row may be missing; bayesrbf predict names levels and columns that "
        "differ from those of the table."
    ),
}
"""Sentences by the number of an item."""


# The items as Markdown.


_SIGNS: Final = re.compile(r"([\\`*\[\]<>|])")


def items(report: Report) -> str:
    """What the report says of each item, and boxes for what its author writes."""
    lines = [
        f"# TRIPOD+AI: {_plain(report.title)}",
        "What a report of bayesrbf says of each item of TRIPOD+AI (Collins et al. 2024, BMJ "
        "385:e078378), and boxes for what its author writes. The items are named in other words "
        "than those of the statement: read it beside this file.",
    ]
    for section, its_items in groupby(ITEMS, lambda item: item.section):
        lines.append(f"## {section}")
        for item in its_items:
            lines.append(f"### {item.number} {item.topic}")
            if message := said_of(item, report):
                link = f"[{item.page_section}]({PAGE}#{SECTIONS[item.page_section]})"
                lines.append(f"{_plain(message)} ({link})")
            if item.author:
                lines.append(f"- [ ] The author writes: {item.author}.")
    return harmless("\n\n".join(lines) + "\n")


def said_of(item: Item, report: Report) -> str:
    """What the report says of an item, in sentences; empty where it knows nothing."""
    return _SAID[item.number](report).strip() if item.known else ""


def _plain(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    return _SIGNS.sub(r"\\\1", re.sub(r"[ \t\r\n]+", " ", text))

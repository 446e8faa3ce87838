"""Turns notes on a table into sentences, the most harmful first, like notes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from bayesrbf.reading.notes import Note, listed, option


def sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """The most harmful first; notes that differ by their columns alone are one sentence.

    >>> noticed = [Note("stand-in", "age", "-999", 2), Note("stand-in", "weight", "-999", 3)]
    >>> print(*sentences(noticed))
    Columns 'age' and 'weight' hold -999 in 2 and 3 cells, far from all other values: if it means
    missing, say --na=-999.
    """
    order = list(TOPICS)
    ranked = sorted(notes, key=lambda note: order.index(note.topic))
    places = {(note.topic, note.value): place for place, note in reversed([*enumerate(ranked)])}
    ranked.sort(key=lambda note: places[note.topic, note.value])
    like = groupby(ranked, key=lambda note: (note.topic, note.value))
    return tuple(TOPICS[topic].format_map(_fields(list(same))) for (topic, _), same in like)


def _fields(notes: Sequence[Note]) -> dict[str, object]:
    """Values for a sentence on like notes: columns with a verb, values, options to type."""
    first, many = notes[0], len(notes) > 1
    names = tuple(note.column for note in notes)
    counts = [note.count for note in notes]
    subject = f"Column{'s' if many else ''} {listed([repr(name) for name in names])}"
    several = {name: option(name, *names) for name in ("ignore", "categorical", "real", "dates")}
    here = [
        option("na", *(f"{note.column}={note.value}" for note in notes)),
        option("na", first.value),
    ]
    return several | {
        "has": f"{subject} {'have' if many else 'has'}",
        "holds": f"{subject} {'hold' if many else 'holds'}",
        "sets": f"{subject} {'set' if many else 'sets'}",
        "column": first.column,
        "value": first.value,
        "count": first.count,
        "example": first.example,
        "counts": listed(counts),
        # How often each column has it; "-999 2 times" would be read as one number.
        "often": "in one cell" if counts == [1] else f"in {listed(counts)} cells",
        # A value is missing in these columns only where others have it.
        "missing": here[0] if first.elsewhere else here[1],
        "id": option("id", first.column),
        "group": option("group", first.column),
        "time": option("time", first.column),
        "it": "one of them" if many else "it",
        "kept": (
            f"{'They are' if many else 'It is'} left out, as by {several['ignore']}; "
            f"{several['categorical']} keeps {'them' if many else 'it'} as categories."
        ),
        "each": " each" if many else "",
        "order": f", {first.value}" if first.value else "",
        "mark": {" ": "a blank", "'": "an apostrophe"}.get(first.value, repr(first.value)),
        "limits": listed([f"{note.example!r} in {note.column!r}" for note in notes]),
        "limit_cells": f"{listed(counts)} {'cell' if counts == [1] else 'cells'}",
        "limit_reading": "missing." if first.value == "missing" else NEXT_TO_LIMIT,
        "in_columns": listed(
            [f"{n.count} {'cell' if n.count == 1 else 'cells'} of {n.column!r}" for n in notes]
        ),
    }


NEXT_TO_LIMIT: Final = (
    "a value of their own, next to the limit: they are not missing. To read them as missing, say "
    "--below missing."
)
REPEATED: Final = (
    "{has} {value}, such as {example}, as where patients come again. Rows of one patient would be "
    "both fitted and held out, and the scores too good. If it says which rows belong together, say "
    "{group}"
)
"""Of names of patients and the like, of whom several have more than one row."""

TOPICS: Final[Mapping[str, str]] = {
    "unread": "Left out: {value}",
    "spelled alike": (
        "{holds} {value}, which differ by {example}: if they mean the same, write them alike."
    ),
    "label for missing": (
        "{holds} {value!r} {often}, read as a class: if it means that the label is missing, say "
        "{missing}."
    ),
    "stand-in": (
        "{holds} {value} {often}, far from all other values: if it means missing, say {missing}."
    ),
    "only negative": (
        "{holds} {value} {often}, and no other negative value: if it means missing, say {missing}."
    ),
    "identifier": (
        "{has} {value}, such as {example}: if {it} names the rows, say {id}; if it tells nothing, "
        "{ignore}."
    ),
    "word for missing": (
        "{holds} {value!r} {often}, read as a category: if it means missing, say {missing}."
    ),
    "repeated names": REPEATED + ". {kept}",
    "repeated numbers": REPEATED + "; if it tells nothing, {ignore}.",
    "repeated texts": REPEATED + "; if it tells nothing, {ignore}.",
    "names of rows": (
        "{has} texts that are all different, such as {example!r}. {kept} If {it} names the rows, "
        "say {id}."
    ),
    "free text": (
        "{holds} text that hardly repeats ({counts} distinct values), such as {example!r}. {kept}"
    ),
    "many units": (
        "{holds} text such as {example!r} that hardly repeats; if it is a quantity, write plain "
        "numbers. {kept}"
    ),
    "limits": (
        "Cells beyond a limit, such as {limits} ({limit_cells}), were read as {limit_reading}"
    ),
    "repeated name": (
        "{count} rows of {column!r}, which names the rows, have a name that stands above already, "
        "such as {example!r}: if such rows belong together, say {group}."
    ),
    "points": (
        "{has} three digits after every point, such as {example}, read as decimals, while other "
        "columns have decimal commas: if the points set thousands apart, say --thousands '.'."
    ),
    "without time": (
        "{count} rows have no {column!r}: they are never held out, and every fit learns from them."
    ),
    "unnamed dates": (
        "{holds} dates, looked at as days since 2000-01-01: to fit, say {dates} to read them so, "
        "{time} to hold the latest rows out, or {ignore}."
    ),
    "dates": (
        "{holds} dates{order}, read as days since 2000-01-01. New rows have later dates than any "
        "that the model has seen: if the date tells nothing, say {ignore}."
    ),
    "percent": ("{has} percent signs, read as numbers in per cent: {example!r} is {value}."),
    "currency": "{holds} amounts in {value}, such as {example!r}, read as numbers.",
    "thousands": "{sets} thousands apart by {mark}, such as {example!r}, read as numbers.",
    "units": (
        "{holds} text such as {example!r}, read as categories; if it is a quantity, write plain "
        "numbers."
    ),
    "codes": (
        "{holds} {value}, such as {example!r}: read as categories; if they are quantities, say "
        "{real}."
    ),
    "apart": (
        "{holds} {value}, which are one number: read as levels apart, as codes are; if they are "
        "one, write them in one way."
    ),
    "one level": "{holds} {value}, read as one level: {example!r}.",
    "numbers as text": (
        "{holds} whole numbers written as text, such as {example!r}, read as numbers; if they are "
        "codes, say {categorical}."
    ),
    "few whole numbers": (
        "{holds} the whole numbers {value}: read as real; if they are codes, say {categorical}."
    ),
    "decimal commas": "{has} decimal commas, such as {example!r}.",
    "missing": "{value!r} was read as missing: {in_columns}.",
    "constant": "{holds} one value only{each}.",
    "empty": "{has} no value.",
    "sheets": "{value}",
    "file": "{value}",
}
"""What is said of each topic, the most harmful one first."""

LEFT_OUT: Final = frozenset({"repeated names", "names of rows", "free text", "many units"})
"""Topics of columns of text that are no categories, because their cells hardly repeat."""

NAMING: Final = LEFT_OUT | {"identifier", "repeated numbers", "repeated texts"}
"""Topics of columns that may name rows or patients, of which nothing is said where a kind is."""

"""Cells as people write them: numbers, words for missing, and sentences about them."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Final, NamedTuple

from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.notes import Note, listed, option, ways_of

# Cells as people write them: decimal commas, percent signs, currencies, limits.


BLANKS: Final = "\u00a0\u202f\u2009 "
APOSTROPHES: Final = "'\u2019"

_CURRENCY: Final = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
_DRESSED: Final = re.compile(
    rf"(?P<sign>[+-]?) ?(?P<before>{_CURRENCY})?[{BLANKS}]?"
    rf"(?P<body>[+-]?(?:\d(?:[\d.,{BLANKS}{APOSTROPHES}]*[\d.])?|[.,]\d+)(?:[eE][+-]?\d+)?)"
    rf"[{BLANKS}]?(?P<after>%|{_CURRENCY})?"
)


_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a cell is a number written with a decimal point.

    It is what ``float`` reads, except words, blanks and underscores.

    >>> [is_number(text) for text in ("-1.5e3", ".5", "1_000", "nan", "1,5")]
    [True, True, False, False, False]
    """
    return _NUMBER.fullmatch(text) is not None


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written."""

    numbers: Mapping[str, str]  # The plain number of each text that is one.
    symbol: str = ""  # A percent sign or a currency that all of them have.
    thousands: str = ""  # The mark between thousands; empty where there is none.
    decimal_comma: str = ""  # A number with a decimal comma, as it is written.
    doubtful: str = ""  # A number whose point could as well be between thousands.
    below: str = ""  # A whole number beside it that is below one thousand, if all such ones are.
    problem: str = ""  # Why the numbers cannot be told, said of ``culprit``.
    culprit: str = ""


class _Amount(NamedTuple):  # a column has thousands of them
    """A number as it is written, without blanks and apostrophes between thousands."""

    symbol: str  # A percent sign or a currency; empty without one.
    body: str


@dataclass(frozen=True)
class _Marks:
    """Marks in the numbers of a column, or why they cannot be told."""

    thousands: str = ""  # Between thousands; empty where there is none.
    decimal: str = "."
    problem: str = ""  # Said of ``culprit``.
    culprit: str = ""

    @property
    def grouped(self) -> str:
        """Pattern of numbers with a mark between thousands."""
        mark, point = re.escape(self.thousands), re.escape(self.decimal)
        return rf"[+-]?[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:{point}\d+)?"

    def plain(self, body: str) -> str:
        """A number with a decimal point, and without marks between thousands."""
        return body.replace(self.thousands, "").replace(self.decimal, ".")


_WITH_THOUSANDS: Final = (_Marks(",", "."), _Marks(".", ","))


def read_numbers(
    present: Sequence[str], thousands: str | None = None, decimal: str | None = None
) -> Notation:
    """The notation that all numbers among distinct texts have in common.

    ``thousands`` and ``decimal`` decide where it is open what a mark is.

    >>> read_numbers(["$1,200", "$3.50"]).numbers
    {'$1,200': '1200', '$3.50': '3.50'}
    >>> read_numbers(["57 %", "3.5%"]).numbers
    {'57 %': '57', '3.5%': '3.5'}
    >>> read_numbers(["1,200", "700"]).problem
    'may be a decimal comma or a mark between thousands'
    """
    if thousands != "." and all(map(is_number, present)):  # as nearly all columns are
        plain = Notation(dict(zip(present, present, strict=True)))
        return plain if decimal == "." else _with_doubtful_point(plain, plain.numbers)
    amounts = {text: amount for text in present if (amount := _undressed(text, thousands))}
    bodies = {text: amount.body for text, amount in amounts.items()}
    examples = {amount.symbol: text for text, amount in reversed(amounts.items())}
    symbol, *others = sorted(examples) or [""]
    if others:
        problem = f"is written in another unit than {examples[symbol]!r}; write one unit throughout"
        return Notation(dict.fromkeys(bodies, "0"), problem=problem, culprit=examples[others[0]])
    marks = _marks(bodies.values(), symbol, thousands, decimal)
    if marks.problem:
        culprit = next(text for text, body in bodies.items() if body == marks.culprit)
        return Notation(dict.fromkeys(bodies, "0"), problem=marks.problem, culprit=culprit)
    notation = _in_marks(bodies, symbol, marks)
    open_points = marks == _Marks() and decimal != "."
    return _with_doubtful_point(notation, bodies) if open_points else notation


def _in_marks(bodies: Mapping[str, str], symbol: str, marks: _Marks) -> Notation:
    """Notation of numbers with such marks, by their bodies; the rest of the texts are none."""
    numbers = {text: marks.plain(body) for text, body in bodies.items()}
    commas = (text for text, body in bodies.items() if marks.decimal == "," and "," in body)
    blanks = any(re.search(rf"\d[{BLANKS}]\d", text) for text in bodies)
    raised = any(set(text) & set(APOSTROPHES) for text in bodies)
    return Notation(
        {text: number for text, number in numbers.items() if is_number(number)},
        symbol=symbol,
        thousands=marks.thousands or (" " if blanks else "'" if raised else ""),
        decimal_comma=next(commas, ""),
    )


def possible_numbers(text: str) -> frozenset[float]:
    """Numbers that a text can mean, with a decimal point or with a decimal comma.

    >>> sorted(possible_numbers("-999,0")), sorted(possible_numbers("1,234"))
    ([-999.0], [1.234, 1234.0])
    """
    undressed = _undressed(text, None)
    if undressed is None:
        return frozenset()
    body = undressed.body
    numbers = set()
    for marks in _WITH_THOUSANDS:
        plain = marks.plain(body)
        grouped = marks.thousands not in body or re.fullmatch(marks.grouped, body)
        if grouped and is_number(plain):
            numbers.add(float(plain))
    return frozenset(numbers)


def _with_doubtful_point(notation: Notation, bodies: Mapping[str, str]) -> Notation:
    """The notation with a number whose point may be between thousands.

    That is open if all points of the column stand before three digits. ``below`` is then a whole
    number, if all numbers without a point have at most three digits.
    """
    pointed = {text: body for text, body in bodies.items() if "." in body}
    whole = {text: body for text, body in bodies.items() if text not in pointed}
    three_digits = (re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", body) for body in pointed.values())
    if not pointed or not all(three_digits):
        return notation
    all_below = all(re.fullmatch(r"[+-]?\d{1,3}", body) for body in whole.values())
    below = next(iter(whole), "") if all_below else ""
    return replace(notation, doubtful=next(iter(pointed)), below=below)


def _undressed(text: str, thousands: str | None) -> _Amount | None:
    """Symbol and body of a number; None for any other text."""
    if thousands and thousands not in ".," and thousands in text:
        text = re.sub(rf"(?<=\d){re.escape(thousands)}(?=\d{{3}}(?!\d))", "", text)
    match = _DRESSED.fullmatch(text)
    if match is None or (match["before"] and match["after"]):
        return None
    if match["sign"] and match["body"][0] in "+-":
        return None
    body = match["sign"] + match["body"]
    for mark in (f"[{BLANKS}]", f"[{APOSTROPHES}]"):
        if re.search(mark, body):
            if not re.fullmatch(rf"[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:[.,]\d+)?", body):
                return None
            body = re.sub(mark, "", body)
    return _Amount(match["before"] or match["after"] or "", body)


def _marks(
    bodies: Collection[str], symbol: str, thousands: str | None, decimal: str | None
) -> _Marks:
    """Mark between thousands and decimal mark, or the problem and the number that causes it."""
    for marks in _WITH_THOUSANDS:
        money = symbol not in ("", "%") and marks.thousands == "," and decimal != ","
        if _are_thousands(marks, bodies, decided=money or thousands == marks.thousands):
            return marks
    commas = [body for body in bodies if "," in body]
    points = [body for body in bodies if "." in body]
    if commas and points:
        problem = (
            f"has a decimal comma, but {points[0]!r} has a point; write one of them throughout"
        )
        return _Marks(problem=problem, culprit=commas[0])
    three_digits = all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", body) for body in commas)
    if commas and three_digits and decimal != ",":
        problem = "may be a decimal comma or a mark between thousands"
        return _Marks(problem=problem, culprit=commas[0])
    return _Marks(decimal="," if commas else ".")


def _are_thousands(marks: _Marks, bodies: Collection[str], decided: bool) -> bool:
    """Whether such marks can be between thousands, and are decided or cannot be decimal."""
    having = [body for body in bodies if marks.thousands in body]
    others = [body for body in bodies if marks.thousands not in body]
    grouped = re.compile(marks.grouped)
    if not having or not all(map(grouped.fullmatch, having)):
        return False
    if any(body.count(marks.decimal) > 1 for body in others):
        return False
    sure = (body.count(marks.thousands) > 1 or marks.decimal in body for body in bodies)
    return decided or any(sure)


_LIMIT: Final = re.compile("(?P<sign><=?|>=?|\u2264|\u2265) ?(?P<bare>.+)")


def limits_among(texts: Iterable[str]) -> dict[str, str]:
    """Limits among the texts: the text of each bound, by cell.

    >>> limits_among(["<5", "> 1,5", "7"])
    {'<5': '5', '> 1,5': '1,5'}
    """
    matched = {text: _LIMIT.fullmatch(text) for text in texts}
    return {text: match["bare"] for text, match in matched.items() if match}


def beside_limit(text: str, limit: float) -> float:
    """Nearest double below an upper limit, or above a lower limit, which stands for the cell.

    All cells of one limit are one value, which no measured cell has, on the right side of all.

    >>> beside_limit("<5", 5.0) < 5 < beside_limit(">5", 5.0)
    True
    """
    return math.nextafter(limit, -math.inf if text[0] in "<\u2264" else math.inf)


# Which cells mean "missing": words of the format, and what stands in, by text or by number.


MISSING_MARKERS: Final = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""Cells that are read as missing where a file has no nulls of its own."""


@dataclass(frozen=True)
class StandIn:
    """A value that the user named as missing, in one column or in all columns."""

    typed: str  # Text that the user typed: VALUE or COLUMN=VALUE.
    text: str
    column: str | None = None

    @property
    def number(self) -> float | None:
        """Value as a number; None for text and for ambiguous numbers."""
        values = {float(self.text)} if is_number(self.text) else possible_numbers(self.text)
        return next(iter(values)) if len(values) == 1 else None


def stand_ins(typed: Iterable[str], header: Collection[str]) -> tuple[StandIn, ...]:
    """Values named as missing; ``COLUMN=VALUE`` for a value of an existing column.

    >>> [(mark.column, mark.text) for mark in stand_ins(["-9", "a=-9", "b=-9"], ["a"])]
    [(None, '-9'), ('a', '-9'), (None, 'b=-9')]
    """
    return tuple(_stand_in(text, header) for text in typed)


def _stand_in(typed: str, header: Collection[str]) -> StandIn:
    """Stand-in of a typed text; the longest matching column name counts."""
    for index in reversed([i for i, character in enumerate(typed) if character == "="]):
        if typed[:index] in header:
            return StandIn(typed, typed[index + 1 :], typed[:index])
    return StandIn(typed, typed)


@dataclass(frozen=True)
class Missing:
    """Which cells of a column mean "missing"."""

    marks: frozenset[str]  # As they are written; the empty cell is one of them.
    named: tuple[StandIn, ...] = ()  # Stand-ins that the user named.

    @cached_property
    def texts(self) -> dict[str, str]:
        """Typed text of each stand-in, by the text in cells."""
        return {mark: mark for mark in self.marks} | {
            stand_in.text: stand_in.text for stand_in in self.named
        }

    @cached_property
    def numbers(self) -> dict[float, str]:
        """Typed text of each numeric stand-in, by number."""
        typed = {mark.number: mark.text for mark in reversed(self.named)}
        return {number: text for number, text in typed.items() if number is not None}

    def among(
        self,
        distinct: Iterable[str],
        *,
        plain: bool = False,
        thousands: str | None = None,
        decimal: str | None = None,
    ) -> dict[str, str]:
        """Missing cells among the distinct cells of a column, with the stand-in of each.

        A number is found however it is written. Where a cell could be two numbers, the notation of
        the other cells decides; ``plain`` means that numbers have a decimal point or are text.

        >>> missing = Missing(frozenset(["", "NA"]), stand_ins(["-999"], []))
        >>> missing.among(["", "NA", "-999,0", "-999 €", "1,5"])
        {'': '', 'NA': 'NA', '-999,0': '-999', '-999 €': '-999'}
        """
        distinct = list(distinct)
        marks = {text: self.texts[text] for text in distinct if text in self.texts}
        if not self.numbers:
            return marks
        values = {text: possible_numbers(text) for text in distinct if text not in marks}
        for text, possible in values.items():
            if len(possible) == 1 and (number := next(iter(possible))) in self.numbers:
                marks[text] = self.numbers[number]
        rest = [text for text in values if text not in marks]
        if not any(values[text] & self.numbers.keys() for text in rest):
            return marks
        read: Mapping[str, str]
        if plain:
            read = {text: text for text in rest if is_number(text)}
        else:
            notation = read_numbers(rest, thousands, decimal)
            read = {} if notation.problem else notation.numbers
        for text, written in read.items():
            if float(written) in self.numbers:
                marks[text] = self.numbers[float(written)]
        return marks


def unmatched(
    marks: Sequence[StandIn],
    matched: Collection[tuple[str, str]],
    texts: Mapping[str, Collection[str]],
    source: str,
) -> Iterable[str]:
    """Message on each value that was named as missing but occurs in no cell.

    ``matched`` are columns and marks that some cell has, ``texts`` distinct cells of each column.
    """
    keys = {(column, _key(text)) for column, text in matched}
    anywhere = {key for _, key in keys}
    for mark in marks:
        key = _key(mark.text)
        hit = key in anywhere if mark.column is None else (mark.column, key) in keys
        if hit or mark.text in MISSING_MARKERS:
            continue
        where = source if mark.column is None else f"{source}, column {mark.column!r}"
        yield f"{option('na', mark.typed)}: {where} has no cell {mark.text!r}{_hint(mark, texts)}"


def _hint(mark: StandIn, texts: Mapping[str, Collection[str]]) -> str:
    """Suggestion for a stand-in that occurs in no cell."""
    column, equals, _ = mark.typed.partition("=")
    if mark.column is None and equals:
        near = difflib.get_close_matches(column, texts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {listed(list(texts), 20)}."
        return f", and no column {column!r}; {hint}"
    if re.search(r"\d,\d", mark.text):
        several = " ".join(option("na", value) for value in mark.text.split(","))
        return f"; as numbers here have commas, name several values by {several}."
    words = texts.values() if mark.column is None else [texts[mark.column]]
    cells = {cell for column_cells in words for cell in column_cells if not is_number(cell)}
    near = difflib.get_close_matches(mark.text, cells, n=1, cutoff=0.8)
    return (
        f"; did you mean {near[0]!r}?" if near else "; correct the value, or leave the option out."
    )


def _key(text: str) -> float | str:
    """Number of a stand-in, or its text, so that spellings of one number are equal."""
    number = StandIn(text, text).number
    return text if number is None else number


# Turns notes on a table into sentences, the most harmful first, like notes together.


def sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """Messages of notes, the most harmful first; notes that differ by column alone are joined.

    >>> noticed = [Note("stand-in", "age", "-999", 2), Note("stand-in", "weight", "-999", 3)]
    >>> print(*sentences(noticed))
    Columns 'age' and 'weight' hold -999 in 2 and 3 cells, far from all other values: if it means
    missing, say --na=-999.
    """
    order = list(TOPICS)
    ranked = sorted(notes, key=lambda note: order.index(note.topic))
    ranks = {(note.topic, note.value): rank for rank, note in reversed([*enumerate(ranked)])}
    ranked.sort(key=lambda note: ranks[note.topic, note.value])
    like = groupby(ranked, key=lambda note: (note.topic, note.value))
    return tuple(TOPICS[topic].format_map(_fields(list(same))) for (topic, _), same in like)


def _fields(notes: Sequence[Note]) -> dict[str, object]:
    """Fields of the message on similar notes: columns with a verb, values, options to type."""
    from bayesrbf.table.kinds import KINDS, Real  # which read their cells by other parts of this

    first = notes[0]
    many = len(notes) > 1
    kind = KINDS.get(first.value, Real)
    names = tuple(note.column for note in notes)
    counts = [note.count for note in notes]
    subject = f"Column{'s' if many else ''} {listed([repr(name) for name in names])}"
    several = {name: option(name, *names) for name in ("ignore", "categorical", "real")}
    missing_options = [
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
        "missing": missing_options[0] if first.elsewhere else missing_options[1],
        "id": option("id", first.column),
        "group": option("group", first.column),
        "time": option("time", first.column),
        "it": "one of them" if many else "it",
        "kept": (
            f"{'They are' if many else 'It is'} left out, as by {several['ignore']}; "
            f"{several['categorical']} keeps {'them' if many else 'it'} as categories."
        ),
        "each": " each" if many else "",
        "each_cell": (
            f"{kind.cell_description} in each cell{', ' * bool(first.example)}{first.example}"
        ),
        "numbers": kind.numbers,
        "ways": ways_of(kind, *names),
        "mark": {" ": "a blank", "'": "an apostrophe"}.get(first.value, repr(first.value)),
        "areas": listed([f"{note.column!r} ({note.example})" for note in notes]),
        "limits": listed([f"{note.example!r} in {note.column!r}" for note in notes]),
        "limit_cells": f"{listed(counts)} {'cell' if counts == [1] else 'cells'}",
        "limit_reading": "missing." if first.value == "missing" else NEXT_TO_LIMIT,
        "in_columns": listed(
            [f"{n.count} {'cell' if n.count == 1 else 'cells'} of {n.column!r}" for n in notes]
        ),
    }


def with_remedies(options: TableOptions, notes: Iterable[Note]) -> TableOptions:
    """Options with the advice of notes: missing values, names of rows, groups.

    Dates that were not named are left out: whatever is fitted to them meets later ones.

    >>> noticed = [Note("stand-in", "age", "-999", 2), Note("text among numbers", "age", "none")]
    >>> with_remedies(TableOptions(na=("-1",)), noticed).na
    ('-1', '-999', 'none')
    """
    notes = tuple(notes)
    names = [note.column for note in notes if note.topic == "names of rows"]
    repeated = [note.column for note in notes if note.topic in GROUPING]
    unnamed = {note.column for note in notes if note.topic == "unnamed"} - {options.time}
    id_column = options.id or next(iter(names), None)
    group = options.group or next(iter(repeated), None)
    left_out = [*options.ignore, *sorted(unnamed)]
    ignored = [name for name in left_out if name not in (id_column, group)]
    marks = (
        f"{note.column}={note.value}" if note.elsewhere else note.value
        for note in notes
        if note.topic in REMEDIED
    )
    return replace(
        options,
        na=tuple(dict.fromkeys((*options.na, *marks))),
        id=id_column,
        group=group,
        ignore=tuple(dict.fromkeys(ignored)),
    )


def as_typed(options: TableOptions) -> str:
    """Options as typed on the command line, without those at their defaults.

    >>> print(as_typed(TableOptions(na=("-999", "none"), id="case", day_first=True)))
    --na=-999,none --id case --day-first
    """
    usual = vars(TableOptions())
    words = []
    for name, value in vars(options).items():
        if value == usual[name]:
            continue
        typed = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{typed}")
        else:
            words.append(option(typed, *(value if isinstance(value, tuple) else (value,))))
    return " ".join(words)


REMEDIED: Final = frozenset(
    {"text among numbers", "stand-in", "only negative", "word for missing", "label for missing"}
)
"""Topics of values that look as if they mean missing."""
GROUPING: Final = frozenset({"repeated names", "repeated numbers", "repeated texts"})
"""Topics of columns that look as if they say which rows belong together."""

NEXT_TO_LIMIT: Final = (
    "a value of their own, next to the limit: they are not missing. To read them as missing, say "
    "--below missing."
)
REPEATED: Final = (
    "{has} {value}, such as {example}, as where one is measured again. Rows that belong together "
    "would be both fitted and held out, and the scores too good. If it says which rows do, say "
    "{group}"
)
"""Message on names of patients and the like, of whom several have more than one row."""

TOPICS: Final[Mapping[str, str]] = {
    "unread": "Left out: {value}",
    "tells": (
        "One column alone tells a class from the others: {areas} of the pairs of rows are put in "
        "the right order. If it is known only when the label is, say {ignore}: the figures of a "
        "fit would be too good."
    ),
    "missing tells": (
        "Whether a cell is missing tells a class from the others without any other column: by "
        "{areas} of the pairs of rows are put in the right order. If cells were left empty because "
        "the label was known, say {ignore}."
    ),
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
    "far cell": (
        "{holds} {value}, far beyond all other cells: if it is a slip, such as of the decimal "
        "point, correct the cell."
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
    "text among numbers": (
        "{holds} {value!r} {often}, text among numbers that is looked at as missing: to fit, say "
        "{missing}; if the cells are categories, {categorical}."
    ),
    "unnamed": ("{holds} {each_cell}, looked at as {numbers}: to fit, {ways}"),
    "grows": (
        "{holds} {each_cell}, read as {numbers}. New rows have later ones than any that the model "
        "has seen: if they tell nothing, say {ignore}."
    ),
    "read as": "{holds} {each_cell}, read as {numbers}.",
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
    "yes or no": ("{holds} 0 and 1 alone, read as no and yes; if they are quantities, say {real}."),
    "few whole numbers": (
        "{holds} the whole numbers {value}: read as real; if they are codes, say {categorical}."
    ),
    "decimal commas": "{has} decimal commas, such as {example!r}.",
    "missing": "{value!r} was read as missing: {in_columns}.",
    "constant": "{holds} one value only{each}.",
    "empty": "{has} no value.",
    "sheets": "{value}",
    "skipped": "{value}",
    "file": "{value}",
}
"""Sentence of each topic of a note, the most harmful first."""

LEFT_OUT: Final = frozenset({"repeated names", "names of rows", "free text", "many units"})
"""Topics of columns of text that are no categories, because their cells hardly repeat."""

NAMING: Final = LEFT_OUT | {"identifier", "repeated numbers", "repeated texts"}
"""Topics of columns that may name rows or patients; a column of a requested kind gets no note."""


# Texts that are not what they seem: words for "missing", and one word written in two ways.


MISSING_WORDS: Final = re.compile(
    r"unk(nown)?|missing|n\.[ak]\.|n/k|no (data|answer|value|response)|un(defined|specified)|tbd"
    r"|not (known|available|applicable|recorded|measured|done|stated|reported|given|entered)"
    r"|[-\u2010-\u2015]+|\.+|\*+|#|\?+|#(value|ref|div/0|num|null)!|#name\?|#n/?a( n/a)?|<na>"
    r"|(?-i:None|na|NA)|n/a|-?nan|nat|\\n|-?1\.#(ind|qnan)|[(<\[](blank|empty|null|none|missing)[)>\]]"
    r"|null|k\.a\.|keine angabe|unbekannt|inconnue?|non renseign\u00e9e?|desconocid[oa]",
    re.IGNORECASE,
)
"""Words that people and programs write where nothing is known."""
MAX_COLUMN_FRACTION: Final = 0.3
"""Share of a column beyond which a sign is a category, such as - in a column of - and +."""
SHOWN_WORDS: Final = 3
_WHOLE: Final = re.compile(r"-?\d+(\.0)?", re.ASCII)

FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "capitals": str.casefold,
    "blanks": lambda text: "".join(text.split()),
    "signs that nobody sees": lambda text: "".join(
        sign for sign in text if unicodedata.category(sign) != "Cf"
    ),
    "the Unicode form of their letters": lambda text: unicodedata.normalize("NFKC", text),
}
"""Kinds of spelling, and the normal form of each."""


def words_for_missing(counts: Mapping[str, int]) -> Iterator[str]:
    """Texts of a column, or labels, that people write where nothing is known.

    >>> list(words_for_missing({"yes": 5, "unknown": 2, "-": 1, "None": 1}))
    ['unknown', '-', 'None']
    >>> list(words_for_missing({"+": 5, "-": 5}))
    []
    """
    total = sum(counts.values())
    for text, count in counts.items():
        bare = text.strip()
        word = bare in MISSING_MARKERS or MISSING_WORDS.fullmatch(bare)
        sign = bare and not any(map(str.isalnum, bare)) and count > MAX_COLUMN_FRACTION * total
        if word and not sign and len(counts) > 1:
            yield text


def spelled_alike(name: str, counts: Mapping[str, int]) -> Iterator[Note]:
    """Notes on levels or labels that differ in spelling only.

    >>> next(spelled_alike("y", {"yes": 3, "no": 2, "YES": 1})).value
    "'yes' and 'YES' (3 and 1 cells)"
    """
    words: dict[str, list[str]] = {}
    for text in counts:
        words.setdefault(_plain(text), []).append(text)
    differing: dict[str, list[str]] = {}
    for texts in words.values():
        if len(texts) > 1:
            differing.setdefault(_difference(texts), []).append(_together(texts, counts))
    for difference, groups in differing.items():
        yield Note("spelled alike", name, listed(groups, SHOWN_WORDS), len(groups), difference)


def doubtful_labels(name: str, counts: Mapping[str, int]) -> Iterator[Note]:
    """Notes on labels that may mean a missing label, and on labels that differ in spelling only.

    >>> [note.value for note in doubtful_labels("y", {"0": 5, "1": 4, "-1": 3})]
    ['-1']
    """
    for text in (*words_for_missing(counts), *_only_negative(counts)):
        yield Note("label for missing", name, text, counts[text])
    yield from spelled_alike(name, counts)


def _only_negative(counts: Collection[str]) -> list[str]:
    """The single negative number among three or more integer labels; else none."""
    if len(counts) < 3 or not all(map(_WHOLE.fullmatch, counts)):
        return []
    negative = [text for text in counts if text.startswith("-")]
    return negative if len(negative) == 1 else []


def _plain(text: str, but: str = "") -> str:
    """A text in the normal form of every kind of spelling except one."""
    for form, change in FORMS.items():
        text = text if form == but else change(text)
    return text


def _difference(texts: Collection[str]) -> str:
    """Kinds of spelling by which texts of one word differ."""
    for form, change in FORMS.items():
        if len(set(map(change, texts))) == 1:
            return f"{form} only"
    return listed([form for form in FORMS if len({_plain(text, form) for text in texts}) > 1])


def _together(texts: Collection[str], counts: Mapping[str, int]) -> str:
    """Spellings of one word with their frequencies, escaped where they look alike."""
    shown = [repr(text) for text in texts]
    seen = {unicodedata.normalize("NFKC", text) for text in shown}
    if len(seen) < len(shown):  # letters that look the same
        shown = [ascii(text) for text in texts]
    return f"{listed(shown)} ({listed([counts[text] for text in texts])} cells)"

"""Numbers as people write them: decimal commas, percent signs, currencies, thousands, dates."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Final

from bayesrbf.reading.delimited import is_number

ORIGIN: Final = datetime(2000, 1, 1)
"""The day from which dates are counted: a fixed one, so that new rows mean the same."""
BLANKS: Final = "\u00a0\u202f\u2009 "
APOSTROPHES: Final = "'\u2019"

_CURRENCY: Final = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
_DRESSED: Final = re.compile(
    rf"(?P<sign>[+-]?) ?(?P<before>{_CURRENCY})?[{BLANKS}]?"
    rf"(?P<body>[+-]?(?:\d[\d.,{BLANKS}{APOSTROPHES}]*|[.,]\d+)(?:[eE][+-]?\d+)?)"
    rf"[{BLANKS}]?(?P<after>%|{_CURRENCY})?"
)
_ISO: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?Z?)?", re.ASCII
)
_DAYS: Final = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})([T ](\d{1,2}):(\d{2})(:\d{2})?)?", re.ASCII
)
_ISO_ASKED: Final = "write it as 2020-12-31"
DATE: Final = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([T ].*)?", re.ASCII
)
"""What looks like a date, whether or not it can be read as one."""


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written."""

    numbers: dict[str, str]  # The plain number of each text that is one.
    symbol: str = ""  # A percent sign or a currency that all of them have.
    thousands: str = ""  # The mark between thousands; empty where there is none.
    decimal_comma: str = ""  # A number with a decimal comma, as it is written.
    problem: str = ""  # Why the numbers cannot be told, said of ``culprit``.
    culprit: str = ""


def read_numbers(present: Sequence[str], thousands: str | None = None) -> Notation:
    """The notation that all numbers among distinct texts have in common.

    ``thousands`` decides where it is open what a mark is.

    >>> read_numbers(["$1,200", "$3.50"]).numbers
    {'$1,200': '1200', '$3.50': '3.50'}
    >>> read_numbers(["1,200", "700"]).problem
    'may be a decimal comma or a mark between thousands'
    """
    found = {text: _undressed(text, thousands) for text in present}
    parts = {text: pair for text, pair in found.items() if pair is not None}
    symbols = {symbol for symbol, _ in parts.values()}
    bodies = [body for _, body in parts.values()]
    if len(symbols) > 1:
        one, other = sorted(symbols)[:2]
        culprit = next(text for text, (symbol, _) in parts.items() if symbol == other)
        among = next(text for text, (symbol, _) in parts.items() if symbol == one)
        problem = f"is written in another unit than {among!r}; write one unit throughout"
        return Notation(dict.fromkeys(parts, "0"), problem=problem, culprit=culprit)
    symbol = symbols.pop() if symbols else ""
    mark, decimal, problem, culprit = _marks(bodies, symbol, thousands)
    if problem:
        written = next(text for text, (_, body) in parts.items() if body == culprit)
        return Notation(dict.fromkeys(parts, "0"), problem=problem, culprit=written)
    plain = {
        text: body.replace(mark, "").replace(decimal, ".") if mark else body.replace(decimal, ".")
        for text, (_, body) in parts.items()
    }
    numbers = {text: number for text, number in plain.items() if is_number(number)}
    blanks = any(set(text) & set(BLANKS) for text in parts if _spaced(text))
    raised = any(set(text) & set(APOSTROPHES) for text in parts)
    commas = [text for text, (_, body) in parts.items() if decimal == "," and "," in body]
    return Notation(
        numbers,
        symbol=symbol,
        thousands=mark or (" " if blanks else "'" if raised else ""),
        decimal_comma=commas[0] if commas else "",
    )


def _spaced(text: str) -> bool:
    """Whether blanks stand between digits."""
    return re.search(rf"\d[{BLANKS}]\d", text) is not None


def _undressed(text: str, thousands: str | None) -> tuple[str, str] | None:
    """Symbol and body of a number, blanks and apostrophes between thousands removed; else None."""
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
    return match["before"] or match["after"] or "", body


def _marks(
    bodies: Collection[str], symbol: str, thousands: str | None
) -> tuple[str, str, str, str]:
    """Mark between thousands, decimal mark, and, where that is open, why and at which number."""
    for mark, decimal in ((",", "."), (".", ",")):
        having = [body for body in bodies if mark in body]
        others = [body for body in bodies if decimal in body and mark not in body]
        grouped = rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+(?:{re.escape(decimal)}\d+)?"
        if not having or not all(re.fullmatch(grouped, body) for body in having):
            continue
        if any(body.count(decimal) > 1 for body in others):
            continue
        sure = any(body.count(mark) > 1 or decimal in body for body in having)
        money = symbol not in ("", "%") and mark == ","
        if sure or others or money or thousands == mark:
            return mark, decimal, "", ""
    commas = [body for body in bodies if "," in body]
    points = [body for body in bodies if "." in body]
    if commas and points:
        problem = (
            f"has a decimal comma, but {points[0]!r} has a point; write one of them throughout"
        )
        return "", "", problem, commas[0]
    if commas and all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", body) for body in commas):
        return "", "", "may be a decimal comma or a mark between thousands", commas[0]
    return "", "," if commas else ".", "", ""


def read_dates(present: Sequence[str]) -> tuple[dict[str, float], str, str]:
    """Days since :data:`ORIGIN` of each text, or a problem and the text that has it.

    Dates start with the year (ISO 8601), or are written 31.12.2020; with strokes, the day is told
    from the month by the numbers above 12.

    >>> read_dates(["2000-01-02", "2000-02-01 12:00"])[0]
    {'2000-01-02': 1.0, '2000-02-01 12:00': 31.5}
    >>> read_dates(["3/4/2020"])[1]
    'has day and month in an order that the column leaves open; write it as 2020-12-31'
    """
    matched = {text: _DAYS.fullmatch(text) for text in present}
    stroked = [match for match in matched.values() if match and match[2] != "."]
    firsts, seconds = ({int(match[place]) for match in stroked} for place in (1, 3))
    day_first = max(firsts, default=0) > 12
    month_first = max(seconds, default=0) > 12
    found: dict[str, float] = {}
    for text, match in matched.items():
        if match and match[2] != "." and day_first == month_first:
            order = "mixes" if day_first else "leaves open"
            return {}, f"has day and month in an order that the column {order}; {_ISO_ASKED}", text
        try:
            found[text] = _days(text, match, day_first or bool(match and match[2] == "."))
        except ValueError:
            return {}, f"is no date that can be read; {_ISO_ASKED}", text
    return found, "", ""


def _days(text: str, match: re.Match[str] | None, day_first: bool) -> float:
    """Days of one date; ValueError if it is none."""
    if match is not None:
        first, second = int(match[1]), int(match[3])
        day, month = (first, second) if day_first else (second, first)
        clock = time(int(match[6]), int(match[7])) if match[5] else time()
        when = datetime.combine(date(int(match[4]), month, day), clock)
    else:
        iso = _ISO.fullmatch(text)
        if iso is None:
            raise ValueError(text)
        clock = time(int(iso[4]), int(iso[5]), int(iso[6] or 0)) if iso[4] else time()
        when = datetime.combine(date(int(iso[1]), int(iso[2]), int(iso[3])), clock)
    return (when - ORIGIN).total_seconds() / 86_400

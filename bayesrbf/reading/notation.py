"""Cells as people write them: decimal commas, percent signs, currencies, limits, dates."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

from bayesrbf.reading.delimited import is_number

ORIGIN: Final = datetime(2000, 1, 1)
"""The day from which dates are counted: a fixed one, so that new rows mean the same."""
BLANKS: Final = "\u00a0\u202f\u2009 "
APOSTROPHES: Final = "'\u2019"

_MARK_PAIRS: Final = ((",", "."), (".", ","))  # Between thousands, and the decimal one.
_CURRENCY: Final = r"[$€£¥₹]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
_DRESSED: Final = re.compile(
    rf"(?P<sign>[+-]?) ?(?P<before>{_CURRENCY})?[{BLANKS}]?"
    rf"(?P<body>[+-]?(?:\d(?:[\d.,{BLANKS}{APOSTROPHES}]*[\d.])?|[.,]\d+)(?:[eE][+-]?\d+)?)"
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
    doubtful: str = ""  # A number whose point could as well be between thousands.
    problem: str = ""  # Why the numbers cannot be told, said of ``culprit``.
    culprit: str = ""


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
        bare = {text: ("", text) for text in present}
        doubtful = "" if decimal == "." else _three_digits(bare)
        return Notation(dict(zip(present, present, strict=True)), doubtful=doubtful)
    undressed = {text: _undressed(text, thousands) for text in present}
    parts = {text: pair for text, pair in undressed.items() if pair is not None}
    symbols = {symbol for symbol, _ in parts.values()}
    bodies = [body for _, body in parts.values()]
    if len(symbols) > 1:
        first, second = sorted(symbols)[:2]
        culprit = next(text for text, (symbol, _) in parts.items() if symbol == second)
        among = next(text for text, (symbol, _) in parts.items() if symbol == first)
        problem = f"is written in another unit than {among!r}; write one unit throughout"
        return Notation(dict.fromkeys(parts, "0"), problem=problem, culprit=culprit)
    symbol = symbols.pop() if symbols else ""
    mark, point, problem, culprit = _marks(bodies, symbol, thousands, decimal)
    if problem:
        written = next(text for text, (_, body) in parts.items() if body == culprit)
        return Notation(dict.fromkeys(parts, "0"), problem=problem, culprit=written)
    plain = {
        text: (body.replace(mark, "") if mark else body).replace(point, ".")
        for text, (_, body) in parts.items()
    }
    numbers = {text: number for text, number in plain.items() if is_number(number)}
    blanks = any(set(text) & set(BLANKS) for text in parts if _spaced(text))
    raised = any(set(text) & set(APOSTROPHES) for text in parts)
    commas = [text for text, (_, body) in parts.items() if point == "," and "," in body]
    return Notation(
        numbers,
        symbol=symbol,
        thousands=mark or (" " if blanks else "'" if raised else ""),
        decimal_comma=commas[0] if commas else "",
        doubtful="" if mark or point == "," or decimal == "." else _three_digits(parts),
    )


def possible_numbers(text: str) -> frozenset[float]:
    """Every number that a text can be, with a decimal point or a decimal comma.

    >>> sorted(possible_numbers("-999,0")), sorted(possible_numbers("1,234"))
    ([-999.0], [1.234, 1234.0])
    """
    undressed = _undressed(text, None)
    if undressed is None:
        return frozenset()
    body, numbers = undressed[1], set()
    for mark, point in _MARK_PAIRS:
        plain = body.replace(mark, "").replace(point, ".")
        if (mark not in body or re.fullmatch(_grouped(mark, point), body)) and is_number(plain):
            numbers.add(float(plain))
    return frozenset(numbers)


def _grouped(mark: str, point: str) -> str:
    """Pattern of numbers with a mark between thousands."""
    return rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+(?:{re.escape(point)}\d+)?"


def _three_digits(parts: dict[str, tuple[str, str]]) -> str:
    """A number, if every point of a column stands before three last digits and after no 0."""
    pointed = [text for text, (_, body) in parts.items() if "." in body]
    bodies = [parts[text][1] for text in pointed]
    doubtful = all(re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", body) for body in bodies)
    return pointed[0] if pointed and doubtful else ""


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
    bodies: Collection[str], symbol: str, thousands: str | None, decimal: str | None
) -> tuple[str, str, str, str]:
    """Mark between thousands, decimal mark, and, where that is open, why and at which number."""
    for mark, point in _MARK_PAIRS:
        having = [body for body in bodies if mark in body]
        others = [body for body in bodies if point in body and mark not in body]
        if not having or not all(re.fullmatch(_grouped(mark, point), body) for body in having):
            continue
        if any(body.count(point) > 1 for body in others):
            continue
        sure = any(body.count(mark) > 1 or point in body for body in having)
        money = symbol not in ("", "%") and mark == "," and decimal != ","
        if sure or others or money or thousands == mark:
            return mark, point, "", ""
    commas = [body for body in bodies if "," in body]
    points = [body for body in bodies if "." in body]
    if commas and points:
        problem = (
            f"has a decimal comma, but {points[0]!r} has a point; write one of them throughout"
        )
        return "", "", problem, commas[0]
    if (
        decimal != ","
        and commas
        and all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", body) for body in commas)
    ):
        return "", "", "may be a decimal comma or a mark between thousands", commas[0]
    return "", "," if commas else ".", "", ""


def date_of(days: float) -> str:
    """The date of a number of days, to the nearest day; a dash where there is none.

    >>> date_of(1.0), date_of(-0.6), date_of(float("nan")), date_of(1e9)
    ('2000-01-02', '1999-12-31', '–', '–')
    """
    try:
        return (ORIGIN + timedelta(days=round(days))).date().isoformat()
    except (ValueError, OverflowError):
        return "–"


def date_and_time_of(days: float) -> str:
    """The date of a number of days, with the time of day where it has one.

    >>> date_and_time_of(1.0), date_and_time_of(0.75)
    ('2000-01-02', '2000-01-01 18:00:00')
    """
    if days == round(days):
        return date_of(days)
    return (ORIGIN + timedelta(days=days)).isoformat(" ", "seconds")


@dataclass(frozen=True)
class Dates:
    """The dates of a column."""

    days: dict[str, float]  # Since :data:`ORIGIN`, of each text.
    day_first: bool = False  # Whether the day was found to stand before the month.
    problem: str = ""  # Why they cannot be told, said of ``culprit``.
    advice: str = f"; {_ISO_ASKED}."
    culprit: str = ""


def read_dates(present: Sequence[str], day_first: bool = False) -> Dates:
    """Days of distinct texts.

    Dates start with the year (ISO 8601), or are written 31.12.2020; with strokes, the day is told
    from the month by the numbers above 12, or by ``day_first``.

    >>> read_dates(["2000-01-02", "2000-02-01 12:00"]).days
    {'2000-01-02': 1.0, '2000-02-01 12:00': 31.5}
    >>> read_dates(["3/4/2020"]).problem
    'has day and month in an order that the column leaves open'
    """
    matched = {text: _DAYS.fullmatch(text) for text in present}
    stroked = [match for match in matched.values() if match and match[2] != "."]
    firsts, seconds = ({int(match[place]) for match in stroked} for place in (1, 3))
    month_told, day_told = (max(numbers, default=0) > 12 for numbers in (seconds, firsts))
    if stroked and month_told and day_told:
        problem = "has day and month in an order that the column mixes"
        return Dates({}, problem=problem, culprit=stroked[0].string)
    if stroked and not (month_told or day_told or day_first):
        problem = "has day and month in an order that the column leaves open"
        advice = f"; {_ISO_ASKED}, or say --day-first."
        return Dates({}, problem=problem, advice=advice, culprit=stroked[0].string)
    days = {}
    for text, match in matched.items():
        try:
            days[text] = _days(text, match, bool(match and match[2] == ".") or not month_told)
        except ValueError:
            return Dates({}, problem="is no date that can be read", culprit=text)
    return Dates(days, day_told)


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


_LIMIT: Final = re.compile("(?P<sign><=?|>=?|\u2264|\u2265) ?(?P<bare>.+)")


def limits_among(texts: Iterable[str]) -> dict[str, str]:
    """The texts that say a limit, and the limit of each as it is written.

    >>> limits_among(["<5", "> 1,5", "7"])
    {'<5': '5', '> 1,5': '1,5'}
    """
    matched = {text: _LIMIT.fullmatch(text) for text in texts}
    return {text: match["bare"] for text, match in matched.items() if match}


def beside_limit(text: str, limit: float) -> float:
    """The number that stands for a cell: the nearest one below a limit, or above it.

    All cells of one limit are one value, which no measured cell has, on the right side of all.

    >>> beside_limit("<5", 5.0) < 5 < beside_limit(">5", 5.0)
    True
    """
    return math.nextafter(limit, -math.inf if text[0] in "<\u2264" else math.inf)

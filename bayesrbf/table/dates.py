"""Dates as days since a fixed day: how texts and the dtypes of frames write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any, Final, override

import narwhals.stable.v2 as nw
import numpy as np

from bayesrbf.base.records import stored
from bayesrbf.table.kinds import Numbers, Real, Texts

ORIGIN: Final = datetime(2000, 1, 1)
"""The day from which dates are counted: a fixed one, so that new rows mean the same."""
_ISO: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))? ?(?:Z|([+-]\d{2}):?(\d{2})?)?)?",
    re.ASCII,
)
_DAYS: Final = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?", re.ASCII
)
_LIKE: Final = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([T ].*)?", re.ASCII
)
"""Text that looks like a date, whether or not it is one."""


@stored
class Date(Real):
    """A day: its number, 0 on 2000-01-01.

    >>> Date().written(1.0), Date().written(-0.6), Date().written(float("nan"))
    ('2000-01-02', '1999-12-31', '–')
    >>> Date().typed(1.0), Date().typed(0.75)
    ('2000-01-02', '2000-01-01 18:00:00')
    """

    word = "date"
    cell_description = "a date"
    example = "2020-12-31"
    option = "dates"
    numbers = "days since 2000-01-01"
    grows = True
    dtypes = nw.Date, nw.Datetime

    @classmethod
    @override
    def resembles(cls, text: str) -> bool:
        return _LIKE.fullmatch(text) is not None

    @override
    def read(self, texts: Iterable[str], day_first: bool = False) -> Texts:
        """Days of distinct texts.

        Dates start with the year (ISO 8601), or are written 31.12.2020; with strokes, the day is
        told from the month by the numbers above 12, or by ``day_first``.

        >>> Date().read(["2000-01-02", "2000-02-01 12:00"]).numbers
        {'2000-01-02': 1.0, '2000-02-01 12:00': 31.5}
        >>> Date().read(["3/4/2020"]).problem
        'has day and month in an order that the column leaves open'
        """
        texts = list(texts)
        matched = (match for match in map(_DAYS.fullmatch, texts) if match)
        stroked = [match for match in matched if match[2] != "."]
        firsts, seconds = ({int(match[group]) for match in stroked} for group in (1, 3))
        month_told, day_told = (max(numbers, default=0) > 12 for numbers in (seconds, firsts))
        if stroked and month_told and day_told:
            problem = "has day and month in an order that the column mixes"
            return Texts({}, problem, stroked[0].string)
        if stroked and not (month_told or day_told or day_first):
            problem = "has day and month in an order that the column leaves open"
            return Texts({}, problem, stroked[0].string, ", or say --day-first")
        number = partial(self.number, day_first=not month_told)
        return replace(Texts.of(texts, number, self.cell_description), day_first=day_told)

    @override
    def number(self, text: str, day_first: bool = True) -> float:
        """Days of a date since 2000-01-01, in UTC where the text names a zone."""
        ahead = 0.0  # Minutes.
        if match := _DAYS.fullmatch(text):
            first, mark, second, year, *clock = match.groups()
            day, month = (first, second) if day_first or mark == "." else (second, first)
        elif match := _ISO.fullmatch(text):
            year, month, day, *clock, zone, minutes_of_zone = match.groups()
            if zone:
                ahead = 60 * int(zone) + math.copysign(int(minutes_of_zone or 0), int(zone + "1"))
        else:
            raise ValueError(text)
        hours, minutes, seconds = (float(digits or 0) for digits in clock)
        time(int(hours), int(minutes), int(seconds))  # refuses what is none
        when = datetime(int(year), int(month), int(day))
        when += timedelta(hours=hours, minutes=minutes - ahead, seconds=seconds)
        return (when - ORIGIN) / timedelta(days=1)

    @override
    def written(self, number: float) -> str:
        try:
            return (ORIGIN + timedelta(days=round(number))).date().isoformat()
        except (ValueError, OverflowError):
            return "–"

    @override
    def typed(self, number: float) -> str:
        if number == round(number):
            return self.written(number)
        return (ORIGIN + timedelta(days=number)).isoformat(" ", "seconds")

    @classmethod
    @override
    def of_series(cls, series: nw.Series[Any]) -> Numbers:
        """Days at the clock of UTC, as files are read."""
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        moments = series.to_numpy().astype("datetime64[us]")
        days: np.ndarray = (moments - np.datetime64(ORIGIN, "us")) / np.timedelta64(1, "D")
        return days

    @classmethod
    @override
    def as_series(cls, numbers: Numbers, like: nw.Series[Any]) -> nw.Series[Any]:
        days = np.round(numbers) if isinstance(like.dtype, nw.Date) else numbers
        moments = np.full(len(days), np.datetime64("NaT", "us"))
        known = ~np.isnan(days)
        since = np.round(days[known] * 86_400e6).astype("timedelta64[us]")
        moments[known] = np.datetime64(ORIGIN, "us") + since
        dated = nw.new_series(str(like.name), moments, backend=like.implementation)
        zone = getattr(like.dtype, "time_zone", None)
        if zone:
            dated = dated.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return dated.cast(like.dtype)

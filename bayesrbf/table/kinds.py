"""Kinds of columns: maps from the cells of a column to reals or codes, and back.

A kind is a class. Its cells are numbers, or levels, numbered by position. A subclass defines:

* ``word``, the name by which users request it; ``cell_description`` and ``is_cell``, its cells;
* ``encode`` and ``decode``: numbers to the reals of the model, and back. ``n_reals`` is 0 where the
  model has the position of a level as a code;
* ``recognises``, if the kind can be inferred;
* ``example``, ``number`` and ``typed``, if its cells are texts, as of ``Date`` in dates.py.

All else has a default. The rest of the package uses these methods, and never the name of a kind.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self, override

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesrbf.base.records import Requirements, stored

Numbers = Float[np.ndarray, " obs"]
Reals = Float[np.ndarray, "obs real"]

KINDS: Final[dict[str, type[Kind]]] = {}
"""Kinds by word; the last kind that recognises a column is inferred for it."""


@dataclass(frozen=True)
class Texts:
    """Numbers of a column's texts, or the problem of a text that is not a number."""

    numbers: dict[str, float]
    problem: str = ""  # Said of ``culprit``.
    culprit: str = ""
    advice: str = ""  # An option that mends it, after how texts are written.
    day_first: bool = False  # Whether the day was found to stand before the month.

    @classmethod
    def of(cls, texts: Iterable[str], number: Callable[[str], float], description: str) -> Self:
        """Convert each text, up to the first failure."""
        numbers = {}
        for text in texts:
            try:
                numbers[text] = number(text)
            except ValueError:
                return cls({}, f"is not {description}", text)
        return cls(numbers)


class Kind(ABC):
    """Map of a column's cells to reals or codes and back; missing numbers are NaN."""

    word: ClassVar[str]
    """Name of the kind, by which users request it."""
    cell_description: ClassVar[str] = "a number"
    """Description of a cell, for error messages."""
    n_reals: ClassVar[int] = 1
    """Number of real features; 0 for codes, and for a column without a cell."""
    has_levels: ClassVar[bool] = False
    """Whether cells are levels from a finite set."""
    is_ordered: ClassVar[bool] = True
    """Whether cells are totally ordered, so that quantiles exist."""
    example: ClassVar[str] = ""
    """Example of a cell, for kinds whose cells are texts that encode numbers."""
    option: ClassVar[str] = "kind"
    """Command-line option that requests this kind."""
    numbers: ClassVar[str] = "numbers"
    """Description of the numbers that texts encode."""
    grows: ClassVar[bool] = False
    """Whether new rows exceed the training range systematically, as dates do."""
    dtypes: ClassVar[tuple[Any, ...]] = ()
    """Dtypes of frames that imply this kind."""
    is_plain: ClassVar[bool] = False
    """Whether the model's real is the number itself."""

    def __init_subclass__(cls) -> None:
        KINDS[cls.word] = cls

    @property
    def levels(self) -> tuple[Any, ...]:
        """Levels by position; empty for numbers."""
        return ()

    @property
    def levels_in_order(self) -> tuple[Any, ...]:
        """Levels in reading order."""
        return self.levels

    @classmethod
    def of_detail(cls, detail: str) -> Kind:
        """The kind with the detail behind the colon of a user's request."""
        if detail:
            raise ValueError(f"{cls.word} takes nothing behind a colon; received {detail!r}.")
        return cls()

    @property
    def of_texts(self) -> bool:
        """Whether cells are texts that encode numbers, such as dates."""
        return bool(self.example)

    @classmethod
    def recognises(cls, levels: tuple[Any, ...]) -> bool:
        """Whether this kind is inferred for a column of such levels, or of numbers."""
        return False

    @classmethod
    def resembles(cls, text: str) -> bool:
        """Whether a text looks like this kind, which is then suggested but not inferred."""
        return False

    def number(self, text: str) -> float:
        """Number of a text; ValueError for a text of another kind."""
        raise ValueError(text)

    def read(self, texts: Iterable[str], day_first: bool = False) -> Texts:
        """Numbers of the distinct texts of a column."""
        return Texts.of(texts, self.number, self.cell_description)

    def texts(self, numbers: Numbers) -> Shaped[np.ndarray, " obs"]:
        """Texts of numbers, None where missing."""
        return np.array([None if n != n else self.typed(n) for n in numbers.tolist()], object)

    @classmethod
    def of_series(cls, series: nw.Series[Any]) -> Numbers:
        """Numbers of a series whose dtype is among ``dtypes``."""
        raise NotImplementedError(cls.word)

    @classmethod
    def as_series(cls, numbers: Numbers, like: nw.Series[Any]) -> nw.Series[Any]:
        """Series of numbers in the dtype of ``like``."""
        raise NotImplementedError(cls.word)

    def learned(self, levels: Iterable[Any]) -> Kind:
        """The kind with the levels that it learns from the cells."""
        return self

    def reordered(self, order: Iterable[int]) -> Kind:
        """The kind with its levels in another order, if they are unordered."""
        return self

    def joined(self, other: Kind) -> Kind | None:
        """Common kind of two blocks of a column; None if they are incompatible."""
        return self if self == other else None

    def is_cell(self, numbers: Numbers) -> Bool[np.ndarray, " obs"]:
        """Whether each number is a possible cell of this kind."""
        return np.ones(numbers.shape, dtype=bool)

    def refusal(self, name: str, numbers: Numbers) -> str:
        """Message on a number that is no cell of this kind in a named column; empty without."""
        if type(self).is_cell is Kind.is_cell:
            return ""
        odd = ~np.isnan(numbers) & ~self.is_cell(numbers)
        if not odd.any():
            return ""
        return (
            f"Column {name!r} holds {numbers[odd][0]:g}, but its kind is {self.word!r}, whose "
            f"cells are each {self.cell_description}; correct the cell, or mark it as missing."
        )

    @abstractmethod
    def encode(self, numbers: Numbers) -> Reals:
        """Reals of numbers, or of level positions."""

    @abstractmethod
    def decode(self, reals: Reals) -> Numbers:
        """Nearest possible cells to reals, as numbers or level positions."""

    def nearest(self, numbers: Numbers) -> Numbers:
        """Nearest possible cells to numbers."""
        return numbers if self.is_plain else self.decode(self.encode(numbers))

    def features(self, name: str) -> tuple[str, ...]:
        """Names of the reals of a column."""
        return (name,) * self.n_reals

    def deviation(self, mean: Reals) -> Numbers:
        """Standard deviation of a cell, given the mean of its several reals."""
        return np.full(len(mean), np.nan)

    def written(self, number: float) -> str:
        """Text of a number for people; empty for the default format."""
        return self.typed(number)

    def typed(self, number: float) -> str:
        """Text of a number that reads back as the same cell; empty for the default format."""
        return ""


def kind_named(text: str) -> Kind:
    """Kind of a word, with its detail behind a colon.

    >>> kind_named("angle:24"), kind_named("count")
    (Angle(period=24.0), Count())
    """
    word, _, detail = text.partition(":")
    if word not in KINDS:
        raise ValueError(f"{text!r} is no kind of column; they are {', '.join(KINDS)}.")
    return KINDS[word].of_detail(detail)


def recognised(levels: tuple[Any, ...]) -> Kind:
    """Inferred kind of a column with these sorted levels, or of numbers without levels."""
    kind = next(kind for kind in reversed(KINDS.values()) if kind.recognises(levels))
    return kind().learned(levels)


def resembled(text: str) -> type[Kind] | None:
    """Kind that a text looks like but that has to be requested; else None."""
    return next((kind for kind in KINDS.values() if kind.resembles(text)), None)


def of_dtype(dtype: object) -> Kind | None:
    """Kind of a frame's dtype, or None."""
    return next((kind() for kind in KINDS.values() if isinstance(dtype, kind.dtypes)), None)


def sorted_levels(present: Iterable[Any]) -> tuple[Any, ...]:
    """Distinct cells in the order of their type; numbers as int where all are whole."""
    distinct = sorted(set(present))
    if not distinct or isinstance(distinct[0], str | bool):
        return tuple(distinct)
    whole = all(value == int(value) for value in distinct)
    return tuple(int(value) if whole else value + 0.0 for value in distinct)


def laws_of_levels(levels: tuple[Any, ...]) -> Requirements:
    """Requirements on levels read from a file."""
    yield len(set(levels)) == len(levels), "levels that differ"
    yield all(isinstance(level, str | int | float) for level in levels), "plain levels"


@stored
class Real(Kind):
    """A number, unchanged."""

    word = "real"
    is_plain = True

    @classmethod
    @override
    def recognises(cls, levels: tuple[Any, ...]) -> bool:
        return cls is Real and not levels  # a kind that inherits from it has to be asked for

    @override
    def encode(self, numbers: Numbers) -> Reals:
        return numbers[:, None]

    @override
    def decode(self, reals: Reals) -> Numbers:
        return reals[:, 0]


@stored
class Category(Kind):
    """An unordered level, coded by its position."""

    levels: tuple[Any, ...] = ()

    word = "categorical"
    cell_description = "a level"
    n_reals = 0
    has_levels = True
    is_ordered = False

    @classmethod
    @override
    def recognises(cls, levels: tuple[Any, ...]) -> bool:
        return bool(levels)

    @property
    @override
    def levels_in_order(self) -> tuple[Any, ...]:
        return sorted_levels(self.levels)

    @override
    def learned(self, levels: Iterable[Any]) -> Category:
        return replace(self, levels=sorted_levels(levels))

    @override
    def reordered(self, order: Iterable[int]) -> Category:
        return replace(self, levels=tuple(self.levels[position] for position in order))

    @override
    def joined(self, other: Kind) -> Kind | None:
        if not isinstance(other, Category):
            return None
        together = self.levels + other.levels
        types = {type(level) if isinstance(level, str | bool) else float for level in together}
        return recognised(sorted_levels(together)) if len(types) == 1 else None

    @override
    def encode(self, numbers: Numbers) -> Reals:
        return np.empty((len(numbers), 0))

    @override
    def decode(self, reals: Reals) -> Numbers:
        raise NotImplementedError("Levels are codes, and no reals.")

    def __laws__(self) -> Requirements:
        yield from laws_of_levels(self.levels)


@stored
class YesNo(Category):
    """A category of two levels that mean yes and no."""

    word = "yes or no"
    cell_description = "yes or no"

    _PAIRS: ClassVar = ({"no", "yes"}, {"false", "true"}, {"n", "y"}, {"0", "1"})

    @classmethod
    @override
    def recognises(cls, levels: tuple[Any, ...]) -> bool:
        if all(isinstance(level, bool) for level in levels):
            return bool(levels)
        return len(levels) == 2 and {str(level).casefold() for level in levels} in cls._PAIRS


@stored
class Empty(Kind):
    """A column without an observed cell in the rows of the fit, which no model uses."""

    word = "empty"
    n_reals = 0
    is_ordered = False

    @override
    def encode(self, numbers: Numbers) -> Reals:
        return np.empty((len(numbers), 0))

    @override
    def decode(self, reals: Reals) -> Numbers:
        return np.full(len(reals), np.nan)


@stored
class Count(Kind):
    """A whole number from 0, whose root of count + 3/8 has about the same spread everywhere."""

    word = "count"
    cell_description = "a whole number of at least 0"

    @override
    def is_cell(self, numbers: Numbers) -> Bool[np.ndarray, " obs"]:
        cells: np.ndarray = (numbers >= 0) & (numbers == np.round(numbers))
        return cells

    @override
    def encode(self, numbers: Numbers) -> Reals:
        # Anscombe: 3/8 makes the variance of the root of a Poisson number nearly 1/4.
        return np.sqrt(numbers + 3 / 8)[:, None]

    @override
    def decode(self, reals: Reals) -> Numbers:
        # Below a root of 0 the square would rise again.
        return np.maximum(np.round(np.maximum(reals[:, 0], 0.0) ** 2 - 3 / 8), 0.0)


@stored
class Ordered(Kind):
    """An ordered level, whose position is its score."""

    levels: tuple[Any, ...] = ()
    """From the lowest; empty: numbers are in their order, texts in that of the numbers in them."""

    word = "ordered"
    cell_description = "a level of the order"
    has_levels = True

    @classmethod
    @override
    def of_detail(cls, detail: str) -> Ordered:
        return cls(tuple(level.strip() for level in detail.split("<")) if detail else ())

    @override
    def learned(self, levels: Iterable[Any]) -> Ordered:
        present = sorted_levels(levels)
        if not self.levels:
            return replace(self, levels=tuple(sorted(present, key=_natural)))
        return self

    @override
    def joined(self, other: Kind) -> Kind | None:
        if not isinstance(other, Ordered):
            return None
        if self.levels == other.levels:
            return self
        together = self.levels + other.levels
        of_one_type = len({isinstance(level, str) for level in together}) == 1
        return Ordered().learned(together) if of_one_type else None

    @override
    def encode(self, numbers: Numbers) -> Reals:
        return numbers[:, None]

    @override
    def decode(self, reals: Reals) -> Numbers:
        # Numbers of a density may lie beyond the first and the last level.
        return np.clip(np.round(reals[:, 0]), 0, len(self.levels) - 1)

    def __laws__(self) -> Requirements:
        yield from laws_of_levels(self.levels)


def in_order(levels: Iterable[Any]) -> Ordered:
    """Ordered kind of levels that are given from lowest to highest.

    >>> in_order([1.0, 3.0, 2.0])
    Ordered(levels=(1, 3, 2))
    """
    levels = tuple(levels)
    plain = {level: level for level in sorted_levels(levels)}
    return Ordered(tuple(plain[level] for level in levels))


def _natural(level: Any) -> tuple[Any, ...]:
    """A key by which stage 2 comes before stage 10."""
    if not isinstance(level, str):
        return (level,)
    pieces = re.split(r"(\d+)", level.casefold())
    return (*(int(piece) if i % 2 else piece for i, piece in enumerate(pieces)), level)


@stored
class Angle(Kind):
    """A point on a circle, as its cosine and its sine: hours of the day, directions, months."""

    period: float = 360.0

    word = "angle"
    n_reals = 2
    is_ordered = False

    @classmethod
    @override
    def of_detail(cls, detail: str) -> Angle:
        try:
            period = float(detail) if detail else cls.period
        except ValueError:
            period = np.nan
        if not 0 < period < np.inf:
            raise ValueError(f"angle takes its period, such as angle:24; received {detail!r}.")
        return cls(period)

    @override
    def encode(self, numbers: Numbers) -> Reals:
        turns = 2 * np.pi * (numbers % self.period) / self.period
        return np.column_stack([np.cos(turns), np.sin(turns)])

    @override
    def decode(self, reals: Reals) -> Numbers:
        turns = np.arctan2(reals[:, 1], reals[:, 0]) / (2 * np.pi)
        numbers = turns * self.period % self.period
        # A remainder of next to nothing below 0 rounds to the period, which is 0.
        return np.where(numbers == self.period, 0.0, numbers)

    @override
    def features(self, name: str) -> tuple[str, ...]:
        return f"{name} (cosine)", f"{name} (sine)"

    @override
    def deviation(self, mean: Reals) -> Numbers:
        """The circular standard deviation: root of -2 log of the length of the mean."""
        length = np.clip(np.hypot(mean[:, 0], mean[:, 1]), 1e-300, 1.0)  # of a fit, it may exceed 1
        return np.sqrt(-2 * np.log(length)) * self.period / (2 * np.pi)

    def __laws__(self) -> Requirements:
        yield self.period > 0, "a period above 0"

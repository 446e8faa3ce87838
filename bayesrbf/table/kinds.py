"""Kinds of columns: how the cells of a column become reals or codes, and back.

A kind is a class. Its cells are numbers, or levels, of which a number is the place. What it writes:

* ``word``, by which people ask for it; ``cell_description`` and ``is_cell``: which cells it takes;
* ``encode`` and ``decode``: numbers to the reals of the model, and back. ``n_reals`` is 0 where the
  model has the place of a level as a code;
* ``recognises``, if a column may have this kind though nobody says so;
* ``example``, ``number`` and ``typed``, if its cells are texts, as of ``Date`` in dates.py.

All else has a default: how cells are written for people, and what a model may know of them. The
rest of the package asks a kind for these, and never for its name.
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
"""Every kind by its word; of those that recognise a column, the last one takes it."""


@dataclass(frozen=True)
class Texts:
    """Texts of a column as numbers, or what is wrong with one of them."""

    numbers: dict[str, float]
    problem: str = ""  # Said of ``culprit``.
    culprit: str = ""
    advice: str = ""  # An option that mends it, after how texts are written.
    day_first: bool = False  # Whether the day was found to stand before the month.

    @classmethod
    def of(cls, texts: Iterable[str], number: Callable[[str], float], description: str) -> Self:
        """Read texts one by one."""
        numbers = {}
        for text in texts:
            try:
                numbers[text] = number(text)
            except ValueError:
                return cls({}, f"is not {description}", text)
        return cls(numbers)


class Kind(ABC):
    """How the cells of a column become reals or codes, and back; missing numbers are NaN."""

    word: ClassVar[str]
    """What people call it, and by which they ask for it."""
    cell_description: ClassVar[str] = "a number"
    """What its cells are, for errors."""
    n_reals: ClassVar[int] = 1
    """Real features of the column; 0: its levels are codes, or it has no cell."""
    has_levels: ClassVar[bool] = False
    """Whether its cells are some of few levels."""
    is_ordered: ClassVar[bool] = True
    """Whether of two cells one is above the other, so that there are quantiles."""
    example: ClassVar[str] = ""
    """A cell as it is written, where cells are texts that stand for numbers."""
    option: ClassVar[str] = "kind"
    """The option of commands by which people ask for it."""
    numbers: ClassVar[str] = "numbers"
    """What the numbers of texts are."""
    grows: ClassVar[bool] = False
    """Whether new rows lie beyond those of training, as dates do, for time passes."""
    dtypes: ClassVar[tuple[Any, ...]] = ()
    """Dtypes of frames whose columns are of this kind."""
    is_plain: ClassVar[bool] = False
    """Whether the reals of the model are the numbers themselves."""

    def __init_subclass__(cls) -> None:
        KINDS[cls.word] = cls

    @property
    def levels(self) -> tuple[Any, ...]:
        """Its levels, in the order of their places; empty of numbers."""
        return ()

    @property
    def levels_in_order(self) -> tuple[Any, ...]:
        """Its levels in the order in which people read them."""
        return self.levels

    @classmethod
    def of_detail(cls, detail: str) -> Kind:
        """The kind that a user asks for, with what stands behind the colon."""
        if detail:
            raise ValueError(f"{cls.word} takes nothing behind a colon; received {detail!r}.")
        return cls()

    @property
    def of_texts(self) -> bool:
        """Whether cells are written as texts that stand for numbers."""
        return bool(self.example)

    @classmethod
    def recognises(cls, levels: tuple[Any, ...]) -> bool:
        """Whether a column of such levels, or of numbers, is of this kind unasked."""
        return False

    @classmethod
    def resembles(cls, text: str) -> bool:
        """Whether texts of a file look so much like this kind that it has to be asked for."""
        return False

    def number(self, text: str) -> float:
        """The number for which a text stands; ValueError where it is none of this kind."""
        raise ValueError(text)

    def read(self, texts: Iterable[str], day_first: bool = False) -> Texts:
        """The numbers of the distinct texts of a column."""
        return Texts.of(texts, self.number, self.cell_description)

    def texts(self, numbers: Numbers) -> Shaped[np.ndarray, " obs"]:
        """Numbers as the texts that stand for them, None where missing."""
        return np.array([None if n != n else self.typed(n) for n in numbers.tolist()], object)

    @classmethod
    def of_series(cls, series: nw.Series[Any]) -> Numbers:
        """Cells of one of its dtypes as numbers."""
        raise NotImplementedError(cls.word)

    @classmethod
    def as_series(cls, numbers: Numbers, like: nw.Series[Any]) -> nw.Series[Any]:
        """Numbers in one of its dtypes."""
        raise NotImplementedError(cls.word)

    def learned(self, levels: Iterable[Any]) -> Kind:
        """The kind with what it learns from the levels in the cells."""
        return self

    def reordered(self, order: Iterable[int]) -> Kind:
        """The kind whose levels, where they have no order, stand at other places."""
        return self

    def joined(self, other: Kind) -> Kind | None:
        """What a column is that is of these kinds in two blocks of rows; None: they differ."""
        return self if self == other else None

    def is_cell(self, numbers: Numbers) -> Bool[np.ndarray, " obs"]:
        """Which numbers are cells of this kind."""
        return np.ones(numbers.shape, dtype=bool)

    def refusal(self, name: str, numbers: Numbers) -> str:
        """Why numbers are no cells of this kind in the column of a name; empty where they are."""
        odd = ~np.isnan(numbers) & ~self.is_cell(numbers)
        if not odd.any():
            return ""
        return (
            f"Column {name!r} holds {numbers[odd][0]:g}, but its kind is {self.word!r}, whose "
            f"cells are each {self.cell_description}; correct the cell, or mark it as missing."
        )

    @abstractmethod
    def encode(self, numbers: Numbers) -> Reals:
        """Numbers, or places of levels, as reals."""

    @abstractmethod
    def decode(self, reals: Reals) -> Numbers:
        """Any reals as numbers, or places of levels: the nearest cells."""

    def nearest(self, numbers: Numbers) -> Numbers:
        """The cells that are nearest to numbers."""
        return numbers if self.is_plain else self.decode(self.encode(numbers))

    def features(self, name: str) -> tuple[str, ...]:
        """Names of the reals of a column."""
        return (name,) * self.n_reals

    def deviation(self, mean: Reals) -> Numbers:
        """Standard deviation of a cell, where several reals have this mean."""
        return np.full(len(mean), np.nan)

    def written(self, number: float) -> str:
        """A number in words; empty: as any number is."""
        return self.typed(number)

    def typed(self, number: float) -> str:
        """A number as it is typed, so that it is read as the same cell; empty: as any number."""
        return ""


def kind_named(text: str) -> Kind:
    """A kind from its word, with a colon before what more it takes.

    >>> kind_named("angle:24"), kind_named("count")
    (Angle(period=24.0), Count())
    """
    word, _, detail = text.partition(":")
    if word not in KINDS:
        raise ValueError(f"{text!r} is no kind of column; they are {', '.join(KINDS)}.")
    return KINDS[word].of_detail(detail)


def recognised(levels: tuple[Any, ...]) -> Kind:
    """The kind of a column of levels, sorted, or of numbers where there are none."""
    kind = next(kind for kind in reversed(KINDS.values()) if kind.recognises(levels))
    return kind().learned(levels)


def resembled(text: str) -> type[Kind] | None:
    """The kind that a text of a file looks like, which has to be asked for."""
    return next((kind for kind in KINDS.values() if kind.resembles(text)), None)


def of_dtype(dtype: object) -> Kind | None:
    """The kind that a dtype of frames says, where it says one."""
    return next((kind() for kind in KINDS.values() if isinstance(dtype, kind.dtypes)), None)


def sorted_levels(present: Iterable[Any]) -> tuple[Any, ...]:
    """Distinct cells in the order of their type; numbers as int where all are whole."""
    distinct = sorted(set(present))
    if not distinct or isinstance(distinct[0], str | bool):
        return tuple(distinct)
    whole = all(value == int(value) for value in distinct)
    return tuple(int(value) if whole else value + 0.0 for value in distinct)


def laws_of_levels(levels: tuple[Any, ...]) -> Requirements:
    """What levels of a file must be."""
    yield len(set(levels)) == len(levels), "levels that differ"
    yield all(isinstance(level, str | int | float) for level in levels), "plain levels"


@stored
class Real(Kind):
    """A number as it is."""

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
    """A level without order, which models have as a code."""

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
    """A category of two levels that say yes and no."""

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
    """A column without an observed cell in the rows of the fit: no model knows of it."""

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
    """A level of an order: its place in it is the score."""

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
        return np.clip(np.round(reals[:, 0]), 0, len(self.levels) - 1)

    def __laws__(self) -> Requirements:
        yield from laws_of_levels(self.levels)


def in_order(levels: Iterable[Any]) -> Ordered:
    """The kind of a column whose type says the order of its levels, from the lowest.

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

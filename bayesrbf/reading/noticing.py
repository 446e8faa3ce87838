"""Doubtful columns: stand-ins for missing cells, names of rows, one level spelled twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.reading.cells import (
    doubtful_labels,
    is_number,
    limits_among,
    possible_numbers,
    read_numbers,
    spelled_alike,
    words_for_missing,
)
from bayesrbf.reading.inferring import AMOUNT, FEW_OTHERS, Values
from bayesrbf.reading.notes import Note

# Finds columns of text in a frame that seem to hold numbers.


MIN_NUMBERS: Final = 10
"""Numbers that a column must hold; fewer different ones may be codes that were made text."""
REMEDY: Final = (
    "read_table(X) of this package reads quantities, and categorical_features names codes"
)
"""Advice where columns of text hold numbers."""
_ZERO_FIRST: Final = re.compile(r"[+-]?0\d+", re.ASCII)


def numbers_as_text(cells: Iterable[str]) -> str:
    """A clause about a column of text that holds numbers in nearly all cells; else empty.

    >>> numbers_as_text([f"${i},500.00" for i in range(1, 20)])
    "holds numbers written as text, such as '$1,500.00': 19 different ones count as categories"
    """
    counts = Counter(cell.strip() for cell in cells)
    limits = limits_among(counts)
    texts = dict.fromkeys(limits.get(text, text) for text in counts)
    numeric = read_numbers(list(texts)).numbers
    non_numeric = Counter({t: n for t, n in counts.items() if limits.get(t, t) not in numeric})
    total, n_others = counts.total(), non_numeric.total()
    if any(_ZERO_FIRST.fullmatch(text) for text in numeric) or not numeric.keys() & counts.keys():
        return ""
    if not non_numeric:
        if len(counts) <= MIN_NUMBERS:
            return ""
        example = next(iter(limits), next(iter(counts)))
        return (
            f"holds numbers written as text, such as {example!r}: {len(counts)} different ones "
            "count as categories"
        )
    if n_others > FEW_OTHERS * total or total - n_others < MIN_NUMBERS:
        return ""
    shown = ", ".join(
        f"{cell!r} {'once' if times == 1 else f'{times} times'}"
        for cell, times in non_numeric.most_common(3)
    )
    more = ", ..." if len(non_numeric) > 3 else ""
    few = "1 cell" if n_others == 1 else f"{n_others} cells"
    return (
        f"is text for {few} ({shown}{more}): its other {total - n_others} cells are numbers and "
        "count as categories"
    )


# Notices doubtful columns: stand-ins for missing cells, names of rows, prose.


MISSING_CODE: Final = re.compile(r"-?(9+|[78]{2,})|-[78]|-1|-?9+\.9+|32767|-32768|65535|2147483647")
"""Numbers that people write where nothing was measured."""
AWAY_GAP: Final = 1.0
"""Minimum gap of such a number from all other values, as a multiple of their range."""
FAR_GAP: Final = 10.0
"""Minimum gap of any other number, as a multiple of the same range."""
SEVERAL_OTHERS: Final = 5
"""Minimum number of other values beside a number that is no usual code: fewer are a scale."""
MIN_ROWS: Final = 20
"""Minimum number of rows for a judgement on whether a column names rows or is prose."""
LONG_DIGITS: Final = 5
"""Digits of whole numbers, all different and equally long, that look like names of rows."""
LONG_CODE: Final = 6
"""Letters and digits of codes, all equally long, that look like names of patients."""
ROWS_TO_NAME: Final = 100
"""Minimum number of rows for that: among few rows measurements differ, too."""
ROW_NAMES: Final = re.compile(
    r"(?i:(^|[\W_])(ids?|nr|no|num|number|index|idx|key|uuid|record|row|case|serial)($|[\W_]))"
    r"|(?<=[a-z])(ID|Id|Nr|No|Number|Index)$"
)
"""Names of columns that name rows."""


PERSON_NAMES: Final = re.compile(
    r"(^|[\W_])(ids?|mrn|patients?|subjects?|participants?)($|[\W_])|(?<=[a-z])(ID|Id)$",
    re.IGNORECASE,
)
"""Names of columns that name patients and the like, each of whom may have several rows."""
MOSTLY_DIFFERENT: Final = 0.5
"""Minimum ratio of distinct numbers or texts to rows at which they hardly repeat."""
ALL_DIFFERENT: Final = "whole numbers that are all different"
FAR_APART: Final = 100
"""Minimum ratio of the range of such numbers to the number of rows: measurements are denser."""
SURELY: Final = 3.0
"""Standard deviations from independence beyond which two columns are related."""
ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|(?=.*\d)[0-9a-fA-F-]{12,}")
"""E-mails, and codes such as UUIDs, which name somebody wherever they stand."""
NEARLY_ALL: Final = 0.9
"""Minimum ratio of distinct numbers to rows for a column that is named like ids."""
FAR_RATIO: Final = 10.0
"""Minimum ratio of the largest to the second largest distance from the median, for a slip."""
FAR_CHANCE: Final = 3e-3
"""Maximum probability of that ratio under the tail of the other cells, for a slip."""
REPEATED_IDS: Final = 5
"""Minimum number of ids in several rows."""
TIMES_CHANCE: Final = 10.0
"""Minimum ratio of that number to its expectation from neighbouring numbers."""
TELLING: Final = 0.99
"""Area under the ROC curve above which a single column separates a class."""
MIN_PER_CLASS: Final = 5
"""Minimum number of rows of a class, and of all others: fewer are separated by chance."""
ROUND_SHARE: Final = 0.2
"""Share of multiples of 10 beyond which numbers are rounded quantities rather than ids."""


@dataclass(frozen=True)
class _Stand:
    """A value at the edge of a column."""

    column: str
    value: float
    count: int
    gap: float  # To the nearest other value, as a multiple of the range of the others.
    n_others: int  # Distinct other values.
    apart: bool  # Whether it is no further step of a scale: the gap exceeds all between others.
    alone: bool  # Whether it is the only negative value of a column of whole numbers.


def _written(value: float) -> str:
    """A number as people write it."""
    return f"{value:.0f}" if value == round(value) else f"{value!r}"


def _is_code(value: float) -> bool:
    """Whether people write this number where nothing was measured."""
    return MISSING_CODE.fullmatch(_written(value)) is not None


def notice(
    columns: Mapping[str, Values], model: Iterable[str] | None = None, target: str | None = None
) -> Iterator[Note]:
    """Notes on doubtful columns of numbers (arrays) and of text (lists).

    Notes are on the columns of the ``model``, by default all, and on the labels in ``target``.

    >>> ages = np.array([30.0, 41, 52, -999, 63, -999])
    >>> next(notice({"age": ages}))
    Note(topic='stand-in', column='age', value='-999', count=2, ...)
    """
    of_model = columns if model is None else {name: columns[name] for name in model}
    labels = [] if target is None else columns[target]
    counts = Counter(label for label in labels if isinstance(label, str))
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    codes[[label is None for label in labels]] = -1
    separating = telling(of_model, codes) if counts else ()
    notes = [*separating, *doubtful_labels(str(target), counts), *_noticed(of_model)]
    like: dict[tuple[str, str], set[str]] = {}
    for note in notes:
        like.setdefault((note.topic, note.value), set()).add(note.column)
    for note in notes:
        rest = columns.keys() - like[note.topic, note.value]
        yield replace(note, elsewhere=any(_has(columns[name], note.value) for name in rest))


def telling(
    columns: Mapping[str, Values], codes: Int[np.ndarray, " obs"], throughout: bool = False
) -> Iterator[Note]:
    """Notes on columns that separate a class from the others alone, by cells or missingness.

    With ``throughout``, only columns that separate every class: they are the label.

    >>> codes = np.array([0, 1] * 10)
    >>> [note.example for note in telling({"a": np.arange(20.0), "b": [*"xy"] * 10}, codes)]
    ['100 %']
    """
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            missing, cells = np.isnan(values), values
        else:
            missing = np.array([cell is None for cell in values])
            cells = np.array([cell or "" for cell in values])
        seen = (codes >= 0) & ~missing
        of_cells = [*_areas(cells[seen], codes[seen])] or [0.0]
        holes = missing[codes >= 0].astype(float)
        of_holes = [*_areas(holes, codes[codes >= 0])] if holes.any() else []
        for topic, areas in (("tells", of_cells), ("missing tells", of_holes or [0.0])):
            if (min(areas) if throughout else max(areas)) > TELLING:
                area = f"{100 * max(areas):.0f} %"
                yield Note(topic, name, count=int(seen.sum()), example=area)


def _areas(cells: np.ndarray, codes: Int[np.ndarray, " obs"]) -> Iterator[float]:
    """Area under the ROC curve of each class against the rest, in the better direction.

    Levels have the order of the frequency of the class in them.
    """
    levels = None if cells.dtype.kind == "f" else np.unique(cells, return_inverse=True)[1]
    if levels is not None and levels.max(initial=0) >= max(20, 0.2 * len(cells)):
        return  # with so many levels any column separates the classes
    ranks = _ranks(cells) if levels is None else None
    for code in np.unique(codes):
        in_class = codes == code
        n, m = int(in_class.sum()), int((~in_class).sum())
        if min(n, m) < MIN_PER_CLASS:
            continue
        if levels is not None:
            ranks = _ranks((np.bincount(levels, in_class) / np.bincount(levels))[levels])
        assert ranks is not None
        area = (ranks[in_class].sum() - n * (n + 1) / 2) / (n * m)
        yield float(max(area, 1 - area))


def _has(values: Values, text: str) -> bool:
    """Whether a column has a cell that equals this text or number."""
    if isinstance(values, np.ndarray):
        return is_number(text) and bool(np.any(values == float(text)))
    return text in values


def _noticed(columns: Mapping[str, Values]) -> Iterator[Note]:
    """Notes on doubtful columns."""
    reals = {name: values for name, values in columns.items() if isinstance(values, np.ndarray)}
    yield from _stand_ins(reals)
    for name, values in reals.items():
        present = values[~np.isnan(values)]
        if (far := _far_cell(present)) is not None:
            yield Note("far cell", name, _written(far), 1)
        if present.size < MIN_ROWS or not _are_whole(present):
            continue
        reason = _names_rows(name, present)
        if not reason and _ranges_far(present) and not _is_related(name, columns):
            reason = ALL_DIFFERENT
        if reason:
            yield Note("identifier", name, reason, present.size, f"{present[0]:.0f}")
        elif count := _repeated_names(name, present):
            reason = f"{count} different numbers in {present.size} rows"
            yield Note("repeated numbers", name, reason, count, f"{present[0]:.0f}")
    for name, cells in columns.items():
        if not isinstance(cells, np.ndarray):
            yield from _of_text(name, [cell for cell in cells if cell is not None])


def _stand_ins(reals: Mapping[str, Float[np.ndarray, " obs"]]) -> Iterator[Note]:
    """Numbers at the edge of a column that may mean missing."""
    edges = [edge for name, values in reals.items() for edge in _edges(name, values)]
    shared = Counter(edge.value for edge in edges if edge.gap >= AWAY_GAP and edge.count > 1)
    for edge in edges:
        often = edge.count > 1
        is_code = _is_code(edge.value)
        away = edge.gap >= AWAY_GAP and edge.apart and often
        stands_in = is_code and away and edge.n_others > 1
        together = (
            shared[edge.value] > 1 and edge.value != 0 and away and edge.n_others >= SEVERAL_OTHERS
        )
        far = edge.gap >= FAR_GAP and edge.n_others > 2 and edge.count > 2
        if stands_in or together or far:
            yield Note("stand-in", edge.column, _written(edge.value), edge.count)
        elif is_code and edge.alone and edge.count > 2:
            yield Note("only negative", edge.column, _written(edge.value), edge.count)


def _edges(name: str, values: Float[np.ndarray, " obs"]) -> Iterator[_Stand]:
    """Codes beyond all other values, and the smallest and largest of the rest, with their gaps."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    low, high = 0, distinct.size
    while low < high and _is_code(float(distinct[low])):
        low += 1
    while low < high and _is_code(float(distinct[high - 1])):
        high -= 1
    inner = distinct[low:high]
    ends = {low: inner[1:], high - 1: inner[:-1]} if inner.size > 2 else {}
    beyond = dict.fromkeys((*range(low), *range(high, distinct.size)), inner)
    negative = int((distinct < 0).sum())
    for index, rest in (beyond | ends).items():
        if rest.size < 2:
            continue
        value, least, most = float(distinct[index]), float(rest[0]), float(rest[-1])
        distance = min(abs(least - value), abs(most - value))
        gap = distance / (most - least)
        # Only of what is far away, and of a negative number, is the rest asked.
        apart = gap >= AWAY_GAP and distance > float(np.diff(rest).max())
        alone = value < 0 and negative == 1 and rest.size >= SEVERAL_OTHERS
        alone = alone and bool(np.all(rest == np.round(rest)))
        yield _Stand(name, value, int(counts[index]), gap, rest.size, apart, alone)


def _far_cell(values: Float[np.ndarray, " obs"]) -> float | None:
    r"""The single outlying cell, as after a slipped decimal point; None without.

    Distances :math:`d_1 > d_2 > \ldots` from the median fall as in a Pareto tail, whatever its
    weight: with s the sum of :math:`\log d_i / d_{k + 2}` over k others,
    :math:`P(\log d_1 / d_2 > l) = (1 + l / s)^{-k}`.

    >>> incomes = np.exp(np.random.default_rng(0).normal(size=100))
    >>> _far_cell(incomes), _far_cell(np.append(incomes, 30000.0))
    (None, 30000.0)
    """
    if values.size < MIN_ROWS:
        return None
    distances = np.abs(values - np.median(values))
    distinct, counts = np.unique(distances[distances > 0], return_counts=True)
    k = max(distinct.size // 5, SEVERAL_OTHERS)
    if distinct.size < MIN_ROWS or counts[-1] > 1 or distinct[-1] < FAR_RATIO * distinct[-2]:
        return None
    logs = np.log(distinct[::-1][: k + 2])
    spread = float((logs[1:-1] - logs[-1]).sum())
    if (1 + (logs[0] - logs[1]) / spread) ** -k > FAR_CHANCE:
        return None
    return float(values[distances.argmax()])


def _are_whole(values: Float[np.ndarray, " obs"]) -> bool:
    """Whether all cells are whole numbers; most columns of measurements say no at once."""
    return all(bool(np.all(cells == np.round(cells))) for cells in (values[:MIN_ROWS], values))


def _names_rows(name: str, values: Float[np.ndarray, " obs"]) -> str:
    """Why whole numbers seem to name the rows; empty where they do not."""
    if np.unique(values).size < values.size:
        return ""
    if np.ptp(values) < values.size:
        return "whole numbers that count the rows"
    if np.all(np.diff(values) > 0) or np.all(np.diff(values) < 0):
        return "whole numbers that rise or fall from row to row"
    digits = {len(f"{abs(value):.0f}") for value in values}
    if ROW_NAMES.search(name) or (
        values.size >= ROWS_TO_NAME and len(digits) == 1 and digits.pop() >= LONG_DIGITS
    ):
        return ALL_DIFFERENT
    return ""


def _ranges_far(values: Float[np.ndarray, " obs"]) -> bool:
    """Whether whole numbers are all different, far apart, and not rounded, as codes dealt out."""
    return (
        np.unique(values).size == values.size
        and bool(np.ptp(values) > FAR_APART * values.size)
        and bool(np.mean(values % 10 == 0) < MOSTLY_DIFFERENT)
    )


def _is_related(name: str, columns: Mapping[str, Values]) -> bool:
    """Whether a column of numbers correlates with another column beyond chance, by ranks."""
    values = np.asarray(columns[name], dtype=np.float64)
    bound = np.sqrt(SURELY**2 + 2 * np.log(len(columns)))  # the more columns, the more chance
    other_cells = (cells for other, cells in columns.items() if other != name)
    return any(_deviation(values, cells) > bound for cells in other_cells)


def _deviation(values: Float[np.ndarray, " obs"], cells: Values) -> float:
    """Deviation of two columns from independence, in standard deviations under independence."""
    if isinstance(cells, np.ndarray):
        seen = ~(np.isnan(values) | np.isnan(cells))
        if seen.sum() < MIN_ROWS or np.ptp(cells[seen]) == 0:
            return 0.0
        correlation = np.corrcoef(_ranks(values[seen]), _ranks(cells[seen]))[0, 1]
        return float(abs(correlation) * np.sqrt(seen.sum() - 1))
    texts = np.array(["" if cell is None else cell for cell in cells])
    seen = ~np.isnan(values) & (texts != "")
    _, codes, sizes = np.unique(texts[seen], return_inverse=True, return_counts=True)
    n, degrees = int(seen.sum()), sizes.size - 1
    if degrees < 1 or 2 * sizes.size > n:
        return 0.0
    # Kruskal and Wallis; the cube root of a chi-square is nearly normal (Wilson, Hilferty).
    means = np.bincount(codes, _ranks(values[seen])) / sizes
    statistic = 12 / (n * (n + 1)) * float(sizes @ (means - (n + 1) / 2) ** 2) / degrees
    spread = 2 / (9 * degrees)
    return float((np.cbrt(statistic) - (1 - spread)) / np.sqrt(spread))


def _ranks(cells: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks from 1, with mean ranks for ties."""
    _, inverse, sizes = np.unique(cells, return_inverse=True, return_counts=True)
    ranks: Float[np.ndarray, " n"] = (np.cumsum(sizes) - (sizes - 1) / 2)[inverse]
    return ranks


def _repeated_names(name: str, values: Float[np.ndarray, " obs"]) -> int:
    """Number of distinct values of whole numbers that seem to be repeated ids; else 0.

    The name of the column decides; a name that a count may have, only if the numbers are long and
    nearly all different. Otherwise ids are long, mostly different, not rounded, and many more are
    repeated than have a neighbouring number, which measurements have.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if PERSON_NAMES.search(name):
        return distinct.size if MIN_ROWS < distinct.size < values.size else 0
    long = np.median(np.abs(distinct)) >= 10 ** (LONG_DIGITS - 1)
    rounded = np.mean(distinct % 10 == 0) > ROUND_SHARE
    if not long or rounded or distinct.size < MOSTLY_DIFFERENT * values.size:
        return 0
    if ROW_NAMES.search(name) and NEARLY_ALL * values.size <= distinct.size < values.size:
        return distinct.size
    again = int((counts > 1).sum())
    if values.size < ROWS_TO_NAME or again < REPEATED_IDS:
        return 0
    near = np.mean([np.isin(distinct + step, distinct).sum() for step in range(1, 11)])
    return distinct.size if again >= TIMES_CHANCE * near / 2 else 0


def _of_text(name: str, present: Sequence[str]) -> Iterator[Note]:
    """Words for missing, names of rows and prose."""
    counts = Counter(present)
    if not counts:
        return
    for word in words_for_missing(counts):
        yield Note("word for missing", name, word, counts[word])
    if not hardly_repeats(counts):
        yield from spelled_alike(name, counts)
    example = max(counts, key=len)
    shown = example if len(example) <= 40 else f"{example[:39].rstrip()}…"
    repeats = len(counts) < len(present)
    address = all(map(ADDRESS.fullmatch, counts))
    code = address or all(re.search(r"\d", text) and not re.search(r"\s", text) for text in counts)
    message = f"{len(counts)} different texts in {len(present)} rows"
    if hardly_repeats(counts):
        if not repeats and " " not in example:
            yield Note("names of rows", name, count=len(counts), example=example)
        elif all(map(AMOUNT.fullmatch, counts)) and not code:
            yield Note("many units", name, count=len(counts), example=shown)
        elif code:
            yield Note("repeated names", name, message, len(counts), repr(example))
        else:
            yield Note("free text", name, count=len(counts), example=shown)
    elif (
        repeats
        and len(counts) > MIN_ROWS
        and (PERSON_NAMES.search(name) or address or _alike(counts))
    ):
        yield Note("repeated texts", name, message, len(counts), repr(example))


def hardly_repeats(counts: Counter[str]) -> bool:
    """Whether texts hardly repeat, so that categories of them would be useless.

    >>> hardly_repeats(Counter(map(str, range(30)))), hardly_repeats(Counter("abc" * 10))
    (True, False)
    """
    total = counts.total()
    return total >= MIN_ROWS and len(counts) > max(MIN_ROWS, MOSTLY_DIFFERENT * total)


def _alike(texts: Collection[str]) -> bool:
    """Whether texts share a format: letters and at least three digits (P0001), or long codes."""
    shapes = {re.sub(r"\d", "9", text) for text in texts}
    if any(re.search(r"\s", shape) or not re.search(r"[^\W\d]", shape) for shape in shapes):
        return False
    if len(shapes) == 1:
        return next(iter(shapes)).count("9") > 2
    numbered = sum(bool(re.search(r"\d", text)) for text in texts) / len(texts)
    lengths = {len(text) for text in texts}
    return numbered > MOSTLY_DIFFERENT and len(lengths) == 1 and min(lengths) >= LONG_CODE


# When two cells of a column of levels are the same level, however they are written.
#
# This is decided here alone: for the cells of one table, and for new rows beside a model, in files,
# in frames and over HTTP.


_WORDS: Final = {
    **dict.fromkeys(("True", "TRUE", "true"), "True"),
    **dict.fromkeys(("False", "FALSE", "false"), "False"),
}
"""Booleans as Python, spreadsheets and JSON write them."""
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0)?", re.ASCII)
"""A whole number; pandas adds ".0" once a cell of the column is missing."""
_MIDNIGHT: Final = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]00:00(?::00(?:\.0+)?)?Z?", re.ASCII)
"""A date, written with a time of day that it does not have."""
_MAX_DIGITS: Final = 300
"""Maximum length of a number that is compared with levels, which are below 1e308."""


def _are_plain_numbers(texts: Collection[str]) -> bool:
    """Whether numbers are numbers and no codes: whole, without leading zeros or decimals but .0.

    The codes 250 and 250.00 of diagnoses differ, as do 007 and 7.
    """
    return all(_WHOLE.fullmatch(text) for text in texts if is_number(text))


def _key(text: str, whole: bool) -> str:
    """Canonical spelling of a level."""
    if text in _WORDS:
        return _WORDS[text]
    if date := _MIDNIGHT.fullmatch(text):
        return date[1]
    number = _WHOLE.fullmatch(text) if whole else None
    return text if number is None else "0" if number[1] == "-0" else number[1]


def in_one_spelling(texts: Collection[str]) -> dict[str, str]:
    """Level of each distinct text of a column.

    It is the text itself, unless the column writes some level in several ways.

    >>> in_one_spelling(["1", "1.0", "2.0"]), in_one_spelling(["1.0", "2.0"])
    ({'1': '1', '1.0': '1', '2.0': '2'}, {'1.0': '1.0', '2.0': '2.0'})
    >>> in_one_spelling(["250", "250.0", "250.00"])
    {'250': '250', '250.0': '250.0', '250.00': '250.00'}
    """
    whole = _are_plain_numbers(texts)
    keys = {text: _key(text, whole) for text in texts}
    several = len(set(keys.values())) < len(keys)
    return keys if several else {text: text for text in texts}


def written_apart(texts: Collection[str]) -> list[str]:
    """Levels that spell the same number, such as 7 and 007, for the first such number.

    >>> written_apart(["8", "7", "007"]), written_apart(["1", "1.0"])
    (['007', '7'], [])
    """
    alike: dict[Decimal, set[str]] = {}
    for level in set(in_one_spelling(texts).values()):
        if is_number(level) and "e" not in level.lower():
            alike.setdefault(Decimal(level), set()).add(level)
    return next((sorted(several) for several in alike.values() if len(several) > 1), [])


@dataclass(frozen=True)
class KnownLevels:
    """Levels of a column, with a lookup of the level of a cell."""

    levels: tuple[object, ...]  # Of one type: text, numbers or booleans.

    @cached_property
    def _texts(self) -> list[str]:
        return [level for level in self.levels if isinstance(level, str)]

    @cached_property
    def _whole(self) -> bool:
        return _are_plain_numbers(self._texts)

    @cached_property
    def _positions(self) -> dict[object, int]:
        """Position of each level, by the level and by its other spellings."""
        positions: dict[object, int] = {level: i for i, level in enumerate(self.levels)}
        for text in self._texts:
            positions.setdefault(_key(text, self._whole), positions[text])
        return positions

    def position(self, cell: object) -> int | None:
        """Position of the level that a text, number or boolean spells; None without.

        A level that is a number has no spelling of its own: "007" is the level 7, but not "7".

        >>> KnownLevels((0, 1)).position("1.0"), KnownLevels(("0.0", "1.0")).position(1)
        (1, 1)
        >>> KnownLevels((False, True)).position("TRUE"), KnownLevels(("7", "8")).position("007")
        (1, None)
        """
        forms = self._as_text(cell) if self._texts else self._as_value(cell)
        return next((self._positions[form] for form in forms if form in self._positions), None)

    def name(self, cell: object) -> str:
        """Name of a cell's level; the cell itself if it is no level."""
        position = self.position(cell)
        return str(cell if position is None else self.levels[position])

    def _as_text(self, cell: object) -> tuple[object, ...]:
        """Spellings of a cell among levels of text, the most literal first."""
        if isinstance(cell, str):
            return cell, _key(cell, self._whole)
        if isinstance(cell, float) and cell.is_integer():
            return str(int(cell)), str(cell)
        return (str(cell),)

    def _as_value(self, cell: object) -> tuple[object, ...]:
        """Number or boolean of a cell, if it matches a single level."""
        if not isinstance(cell, str):
            return (cell,)
        if cell in _WORDS:
            return (
                (_WORDS[cell] == "True",) if isinstance(next(iter(self.levels), None), bool) else ()
            )
        if (whole := _WHOLE.fullmatch(cell)) and len(cell) < _MAX_DIGITS:
            return (int(whole[1]),)
        possible = tuple(self._positions.keys() & possible_numbers(cell))
        return possible if len(possible) == 1 else ()

"""Columns of a table: names, kinds, levels as codes, masks."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base.records import MAX_PARTS, Requirements, ascending, stored, within
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.reading.notes import listed
from bayesrbf.reading.noticing import KnownLevels, in_one_spelling
from bayesrbf.table.containers import Cells, missing_cells, read_cells
from bayesrbf.table.kinds import Empty, Kind, kind_named, recognised, sorted_levels
from bayesrbf.table.order import ColumnMoments, column_moments

if TYPE_CHECKING:
    import pandas as pd


# Columns of a table: names, kinds, levels, masks.


Missingness = Literal["ignorable", "informative"]
MASK_LEVELS: tuple[object, ...] = (False, True)
ELSEWHERE: Final = "another value"
"""Level of a cell at no point mass of its column."""


@stored
class Constant:
    """A column with a single value in all rows of the fit."""

    position: int
    number: float
    """The cell, or the position of its level."""


@stored
class CopiedColumn:
    """A column that equals an earlier column in all rows of the fit."""

    position: int
    original: int
    """Position of the column that the model has."""


@dataclass(frozen=True)
class Code:
    """A categorical variable of the model: a column's levels, missing indicator or point masses."""

    position: int  # Of the column.
    name: str
    levels: tuple[Any, ...]
    is_mask: bool = False
    feature: int | None = None  # The real whose point masses they are.


@stored
class Columns:
    """The columns of the table that an estimator was fitted to."""

    names: tuple[str, ...]  # ``x0, x1, ...`` when the table had none.
    kinds: tuple[Kind, ...]
    # Positions of the columns whose missingness mask joins the model as a binary categorical
    # column, after the categorical ones.
    masked: tuple[int, ...] = ()
    has_names: bool = False  # Whether the table itself named its columns.
    # Point masses of every real feature, in the order of the features; empty if none were looked
    # for. At which of them a cell is joins the model as a categorical column, after the masks; the
    # real cell is missing there.
    point_masses: tuple[tuple[float, ...], ...] = ()
    # Missing cells of each column in the rows of the fit.
    missing: tuple[int, ...] = ()
    # Whether the table numbered its columns 0, 1, 2, ... as frames do where they have no names.
    numbered: bool = False
    constants: tuple[Constant, ...] = ()
    copies: tuple[CopiedColumn, ...] = ()
    # Positions of columns with cells in rows of a single class: models see their indicators only.
    of_one_class: tuple[int, ...] = ()

    @cached_property
    def empty(self) -> tuple[int, ...]:
        """Positions of the columns without an observed cell in the rows of the fit.

        Whatever they hold later is treated as missing.
        """
        unknown = ((kind.n_reals, kind.has_levels) == (0, False) for kind in self.kinds)
        return tuple(position for position, is_empty in enumerate(unknown) if is_empty)

    @cached_property
    def left_out(self) -> tuple[int, ...]:
        """Positions of the columns whose cells no model sees.

        They are empty, constant, copies of others, or measured in one class alone.
        """
        constants = (column.position for column in self.constants)
        copies = (column.position for column in self.copies)
        return tuple(sorted({*self.empty, *constants, *copies, *self.of_one_class}))

    @cached_property
    def with_indicators(self) -> tuple[int, ...]:
        """Positions of the columns whose missing indicators may tell of the class."""
        unseen = {*self.left_out} - {*self.of_one_class}
        return tuple(i for i in range(len(self.names)) if i not in unseen)

    def in_levels(self, orders: Sequence[Int[np.ndarray, " _"]]) -> Columns:
        """The columns with reordered levels; a copy takes the order of its original."""
        kinds = list(self.kinds)
        for position, order in zip(self.code_of, orders, strict=True):
            kinds[position] = kinds[position].reordered(order.tolist())
        for copy in self.copies:
            kinds[copy.position] = kinds[copy.original]
        return replace(self, kinds=tuple(kinds))

    @property
    def n_used(self) -> int:
        """Number of columns that a model knows of."""
        return len(self.names) - len(self.left_out)

    @property
    def message(self) -> str:
        """Message on constant columns and copies; empty without them."""
        names = [f"{self.names[column.position]!r} (constant)" for column in self.constants]
        names += [
            f"{self.names[column.position]!r} (a copy of {self.names[column.original]!r})"
            for column in self.copies
        ]
        return f"Columns left out: {listed(names)}." if names else ""

    @property
    def with_masks(self) -> Columns:
        """The columns with missing indicators for each column that has missing cells."""
        with_holes = (i for i, number in enumerate(self.missing) if number)
        masked = tuple(i for i in with_holes if i in self.with_indicators)
        return replace(self, masked=masked)

    @cached_property
    def features(self) -> tuple[range, ...]:
        """The real features of each column."""
        numbers = (0 if i in self.left_out else k.n_reals for i, k in enumerate(self.kinds))
        edges = accumulate(numbers, initial=0)
        return tuple(range(start, stop) for start, stop in pairwise(edges))

    @cached_property
    def codes(self) -> tuple[Code, ...]:
        """All codes: levels of columns, then masks, then point masses."""
        masks = (Code(i, f"{self.names[i]} is missing", MASK_LEVELS, True) for i in self.masked)
        point_masses = (
            Code(
                position := self.real_positions[feature],
                f"{self.real_names[feature]} is",
                (ELSEWHERE, *self.kinds[position].decode(np.array(values)[:, None]).tolist()),
                feature=feature,
            )
            for feature, values in enumerate(self.point_masses)
            if values
        )
        of_levels = (Code(i, self.names[i], self.kinds[i].levels) for i in self.code_of)
        return (*of_levels, *masks, *point_masses)

    @cached_property
    def masks(self) -> Bool[np.ndarray, " code"]:
        """Whether each code is a missing indicator."""
        return np.array([code.is_mask for code in self.codes], bool)

    @cached_property
    def code_of(self) -> dict[int, int]:
        """Index of the code of each column whose levels are codes, by position of the column."""
        coded = (i for i, kind in enumerate(self.kinds) if kind.has_levels and not kind.n_reals)
        return {i: index for index, i in enumerate(i for i in coded if i not in self.left_out)}

    @cached_property
    def real_positions(self) -> tuple[int, ...]:
        """Position of the column of each real feature."""
        return tuple(i for i, features in enumerate(self.features) for _ in features)

    @cached_property
    def real_names(self) -> tuple[str, ...]:
        """Names of the real features."""
        named = (self.kinds[i].features(self.names[i]) for i in dict.fromkeys(self.real_positions))
        return tuple(name for of_column in named for name in of_column)

    @cached_property
    def number_names(self) -> tuple[str, ...]:
        """Names of the columns whose cells are numbers."""
        numbers = (i for i, k in enumerate(self.kinds) if not k.has_levels and i not in self.empty)
        return tuple(self.names[i] for i in numbers)

    @cached_property
    def number_features(self) -> dict[int, int]:
        """Real feature of each column of numbers with a single real, by position."""
        return {
            position: features.start
            for position, features in enumerate(self.features)
            if len(features) == 1 and not self.kinds[position].has_levels
        }

    @cached_property
    def kind_of(self) -> dict[str, Kind]:
        """Kinds of the columns by name."""
        return dict(zip(self.names, self.kinds, strict=True))

    @cached_property
    def categorical_names(self) -> tuple[str, ...]:
        """Names of all codes."""
        return tuple(code.name for code in self.codes)

    @cached_property
    def levels(self) -> tuple[tuple[object, ...], ...]:
        """Levels of every column whose levels are codes."""
        return tuple(self.kinds[i].levels for i in self.code_of)

    @cached_property
    def levels_of(self) -> dict[str, tuple[object, ...]]:
        """Levels of columns with levels by name, without missing indicators and point masses."""
        return {name: kind.levels for name, kind in self.kind_of.items() if kind.has_levels}

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels of all codes."""
        return tuple(len(code.levels) for code in self.codes)

    @cached_property
    def atomic(self) -> dict[int, int]:
        """Index among the codes of the point masses of each real feature that has point masses."""
        features = (code.feature for code in self.codes)
        return {at: index for index, at in enumerate(features) if at is not None}

    @cached_property
    def column_of(self) -> Int[np.ndarray, " cell"]:
        """Position of the column of each real, then of each code; -1 for missing indicators."""
        of_codes = (-1 if code.is_mask else code.position for code in self.codes)
        return np.array([*self.real_positions, *of_codes], np.intp)

    def taken(
        self, cells: Bool[np.ndarray, "obs column"], masks: bool
    ) -> tuple[Bool[np.ndarray, "obs feature"], Bool[np.ndarray, "obs code"]]:
        """Cells of the table as cells of reals and of codes, with missing indicators or without."""
        of_codes = cells[:, [code.position for code in self.codes]]
        return cells[:, self.real_positions], of_codes & (masks | ~self.masks)

    def decoded(
        self, reals: Float[np.ndarray, "*row feature"]
    ) -> Float[np.ndarray, "*row feature"]:
        """Reals as numbers of their columns or level positions; the reals of angles unchanged."""
        return self._mapped(reals, lambda kind, cells: kind.decode(cells[:, None]))

    def encoded(
        self, numbers: Float[np.ndarray, "*row feature"]
    ) -> Float[np.ndarray, "*row feature"]:
        """The inverse of :meth:`decoded`; numbers may lie between cells, as means do."""
        return self._mapped(numbers, lambda kind, cells: kind.encode(cells)[:, 0])

    def _mapped(
        self,
        cells: Float[np.ndarray, "*row feature"],
        transform: Callable[[Kind, Float[np.ndarray, " cell"]], Float[np.ndarray, " cell"]],
    ) -> Float[np.ndarray, "*row feature"]:
        """Transformed cells of columns with a single real; the array itself if all are plain."""
        mapped = cells
        for kind, features in zip(self.kinds, self.features, strict=True):
            if len(features) == 1 and not kind.is_plain:
                mapped = cells.copy() if mapped is cells else mapped
                column = cells[..., features[0]]
                mapped[..., features[0]] = transform(kind, column.reshape(-1)).reshape(column.shape)
        return mapped

    def table(self) -> pd.DataFrame:
        """Kind, levels and missing cells of each column.

        Returns
        -------
        DataFrame
            One row for each column, whose name is the index: ``kind`` (real, categorical, yes or
            no, ordered, count, date, angle, or empty: without a cell), ``levels`` (a list; None for
            numbers) and ``missing``, the number of missing cells in the rows of the fit.
        """
        import pandas as pd

        listed = [list(kind.levels_in_order) if kind.has_levels else None for kind in self.kinds]
        kinds = [kind.word for kind in self.kinds]
        return pd.DataFrame(
            {"kind": kinds, "levels": listed, "missing": self.missing},
            index=pd.Index(self.names, name="name"),
        )

    def __laws__(self) -> Requirements:
        n = len(self.names)
        yield 0 < n == len(self.kinds) <= MAX_PARTS, "a kind for every name"
        learned = (bool(kind.levels) for kind in self.kinds if kind.has_levels)
        yield all(learned), "levels of every column that has some"
        placed = ascending(self.masked) and within(self.masked, 0, n)
        yield placed, "positions of columns, in their order"
        yield len(self.missing) == n and min(self.missing) >= 0, "missing cells of every column"
        positions = [column.position for column in self.constants]
        positions += [column.position for column in self.copies]
        apart = len({*positions, *self.empty}) == len(positions) + len(self.empty)
        yield apart and within(positions, 0, n), "constant and copied columns, each once"
        originals = [column.original for column in self.copies]
        placed = within(originals, 0, n) and not set(originals) & set(self.left_out)
        yield placed, "a column of the model for every copy"
        yield (
            len(self.point_masses) in (0, len(self.real_positions)),
            "point masses for every real feature",
        )
        yield all(map(ascending, self.point_masses)), "point masses in rising order"


def learn_columns(
    X: Any,
    *,
    categorical_features: Any = None,
    column_kinds: Any = None,
    missingness: str = "ignorable",
    whole: bool = True,
) -> Columns:
    """Learn what each column of a table is; NaN, None and pandas' NA are missing cells.

    ``categorical_features`` None and "from_dtype" infer: category, string and boolean columns of a
    frame, and columns of strings or booleans in an object array, are categorical; everything else
    is real. Otherwise exactly the given columns (positions, names or a mask) are categorical.
    A Categorical of pandas that is ordered has the order that it declares. ``column_kinds`` says
    what other columns are, as ``{"hour": "angle:24", "visits": "count"}``.
    Under ``missingness="informative"`` the mask of every column with missing cells becomes a binary
    categorical column. Levels without order are sorted, whatever the order of the rows. A column
    with one cell in all rows, and one that is equal to an earlier one, is left out.
    A level that is written in several ways has one name, unless the table is a block and not
    ``whole``.

    ValueError if X is empty or holds infinity, a cell is not of the kind of its column, or an
    argument is not valid; TypeError if a column mixes types.

    >>> columns = learn_columns([[1.5, "b"], [2.5, "a"], [None, "b"]])
    >>> columns.kinds
    (Real(), Category(levels=('a', 'b')))
    """
    if missingness not in get_args(Missingness):
        raise ValueError(
            f"missingness must be one of {get_args(Missingness)}; received {missingness!r}."
        )
    cells = read_cells(X)
    missing = [missing_cells(column) for column in cells.columns]
    chosen = _chosen(categorical_features, cells)
    requested = _requested_kinds(column_kinds, cells)
    cells = cells.in_numbers(requested)
    columns = Columns(
        names=cells.names,
        kinds=tuple(_kind_of(cells, i, chosen, requested) for i in range(len(missing))),
        has_names=cells.has_names,
        missing=tuple(int(mask.sum()) for mask in missing),
        numbered=cells.numbered,
    )
    columns = _distinguished(cells, in_one_name(columns)) if whole else columns
    return columns.with_masks if missingness == "informative" else columns


def _distinguished(cells: Cells, columns: Columns) -> Columns:
    """Columns of a whole table, with constant columns and copies of others left out."""
    constants, copies = list[Constant](), list[CopiedColumn]()
    originals: dict[object, list[int]] = {}
    for position, kind in enumerate(columns.kinds):
        column = cells.of_levels(position) if kind.has_levels else cells.columns[position]
        if position in columns.empty or len(column) < 2:
            continue
        if not columns.missing[position] and (column == column[0]).all():
            number = numbers_of(cells, position, kind)[0]
            constants.append(Constant(position, float(number)))
            continue
        content = tuple(column.tolist()) if column.dtype == object else (column + 0.0).tobytes()
        alike = originals.setdefault((kind, hash(content)), [])
        for original in alike:
            other = cells.of_levels(original) if kind.has_levels else cells.columns[original]
            if np.array_equal(column, other, equal_nan=column.dtype != object):
                copies.append(CopiedColumn(position, original))
                break
        else:
            alike.append(position)
    if len(constants) == len(columns.names) - len(columns.empty):
        constants = constants[1:]  # a table has a column
    return replace(columns, constants=tuple(constants), copies=tuple(copies))


def _kind_of(
    cells: Cells, position: int, chosen: np.ndarray | None, requested: Mapping[int, Kind]
) -> Kind:
    """Kind of a column: as requested, as its dtype declares, or as its cells suggest."""
    missing = missing_cells(cells.columns[position])
    if missing.all():
        return Empty()
    kind, declared = requested.get(position), cells.kinds[position]
    if (
        kind is None
        and declared is not None
        and (chosen is None or not (declared.has_levels or chosen[position]))
    ):
        kind = declared
    if kind is None and not _is_categorical(cells, position, chosen):
        return recognised(())
    present = cells.of_levels(position)[~missing].tolist()
    if kind is None:
        return recognised(sorted_levels(present))
    kind = kind.learned(present) if kind.has_levels else kind
    numbers = numbers_of(cells, position, kind)  # refuses what is no cell of the kind
    if kind.has_levels and (numbers == UNKNOWN).any():
        raise ValueError(
            f"Column {cells.names[position]!r} holds "
            f"{cells.of_levels(position)[numbers == UNKNOWN][0]!r}, which is not among the levels "
            f"that were given for it: {', '.join(map(repr, kind.levels))}."
        )
    return kind


def _requested_kinds(requested: Any, cells: Cells) -> dict[int, Kind]:
    """Kinds that the user requested, by position of the column."""
    if requested is None:
        return {}
    if not isinstance(requested, Mapping) or not all(
        isinstance(kind, str | Kind) for kind in requested.values()
    ):
        raise ValueError(
            'column_kinds must be None or a dict of columns and their kinds, such as {"hour": '
            f'"angle:24", "visits": "count"}}; received {requested!r}.'
        )
    return {
        column_position("column_kinds", item, cells.names): (
            kind_named(kind) if isinstance(kind, str) else kind
        )
        for item, kind in requested.items()
    }


def _is_categorical(cells: Cells, position: int, chosen: np.ndarray | None) -> bool:
    """Whether a column with observed cells is categorical, by its type or by choice."""
    column = cells.columns[position]
    if chosen is None:
        return cells.declared[position] or column.dtype == object
    present = column[~missing_cells(column)]
    if not chosen[position] and isinstance(present[0], str):
        raise ValueError(
            f"Column {cells.names[position]!r} holds text, such as {present[0]!r}, but is not "
            "among categorical_features; add it there, or convert it to numbers."
        )
    return bool(chosen[position])


def _chosen(requested: Any, cells: Cells) -> np.ndarray | None:
    """Mask of the requested categorical columns; None without a request."""
    if requested is None or (isinstance(requested, str) and requested == "from_dtype"):
        return None
    n_columns = len(cells.columns)
    request = np.asarray(requested)
    if request.ndim != 1 or (request.size and request.dtype.kind not in "biuUO"):
        raise ValueError(
            "categorical_features must be None, 'from_dtype', or a list of positions, names or "
            f"booleans; received {requested!r}."
        )
    if request.dtype.kind == "b":
        if request.size != n_columns:
            raise ValueError(
                "categorical_features as a mask must have one entry per column "
                f"({n_columns}); received {request.size}."
            )
        return request
    chosen = np.zeros(n_columns, dtype=bool)
    for item in request.tolist():
        chosen[column_position("categorical_features", item, cells.names)] = True
    return chosen


def column_position(argument: str, item: object, names: tuple[str, ...]) -> int:
    """Position of a column given by name or number."""
    if isinstance(item, str) and item in names:
        return names.index(item)
    if isinstance(item, int) and -len(names) <= item < len(names):
        return item % len(names)
    raise ValueError(
        f"{argument} names the column {item!r}, which X does not have; "
        f"its columns are {', '.join(map(repr, names[:20]))}."
    )


def in_one_name(columns: Columns) -> Columns:
    """Columns of a whole table, with the spellings of each level merged under one name."""
    kinds = list(columns.kinds)
    for position in columns.code_of:  # an order is that of its levels, as given
        kinds[position] = _in_one_name(kinds[position])
    return replace(columns, kinds=tuple(kinds))


def _in_one_name(kind: Kind) -> Kind:
    texts = [level for level in kind.levels if isinstance(level, str)]
    return kind.learned(in_one_spelling(texts).values()) if texts else kind


# Levels of columns as codes, and codes as levels.


MISSING: Final = -1
UNKNOWN: Final = -2
"""Codes of a missing cell, and of a level that training did not have."""


def level_codes(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Position of each cell among the levels, -1 where missing, -2 where unknown."""
    present = ~missing_cells(column)
    known = KnownLevels(levels)
    cells = column[present].tolist()
    code_of = {cell: known.position(cell) for cell in set(cells)}
    codes = np.full(len(column), MISSING, dtype=np.intp)
    codes[present] = [UNKNOWN if (code := code_of[cell]) is None else code for cell in cells]
    return codes


def decimals_of(numbers: Float[np.ndarray, " row"]) -> Int[np.ndarray, " row"]:
    """Level positions as codes, -1 where missing."""
    return np.nan_to_num(numbers, nan=MISSING).astype(np.intp)


def as_levels(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Cells as the levels that they spell, None where missing; unknown cells unchanged."""
    codes = level_codes(column, levels)
    named = np.array([*levels, None], dtype=object)[np.maximum(codes, MISSING)]
    named[codes == UNKNOWN] = column[codes == UNKNOWN]
    return named


def numbers_of(cells: Cells, position: int, kind: Kind) -> Float[np.ndarray, " obs"]:
    """Cells of a column as numbers, or as level positions; NaN where missing.

    Levels that training did not have are ``UNKNOWN``. ValueError for a cell that is no number, or
    outside this kind.
    """
    name, column = cells.names[position], cells.columns[position]
    present = column[~missing_cells(column)]
    if kind.has_levels:
        codes = level_codes(cells.of_levels(position), kind.levels)
        return np.where(codes == MISSING, np.nan, codes)
    if column.dtype == object and present.size and isinstance(present[0], str):
        raise ValueError(
            f"Column {name!r} held numbers at fit, but now holds text such as {present[0]!r}; "
            "convert it to numbers, or mark the cell as missing."
        )
    numbers: np.ndarray = column.astype(np.float64, copy=False)
    if refusal := kind.refusal(name, numbers):
        raise ValueError(refusal)
    return numbers


CLOSE: Final = 0.75
"""Minimum similarity (difflib's ratio) of a new level to the level that it may misspell."""
LONGEST: Final = 100
"""Characters of levels that are compared: difflib takes quadratic time."""


def report_unknown(
    cells: Cells,
    columns: Columns,
    numbers: Mapping[int, np.ndarray],
    handle_unknown: str,
) -> None:
    """Warn of, or refuse, categories that training did not have."""
    unknown_levels = []
    for position, codes in numbers.items():
        if not columns.kinds[position].has_levels:
            continue
        if unknown := set(cells.of_levels(position)[codes == UNKNOWN].tolist()):
            levels = columns.kinds[position].levels
            unseen = (f"{level!r}{meant(level, levels)}" for level in sorted(unknown, key=repr)[:5])
            values = ", ".join(unseen)
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            unknown_levels.append(f"{columns.names[position]!r}: {values}{more}")
    if not unknown_levels:
        return
    message = f"X has categories that were not seen at fit ({'; '.join(unknown_levels)})"
    if handle_unknown == "error":
        raise ValueError(f"{message}; correct them, or pass handle_unknown='missing'.")
    warnings.warn(f"{message}; they are treated as missing.", UserWarning, stacklevel=3)


def meant(level: object, levels: Iterable[object]) -> str:
    """Clause that suggests the training level most similar to a new level; empty without.

    >>> meant("quik", ["Slow", "Quick"]), meant("new", ["Slow", "Quick"])
    (", did you mean 'Quick'?", '')
    """
    known = {str(known_level).casefold()[:LONGEST]: known_level for known_level in levels}
    near = difflib.get_close_matches(str(level).casefold()[:LONGEST], known, n=1, cutoff=CLOSE)
    return f", did you mean {known[near[0]]!r}?" if near else ""


def level_values(codes: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Levels of codes: float64 where exact for all numbers, otherwise object."""
    long = any(isinstance(level, int) and int(float(level)) != level for level in levels)
    numeric = not (long or isinstance(levels[0], str | bool))
    values = np.empty(len(levels) + 1, dtype=np.float64 if numeric else object)
    values[:-1] = levels
    values[-1] = np.nan if numeric else None
    return values[codes]


# Learns the columns of a table, and sums over its rows, block by block.


def joined_columns(first: Columns, second: Columns) -> Columns:
    """Columns of the rows of two blocks, without missing indicators and point masses.

    A column that is empty in one block is what it is in the other. ValueError if the blocks have
    other columns, TypeError if a column holds another kind of cells.

    >>> from bayesrbf.table import learn_columns
    >>> joined_columns(learn_columns([[1.5, "b"]]), learn_columns([[None, "a"]])).kinds
    (Real(), Category(levels=('a', 'b')))
    """
    if first.names != second.names:
        raise ValueError(
            "All blocks of X must have the same columns in the same order; received "
            f"{', '.join(map(repr, first.names[:20]))} and "
            f"{', '.join(map(repr, second.names[:20]))}."
        )
    return replace(
        first,
        kinds=tuple(map(_joined, first.names, first.kinds, second.kinds)),
        missing=tuple(map(sum, zip(first.missing, second.missing, strict=True))),
    )


def _joined(name: str, first: Kind, second: Kind) -> Kind:
    """Kind of a column over two blocks of rows."""
    if first == Empty() or second == Empty():
        return second if first == Empty() else first
    joined = first.joined(second)
    if joined is None:
        raise TypeError(
            f"Column {name!r} holds other kinds of cells in some blocks of X than in others "
            f"({first.word} and {second.word}); make every cell text to read the column as "
            "categories, or every cell a number (NaN where missing)."
        )
    return joined


@dataclass(frozen=True)
class RowSums:
    """Sums over rows that standardisation, priors and sampling need."""

    by_label: Float[np.ndarray, " label"]
    """Weight of the rows of every class, and last of those without a label."""
    reals: ColumnMoments
    levels: tuple[Float[np.ndarray, " _"], ...]
    """Weight of every level of every categorical column."""

    @classmethod
    def of(cls, rows: Observations, n_levels: tuple[int, ...], n_classes: int) -> Self:
        """Sums over some rows."""
        observed = [codes >= 0 for codes in rows.codes.T]
        return cls(
            _counts(rows.labels % (n_classes + 1), rows.weights, n_classes + 1),
            column_moments(rows.real, rows.weights),
            tuple(
                _counts(codes[present], rows.weights[present], size)
                for codes, present, size in zip(rows.codes.T, observed, n_levels, strict=True)
            ),
        )

    def joined(self, other: Self) -> Self:
        """Sums over the rows of two blocks."""
        return replace(
            self,
            by_label=self.by_label + other.by_label,
            reals=self.reals.joined(other.reals),
            levels=tuple(map(np.add, self.levels, other.levels)),
        )

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns over the whole table."""
        return self.reals.units

    @property
    def marginals(self) -> tuple[Float[np.ndarray, " _"], ...]:
        """Smoothed level frequencies ``(n_l + 1/2) / sum_m (n_m + 1/2)`` over the whole table."""
        # Jeffreys' prior, as in order.marginals: positive for a level without a row.
        return tuple((counts + 0.5) / (counts + 0.5).sum() for counts in self.levels)


def _counts(codes: np.ndarray, weights: np.ndarray, size: int) -> Float[np.ndarray, " _"]:
    """Weight of every code; NumPy gives integers where there is no row."""
    return np.bincount(codes, weights, size).astype(np.float64)

"""Columns of a table: names, kinds, levels as codes, masks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

import numpy as np
from jaxtyping import Float

from bayesrbf.base.records import MOST_PARTS, Requirements, ascending, stored, within
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.reading.noticing import KnownLevels, in_one_spelling
from bayesrbf.table.containers import Cells, missing_cells, read_cells
from bayesrbf.table.order import ColumnMoments, column_moments, unit_of

if TYPE_CHECKING:
    import pandas as pd


# Columns of a table: names, kinds, levels, masks.


Kind = Literal["real", "categorical", "empty"]
Missingness = Literal["ignorable", "informative"]
MASK_LEVELS: tuple[object, ...] = (False, True)
ELSEWHERE: Final = "another value"
"""Level of a cell that is at no atom of its column."""


@stored
class Columns:
    """The columns of the table that an estimator was fitted to."""

    names: tuple[str, ...]  # ``x0, x1, ...`` when the table had none.
    kinds: tuple[Kind, ...]
    # Sorted levels of each categorical column, in the order of the columns.
    levels: tuple[tuple[object, ...], ...]
    # Positions of the columns whose missingness mask joins the model as a binary categorical
    # column, after the categorical ones.
    masked: tuple[int, ...] = ()
    has_names: bool = False  # Whether the table itself named its columns.
    # Atoms of every real column, in the order of the columns; empty if none were looked for. At
    # which of them a cell is joins the model as a categorical column, after the masks; the real
    # cell is missing there.
    atoms: tuple[tuple[float, ...], ...] = ()
    # Missing cells of each column in the rows of the fit.
    missing: tuple[int, ...] = ()
    # Whether the table numbered its columns 0, 1, 2, ... as frames do where they have no names.
    numbered: bool = False

    def positions(self, kind: Kind) -> tuple[int, ...]:
        """Positions of the columns of a kind (without masks)."""
        return tuple(i for i, own in enumerate(self.kinds) if own == kind)

    @cached_property
    def empty(self) -> tuple[int, ...]:
        """Positions of the columns without an observed cell in the rows of the fit.

        No model knows of them; whatever they hold later is treated as missing.
        """
        return self.positions("empty")

    @property
    def with_masks(self) -> Columns:
        """The columns, of which those with missing cells have a mask; empty ones tell nothing."""
        with_holes = (i for i, number in enumerate(self.missing) if number)
        masked = tuple(i for i in with_holes if i not in self.empty)
        return replace(self, masked=masked)

    @cached_property
    def real_positions(self) -> tuple[int, ...]:
        """Positions of the real columns."""
        return self.positions("real")

    @cached_property
    def categorical_positions(self) -> tuple[int, ...]:
        """Positions of the categorical columns (without masks)."""
        return self.positions("categorical")

    @cached_property
    def real_names(self) -> tuple[str, ...]:
        """Names of the real columns."""
        return tuple(self.names[i] for i in self.real_positions)

    @cached_property
    def categorical_names(self) -> tuple[str, ...]:
        """Names of the categorical columns, then of the masks and of the atoms."""
        masks = tuple(f"{self.names[i]} is missing" for i in self.masked)
        atoms = tuple(f"{self.real_names[i]} is" for i in self.atomic)
        return tuple(self.names[i] for i in self.categorical_positions) + masks + atoms

    @cached_property
    def levels_of(self) -> dict[str, tuple[object, ...]]:
        """Levels of the categorical columns by name, without masks and atoms."""
        names = (self.names[i] for i in self.categorical_positions)
        return dict(zip(names, self.levels, strict=True))

    @cached_property
    def all_levels(self) -> tuple[tuple[object, ...], ...]:
        """Levels of the categorical columns, then of the masks and of the atoms."""
        atoms = tuple((ELSEWHERE, *self.atoms[i]) for i in self.atomic)
        return self.levels + (MASK_LEVELS,) * len(self.masked) + atoms

    @cached_property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels of the categorical columns, then of the masks and of the atoms."""
        return tuple(map(len, self.all_levels))

    @cached_property
    def atomic(self) -> dict[int, int]:
        """Real columns with atoms, and where among all the codes the atom of a cell stands."""
        first = len(self.levels) + len(self.masked)
        features = (i for i, values in enumerate(self.atoms) if values)
        return {feature: first + place for place, feature in enumerate(features)}

    def table(self) -> pd.DataFrame:
        """Kind, levels and missing cells of each column.

        Returns
        -------
        DataFrame
            One row for each column, whose name is the index: ``kind`` (real, categorical, or empty:
            without a cell), ``levels`` (a list; None for numbers) and ``missing``, the number of
            missing cells in the rows of the fit.
        """
        import pandas as pd

        levels = dict(zip(self.categorical_positions, self.levels, strict=True))
        listed = [list(levels[i]) if i in levels else None for i in range(len(self.names))]
        return pd.DataFrame(
            {"kind": self.kinds, "levels": listed, "missing": self.missing},
            index=pd.Index(self.names, name="name"),
        )

    def __laws__(self) -> Requirements:
        n, kinds = len(self.names), self.kinds
        yield 0 < n == len(kinds) <= MOST_PARTS, "a kind for every name"
        yield len(self.levels) == kinds.count("categorical"), "levels for every categorical column"
        differ = (len(set(of_column)) == len(of_column) for of_column in self.levels)
        yield all(differ), "levels that differ"
        cells = (cell for of_column in self.levels for cell in of_column)
        plain = (isinstance(cell, str | int | float) for cell in cells)
        yield all(plain), "plain levels"
        placed = ascending(self.masked) and within(self.masked, 0, n)
        yield placed, "positions of columns, in their order"
        yield len(self.missing) == n and min(self.missing) >= 0, "missing cells of every column"
        yield len(self.atoms) in (0, kinds.count("real")), "atoms for every real column"
        yield all(map(ascending, self.atoms)), "atoms in rising order"


def learn_columns(
    X: Any,
    *,
    categorical_features: Any = None,
    missingness: str = "ignorable",
    whole: bool = True,
) -> Columns:
    """Learn what each column of a table is; NaN, None and pandas' NA are missing cells.

    ``categorical_features`` None and "from_dtype" infer: category, string and boolean columns of a
    frame, and columns of strings or booleans in an object array, are categorical; everything else
    is real. Otherwise exactly the given columns (positions, names or a mask) are categorical.
    Under ``missingness="informative"`` the mask of every column with missing cells becomes a binary
    categorical column. Levels are sorted, whatever the order of the rows and that of a Categorical.
    A level that is written in several ways has one name, unless the table is a block and not
    ``whole``.

    ValueError if X is empty or holds infinity or dates, or an argument is not valid; TypeError if a
    column mixes types.

    >>> columns = learn_columns([[1.5, "b"], [2.5, "a"], [None, "b"]])
    >>> columns.kinds, columns.levels
    (('real', 'categorical'), (('a', 'b'),))
    """
    if missingness not in get_args(Missingness):
        raise ValueError(
            f"missingness must be one of {get_args(Missingness)}; received {missingness!r}."
        )
    cells = read_cells(X)
    missing = [missing_cells(column) for column in cells.columns]
    chosen = _chosen(categorical_features, cells)
    kinds: list[Kind] = []
    levels: list[tuple[object, ...]] = []
    for position, mask in enumerate(missing):
        if mask.all():
            kinds.append("empty")
        elif _is_categorical(cells, position, chosen):
            kinds.append("categorical")
            levels.append(sorted_levels(cells.of_levels(position)[~mask].tolist()))
        else:
            kinds.append("real")
    columns = Columns(
        names=cells.names,
        kinds=tuple(kinds),
        levels=tuple(levels),
        has_names=cells.has_names,
        missing=tuple(int(mask.sum()) for mask in missing),
        numbered=cells.numbered,
    )
    columns = in_one_name(columns) if whole else columns
    return columns.with_masks if missingness == "informative" else columns


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
    """The requested categorical columns as a mask; None when none are named."""
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
    """The columns of a whole table, each level under one name, however its cells are written."""
    return replace(columns, levels=tuple(map(_in_one_name, columns.levels)))


def _in_one_name(levels: tuple[object, ...]) -> tuple[object, ...]:
    texts = [level for level in levels if isinstance(level, str)]
    return sorted_levels(in_one_spelling(texts).values()) if texts else levels


def sorted_levels(present: Iterable[Any]) -> tuple[object, ...]:
    """Distinct cells in the order of their type; numbers as int where all are whole."""
    distinct = sorted(set(present))
    if isinstance(distinct[0], str | bool):
        return tuple(distinct)
    whole = all(value == int(value) for value in distinct)
    return tuple(int(value) if whole else value + 0.0 for value in distinct)


# Levels of columns as codes, and codes as levels.


MISSING: Final = -1
UNKNOWN: Final = -2


def level_codes(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Position of each cell among the levels, -1 where missing, -2 where unknown."""
    present, own = ~missing_cells(column), KnownLevels(levels)
    cells = column[present].tolist()
    places = {cell: own.place(cell) for cell in set(cells)}
    codes = np.full(len(column), MISSING, dtype=np.intp)
    codes[present] = [UNKNOWN if (place := places[cell]) is None else place for cell in cells]
    return codes


def as_levels(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Cells as the levels that they are, None where missing; the others stay as they are."""
    codes = level_codes(column, levels)
    named = np.array([*levels, None], dtype=object)[np.maximum(codes, MISSING)]
    named[codes == UNKNOWN] = column[codes == UNKNOWN]
    return named


def report_unknown(
    cells: Cells,
    columns: Columns,
    codes: list[np.ndarray],
    handle_unknown: str,
) -> None:
    """One warning, or an error, that names columns and unseen categories."""
    unknown_levels = []
    for position, code in zip(columns.categorical_positions, codes, strict=True):
        unknown = set(cells.of_levels(position)[code == UNKNOWN].tolist())
        if unknown:
            values = ", ".join(sorted(map(repr, unknown))[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            unknown_levels.append(f"{columns.names[position]!r}: {values}{more}")
    message = f"X has categories that were not seen at fit ({'; '.join(unknown_levels)})"
    if handle_unknown == "error":
        raise ValueError(f"{message}; correct them, or pass handle_unknown='missing'.")
    warnings.warn(f"{message}; they are treated as missing.", UserWarning, stacklevel=3)


def level_values(codes: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Levels of codes: float64 for numbers that it holds, object otherwise."""
    long = any(isinstance(level, int) and int(float(level)) != level for level in levels)
    numeric = not (long or isinstance(levels[0], str | bool))
    values = np.empty(len(levels) + 1, dtype=np.float64 if numeric else object)
    values[:-1] = levels
    values[-1] = np.nan if numeric else None
    return values[codes]


# Learns the columns of a table, and sums over its rows, block by block.


Content = tuple[Kind | None, tuple[object, ...]]
"""Kind of a column, None where it has no cell, and its levels."""


def joined_columns(one: Columns, other: Columns) -> Columns:
    """The columns of the rows of two blocks, without masks and atoms.

    A column that is empty in one block is what it is in the other. ValueError if the blocks have
    other columns, TypeError if a column holds another kind of cells.

    >>> from bayesrbf.table import learn_columns
    >>> joined_columns(learn_columns([[1.5, "b"]]), learn_columns([[None, "a"]])).levels
    (('a', 'b'),)
    """
    if one.names != other.names:
        raise ValueError(
            "All blocks of X must have the same columns in the same order; received "
            f"{', '.join(map(repr, one.names[:20]))} and {', '.join(map(repr, other.names[:20]))}."
        )
    contents = list(map(_joined, one.names, _contents(one), _contents(other)))
    return replace(
        one,
        kinds=tuple(kind or "empty" for kind, _ in contents),
        levels=tuple(levels for kind, levels in contents if kind == "categorical"),
        missing=tuple(map(sum, zip(one.missing, other.missing, strict=True))),
    )


def _contents(columns: Columns) -> list[Content]:
    """Kind and levels of every column."""
    levels = dict(zip(columns.categorical_positions, columns.levels, strict=True))
    kinds = enumerate(columns.kinds)
    return [(None if at in columns.empty else kind, levels.get(at, ())) for at, kind in kinds]


def _joined(name: str, one: Content, other: Content) -> Content:
    """Kind and levels of a column in both blocks."""
    if one[0] is None or other[0] is None or one == other:
        return other if one[0] is None else one
    together = one[1] + other[1]
    types = {type(level) if isinstance(level, str | bool) else float for level in together}
    if one[0] != other[0] or len(types) > 1:
        raise TypeError(
            f"Column {name!r} holds other kinds of cells in some blocks of X than in others "
            f"({one[0]} and {other[0]}); make every cell text to read the column as categories, or "
            "every cell a number (NaN where missing)."
        )
    return one[0], sorted_levels(together)


@dataclass(frozen=True)
class RowSums:
    """Sums over rows that units, priors and sampling ask for."""

    by_label: Float[np.ndarray, " label"]
    """Weight of the rows of every class, and last of those without a label."""
    reals: tuple[ColumnMoments, ...]
    levels: tuple[Float[np.ndarray, " _"], ...]
    """Weight of every level of every categorical column."""

    @classmethod
    def of(cls, rows: Observations, n_levels: tuple[int, ...], n_classes: int) -> Self:
        """Sums over some rows."""
        observed = [codes >= 0 for codes in rows.codes.T]
        return cls(
            _counts(rows.labels % (n_classes + 1), rows.weights, n_classes + 1),
            tuple(column_moments(column, rows.weights) for column in rows.real.T),
            tuple(
                _counts(codes[present], rows.weights[present], size)
                for codes, present, size in zip(rows.codes.T, observed, n_levels, strict=True)
            ),
        )

    def joined(self, other: Self) -> Self:
        """Sums over the rows of both."""
        return replace(
            self,
            by_label=self.by_label + other.by_label,
            reals=tuple(map(ColumnMoments.joined, self.reals, other.reals)),
            levels=tuple(map(np.add, self.levels, other.levels)),
        )

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns, as of the whole table."""
        pairs = [unit_of(moments, place) for place, moments in enumerate(self.reals)]
        location, scale = np.array(pairs, dtype=np.float64).reshape(-1, 2).T.copy()
        return Standardisation(location, scale)

    @property
    def marginals(self) -> tuple[Float[np.ndarray, " _"], ...]:
        """Smoothed level frequencies, as of the whole table."""
        return tuple((counts + 0.5) / (counts + 0.5).sum() for counts in self.levels)


def _counts(codes: np.ndarray, weights: np.ndarray, size: int) -> Float[np.ndarray, " _"]:
    """Weight of every code; NumPy gives integers where there is no row."""
    return np.bincount(codes, weights, size).astype(np.float64)

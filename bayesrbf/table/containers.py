"""Reading a container into one clean array per column, before the columns are interpreted."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from os import PathLike
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Int

from bayesrbf.base.blocks import is_collection
from bayesrbf.reading.formats import cell_text, is_ordered
from bayesrbf.table.kinds import Kind, in_order, of_dtype

LONG: Final = 2.0**53
"""Magnitude beyond which float64 does not represent every integer."""
_PANDAS_MISSING: Final = {"NAType", "NaTType"}


@dataclass(frozen=True)
class Cells:
    """The columns of a container, cleaned but not yet interpreted."""

    names: tuple[str, ...]  # ``x0, x1, ...`` when the container has none.
    has_names: bool  # Whether the container itself names its columns.
    # float64 with NaN for missing cells, or object holding only ``str`` or only ``bool`` with None
    # for missing cells.
    columns: tuple[np.ndarray, ...]
    # Whether the container's own dtype says that a column is categorical.
    declared: tuple[bool, ...]
    # Kinds of the columns whose dtype says one, such as dates and ordered levels.
    kinds: tuple[Kind | None, ...]
    # Numbers of a column some of which float64 does not tell apart, as object with None for
    # missing cells; else None.
    long: tuple[np.ndarray | None, ...]
    numbered: bool = False  # Whether they are numbered, as frames do that have no names.

    def of_levels(self, position: int) -> np.ndarray:
        """Cells of a column as levels, with integers exact beyond the precision of float64."""
        long = self.long[position]
        return self.columns[position] if long is None else long

    def in_numbers(self, kinds: Mapping[int, Kind]) -> Cells:
        """The cells with texts of such kinds converted to numbers; ValueError for other texts."""
        columns = list(self.columns)
        for position, kind in kinds.items():
            if not kind.of_texts or columns[position].dtype != object:
                continue
            cells = columns[position].tolist()
            texts = kind.read(sorted({str(cell) for cell in cells if cell is not None}))
            if texts.problem:
                raise ValueError(
                    f"Column {self.names[position]!r} is {kind.word!r} and holds "
                    f"{texts.culprit!r}, which {texts.problem}; write it as {kind.example}, or "
                    "mark it as missing."
                )
            numbers = [texts.numbers.get(str(cell), np.nan) for cell in cells]
            columns[position] = np.array(numbers, dtype=np.float64)
        return replace(self, columns=tuple(columns))


def read_cells(X: Any) -> Cells:
    """Read a container with rows and columns into a clean array for each column.

    A container is a NumPy array, a pandas or polars frame, or whatever ``np.asarray`` takes.
    ValueError if it is empty, not two-dimensional, complex, holds times or infinity; TypeError if
    it is sparse or a column mixes types.
    """
    frame = as_frame(X)
    cells = _read_array(X) if frame is None else _read_frame(frame)
    for name, column in zip(cells.names, cells.columns, strict=True):
        if column.dtype.kind == "f" and np.isinf(column).any():
            row = int(np.flatnonzero(np.isinf(column))[0])
            raise ValueError(
                f"Input X contains infinity: column {name!r} holds {column[row]} at row {row}; "
                "mark the cell as missing (NaN) or correct it."
            )
    return cells


def missing_cells(column: np.ndarray) -> np.ndarray:
    """Mask of the missing cells, NaN or None, of a clean column."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    return np.array([value is None for value in column.tolist()], dtype=bool)


def missing_per_row(X: Any) -> Int[np.ndarray, " obs"]:
    """Number of missing cells of every row of a container.

    >>> missing_per_row([["a", 1.0], [None, float("nan")]])
    array([0, 2])
    """
    return np.sum([missing_cells(column) for column in read_cells(X).columns], axis=0)


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """View a pandas or polars frame through narwhals; None when X is no frame.

    ValueError if two columns have the same name. TypeError if the table is not in memory.
    """
    if isinstance(X, np.ndarray):
        return None
    if isinstance(X, Mapping) and not _is_sparse(X):  # one kind of sparse matrix is a dict
        raise TypeError(
            f"X must be a table, such as an array or a frame; received a {type(X).__name__}. Make "
            "a frame of its columns first, as by pandas.DataFrame(X)."
        )
    if is_collection(X):
        raise TypeError(
            f"X must be a table in memory here; received {_description(X)}, which is out of "
            "memory. Read it block by block, or take a random sample of its rows."
        )
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"The columns of X must have distinct names; {error} Rename the repeated columns."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"X must be a table in memory; received a lazy frame, {type(X).__name__}. Call "
            ".collect() on it first."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _description(X: Any) -> str:
    """Description of a table out of memory, for messages."""
    return f"the path {str(X)!r}" if isinstance(X, str | PathLike) else f"a {type(X).__name__}"


def row_names(X: Any, n_obs: int) -> np.ndarray:
    """The index of a pandas frame as an array; of all else the numbers of the rows."""
    frame = as_frame(X)
    if frame is None or not frame.implementation.is_pandas():
        return np.arange(n_obs)
    names: np.ndarray = frame.to_native().index.to_numpy()
    return names


def _names_of(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Default names ``x0, x1, ...``, as scikit-learn's; ValueError without rows or columns."""
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: one row "
            "per observation and one column per feature, X.reshape(-1, 1) for a single feature."
        )
    for count, thing in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {thing} (shape={shape}) while a minimum of 1 is required."
            )
    return tuple(f"x{position}" for position in range(shape[1]))


def _read_array(X: Any) -> Cells:
    """Columns of an array or list: object columns are inferred, all others are real."""
    array = _as_array(X)
    names = _names_of(array.shape)
    if array.dtype.kind in "biuf":
        columns = tuple(array.astype(np.float64, copy=False).T)
    else:
        columns = tuple(
            clean(column.tolist(), name) for column, name in zip(array.T, names, strict=True)
        )
    whole = array.dtype.kind not in "bf"
    long = tuple(map(_long, array.T, columns)) if whole else (None,) * len(names)
    return Cells(names, False, columns, (False,) * len(names), (None,) * len(names), long)


def _is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix of SciPy, which readers of files need not load."""
    from scipy.sparse import issparse

    return bool(issparse(X))


def _as_array(X: Any) -> np.ndarray:
    """X as an array whose dtype still separates numbers from strings."""
    if _is_sparse(X):
        raise TypeError(
            "Sparse data was passed, but a table with missing cells must be dense; "
            "use X.toarray() to convert it."
        )
    if np.ma.isMaskedArray(X):
        values = np.array(np.ma.getdata(X), dtype=object)
        values[np.ma.getmaskarray(X)] = None
        return values
    array = np.asarray(X)
    if array.dtype.kind == "U":
        # NumPy turns [["a", 1.5, None]] into text; the cells of a list keep their types.
        array = np.asarray(X, dtype=object)
        if hasattr(X, "dtype"):
            _check_text_array(array)
    elif array.dtype.kind == "c":
        raise ValueError("Complex data not supported: split X into real and imaginary columns.")
    elif array.dtype.kind not in "biufO":
        raise TypeError(
            f"X must hold numbers or strings; received an array of dtype {array.dtype}. "
            "Convert it to numbers (for dates: days since a fixed date)."
        )
    return array


def _check_text_array(array: np.ndarray) -> None:
    """Refuse numbers that NumPy turned into text, which would become categories."""
    for position, column in enumerate(array.reshape(len(array), -1).T):
        if all(_reads_as_number(value) for value in column):
            raise ValueError(
                f"Column 'x{position}' of a string array holds numbers written as text, such as "
                f"{column[0]!r}; pass a frame or an array of dtype object to keep the types apart."
            )


def _reads_as_number(text: str) -> bool:
    """Whether float() accepts the text (including 'nan'), or the text is 'None'."""
    try:
        float(text)
    except ValueError:
        return text == "None"
    return True


def _read_frame(frame: nw.DataFrame[Any]) -> Cells:
    """Columns of a pandas or polars frame; the dtype declares what is categorical."""
    unnamed = _names_of(frame.shape)
    titles: list[object] = list(frame.columns)
    numbered = titles == list(range(len(titles)))
    names = unnamed if numbered else tuple(map(str, titles))
    series: list[Any] = list(frame.iter_columns())
    dtypes = [s.dtype for s in series]  # asked once: each takes as long as a column to read
    read = list(map(_read_series, series, dtypes, names))
    declared = tuple(isinstance(dtype, nw.Categorical | nw.Enum) for dtype in dtypes)
    columns, long = zip(*read, strict=True)
    kinds = tuple(
        in_order(categories_of(s)) if is_declared and is_ordered(s) else of_dtype(dtype)
        for s, dtype, is_declared in zip(series, dtypes, declared, strict=True)
    )
    return Cells(names, not numbered, columns, declared, kinds, long, numbered)


def categories_of(series: nw.Series[Any]) -> list[object]:
    """The categories of a Categorical, as cells have them."""
    values = _without_dates(series.cat.get_categories().to_list())
    column = clean(values, series.name)
    long = _long(values, column)
    levels: list[object] = (column if long is None else long).tolist()
    return levels


def _without_dates(values: Sequence[object]) -> list[object]:
    """Cells of a Categorical, whose dates are levels like texts."""
    return [
        cell_text(value) if isinstance(value, date) and not _is_missing(value) else value
        for value in values
    ]


def _long(values: Iterable[Any], column: np.ndarray) -> np.ndarray | None:
    """Exact numbers of a column with integers beyond the precision of float64; else None."""
    if column.dtype == object or not (np.abs(column) >= LONG).any():
        return None
    exact = np.empty(len(column), dtype=object)
    exact[:] = [
        None if np.isnan(number) else int(value) if number.is_integer() else number
        for value, number in zip(values, column.tolist(), strict=True)
    ]
    return exact


def _read_series(
    series: nw.Series[Any], dtype: Any, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Clean column of a frame, and its exact numbers where float64 is too short."""
    if isinstance(dtype, nw.Categorical | nw.Enum):
        values = _without_dates(series.to_list())
        column = clean(values, name)
        return column, _long(values, column)
    if kind := of_dtype(dtype):
        return kind.of_series(series), None
    if dtype.is_temporal():
        raise ValueError(
            f"Column {name!r} holds times ({dtype}); convert it to a number, such as hours."
        )
    if dtype.is_nested() or isinstance(dtype, nw.Binary):
        raise TypeError(f"Column {name!r} must hold numbers or strings; received {dtype}.")
    if dtype.is_numeric():
        column = _read_numbers(series, dtype)
        return column, None if dtype.is_float() else _long(series.to_list(), column)
    if isinstance(dtype, nw.Object | nw.Unknown) and series.to_numpy().dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} is complex.")
    values = series.to_list()
    column = clean(values, name)
    return column, _long(values, column)


def _read_numbers(series: nw.Series[Any], dtype: Any) -> np.ndarray:
    """A numeric series as float64, nulls as NaN."""
    if isinstance(dtype, nw.Int128 | nw.UInt128):  # NumPy has no such numbers
        series = series.cast(nw.Float64)
    values = series.to_numpy()
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    nulls = series.is_null().to_numpy()
    cells = zip(series.to_list(), nulls, strict=True)
    return np.array([np.nan if null else float(value) for value, null in cells])


def clean(values: Sequence[object], name: str) -> np.ndarray:
    """One column of Python objects as float64, or as object of one type, str or bool.

    None, NaN, and pandas' NA and NaT are missing; ``name`` is the column's, for messages. TypeError
    if a cell is neither text, boolean nor number, or the column mixes them.
    """
    if not set(map(type, values)) <= {str, bool, type(None)}:
        values = [None if _is_missing(value) else value for value in values]
    kinds = {kind: _kind_of(kind, name) for kind in set(map(type, values)) - {type(None)}}
    if len(set(kinds.values())) > 1:
        _refuse_mixture(values, kinds, name)
    if not kinds or "number" in kinds.values():
        return _to_float(values, name)
    plain: type = str if "string" in kinds.values() else bool
    column = np.empty(len(values), dtype=object)
    column[:] = [None if value is None else plain(value) for value in values]
    return column


def _is_missing(value: object) -> bool:
    """Whether a cell is None, NaN, or pandas' NA or NaT, by the type's name: pandas is optional."""
    if value is None or type(value).__name__ in _PANDAS_MISSING:
        return True
    return isinstance(value, float | np.floating | Decimal) and bool(value != value)


def _kind_of(kind: type, name: str) -> str:
    """Name of a Python type's kind: boolean, string or number; an error for other types."""
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, str):
        return "string"
    if issubclass(kind, numbers.Real | Decimal):
        return "number"
    if issubclass(kind, numbers.Complex):
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    raise TypeError(
        f"A cell of column {name!r} is a {kind.__name__}, but the argument must be a string "
        "or a number; convert the column, or leave it out."
    )


def _refuse_mixture(values: Iterable[object], kinds: dict[type, str], name: str) -> None:
    """TypeError that names two cells of different types."""
    first: dict[str, tuple[int, object]] = {}
    for row, value in enumerate(values):
        if value is not None:
            first.setdefault(kinds[type(value)], (row, value))
    examples = " and ".join(f"the {k} {v!r} at row {row}" for k, (row, v) in first.items())
    raise TypeError(
        f"Column {name!r} has mixed types: {examples}; make every cell text to read the column as "
        "categories, or every cell a number (NaN where missing)."
    )


def _to_float(values: Sequence[object], name: str) -> np.ndarray:
    """Numbers as float64, None as NaN."""
    try:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    except OverflowError as error:
        raise ValueError(
            f"Column {name!r} holds a number too large for float64; rescale the column, or pass "
            "it as text if it is an identifier."
        ) from error

"""From tables to arrays of numbers and codes, and from two arrays to a table."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.mixture import Observations
from bayesrbf.table.atoms import at_their_atoms, real_cells
from bayesrbf.table.column_kinds import Columns
from bayesrbf.table.containers import Cells, as_frame, categories_of, missing_cells, read_cells
from bayesrbf.table.levels import MISSING, UNKNOWN, level_codes, level_values, report_unknown

HandleUnknown = Literal["missing", "error"]


def encode(X: Any, columns: Columns, *, handle_unknown: str = "missing") -> Observations:
    """Read rows, labels hidden, under the columns learnt from another table.

    NaN, None and pandas' NA are missing. A category that training did not have is treated as
    missing with a warning, or is an error under ``handle_unknown="error"``. ValueError, too, if X
    has the wrong width, names, or kind of column, or holds infinity; TypeError if a column mixes
    types.

    >>> from bayesrbf.table import learn_columns
    >>> columns = learn_columns([[1.5, "b"], [2.5, "a"]])
    >>> rows = encode([[None, "a"]], columns)
    >>> rows.real, rows.codes
    (array([[nan]]), array([[0]]))
    """
    if handle_unknown not in get_args(HandleUnknown):
        raise ValueError(
            f"handle_unknown must be one of {get_args(HandleUnknown)}; received {handle_unknown!r}."
        )
    cells = read_cells(X)
    _check_columns(cells, columns)
    n_rows = len(cells.columns[0])
    for position in columns.empty:
        _note_cells(cells, columns.names[position], position)
    reals = [_real_column(cells, columns, position) for position in columns.real_positions]
    codes = [
        level_codes(cells.of_levels(position), levels)
        for position, levels in zip(columns.categorical_positions, columns.levels, strict=True)
    ]
    if any((code == UNKNOWN).any() for code in codes):
        report_unknown(cells, columns, codes, handle_unknown)
    codes = [np.where(code == UNKNOWN, MISSING, code) for code in codes]
    codes += [missing_cells(cells.columns[position]).astype(np.intp) for position in columns.masked]
    real = np.empty((n_rows, len(reals)))
    for feature, column in enumerate(reals):
        real[:, feature] = column
    rows = Observations(
        real,
        np.array(codes, dtype=np.intp).reshape(len(codes), n_rows).T.copy(),
        np.full(n_rows, -1),
        np.ones(n_rows),
    )
    return at_their_atoms(rows, columns)


def _check_columns(cells: Cells, columns: Columns) -> None:
    """Refuse another width or other names, in scikit-learn's words."""
    if len(cells.columns) != len(columns.names):
        raise ValueError(
            f"X has {len(cells.columns)} features, but Columns is expecting "
            f"{len(columns.names)} features as input."
        )
    given, expected = _titles(cells), _titles(columns)
    if not given or not expected or given == expected:
        return
    numbers = all(map(str.isdigit, given + expected))
    if (cells.numbered or columns.numbered) and not numbers:
        return  # one of them has no names
    unseen = sorted(set(given) - set(expected))
    absent = sorted(set(expected) - set(given))
    detail = (
        "" if not unseen else f"Feature names unseen at fit time: {', '.join(unseen[:5])}.\n"
    ) + (
        ""
        if not absent
        else f"Feature names seen at fit time, yet now missing: {', '.join(absent[:5])}.\n"
    )
    raise ValueError(
        "The feature names should match those that were passed during fit.\n"
        + (detail or "Feature names must be in the same order as they were in fit.\n")
    )


def _note_cells(cells: Cells, name: str, position: int) -> None:
    """Warn where a column that had no cell at fit has some."""
    observed = ~missing_cells(cells.columns[position])
    if observed.any():
        warnings.warn(
            f"Column {name!r} had no observed cell at fit; its {int(observed.sum())} "
            "observed cells are treated as missing.",
            UserWarning,
            stacklevel=4,
        )


def _titles(table: Cells | Columns) -> tuple[str, ...]:
    """What a table calls its columns; nothing where it is an array."""
    numbers = tuple(map(str, range(len(table.names)))) if table.numbered else ()
    return table.names if table.has_names else numbers


def _real_column(cells: Cells, columns: Columns, position: int) -> np.ndarray:
    """Cells of a column that was real at fit."""
    column, name = cells.columns[position], columns.names[position]
    missing = missing_cells(column)
    present = column[~missing]
    if column.dtype == object and isinstance(present[0], str):
        raise ValueError(
            f"Column {name!r} held numbers at fit, but now holds text such as {present[0]!r}; "
            "convert it to numbers, or mark the cell as missing."
        )
    return column.astype(np.float64, copy=False)


def decode(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    columns: Columns,
    like: Any,
) -> Any:
    """Write arrays back as a table of the same type as ``like``.

    Codes of masks are left out; a real cell whose code names an atom is that atom. The index and
    the dtypes of columns are those of ``like`` where they still fit. An array is float64 when every
    column is a number, else object.

    >>> import numpy as np
    >>> from bayesrbf.table import learn_columns
    >>> columns = learn_columns([[1.5, "b"], [2.5, "a"]])
    >>> decode(np.array([[3.0]]), np.array([[1]]), columns, like=[[1.5, "b"]])
    array([[3.0, 'b']], dtype=object)
    """
    real = real_cells(real, codes, columns)
    cells: dict[int, np.ndarray] = dict(zip(columns.real_positions, real.T, strict=True))
    categorical = zip(columns.categorical_positions, columns.levels, strict=True)
    for j, (position, levels) in enumerate(categorical):
        cells[position] = level_values(codes[:, j], levels)
    unknown = np.full(len(real), np.nan)  # of a column without a cell at fit
    ordered = [cells.get(position, unknown) for position in range(len(columns.names))]
    frame = as_frame(like)
    if frame is None:
        return _to_array(ordered)
    return _to_frame(ordered, frame, columns.empty)


def _to_array(cells: list[np.ndarray]) -> np.ndarray:
    """Columns side by side, as float64 if all of them are."""
    dtype = np.float64 if all(column.dtype == np.float64 for column in cells) else object
    table = np.empty((len(cells[0]), len(cells)), dtype)
    for position, column in enumerate(cells):
        table[:, position] = column
    return table


def _to_frame(cells: list[np.ndarray], like: nw.DataFrame[Any], empty: tuple[int, ...]) -> Any:
    """Columns as a frame of the type of ``like``, with its index where the rows are the same."""
    backend = like.implementation
    series = {}
    for position, (name, column) in enumerate(zip(like.columns, cells, strict=True)):
        own = like[:, position]
        # A column without a cell stays as it came: levels that are declared are kept.
        kept = position in empty and len(column) == len(like)
        series[str(name)] = own if kept else _in_dtype(column, own)
    # No backend=: with one, from_dict drops the dtypes of the series.
    native = nw.from_dict(series).to_native()
    if backend.is_pandas():
        native.columns = like.columns
        if len(native) == len(like):
            native.index = like.to_native().index
    return native


def _in_dtype(column: np.ndarray, like: nw.Series[Any]) -> nw.Series[Any]:
    """Cells as a column in the dtype of another, where they fit: text, booleans, categories."""
    name, dtype, backend, cells = str(like.name), like.dtype, like.implementation, column.tolist()
    native: Any = like.to_native()
    pandas, holes = backend.is_pandas(), bool(missing_cells(column).any())
    if pandas and native.dtype.name == "category":
        codes = level_codes(column, tuple(categories_of(like)))
        if UNKNOWN not in codes:
            same = type(native.array).from_codes(codes, dtype=native.dtype)
            return nw.new_series(name, same, backend=backend)
    kind: Any = nw.Float64() if column.dtype == np.float64 else None
    if pandas and holes and any(type(cell) is int for cell in cells):
        kind = nw.Object()  # pandas would make floats of them
    values = nw.new_series(name, cells, kind, backend=backend)
    text = isinstance(dtype, nw.String) and not cells
    if text or isinstance(dtype, nw.Categorical | nw.Enum):
        return values.cast(dtype)
    if pandas and isinstance(dtype, nw.Boolean) and kind is None:
        fits = native.dtype != bool or not holes
        same = values.to_native().astype(native.dtype if fits else object)
        return nw.from_native(same, series_only=True)
    return values

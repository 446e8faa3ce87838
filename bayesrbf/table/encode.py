"""From tables and labels to arrays of numbers and codes, and from two arrays to a table."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesrbf.records.mixture import Observations
from bayesrbf.table.atoms import at_their_atoms, real_cells
from bayesrbf.table.column_kinds import Columns
from bayesrbf.table.containers import Cells, as_frame, clean, missing_cells, read_cells
from bayesrbf.table.further_columns import Further, read_counts, split_further
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
    reals = [_real_column(cells, columns, position) for position in columns.real_positions]
    counts = [
        read_counts(cells.columns[position], columns.names[position])
        for position in columns.positions("count")
    ]
    with_levels = [*columns.categorical_positions, *columns.positions("ordinal")]
    codes = [
        level_codes(cells.columns[position], levels)
        for position, levels in zip(
            with_levels, columns.levels + columns.ordinal_levels, strict=True
        )
    ]
    if any((code == UNKNOWN).any() for code in codes):
        report_unknown(cells, columns, with_levels, codes, handle_unknown)
    codes = [np.where(code == UNKNOWN, MISSING, code) for code in codes]
    known, ordered = codes[: len(columns.levels)], codes[len(columns.levels) :]
    ordered = [np.where(code < 0, np.nan, code) for code in ordered]
    masks = [missing_cells(cells.columns[position]).astype(np.intp) for position in columns.masked]
    codes = known + masks
    real = np.empty((n_rows, len(reals)))
    for feature, column in enumerate(reals):
        real[:, feature] = column
    rows = Observations(
        real,
        np.array(codes, dtype=np.intp).reshape(len(codes), n_rows).T.copy(),
        np.full(n_rows, -1),
        np.ones(n_rows),
        tuple(np.column_stack(kind).astype(float) for kind in (counts, ordered) if kind),
    )
    return at_their_atoms(rows, columns)


def _check_columns(cells: Cells, columns: Columns) -> None:
    """Refuse another width or other names, in scikit-learn's words."""
    if len(cells.columns) != len(columns.names):
        raise ValueError(
            f"X has {len(cells.columns)} features, but Columns is expecting "
            f"{len(columns.names)} features as input."
        )
    if not (cells.has_names and columns.has_names) or cells.names == columns.names:
        return
    unseen = sorted(set(cells.names) - set(columns.names))
    absent = sorted(set(columns.names) - set(cells.names))
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


def _real_column(cells: Cells, columns: Columns, position: int) -> np.ndarray:
    """Cells of a column that was real at fit."""
    column, name = cells.columns[position], columns.names[position]
    missing = missing_cells(column)
    if position in columns.empty:
        if not missing.all():
            warnings.warn(
                f"Column {name!r} had no observed cell at fit; its {int((~missing).sum())} "
                "observed cells are treated as missing.",
                UserWarning,
                stacklevel=4,
            )
        return np.full(len(column), np.nan)
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
    further: Further = (),
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
    counts, ordered_codes = split_further(further, columns)
    cells |= dict(zip(columns.positions("count"), counts.T, strict=True))
    ordinal = zip(
        columns.positions("ordinal"), columns.ordinal_levels, ordered_codes.T, strict=True
    )
    for position, levels, column in ordinal:
        cells[position] = level_values(np.nan_to_num(column, nan=-1).astype(np.intp), levels)
    ordered = [cells[position] for position in range(len(columns.names))]
    frame = as_frame(like)
    return _to_array(ordered) if frame is None else _to_frame(ordered, frame)


def _to_array(cells: list[np.ndarray]) -> np.ndarray:
    """Columns side by side, as float64 if all of them are."""
    dtype = np.float64 if all(column.dtype == np.float64 for column in cells) else object
    table = np.empty((len(cells[0]), len(cells)), dtype)
    for position, column in enumerate(cells):
        table[:, position] = column
    return table


def _to_frame(cells: list[np.ndarray], like: nw.DataFrame[Any]) -> Any:
    """Columns as a frame of the type of ``like``, with its index where the rows are the same."""
    backend = like.implementation
    names = [str(name) for name in like.columns]
    series = {}
    for position, (name, column) in enumerate(zip(names, cells, strict=True)):
        dtype = like[:, position].dtype
        known = nw.Float64() if column.dtype == np.float64 else None
        values = nw.new_series(name, column.tolist(), known, backend=backend)
        text = isinstance(dtype, nw.String) and not len(column)
        if text or isinstance(dtype, nw.Categorical | nw.Enum):
            values = values.cast(dtype)
        series[name] = values
    # No backend=: with one, from_dict drops the dtypes of the series.
    native = nw.from_dict(series).to_native()
    if backend.is_pandas():
        native.columns = like.columns
        if len(native) == len(like):
            native.index = like.to_native().index
    return native


def encode_labels(
    y: Any, *, unlabelled: object = None
) -> tuple[Shaped[np.ndarray, " label"], Int[np.ndarray, " obs"]]:
    """Sorted classes of y, and the code of every row's class, -1 where the label is hidden.

    NaN, None and pandas' NA are hidden, and so is the value ``unlabelled``, such as -1. The dtype
    of the classes is that of y where y has one. ValueError if every label is hidden, or labels are
    infinite or not discrete; TypeError if they mix types.

    >>> encode_labels(["b", None, "a", "b"])
    (array(['a', 'b'], dtype=object), array([ 1, -1,  0,  1]))
    """
    present, hidden = read_labels(y, unlabelled)
    if hidden.all():
        raise ValueError(
            "y needs at least one labelled row, but every label is hidden; "
            "use MixtureDensity to model X alone."
        )
    classes, positions = np.unique(present, return_inverse=True)
    codes = np.full(len(hidden), -1, dtype=np.intp)
    codes[~hidden] = positions
    return classes, codes


def read_labels(
    y: Any, unlabelled: object = None
) -> tuple[Shaped[np.ndarray, " labelled"], Bool[np.ndarray, " obs"]]:
    """Labels of the rows that have one, and which rows hide theirs."""
    raw = column_or_1d(_as_array(y), warn=True)
    labels = raw if raw.dtype.kind in "biufU" else clean(raw.tolist(), "y")
    hidden = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind in "fO":
        hidden |= missing_cells(labels)
    if unlabelled is not None:
        hidden |= np.asarray(labels == unlabelled)
    present = labels[~hidden]
    if present.dtype.kind == "f" and np.isinf(present).any():
        raise ValueError("Input y contains infinity; labels must be finite, NaN where hidden.")
    if present.size:
        present = _plain(present, raw[~hidden])
        check_classification_targets(present)
    return present, hidden


def _as_array(y: Any) -> Any:
    """Labels as an array; whole numbers with nulls stay whole, where NumPy would make floats."""
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return np.array(series.to_list(), dtype=object) if series.dtype.is_integer() else y
    return y if hasattr(y, "dtype") else np.array(y, dtype=object)


def _plain(present: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Labels of an object array in their own dtype: int, float, bool, or object for text."""
    if raw.dtype.kind in "biufU":
        return present
    if present.dtype == object:
        return present.astype(bool) if isinstance(present[0], bool) else present
    if all(isinstance(label, Integral) for label in raw.tolist()):
        return raw.astype(np.int64)
    return present


def is_label_sets(y: Any) -> bool:
    """Whether labels are given as sets: a boolean column for each of several classes.

    >>> is_label_sets([[True, False], [True, True]]), is_label_sets([True, False])
    (True, False)
    """
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.shape[1] > 1 and all(kind == nw.Boolean for kind in frame.schema.values())
    if isinstance(y, (list, tuple)):
        return len(y) > 0 and all(isinstance(row, (list, tuple)) and _all_bool(row) for row in y)
    array = isinstance(y, np.ndarray) and y.dtype == np.bool_
    return array and y.ndim == 2 and y.shape[1] > 1


def _all_bool(row: list[object] | tuple[object, ...]) -> bool:
    """Whether a row holds several booleans and nothing else."""
    return len(row) > 1 and all(isinstance(cell, (bool, np.bool_)) for cell in row)


def read_label_sets(
    y: Any, weights: Float[np.ndarray, " obs"]
) -> tuple[Shaped[np.ndarray, " label"], Bool[np.ndarray, "set label"], Int[np.ndarray, " obs"]]:
    """Classes, distinct label sets, and the code of every row's set.

    >>> y = [[True, False, False], [False, True, True], [True, True, True], [False, False, True]]
    >>> classes, sets, codes = read_label_sets(y, np.ones(4))
    >>> codes.tolist(), sets[3].tolist()
    ([0, 3, -1, 2], [False, True, True])
    """
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    named = isinstance(frame, nw.DataFrame)
    allowed = np.asarray(frame.to_numpy() if named else y, dtype=bool)
    classes = np.asarray(frame.columns if named else np.arange(allowed.shape[1]))
    order = np.argsort(classes, kind="stable")
    classes, allowed = classes[order], allowed[:, order]
    impossible = np.flatnonzero(~allowed.any(axis=1))
    if impossible.size:
        raise ValueError(
            f"y of booleans must allow every row at least one class; row {impossible[0]} has "
            "none. Allow all classes where nothing is known."
        )
    told = ~allowed.all(axis=1) & (weights > 0)
    missing = classes[~allowed[told].any(axis=0)]
    if missing.size:
        raise ValueError(
            f"y of booleans must allow every class in a row of positive weight that does not allow "
            f"all; class {missing[0]!r} has none. Leave its column out."
        )
    several = np.unique(allowed[told & (allowed.sum(axis=1) > 1)], axis=0)
    sets = np.concatenate([np.eye(classes.size, dtype=bool), several])
    everything = np.concatenate([sets, np.ones((1, classes.size), dtype=bool)])
    codes = (allowed[:, None, :] == everything).all(axis=-1).argmax(axis=1)
    return classes, sets, np.where(codes == len(sets), -1, codes)

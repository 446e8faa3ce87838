"""Cells to reals and codes and back; which of them are observed, and which are to be hidden."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Final, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf.base.rows import Observations
from bayesrbf.table.columns import (
    UNKNOWN,
    Columns,
    Constant,
    CopiedColumn,
    decimals_of,
    level_codes,
    level_values,
    numbers_of,
    report_unknown,
)
from bayesrbf.table.containers import (
    Cells,
    as_frame,
    categories_of,
    clean,
    missing_cells,
    read_cells,
)
from bayesrbf.table.kinds import of_dtype
from bayesrbf.table.order import canonical_levels, canonical_order, weigh_unlabelled

# Values at which a real column has a point mass, such as 0 or a limit of detection.


SHARE: Final = 0.05
"""Minimum share of a column's cells at a point mass."""
ROWS_OF_POINT_MASS: Final = 5.0
"""Minimum number of rows at a point mass."""
AHEAD: Final = 3.0
"""Minimum ratio of a point mass's frequency to that of either neighbouring value."""
OTHERS: Final = 5
"""Minimum number of other values: a column with fewer is a coarse scale."""


def find_point_masses(
    cells: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> tuple[float, ...]:
    r"""The point masses of a column, in rising order; a row counts as often as it weighs.

    They are values a of the frequency :math:`n_a \ge \max(.05 \, n, 5, 3 n_b)`, with b the next
    value on either side: an ordinary value of a coarse scale is about as frequent as that.

    >>> grades, spiked = np.repeat(np.arange(8.0), 10), np.r_[np.zeros(20), np.arange(60.0)]
    >>> find_point_masses(grades, np.ones(80)), find_point_masses(spiked, np.ones(80))
    ((), (0.0,))
    """
    present = ~np.isnan(cells)
    values, indices = np.unique(cells[present] + 0.0, return_inverse=True)  # -0.0 is 0.0
    counts = np.bincount(indices, weights[present], minlength=values.size)
    padded = np.pad(counts, 1)
    neighbours = np.maximum(padded[:-2], padded[2:])
    often = (
        (counts >= SHARE * counts.sum())
        & (counts >= ROWS_OF_POINT_MASS)
        & (counts >= AHEAD * neighbours)
    )
    if values.size - often.sum() < OTHERS:
        return ()
    return tuple(values[often].tolist())


def point_masses_of(rows: Observations, columns: Columns) -> tuple[tuple[float, ...], ...]:
    """The point masses of every real feature: those of columns of numbers are looked for."""
    numbers = columns.number_features.values()
    return tuple(
        find_point_masses(cells, rows.weights) if feature in numbers else ()
        for feature, cells in enumerate(rows.real.T)
    )


def at_point_masses(
    cells: Float[np.ndarray, " obs"], point_masses: tuple[float, ...]
) -> np.ndarray:
    """Code of each cell: -1 missing, 0 at no point mass, else 1 plus the index of the mass."""
    same = cells[:, None] == np.asarray(point_masses)
    codes = np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0)
    return np.where(np.isnan(cells), -1, codes)


def at_their_point_masses(rows: Observations, columns: Columns) -> Observations:
    """Rows with real cells at point masses made missing, and a code for each point mass.

    >>> from bayesrbf.table.kinds import Real
    >>> cells, no_codes = np.array([[0.0], [2.0]]), np.zeros((2, 0), int)
    >>> rows = Observations(cells, no_codes, np.ones(2, int), np.ones(2))
    >>> apart = at_their_point_masses(rows, Columns(("x",), (Real(),), point_masses=((0.0,),)))
    >>> apart.real.ravel(), apart.codes.ravel()
    (array([nan,  2.]), array([1, 0]))
    """
    if not columns.atomic:
        return rows
    real = rows.real.copy()
    codes = [rows.codes]
    for feature in columns.atomic:
        at = at_point_masses(real[:, feature], columns.point_masses[feature])
        real[at > 0, feature] = np.nan
        codes.append(at[:, None])
    return replace(rows, real=real, codes=np.concatenate(codes, axis=1))


def real_cells(
    real: Float[np.ndarray, "obs feature"], codes: Int[np.ndarray, "obs category"], columns: Columns
) -> Float[np.ndarray, "obs feature"]:
    """Real cells of the table, point masses included: inverse of :func:`at_their_point_masses`.

    >>> from bayesrbf.table.kinds import Real
    >>> columns = Columns(("x",), (Real(),), point_masses=((0.0,),))
    >>> real_cells(np.array([[np.nan], [2.0]]), np.array([[1], [0]]), columns).ravel()
    array([0., 2.])
    """
    real = real.copy() if columns.atomic else real
    for feature, category in columns.atomic.items():
        values = np.array([np.nan, *columns.point_masses[feature]])
        at = codes[:, category]
        real[:, feature] = np.where(at > 0, values[at], real[:, feature])
    return real


# From tables to arrays of numbers and codes, and from two arrays to a table.


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
    cells = cells.in_numbers(dict(enumerate(columns.kinds)))
    n_rows = len(cells.columns[0])
    for position in columns.empty:
        _note_cells(cells, columns.names[position], position)
    for constant in columns.constants:
        _note_others(cells, columns, constant)
    for copy in columns.copies:
        cells = _with_copy(cells, columns, copy)
    numbers = {
        position: numbers_of(cells, position, kind)
        for position, kind in enumerate(columns.kinds)
        if position not in columns.left_out
    }
    report_unknown(cells, columns, numbers, handle_unknown)
    real = np.empty((n_rows, len(columns.real_positions)))
    codes = []
    for position, column in numbers.items():
        kind = columns.kinds[position]
        if kind.has_levels:
            column = np.where(column == UNKNOWN, np.nan, column)
        if position in columns.code_of:
            codes.append(decimals_of(column))
        else:
            real[:, columns.features[position]] = kind.encode(column)
    codes += [missing_cells(cells.columns[position]).astype(np.intp) for position in columns.masked]
    missing = None
    if columns.of_one_class:
        missing = np.stack([*map(missing_cells, cells.columns)], axis=1).astype(np.intp)
    rows = Observations(
        real,
        np.array(codes, dtype=np.intp).reshape(len(codes), n_rows).T.copy(),
        np.full(n_rows, -1),
        np.ones(n_rows),
        missing=missing,
    )
    return at_their_point_masses(rows, columns)


def _check_columns(cells: Cells, columns: Columns) -> None:
    """Refuse another width or other names, in scikit-learn's words."""
    if len(cells.columns) != len(columns.names):
        raise ValueError(
            f"X has {len(cells.columns)} features, but Columns is expecting "
            f"{len(columns.names)} features as input."
        )
    received, expected = _titles(cells), _titles(columns)
    if not received or not expected or received == expected:
        return
    numbers = all(map(str.isdigit, received + expected))
    if (cells.numbered or columns.numbered) and not numbers:
        return  # one of them has no names
    unseen = sorted(set(received) - set(expected))
    absent = sorted(set(expected) - set(received))
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
    """Warn of observed cells in a column that no model uses."""
    observed = ~missing_cells(cells.columns[position])
    if observed.any():
        warnings.warn(
            f"Column {name!r} had no observed cell at fit, or of one class alone; its "
            f"{int(observed.sum())} observed cells are treated as missing.",
            UserWarning,
            stacklevel=4,
        )


def _note_others(cells: Cells, columns: Columns, constant: Constant) -> None:
    """Warn of new values in a column that was constant at fit."""
    position = constant.position
    kind = columns.kinds[constant.position]
    numbers = numbers_of(cells, position, kind)
    n_different = int((~np.isnan(numbers) & (numbers != constant.number)).sum())
    if n_different:
        warnings.warn(
            f"Column {columns.names[position]!r} had the same cell in all rows of the fit, so no "
            f"model knows of it; it has another in {n_different} rows, which changes nothing.",
            UserWarning,
            stacklevel=3,
        )


def _with_copy(cells: Cells, columns: Columns, copy: CopiedColumn) -> Cells:
    """Cells of a column, filled from its copy where missing; a warning where both differ."""
    first, second = (cells.columns[at] for at in (copy.original, copy.position))
    holes, present = missing_cells(first), ~missing_cells(second)
    differ = int(((first != second) & ~holes & present).sum())
    if differ:
        names = columns.names[copy.original], columns.names[copy.position]
        warnings.warn(
            f"Columns {names[0]!r} and {names[1]!r} were equal in all rows of the fit, and differ "
            f"in {differ} rows: {names[0]!r} counts.",
            UserWarning,
            stacklevel=3,
        )
    if not (holes & present).any():
        return cells
    merged, long = list(cells.columns), list(cells.long)
    merged[copy.original] = np.where(holes, second, first)
    if long[copy.original] is not None or long[copy.position] is not None:
        long[copy.original] = np.where(
            holes, cells.of_levels(copy.position), cells.of_levels(copy.original)
        )
    return replace(cells, columns=tuple(merged), long=tuple(long))


def _titles(table: Cells | Columns) -> tuple[str, ...]:
    """Column names of a table; empty for an array."""
    numbers = tuple(map(str, range(len(table.names)))) if table.numbered else ()
    return table.names if table.has_names else numbers


def decode(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    columns: Columns,
    like: Any,
) -> Any:
    """Write arrays back as a table of the same type as ``like``.

    Codes of masks are left out; a real cell whose code names a point mass is that point mass, and
    other reals are the nearest cell of their kind: a whole number, a level. The index and the
    dtypes of columns are those of ``like`` where they still fit. An array is float64 when every
    column is a number, else object.

    >>> import numpy as np
    >>> from bayesrbf.table import learn_columns
    >>> columns = learn_columns([[1.5, "b"], [2.5, "a"]])
    >>> decode(np.array([[3.0]]), np.array([[1]]), columns, like=[[1.5, "b"]])
    array([[3.0, 'b']], dtype=object)
    """
    real = real_cells(real, codes, columns)
    constant = {column.position: column.number for column in columns.constants}
    originals = {column.position: column.original for column in columns.copies}
    ordered: list[np.ndarray] = []
    for position, kind in enumerate(columns.kinds):
        if position in originals:
            ordered.append(ordered[originals[position]].copy())
            continue
        if position in columns.code_of:
            ordered.append(level_values(codes[:, columns.code_of[position]], kind.levels))
            continue
        if position in constant or position in columns.of_one_class:
            numbers = np.full(len(real), constant.get(position, np.nan))
        else:
            numbers = kind.decode(real[:, columns.features[position]])
        if kind.has_levels:
            numbers = level_values(decimals_of(numbers), kind.levels)
        ordered.append(numbers)
    frame = as_frame(like)
    for position, kind in enumerate(columns.kinds):
        if kind.of_texts and _has_texts(like if frame is None else frame, position):
            ordered[position] = kind.texts(ordered[position])
    if frame is None:
        return _to_array(ordered)
    return _to_frame(ordered, frame, columns.empty)


def _has_texts(like: Any, position: int) -> bool:
    """Whether a column of a table holds text."""
    if isinstance(like, nw.DataFrame):
        return isinstance(like[:, position].dtype, nw.String | nw.Categorical | nw.Enum)
    return any(isinstance(row[position], str) for row in like)


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
        original = like[:, position]
        # A column without a cell stays as it came: levels that are declared are kept.
        unchanged = position in empty and len(column) == len(like)
        series[str(name)] = original if unchanged else _in_dtype(column, original)
    # No backend=: with one, from_dict drops the dtypes of the series.
    native = nw.from_dict(series).to_native()
    if backend.is_pandas():
        native.columns = like.columns
        if len(native) == len(like):
            native.index = like.to_native().index
    return native


def _in_dtype(column: np.ndarray, like: nw.Series[Any]) -> nw.Series[Any]:
    """Cells as a column in the dtype of another, where they fit: text, booleans, categories."""
    name = str(like.name)
    dtype = like.dtype
    backend = like.implementation
    cells = column.tolist()
    native: Any = like.to_native()
    pandas, holes = backend.is_pandas(), bool(missing_cells(column).any())
    if pandas and native.dtype.name == "category":
        codes = level_codes(column, tuple(categories_of(like)))
        if UNKNOWN not in codes:
            same = type(native.array).from_codes(codes, dtype=native.dtype)
            return nw.new_series(name, same, backend=backend)
    if dtype_kind := of_dtype(dtype):
        return dtype_kind.as_series(column, like)
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


# From labels to classes and codes.


def present_classes(
    y: object,
    weights: Float[np.ndarray, " obs"],
    unlabelled: object,
    unlabelled_weight: float,
) -> tuple[Shaped[np.ndarray, " label"], Int[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
    """Classes with a labelled row of positive weight, codes of the labels, weights of the rows."""
    classes, labels = encode_labels(y, unlabelled=unlabelled)
    weights = weigh_unlabelled(labels, weights, unlabelled_weight)
    present = np.unique(labels[(labels >= 0) & (weights > 0)])
    if present.size == 0:
        raise ValueError(
            "y needs at least one labelled row of positive weight; every label is hidden "
            "or has sample_weight 0."
        )
    codes = np.where(np.isin(labels, present), np.searchsorted(present, labels), -1)
    return classes[present], codes, weights


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
    """Labels of the labelled rows, and a mask of the rows without a label."""
    from sklearn.utils import column_or_1d  # readers of files, which fit nothing, load this file
    from sklearn.utils.multiclass import check_classification_targets

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
    """Labels as an array; integers with nulls stay integers."""
    if isinstance(getattr(y, "dtype", None), np.dtype):
        return y
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return np.array(series.to_list(), dtype=object)
    # An index or an array of pandas has a dtype of its own; lists have none.
    return np.array(y.tolist() if hasattr(y, "dtype") else y, dtype=object)


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
    informative = ~allowed.all(axis=1) & (weights > 0)
    missing = classes[~allowed[informative].any(axis=0)]
    if missing.size:
        raise ValueError(
            f"y of booleans must allow every class in a row of positive weight that does not allow "
            f"all; class {missing[0]!r} has none. Leave its column out."
        )
    several = np.unique(allowed[informative & (allowed.sum(axis=1) > 1)], axis=0)
    sets = np.concatenate([np.eye(classes.size, dtype=bool), several])
    everything = np.concatenate([sets, np.ones((1, classes.size), dtype=bool)])
    codes = (allowed[:, None, :] == everything).all(axis=-1).argmax(axis=1)
    return classes, sets, np.where(codes == len(sets), -1, codes)


# Hides cells of encoded rows, and says which are observed.


def observed_cells(rows: Observations, columns: Columns) -> Bool[np.ndarray, "obs column"]:
    """Whether each cell of the table is observed, columns in the order of the table.

    >>> from bayesrbf.table import encode, learn_columns
    >>> X = [["b", 1.5], [None, 2.5], ["a", None]]
    >>> columns = learn_columns(X)
    >>> observed_cells(encode(X, columns), columns)
    array([[ True,  True],
           [False,  True],
           [ True, False]])
    """
    observed = np.zeros((rows.n_obs, len(columns.names)), dtype=bool)
    present = np.column_stack([~np.isnan(rows.real), rows.codes >= 0])
    for position, cells in zip(columns.column_of, present.T, strict=True):
        if position >= 0:
            observed[:, position] |= cells
    for constant in columns.constants:
        observed[:, constant.position] = True
    for copy in columns.copies:
        observed[:, copy.position] = observed[:, copy.original]
    if rows.missing is not None and columns.of_one_class:
        observed[:, columns.of_one_class] = rows.missing[:, columns.of_one_class] == 0
    return observed


def missing_indicators(rows: Observations, columns: Columns) -> Int[np.ndarray, "obs column"]:
    """Missing indicators: 1 missing, 0 measured, -1 masked by the package.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], [None, 2.5]])
    >>> rows = encode([["b", 1.5], [None, 2.5]], columns)
    >>> missing_indicators(hide(rows, np.array([[True, False]] * 2), columns), columns)
    array([[-1,  0],
           [-1,  0]])
    """
    if rows.missing is not None:
        return rows.missing
    return (~observed_cells(rows, columns)).astype(np.intp)


def without_indicators(
    rows: Observations, columns: Columns, chosen: Bool[np.ndarray, " obs"] | None = None
) -> Observations:
    """Rows without the missing indicators of all rows, or of the chosen ones.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], [None, 2.5]])
    >>> rows = encode([["b", 1.5], [None, 2.5]], columns)
    >>> without_indicators(rows, columns, np.array([True, False])).missing
    array([[-1, -1],
           [ 1,  0]])
    """
    of_rows = np.ones(rows.n_obs, dtype=bool) if chosen is None else chosen
    codes = np.where(of_rows[:, None] & columns.masks, -1, rows.codes)
    missing = np.where(of_rows[:, None], -1, missing_indicators(rows, columns))
    return replace(rows, codes=codes, missing=missing)


def with_masks(rows: Observations, columns: Columns) -> Observations:
    """Rows that were encoded without missing indicators, with those of the columns added.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", None]])
    >>> with_masks(encode([["b", 1.5], ["a", None]], columns), columns.with_masks).codes
    array([[1, 0],
           [0, 1]])
    """
    observed = observed_cells(rows, replace(columns, masked=()))[:, columns.masked]
    before, after = np.split(rows.codes, [len(columns.levels)], axis=1)
    return replace(rows, codes=np.column_stack([before, (~observed).astype(np.intp), after]))


LevelOrders = tuple[Int[np.ndarray, " _"], ...]


def level_orders(rows: Observations, columns: Columns) -> LevelOrders:
    """Order of the levels of each column, independent of their names.

    Cells, labels and weights of the rows decide; levels that no row has come last.
    """
    orders = canonical_levels(rows)[: len(columns.levels)]
    sizes = map(len, columns.levels)
    return tuple(
        np.append(order, np.arange(order.size, size))
        for order, size in zip(orders, sizes, strict=True)
    )


def recoded(rows: Observations, orders: LevelOrders) -> Observations:
    """Rows with codes renumbered by the given orders of levels.

    >>> rows = Observations(np.zeros((2, 0)), np.array([[0], [1]]), np.zeros(2, int), np.ones(2))
    >>> recoded(rows, (np.array([1, 0]),)).codes.ravel()
    array([1, 0])
    """
    codes = rows.codes.copy()
    for column, order in zip(codes.T, orders, strict=False):  # masks and point masses come after
        column[:] = np.append(np.argsort(order), -1)[column]
    return replace(rows, codes=codes)


def canonical_positions(rows: Observations, columns: Columns) -> Int[np.ndarray, " column"]:
    """Positions of the table's columns, in the canonical order of some rows."""
    order = canonical_order(rows)
    # Masks and point masses go with their columns.
    level_columns = order.categories[order.categories < len(columns.levels)]
    pairs = ((columns.real_positions, order.features), ([*columns.code_of], level_columns))
    positions = np.concatenate([np.array(columns, int)[order] for columns, order in pairs])
    _, first = np.unique(positions, return_index=True)  # a column may have several features
    return positions[np.sort(first)]


def hide(
    rows: Observations,
    hidden: Bool[np.ndarray, "obs column"],
    columns: Columns,
    *,
    indicators: bool = True,
) -> Observations:
    """Mask cells: they become missing, and their missing indicators do, too.

    The indicator of a cell is hidden with it, because it says that the cell was measured, unless
    ``indicators`` is False; those of all other cells stay. So is what is said of its point masses.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", None]], missingness="informative")
    >>> rows = encode([["b", 1.5], ["a", None]], columns)
    >>> rows.codes
    array([[1, 0],
           [0, 1]])
    >>> hide(rows, np.array([[False, True], [True, False]]), columns).codes
    array([[ 1, -1],
           [-1,  1]])
    """
    real, codes = np.full_like(rows.real, np.nan), np.full_like(rows.codes, -1)
    nothing = replace(rows, real=real, codes=codes)
    left = replaced(rows, nothing, hidden, columns, masks=indicators)
    missing = missing_indicators(left, columns)
    return replace(left, missing=np.where(hidden & indicators, -1, missing))


def replaced(
    rows: Observations,
    source: Observations,
    taken: Bool[np.ndarray, "obs column"],
    columns: Columns,
    *,
    masks: bool = False,
) -> Observations:
    """Rows with selected cells from other rows, point masses too; indicators only with ``masks``.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", 2.5]])
    >>> rows, others = encode([["b", 1.5]], columns), encode([["a", 2.5]], columns)
    >>> filled = replaced(rows, others, np.array([[True, False]]), columns)
    >>> filled.codes.item(), filled.real.item()
    (0, 1.5)
    """
    reals, codes = columns.taken(taken, masks)
    return replace(
        rows,
        real=np.where(reals, source.real, rows.real),
        codes=np.where(codes, source.codes, rows.codes),
        missing=missing_indicators(rows, columns),
    )


def with_column(
    rows: Observations, position: int, cells: Float[np.ndarray, " obs"], columns: Columns
) -> Observations:
    """Rows with all cells of a column set: numbers, or codes of levels; indicators unchanged.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", 2.5]])
    >>> with_column(encode([[None, 1.5]], columns), 0, np.array([1.0]), columns).codes
    array([[1]])
    """
    real = np.full_like(rows.real, np.nan)
    codes = np.full((rows.n_obs, len(columns.codes) - len(columns.atomic)), -1)
    if position in columns.code_of:
        codes[:, columns.code_of[position]] = cells
    else:
        real[:, columns.features[position]] = columns.kinds[position].encode(cells)
    source = at_their_point_masses(replace(rows, real=real, codes=codes), columns)
    taken = np.tile(np.arange(len(columns.names)) == position, (rows.n_obs, 1))
    return replaced(rows, source, taken, columns)

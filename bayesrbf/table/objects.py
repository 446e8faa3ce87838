"""One column of Python objects as numbers, or as objects of one type."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np

_PANDAS_MISSING = {"NAType", "NaTType"}


def clean(values: Sequence[object], name: str) -> np.ndarray:
    """One column of Python objects as float64, or as object of one type.

    Parameters
    ----------
    values : sequence of object
        Cells; None, NaN, and pandas' NA and NaT are missing.
    name : str
        Column name for messages.

    Returns
    -------
    ndarray of shape (n_rows,)
        float64 when every cell present is a number, else object of str or bool.

    Raises
    ------
    TypeError
        If a cell is neither text, boolean nor number, or the column mixes them.
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
    """Whether a cell is None, NaN, or pandas' NA or NaT (told by name: pandas is optional)."""
    if value is None or type(value).__name__ in _PANDAS_MISSING:
        return True
    return isinstance(value, float | np.floating | Decimal) and bool(value != value)


def _kind_of(kind: type, name: str) -> str:
    """The one of boolean, string, number that a Python type is."""
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
    """Name two cells of different kinds."""
    first: dict[str, tuple[int, object]] = {}
    for row, value in enumerate(values):
        if value is not None:
            first.setdefault(kinds[type(value)], (row, value))
    found = " and ".join(f"the {k} {v!r} at row {row}" for k, (row, v) in first.items())
    raise TypeError(
        f"Column {name!r} has mixed types: {found}; make every cell text to read the column as "
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

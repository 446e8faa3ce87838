"""Class labels as codes; hidden labels as -1."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Int, Shaped
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesrbf.table.cells import missing_cells
from bayesrbf.table.objects import clean


def encode_labels(
    y: Any, *, unlabelled: object = None
) -> tuple[Shaped[np.ndarray, " label"], Int[np.ndarray, " obs"]]:
    """Sort the classes of y and give every row the code of its class.

    Parameters
    ----------
    y : array-like of shape (n_obs,)
        Labels; NaN, None and pandas' NA are hidden.
    unlabelled : object, optional
        A further value that marks a hidden label, such as -1.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted distinct labels; the dtype is that of y where y has one.
    codes : ndarray of shape (n_obs,)
        Position in ``classes``, -1 where the label is hidden.

    Raises
    ------
    ValueError
        If every label is hidden, or labels are infinite or not discrete.
    TypeError
        If the labels mix types.

    Examples
    --------
    >>> encode_labels(["b", None, "a", "b"])
    (array(['a', 'b'], dtype=object), array([ 1, -1,  0,  1]))
    """
    raw = column_or_1d(_as_array(y), warn=True)
    labels = raw if raw.dtype.kind in "biufU" else clean(raw.tolist(), "y")
    hidden = np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind in "fO":
        hidden |= missing_cells(labels)
    if unlabelled is not None:
        hidden |= np.asarray(labels == unlabelled)
    if hidden.all():
        raise ValueError(
            "y needs at least one labelled row, but every label is hidden; "
            "use MixtureDensity to model X alone."
        )
    present = labels[~hidden]
    if present.dtype.kind == "f" and np.isinf(present).any():
        raise ValueError("Input y contains infinity; labels must be finite, NaN where hidden.")
    present = _plain(present, raw[~hidden])
    check_classification_targets(present)
    classes, positions = np.unique(present, return_inverse=True)
    codes = np.full(len(labels), -1, dtype=np.intp)
    codes[~hidden] = positions
    return classes, codes


def _as_array(y: Any) -> Any:
    """Labels as an array; whole numbers with nulls stay whole, which NumPy would make floats."""
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

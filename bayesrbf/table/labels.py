"""From labels to classes and codes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from bayesrbf.table.containers import clean, missing_cells
from bayesrbf.table.row_statistics import weigh_unlabelled


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

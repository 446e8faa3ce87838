"""Labels that are sets: the classes that every row may have, as a table of booleans."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped


def is_label_sets(y: Any) -> bool:
    """Whether labels are given as sets: a boolean column for each of several classes.

    Examples
    --------
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

    Examples
    --------
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

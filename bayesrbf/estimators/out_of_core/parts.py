"""Blocks of a table out of memory, each with its labels and weights."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from operator import add
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from jaxtyping import Bool, Float
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from bayesrbf import table
from bayesrbf.blocks import Blocks, Collection, dask_parts


@dataclass(frozen=True)
class LabelsInBlocks:
    """How labels and weights of a table are read."""

    labelled: bool
    target: str | None = None
    """The column of X that holds the labels; None where they come beside it."""
    unlabelled: object = None
    """What marks a hidden label."""
    unlabelled_weight: float = 1.0


@dataclass(frozen=True)
class Part:
    """The rows of a block that weigh something, as they were handed over."""

    table: Any
    present: np.ndarray
    """Labels of the rows that have one."""
    hidden: Bool[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]


def parts_of(
    collection: Collection, y: object, sample_weight: object, asked: LabelsInBlocks
) -> tuple[Blocks[Part], int]:
    """Blocks with their labels and weights, and the passes that it took to cut these.

    Labels and weights are Dask collections of the same partitions, or one value a row in memory.
    """
    beside = {"y": None if asked.target else y, "sample_weight": sample_weight}
    lengths, passes = collection.lengths, 0
    if lengths is None and any(v is not None and not dask_parts(v) for v in beside.values()):
        lengths, passes = tuple(collection.blocks.map(_length).reduce(add)), 1
    n_blocks = collection.n_blocks
    cut = [_cut(values, lengths, n_blocks, name) for name, values in beside.items()]
    return collection.blocks.map(partial(_part, asked=asked), *cut), passes


def _length(block: object) -> list[int]:
    """Number of rows of a block."""
    return [_num_samples(block)]


def _cut(
    values: object, lengths: tuple[int, ...] | None, n_blocks: int, name: str
) -> Sequence[object]:
    """One value a row as one array a block; None for every block where there are none."""
    if values is None:
        return [None] * n_blocks
    parts = dask_parts(values)
    if parts and len(parts) != n_blocks:
        raise ValueError(
            f"{name} must have the partitions of X, which has {n_blocks}; received {len(parts)}. "
            f"Make it from X, or hand {name} over in memory."
        )
    if parts or lengths is None:
        return parts
    if _num_samples(values) != sum(lengths):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: X has "
            f"{sum(lengths)} rows and {name} has {_num_samples(values)}."
        )
    ends = list(accumulate(lengths, initial=0))
    return [_safe_indexing(values, slice(*pair)) for pair in pairwise(ends)]


def _part(block: Any, labels: object, weights: object, asked: LabelsInBlocks) -> Part:
    """The rows of a block that weigh something, with their labels."""
    # On a cluster the parts of other collections arrive as what they hold.
    labels, weights = (v.compute() if hasattr(v, "compute") else v for v in (labels, weights))
    if asked.target:
        frame = nw.from_native(block, eager_only=True)
        if asked.target not in frame.columns:
            near = difflib.get_close_matches(asked.target, frame.columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(frame.columns)}."
            raise ValueError(f"y={asked.target!r} names no column of X; {hint}")
        labels, block = frame[asked.target].to_native(), frame.drop(asked.target).to_native()
    n_rows = _num_samples(block)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if values is not None and _num_samples(values) != n_rows:
            raise ValueError(
                f"The blocks of X and {name} must have as many rows as each other; received "
                f"{n_rows} and {_num_samples(values)}."
            )
    present, hidden = np.zeros(n_rows, np.intp), np.zeros(n_rows, dtype=bool)
    if asked.labelled and n_rows:
        present, hidden = table.read_labels(labels, asked.unlabelled)
    weighed = np.where(hidden, asked.unlabelled_weight, 1.0) * _weights(weights, n_rows)
    kept = weighed > 0
    if not kept.all():
        block = _safe_indexing(block, np.flatnonzero(kept))
    return Part(block, present[kept[~hidden]], hidden[kept], weighed[kept])


def _weights(weights: object, n_rows: int) -> Float[np.ndarray, " obs"]:
    """Row weights of a block; ValueError if one is negative or no number."""
    if weights is None:
        return np.ones(n_rows)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_rows,) or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("sample_weight must hold one finite number of at least 0 for every row.")
    return values

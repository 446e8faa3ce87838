"""A training table, wherever its rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesrbf.blocks import as_collection
from bayesrbf.estimators.reading import BLOCK, Reading, read_table
from bayesrbf.fitted.training_table import TrainingTable

if TYPE_CHECKING:
    from bayesrbf.estimators.out_of_core.training import OutOfCore


def read_training(
    reading: Reading, X: object, y: object, sample_weight: object, groups: object = None
) -> tuple[TrainingTable, OutOfCore | None]:
    """Columns, classes and rows of a training table; of one out of memory, its blocks, too.

    In memory the whole table is one block.
    """
    is_one_block = isinstance(X, np.ndarray) and len(X) <= BLOCK  # a larger memory map is not
    collection = None if is_one_block else as_collection(X)
    if collection is not None:
        from bayesrbf.estimators.out_of_core.training import read_collection

        if groups is not None:
            raise ValueError(
                f"{reading.owner}.fit(groups=...) needs a table in memory, and X is out of memory: "
                "leave groups out, or fit a random sample of the groups."
            )
        return read_collection(reading, collection, y, sample_weight)
    return read_table(reading, X, y, sample_weight, groups), None

"""From tables to arrays and back: kinds of columns, codes, masks, subjects, row order.

A table (NumPy array, pandas or polars frame, list of lists) is read once by :func:`learn_columns`,
which says what each column is. :func:`encode` turns any table with the same columns into two
arrays, and :func:`decode` turns them back.
"""

from __future__ import annotations

from bayesrbf.table.columns import (
    Columns,
    RowSums,
    column_position,
    in_one_name,
    joined_columns,
    learn_columns,
)
from bayesrbf.table.containers import as_frame, missing_per_row, row_names
from bayesrbf.table.dates import Date
from bayesrbf.table.encode import (
    at_their_point_masses,
    canonical_positions,
    decode,
    encode,
    encode_labels,
    hide,
    level_orders,
    missing_indicators,
    observed_cells,
    point_masses_of,
    present_classes,
    read_labels,
    real_cells,
    recoded,
    replaced,
    with_column,
    with_masks,
    without_indicators,
)
from bayesrbf.table.order import (
    canonical_order,
    check_spreads,
    copies_of,
    distinct,
    distinct_rows,
    marginals,
    near_copies,
    standardisation,
    subjects_of,
    usual_weight,
    weigh_unlabelled,
    with_subjects,
)

__all__ = [
    "Columns",
    "Date",
    "RowSums",
    "as_frame",
    "at_their_point_masses",
    "canonical_order",
    "canonical_positions",
    "check_spreads",
    "column_position",
    "copies_of",
    "decode",
    "distinct",
    "distinct_rows",
    "encode",
    "encode_labels",
    "hide",
    "in_one_name",
    "joined_columns",
    "learn_columns",
    "level_orders",
    "marginals",
    "missing_indicators",
    "missing_per_row",
    "near_copies",
    "observed_cells",
    "point_masses_of",
    "present_classes",
    "read_labels",
    "real_cells",
    "recoded",
    "replaced",
    "row_names",
    "standardisation",
    "subjects_of",
    "usual_weight",
    "weigh_unlabelled",
    "with_column",
    "with_masks",
    "with_subjects",
    "without_indicators",
]

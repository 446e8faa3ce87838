"""The labels of new rows: their column, and their spelling."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import pandas as pd

from bayesrbf.reading import TableError, names_in_file, read_file
from bayesrbf.records.table_options import TableOptions
from bayesrbf.report.density import columns_of
from bayesrbf.report.new_rows import read_complete
from bayesrbf.report.options import ReportOptions
from bayesrbf.report.words import listing

LISTED: Final = 6


def read_labelled(
    model: Any, path: Path, target: str | None, options: ReportOptions
) -> tuple[pd.DataFrame, pd.Series]:
    """Rows as the model takes them, and their labels as text, None where one is missing.

    Without a name the label column is that of the training table, or the only one that the model
    does not predict from and that holds classes of the model.
    """
    rows = read_complete(model, path, options.table)
    known, classes = set(columns_of(model).names), {str(label) for label in model.classes_}
    header = names_in_file(path)
    if target is None and options.target in header:
        target = options.target
    no_label = {*known, *options.table.beside}
    others = [name for name in header if name not in no_label]
    if target in known:
        raise TableError(f"--target names {target!r}, a column that the model predicts from.")
    asked = others if target is None else [target]
    left = tuple(name for name in header if name not in asked)
    reading = TableOptions(na=options.table.na, categorical=tuple(asked), ignore=left)
    labels = read_file(path, None, reading, known=True).frame if asked else pd.DataFrame()
    labels = labels[asked].apply(lambda column: as_classes(column, classes))
    fits = [name for name in asked if classes & set(labels[name].dropna())]
    if target is None and len(fits) != 1:
        said = f"columns {listing(fits)} hold" if fits else "no other column holds"
        raise TableError(
            f"{path.name}: beside what the model predicts from, {said} classes of the model "
            f"({listing(sorted(classes), LISTED)}); name the label column by --target."
        )
    return rows, labels[fits[0] if target is None else target]


def as_classes(labels: pd.Series, classes: Collection[str]) -> pd.Series:
    """Labels as the classes are spelled: a number is the class of the same value.

    A file in which labels are missing often has 1.0 for 1.

    >>> as_classes(pd.Series(["1.0", "0", None, "x"]), ["0", "1"]).tolist()
    ['1', '0', None, 'x']
    """
    spelled = {_value(name): name for name in classes}
    found = [None if pd.isna(label) else spelled.get(_value(label), label) for label in labels]
    return pd.Series(found, labels.index, dtype=object, name=labels.name)


def _value(text: str) -> float | str:
    """A number, or else the text."""
    try:
        return float(text)
    except ValueError:
        return text

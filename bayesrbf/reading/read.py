"""Reading a table in Python: options as keywords."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bayesrbf.reading.tabular_files import ReadTable, read_file, read_frame
from bayesrbf.records.table_options import TableOptions

Mark = str | int | float


def read_table(
    table: Any,
    target: str | None = None,
    *,
    na: Mark | Sequence[Mark] | Mapping[str, Mark | Sequence[Mark]] = (),
    id: str | None = None,
    ignore: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    real: str | Sequence[str] = (),
    thousands: str | None = None,
    decimal: str | None = None,
    below: str = "atom",
    dates: str | Sequence[str] = (),
    day_first: bool = False,
    group: str | None = None,
    time: str | None = None,
) -> ReadTable:
    r"""Read a CSV, Parquet or Excel file, or a frame, and say how each column was read.

    A column of numbers is real, one of text is categorical. Percent signs, currencies, decimal
    commas, thousands and limits such as ``<5`` are read as numbers if they are unambiguous, in
    files and in text columns of a frame. Notes name codes for missing cells, names of rows and
    whatever else would harm a fit. A column of text that hardly repeats is left out, with a note,
    unless ``categorical`` names it. Nothing else that changes the meaning of a column is done
    unless an option asks for it.

    Parameters
    ----------
    table : path-like or frame
        The path of a CSV file (commas, semicolons, tabs or bars; UTF-8, UTF-16 or Windows-1252;
        gzip or not), of Parquet, or of an Excel workbook, of which the first sheet is read; or a
        frame of pandas, polars or Arrow.
    target : str, optional
        Column with the labels. They are text, unless it is named in ``real``.
    na : str, int, float, sequence of them, or mapping of columns to them
        Cells that mean missing, beside empty ones, ``?``, ``NA``, ``NaN``, ``NULL`` and the like.
        A number is found however it is written. A mapping, or ``"age=-999"``, is about the cells
        of these columns only.
    id : str, optional
        Column that names the rows: it becomes the index.
    ignore : str or sequence of str
        Columns to leave out, of whatever type.
    categorical, real : str or sequence of str
        Columns whose kind is not to be inferred.
    thousands : str, optional
        The character that sets thousands apart, where the numbers leave it open: ``"1,234"``.
    decimal : str, optional
        The decimal mark, where the numbers leave it open: a comma or a point.
    below : {"atom", "missing"}
        What a cell such as ``<5`` is among numbers: a value of its own, the number next to the
        limit, or missing.
    dates : str or sequence of str
        Columns of dates, which are read as days since 2000-01-01.
    day_first : bool
        Whether dates such as 3/4/2020 have the day first, where their column leaves it open.
    group : str, optional
        Column whose rows belong together, such as those of a patient.
    time : str, optional
        Column of numbers or dates by which rows are ordered.

    Returns
    -------
    ReadTable
        A frozen record with ``frame``, ``target``, ``notes`` and ``taken``.

    Raises
    ------
    TableError
        A ValueError that names every problem of the table at once, with file, line and column:
        numbers and text in one column, dates that were not named, marks that can mean two
        things, columns that are not there, values of ``na`` that no cell is. ``problems`` has
        them one by one.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayesrbf import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text(
    ...         "case,age,fee,outcome\nA1,61,$120,well\nA2,-999,$95,sick\n"
    ...         "A3,48,$130,well\nA4,-999,$88,sick\nA5,55,$101,\n"
    ...     )
    ...     doubtful = read_table(path, "outcome", id="case")
    ...     table = read_table(path, "outcome", id="case", na=-999)
    >>> print(doubtful.notes[0])
    Column 'age' holds -999 in 2 cells, far from all other values: if it means missing, say
    --na=-999.
    >>> table.frame.loc["A2"].tolist(), table.target["A2"]
    ([nan, 95.0], 'sick')
    >>> table.taken.query("column == 'fee'")[["kind", "note", "count"]].values.tolist()
    [['real', 'currency $', 5]]
    """
    options = TableOptions(
        na=_marks(na),
        id=id,
        ignore=_several(ignore),
        categorical=_several(categorical),
        real=_several(real),
        thousands=thousands,
        decimal=decimal,
        below=below,
        dates=_several(dates),
        day_first=day_first,
        group=group,
        time=time,
    )
    if isinstance(table, str | os.PathLike):
        return read_file(Path(table), target, options)
    return read_frame(table, target, options)


def _marks(na: Mark | Sequence[Mark] | Mapping[str, Mark | Sequence[Mark]]) -> tuple[str, ...]:
    """Stand-ins for missing cells, as they would be typed on the command line."""
    if isinstance(na, Mapping):
        return tuple(f"{name}={mark}" for name, marks in na.items() for mark in _marks(marks))
    several = na if isinstance(na, Iterable) and not isinstance(na, str) else (na,)
    return tuple(map(str, several))


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)

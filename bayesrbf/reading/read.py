"""Reading a table in Python: options as keywords."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bayesrbf.reading.tabular_files import ReadTable, read_file
from bayesrbf.records.table_options import TableOptions


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    na: str | int | float | Sequence[str | int | float] = (),
    id: str | None = None,
    ignore: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    real: str | Sequence[str] = (),
    thousands: str | None = None,
    decimal: str | None = None,
    dates: str | Sequence[str] = (),
    day_first: bool = False,
    group: str | None = None,
    time: str | None = None,
) -> ReadTable:
    r"""Read a CSV, Parquet or Excel file, and say what each column was taken for.

    A column of numbers is real, one of text is categorical. Percent signs, currencies, decimal
    commas and thousands are read as numbers where they can mean one thing only. Stand-ins for
    missing cells, names of rows, prose and whatever else would harm a fit are noticed and named;
    nothing that changes a meaning is done unless an option asks for it.

    Parameters
    ----------
    path : path-like
        CSV (commas, semicolons, tabs or bars; UTF-8, UTF-16 or Windows-1252; gzip or not),
        Parquet, or an Excel workbook, of which the first sheet is read.
    target : str, optional
        Column with the labels. They are text, unless it is named in ``real``.
    na : str, int, float or sequence of them
        Cells that mean missing, beside empty ones, ``?``, ``NA``, ``NaN``, ``NULL`` and the like.
        A number is found however it is written.
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
        things, columns that are not there. ``problems`` has them one by one.
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
    Column 'age' holds -999 2 times, far from all other values: if it means missing, say
    --na=-999.
    >>> table.frame.loc["A2"].tolist(), table.target["A2"]
    ([nan, 95.0], 'sick')
    >>> table.taken.query("column == 'fee'")[["kind", "note", "count"]].values.tolist()
    [['real', 'currency $', 5]]
    """
    marks = [na] if isinstance(na, str | int | float) else na
    options = TableOptions(
        na=tuple(map(str, marks)),
        id=id,
        ignore=_several(ignore),
        categorical=_several(categorical),
        real=_several(real),
        thousands=thousands,
        decimal=decimal,
        dates=_several(dates),
        day_first=day_first,
        group=group,
        time=time,
    )
    return read_file(Path(path), target, options)


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)

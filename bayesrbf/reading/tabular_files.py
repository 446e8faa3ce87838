"""Reads files as frames, and reports the kind of every column and what was noticed."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesrbf.reading.formats import RawTable, raw_blocks, read_raw
from bayesrbf.reading.frames import raw_frame
from bayesrbf.reading.inferring import Kind, ReadColumn, Values
from bayesrbf.reading.missing import StandIn, stand_ins, unmatched
from bayesrbf.reading.notation import possible_numbers
from bayesrbf.reading.notes import Note, TableError, listed
from bayesrbf.reading.noticing import notice
from bayesrbf.reading.sentences import LEFT_OUT, NAMING, sentences
from bayesrbf.reading.table_columns import NO_LEVELS, LevelsOf, Written, in_one_name, read_columns
from bayesrbf.records.table_options import BELOW, TableOptions

if TYPE_CHECKING:
    import pandas as pd

_SEEN: Final = 1000  # Rows that are read for the names of columns, and for commas.

Judge = Callable[["pd.Series"], Iterable[str]]
"""Maps a target to the problems that it has."""


@dataclass(frozen=True)
class ReadTable:
    """A table as it was read: what :func:`read_table` returns.

    Attributes
    ----------
    frame : pandas.DataFrame
        The columns of the model: float64, or text where they are categorical, missing cells
        NaN. The index has the names of the rows where ``id`` was given, else numbers from 0.
    target : pandas.Series or None
        Labels as text, missing where there is none; numbers where the target was named in
        ``real``. None where no target was named.
    kinds : dict of str
        ``"real"`` or ``"categorical"``, by column of the frame.
    notes : tuple of str
        Sentences on what was decided or is doubtful, the most harmful first. They spell
        options as the command line does: ``--na=-999`` is ``na="-999"`` in Python.
    taken : pandas.DataFrame
        How columns were read: one row for each column of the file and each note on it,
        with ``column``, ``kind``, ``note`` and ``count`` (cells).
    groups : pandas.Series or None
        The cells of the column named as ``group``, as text.
    times : pandas.Series or None
        The cells of the column named as ``time``, as numbers: dates are days since 2000-01-01.
    options : object
        The options that the table was read by, a frozen record.
    """

    frame: pd.DataFrame
    target: pd.Series | None
    kinds: dict[str, Kind]
    notes: tuple[str, ...]
    taken: pd.DataFrame
    groups: pd.Series | None
    times: pd.Series | None
    options: TableOptions


def names_in_file(path: Path) -> list[str]:
    """Names of the columns of a file, whatever they hold."""
    return [column.name for column in next(raw_blocks(path, _SEEN)).columns]


def numbers_have_commas(path: Path) -> bool:
    """Whether commas stand in numbers of a file, among its first rows."""
    cells = {cell for column in next(raw_blocks(path, _SEEN)).columns for cell in column.cells}
    return any("," in cell and possible_numbers(cell) for cell in cells)


def read_file(
    path: Path,
    target: str | None,
    options: TableOptions,
    judge: Judge = lambda target: (),
    sampled: bool = False,
    lenient: bool = False,
    levels: LevelsOf | None = None,
) -> ReadTable:
    """Read a file, or random rows of a long one, by a record of options.

    What ``judge`` says of the target is a problem like any other; all are told at once. A
    ``lenient`` reader leaves columns out that it cannot read, and reads dates that were not named;
    notes say so. New rows have ``levels`` of a model, which mean nothing else, and the options of
    its table: they need not have its values of ``na``, and no problem of theirs is mended by an
    option.
    """
    raw = read_raw(path, sampled)
    return _read(raw, path.name, target, options, judge, lenient=lenient, levels=levels)


def read_frame(frame: Any, target: str | None, options: TableOptions) -> ReadTable:
    """Read a frame of pandas, polars or Arrow as a file of such columns."""
    return _read(raw_frame(frame), "the frame", target, options)


def read_cells(raw: RawTable, name: str, options: TableOptions, levels: LevelsOf) -> ReadTable:
    """Read new rows without a target from columns of cells, as from a file of this name."""
    return _read(raw, name, None, options, levels=levels)


def read_blocks(
    path: Path, options: TableOptions, size: int, levels: LevelsOf = NO_LEVELS
) -> Iterator[ReadTable]:
    """A file without a target, so many rows at a time, as :func:`read_file` reads it at once.

    How the numbers and dates of a column are written is a matter of all its cells, so the columns
    that ``options`` call real or dates are looked through first where there is more than one block.
    """
    blocks = raw_blocks(path, size)
    first, second = next(blocks), next(blocks, None)
    if second is None:
        yield _read(first, path.name, None, options, levels=levels)
        return
    examples = Written((*options.real, *options.dates))
    for block in chain((first, second), blocks):
        examples.look(block)
    for block in raw_blocks(path, size):
        yield _read(block, path.name, None, options, written=examples, levels=levels)


def _read(
    raw: RawTable,
    name: str,
    target: str | None,
    options: TableOptions,
    judge: Judge = lambda target: (),
    written: Written | None = None,
    lenient: bool = False,
    levels: LevelsOf | None = None,
) -> ReadTable:
    """Rows of a file as a table; ``written`` has cells of its other rows."""
    import pandas as pd

    header = [column.name for column in raw.columns]
    problems = [*_misnamed(header, target, options, name)]
    problems += [note.value for note in raw.notes if problems and note.topic == "sheets"]
    marks = stand_ins(options.na, header)
    among, written = options.among(header), written or Written(())
    columns = read_columns(raw, target, among, marks, written, levels or NO_LEVELS, lenient)
    new_rows = levels is not None
    if not new_rows:  # a model has the names of theirs
        names = {name: read for name, read in columns.items() if name == options.id}
        columns = {name: in_one_name(read, name) for name, read in columns.items()} | names
    left_out: list[Note] = []
    if lenient:
        left_out = [Note("unread", n, r.sentence()) for n, r in columns.items() if r.problem]
        columns = {name: read for name, read in columns.items() if not read.problem}
        ignored = tuple(note.column for note in left_out)
        every = [note for read in columns.values() for note in read.notes]
        dates = tuple(note.column for note in every if note.topic == "unnamed dates")
        options = replace(
            options, ignore=(*options.ignore, *ignored), dates=(*options.dates, *dates)
        )
    mark = "," if options.decimal == "," or options.thousands == "." else "."
    for column, read in columns.items():
        form = "dates as 2020-12-31" if column in options.dates else f"numbers as 1234{mark}5"
        if read.problem:
            problems.append(read.sentence(f"Write {form}, or leave it empty." if new_rows else ""))
    if target in columns and not columns[target].problem:
        problems += judge(pd.Series(columns[target].values, dtype=object))
    if raw.whole and not new_rows:
        problems += _unmatched(columns, raw, marks, name)
    model = {name: read for name, read in columns.items() if name not in (target, *options.beside)}
    doubts = [] if problems else _doubts(columns, model, target, options)
    left = [note.column for note in doubts if note.topic in LEFT_OUT]
    model = {name: read for name, read in model.items() if name not in left}
    if not model and not problems:
        beside = "" if target is None else f" beside the target {target!r}"
        why = f": {listed(left)} hardly repeats and was left out" if left else ""
        problems += [note.value for note in left_out]
        problems.append(f"{name}: no column is left{beside}{why}; keep at least one.")
    if problems:
        raise TableError(*problems)
    options = replace(options, ignore=(*options.ignore, *left))
    return _assembled(columns, list(model), target, raw, options, [*left_out, *doubts])


def _unmatched(
    columns: Mapping[str, ReadColumn], raw: RawTable, stand_ins: Sequence[StandIn], name: str
) -> Iterable[str]:
    """Stand-ins that no cell is; of columns that are not read, cells are as they are written."""
    if not stand_ins:
        return ()
    cells = {raw_column.name: set(raw_column.cells) for raw_column in raw.columns}
    marks = [
        (column, note.value)
        for column, read in columns.items()
        for note in read.notes
        if note.topic == "missing"
    ]
    marks += [(column, cell) for column in cells.keys() - columns.keys() for cell in cells[column]]
    return unmatched(stand_ins, marks, cells, name)


def _misnamed(
    header: Sequence[str], target: str | None, options: TableOptions, name: str
) -> Iterable[str]:
    """Options that name a column which is not there, or one column for two things."""
    uses = options.named() | ({} if target is None else {"target": (target,)})
    for column in dict.fromkeys(column for names in uses.values() for column in names):
        if column not in header:
            near = difflib.get_close_matches(column, header, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(header[:20])}."
            yield f"{name} has no column {column!r}; {hint}"
            continue
        parts = [part for part, names in uses.items() if column in names]
        allowed = {"id", "group"}, {"time", "dates"}, {"target", "categorical"}, {"target", "real"}
        if len(parts) > 1 and set(parts) not in allowed:
            words = " and ".join(f"--{part}" for part in parts)
            yield f"Column {column!r} cannot be what {words} say together; choose one."
    mark, point = options.thousands, options.decimal
    if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-%"):
        yield f"--thousands takes one character, such as a comma; got {mark!r}."
    if point not in (None, ",", "."):
        yield f"--decimal takes a comma or a point; got {point!r}."
    if options.below not in BELOW:
        yield f"--below takes atom or missing; got {options.below!r}."
    if mark is not None and mark == point:
        yield f"--thousands and --decimal are both {mark!r}; choose one."


def _assembled(
    columns: dict[str, ReadColumn],
    model: Sequence[str],
    target: str | None,
    raw: RawTable,
    options: TableOptions,
    doubts: Sequence[Note],
) -> ReadTable:
    """Columns that were read without a problem as a frame, and what was noticed."""
    import pandas as pd

    index: pd.Index = pd.RangeIndex(len(raw.lines)) if raw.index is None else raw.index
    if options.id is not None:
        index = pd.Index(columns[options.id].values, dtype=text_dtype(), name=options.id)
    notes = [*_notes(columns, model, options), *doubts, *raw.notes]
    if not any(note.topic == "decimal commas" for note in notes):
        notes = [note for note in notes if note.topic != "points"]
    kinds: dict[str, Kind] = {
        name: "real" if _is_real(read.values) else "categorical" for name, read in columns.items()
    }
    parts = {target: "target", options.id: "id", options.group: "group", options.time: "time"}
    roles: dict[Any, str] = {**kinds, **dict.fromkeys(options.ignore, "ignored"), **parts}

    def cells(values: Values) -> Any:
        return values if _is_real(values) else pd.array(values, dtype=text_dtype())

    def series(name: str | None, text: Any = None) -> pd.Series | None:
        if name is None:
            return None
        values = columns[name].values
        dtype = "float64" if _is_real(values) else text or text_dtype()
        return pd.Series(values, index, dtype=dtype, name=name)

    return ReadTable(
        frame=pd.DataFrame({name: cells(columns[name].values) for name in model}, index),
        target=series(target, "object"),
        kinds={name: kinds[name] for name in model},
        notes=sentences(notes),
        taken=_taken([column.name for column in raw.columns], roles, notes),
        groups=series(options.group),
        times=series(options.time),
        options=_decided(options, columns, notes),
    )


def _decided(
    options: TableOptions, columns: dict[str, ReadColumn], notes: Sequence[Note]
) -> TableOptions:
    """The options with what this table left no doubt about: a new one may be shorter."""
    marks = {note.value for note in notes if note.topic == "thousands" and note.value in ",."}
    commas = any(note.topic == "decimal commas" for note in notes)
    if len(marks) == 1 and not (commas and "," in marks):
        options = replace(options, thousands=options.thousands or marks.pop())
    if commas and options.thousands != ",":
        options = replace(options, decimal=options.decimal or ",")
    first = any(note.value == "day first" for read in columns.values() for note in read.notes)
    return replace(options, day_first=options.day_first or first)


def _is_real(values: Values) -> bool:
    """Whether a column was read as numbers."""
    return isinstance(values, np.ndarray)


def _notes(
    columns: dict[str, ReadColumn], model: Sequence[str], options: TableOptions
) -> Iterable[Note]:
    """Notes on the columns."""
    for name, read in columns.items():
        beside = (note for note in read.notes if note.topic in ("missing", "one level", "apart"))
        yield from read.notes if name in model else beside
    if options.id is not None:
        names = columns[options.id].values
        counts = Counter(names)
        again = [name for name in counts if counts[name] > 1]
        if again and options.group is None:
            count = sum(counts[name] - 1 for name in again)
            yield Note("repeated name", options.id, count=count, example=str(again[0]))
    if options.time is not None:
        untimed = int(np.isnan(np.asarray(columns[options.time].values, dtype=float)).sum())
        if untimed:
            yield Note("without time", options.time, count=untimed)


def _doubts(
    columns: Mapping[str, ReadColumn],
    model: Iterable[str],
    target: str | None,
    options: TableOptions,
) -> list[Note]:
    """Notes on doubtful columns of the model and on its labels, but what the user has decided."""
    decided = {*options.categorical, *options.real, *options.dates}
    notes = notice({name: read.measured for name, read in columns.items()}, model, target)
    return [note for note in notes if note.topic not in NAMING or note.column not in decided]


def text_dtype() -> Any:
    """The dtype of pandas for text; before its version 3, "str" turns None into text."""
    import pandas as pd

    return pd.Series(["text"]).dtype


def _taken(header: Sequence[str], roles: Mapping[Any, str], notes: Sequence[Note]) -> pd.DataFrame:
    """One row for every column and everything that was noticed of it."""
    import pandas as pd

    rows = []
    for name in header:
        own = [note for note in notes if note.column == name] or [Note("", name)]
        rows += [(name, roles[name], f"{n.topic} {n.value}".strip(), n.count) for n in own]
    return pd.DataFrame(rows, columns=["column", "kind", "note", "count"])

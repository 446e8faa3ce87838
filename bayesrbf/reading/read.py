"""Reads files and frames as typed tables, and reports the kind of every column."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from bayesrbf.base.table_options import BELOW, TableOptions
from bayesrbf.reading.cells import (
    LEFT_OUT,
    MISSING_MARKERS,
    NAMING,
    Missing,
    StandIn,
    possible_numbers,
    sentences,
    stand_ins,
    unmatched,
    with_remedies,
)
from bayesrbf.reading.formats import RawColumn, RawTable, raw_blocks, raw_frame, read_raw
from bayesrbf.reading.inferring import ReadColumn, TextColumn, Values, read_column
from bayesrbf.reading.notes import Note, TableError, listed, warn
from bayesrbf.reading.noticing import in_one_spelling, notice, telling, written_apart

if TYPE_CHECKING:
    import pandas as pd

    from bayesrbf.table.kinds import Kind


# The columns of a file or frame, each read as what it was named or seems to be.


KindsOf = Mapping[str, "Kind"]
"""Kinds of the columns of a model, by name."""
NO_KINDS: Final[KindsOf] = MappingProxyType({})
MAX_SHAPES: Final = 10_000
"""Maximum number of shapes of a column that are stored: a column with more holds words."""
_DIGITS: Final = re.compile(r"[0-9]+")


def shape(text: str) -> str:
    """Shape of a cell: its text with digits replaced by classes that determine the notation.

    >>> shape("1,234.5"), shape("31.12.2020"), shape("0.25")
    ('9,999.9', 'dd.99.9999', '0.dd')
    """
    return _DIGITS.sub(_run, text)


def _run(match: re.Match[str]) -> str:
    """Shape of a run of digits: its length up to 5, leading zeros, and pairs above 12."""
    digits = match.group()
    length = min(len(digits), 5)
    if digits[0] == "0":
        return "0" * length
    return ("d" if length == 2 and int(digits) > 12 else "9") * length


class Written:
    """Example cells of each column's shapes in a file, with their lines."""

    def __init__(self, columns: Collection[str]) -> None:
        self._examples: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in columns}

    def look(self, block: RawTable) -> None:
        """Add the shapes of this block that earlier blocks lack."""
        for column in block.columns:
            shapes = self._examples.get(column.name)
            if shapes is None:
                continue
            for text in dict.fromkeys(column.cells):
                form = shape(text)
                if form not in shapes and len(shapes) < MAX_SHAPES:
                    shapes[form] = text, block.lines[column.cells.index(text)]

    def above(self, column: TextColumn) -> tuple[TextColumn, int]:
        """A block's column with the example cells prepended, and the number of examples."""
        earlier = self._examples.get(column.name, {}).values()
        cells, lines = [text for text, _ in earlier], [line for _, line in earlier]
        longer = replace(column, cells=[*cells, *column.cells], lines=[*lines, *column.lines])
        return (longer if earlier else column), len(earlier)


@dataclass(frozen=True)
class ReaderSettings:
    """What the reader of a table is asked for."""

    name: str  # Of the file or frame, for messages.
    target: str | None
    options: TableOptions
    lenient: bool = False  # Whether columns that cannot be read are left out, with a note.
    kinds: KindsOf | None = None  # Of the model that predicts the rows; None for other tables.

    @property
    def new_rows(self) -> bool:
        """Whether a model is to predict the rows: no option solves a problem of theirs."""
        return self.kinds is not None


@dataclass(frozen=True)
class ColumnReader:
    """Reads columns as the requested or the inferred kinds.

    Dates have to be named, as they are or as what orders the rows, and texts among numbers as
    missing, unless the reader is lenient. New rows have the ``kinds`` of a model.
    """

    raw: RawTable
    settings: ReaderSettings
    stand_ins: tuple[StandIn, ...]
    written: Written  # Example cells of other rows of the file.
    of_roles: Mapping[str | None, Kind]  # Kinds of the target, and of roles outside of the model.
    requested: Mapping[str, Kind]  # Kinds that dtypes, options or a model give.

    @classmethod
    def of(cls, raw: RawTable, settings: ReaderSettings, written: Written) -> Self:
        """Reader of the columns of a table; options may name columns that it lacks."""
        # Loaded where cells are read: a file that is not there is refused within a moment.
        from bayesrbf.table.kinds import Category, Real, in_order

        header = [column.name for column in raw.columns]
        options = settings.options.among(header)
        texts = [settings.target, options.id, options.group, options.centre]
        of_roles: dict[str | None, Kind] = dict.fromkeys(texts, Category())
        of_roles |= dict.fromkeys([options.time, options.score], Real())
        ordered = (column for column in raw.columns if column.order)
        of_dtypes = {c.name: in_order(c.order) for c in ordered if c.name not in of_roles}
        requested = of_dtypes | _requested_kinds(options, settings.kinds)
        settings = replace(settings, options=options)
        return cls(raw, settings, stand_ins(options.na, header), written, of_roles, requested)

    def read(self, raw_column: RawColumn) -> ReadColumn:
        """Values and notes of a column, or its problem."""
        from bayesrbf.table.kinds import resembled

        if raw_column.problem:
            return ReadColumn([], problem=raw_column.problem, advice=", or ignore it.")
        column, n_examples = self.written.above(self._text_column(raw_column))
        undecided = self.settings.lenient and column.kind is None
        may_resemble = undecided or column.name == self.settings.options.time
        like = resembled(column.present[0]) if may_resemble and column.present else None
        kind = column.kind if like is None else like()
        known = self.requested.get(column.name)
        read = self._in_notation(replace(column, kind=kind))
        if undecided and like is not None:
            known = kind
            topics = dict.fromkeys(("grows", "read as"), "unnamed")
            notes = (replace(note, topic=topics.get(note.topic, note.topic)) for note in read.notes)
            read = replace(read, notes=tuple(notes))
        read = replace(read, values=read.values[n_examples:], kind=known)
        inferred = column.name not in self.of_roles and column.name not in self.requested
        return _numbers_as_text(column, read) if raw_column.is_text and inferred else read

    def _text_column(self, raw_column: RawColumn) -> TextColumn:
        """Cells of a column, the kind that was decided for it, and which of them are missing."""
        from bayesrbf.table.kinds import Category

        name = raw_column.name
        of_dtype = Category() if raw_column.has_levels else None
        kind = self.requested.get(name) or self.of_roles.get(name, of_dtype)
        nothing = Missing(frozenset())
        column = TextColumn(name, raw_column.cells, self.raw.lines, nothing, self.raw.source, kind)
        words = self.raw.marked or (
            raw_column.is_text and not column.has_levels and _marked(raw_column, column.is_number)
        )
        levels = map(str, kind.levels if kind and self.settings.kinds else ())
        missing = Missing(
            frozenset(MISSING_MARKERS if words else ()).difference(levels) | {""},
            tuple(mark for mark in self.stand_ins if mark.column in (None, name)),
        )
        return replace(column, missing=missing)

    def _in_notation(self, column: TextColumn) -> ReadColumn:
        """A column in the notation of the options; texts among numbers missing if lenient."""
        options = self.settings.options
        configured = replace(
            column,
            day_first=options.day_first,
            thousands=options.thousands,
            decimal=options.decimal,
            # Where decimals have points, commas separate the cells. Models know their notation.
            points_open=self.raw.separator not in ("", ",") and not self.settings.new_rows,
            below=options.below,
        )
        read = read_column(configured)
        lenient = self.settings.lenient and read.among
        return _numbers_alone(configured, read.among) if lenient else read


def _numbers_alone(column: TextColumn, texts: Sequence[str]) -> ReadColumn:
    """A column with its texts among numbers made missing, and a note on each text."""
    missing = replace(column.missing, marks=column.missing.marks | {*texts})
    read = read_column(replace(column, missing=missing))
    notes = [n for n in read.notes if n.topic != "missing" or n.value not in texts]
    notes += [Note("text among numbers", column.name, t, column.counts[t]) for t in texts]
    return replace(read, notes=tuple(notes))


def in_one_name(read: ReadColumn, name: str) -> ReadColumn:
    """A column of a training table, with the spellings of each level merged under one name."""
    if isinstance(read.values, np.ndarray):
        return read
    counts = Counter(cell for cell in read.values if cell is not None)
    spelled = in_one_spelling(counts)
    notes = list(read.notes)
    ways: dict[str, list[str]] = {}
    for text in sorted(counts):
        ways.setdefault(spelled[text], []).append(text)
    several = {level: texts for level, texts in ways.items() if len(texts) > 1}
    if several:
        level, texts = next(iter(several.items()))
        count = sum(counts[text] for texts in several.values() for text in texts)
        notes.append(Note("one level", name, listed(list(map(repr, texts))), count, level))
    if apart := written_apart(counts):
        count = sum(counts[text] for text in apart if text in counts)
        notes.append(Note("apart", name, listed(list(map(repr, apart))), count))
    values = [None if cell is None else spelled[cell] for cell in read.values]
    return replace(read, values=values, notes=tuple(notes))


def _marked(column: RawColumn, is_number: bool) -> bool:
    """Whether words for missing count in a column with nulls: if all other cells are numbers."""
    distinct = set(column.cells)
    values = distinct.difference(MISSING_MARKERS)
    return is_number or (
        len(values) < len(distinct - {""}) and bool(values) and all(map(possible_numbers, values))
    )


def _numbers_as_text(column: TextColumn, read: ReadColumn) -> ReadColumn:
    """A column of text dtype, with a note if its integers may be codes."""
    whole = all(text.lstrip("+-").isdigit() for text in column.present)
    if not (isinstance(read.values, np.ndarray) and column.present and whole):
        return read
    note = Note("numbers as text", column.name, "", column.counts.total(), column.present[0])
    return replace(read, notes=(*read.notes, note))


def _requested_kinds(options: TableOptions, kinds: KindsOf | None) -> dict[str, Kind]:
    """Kinds of columns that options or a model give."""
    from bayesrbf.table.kinds import kind_named

    named = {name: kind_named(text) for name, text in options.kinds.items()}
    return named | dict(kinds or NO_KINDS)


# Reads files as frames, and reports the kind of every column and what was noticed.


_SEEN: Final = 1000  # Rows that are read for the names of columns, and for commas.

Judge = Callable[["pd.Series"], Iterable[str]]
"""Maps a target to messages on its problems."""


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
        The kind of every column of the frame, as ``column_kinds`` of an estimator takes it; its
        ``word`` is ``"real"``, ``"categorical"``, ``"yes or no"``, ``"date"``, ``"count"``,
        ``"ordered"`` or ``"angle"``.
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
    centres : pandas.Series or None
        The cells of the column named as ``centre``, as text.
    scores : pandas.Series or None
        The cells of the column named as ``score``, as numbers.
    by : pandas.DataFrame
        The columns named in ``by``.
    options : object
        The options that the table was read by, a frozen record.
    advised : object
        The same options as the notes advise: with values that seem to mean missing, the column
        that names the rows, and no dates.
    """

    frame: pd.DataFrame
    target: pd.Series | None
    kinds: Mapping[str, Kind]
    notes: tuple[str, ...]
    taken: pd.DataFrame
    groups: pd.Series | None
    times: pd.Series | None
    centres: pd.Series | None
    scores: pd.Series | None
    by: pd.DataFrame
    options: TableOptions
    advised: TableOptions

    def telling(self, rows: pd.DataFrame, codes: np.ndarray) -> tuple[str, ...]:
        """Messages on columns that separate a class alone; ``codes`` are the rows' classes."""
        columns: dict[str, Values] = {
            name: [
                None if missing else cell for cell, missing in zip(cells, cells.isna(), strict=True)
            ]
            if self.kinds[name].has_levels
            else cells.to_numpy(dtype=float)
            for name, cells in rows.items()
        }
        return sentences(telling(columns, codes))


def names_in_file(path: Path) -> list[str]:
    """Names of the columns of a file."""
    return [column.name for column in next(raw_blocks(path, _SEEN)).columns]


def numbers_have_commas(path: Path) -> bool:
    """Whether numbers among the first rows of a file have commas."""
    cells = {cell for column in next(raw_blocks(path, _SEEN)).columns for cell in column.cells}
    return any("," in cell and possible_numbers(cell) for cell in cells)


def read_file(
    path: Path,
    target: str | None,
    options: TableOptions,
    judge: Judge = lambda target: (),
    sampled: bool = False,
    lenient: bool = False,
    kinds: KindsOf | None = None,
) -> ReadTable:
    """Read a file, or random rows of a long one, by a record of options.

    Problems that ``judge`` finds in the target are reported with all others. A ``lenient`` reader
    leaves columns out that it cannot read, and reads dates that were not named, with a note on
    each. New rows have the ``kinds`` of a model, whose levels are never missing, and the options of
    its table: they need not have its values of ``na``, and no option solves a problem of new rows.
    """
    settings = ReaderSettings(path.name, target, options, lenient, kinds)
    return _read(read_raw(path, sampled), settings, judge)


def read_cells(raw: RawTable, name: str, options: TableOptions, kinds: KindsOf) -> ReadTable:
    """Read new rows without a target from columns of cells, as from a file of this name."""
    return _read(raw, ReaderSettings(name, None, options, kinds=kinds))


def read_blocks(
    path: Path, options: TableOptions, size: int, kinds: KindsOf = NO_KINDS
) -> Iterator[ReadTable]:
    """Blocks of ``size`` rows of a file without a target, as :func:`read_file` reads it whole.

    The notation of numbers and dates depends on all cells of a column. Where there are several
    blocks, columns without levels are therefore read twice, first for examples of each notation.
    """
    settings = ReaderSettings(path.name, None, options, kinds=kinds)
    blocks = raw_blocks(path, size)
    first, second = next(blocks), next(blocks, None)
    if second is None:
        yield _read(first, settings)
        return
    requested = _requested_kinds(options, kinds).items()
    examples = Written([name for name, kind in requested if not kind.has_levels])
    for block in chain((first, second), blocks):
        examples.look(block)
    for block in raw_blocks(path, size):
        yield _read(block, settings, written=examples)


def _read(
    raw: RawTable,
    settings: ReaderSettings,
    judge: Judge = lambda target: (),
    written: Written | None = None,
) -> ReadTable:
    """Table of rows of a file; ``written`` has example cells of its other rows."""
    if not settings.new_rows:  # new rows of a typed table have one answer each
        raw = raw.without_empty_rows()
    for note in raw.notes:
        if settings.new_rows and note.topic == "skipped":
            warn(note.value)
    columns = _columns(raw, settings, written or Written(()))
    unread: list[Note] = []
    if settings.lenient:
        unread = [Note("unread", n, r.sentence()) for n, r in columns.items() if r.problem]
        columns = {name: read for name, read in columns.items() if not read.problem}
    if problems := [*_problems(raw, columns, settings, judge)]:
        raise TableError(*problems)
    model = [name for name in columns if name not in (settings.target, *settings.options.beside)]
    doubts = _doubts(columns, model, settings.target)
    left_out = [note for note in doubts if note.topic in LEFT_OUT]
    ignored = [note.column for note in (*unread, *left_out)]
    model = [name for name in model if name not in ignored]
    if not model:
        raise TableError(*_no_column_left(unread, left_out, settings))
    options = replace(settings.options, ignore=(*settings.options.ignore, *ignored))
    return _assembled(columns, model, raw, replace(settings, options=options), [*unread, *doubts])


def _columns(raw: RawTable, settings: ReaderSettings, written: Written) -> dict[str, ReadColumn]:
    """Columns that are not ignored; in a training table each level has one name."""
    reader = ColumnReader.of(raw, settings, written)
    options = reader.settings.options
    ignored = {*options.ignore}.difference(options.by)
    columns = {c.name: reader.read(c) for c in raw.columns if c.name not in ignored}
    if settings.new_rows:  # a model has the names of theirs
        return columns
    names = {name: read for name, read in columns.items() if name == options.id}
    return {name: in_one_name(read, name) for name, read in columns.items()} | names


def _problems(
    raw: RawTable, columns: Mapping[str, ReadColumn], settings: ReaderSettings, judge: Judge
) -> Iterator[str]:
    """Messages on options, columns, the target, and stand-ins that occur in no cell."""
    import pandas as pd

    of_options = [*_misnamed(raw, settings)]
    yield from of_options
    yield from (note.value for note in raw.notes if of_options and note.topic == "sheets")
    yield from _unreadable(columns, settings)
    target = None if settings.target is None else columns.get(settings.target)
    if target is not None and not target.problem:
        yield from judge(pd.Series(target.values, dtype=object))
    if raw.whole and not settings.new_rows:
        yield from _unmatched(columns, raw, settings)


def _unreadable(columns: Mapping[str, ReadColumn], settings: ReaderSettings) -> Iterator[str]:
    """Messages on columns that cannot be read, then on those with numbers outside their kind."""
    options = settings.options
    mark = "," if options.decimal == "," or options.thousands == "." else "."
    for read in columns.values():
        form = f"numbers as 1234{mark}5"
        if read.kind and read.kind.of_texts:
            form = f"{read.kind.cell_description} as {read.kind.example}"
        if read.problem:
            yield read.sentence(f"Write {form}, or leave it empty." if settings.new_rows else "")
    for name, read in columns.items():
        if read.kind is None or not isinstance(read.values, np.ndarray):
            continue
        if refusal := read.kind.refusal(name, read.values):
            yield refusal


def _no_column_left(
    unread: Sequence[Note], left_out: Sequence[Note], settings: ReaderSettings
) -> Iterator[str]:
    """Messages on a table without a column for the model."""
    yield from (note.value for note in unread)
    beside = "" if settings.target is None else f" beside the target {settings.target!r}"
    names = listed([note.column for note in left_out])
    why = f": {names} hardly repeats and was left out" if left_out else ""
    yield f"{settings.name}: no column is left{beside}{why}; keep at least one."


def _unmatched(
    columns: Mapping[str, ReadColumn], raw: RawTable, settings: ReaderSettings
) -> Iterable[str]:
    """Messages on stand-ins that occur in no cell; unread columns are matched as written."""
    if not settings.options.na:
        return ()
    cells = {raw_column.name: set(raw_column.cells) for raw_column in raw.columns}
    marks = [
        (column, note.value)
        for column, read in columns.items()
        for note in read.notes
        if note.topic == "missing"
    ]
    marks += [(column, cell) for column in cells.keys() - columns.keys() for cell in cells[column]]
    return unmatched(stand_ins(settings.options.na, cells), marks, cells, settings.name)


def no_column(column: str, header: Sequence[str], name: str) -> str:
    """Message on a column that does not exist."""
    near = difflib.get_close_matches(column, header, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {listed(header, 20)}."
    return f"{name} has no column {column!r}; {hint}"


TOGETHER: Final = (
    {"id", "group"},
    {"group", "centre"},
    {"time", "dates"},
    {"time", "kind"},
    {"target", "categorical"},
    {"target", "real"},
)
"""Options that may name the same column; so may ``by``, except with a target or a score."""


def _misnamed(raw: RawTable, settings: ReaderSettings) -> Iterator[str]:
    """Messages on options that name no column of the table, or one column in two roles."""
    header = [column.name for column in raw.columns]
    of_target = {} if settings.target is None else {"target": (settings.target,)}
    uses = settings.options.named() | of_target
    for column in dict.fromkeys(column for names in uses.values() for column in names):
        if column not in header:
            yield no_column(column, header, settings.name)
            continue
        roles = [role for role, names in uses.items() if column in names]
        distinct_roles = {*roles}
        if "by" in distinct_roles and not distinct_roles & {"target", "score"}:
            distinct_roles -= {"by", "ignore"}
        if len(distinct_roles) > 1 and distinct_roles not in TOGETHER:
            words = " and ".join(f"--{role}" for role in roles)
            yield f"Column {column!r} cannot be what {words} say together; choose one."
    options = settings.options
    mark, point = options.thousands, options.decimal
    if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-%"):
        yield f"--thousands takes one character, such as a comma; got {mark!r}."
    if point not in (None, ",", "."):
        yield f"--decimal takes a comma or a point; got {point!r}."
    if options.below not in BELOW:
        yield f"--below takes limit or missing; got {options.below!r}."
    if mark is not None and mark == point:
        yield f"--thousands and --decimal are both {mark!r}; choose one."


def _assembled(
    columns: dict[str, ReadColumn],
    model: Sequence[str],
    raw: RawTable,
    settings: ReaderSettings,
    doubts: Sequence[Note],
) -> ReadTable:
    """Frame of the columns that were read, with targets, roles and notes."""
    import pandas as pd

    options = settings.options
    index: pd.Index = pd.RangeIndex(len(raw.lines)) if raw.index is None else raw.index
    if options.id is not None:
        index = pd.Index(columns[options.id].values, dtype=text_dtype(), name=options.id)
    notes = [*_notes(columns, model, options), *doubts, *raw.notes]
    if not any(note.topic == "decimal commas" for note in notes):
        notes = [note for note in notes if note.topic != "points"]
    kinds = {name: _kind_of(read.values, read.kind) for name, read in columns.items()}
    words = {name: kind.word for name, kind in kinds.items()}
    roles: dict[Any, str] = {**words, **dict.fromkeys(options.ignore, "ignored")}
    roles |= {settings.target: "target", options.id: "id", options.group: "group"}
    roles |= {options.time: "time", options.centre: "centre", options.score: "score"}

    def cells(values: Values) -> Any:
        return values if _is_real(values) else pd.array(values, dtype=text_dtype())

    def series(name: str | None, text: Any = None) -> pd.Series | None:
        if name is None:
            return None
        values = columns[name].values
        dtype = "float64" if _is_real(values) else text or text_dtype()
        return pd.Series(values, index, dtype=dtype, name=name)

    options = _decided(options, columns, notes)
    return ReadTable(
        frame=pd.DataFrame({name: cells(columns[name].values) for name in model}, index),
        target=series(settings.target, "object"),
        kinds={name: kinds[name] for name in model},
        notes=sentences(notes),
        taken=_taken([column.name for column in raw.columns], roles, notes),
        groups=series(options.group),
        times=series(options.time),
        centres=series(options.centre),
        scores=series(options.score),
        by=pd.DataFrame({name: cells(columns[name].values) for name in options.by}, index),
        options=options,
        advised=with_remedies(options, notes),
    )


def _decided(
    options: TableOptions, columns: dict[str, ReadColumn], notes: Sequence[Note]
) -> TableOptions:
    """Options with the notation that this table settles, for new tables too short to settle it."""
    marks = {note.value for note in notes if note.topic == "thousands" and note.value in ",."}
    commas = any(note.topic == "decimal commas" for note in notes)
    if len(marks) == 1 and not (commas and "," in marks):
        options = replace(options, thousands=options.thousands or marks.pop())
    if commas and options.thousands != ",":
        options = replace(options, decimal=options.decimal or ",")
    first = any(read.day_first for read in columns.values())
    return replace(options, day_first=options.day_first or first)


def _kind_of(values: Values, requested: Kind | None) -> Kind:
    """Kind of a column with its levels."""
    from bayesrbf.table.kinds import Category, Real, recognised, sorted_levels

    present = (
        [] if isinstance(values, np.ndarray) else [cell for cell in values if cell is not None]
    )
    if requested is not None and (requested.has_levels or _is_real(values)):
        return requested.learned(present) if present else requested
    if not present:
        return Real() if _is_real(values) else Category()
    return recognised(sorted_levels(present))


def _is_real(values: Values) -> bool:
    """Whether a column was read as numbers."""
    return isinstance(values, np.ndarray)


def _notes(
    columns: dict[str, ReadColumn], model: Sequence[str], options: TableOptions
) -> Iterable[Note]:
    """Notes on the columns of the model, and on the names and times of rows."""
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
    columns: Mapping[str, ReadColumn], model: Iterable[str], target: str | None
) -> list[Note]:
    """Notes on doubtful columns of the model and its labels, except where the user decided."""
    notes = notice({name: read.measured for name, read in columns.items()}, model, target)
    return [note for note in notes if note.topic not in NAMING or columns[note.column].kind is None]


def text_dtype() -> Any:
    """Text dtype of this pandas; "str" would turn None into text before version 3."""
    import pandas as pd

    return pd.Series(["text"]).dtype


def _taken(header: Sequence[str], roles: Mapping[Any, str], notes: Sequence[Note]) -> pd.DataFrame:
    """One row for each column and each note on it."""
    import pandas as pd

    rows = []
    for name in header:
        column_notes = [note for note in notes if note.column == name] or [Note("", name)]
        rows += [(name, roles[name], f"{n.topic} {n.value}".strip(), n.count) for n in column_notes]
    return pd.DataFrame(rows, columns=["column", "kind", "note", "count"])


# Reading a table in Python: options as keywords.


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
    angle: str | Sequence[str] = (),
    ordered: str | Sequence[str] = (),
    count: str | Sequence[str] = (),
    kind: str | Sequence[str] = (),
    thousands: str | None = None,
    decimal: str | None = None,
    below: str = "limit",
    dates: str | Sequence[str] = (),
    day_first: bool = False,
    group: str | None = None,
    time: str | None = None,
    centre: str | None = None,
    by: str | Sequence[str] = (),
    score: str | None = None,
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
    angle : str or sequence of str
        Columns of angles and times of day, with the period where it is not 360: ``"hour=24"``.
    ordered : str or sequence of str
        Columns of ordered levels, with the order where it is not that of the numbers in them:
        ``"pain=none<mild<severe"``.
    count : str or sequence of str
        Columns of whole numbers from 0.
    kind : str or sequence of str
        Columns of any other kind, with its name: ``"fat=share"``.
    thousands : str, optional
        The character that sets thousands apart, where the numbers leave it open: ``"1,234"``.
    decimal : str, optional
        The decimal mark, where the numbers leave it open: a comma or a point.
    below : {"limit", "missing"}
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
    centre : str, optional
        Column of centres, such as hospitals.
    by : str or sequence of str
        Columns by whose levels or ranges figures are told apart. They stay in the frame, unless
        ``ignore`` names them, too.
    score : str, optional
        Column with an existing score, as probabilities or points.

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
        angle=_several(angle),
        ordered=_several(ordered),
        count=_several(count),
        kind=_several(kind),
        thousands=thousands,
        decimal=decimal,
        below=below,
        dates=_several(dates),
        day_first=day_first,
        group=group,
        time=time,
        centre=centre,
        by=_several(by),
        score=score,
    )
    if isinstance(table, str | os.PathLike):
        return read_file(Path(table), target, options)
    return _read(raw_frame(table), ReaderSettings("the frame", target, options))


def _marks(na: Mark | Sequence[Mark] | Mapping[str, Mark | Sequence[Mark]]) -> tuple[str, ...]:
    """Stand-ins for missing cells, as they would be typed on the command line."""
    if isinstance(na, Mapping):
        return tuple(f"{name}={mark}" for name, marks in na.items() for mark in _marks(marks))
    several = na if isinstance(na, Iterable) and not isinstance(na, str) else (na,)
    return tuple(map(str, several))


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)

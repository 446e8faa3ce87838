"""What was noticed of a table, in sentences: the most harmful first, like notes as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from bayesrbf.reading.notes import Note, listed, option


def sentences(notes: Iterable[Note]) -> tuple[str, ...]:
    """The most harmful first; notes that differ by their columns alone are one sentence.

    >>> found = [Note("stand-in", "age", "-999", 2), Note("stand-in", "weight", "-999", 3)]
    >>> print(*sentences(found))
    Columns 'age' and 'weight' hold -999 in 2 and 3 cells, far from all other values: if it means
    missing, say --na=-999.
    """
    order = list(TOPICS)
    ranked = sorted(notes, key=lambda note: order.index(note.topic))
    places = {(note.topic, note.value): place for place, note in reversed([*enumerate(ranked)])}
    ranked.sort(key=lambda note: places[note.topic, note.value])
    like = groupby(ranked, key=lambda note: (note.topic, note.value))
    return tuple(TOPICS[topic](list(same)) for (topic, _), same in like)


def _columns(notes: Sequence[Note], one: str, many: str) -> str:
    """The columns of like notes and the verb that goes with them."""
    names = listed([repr(note.column) for note in notes])
    return f"Column {names} {one}" if len(notes) == 1 else f"Columns {names} {many}"


def _names(notes: Sequence[Note]) -> tuple[str, ...]:
    """The columns of like notes."""
    return tuple(note.column for note in notes)


def _often(notes: Sequence[Note]) -> str:
    """How often each column has it; "-999 2 times" would be read as one number."""
    counts = listed([note.count for note in notes])
    return f"in {counts} cells" if [note.count for note in notes] != [1] else "in one cell"


def _holds(notes: Sequence[Note]) -> str:
    return _columns(notes, "holds", "hold")


def _missing(notes: Sequence[Note]) -> str:
    """The option by which a value is missing, in these columns only where others have it."""
    if not notes[0].elsewhere:
        return option("na", notes[0].value)
    return option("na", *(f"{note.column}={note.value}" for note in notes))


def _stand_in(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} {notes[0].value} {_often(notes)}, far from all other values: if it "
        f"means missing, say {_missing(notes)}."
    )


def _only_negative(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} {notes[0].value} {_often(notes)}, and no other negative value: if it "
        f"means missing, say {_missing(notes)}."
    )


def _word(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} {notes[0].value!r} {_often(notes)}, read as a category: if it means "
        f"missing, say {_missing(notes)}."
    )


def _identifier(notes: Sequence[Note]) -> str:
    one = option("id", notes[0].column)
    return (
        f"{_columns(notes, 'has', 'have')} {notes[0].value}, such as {notes[0].example}: if "
        f"{'it names' if len(notes) == 1 else 'one of them names'} the rows, say {one}; if it "
        f"tells nothing, {option('ignore', *_names(notes))}."
    )


def _kept(notes: Sequence[Note]) -> str:
    """That columns are left out, and how to keep them."""
    many = len(notes) > 1
    return (
        f"{'They are' if many else 'It is'} left out, as by {option('ignore', *_names(notes))}; "
        f"{option('categorical', *_names(notes))} keeps {'them' if many else 'it'} as categories."
    )


def _names_of_rows(notes: Sequence[Note]) -> str:
    many = len(notes) > 1
    return (
        f"{_columns(notes, 'has', 'have')} texts that are all different, such as "
        f"{notes[0].example!r}. {_kept(notes)} If {'one of them' if many else 'it'} names the "
        f"rows, say {option('id', notes[0].column)}."
    )


def _free_text(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} text that hardly repeats ({listed([n.count for n in notes])} distinct "
        f"values), such as {notes[0].example!r}. {_kept(notes)}"
    )


def _many_units(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} text such as {notes[0].example!r} that hardly repeats; if it is a "
        f"quantity, write plain numbers. {_kept(notes)}"
    )


def _repeated_names(notes: Sequence[Note], left: str = "") -> str:
    """Names of patients and the like, of whom several have more than one row."""
    one = notes[0]
    return (
        f"{_columns(notes, 'has', 'have')} {one.value}, such as {one.example}, as where patients "
        "come again. Rows of one patient would be both fitted and held out, and the scores too "
        "good. If it says which rows belong together, say "
        f"{option('group', one.column)}{left or f'. {_kept(notes)}'}"
    )


def _kept_names(notes: Sequence[Note]) -> str:
    return _repeated_names(notes, f"; if it tells nothing, {option('ignore', *_names(notes))}.")


def _limits(notes: Sequence[Note]) -> str:
    texts = listed([f"{note.example!r} in {note.column!r}" for note in notes])
    counts = listed([note.count for note in notes])
    cells = "cell" if [note.count for note in notes] == [1] else "cells"
    if notes[0].value == "missing":
        return f"Cells beyond a limit, such as {texts} ({counts} {cells}), were read as missing."
    return (
        f"Cells beyond a limit, such as {texts} ({counts} {cells}), were read as a value of their "
        "own, next to the limit: they are not missing. To read them as missing, say --below "
        "missing."
    )


def _numbers_as_text(notes: Sequence[Note]) -> str:
    return (
        f"{_holds(notes)} whole numbers written as text, such as {notes[0].example!r}, read as "
        f"numbers; if they are codes, say {option('categorical', *_names(notes))}."
    )


def _points(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'has', 'have')} three digits after every point, such as "
        f"{notes[0].example}, read as decimals, while other columns have decimal commas: if the "
        f"points set thousands apart, say {option('thousands', '.')}."
    )


def _percent(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'has', 'have')} percent signs, read as numbers in per cent: "
        f"{notes[0].example!r} is {notes[0].value}."
    )


def _currency(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'holds', 'hold')} amounts in {notes[0].value}, such as "
        f"{notes[0].example!r}, read as numbers."
    )


def _thousands(notes: Sequence[Note]) -> str:
    mark = {" ": "a blank", "'": "an apostrophe"}.get(notes[0].value, repr(notes[0].value))
    return (
        f"{_columns(notes, 'sets', 'set')} thousands apart by {mark}, such as "
        f"{notes[0].example!r}, read as numbers."
    )


def _dates(notes: Sequence[Note]) -> str:
    how = f", {notes[0].value}" if notes[0].value else ""
    return (
        f"{_columns(notes, 'holds', 'hold')} dates{how}, read as days since 2000-01-01. New rows "
        "have later dates than any that the model has seen: if the date tells nothing, say "
        f"{option('ignore', *_names(notes))}."
    )


def _unnamed_dates(notes: Sequence[Note]) -> str:
    names = _names(notes)
    named, ignored = option("dates", *names), option("ignore", *names)
    return (
        f"{_holds(notes)} dates, looked at as days since 2000-01-01: to fit, say {named} to read "
        f"them so, {option('time', names[0])} to hold the latest rows out, or {ignored}."
    )


def _unread(notes: Sequence[Note]) -> str:
    return f"Left out: {notes[0].value}"


def _units(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'holds', 'hold')} text such as {notes[0].example!r}, read as "
        "categories; if it is a quantity, write plain numbers."
    )


def _codes(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'holds', 'hold')} {notes[0].value}, such as {notes[0].example!r}: read "
        f"as categories; if they are quantities, say {option('real', *_names(notes))}."
    )


def _few(notes: Sequence[Note]) -> str:
    return (
        f"{_columns(notes, 'holds', 'hold')} the whole numbers {notes[0].value}: read as real; if "
        f"they are codes, say {option('categorical', *_names(notes))}."
    )


def _marks(notes: Sequence[Note]) -> str:
    return f"{notes[0].value!r} was read as missing: {_in_columns(notes)}."


def _in_columns(notes: Sequence[Note]) -> str:
    """How many cells of each column."""
    return listed(
        [
            f"{note.count} {'cell' if note.count == 1 else 'cells'} of {note.column!r}"
            for note in notes
        ]
    )


def _decimal_commas(notes: Sequence[Note]) -> str:
    return f"{_columns(notes, 'has', 'have')} decimal commas, such as {notes[0].example!r}."


def _constant(notes: Sequence[Note]) -> str:
    many = len(notes) > 1
    return f"{_columns(notes, 'holds', 'hold')} one value only{' each' if many else ''}."


def _empty(notes: Sequence[Note]) -> str:
    return f"{_columns(notes, 'has', 'have')} no value."


def _repeated(notes: Sequence[Note]) -> str:
    return (
        f"{notes[0].count} rows of {notes[0].column!r}, which names the rows, have a name that "
        f"stands above already, such as {notes[0].example!r}: if such rows belong together, say "
        f"{option('group', notes[0].column)}."
    )


def _untimed(notes: Sequence[Note]) -> str:
    return (
        f"{notes[0].count} rows have no {notes[0].column!r}: they are never held out, and every "
        "fit learns from them."
    )


def _file(notes: Sequence[Note]) -> str:
    return notes[0].value


TOPICS: Final[Mapping[str, Callable[[Sequence[Note]], str]]] = {
    "unread": _unread,
    "stand-in": _stand_in,
    "only negative": _only_negative,
    "identifier": _identifier,
    "word for missing": _word,
    "repeated names": _repeated_names,
    "repeated numbers": _kept_names,
    "repeated texts": _kept_names,
    "names of rows": _names_of_rows,
    "free text": _free_text,
    "many units": _many_units,
    "limits": _limits,
    "repeated name": _repeated,
    "points": _points,
    "without time": _untimed,
    "unnamed dates": _unnamed_dates,
    "dates": _dates,
    "percent": _percent,
    "currency": _currency,
    "thousands": _thousands,
    "units": _units,
    "codes": _codes,
    "numbers as text": _numbers_as_text,
    "few whole numbers": _few,
    "decimal commas": _decimal_commas,
    "missing": _marks,
    "constant": _constant,
    "empty": _empty,
    "file": _file,
}
"""What a sentence is made by, the most harmful topic first."""

LEFT_OUT: Final = frozenset({"repeated names", "names of rows", "free text", "many units"})
"""Topics of columns of text that are no categories, because their cells hardly repeat."""

NAMING: Final = LEFT_OUT | {"identifier", "repeated numbers", "repeated texts"}
"""Topics of columns that may name rows or patients, of which nothing is said where a kind is."""

"""Options of a reader of tables: how cells are written, and the role of each column."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Final

BELOW: Final = ("limit", "missing")
"""Values of ``below``."""
_ALONE: Final = ("id", "group", "time", "centre", "score")
_PLAIN: Final = ("ignore", "categorical", "real", "count", "dates", "by")
_WITH_DETAIL: Final = ("angle", "ordered")


def _with_detail(text: str) -> tuple[str, str]:
    """Name before the last equals sign, and the text behind it."""
    name, equals, detail = text.rpartition("=")
    return (name, detail) if equals else (detail, "")


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, the same for training and for new rows.

    Attributes
    ----------
    na : tuple of str
        Cells that mean missing, beside empty ones, NA and the like: -999,unknown or repeated;
        age=-999 in one column only. A number is found however it is written. Where numbers of
        the table have commas, -999,0 is one value.
    id : str, optional
        Column that names the rows; it is no part of the model.
    ignore : tuple of str
        Columns to leave out: a,b or repeated.
    categorical : tuple of str
        Columns of numbers that are codes: a,b or repeated.
    real : tuple of str
        Columns that are quantities, though they look like codes: a,b or repeated.
    angle : tuple of str
        Columns of angles and times of day, with the period where it is not 360: wind,hour=24.
    ordered : tuple of str
        Columns of ordered levels, with the order where it is not that of the numbers in them:
        stage,pain=none<mild<severe.
    count : tuple of str
        Columns of whole numbers from 0: a,b or repeated.
    kind : tuple of str
        Columns of any other kind, with its name: a=share.
    thousands : str, optional
        The character that sets thousands apart, where numbers leave it open: "," makes
        1,234 one thousand.
    decimal : str, optional
        The decimal mark, where numbers leave it open: "," makes 1,234 a bit more than one.
    below : {"limit", "missing"}
        What <5 is among numbers: a value of its own, next to the limit, or a missing cell.
    dates : tuple of str
        Columns of dates, read as days since 2000-01-01: a,b or repeated.
    day_first : bool
        Dates such as 3/4/2020 have the day first, where their column leaves it open.
    group : str, optional
        Column whose rows belong together, such as those of a patient: they are never on
        both sides of a split. It is no part of the model.
    time : str, optional
        Column of numbers or dates: the latest rows are held out, and judge the fit to the
        earlier ones. It is no part of the model.
    centre : str, optional
        Column of centres, such as hospitals: each is held out in turn, predicted from all
        others, and gets figures of its own. It is no part of the model.
    by : tuple of str
        Columns by whose levels or ranges report and validate tell figures apart: sex,ward or
        repeated. They stay in the model, unless --ignore names them, too.
    score : str, optional
        Column with an existing score, as probabilities or points, which report, validate and
        compare set beside the model. It is no part of the model.
    """

    na: tuple[str, ...] = ()
    id: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    angle: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    count: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str | None = None
    below: str = "limit"
    dates: tuple[str, ...] = ()
    day_first: bool = False
    group: str | None = None
    time: str | None = None
    centre: str | None = None
    by: tuple[str, ...] = ()
    score: str | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns with a role outside the model: id, group, time, centre, score, ignored ``by``."""
        alone = (getattr(self, option) for option in _ALONE)
        ignored = (name for name in self.by if name in self.ignore)
        return (*(name for name in alone if name is not None), *ignored)

    @property
    def of_new_rows(self) -> TableOptions:
        """The options without those of training rows alone: group, time, centre, by, score."""
        return replace(self, group=None, time=None, centre=None, by=(), score=None)

    @property
    def kinds(self) -> dict[str, str]:
        """Requested kinds of columns by name.

        >>> TableOptions(angle=("wind", "hour=24"), kind=("fat=share",)).kinds
        {'wind': 'angle', 'hour': 'angle:24', 'fat': 'share'}
        """
        words = {"categorical": "categorical", "real": "real", "count": "count", "dates": "date"}
        kinds = {name: word for option, word in words.items() for name in getattr(self, option)}
        for word in _WITH_DETAIL:
            for name, detail in map(_with_detail, getattr(self, word)):
                kinds[name] = f"{word}:{detail}" if detail else word
        return kinds | dict(map(_with_detail, self.kind))

    def named(self) -> dict[str, tuple[str, ...]]:
        """The columns that each option names.

        >>> TableOptions(id="case", ignore=("note",)).named()["id"]
        ('case',)
        """
        several = {option: getattr(self, option) for option in _PLAIN}
        for option in (*_WITH_DETAIL, "kind"):
            several[option] = tuple(_with_detail(text)[0] for text in getattr(self, option))
        alone = {option: getattr(self, option) for option in _ALONE}
        return several | {option: (name,) for option, name in alone.items() if name is not None}

    def among(self, header: Collection[str]) -> TableOptions:
        """Copy of the options without the columns that are not in ``header``.

        >>> TableOptions(id="case", ignore=("note", "age")).among(["age"])
        TableOptions(na=(), id=None, ignore=('age',), ...)
        """
        options: dict[str, Any] = {
            option: tuple(name for name in getattr(self, option) if name in header)
            for option in _PLAIN
        }
        for option in (*_WITH_DETAIL, "kind"):
            there = (text for text in getattr(self, option) if _with_detail(text)[0] in header)
            options[option] = tuple(there)
        alone = {option: getattr(self, option) for option in _ALONE}
        options |= {option: name if name in header else None for option, name in alone.items()}
        return replace(self, **options)


PLAIN: Final = TableOptions()
"""Options by default."""

"""Numbers and lists as text, and values as JSON has them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.reading.notes import listed

if TYPE_CHECKING:
    import pandas as pd

    from bayesrbf.answers.scores import Interval


SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
THIN = "\u202f"
MINUS = "\u2212"
PERCENT = "\u00a0%"


def number(value: float) -> str:
    r"""A figure (:func:`figure`) that is whole without its zeros, as a count or a cost is.

    >>> number(0.012345), number(12345.0), number(-2.0), number(3e-12), number(float("nan"))
    ('0.0123', '12\u202f300', '−2', '3.00 × 10⁻¹²', '–')
    """
    whole, _, fraction = figure(value).partition(".")
    return f"{whole}.{fraction}" if fraction.strip("0") else whole


def figure(value: float) -> str:
    r"""Three significant digits, plain from 1e-4 to 1e6, else a power of ten; a dash for NaN.

    >>> figure(0.9), figure(1.0), figure(0.0)
    ('0.900', '1.00', '0')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value) or value == 0:
        return "0" if value == 0 else ("∞" if value > 0 else MINUS + "∞")
    mantissa, exponent = f"{abs(value):.2e}".split("e")
    power = int(exponent)
    if -4 <= power <= 5:
        rounded = round(abs(value), 2 - power)
        text = _grouped(f"{rounded:.{max(0, 2 - power)}f}")
    else:
        text = f"{mantissa} × 10{str(power).translate(SUPERSCRIPTS)}"
    return (MINUS if value < 0 else "") + text


MAX_DECIMALS: Final = 6
PARTS_OF_RANGE: Final = 1000.0
"""Parts of a column's range that its numbers tell apart, where its values are that fine."""
ROUNDING_ERROR: Final = 1e-9  # Share of a figure below which an error is that of arithmetic.
UNGROUPED: Final = 10_000
"""Below it a cell is written without a gap: 2010 may be a year."""


def decimals_of(values: Float[np.ndarray, " value"], as_written: bool = True) -> int | None:
    """Decimals that a column's cells need; None where powers of ten serve them better.

    As many as tell a thousandth of their range apart and, ``as_written``, no more than they have.

    >>> decimals_of(np.array([2010.0, 2014.0])), decimals_of(np.array([0.1, 2.4]))
    (0, 1)
    >>> decimals_of(np.array([0.12345678, 9.87654321])), decimals_of(np.array([1e-9, 3e-9]))
    (3, None)
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0
    most = float(np.abs(finite).max())
    span = float(np.ptp(finite)) or most or 1.0
    needed = max(0, math.ceil(math.log10(PARTS_OF_RANGE) - math.log10(span) - 1e-9))
    for decimals in range(min(needed, MAX_DECIMALS + 1)) if as_written else ():
        if np.allclose(finite, np.round(finite, decimals), rtol=1e-12, atol=0.0):
            return decimals
    return needed if needed <= MAX_DECIMALS and most < 1e12 else None


def cell(value: float, decimals: int | None) -> str:
    r"""Text of a cell with this number of decimals (:func:`decimals_of`).

    >>> cell(2010.0, 0), cell(-12345.6, 1), cell(0.5, 3), cell(3e-9, None)
    ('2010', '−12\u202f345.6', '0.500', '3.00 × 10⁻⁹')
    """
    if decimals is None or not math.isfinite(value):
        return number(value)
    text = f"{abs(value):.{decimals}f}"
    whole, point, fraction = text.partition(".")
    if int(whole) >= UNGROUPED:
        whole = f"{int(whole):,}".replace(",", THIN)
    sign = MINUS if value < 0 and float(text) else ""
    return f"{sign}{whole}{point}{fraction}"


def between(low: str, high: str) -> str:
    """An interval in words; one number where its ends read the same, a dash where there is none.

    >>> between("1", "2"), between("1", "1"), between("–", "–")
    ('1 to 2', '1', '–')
    """
    return low if low == high else f"{low} to {high}"


def ends(low: float, high: float, form: Callable[[float], str] = number) -> str:
    r"""An interval of two figures in words; a dash where it is not known.

    >>> ends(0.25, 0.5, percent), ends(0.1, float("nan"))
    ('25\xa0% to 50\xa0%', '–')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    return between(form(low), form(high))


def with_ends(interval: Interval, form: Callable[[float], str] = figure) -> str:
    """A figure and its interval, in brackets; a dash where it is not known."""
    if math.isnan(interval.value):
        return "–"
    return f"{form(interval.value)} ({ends(interval.lower, interval.upper, form)})"


def tick(value: float, step: float) -> str:
    """Text of an axis tick, with the digits that distinguish ticks a step apart.

    >>> tick(0.2, 0.1), tick(2012.0, 2.0), tick(-1.5, 0.5), tick(2e9, 1e9)
    ('0.2', '2012', '−1.5', '2 × 10⁹')
    """
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else MAX_DECIMALS + 1
    if decimals <= MAX_DECIMALS and abs(value) < 1e6:
        return cell(value, decimals)
    digits, power, exponent = number(value).partition(" × ")
    short = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return short + power + exponent


def spread(value: float) -> str:
    """Two significant digits of a standard error, one less than :func:`number` gives.

    >>> spread(0.02918), spread(12.34)
    ('0.029', '12')
    """
    if not math.isfinite(value) or value == 0:
        return number(value)
    rounded = float(f"{value:.1e}")
    text = number(rounded)
    return text.removesuffix("0") if "." in text and "×" not in text else text


def estimate(value: tuple[float, float]) -> str:
    """A figure and its standard error, which is left out where it is none but rounding.

    >>> estimate((0.366, 0.0231)), estimate((0.687, 2e-16))
    ('0.366 ± 0.023', '0.687')
    """
    figure, error = value
    if not error > ROUNDING_ERROR * abs(figure):
        return number(figure)
    return f"{number(figure)} ± {spread(error)}"


def exact(value: float) -> str:
    """A number as it is written, to six significant digits and every whole one.

    >>> exact(2010.0), exact(0.0), exact(1.25), exact(1.51808), exact(1e-7)
    ('2010', '0', '1.25', '1.51808', '1.00 × 10⁻⁷')
    """
    if 1e5 <= abs(value) < 1e12:
        return cell(value, 0)
    six = f"{value:.6g}"
    return number(value) if "e" in six else cell(float(six), len(six.partition(".")[2]))


def _grouped(decimal: str) -> str:
    """A decimal with its thousands set apart."""
    whole, point, fraction = decimal.partition(".")
    return f"{int(whole):,}".replace(",", THIN) + point + fraction


def count(value: int) -> str:
    r"""A whole number with its thousands set apart.

    >>> count(1234567)
    '1\u202f234\u202f567'
    """
    return f"{value:,}".replace(",", THIN)


def percent(share: float) -> str:
    r"""A share in per cent, with two or three significant digits; no line breaks before the sign.

    >>> percent(0.3), percent(0.0123), percent(1.0), percent(0.9999)
    ('30\xa0%', '1.23\xa0%', '100\xa0%', '> 99.9\xa0%')
    """
    if math.isnan(share):
        return "–"
    if 0.999 < share < 1:
        return f"> 99.9{PERCENT}"
    if 0 < share < 1e-4:
        return f"< 0.01{PERCENT}"
    return f"{number(round(100 * share, 3 if share < 0.1 else 1))}{PERCENT}"


PROMISE: Final = (
    "Probabilities and intervals are for new rows that come as the training rows came: the same "
    "population, cells missing for the same reasons. If cells of new rows will be missing, or "
    'measured, for other reasons, say so: missingness="ignorable".'
)
"""What a probability stands for, in the words of README, pages, report and card."""


NO_DRAWS: Final = "The model has no draws, and so no intervals."
NO_DENSITY: Final = (
    "The model has no density of rows: it does not say which cells or rows are odd, nor what a "
    "cell would tell."
)


def plural(quantity: int, noun: str, nouns: str | None = None) -> str:
    """A count and its noun; the plural is ``noun`` and an s by default.

    >>> plural(1, "row"), plural(0, "class", "classes")
    ('1 row', '0 classes')
    """
    return f"{count(quantity)} {noun if quantity == 1 else nouns or noun + 's'}"


def listing(items: Sequence[object], most: int = 4) -> str:
    """Items in a sentence, at most ``most`` of them spelled out.

    >>> listing(["a", "b"]), listing([]), listing(list("abcdef"), most=2)
    ('a and b', '', 'a, b and 4 more')
    """
    return listed(items, most)


_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters but tab and newline, turns of the writing direction, halves of characters."""


def harmless[T: str](text: T) -> T:
    r"""Text for a page or a terminal: control characters become visible signs.

    >>> harmless("\x1b[31mred\u202e")
    '�[31mred�'
    """
    return type(text)(_UNSEEN.sub("�", text))


def say(*lines: str) -> None:
    """Print lines that may hold text from a table."""
    for line in lines:
        print(harmless(line))


def one_line(text: object) -> str:
    r"""Text on one line, uncut, so that it can be copied.

    >>> one_line("say\n--na=-999.")
    'say --na=-999.'
    """
    return "".join(c if c.isprintable() else "�" for c in " ".join(str(text).split()))


def clipped(text: object, width: int = 40) -> str:
    """Text on one line of at most ``width`` characters, with an ellipsis where it was cut.

    What would turn the writing direction, or is no sign at all, becomes a replacement character.

    >>> clipped("a long name", width=7)
    'a long…'
    """
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def aligned(table: list[list[str]]) -> list[str]:
    """Rows of text in columns: the first two to the left, all others to the right.

    >>> aligned([["a", "b", "3"], ["long", "", "12"]])
    ['  a     b   3', '  long     12']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]


def row_name(index: pd.Index, position: int) -> str:
    """Name of a row: its cell in the column that names rows, or its number from 1.

    >>> import pandas as pd
    >>> row_name(pd.RangeIndex(3), 0), row_name(pd.Index(["A7", "B2"], name="case"), 1)
    ('1', 'B2')
    """
    return str(position + 1) if index.name is None else clipped(index[position], 30)


def cell_text(value: object) -> str:
    """A cell in a table of text."""
    return exact(value) if isinstance(value, float) else clipped(value, 24)


def signed(value: float) -> str:
    """Two decimals with their sign.

    >>> signed(0.5), signed(-1.234)
    ('+0.50', '−1.23')
    """
    return f"{value:+.2f}".replace("-", "\u2212")


def plain(value: Any) -> Any:
    """A value for JSON: records become objects, arrays become lists, NaN becomes null.

    >>> plain({"p": (0.5, float("nan")), 1: None})
    {'p': [0.5, None], '1': None}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(item) for name, item in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if type(value).__module__ == "numpy":  # an array, or a scalar
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

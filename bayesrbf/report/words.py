"""Numbers and lists as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
THIN = "\u202f"
MINUS = "\u2212"


def number(value: float) -> str:
    r"""Three significant digits, plain from 1e-4 to 1e6, else a power of ten; a dash for NaN.

    >>> number(0.012345), number(12345.0), number(-2.0), number(3e-12), number(float("nan"))
    ('0.0123', '12\u202f300', '−2', '3.00 × 10⁻¹²', '–')
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


def tick(value: float) -> str:
    """A multiple of 1, 2 or 5 times a power of ten, without trailing zeros.

    >>> tick(0.2), tick(20.0), tick(-1.5)
    ('0.2', '20', '−1.5')
    """
    digits, power, exponent = number(value).partition(" × ")
    return _short(digits) + power + exponent


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


def _short(decimal: str) -> str:
    """A decimal without trailing zeros."""
    return decimal.rstrip("0").rstrip(".") if "." in decimal else decimal


def _grouped(decimal: str) -> str:
    """A decimal with its thousands set apart, without trailing zeros when the number is whole."""
    whole, _, fraction = decimal.partition(".")
    groups = f"{int(whole):,}".replace(",", THIN)
    return groups if not fraction or set(fraction) == {"0"} else f"{groups}.{fraction}"


def count(value: int) -> str:
    r"""A whole number with its thousands set apart.

    >>> count(1234567)
    '1\u202f234\u202f567'
    """
    return f"{value:,}".replace(",", THIN)


def percent(share: float) -> str:
    """A share in per cent, with two or three significant digits.

    >>> percent(0.3), percent(0.0123), percent(1.0), percent(0.9999)
    ('30 %', '1.23 %', '100 %', '> 99.9 %')
    """
    if math.isnan(share):
        return "–"
    if 0.999 < share < 1:
        return "> 99.9 %"
    if 0 < share < 1e-4:
        return "< 0.01 %"
    return f"{number(round(100 * share, 3 if share < 0.1 else 1))} %"


def plural(quantity: int, noun: str, nouns: str | None = None) -> str:
    """A count and its noun; the plural is ``noun`` and an s by default.

    >>> plural(1, "row"), plural(0, "class", "classes")
    ('1 row', '0 classes')
    """
    return f"{count(quantity)} {noun if quantity == 1 else nouns or noun + 's'}"


def listing(items: Sequence[object], most: int = 4) -> str:
    """Items in a sentence, at most ``most`` of them spelled out.

    >>> listing(["a"]), listing(["a", "b"]), listing(list("abcdef"), most=2)
    ('a', 'a and b', 'a, b and 4 more')
    """
    shown = [str(item) for item in items[:most]]
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters but tab and newline, turns of the writing direction, halves of characters."""


def harmless[T: str](text: T) -> T:
    r"""Text as a page or a terminal may have it: what would steer either becomes a sign.

    >>> harmless("\x1b[31mred\u202e")
    '�[31mred�'
    """
    return type(text)(_UNSEEN.sub("�", text))


def say(*lines: str) -> None:
    """Print lines that may hold text from a table."""
    for line in lines:
        print(harmless(line))


def clipped(text: object, width: int = 40) -> str:
    """Text on one line of at most ``width`` characters, with an ellipsis where it was cut.

    What would turn the writing direction, or is no sign at all, becomes a replacement character.

    >>> clipped("a long name", width=7)
    'a long…'
    """
    line = "".join(c if c.isprintable() else "�" for c in " ".join(str(text).split()))
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"

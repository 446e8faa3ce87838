"""Texts that are not what they seem: words for "missing", and one word written in two ways."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from bayesrbf.reading.missing import MISSING_MARKERS
from bayesrbf.reading.notes import Note, listed

MISSING_WORDS: Final = re.compile(
    r"unk(nown)?|missing|n\.[ak]\.|n/k|no (data|answer|value|response)|un(defined|specified)|tbd"
    r"|not (known|available|applicable|recorded|measured|done|stated|reported|given|entered)"
    r"|[-\u2010-\u2015]+|\.+|\*+|#|\?+|#(value|ref|div/0|num|null)!|#name\?|#n/?a( n/a)?|<na>"
    r"|(?-i:None|na|NA)|n/a|-?nan|nat|\\n|-?1\.#(ind|qnan)|[(<\[](blank|empty|null|none|missing)[)>\]]"
    r"|null|k\.a\.|keine angabe|unbekannt|inconnue?|non renseign\u00e9e?|desconocid[oa]",
    re.IGNORECASE,
)
"""Words that people and programs write where nothing is known."""
MOST_OF_COLUMN: Final = 0.3
"""Share of a column beyond which a sign is taken for a category, such as - beside +."""
SHOWN_WORDS: Final = 3
_WHOLE: Final = re.compile(r"-?\d+(\.0)?", re.ASCII)

FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "capitals": str.casefold,
    "blanks": lambda text: "".join(text.split()),
    "signs that nobody sees": lambda text: "".join(
        sign for sign in text if unicodedata.category(sign) != "Cf"
    ),
    "the Unicode form of their letters": lambda text: unicodedata.normalize("NFKC", text),
}
"""Ways to write a word, and what makes them one."""


def words_for_missing(counts: Mapping[str, int]) -> Iterator[str]:
    """Texts of a column, or labels, that people write where nothing is known.

    >>> list(words_for_missing({"yes": 5, "unknown": 2, "-": 1, "None": 1}))
    ['unknown', '-', 'None']
    >>> list(words_for_missing({"+": 5, "-": 5}))
    []
    """
    total = sum(counts.values())
    for text, count in counts.items():
        bare = text.strip()
        word = bare in MISSING_MARKERS or MISSING_WORDS.fullmatch(bare)
        sign = bare and not any(map(str.isalnum, bare)) and count > MOST_OF_COLUMN * total
        if word and not sign and len(counts) > 1:
            yield text


def spelled_alike(name: str, counts: Mapping[str, int]) -> Iterator[Note]:
    """Levels of a column, or labels, that differ by how they are written only.

    >>> next(spelled_alike("y", {"yes": 3, "no": 2, "YES": 1})).value
    "'yes' and 'YES' (3 and 1 cells)"
    """
    words: dict[str, list[str]] = {}
    for text in counts:
        words.setdefault(_plain(text), []).append(text)
    differing: dict[str, list[str]] = {}
    for texts in words.values():
        if len(texts) > 1:
            differing.setdefault(_difference(texts), []).append(_together(texts, counts))
    for how, groups in differing.items():
        yield Note("spelled alike", name, listed(groups, SHOWN_WORDS), len(groups), how)


def doubtful_labels(name: str, counts: Mapping[str, int]) -> Iterator[Note]:
    """Labels that may mean that there is none, and those that differ by how they are written.

    >>> [note.value for note in doubtful_labels("y", {"0": 5, "1": 4, "-1": 3})]
    ['-1']
    """
    for text in (*words_for_missing(counts), *_only_negative(counts)):
        yield Note("label for missing", name, text, counts[text])
    yield from spelled_alike(name, counts)


def _only_negative(counts: Collection[str]) -> list[str]:
    """The negative one of whole numbers, where there are two others: -1 and 1 are two classes."""
    if len(counts) < 3 or not all(map(_WHOLE.fullmatch, counts)):
        return []
    negative = [text for text in counts if text.startswith("-")]
    return negative if len(negative) == 1 else []


def _plain(text: str, but: str = "") -> str:
    """A word in all forms but one."""
    for form, change in FORMS.items():
        text = text if form == but else change(text)
    return text


def _difference(texts: Collection[str]) -> str:
    """By what some ways to write one word differ."""
    for form, change in FORMS.items():
        if len(set(map(change, texts))) == 1:
            return f"{form} only"
    return listed([form for form in FORMS if len({_plain(text, form) for text in texts}) > 1])


def _together(texts: Collection[str], counts: Mapping[str, int]) -> str:
    """Ways to write one word, in signs that tell them apart, and how often each stands."""
    shown = [repr(text) for text in texts]
    seen = {unicodedata.normalize("NFKC", text) for text in shown}
    if len(seen) < len(shown):  # letters that look the same
        shown = [ascii(text) for text in texts]
    return f"{listed(shown)} ({listed([counts[text] for text in texts])} cells)"

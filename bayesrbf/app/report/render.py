"""Frozen records to one self-contained page; every slot is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup, escape

from bayesrbf.app import words
from bayesrbf.app.report.collect import Report
from bayesrbf.app.report.held_out import RIVALS_IN_WORDS
from bayesrbf.app.report.judgement import Judgement, pictures, sentences
from bayesrbf.app.report.options import PAGE, VALIDATION
from bayesrbf.app.report.tripod import ITEMS, said_of
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.app.validate import Validation

OPTION: Final = re.compile(r"(--[a-z][a-z-]*(?:=[^\s;,]*[^\s;,.])?)")
"""An option of the command line."""


@dataclass(frozen=True)
class Chapter:
    """A part of a page: its anchor, number and title, and the sections that stand in it."""

    id: str
    number: str
    title: str
    sections: tuple[str, ...]  # Templates of sections.


TRUST: Final = Chapter("trust", "1", "Can I trust these probabilities?", ("trust",))
JUDGED: Final = ("performance", "costs", "benefit", "come_true", "subgroups", "confusion")
LONG: Final = (
    TRUST,
    Chapter("read", "2", "What was read", ("reading",)),
    Chapter("good", "3", "How good it is", ("scores", *JUDGED, "refits")),
    Chapter("unsure", "4", "Whom it is unsure of, and why", ("uncertain_rows",)),
    Chapter("odd", "5", "Cells and labels that look wrong", ("oddities",)),
    Chapter("learned", "6", "What it learned", ("column_effects", "learned")),
    Chapter("filled", "7", "Missing cells, filled in", ("filled",)),
    Chapter("model", "8", "The model, and how to make it again", ("described",)),
    Chapter("appendix", "A", "Appendix: did the computation go well?", ("diagnostics",)),
)
FOR_COMMITTEES: Final = (
    TRUST,
    Chapter("good", "2", "What mistakes cost, and where it is off", ("costs", "subgroups")),
    Chapter("read", "3", "What was read", ("reading",)),
)
"""The short form: about two pages of print."""
VALIDATED: Final = (
    Chapter("hold", "1", "Do the probabilities hold here?", ("advice", "trust")),
    Chapter("good", "2", "How good it is here", JUDGED),
    Chapter("drift", "3", "What has changed since training", ("drift",)),
)


def render(report: Report, tripod: str = "", chapters: Sequence[Chapter] = LONG) -> str:
    """The page as HTML without scripts, control characters or anything from outside.

    ``tripod`` is the file of the items of TRIPOD+AI that lies beside it, if any.
    """
    items = [bool(said_of(item, report)) for item in ITEMS] if tripod else []
    return _page(PAGE, report, chapters, tripod=tripod, items=items)


def render_validation(result: Validation, title: str) -> str:
    """The page as HTML without scripts or anything from outside."""
    return _page(VALIDATION, replace(result.judgement, title=title), VALIDATED, result=result)


def _page(template: str, of: Judgement, chapters: Sequence[Chapter], **more: Any) -> str:
    """A page of chapters: the sentences and pictures of a record where templates place them."""
    page = (
        environment()
        .get_template(template)
        .render(
            report=of,
            chapters=chapters,
            sections=[section for chapter in chapters for section in chapter.sections],
            finding=sentences(of),
            figure=pictures(of),
            version=__version__,
            **more,
        )
    )
    return words.harmless(page)


@cache
def environment(package: str = "bayesrbf.app.report") -> jinja2.Environment:
    """Environment of the templates: every slot is escaped, and an unknown name is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": words.number,
        "spread": words.spread,
        "estimate": words.estimate,
        "count": words.count,
        "percent": words.percent,
        "clipped": words.clipped,
        "one_line": words.one_line,
        "plural": words.plural,
        "listing": words.listing,
        "options_whole": options_whole,
    }
    environment.globals |= {"ends": words.ends, "words": words}
    environment.globals |= {"rivals_in_words": RIVALS_IN_WORDS}
    return environment


def options_whole(message: str) -> Markup:
    """A sentence whose options of the command line are not broken at their hyphens.

    >>> print(options_whole("a < b, say --na=-999."))
    a &lt; b, say <span class="option">--na=-999</span>.
    """
    pieces = OPTION.split(message)
    spans = (Markup('<span class="option">{}</span>').format(option) for option in pieces[1::2])
    whole = [escape(pieces[0])]
    for span, text in zip(spans, pieces[2::2], strict=True):
        whole += [span, escape(text)]
    return Markup("").join(whole)

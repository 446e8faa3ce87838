"""Frozen records to one self-contained page; every slot is escaped."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import jinja2
from markupsafe import Markup, escape

from bayesrbf.app import words
from bayesrbf.app.report.collect import Report, pictures, sentences
from bayesrbf.app.report.held_out import RIVALS_IN_WORDS
from bayesrbf.app.report.output import VALIDATION
from bayesrbf.app.report.performance import benefit_lines, net_benefit, reliability
from bayesrbf.app.report.tripod import ITEMS, said_of
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.app.validate import Validation

OPTION: Final = re.compile(r"(--[a-z][a-z-]*(?:=[^\s;,]*[^\s;,.])?)")
"""An option of the command line."""
HERE: Final = "these rows"
BEFORE: Final = "training rows held out"


def render(report: Report, tripod: str = "") -> str:
    """The page as HTML without scripts, control characters or anything from outside.

    ``tripod`` is the file of the items of TRIPOD+AI that lies beside it, if any.
    """
    page = (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            finding=sentences(report),
            figure=pictures(report),
            tripod=tripod,
            items=[bool(said_of(item, report)) for item in ITEMS] if tripod else [],
            version=__version__,
        )
    )
    return words.harmless(page)


def render_validation(result: Validation, title: str) -> str:
    """The page as HTML without scripts or anything from outside."""
    columns = {
        name: [(HERE, one), *([(BEFORE, result.before[name])] if name in result.before else [])]
        for name, one in result.against_rest.items()
    }
    drawn: dict[str, Markup | None] = dict.fromkeys(("come_true", "net_benefit", "benefit_lines"))
    if (event := result.event) is not None:
        own = result.against_rest[event.name]
        given = {} if result.score is None else {result.score.name: result.score.score}
        drawn = {
            "come_true": reliability(own.reliability, event.name, 0, own),
            "net_benefit": net_benefit(own, list(given.values()), event.threshold),
            "benefit_lines": benefit_lines("the model", result.prob, list(given)),
        }
    page = (
        environment()
        .get_template(VALIDATION)
        .render(
            result=result,
            columns=columns,
            title=title,
            event=result.event,
            level=result.prob,
            version=__version__,
            **drawn,
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


def options_whole(sentence: str) -> Markup:
    """A sentence whose options of the command line are not broken at their hyphens.

    >>> print(options_whole("a < b, say --na=-999."))
    a &lt; b, say <span class="option">--na=-999</span>.
    """
    parts = OPTION.split(sentence)
    spans = (Markup('<span class="option">{}</span>').format(part) for part in parts[1::2])
    whole = [escape(parts[0])]
    for span, text in zip(spans, parts[2::2], strict=True):
        whole += [span, escape(text)]
    return Markup("").join(whole)

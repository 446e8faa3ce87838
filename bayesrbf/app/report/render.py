"""Frozen records to one self-contained page; every slot is escaped."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup, escape

from bayesrbf.app import words
from bayesrbf.app.report import figures
from bayesrbf.app.report import verdict as findings
from bayesrbf.app.report.held_out import RIVALS_IN_WORDS
from bayesrbf.app.report.output import VALIDATION
from bayesrbf.app.report.records import Reading, Report, leads
from bayesrbf.app.report.tripod import ITEMS, said_of
from bayesrbf.version import __version__

if TYPE_CHECKING:
    from bayesrbf.app.validate import Validation

OPTION: Final = re.compile(r"(--[a-z][a-z-]*(?:=[^\s;,]*[^\s;,.])?)")
"""An option of the command line."""
HERE: Final = "these rows"
BEFORE: Final = "training rows held out"
MOST_RELIABILITIES = 12
"""Classes with a reliability diagram of their own: the most frequent."""
MOST_LINES = 6
"""Classes whose probabilities are drawn over a column: the most frequent."""
MOST_BARS = 15
MOST_COLUMNS = 60
"""Columns in the picture of missing cells: those with most of them."""


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
            figure=_figures(report),
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
    pictures: dict[str, Markup | None] = dict.fromkeys(
        ("come_true", "net_benefit", "benefit_lines")
    )
    if (event := result.event) is not None:
        own = result.against_rest[event.name]
        other = [] if result.score is None else [result.score.score]
        lines = {f"the model, with its {words.percent(result.prob)} interval": "line c0"}
        lines |= {} if result.score is None else {result.score.name: "line c1 dash1"}
        pictures = {
            "come_true": figures.reliability(own.reliability, event.name, 0, own),
            "net_benefit": figures.net_benefit(own, other, event.threshold),
            "benefit_lines": figures.legend(lines | {"acting on every row": "line muted"}),
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
            **pictures,
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


def sentences(report: Report) -> dict[str, Any]:
    """The finding of each section."""
    return {
        "verdict": findings.verdict(report),
        "evidence": findings.evidence(report),
        "leads": leads(report.judged),
        "events": findings.events(report),
        "surprise": findings.surprise(report),
        "unvalidated": findings.unvalidated(report),
        "unsettled": findings.unsettled(report),
        "computation": findings.computation(report),
        "scores": findings.against_rival(report),
        "subgroups": findings.subgroups(report),
        "costs": findings.costs(report) if report.costs else "",
        "stability": findings.stability(report),
        "read": findings.read(report),
        "unsure": findings.unsure(report),
        "open_intervals": findings.open_intervals(report),
        "odd": findings.odd(report),
        "odd_labels": findings.odd_labels(report),
        "learned": findings.learned(report),
        "members": findings.members(report) if report.learned.members else "",
        "relevances": findings.relevances(report) if report.learned.relevances else "",
        "filled": findings.filled(report),
        "healthy": findings.healthy(report),
        "model": findings.model(report),
    }


def _figures(report: Report) -> dict[str, Any]:
    """Every picture, ready to be placed."""
    reading, doubt = report.reading, report.doubt
    own, rivals = report.scores[0].calibration, [score.name for score in report.scores]
    frequent = sorted(
        (c for c, name in enumerate(report.classes) if name not in report.unvalidated),
        key=lambda c: -report.reading.class_counts[report.classes[c]],
    )[:MOST_RELIABILITIES]
    shown = sorted(frequent) or list(range(len(report.classes)))[:MOST_LINES]
    interest, event = report.classes.index(report.performance.hardest[0]), report.performance.event
    drawn = [interest] if len(report.classes) == 2 else frequent[:MOST_LINES]
    imputations, members = report.imputations, report.learned.members
    acted = report.performance.drawn
    given = [] if report.score is None else [report.score.score]
    return {
        "log_loss": figures.comparison(
            rivals, [score.log_loss for score in report.scores], "log loss (nats)"
        ),
        "brier": figures.comparison(
            rivals, [score.brier for score in report.scores], "Brier score"
        ),
        "missingness": missingness(reading),
        "histograms": [figures.histogram(c.histogram, c.name) for c in reading.columns],
        "shares": [
            figures.share_bar(c.missing, f"{words.percent(c.missing)} missing")
            for c in reading.columns
        ],
        "reliability": [
            figures.reliability(own.curves[c], report.classes[c], c % 8) for c in frequent
        ],
        "come_true": figures.reliability(
            report.performance.reliability,
            "that class" if event is None else event.name,
            0 if event is None else interest % 8,
            None if event is None else report.performance.hardest[1],
        ),
        "doubt": figures.doubt(doubt.aleatoric, doubt.epistemic, doubt.outcome)
        if doubt.epistemic.any()
        else None,
        "outcomes": figures.legend(
            {
                "held-out prediction right": "dot c0",
                "wrong": "cross c1",
                "no label": "ring c2",
            }
        ),
        "band": figures.legend({"where a calibrated model would be, 9 times in 10": "band"}),
        "contributions": figures.contributions(report.learned.contributions),
        "relevances": figures.relevances(report.learned.relevances[:MOST_BARS]),
        "contribution_marks": figures.legend(
            {"known alone": "bar c2", "beside all others": "bar c0"}
        ),
        "effects": [
            figures.effect(effect, drawn, report.learned.base) for effect in report.learned.effects
        ],
        "effect_lines": figures.legend(
            {report.classes[c]: f"line c{c % 8}" for c in drawn}
            | {"where nothing is known": "line muted dash1"}
        ),
        "net_benefit": [
            figures.net_benefit(own, [rival, *given], report.performance.threshold, len(acted) == 1)
            for _, own, rival in acted
        ],
        "benefit_lines": figures.legend(
            {
                f"this model, with its {words.percent(report.focus.level)} interval": "line c0",
                report.judged.rival.name: "line c1 dash1",
            }
            | ({} if report.score is None else {report.score.name: "line c2 dash2"})
            | {"acting on every row": "line muted"}
        ),
        "stability": figures.stability(report.stability) if report.stability else [],
        "learning": figures.learning(report.learning) if report.learning else None,
        "weights": figures.weights(members) if members else None,
        "weight_marks": figures.legend(
            {
                f"posterior mean and {words.percent(0.9)} interval": "dot c0",
                "fitted, step by step": "ring c1",
            }
        ),
        "by_class": [
            figures.by_class(column, report.classes, shown) for column in report.learned.by_class
        ],
        "classes": figures.legend({report.classes[c]: f"bar c{c % 8}" for c in shown}),
        "costs": figures.costs(report.costs) if report.costs else None,
        "cost_lines": _cost_lines(report),
        "coverage": figures.coverage(imputations.nominal, imputations.covered)
        if imputations.n_checked
        else None,
        "filled": figures.filled_against_truth(imputations.truth, imputations.filled)
        if imputations.hidden_truth
        else None,
    }


def _cost_lines(report: Report) -> Markup | None:
    """Names of the cost curves."""
    if report.costs is None:
        return None
    names = [name for name, _ in report.costs.curves]
    styles = figures.line_styles(report.costs)
    marks = {name: f"line {style}" for name, style in zip(names, styles, strict=True)}
    return figures.legend(marks)


def missingness(reading: Reading) -> Markup | None:
    """Picture of the missing cells; none where nothing is missing."""
    if reading.missing == 0:
        return None
    worst = sorted(range(len(reading.columns)), key=lambda j: -reading.columns[j].missing)
    shown = sorted(worst[:MOST_COLUMNS])
    names = [reading.columns[j].name for j in shown]
    return figures.missingness(reading.holes[:, shown], names, reading.band, reading.rows)

"""The sentence that opens each section of the report."""

from __future__ import annotations

from collections.abc import Sequence

from bayesrbf.answers.performance import EventPerformance
from bayesrbf.app.check import OPEN_WIDTH
from bayesrbf.app.report import records as judgement
from bayesrbf.app.report.learned import Contribution
from bayesrbf.app.report.performance import WRONGLY, few_for_calibration, of_separation
from bayesrbf.app.report.records import MeanScores, Report
from bayesrbf.app.words import between, clipped, count, ends, listing, number, percent, plural
from bayesrbf.inference.diagnose import RHAT_PARAMETERS


def read(report: Report) -> str:
    """Size of the table, its kinds of columns, its missing cells and labels."""
    reading = report.reading
    kinds = [column.kind for column in reading.columns]
    parts = [
        plural(kinds.count(kind), f"{kind} column")
        for kind in dict.fromkeys(sorted(kinds, reverse=True))
    ]
    holes = f"{percent(reading.missing)} of the cells are missing"
    if reading.missing == 0:
        holes = "no cell is missing"
    labels = f", {plural(reading.hidden, 'row')} have no label" if reading.hidden else ""
    rows = plural(reading.rows, "row")
    return f"{rows} with {listing(parts)} and {len(report.classes)} classes; {holes}{labels}."


def unsettled(report: Report) -> tuple[int, int, str]:
    """Rows that no decision is settled for, of how many, and in which sense."""
    doubt = report.doubt
    if report.costs is not None and doubt.event is not None and doubt.undecided is not None:
        how = f"their intervals hold the threshold of {percent(doubt.event.threshold)}"
        return doubt.undecided, len(doubt.outcome), how
    return doubt.below, doubt.judged, f"held out; no class reaches {percent(doubt.threshold)}"


def unsure(report: Report) -> str:
    """A sentence: how many rows are unsure, and the epistemic share of their entropy."""
    doubt = report.doubt
    share = float(doubt.epistemic.sum() / max((doubt.aleatoric + doubt.epistemic).sum(), 1e-300))
    text = (
        f"No class has a probability of {percent(doubt.threshold)} or more in "
        f"{count(doubt.below)} of {plural(doubt.judged, 'row')} held out"
    )
    if not doubt.epistemic.any():
        return (
            f"{text}; without intervals of rows held out the kinds of doubt cannot be told apart."
        )
    return (
        f"{text}; of all doubt {percent(share)} is about the model, "
        "and more rows or a better kind of model may take it away; the rest is overlap "
        "of the classes in these columns."
    )


def open_intervals(report: Report) -> str:
    """How many intervals hold the threshold, and advice for those that leave every answer open."""
    doubt, rows = report.doubt, report.doubt.rows
    undecided = ""
    if doubt.event is not None and doubt.undecided is not None:
        holds = "holds" if doubt.undecided == 1 else "hold"
        undecided = (
            f"The intervals of {count(doubt.undecided)} of {doubt.of_rows} "
            f"{holds} the threshold of {percent(doubt.event.threshold)}: of these either decision "
            "may be right. Listed are the rows nearest to it. "
        )
    wide = sum(row.upper - row.lower > OPEN_WIDTH for row in rows)
    if not wide:
        return undecided.strip()
    verb = "has an interval" if wide == 1 else "have intervals"
    return undecided + (
        f"Of {plural(len(rows), 'row')} listed {count(wide)} {verb} wider than "
        f"{number(OPEN_WIDTH)}: nothing is to be decided by such a probability. Refer the row to "
        "whoever decides without the model, or measure the cell that its line names and predict it "
        "anew."
    )


def odd(report: Report) -> str:
    """A sentence: how many cells look wrong, and how many would do so by chance."""
    oddities = report.oddities
    if not oddities.cells:
        return "No cell is further from what the rest of its row suggests than chance explains."
    verb = "is" if oddities.n_cells == 1 else "are"
    return (
        f"{plural(oddities.n_cells, 'cell')} {verb} further from what the rest of the row suggests "
        "than chance explains, which puts at most one in ten of them there; a cell may be right "
        "and rare."
    )


def learned(report: Report) -> str:
    """The columns that move the probabilities most, alone and beside all others."""
    columns = report.learned.contributions
    alone = [
        column for column in sorted(columns, key=lambda column: -column.alone) if column.alone > 0
    ]
    beside = [
        column for column in sorted(columns, key=lambda column: -column.beside) if column.beside > 0
    ]
    if not (alone or beside):
        return "No column changes the probabilities of the classes."
    parts = []
    if alone:
        parts.append(f"Known alone, {_quoted(alone)} move the probabilities most")
    if beside:
        parts.append(f"beside all others {_quoted(beside)} add most")
    text = f"{'; '.join(parts)}."
    if report.judged.enough and report.judged.base.gain.better:
        return text
    return f"{text} As rows held out do not show that this helps, it may be chance."


def _quoted(columns: Sequence[Contribution]) -> str:
    """The first three columns by name."""
    return listing([f"“{clipped(column.name, 30)}”" for column in columns[:3]])


def filled(report: Report) -> str:
    """A sentence: how many cells are filled in, and the coverage of their intervals."""
    imputations = report.imputations
    head = f"{plural(imputations.missing, 'missing cell')} can be filled in"
    if imputations.missing == 0:
        empty = report.reading.missing > 0
        head = (
            "No missing cell can be filled in: its column is empty"
            if empty
            else "No cell is missing"
        )
    if not imputations.n_checked:
        return f"{head}."
    at = int(abs(imputations.nominal - 0.9).argmin())
    hold = percent(float(imputations.covered[at]))
    which = "true values" if imputations.hidden_truth else "cells of rows held out of the fit"
    cells = f"{count(imputations.n_checked)} {which}"
    return f"{head}; intervals of {percent(0.9)} hold {hold} of {cells}."


def members(report: Report) -> str:
    """The member of a stack with the largest weight in the probabilities that are given out."""
    every = report.learned.members
    first = every[0]
    text = (
        f"Of {plural(len(every), 'member')} the largest weight has “{first.name}”: "
        f"{percent(first.fitted)}"
    )
    if first.mean != first.mean:
        return f"{text}."
    return (
        f"{text}. Under the posterior its weight is {percent(first.mean)} in the mean, with "
        f"{percent(0.9)} probability between {percent(first.lower)} and {percent(first.upper)}."
    )


LITTLE_RELEVANCE = 0.1
"""Relevance below which a column hardly counts."""


def relevances(report: Report) -> str:
    """The columns that decide whether two rows count as alike."""
    columns = report.learned.relevances
    first = listing([f"“{clipped(name, 30)}”" for name, _ in columns[:3]])
    text = f"Whether two rows count as alike depends most on {first}"
    few = sum(value < LITTLE_RELEVANCE for _, value in columns)
    if not few:
        return f"{text}; no column is left out."
    verb = "counts" if few == 1 else "count"
    return f"{text}; {few} of {plural(len(columns), 'column')} hardly {verb}."


def healthy(report: Report) -> str:
    """Whether the computation went well, by the judgement of ``diagnose()``."""
    rhats = [rhat for _, _, rhat, _ in report.diagnostics.variables if rhat == rhat]
    bad = [finding for finding in report.diagnostics.findings if not finding.good]
    if not report.diagnostics.chained and report.diagnostics.drawn:
        text = "Every draw was made by itself: there are no chains to compare"
    elif not rhats:
        text = "The fit is a point estimate: there are no chains to compare"
    else:
        agree = "" if bad or round(max(rhats), 4) > RHAT_PARAMETERS else "The chains agree: "
        text = f"{agree}the worst R-hat of all parameters is {max(rhats):.4f}"
        text = f"{text[0].upper()}{text[1:]} (up to {RHAT_PARAMETERS} chains agree)"
    if not bad:
        return f"{text}."
    figures = listing([finding.row.replace("_", " ") for finding in bad])
    return f"{text}, and {plural(len(bad), 'figure needs', 'figures need')} attention: {figures}."


def model(report: Report) -> str:
    """The sentence that says which model was chosen, and why."""
    return report.described.sentence


FAR_SLOPE = 2.0
"""Calibration slope from which, or its inverse, probabilities are far too timid or extreme."""


def verdict(report: Report) -> str:
    """Whether the probabilities can be trusted, beside answers that need no model."""
    own, (_, hardest, _) = report.scores[0], report.performance.hardest
    event = None if report.performance.event is None else hardest
    right, words = calibrated(own, event), calibration_words(own, event)
    few = few_for_calibration(report.confusion.sum(axis=1).tolist())
    if right and few:
        right, words = False, f"its calibration {few}"
    return judgement.verdict(report.judged, right and not report.reading.too_good, words)


def evidence(report: Report) -> str:
    """The figures behind the verdict, why they may be too good, and a question where they are."""
    separated = of_separation(report.performance.hardest[1].auroc)
    parts = judgement.evidence(report.judged), report.reading.too_good, separated
    return " ".join(filter(None, parts))


def events(report: Report) -> str:
    """A sentence: the held-out rows of every class, and the rule by which a row is called so."""
    event, rows = report.performance.event, report.confusion.sum(axis=1).tolist()
    held_out = plural(sum(rows), "row")
    if event is None:
        each = [f"{clipped(c, 24)} {count(n)}" for c, n in zip(report.classes, rows, strict=True)]
        rule = "what costs least by expectation" if report.costs else "what is most probable"
        return f"{held_out} held out: {listing(each, 8)}. A row is called {rule}."
    name = clipped(event.name, 24)
    rule = "costs least by expectation" if report.costs else "is the more probable class"
    called = f"where that {rule} (threshold {percent(event.threshold)})"
    if report.focus.threshold is not None:
        called = f"from a probability of {percent(event.threshold)} on, as was asked for"
    verb = "is an event" if rows[report.classes.index(event.name)] == 1 else "are events"
    return (
        f"{count(rows[report.classes.index(event.name)])} of {held_out} held out {verb}: an event "
        f"is a row that is “{name}”, {event.why}. A row is called “{name}” {called}."
    )


def surprise(report: Report) -> str:
    """The log loss beside those of both rivals, and what a log loss is."""
    own, judged = report.performance.model.log_loss, report.judged
    return (
        f"The average surprise (log loss) is {number(own.value)} nats ({ends(own.lower, own.upper)}"
        f"), that of the class frequencies {number(judged.base.log_loss)}, that of "
        f"{judged.rival.name} {number(judged.rival.log_loss)}: a row counts 0 where its true "
        "class was given all probability, 0.69 at one half, 4.6 at one in 100."
    )


def unvalidated(report: Report) -> str:
    """Classes that are too rare for any figure; empty where there is none."""
    rare = report.unvalidated
    if not rare:
        return ""
    named = [f"“{clipped(name, 24)}” ({plural(rows, 'row')})" for name, rows in rare.items()]
    return f"Nothing that is said of {listing(named)} can be validated: a class needs more rows."


def computation(report: Report) -> str:
    """A sentence on figures of the computation that need attention; empty if none does.

    No interval of a stack rests on draws of its weights, which the appendix judges.
    """
    bad = sum(not finding.good for finding in report.diagnostics.findings)
    if not bad or report.diagnostics.by_error:
        return ""
    verb = "needs" if bad == 1 else "need"
    return (
        f"Of the computation {plural(bad, 'figure')} {verb} attention; the appendix says which, "
        "and what that means for intervals."
    )


def _tilted(score: MeanScores) -> bool:
    """Whether the interval of the calibration slope leaves 1 out."""
    return not score.slope.lower <= 1 <= score.slope.upper


def calibrated(score: MeanScores, event: EventPerformance | None = None) -> bool:
    """Whether probabilities come true as often as they say: slope, error and O:E are as by chance.

    Where rows have groups the error does not tell: the chance in it counts rows.
    """
    as_by_chance = score.grouped or score.calibration.within_noise
    return as_by_chance and not _tilted(score) and (event is None or event.as_often)


def calibration_words(score: MeanScores, event: EventPerformance | None = None) -> str:
    """The end of a sentence that says whether the probabilities are calibrated."""
    if calibrated(score, event):
        return "its probabilities come true as often as they say, as far as these rows can tell"
    if _tilted(score):
        slope = score.slope
        kind = "too extreme" if slope.value < 1 else "too timid"
        much = "somewhat" if 1 / FAR_SLOPE < slope.value < FAR_SLOPE else "far"
        return (
            f"its probabilities are {much} {kind} (slope {number(slope.value)}, "
            f"{ends(slope.lower, slope.upper)}; 1 is right)"
        )
    if event is not None and not event.as_often:
        ratio = event.observed_to_expected
        return (
            f"its probabilities are too {'high' if ratio.upper < 1 else 'low'} (O:E "
            f"{number(ratio.value)}, {ends(ratio.lower, ratio.upper)}; 1 is right)"
        )
    chance = score.calibration.noise
    return (
        f"its probabilities miss by {number(score.calibration.error)} on average, where chance "
        f"makes {ends(*chance)}"
    )


def against_rival(report: Report) -> str:
    """The model's log loss beside that of the best rival, row by row of the same rows."""
    rival, own = report.judged.rival, report.judged.log_loss
    lead, right = rival.gain.interval, percent(report.performance.model.accuracy.value)
    kind = "no better, so far as these rows tell, than"
    if rival.gain.better or rival.gain.worse:
        kind = f"{'better' if rival.gain.better else 'worse'} than"
    return (
        f"The average surprise at the true class (log loss) is {number(own)} nats on rows held "
        f"out, {kind} the {number(rival.log_loss)} of {rival.name}, the best rival (a lead of "
        f"{number(lead.value)}, {percent(report.focus.level)} interval "
        f"{ends(lead.lower, lead.upper)}); the most probable class is right in {right} of the rows."
    )


def subgroups(report: Report) -> str:
    """Whether probabilities come true in every part of the table."""
    result = report.subgroups
    if not result.looked_at:
        return "No part of the table has rows enough to be looked at by itself."
    looked = (
        f"Looked at by themselves: {plural(result.looked_at, 'part')} of the table (levels and "
        "quarters of columns, rows with a missing cell"
        f"{', class by class' if len(report.classes) > 2 else ''})"
    )
    chance = f"by more than chance does to so many parts once in {round(1 / WRONGLY)} tables"
    if not result.off:
        return f"{looked}. In none of them do probabilities miss what came true {chance}."
    parts = plural(len(result.off), "part")
    return f"{looked}. In {parts} probabilities miss what came true {chance}."


def odd_labels(report: Report) -> str:
    """A sentence: improbable labels, the number that chance explains, and how many are listed."""
    improbable, listed = report.oddities.improbable, report.oddities.labels
    verb = "has" if improbable.number == 1 else "have"
    usual = between(str(improbable.lower), str(improbable.upper))
    text = (
        f"{plural(improbable.number, 'row')} held out {verb} a label that was given a probability "
        f"below {percent(report.oddities.bound)}; a calibrated model has about "
        f"{number(improbable.expected)} ({usual}, 9 times in 10)"
    )
    if not listed:
        return (
            f"{text}. Of no single one can it be told that chance does not explain it, and none is "
            "listed."
        )
    return f"{text}. Listed are those beyond chance, of which it explains at most one in ten."


def stability(report: Report) -> str:
    """How far refits on samples of the rows are from the fit to all rows, and their recipe."""
    if report.stability is None:
        return ""
    event, refits = report.stability.largest, len(report.stability.refits)
    return (
        f"{plural(refits, 'refit')} on bootstrap samples of the rows move the probability of "
        f"“{clipped(event.event, 24)}” by {number(event.error.mean())} on average, and change "
        f"{percent(event.changes.mean())} of the decisions at {percent(event.threshold)}. "
        f"{report.recipe}"
    )


def costs(report: Report) -> str:
    """A sentence: the mean cost of a row under the model's decisions and under simpler rules."""
    if report.costs is None:
        return ""
    rows = [f"{number(cost)} by {name}" for name, cost in report.costs.rows]
    return f"By the decision of least expected cost, a row held out costs {listing(rows, 9)}, " + (
        "in the unit in which costs were given."
        if report.focus.threshold is None
        else "where a row that is called an event in vain costs 1."
    )

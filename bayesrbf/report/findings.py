"""The sentence that opens each section of the report."""

from __future__ import annotations

from bayesrbf.report.records import Report, Score
from bayesrbf.report.words import count, listing, number, percent, plural


def read(report: Report) -> str:
    """Size of the table, its kinds of columns, its missing cells and labels."""
    reading = report.reading
    kinds = [column.kind for column in reading.columns]
    parts = [
        plural(kinds.count(kind), f"{kind} column")
        for kind in ("real", "categorical")
        if kind in kinds
    ]
    holes = f"{percent(reading.missing)} of the cells are missing"
    if reading.missing == 0:
        holes = "no cell is missing"
    labels = f", {plural(reading.hidden, 'row')} have no label" if reading.hidden else ""
    rows = plural(reading.rows, "row")
    return f"{rows} with {listing(parts)} and {len(report.classes)} classes; {holes}{labels}."


def unsure(report: Report) -> str:
    """How many rows are unsure, and how much of the entropy is epistemic."""
    doubt = report.doubt
    share = float(doubt.epistemic.sum() / max((doubt.aleatoric + doubt.epistemic).sum(), 1e-300))
    text = (
        f"No class has a probability of {percent(doubt.threshold)} or more in "
        f"{count(doubt.below)} of {plural(doubt.judged, 'row')} held out"
    )
    if not doubt.epistemic.any():
        return f"{text}; without a posterior the kinds of doubt cannot be told apart."
    return (
        f"{text}; of all doubt under the fit to every row, {percent(share)} is about the model "
        "and would shrink with more rows, the rest is overlap of the classes."
    )


def odd(report: Report) -> str:
    """How many cells look wrong, and how many would by chance."""
    oddities = report.oddities
    verb = "lies" if oddities.found == 1 else "lie"
    if not oddities.cells:
        return "No cell is improbable given the rest of its row."
    return (
        f"{plural(oddities.found, 'cell')} {verb} where the rest of the row puts a probability "
        f"below {number(oddities.threshold)}; chance alone would put about "
        f"{number(oddities.by_chance)} there."
    )


def learned(report: Report) -> str:
    """The columns that move the probabilities most."""
    names = [f"“{name}”" for name, value in report.learned.contributions[:3] if value > 0]
    if not names:
        return "No column changes the probabilities of the classes."
    return f"Beside all others, {listing(names)} move the probabilities most."


def filled(report: Report) -> str:
    """How many cells are filled in, and the coverage of their intervals."""
    imputations = report.imputations
    head = f"{plural(imputations.missing, 'missing cell')} can be filled in"
    if imputations.missing == 0:
        head = "No cell is missing"
    if not imputations.known:
        return f"{head}."
    at = int(abs(imputations.nominal - 0.9).argmin())
    hold = percent(float(imputations.covered[at]))
    which = "true values" if imputations.hidden_truth else "cells of rows held out of the fit"
    return f"{head}; intervals of 90 % hold {hold} of {count(imputations.known)} {which}."


def members(report: Report) -> str:
    """The member of a stack with the largest weight."""
    first = report.learned.members[0]
    text = f"{first.name} ({first.what}) has most of a say"
    if first.mean != first.mean:
        return f"{text}: a weight of {percent(first.fitted)}."
    return (
        f"{text}: a weight of {percent(first.mean)}, with 90 % probability between "
        f"{percent(first.lower)} and {percent(first.upper)}."
    )


def healthy(report: Report) -> str:
    """Whether the computation went well, by the judgement of ``diagnose()``."""
    rhats = [rhat for _, _, rhat, _ in report.diagnostics.variables if rhat == rhat]
    bad = [one for one in report.diagnostics.findings if not one.good]
    if not rhats and report.diagnostics.drawn:
        text = "Every draw was made by itself: there are no chains to compare"
    elif not rhats:
        text = "The fit is a point estimate: there are no chains to compare"
    elif bad:
        text = f"The worst R-hat of all parameters is {max(rhats):.3f}"
    else:
        text = f"The chains agree: the worst R-hat of all parameters is {max(rhats):.3f}"
    if not bad:
        return f"{text}."
    figures = listing([one.row.replace("_", " ") for one in bad])
    return f"{text}, and {plural(len(bad), 'figure needs', 'figures need')} attention: {figures}."


def model(report: Report) -> str:
    """What was chosen, and why."""
    return report.described.sentence


CERTAIN = 2.0
"""Standard errors from which a difference is reported as one."""


def verdict(report: Report) -> str:
    """Whether the probabilities can be trusted: accuracy and calibration in a sentence."""
    own, base = report.scores[0], report.scores[1]
    gain = 1 - own.log_loss[0] / base.log_loss[0] if base.log_loss[0] else 0.0
    if gain <= 0:
        return (
            "No: on rows it had not seen the model did no better than the class frequencies "
            f"(log loss {number(own.log_loss[0])} against {number(base.log_loss[0])} nats)."
        )
    trust = "Yes" if own.calibration.within_noise and not _tilted(own) else "With care"
    return (
        f"{trust}: on rows it had not seen the model removes {percent(gain)} of the uncertainty "
        f"that the class frequencies leave, and {calibration_words(own)}."
    )


def _tilted(score: Score) -> bool:
    """Whether the calibration slope surely differs from one."""
    slope, error = score.slope
    return abs(slope - 1) > CERTAIN * error


def calibration_words(score: Score) -> str:
    """Half a sentence such as "its probabilities come true as often as they say"."""
    if not _tilted(score) and score.calibration.within_noise:
        return "its probabilities come true as often as they say, as far as these rows can tell"
    if _tilted(score):
        kind = "too extreme" if score.slope[0] < 1 else "too timid"
        return f"its probabilities are somewhat {kind} (calibration slope {number(score.slope[0])})"
    return (
        f"its probabilities miss by {number(score.calibration.error)} on average, more than "
        "chance explains"
    )


def against_logistic(report: Report) -> str:
    """The model's log loss beside that of logistic regression."""
    (own, own_error), (other, other_error) = (
        report.scores[0].log_loss,
        report.scores[2].log_loss,
    )
    surely = abs(own - other) > CERTAIN * (own_error**2 + other_error**2) ** 0.5
    better = "better" if own < other else "worse"
    weight = "clearly " if surely else "within the noise "
    return (
        f"Held-out log loss is {number(own)} nats, {weight}{better} than logistic regression's "
        f"{number(other)}; {percent(report.scores[0].accuracy[0])} of the rows are classified "
        "right."
    )


def costs(report: Report) -> str:
    """What a row costs by the model and by the other ways to decide."""
    if report.costs is None:
        return ""
    rows = report.costs.rows
    told = [f"{number(cost)} by {name}" for name, cost in rows]
    return f"If one acts on the probabilities at these costs, a row costs {listing(told, 9)}."

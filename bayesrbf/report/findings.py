"""The sentence that opens each section; those on scores are in ``score_findings``."""

from __future__ import annotations

from bayesrbf.report.records import Report
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
    if report.imputations is None:
        return without_density(report, "Cells are not judged")
    if not oddities.cells:
        return "No cell is improbable given the rest of its row."
    return (
        f"{plural(oddities.found, 'cell')} lie where the rest of the row puts a probability "
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
    if imputations is None:
        return without_density(report, "Missing cells are not filled in")
    head = f"{plural(imputations.missing, 'missing cell')} can be filled in"
    if imputations.missing == 0:
        head = "No cell is missing"
    if not imputations.known:
        return f"{head}."
    at = int(abs(imputations.nominal - 0.9).argmin())
    hold = percent(float(imputations.covered[at]))
    which = "true values" if imputations.hidden_truth else "cells of rows held out of the fit"
    return f"{head}; intervals of 90 % hold {hold} of {count(imputations.known)} {which}."


def without_density(report: Report, what: str) -> str:
    """Why a part is left out; ``what`` begins the sentence."""
    return (
        f"{what}: a {report.estimator} has no density of the rows; --model stack and --model "
        "mixture have one."
    )


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
    if not rhats:
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

"""The sentences on scores: whether the probabilities can be trusted."""

from __future__ import annotations

from bayesrbf.report.records import Report, Score
from bayesrbf.report.words import listing, number, percent

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
    """Calibration in half a sentence, such as "its probabilities are too sure of themselves"."""
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

"""Sentences of the page and of the terminal agree with the figures beside them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf.answers.scores import Interval
from bayesrbf.app.report import run
from bayesrbf.app.report.collect import Report
from bayesrbf.app.report.judgement import figures, lines, sentences
from bayesrbf.app.report.learned import MEMBER_WORDS, read_members, read_relevances
from bayesrbf.app.report.scores import calibrated, calibration_words
from bayesrbf.app.words import number, percent, plural, with_ends
from bayesrbf.families.stack.members import MEMBERS, TREES
from bayesrbf.inference.diagnose import judge_agreement, judge_size
from tests.app.report.records import synthetic


def said(name: str, report: Report) -> str:
    """A sentence of a report."""
    return sentences(report)[name]


def test_the_member_that_is_named_has_the_largest_weight_of_the_delivered_fit() -> None:
    """Draws may prefer another one; the probabilities are those of the fitted weights."""
    stack = Stack(["forest", "normal", "mixture"], [0.5, 0.3, 0.2], [[0.1, 0.7, 0.2]] * 50)
    members = read_members(stack)
    assert [member.fitted for member in members] == [0.5, 0.3, 0.2]
    full = synthetic()
    told = said("members", replace(full, learned=replace(full.learned, members=members)))
    assert told.startswith("Of 3 members the largest weight has “forest of 60 trees”: 50\xa0%.")
    assert "its weight is 10\xa0% in the mean" in told


def test_relevances_count_by_the_delivered_weights() -> None:
    relevance = pd.DataFrame({"one": [1.0, 0.0], "other": [0.0, 1.0]}, index=["a", "b"])
    stack = Stack(["one", "other", "forest"], [0.1, 0.3, 0.6], [], relevance)
    assert read_relevances(stack) == (("b", pytest.approx(0.75)), ("a", pytest.approx(0.25)))


class Stack:
    """What the report asks a stack for."""

    def __init__(
        self,
        members: list[str],
        weights: list[float],
        drawn: list[list[float]],
        relevance: pd.DataFrame | None = None,
    ) -> None:
        self.members_, self.weights_, self.relevance_ = members, np.array(weights), relevance
        self.draws_ = drawn
        posterior = xr.Dataset({"weights": (("chain", "draw", "member"), [drawn])} if drawn else {})
        self.posterior_ = {"posterior": posterior}

    def member_table(self) -> pd.DataFrame:
        """Members and the stack."""
        table = pd.DataFrame({"weight": self.weights_}, index=self.members_)
        table = table.assign(temperature=1.0, log_loss=0.5)
        return pd.concat([table, table.iloc[:1].rename({self.members_[0]: "stack"})])


def test_a_verdict_on_draws_is_that_of_the_figure_as_it_is_shown() -> None:
    for value in np.r_[1.0, 1.00994, 1.00996, 1.01004, 1.01006, 1.02, np.nan]:
        found = judge_agreement("rhat_log_posterior", "the log posterior", float(value), 1.01)
        assert found.good == (not float(found.figure) > 1.01)
    for size in (399.9, 399.97, 400.0, np.nan):
        enough = judge_size("ess_parameters", size, 400)
        assert enough.good == (not float(enough.figure) < 400)


@pytest.mark.parametrize(("area", "asked"), [(0.98, False), (0.995, True), (1.0, True)])
def test_a_ranking_without_error_is_asked_about(area: float, asked: bool) -> None:
    full = synthetic()
    model, ends = full.performance.model, Interval(area, area - 0.01, 1.0)
    events = tuple(replace(one, auroc=ends) for one in model.events)
    ranked = replace(full.performance, model=replace(model, events=events))
    told = said("evidence", replace(full, performance=ranked))
    assert ("controls" in told) == asked


def test_chains_that_disagree_in_a_variable_are_not_said_to_agree() -> None:
    full = synthetic()
    good = tuple(replace(one, good=True) for one in full.diagnostics.findings)
    odd = (("weights", 3, 1.0312, 900.0),)
    told = said(
        "healthy",
        replace(full, diagnostics=replace(full.diagnostics, findings=good, variables=odd)),
    )
    assert told == "The worst R-hat of all parameters is 1.0312 (up to 1.02 chains agree)."


@pytest.mark.parametrize("seed", range(30))
def test_what_is_said_of_calibration_agrees_with_the_figures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, half, value = rng.uniform(0, 0.05), rng.uniform(0, 0.6), rng.uniform(0.3, 2.5)
    own = replace(
        synthetic().scores[0],
        slope=Interval(value, value - half, value + half),
        calibration=replace(
            synthetic().scores[0].calibration, error=rng.uniform(0, 0.1), noise=(low, low + 0.02)
        ),
    )
    told = calibration_words(own)
    tilted = not own.slope.lower <= 1 <= own.slope.upper
    right = not tilted and own.calibration.error <= own.calibration.noise[1]
    assert told.startswith("its probabilities come true") == right
    assert calibrated(own.slope, own.calibration, grouped=False) == right
    assert ("too extreme" in told) == (tilted and value < 1)
    assert ("too timid" in told) == (tilted and value > 1)
    assert (number(own.slope.lower) in told) == tilted
    event = synthetic().performance.hardest[1]
    often = replace(event, observed_to_expected=Interval(1.2, 1.1, 1.3))
    assert not calibrated(own.slope, own.calibration, often, grouped=False)
    assert ("too low (O:E 1.2" in calibration_words(own, often)) == (not tilted)


def test_figures_at_two_thresholds_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """The most probable class and decisions of least cost stand in one list."""
    full = synthetic(n_classes=2)
    run.tell(full)
    printed = capsys.readouterr().out
    assert re.search(r"classified right .*by the most probable class", printed)
    threshold = percent(full.performance.event.threshold)
    for name in ("sensitivity", "specificity", "PPV", "NPV"):
        assert re.search(rf"{name} .*, threshold {threshold}", printed)
    assert figures(full)["decided_by"] == dict.fromkeys(
        ("share right", "against_rest"), "the most probable class"
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_terminal_has_every_class_and_every_part(n_classes: int) -> None:
    full = synthetic(n_classes=n_classes)
    told = list(lines(full))
    areas = [text for name, text in told if name == "AUROC"]
    assert len(areas) == len(full.performance.classes) == (1 if n_classes == 2 else 3)
    for (name, one, _), text in zip(full.performance.classes, areas, strict=True):
        assert f"{with_ends(one.auroc)}, {name} against the rest" in text
        assert (f"PPV {with_ends(one.ppv, percent)}" in text) == (n_classes == 3)
    parts = [text for name, text in told if name == "by x"]
    for part, text in zip(full.parts[0].parts, parts, strict=False):
        one = part.performance
        few = " (too few)" if part.few else ""
        events = plural(one.events, "event")
        assert text.startswith(f"{part.name}: {plural(one.rows, 'row')}, {events}{few}, AUROC ")
    assert len(parts) == len(full.parts[0].parts) + len(full.parts[0].spread)


def test_every_member_of_a_stack_has_words() -> None:
    assert set(MEMBER_WORDS) == {*MEMBERS, *TREES}
    assert not [words for words in MEMBER_WORDS.values() if "_" in words]


def test_members_have_intervals_where_there_are_draws() -> None:
    full = synthetic()
    named = "Of 2 members the largest weight has “a network”: 60\xa0%."
    assert said("members", full) == (
        f"{named} Under the posterior its weight is 50\xa0% in the "
        "mean, with 90\xa0% probability between 20\xa0% and 80\xa0%."
    )
    nan = float("nan")
    points = tuple(replace(one, mean=nan, lower=nan, upper=nan) for one in full.learned.members)
    assert said("members", replace(full, learned=replace(full.learned, members=points))) == named


def test_what_was_learned_is_doubted_where_rows_held_out_show_nothing() -> None:
    full = synthetic()
    told = "Known alone, “x” and “other” move the probabilities most; "
    told += "beside all others “x” and “other” add most."
    interval_chain = f"{told} As rows held out do not show that this helps, it may be chance."
    assert said("learned", full) == told
    base = full.judged.base
    none = replace(full.judged, base=replace(base, gain=replace(base.gain, mean=0.0)))
    for judged in (replace(full.judged, rows=12), none):
        assert said("learned", replace(full, judged=judged)) == interval_chain
    assert said("verdict", replace(full, judged=none)).startswith("No:")


def test_labels_beyond_chance_are_told_apart_from_those_it_explains() -> None:
    full = synthetic()
    counted = (
        "12 rows held out have a label that was given a probability below 5\xa0%; a calibrated "
        "model has about 5 (2 to 8, 9 times in 10). "
    )
    listed = "Listed are those beyond chance, of which it explains at most one in ten."
    none = "Of no single one can it be told that chance does not explain it, and none is listed."
    assert said("odd_labels", full) == counted + listed
    without = replace(full, oddities=replace(full.oddities, labels=()))
    assert said("odd_labels", without) == counted + none


def test_judgement_is_that_of_the_findings() -> None:
    """A tail above its bound is nothing to say where diagnose() finds it good."""
    full = synthetic()
    worst = "he worst R-hat of all parameters is 1.0010 (up to 1.02 chains agree)"
    assert said("healthy", full) == f"T{worst}, and 1 figure needs attention: pareto k."
    assert said("computation", full).startswith("Of the computation 1 figure needs attention;")
    good = tuple(replace(one, good=True) for one in full.diagnostics.findings)
    well = replace(full, diagnostics=replace(full.diagnostics, findings=good))
    assert said("healthy", well) == f"The chains agree: t{worst}."
    assert said("computation", well) == ""


def test_a_class_of_one_or_two_rows_cannot_be_validated() -> None:
    full = synthetic()
    assert said("unvalidated", full) == ""
    counts = dict(zip(full.classes, (2, 40, 48), strict=True))
    rare = replace(full, reading=replace(full.reading, class_counts=counts))
    told = "Nothing that is said of “x0” (2 rows) can be validated: a class needs more rows."
    assert said("unvalidated", rare) == told


def test_intervals_that_leave_every_answer_open_say_what_to_do() -> None:
    full = synthetic()
    assert said("open_intervals", full) == ""
    rows = tuple(replace(row, lower=0.002, upper=0.998) for row in full.uncertain_rows.rows)
    told = said(
        "open_intervals", replace(full, uncertain_rows=replace(full.uncertain_rows, rows=rows))
    )
    assert told.startswith("Of 1 row listed 1 has an interval wider than 0.8")
    assert "Refer the row" in told


@pytest.mark.parametrize("dear", [False, True])
def test_the_rule_by_which_a_row_is_called_so_is_told(dear: bool) -> None:
    two, three = synthetic(n_classes=2), synthetic()
    if not dear:
        two, three = replace(two, costs=None), replace(three, costs=None)
    name = two.performance.event.name
    rule = "costs least by expectation" if dear else "is the more probable class"
    ending = f"A row is called “{name}” where that {rule} (threshold 50\xa0%)."
    assert said("events", two).endswith(ending)
    rule = "what costs least by expectation" if dear else "what is most probable"
    assert said("events", three).endswith(f"A row is called {rule}.")

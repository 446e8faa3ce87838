"""What figures and decisions are about: event, threshold, actions, level of the intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesrbf.app.arguments import file_in, focus_in
from bayesrbf.app.report.costs import decisions, decisions_in_words, problems_of_focus
from bayesrbf.app.report.options import ANYTHING, Deciding, Focus, Purpose
from bayesrbf.app.report.performance import event_of

CLASSES = ["sick", "well"]
COUNTS = np.array([30.0, 70.0])


@pytest.mark.parametrize("threshold", [0.01, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("event", CLASSES)
def test_a_threshold_decides_by_the_probability_of_its_event(event: str, threshold: float) -> None:
    focus = focus_in(Deciding(event=event, threshold=threshold))
    found = event_of(COUNTS, CLASSES, focus)
    assert (found.name, found.threshold) == (event, pytest.approx(threshold, abs=1e-12))
    p = np.linspace(0.0005, 0.9995, 1000)
    both = np.column_stack([p, 1 - p] if event == "sick" else [1 - p, p])
    decided = np.array(CLASSES)[decisions(both, CLASSES, focus.costs)] == event
    np.testing.assert_array_equal(decided, p > threshold)


def test_an_event_is_the_one_asked_for_then_the_dearest_then_the_rarest() -> None:
    assert event_of(COUNTS, CLASSES, ANYTHING).name == "sick"
    assert event_of(COUNTS, CLASSES, Focus({"well": 3.0})).name == "well"
    asked = event_of(COUNTS, CLASSES, Focus({"well": 3.0}, event="sick"))
    assert (asked.name, asked.threshold) == ("sick", 0.75)


def test_decisions_are_called_by_their_actions() -> None:
    focus = focus_in(Deciding(cost=("sick=4",), action=("sick=operate",)))
    words = decisions_in_words(np.array([[0.3, 0.7], [0.1, 0.9]]), CLASSES, focus)
    assert words.tolist() == ["operate", "well"]


def test_what_is_not_asked_for_is_as_the_report_was_told() -> None:
    meant = Purpose("surgery", "adults")
    told = Focus({"sick": 4.0}, "well", {"sick": "operate"}, 0.95, purpose=meant)
    assert focus_in(Deciding(), told) == told
    assert focus_in(Deciding(event="sick", level=0.8), told) == Focus(
        told.costs, "sick", told.actions, 0.8, purpose=meant
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Deciding(threshold=0.2), "name it: --event CLASS"),
        (Deciding(event="sick", threshold=0.2, cost=("sick=4",)), "choose one"),
        (Deciding(event="sick", threshold=1.0), "between 0 and 1; got 1"),
        (Deciding(level=95.0), "between 0 and 1; got 95"),
        (Deciding(action=("operate",)), "such as sick=operate; got 'operate'"),
        (Deciding(cost=("sick",)), "such as sick=10.*got 'sick'"),
    ],
)
def test_a_focus_that_is_none_is_refused(asked: Deciding, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        focus_in(asked)


def test_names_that_are_no_class_are_told_together() -> None:
    focus = Focus({"ill": 2.0}, "dead", {"fine": "wait"})
    told = list(problems_of_focus(focus, CLASSES, "the model"))
    assert [problem.split()[0] for problem in told] == ["'ill'", "'fine'", "'dead'"]
    three = list(problems_of_focus(Focus(event="a"), ["a", "b", "c"], "the model"))
    assert "one of two classes" in three[0]


def test_a_threshold_is_of_the_event_that_it_was_asked_for() -> None:
    told = focus_in(Deciding(event="sick", threshold=0.2))
    assert focus_in(Deciding(), told).threshold == 0.2
    assert focus_in(Deciding(event="well"), told).threshold is None
    assert focus_in(Deciding(cost=("sick=3",)), told).threshold is None


def test_out_names_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run.csv").mkdir()
    (tmp_path / "table").write_text("a\n")
    where: dict[str, Any] = {"usual": tmp_path, "name": "new-predictions.csv"}
    for folder in ("run.csv", "of.2026", "plain"):
        found = file_in(tmp_path / folder, **where, as_json=False)
        assert found == tmp_path / folder / "new-predictions.csv"
    for file in ("table", "other.csv"):
        with pytest.raises(ValueError, match="--out names a folder"):
            file_in(tmp_path / file, **where, as_json=False)
    assert file_in(None, **where, as_json=True) is None
    assert file_in(None, **where, as_json=False) == tmp_path / "new-predictions.csv"

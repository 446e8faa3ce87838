"""Answers of today are those that are kept, and one that moved is seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests import same_answers
from tests.cases import some_quick
from tests.same_answers import FITS, apart, difference, kept, lines, main, subjects

MACHINES = 1e-6
"""Answers of two processors are this near; tests/same_answers.py compares on one machine."""
LONG = ("default stack", "report")
"""Subjects that a slow test asks, as it asks all draws."""
PLACES = [f"{name}: {place}" for name, places in subjects().items() for place in places]


def test_every_answer_is_kept() -> None:
    assert list(kept()) == PLACES
    assert len(same_answers.TABLES) == 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", subjects())
def test_answers_are_those_that_are_kept(name: str) -> None:
    for place, said in same_answers.answers([name]):
        assert difference(said, kept()[place]) < MACHINES, place


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", some_quick(FITS, "likelihood mixture", "exemplars", "stack"))
def test_answers_on_one_table_are_those_that_are_kept(name: str) -> None:
    said = subjects()[name]["mixed with holes"]("mixed with holes")
    assert difference(said, kept()[f"{name}: mixed with holes"]) < MACHINES


def test_a_difference_is_seen() -> None:
    x = np.array([0.5, np.nan, 100.0])
    assert apart(x, x.copy()) == 0
    assert apart(x + np.array([0, 0, 1e-6]), x) == pytest.approx(1e-8, rel=1e-3)
    assert apart(x[:2], x) == apart(np.zeros(3), x) == np.inf
    assert difference({"p": x}, {"p": [0.5, None, 100.0]}) == 0
    assert difference({"p": x}, {}) == difference({}, {"p": [1.0]}) == np.inf


def test_what_moved_is_named_and_kept_only_if_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.json"  # type: ignore[operator]
    monkeypatch.setattr(same_answers, "KEPT", file)
    value = np.array([0.5])
    monkeypatch.setattr(
        same_answers, "answers", lambda chosen: iter([("mixture: iris", {"p": value})])
    )
    assert (main(["--keep"]), main([])) == (0, 0)
    value += 1e-9
    assert main([]) == 1
    assert "mixture: iris: differs by 1.0e-09" in capsys.readouterr().out
    assert json.loads(file.read_text()) == {"mixture: iris": {"p": [0.5]}}
    assert (main(["--keep"]), main([])) == (0, 0)
    assert file.read_text() == lines({"mixture: iris": {"p": [0.5 + 1e-9]}})

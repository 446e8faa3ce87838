"""What was asked is compared with the files."""

from __future__ import annotations

from operator import sub

import pytest

from tests.asked import Among, Best, Beyond, Figure, Of, Over, Sum, least, most, rows
from tests.measured import write


@pytest.fixture(autouse=True)
def loss(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    monkeypatch.setattr("tests.asked.FIGURES", tmp_path)
    columns = {"model": ["stack", "lite"], "loss": [0.285, 0.29], "shown": ["3 of 4", "1,200 deep"]}
    write("loss", columns, "make bench", covers=(), counts={"tables": (3, 18), "models": (1, 2)})


def test_a_figure_is_that_of_its_file():
    figure = Figure("loss", "stack", "loss")
    assert (most(0.29, figure).met(), most(0.28, figure).met()) == ("yes", "no")
    assert (least(0.29, figure).met(), least(0.28, figure).met()) == ("no", "yes")
    assert most(Figure("loss", "lite", "loss"), figure).met() == "yes"
    assert Figure("loss", "stack", "shown", place=1).value() == 4
    assert Figure("loss", "lite", "shown").value() == 1200
    assert Of(Figure("loss", ".", "loss"), max).value() == 0.29
    assert Over(Figure("loss", "lite", "loss"), figure).value() == pytest.approx(0.29 / 0.285)


def test_a_bound_has_the_digits_of_the_figure():
    """One that was asked keeps those that it has."""
    stack, lite = (Figure("loss", model, "loss", 2) for model in ("stack", "lite"))
    assert most(Over(stack, lite), lite).asked() == "≤ 0.98"
    assert (most(0.2855, stack).asked(), least(2, stack).asked()) == ("≤ 0.2855", "≥ 2.00")


def test_rows_of_a_file_are_compared():
    columns = {"model": ["stack", "shares"], "0%": [0.2, 0.7], "80%": [0.6, 0.7]}
    write("cells", columns, "make bench", covers=())
    assert Among("cells", "stack;", max).value() == 0.6
    assert Beyond("stack", "shares", "cells").value() == pytest.approx(-0.1)
    own, other = (Figure("cells", f"{model};", "0%") for model in ("stack", "shares"))
    assert Over(own, other, by=sub).value() == pytest.approx(-0.5)
    assert Sum((own, other, Figure("none", ".", "0%"))).value() == pytest.approx(0.9)
    assert Sum((own, Figure("none", ".", "0%"))).part() == " (1 of 2 sections)"
    assert Among("none", "stack;", max).value() is Beyond("a", "b", "none").value() is None


def test_the_best_peer_is_sought_among_the_others():
    columns = {"line": ["CRPS", "AUROC"], "tables": [8, 8], "ours": ["0.3 ± 0.1", "0.7 ± 0.1"]}
    peers = {"Lace": ["0.40 ± 0.1", ""], "chained": ["0.38 ± 0.1", "0.6 ± 0.1"]}
    write("scores", columns | peers, "make bench", covers=())
    own = ("tables", "ours")
    assert Best("scores", "CRPS", own, min).value() == 0.38
    assert Best("scores", "AUROC", own, max).value() == 0.6
    assert Best("scores", "novelty", own, max).value() is None
    assert Best("none", "CRPS", own, min).value() is None


def test_what_has_no_file_is_said_to_have_none():
    for figure in (Figure("time", "stack", "loss"), Figure("loss", "stack", "time"), None):
        goal = most(1.0) if figure is None else most(1.0, figure)
        assert (goal.measured(), goal.met()) == ("no figure yet", "–")


def test_a_line_says_what_was_run():
    line = [*rows({"page": {"loss": (most(0.29, Figure("loss", "stack", "loss")),)}})][1]
    assert line == "| loss | ≤ 0.290 | 0.285 (3 of 18 tables) | yes |"

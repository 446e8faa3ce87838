"""Beside its intervals the report says how often such intervals hold, or that nobody tried."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bayesrbf.posterior.rehearsal as stage
from bayesrbf.report import intervals
from bayesrbf.report import run as running
from bayesrbf.report.collect import collect
from bayesrbf.report.drawing_method import Drawn, draw_posterior
from bayesrbf.report.intervals import read_intervals, rehearse
from bayesrbf.report.intervals_elsewhere import Elsewhere, elsewhere
from bayesrbf.report.render import render
from bayesrbf.solvers import teachers
from tests.cases import generative
from tests.intervals_elsewhere import PATH, text
from tests.measured import read
from tests.report.test_collect import job
from tests.test_cli import assert_one_sentence, mixed_table, run

SENTENCE = re.compile(r"90 % intervals held the truth \d+ times in 100 when labels of these rows")


def drawn_by(method: str, **changes: Any) -> Drawn:
    """A quick mixture with its draws."""
    small = job(method, draws=25, **changes)
    classifier = generative(1, tied=True, random_state=0)
    return draw_posterior(small, classifier.fit(small.X, small.y))


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return drawn_by("laplace")


def test_the_rehearsal_is_told_where_it_was_asked_for(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teachers, "TEACHERS", {"boosting": teachers.boosting})  # for speed
    asked = job("laplace", draws=25, rehearse=True)
    told = read_intervals(asked, drawn)
    found = rehearse(asked, drawn)
    assert found.attrs["method"] == "laplace"
    assert found.attrs["n_repeats"] == 2
    assert told.startswith(found.attrs["sentence"])
    assert SENTENCE.match(told)
    at = found.sel(level=0.9)
    narrow = at["overall_coverage"] + 2 * at["overall_error"] < 0.9
    assert ("too narrow" in told) == bool(narrow)


def test_without_it_the_report_says_so_and_has_no_figure(drawn: Drawn) -> None:
    told = read_intervals(job("laplace"), drawn)
    assert "was not tried here: --rehearse tries it" in told
    assert not re.search(r"\d", told)


@pytest.mark.parametrize("asked", [False, True])
def test_without_draws_nothing_can_be_tried(asked: bool) -> None:
    told = read_intervals(job("map", rehearse=asked), drawn_by("map"))
    assert told.startswith("No draws were made")
    assert "--inference laplace" in told


def test_a_rehearsal_that_fails_is_told(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "TEACHERS", {"boosting": teachers.boosting})
    monkeypatch.setattr(stage, "ATTEMPTS", 0)
    told = read_intervals(job("laplace", rehearse=True), drawn)
    assert "could not be tried: rehearse() drew labels" in told


@pytest.mark.slow
def test_the_page_tells_the_rehearsal_beside_its_intervals() -> None:
    page = render(collect(job(draws=20, rehearse=True)).report)
    section = page[page.index('id="unsure"') : page.index('id="odd"')]
    assert SENTENCE.search(section)
    assert "was not tried" not in page


def test_intervals_that_are_not_made_are_not_rehearsed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.csv"
    mixed_table(20).to_csv(file, index=False)
    words = ["report", file, "--target", "outcome", "--out", tmp_path / "o", "--rehearse"]
    assert run(monkeypatch, *words, "--inference", "map") == 2
    assert "--inference map makes none" in assert_one_sentence(capsys)


def test_the_command_line_asks_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []
    monkeypatch.setattr(running, "run", lambda asked, folder: seen.append(asked))
    monkeypatch.setattr(running, "tell", lambda said: None)
    file = tmp_path / "t.csv"
    mixed_table(20).to_csv(file, index=False)
    words = ["report", file, "--target", "outcome", "--out", tmp_path / "o"]
    assert run(monkeypatch, *words) == run(monkeypatch, *words, "--rehearse") == 0
    assert [one.rehearse for one in seen] == [False, True]


def test_what_tables_of_that_size_told_is_said_beside_it(drawn: Drawn) -> None:
    """Where the family, the method, the size and the holes are those of a printed table."""
    found = elsewhere("stack", "bootstrap", 150, 0.3)
    assert found is not None
    said = Elsewhere("mixture", "laplace, pool", 48, False, 3, 0.9, 0.8)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(intervals, "elsewhere", lambda *_: said)
        told = read_intervals(job("laplace"), drawn)
    assert said.sentence in told
    assert "How often they do on this table was not tried here: --rehearse tries it" in told
    assert elsewhere("stack", "bootstrap", 20, 0.0) is None
    assert elsewhere("stack", "bootstrap", 5_000, 0.0) is None
    assert elsewhere("mixture", "laplace", 200, 0.0) is None


def test_draws_of_one_kind_alone_assume_the_model(drawn: Drawn) -> None:
    alone = copy(drawn.refined).refine("laplace", draws=10)
    told = read_intervals(job("laplace"), replace(drawn, refined=alone))
    assert "if the model is right" in told
    assert "if the model is right" not in read_intervals(job("laplace"), drawn)


def test_the_file_has_what_the_printed_tables_have() -> None:
    assert PATH.read_text() == text()


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_figure_of_a_stack_is_that_of_its_own_printed_table(holes: float) -> None:
    found = elsewhere("stack", "bootstrap", 150, holes)
    printed = read(f"intervals/200_rows_{'with_holes' if holes else 'complete'}")
    stack = dict(zip(printed.columns, printed.rows[0], strict=True))
    assert found is not None
    assert stack["model"] == "stack"
    assert f"held them {100 * stack['90%']:.0f} times in 100" in found.sentence
    assert f"On {stack['tables']} tables of at most 200 rows" in found.sentence

"""Beside its intervals the report says how often such intervals hold, or that nobody tried."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bayesrbf.answers.rehearse as stage
from bayesrbf.answers import teachers
from bayesrbf.answers.teachers import boosting
from bayesrbf.app.report import run as running
from bayesrbf.app.report import uncertain_rows as intervals
from bayesrbf.app.report.collect import collect
from bayesrbf.app.report.families import Drawn, draw_posterior
from bayesrbf.app.report.render import render
from bayesrbf.app.report.uncertain_rows import read_intervals, rehearse
from tests.app.report.tables import mixed_table
from tests.app.report.test_collect import job
from tests.cases import generative
from tests.commands import command

SENTENCE = re.compile(r"90 % intervals held the truth \d+ times in 100 when labels of these rows")


def drawn_by(method: str, **changes: Any) -> Drawn:
    """A quick mixture with its draws."""
    small = job(method, draws=25, **changes)
    classifier = generative(1, shared_covariance=True, random_state=0)
    return draw_posterior(small, classifier.fit(small.X, small.y))


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return drawn_by("laplace")


@pytest.mark.slow
def test_the_rehearsal_is_told_where_it_was_asked_for(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teachers, "TEACHERS", {"boosting": boosting})  # for speed
    asked = job("laplace", draws=25, rehearse=True)
    found = rehearse(asked, drawn)
    monkeypatch.setattr(intervals, "rehearse", lambda *_: found)
    told = read_intervals(asked, drawn)
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


def test_without_draws_nothing_can_be_tried() -> None:
    point = drawn_by("map")
    for asked in (False, True):
        told = read_intervals(job("map", rehearse=asked), point)
        assert "--inference laplace" in told


def test_a_rehearsal_that_fails_is_told(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "TEACHERS", {"boosting": boosting})
    monkeypatch.setattr(stage, "ATTEMPTS", 0)
    told = read_intervals(job("laplace", rehearse=True), drawn)
    assert "could not be tried: Labels of" in told


@pytest.mark.slow
def test_the_page_tells_the_rehearsal_beside_its_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teachers, "TEACHERS", {"boosting": boosting})
    page = render(collect(job(draws=20, rehearse=True)).report)
    section = page[page.index('id="unsure"') : page.index('id="odd"')]
    assert SENTENCE.search(section)
    assert "was not tried" not in page


def test_the_command_line_asks_for_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = []
    monkeypatch.setattr(running, "run", lambda asked, *_: seen.append(asked))
    monkeypatch.setattr(running, "tell", lambda said: None)
    file = tmp_path / "t.csv"
    mixed_table(20).to_csv(file, index=False)
    words = ["report", file, "--target", "outcome", "--out", tmp_path / "o"]
    assert command(*words).code == command(*words, "--rehearse").code == 0
    assert [one.rehearse for one in seen] == [False, True]


def test_draws_of_one_kind_alone_assume_the_model(drawn: Drawn) -> None:
    alone = copy(drawn.refined).refine("laplace", draws=10)
    told = read_intervals(job("laplace"), replace(drawn, refined=alone))
    assert "if the model is right" in told
    assert "if the model is right" not in read_intervals(job("laplace"), drawn)

"""A run says how far it is: bars on a terminal, lines in a log."""

from __future__ import annotations

import itertools

import pytest

from bayesrbf.inference.progress import progress as within
from bayesrbf.inference.progress import showing, silent
from bayesrbf.report import run


def through(track: run.TrackSteps, what: str, total: int) -> list[int]:
    return list(track(range(total), what, total))


def test_a_log_has_a_line_for_every_slow_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=6.0)
    monkeypatch.setattr(run, "monotonic", lambda: next(clock))
    with run.progress() as track:
        assert through(track, "Cross-validating", 4) == [0, 1, 2, 3]
        assert through(track, "Fitting", 1) == [0]
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("Fitting: done in ")
    assert [line for line in said if line.startswith("Cross-validating: ") and "%" in line]
    assert [line for line in said if line.startswith("Cross-validating: done in ")]


def test_a_log_has_no_line_for_a_quick_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "monotonic", lambda: 0.0)
    with run.progress() as track:
        through(track, "Writing", 3)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_shares_of_steps_and_of_the_fits_within(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with run.progress() as track:
        for _ in track((None,), "Fitting", 1):
            with within(False) as inner:
                assert list(inner([1, 2, 3], "Refits")) == [1, 2, 3]
    said = capsys.readouterr().err
    assert "Refits" in said
    assert "100%" in said


def test_a_log_says_how_far_the_only_part_of_a_step_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=6.0)
    monkeypatch.setattr(run, "monotonic", lambda: next(clock))
    with run.progress() as track:
        for _ in track((None,), "Drawing", 1):
            with within(False) as inner:
                assert list(inner([1, 2, 3, 4], "Refits")) == [1, 2, 3, 4]
    assert "Drawing, refits: 50\xa0%" in capsys.readouterr().err.splitlines()


def test_a_display_ends_with_what_it_is_around() -> None:
    seen: list[str] = []

    def track(sequence, description):
        seen.append(description)
        return iter(sequence)

    with showing(track), within(True) as inner:
        assert list(inner([1], "shown")) == [1]
    with within(False) as inner:
        assert inner is silent
    assert seen == ["shown"]

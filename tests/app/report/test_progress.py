"""A run says how far it is: bars on a terminal, lines in a log."""

from __future__ import annotations

import itertools

import pytest

from bayesrbf.app.report import run
from bayesrbf.base.tasks import progress as within
from bayesrbf.base.tasks import run_tasks, showing, silent


def test_a_log_names_the_phases_and_has_a_line_for_every_slow_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=6.0)
    monkeypatch.setattr(run, "monotonic", lambda: next(clock))
    with run.progress(("Fitting", "Drawing the posterior")) as phase:
        with phase("Fitting"):
            pass
        with phase("Drawing the posterior"), within(False) as inner:
            assert list(inner([1, 2, 3, 4], "Refits")) == [1, 2, 3, 4]
    first, *said = capsys.readouterr().err.splitlines()
    assert first == "Phases: fitting and drawing the posterior."
    assert said[0].startswith("Fitting: done in ")
    # Of four steps of six seconds half are done after twelve, and twelve are left.
    assert said[1] == "Drawing the posterior, refits: 50\xa0%, 12 s left"
    assert said[2].startswith("Drawing the posterior: done in ")
    assert len(said) == 3


@pytest.mark.parametrize("terminal", [False, True])
def test_an_interrupt_is_followed_by_the_phases_that_are_not_done(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")

    def interrupted() -> None:
        with run.progress(("Fitting", "Drawing", "Writing")) as phase:
            with phase("Fitting"):
                pass
            with phase("Drawing"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "Not done: drawing and writing." in capsys.readouterr().err


def test_a_log_has_no_line_for_a_quick_phase(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "monotonic", lambda: 0.0)
    with run.progress() as phase, phase("Writing"), within(False) as inner:
        assert list(inner([1, 2, 3], "Files")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_a_terminal_names_all_phases_before_and_shows_the_work_within(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with run.progress(("Fitting", "Writing")) as phase:
        assert "Writing" in capsys.readouterr().err
        with phase("Fitting"):
            assert run_tasks(lambda one: one + 1, [1, 2, 3], "Refits") == [2, 3, 4]
    said = capsys.readouterr().err
    assert "Fitting, refits" in said
    assert "100%" in said


def test_work_within_work_has_no_bar_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with run.progress() as phase, phase("Fitting"), within(False) as outer:
        for _ in outer([1, 2], "Folds"):
            with within(False) as inner:
                assert list(inner([1, 2, 3], "Starts")) == [1, 2, 3]
    assert "starts" not in capsys.readouterr().err


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

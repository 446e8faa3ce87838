"""What the terminal says of a table before the fit: notes whole, and all of them without a page."""

from __future__ import annotations

import pandas as pd
import pytest

from bayesrbf.app.report.job import Job
from bayesrbf.app.report.run import SHOWN_NOTES, introduce
from bayesrbf.table.kinds import kind_named

LONG = f"Columns hold {'text, ' * 100}: if it tells nothing, say --ignore 'first name,last name'."
NOTES = (LONG, *(f"Note number {i}." for i in range(2 * SHOWN_NOTES)))


def shown(page: bool, capsys: pytest.CaptureFixture[str]) -> str:
    X, y = pd.DataFrame({"x": [1.0, 2.0]}), pd.Series(["a", "b"])
    introduce(Job("table", "y", X, y, {"x": kind_named("real")}, "map", 0, notes=NOTES), page=page)
    return capsys.readouterr().out


def test_without_a_page_all_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(False, capsys)
    assert all(note in said for note in NOTES)
    assert "on the page" not in said


def test_a_page_has_what_the_terminal_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(True, capsys)
    assert LONG in said
    assert f"and {len(NOTES) - SHOWN_NOTES} more, on the page" in said
    assert said.count("note  ") == SHOWN_NOTES

"""A page shows figures as their command wrote them."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from bench.figures import at_least, at_most, near_one
from tests import measured
from tests.measured import PLACE, ROOT, markdown, names, pages, part, read, rendered, strays, write

MEASURED = [
    ROOT / "README.md",
    ROOT / "docs" / "reproduction.md",
    *sorted((ROOT / "docs" / "measured").glob("*.md")),
]
"""Pages whose every table with figures is measured."""
FIGURE = re.compile(r"\|\s*(?:[-+±<≤≥]\s*)?\.?\d[^|]*(?=\|)")
"""A cell that begins with a number."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_the_files_have(page):
    assert page.read_text() == rendered(page.read_text()), "run python -m tests.measured"


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_table_with_figures_has_a_file(page):
    rows = [line for line in bare(page.read_text()).splitlines() if line.startswith("|")]
    assert not [row for row in rows if FIGURE.search(row)]


def bare(page):
    """A page without the tables of files."""
    return PLACE.sub("", page)


def test_a_table_without_a_file_is_seen():
    page = "| model | loss |\n|:--|--:|\n| stack | 0.285 |\n"
    assert FIGURE.search(bare(page))
    assert not FIGURE.search(bare(f"<!-- figures: loss -->\n{page}<!-- end of figures -->\n"))
    assert FIGURE.search("| stack | ± .3 |")
    assert not FIGURE.search("| `predict` | rows of 4 columns |")


def test_every_file_stands_on_a_page():
    shown = {name for page in pages() for name, _ in PLACE.findall(page.read_text())}
    assert set(names()) <= shown


def test_a_page_that_says_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    shown = write("loss", {"model": ["stack"], "log loss": [0.285]}, "make bench")
    page = f"<!-- figures: loss -->\n{shown}<!-- end of figures -->\n"
    assert rendered(page) == page
    assert "0.285" in page
    assert rendered(page.replace("0.285", "0.280")) == page
    assert rendered(page.replace("| log loss |", "| log loss | time |")) == page
    assert markdown(read("loss")) == shown


def test_a_part_is_run_once_and_again_after_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    runs = []

    def make():
        runs.append(1)
        return {"loss": 0.5}

    for _ in range(2):
        assert part("loss", {"table": "iris"}, make)["loss"] == 0.5
    assert len(runs) == 1
    part("loss", {"table": "wine"}, make)
    monkeypatch.setattr(measured, "commit", lambda: "another")
    part("loss", {"table": "iris"}, make)
    assert len(runs) == 3


@pytest.mark.skipif(
    not (ROOT / ".git").exists() or measured.git("rev-parse", "--is-shallow-repository") == "true",
    reason="there is no history here",
)
def test_a_figure_is_of_a_commit_in_the_history():
    assert strays() == []


def test_a_figure_of_another_history_is_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "FIGURES", tmp_path)
    monkeypatch.setattr(measured, "git", lambda *words: "abcdef01\n12345678")
    for name, commit in {"here": "12345678", "changed": "abcdef0+", "gone": "7654321"}.items():
        monkeypatch.setattr(measured, "commit", lambda own=commit: own)
        write(name, {"log loss": [0.285]}, "make bench")
    assert strays() == ["gone"]


def test_bounds_of_benchmarks_leave_room_for_two_standard_errors():
    found = pd.Series([0.0, 1.0])  # the mean and its standard error are 0.5
    at_most(found, -0.5)
    at_least(found, 1.5)
    near_one(found, 0.0)
    for refused in (
        lambda: at_most(found, -0.51),
        lambda: at_least(found, 1.51),
        lambda: near_one(found + 1.51, 0.0),
    ):
        with pytest.raises(AssertionError):
            refused()

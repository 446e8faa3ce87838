"""A page shows figures as their command wrote them."""

from __future__ import annotations

import re

import pytest

from tests.measured import FIGURES, PLACE, ROOT, markdown, pages, part, read, rendered, write

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


def names():
    """Of all files."""
    return {str(file.relative_to(FIGURES).with_suffix("")) for file in FIGURES.rglob("*.json")}


def test_every_file_stands_on_a_page():
    shown = {name for page in pages() for name, _ in PLACE.findall(page.read_text())}
    assert names() <= shown


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
    monkeypatch.setattr("tests.measured.key_of", lambda about: "another")
    part("loss", {"table": "iris"}, make)
    assert len(runs) == 3


def table(errors, spreads=(0.3, 0.4)):
    columns = {"table": ["banana", "ripley"], "rows": [400, 250], "error %": errors, "se": spreads}
    write("published", columns, "make bench", 1)


def test_what_moved_by_more_than_its_standard_error_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    table([10.8, 9.0])
    assert capsys.readouterr().out == ""
    table([11.7, 9.5])  # of the differences: .42 and .57
    moved = "moved: published banana, 400: error % 10.8 -> 11.7 (s.e. 0.4)\n"
    assert capsys.readouterr().out == moved
    table([11.7, 9.5])
    assert capsys.readouterr().out == ""
    table([11.7, 8.8], spreads=(0.3, None))
    assert capsys.readouterr().out == ""


def test_a_row_is_compared_with_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    errors = {"banana": 11.0, "ripley": 9.0}
    for names in (["banana", "ripley"], ["ripley", "banana", "titanic"]):
        columns = {
            "table": names,
            "error %": [errors.get(name, 22.0) for name in names],
            "se": [0.1] * len(names),
            "log loss": [0.2] * len(names),
            "paper": ["-"] * len(names),
        }
        write("published", columns, "make bench")
    assert capsys.readouterr().out == ""

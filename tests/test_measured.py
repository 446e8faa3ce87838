"""A page shows figures as their command wrote them."""

from __future__ import annotations

import pytest

from tests.measured import FIGURES, PLACE, ROOT, markdown, pages, part, read, rendered, write

MEASURED = [ROOT / "docs" / "trust.md", *sorted((ROOT / "docs" / "measured").glob("*.md"))]
"""Pages whose every table is measured."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_the_files_have(page):
    assert page.read_text() == rendered(page.read_text()), "run python -m tests.measured"


def test_every_file_stands_on_a_page():
    shown = {name for page in pages() for name, _ in PLACE.findall(page.read_text())}
    assert shown == {str(f.relative_to(FIGURES).with_suffix("")) for f in FIGURES.rglob("*.json")}


def test_a_page_that_says_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.measured.FIGURES", tmp_path)
    shown = write("loss", {"model": ["stack"], "log loss": [0.285]}, "make bench", covers=())
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
    monkeypatch.setattr("tests.measured.fingerprint", lambda covers: "another")
    part("loss", {"table": "iris"}, make)
    assert len(runs) == 3

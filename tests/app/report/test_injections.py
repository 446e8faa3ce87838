"""Fifty hostile texts in any slot leave the structure of the page unchanged, also in a browser."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesrbf.app.commands import app
from bayesrbf.app.report.output import FORMULA, to_csv
from bayesrbf.app.words import clipped, harmless
from tests.app.report.browsing import Page, Shape, browser, opened
from tests.app.report.injections import HOST, PAYLOADS, SLOTS
from tests.app.report.records import rendered
from tests.cases import first_quick

needs_browser = pytest.mark.skipif(browser() is None, reason="no Chromium is installed here")
STEERING = "\x00\x07\x1b\x9b\u202e\u2066\u200f\u2028\ud800"
"""Control characters, turns of the writing direction, half a character."""


def test_there_are_fifty_texts() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) == 50
    assert len(SLOTS) == 7


@pytest.fixture(scope="module")
def shape() -> Shape:
    return Page(rendered()).shape


@pytest.mark.parametrize("text", first_quick(PAYLOADS, 8))
def test_a_text_in_every_slot_is_shown_and_changes_no_element(text: str, shape: Shape) -> None:
    """Pictures stay well-formed, have a name, and curves that stay inside."""
    html = rendered(text)
    page = Page(html)
    assert page.shape == shape
    assert clipped(harmless(text), 19)[:18].strip() in page.text
    pictures = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(pictures) > 12
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        named = root.get("role") == "img" and root.get("aria-label")
        assert root.get("aria-hidden") == "true" or (named and root.find("title") is not None)
        numbers = re.findall(r' (?:x|y|cx|cy|r|width|height|[xy][12])="([^"]*)"', picture)
        assert all(np.isfinite(float(value)) for value in numbers)
        curves = " ".join(mark.get("points", "") for mark in root.iter())
        assert all(0 <= float(place) <= 1000 for place in re.findall(r"[^ ,]+", curves))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_changes_no_element(text: str) -> None:
    assert Page(rendered(text.replace("\0", ""))).shape == Page(rendered()).shape


def test_nothing_that_steers_a_reader_is_on_the_page() -> None:
    page = rendered(f"a{STEERING}b")
    assert not set(STEERING) & set(page)
    assert page.encode()


def watched(html: str, folder: Path) -> tuple[Shape, object, object]:
    file = folder / "page.html"
    file.write_bytes(html.encode())
    seen = opened(file, folder)
    return Page(seen.dom).shape, seen.asked, seen.console


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Shape:
    return watched(rendered(), tmp_path_factory.mktemp("plain"))[0]


@needs_browser
def test_the_browser_sees_what_a_page_asks_for_and_says(tmp_path: Path) -> None:
    html = f"<img src=http://{HOST}/a.png><script>console.log('got in')</script>"
    found, asked, console = watched(html, tmp_path)
    assert asked == (f"http://{HOST}/a.png",)
    assert "got in" in str(console)
    assert [tag for tag, _ in found] == ["html", "head", "body", "img", "script"]


@needs_browser
@pytest.mark.parametrize("text", first_quick(PAYLOADS[::7]))
def test_browser_finds_the_same_elements_and_asks_for_nothing(
    text: str, plain: Shape, tmp_path: Path
) -> None:
    assert watched(rendered(text), tmp_path) == (plain, (), ())


def hostile_table(folder: Path) -> Path:
    """Payloads as columns, levels, classes, target and the name of the file."""
    rng = np.random.default_rng(0)
    texts = [t.replace("\x00", "").replace("\x1b", "") for t in PAYLOADS]
    y = np.repeat(texts[:2], 30)
    columns: dict[str, object] = {texts[i]: rng.normal(size=60) + (y == y[0]) for i in (3, 7)}
    for i in (27, 28):
        columns[texts[i]] = rng.choice(texts[29 + i - 27 : 50 : 4], 60)
    columns[texts[12]] = y
    file = folder / "<img src=x onerror=console.log(1)>.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    return file


@needs_browser
@pytest.mark.slow
def test_report_of_a_hostile_table_is_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command, with payloads wherever a table, its name and the options may have them."""
    file, out = hostile_table(tmp_path), tmp_path / "<script>out"
    words = ["report", str(file), "--target", PAYLOADS[12], "--out", str(out)]
    words += ["--model", "mixture", "--inference", "map", "--cost", f'"{PAYLOADS[0]}"=5']
    monkeypatch.setattr("sys.argv", ["bayesrbf", *words])
    app(words, exit_on_error=False, result_action="return_value")
    html = (out / "report.html").read_text()
    assert "&lt;script&gt;" in html
    found, asked, console = watched(html, tmp_path)
    assert asked == console == ()
    tags = {tag for tag, _ in found}
    assert not tags & {"script", "img", "iframe", "object", "embed", "base", "form", "link"}
    assert not [names for _, names in found if any(name.startswith("on") for name in names)]
    with open(out / "predictions.csv", newline="") as predictions:
        for row in csv.reader(predictions):
            assert not [cell for cell in row if cell.startswith(FORMULA) and not _is_number(cell)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_no_cell_of_a_file_is_a_formula() -> None:
    starts = ["=1", "+1", "-1+1", "@x", "\t=1", "\r=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"]
    text = to_csv(pd.DataFrame({name: [name] for name in starts})).decode()
    for row in csv.reader(io.StringIO(text, newline="")):
        assert [cell[0] for cell in row] == ["'"] * len(starts)

"""The page of a case in Chromium, as somebody types, drags, prints and reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.options import PREDICTIONS
from bayesrbf.app.words import percent
from bayesrbf.base.table_options import TableOptions
from tests.app.report.browsing import browser
from tests.app.report.injections import HOST, PAYLOADS
from tests.app.serve.browsers import TEXTS, chromium, contrast, served, visiting
from tests.app.serve.desks import HOSTILE, patients, write_desk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(
    browser() is None or find_spec("playwright") is None,
    reason="no Chromium or no Playwright is installed here",
)
PAGES = ("", "?row=3", "?row=999", "card", "api")
NARROW = {"width": 360, "height": 800}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("desk")
    options = TableOptions(dates=("seen",))
    write_desk(folder, patients(), options=options, refine={"method": "laplace", "draws": 50})
    with served(folder, "--refer", "0.3") as address:
        yield address


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with chromium() as one:
        yield one


def answer(page: Page) -> str:
    return page.inner_text("#part-answer")


def probabilities(desk: str, **cells: object) -> list[str]:
    """What the interface says of a row, as the page writes it."""
    body = json.dumps(cells).encode()
    asked = Request(f"{desk}api/uncertainty", body, {"Content-Type": "application/json"})
    with urlopen(asked) as reply:
        (line,) = json.load(reply)["answers"]
    return [percent(value) for name, value in line.items() if name.startswith("probability_")]


def test_typing_is_answered_without_a_button_and_a_blank_cell_is_missing(
    desk: str, opened: Browser
) -> None:
    with visiting(opened, desk) as visit:
        empty = answer(visit.answered())
        visit.page.locator("#cell-0").press_sequentially("61.5")
        visit.page.select_option("#cell-3", HOSTILE)
        told = answer(visit.answered())
        expected = probabilities(desk, age=61.5, ward=HOSTILE)
        assert len(expected) == 2
        assert all(share in told for share in expected)
        assert "since the last answer" in told
        assert visit.page.locator("#part-why tbody tr").count() == 2
        visit.page.fill("#cell-0", "")
        visit.page.select_option("#cell-3", "")
        blank = visit.answered()
        assert all(share in answer(blank) for share in probabilities(desk))
        assert "No cell is known" in blank.inner_text("#part-why")
        assert "since the last answer" not in empty
        assert visit.console == []


@pytest.mark.slow
def test_a_comma_is_a_decimal_mark(desk: str, opened: Browser) -> None:
    shown = set()
    for text in ("61.5", "61,5"):
        with visiting(opened, desk) as visit:
            visit.answered().fill("#cell-0", text)
            visit.answered().reload()
            shown.add(answer(visit.answered()))
    assert len(shown) == 1


def test_a_bad_cell_is_told_and_mended(desk: str, opened: Browser) -> None:
    with visiting(opened, desk) as visit:
        visit.answered().fill("#cell-0", "old")
        page = visit.answered()
        assert "'age'" in page.inner_text("[role=alert]")
        assert "--" not in page.inner_text("#parts")
        assert page.inner_text("#part-next") == page.inner_text("#part-why") == ""
        page.fill("#cell-0", "61")
        page = visit.answered()
        assert page.locator("[role=alert]").count() == 0
        assert all(share in answer(page) for share in probabilities(desk, age=61))
        assert page.inner_text("#part-next") != ""


def test_dragging_and_arrow_keys_move_a_cell_along_its_curve(desk: str, opened: Browser) -> None:
    def here(page: Page) -> float:
        return float(page.get_attribute("#part-along line.diagonal", "x1") or "nan")

    with visiting(opened, desk) as visit:
        page = visit.answered()
        slider = page.locator("[data-of=cell-0]")
        box = slider.bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + box["width"] / 2, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, y, steps=5)
        page.mouse.up()
        dragged = float(visit.answered().input_value("#cell-0"))
        assert "Along age" in page.inner_text("#part-along")
        before = here(page)
        assert all(share in answer(page) for share in probabilities(desk, age=dragged))
        page.focus("#cell-0")
        for key in ("ArrowUp", "ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
        moved = float(visit.answered().input_value("#cell-0"))
        assert moved > dragged
        assert here(page) > before
        assert all(share in answer(page) for share in probabilities(desk, age=moved))
        page.focus("#cell-3")
        assert "Along ward" in visit.answered().inner_text("#part-along")


@pytest.mark.slow
def test_moved_cells_are_numbers_as_the_table_writes_them(tmp_path: Path, opened: Browser) -> None:
    options = TableOptions(thousands=".", decimal=",")
    write_desk(tmp_path, patients(), options=options)
    with served(tmp_path) as desk, visiting(opened, desk) as visit:
        visit.page.locator("[data-of=cell-1]").fill("1.23")  # as the slider has it
        assert visit.page.input_value("#cell-1") == "1,23"
        assert all(share in answer(visit.answered()) for share in probabilities(desk, dose=1.23))
        visit.page.fill("#cell-1", "1.200,5")
        visit.page.press("#cell-1", "ArrowUp")
        assert 1200.5 < float(visit.page.input_value("#cell-1").replace(",", ".")) < 1202


def test_every_field_is_reached_by_the_keyboard_and_shows_that_it_has_it(
    desk: str, opened: Browser
) -> None:
    with visiting(opened, desk) as visit:
        page, reached = visit.answered(), []
        for _ in range(40):
            page.keyboard.press("Tab")
            name, width, style = page.evaluate(
                "() => { const one = document.activeElement, s = getComputedStyle(one);"
                " return [one.id || one.name, parseFloat(s.outlineWidth), s.outlineStyle]; }"
            )
            assert width >= 2
            assert style != "none"
            reached.append(name)
            if name == "ask":
                break
        cells = [name for name in reached if name.startswith("cell-")]
        assert cells == [f"cell-{j}" for j in range(4)]
        assert reached.index("row") < reached.index("cell-0") < reached.index("column")
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.id") == "parts"


def sent(url: str) -> str:
    """What the server is sent of an address; its port is any number."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def test_the_fragment_holds_the_case_and_is_sent_to_nobody(desk: str, opened: Browser) -> None:
    with visiting(opened, f"{desk}?row=3") as visit:
        page = visit.answered()
        assert "Row 3" in page.inner_text("#filled")
        page.fill("#cell-0", "47,25")
        page.fill("#cell-1", "")
        told, link = answer(visit.answered()).splitlines(), page.url
        assert page.locator("#filled").count() == 0
        assert "cell-0=47%2C25" in link.partition("#")[2]
        assert not any("47" in sent(url) for url in visit.asked)
    with visiting(opened, link) as visit:
        page = visit.answered()
        assert page.input_value("#cell-0") == "47,25"
        assert page.input_value("#cell-1") == ""
        assert page.input_value("#cell-3") in (HOSTILE, "b & c")
        again = answer(page).splitlines()
        assert [line for line in told if "since" not in line] == again
        assert not any("47" in sent(url) for url in visit.asked)


def test_a_case_is_saved_as_it_stands(desk: str, opened: Browser) -> None:
    with visiting(opened, desk) as visit:
        visit.answered().fill("#cell-0", "61,5")
        with visit.answered().expect_download() as saved:
            visit.page.click("text=Save as JSON")
        content = json.loads(saved.value.path().read_text("utf-8"))
        assert content["cells"] == {"age": 61.5, "dose": None, "seen": None, "ward": None}
        shares = [percent(one["probability"]) for one in content["classes"]]
        assert shares == probabilities(desk, age=61.5)


def test_a_printed_case_has_its_cells_and_answers_and_no_controls(
    desk: str, opened: Browser
) -> None:
    with visiting(opened, desk) as visit:
        page = visit.answered()
        page.fill("#cell-0", "61")
        visit.answered().emulate_media(media="print")
        for hidden in ("nav", "#print", "#ask", ".slider >> nth=0", "#cell-1", "#cell-3"):
            assert not page.is_visible(hidden), hidden
        for shown in ("#cell-0", "#part-answer", "#part-why", "footer"):
            assert page.is_visible(shown), shown


def test_without_javascript_the_button_answers(desk: str, opened: Browser) -> None:
    with visiting(opened, desk, java_script_enabled=False) as visit:
        page = visit.page
        assert not page.is_visible("#print")
        page.fill("#cell-0", "61,5")
        page.click("#ask")
        assert all(share in answer(page) for share in probabilities(desk, age=61.5))
        assert page.input_value("#cell-0") == "61,5"
        page.fill("#cell-0", "old")
        page.click("#ask")
        assert "'age'" in page.inner_text("[role=alert]")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_read_on_narrow_screens_by_day_and_night(
    scheme: str, desk: str, opened: Browser
) -> None:
    """Nothing scrolls sideways, and every text stands out from its ground by 4.5 to 1."""
    for path in PAGES:
        with visiting(opened, desk + path, viewport=NARROW, color_scheme=scheme) as visit:
            page = visit.page if path in ("card", "api") else visit.answered()
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, path
            texts = page.evaluate(TEXTS)
            assert len(texts) > 10
            faint = [text for text, ink, ground in texts if contrast(ink, ground) < 4.5]
            assert faint == [], path


@pytest.mark.slow
def test_a_column_among_many_is_found_by_its_name(tmp_path: Path, opened: Browser) -> None:
    """Other fields step aside and stay cells of the case; what their cells add is one sum.

    Beside long names a phone shows what each cell adds, and the page is no wider than its screen.
    """
    cells = np.random.default_rng(0).normal(size=(60, 30))
    long = "in_abdominocentesis_by_spectrophotometry"
    table = pd.DataFrame(cells, columns=[f"Marker {place} {long}" for place in range(30)])
    diagonal = HybridMixtureClassifier(covariance_type="diag", random_state=0)
    write_desk(
        tmp_path, table.assign(outcome=np.where(cells[:, 0] > 0, "ill <b>", "well")), diagonal
    )
    with (
        served(tmp_path) as desk,
        visiting(opened, f"{desk}?row=1") as visit,
        visiting(opened, f"{desk}?row=1", viewport=NARROW) as phone,
    ):
        narrow = phone.answered()
        assert narrow.evaluate("() => document.documentElement.scrollWidth") <= NARROW["width"]
        adds = narrow.locator("#part-why td.n").first.bounding_box()
        assert adds is not None
        assert adds["x"] + adds["width"] <= NARROW["width"]
        page = visit.answered()
        before, asked = page.inner_text("#parts"), len(visit.asked)
        assert "10 other cells together" in before
        page.fill("#find input", "marker 17")
        assert page.locator(".field:visible").count() == 1
        assert (visit.answered().inner_text("#parts"), len(visit.asked)) == (before, asked)
        page.emulate_media(media="print")
        assert page.locator(".field:visible").count() == 30


def test_the_answer_stays_in_sight_on_a_narrow_screen(desk: str, opened: Browser) -> None:
    with visiting(opened, desk, viewport=NARROW) as visit:
        page = visit.answered()
        page.focus("#cell-3")
        box = page.locator("#part-answer").bounding_box()
        assert box is not None
        assert 0 <= box["y"] < box["y"] + box["height"] <= 400


def test_everything_to_fill_in_has_a_label(desk: str, opened: Browser) -> None:
    with visiting(opened, f"{desk}?row=3") as visit:
        unnamed = visit.answered().evaluate(
            "() => [...document.querySelectorAll('input:not([type=hidden]), select, button')]"
            ".filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))"
            ".map((one) => one.outerHTML)"
        )
        assert unnamed == []
        pictures = visit.page.locator("svg")
        assert pictures.count() == visit.page.locator("svg[role=img][aria-label]").count() > 5


def test_the_policy_stops_a_script_that_got_in(desk: str, opened: Browser) -> None:
    with visiting(opened, f"{desk}card") as visit:
        visit.page.evaluate(
            f"""() => {{
              const script = document.createElement("script");
              script.textContent = "document.title = 'got in'";
              document.body.append(script);
              const image = new Image();
              image.src = "http://{HOST}/a.png";
              document.body.append(image);
              return new Promise((done) => image.addEventListener("error", done, {{ once: true }}));
            }}"""
        )
        assert visit.page.title() != "got in"
        assert len([line for line in visit.console if "Content Security Policy" in line]) == 2


def hostile_desk(folder: Path) -> list[str]:
    """A model whose columns, levels, classes and names of rows are payloads; its columns."""
    rng = np.random.default_rng(0)
    texts = [t.replace("\x00", "").replace("\x1b", "").strip() for t in PAYLOADS]
    y = np.repeat(texts[:2], 30)
    columns: dict[str, object] = {texts[i]: rng.normal(size=60) + (y == y[0]) for i in (4, 28)}
    columns |= {texts[i]: rng.choice(texts[i + 1 :: 4], 60) for i in (29, 33)}
    table = pd.DataFrame(columns)
    table["outcome"] = y
    write_desk(folder, table, options=TableOptions(id=texts[5]))
    predictions = pd.read_csv(folder / PREDICTIONS)
    predictions[texts[5]] = (texts * 2)[:60]
    predictions.to_csv(folder / PREDICTIONS, index=False)
    return list(columns)


@pytest.mark.slow
def test_hostile_texts_stay_texts(tmp_path: Path, opened: Browser) -> None:
    """No script runs, no request leaves, and the policy has nothing to stop."""
    folder = tmp_path / "<img src=x onerror=console.log(1)>"
    names = hostile_desk(folder)
    with served(folder, "--cost", f'"{PAYLOADS[0]}"=5') as address:
        for path in ("", "?row=1", "?row=%3Cscript%3E", "card", "api"):
            with visiting(opened, address + path) as visit:
                page = visit.page
                if not path:
                    page.fill("#cell-0", "<img src=x onerror=console.log(1)>")
                    visit.answered()
                    page.fill("#cell-0", "1")
                    for cell in ("#cell-2", "#cell-3"):
                        page.select_option(cell, index=1)
                    page.select_option("#column", index=4)
                    assert names[3][:10] in visit.answered().inner_text("#part-along h2")
                page.wait_for_load_state("networkidle")
                strange = page.locator("img, iframe, object, embed, base, style, video, math")
                assert strange.count() == page.locator("b", has_text="got out").count() == 0
                assert all(url.startswith(address) for url in visit.asked)
                told = [line for line in visit.console if "status of 422" not in line]
                assert told == [], path

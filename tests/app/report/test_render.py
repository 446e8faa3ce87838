"""The page: one file, well-formed, readable without eyes; every record has its slot."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from markupsafe import escape

from bayesrbf.app.report.collect import SECTIONS, Report
from bayesrbf.app.report.judgement import pictures, sentences
from bayesrbf.app.report.refits import Refits
from bayesrbf.app.report.render import FOR_COMMITTEES, options_whole, render
from tests.app.report.browsing import Page
from tests.app.report.records import rendered, synthetic

NAN = float("nan")
NOTE = "Columns 'a' hold text, " + "x" * 500 + ": if it tells nothing, say --ignore 'first name,b'."


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(rendered())


def bare() -> Report:
    """A report in which everything is absent that may be absent."""
    full = synthetic()
    points = [replace(row, lower=NAN, upper=NAN, epistemic=NAN) for row in full.uncertain_rows.rows]
    complete = tuple(replace(column, missing=0.0) for column in full.reading.columns)
    nothing = {"missing": 0, "examples": (), "n_checked": 0, "hidden_truth": False, "error": ()}
    no_density = {"by_class": (), "component_names": (), "weights": (), "means": ()}
    return replace(
        full,
        reading=replace(full.reading, notes=(), unlabelled=0, columns=complete),
        uncertain_rows=replace(
            full.uncertain_rows, rows=tuple(points), novel=(), epistemic=np.zeros(90)
        ),
        oddities=replace(full.oddities, cells=(), labels=(), n_cells=0),
        learned=replace(full.learned, **no_density, members=(), relevances=()),
        imputations=replace(full.imputations, **nothing),
        diagnostics=replace(full.diagnostics, variables=(), findings=(), warnings=()),
        check=None,
        costs=None,
        refits=Refits(),
    )


def special() -> Report:
    """A report with a class of two rows, many notes, and intervals that tell nothing."""
    full = synthetic()
    counts = dict(zip(full.classes, (2, 40, 48), strict=True))
    notes = (NOTE, *(f"Note number {i}." for i in range(20)))
    rows = tuple(replace(row, lower=0.002, upper=0.998) for row in full.uncertain_rows.rows)
    reading = replace(full.reading, class_counts=counts, notes=notes)
    return replace(full, reading=reading, uncertain_rows=replace(full.uncertain_rows, rows=rows))


def sections(html: str) -> dict[str, str]:
    """Text of every section by its id."""
    parts = re.findall(r'<section id="(\w+)">(.*?)</section>', html, flags=re.DOTALL)
    return {name: Page(text).text for name, text in parts}


def table_named(html: str, label: str) -> str:
    """A table by its name."""
    start = html.index(f'aria-label="{label}"')
    return html[start : html.index("</table>", start)]


@pytest.mark.parametrize("make", [synthetic, special, bare])
def test_every_sentence_of_the_findings_is_on_the_page(make: Callable[[], Report]) -> None:
    report = make()
    html = render(report)
    told = [one for one in sentences(report).values() if one]
    assert len(told) >= 14
    for sentence in told:
        assert str(escape(sentence)) in html or str(options_whole(sentence)) in html


def test_every_picture_of_the_sections_is_on_the_page() -> None:
    html = rendered()
    drawn = [one for one in pictures(synthetic()).values() if one is not None]
    drawn = [one for some in drawn for one in (some if isinstance(some, list) else [some])]
    assert len(drawn) > 30
    assert all(one in html for one in drawn)


def test_no_two_sections_give_a_name_to_different_things() -> None:
    full = synthetic()
    for kind in ("messages", "pictures", "figures"):
        of_parts = [getattr(one, kind)(full) for one in SECTIONS]
        names = [name for part in of_parts for name in part]
        assert len(names) == len(set(names)) > 15
    records = [part.record for part in SECTIONS]
    assert len(records) == len(set(records))
    assert {field.name for field in fields(Report)} > set(records)


def test_nothing_comes_from_outside(page: Page) -> None:
    policy = page.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    found = {tag for tag, _ in page.tags}
    assert not found & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page.text


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contents_lead_to_every_section_in_order(n_classes: int) -> None:
    html = rendered(n_classes=n_classes)
    assert re.findall(r'href="#(\w+)"', html) == re.findall(r'<section id="(\w+)"', html)


def test_the_short_form_says_nothing_that_the_page_does_not() -> None:
    report = synthetic(n_classes=2)
    short = render(report, chapters=FOR_COMMITTEES)
    told = [one for one in sentences(report).values() if str(escape(one)) in short]
    assert {sentences(report)[name] for name in ("verdict", "costs", "subgroups", "read")} < {*told}
    assert short.count('aria-label="Reliability of') == 1
    assert re.findall(r'href="#(\w+)"', short) == re.findall(r'<section id="(\w+)"', short)
    whole = Page(rendered(n_classes=2)).text
    for text in re.findall(r'<p class="how">([^<]*)</p>', short):
        assert Page(text).text in whole


def test_classes_that_lack_more_cells_stand_beside_the_column() -> None:
    columns = (replace(synthetic().reading.columns[0], missing_more=(("absence", 0.86),)),)
    html = render(replace(synthetic(), reading=replace(synthetic().reading, columns=columns)))
    assert "86\xa0% of “absence”" in table_named(html, "Columns")
    assert " of “" not in table_named(rendered(), "Columns")


def test_calibration_of_two_classes_is_drawn_once() -> None:
    assert rendered(n_classes=2).count('aria-label="Reliability of') == 1


def test_sections_come_in_order_and_open_with_a_finding(page: Page) -> None:
    assert [s["id"] for s in page.all("section")] == [
        "trust", "read", "good", "unsure", "odd", "learned", "filled", "model", "appendix",
    ]  # fmt: skip
    kinds = [p.get("class") for p in page.all("p")]
    assert kinds.count("finding") == 8
    assert kinds.count("verdict") == 1
    assert kinds.count("how") >= 9


def test_page_one_is_in_plain_words() -> None:
    """No unit of information without a word for it beside; no figure of the computation."""
    found = sections(rendered())
    first = found["trust"]
    assert "nats" in first
    for place in re.finditer(r"\bnats\b", first):
        assert "surprise" in first[max(place.start() - 160, 0) : place.start()]
    for name, text in found.items():
        told = any(word in text for word in ("R-hat", "k-hat", "pareto k", "Effective draws"))
        assert told == (name == "appendix"), name


@pytest.mark.parametrize("n_classes", [2, 3])
def test_page_one_answers_counts_and_then_has_log_loss(n_classes: int) -> None:
    html, full = rendered(n_classes=n_classes), synthetic(n_classes=n_classes)
    first = sections(html)["trust"].lower()
    told = [sentences(full)["verdict"], "held out", "sensitivity", "predicted probability of"]
    places = [first.index(one.lower()) for one in (*told, "(log loss) is")]
    assert places == sorted(places)
    if n_classes == 2:
        assert all(name in first for name in ("specificity", "(ppv)", "(npv)"))
    else:
        table = table_named(html, "Classes on page one")
        assert all(name in table for name in full.classes)


def test_a_rare_class_is_named_wherever_it_is_judged() -> None:
    found = sections(html := render(special()))
    note = "2 rows: cannot be validated"
    assert note in found["read"]
    assert found["good"].count(note) == 4  # ranks, decisions, refits, and what is mistaken for what
    assert "predicted probability of x0" not in html
    assert "cannot be validated" not in rendered()


def test_every_note_is_on_the_page_and_whole() -> None:
    read = sections(render(special()))["read"]
    assert all(note in read for note in special().reading.notes)
    assert "…" not in read[: read.index("Note number 19.")]


def test_a_bare_report_has_its_sections_and_no_empty_slot() -> None:
    html, full = render(bare()), rendered()
    page = Page(html)
    assert len(page.all("section")) == 9
    assert "nan" not in page.text.lower().split()
    assert "– to –" not in html
    for slot in (
        'aria-label="Cells that look wrong"',
        'aria-label="Labels that look wrong"',
        'aria-label="Novel rows"',
        'aria-label="Filled cells"',
        "<th>nearest component</th>",
        "The members of the stack and their weights",
        "What makes two rows alike",
        "What mistakes cost",
        "Noticed on the way in",
        "Where cells are missing",
        "Said on the way",
    ):
        assert slot in full
        assert slot not in html
    interval = "90\xa0% interval</th>"
    assert interval in table_named(full, "Least sure rows")
    assert interval not in table_named(html, "Least sure rows")


def test_a_row_unlike_all_others_says_whether_one_cell_makes_it_so() -> None:
    _, _, first, second = table_named(rendered(), "Novel rows").split("<tr>")
    assert ">this cell<" in first
    assert ">not this cell alone<" in second


def test_fifteen_classes_share_eight_colours() -> None:
    used = set(re.findall(r'class="[^"]*\b(c\d+)\b', rendered(n_classes=15)))
    assert used == {f"c{i}" for i in range(8)}


def test_dark_print_and_phone_have_their_styles() -> None:
    html = rendered()
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert 'name="viewport"' in html


def test_classes_of_pictures_are_styled() -> None:
    """Every class that a picture uses is in the style sheet."""
    html = rendered()
    style = html[html.index("<style>") : html.index("</style>")]
    used = {
        name
        for picture in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
        for names in re.findall(r'class="([^"]*)"', picture)
        for name in names.split()
    }
    assert {name for name in used if f".{name}" not in style} <= {"dash0"}


def test_text_tiles_and_tables_share_their_width() -> None:
    """The column of the page alone bounds widths: no rule has one for texts or tables."""
    html = rendered()
    style = html[html.index("<style>") : html.index("@media (max-width")]
    rules = re.findall(r"([^{}]+)\{([^{}]*max-width: *[\d.]+rem[^{}]*)\}", style)
    assert {name.strip() for name, _ in rules} == {"header, main, footer", "figcaption"}
    assert re.search(r"\ntable \{[^}]*width: 100%", style)

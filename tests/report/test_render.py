"""The page: self-contained, escaped, well-formed, readable without eyes."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

from bayesrbf.fitted.stack.recipes import MEMBERS, TREES
from bayesrbf.report import findings
from bayesrbf.report.learned import MEMBER_WORDS
from bayesrbf.report.render import render
from tests.report.records import HOSTILE, synthetic

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; every tag must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(synthetic()))


def test_nothing_comes_from_outside(page: Page) -> None:
    policy = page.all("meta")[1]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    found = {tag for tag, _ in page.tags}
    assert not found & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "base"}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")]
    assert "url(" not in "".join(page.texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_change_no_element(text: str) -> None:
    """The same elements and attribute names as with a harmless text; the text is shown."""
    plain, hostile = Page(render(synthetic("x"))), Page(render(synthetic(text)))
    shape = [(tag, sorted(attributes)) for tag, attributes in plain.tags]
    assert [(tag, sorted(attributes)) for tag, attributes in hostile.tags] == shape
    shown = " ".join(" ".join(hostile.texts).split())
    assert " ".join(text.split())[:18] in shown
    assert "49" not in "".join(hostile.texts[:10])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_any_text_changes_no_element(text: str) -> None:
    plain, other = Page(render(synthetic("x"))), Page(render(synthetic(text.replace("\0", ""))))
    assert [tag for tag, _ in other.tags] == [tag for tag, _ in plain.tags]


@pytest.mark.parametrize("text", ["x", *HOSTILE])
def test_pictures_are_well_formed_and_told(text: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", render(synthetic(text)), flags=re.DOTALL)
    assert len(pictures) > 12
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        hidden = root.get("aria-hidden") == "true"
        assert hidden or (root.get("role") == "img" and root.get("aria-label"))
        assert hidden or root.find("title") is not None
        numbers = re.findall(r' (?:x|y|cx|cy|r|width|height|[xy][12])="([^"]*)"', picture)
        assert all(np.isfinite(float(value)) for value in numbers)


def test_sections_come_in_order_and_open_with_a_finding(page: Page) -> None:
    assert [s["id"] for s in page.all("section")] == [
        "trust", "read", "good", "unsure", "odd", "learned", "filled", "model", "appendix",
    ]  # fmt: skip
    kinds = [p.get("class") for p in page.all("p")]
    assert kinds.count("finding") == 8
    assert kinds.count("verdict") == 1
    assert kinds.count("how") >= 9


def sections(html: str) -> dict[str, str]:
    """Text of every section by its id."""
    parts = re.findall(r'<section id="(\w+)">(.*?)</section>', html, flags=re.DOTALL)
    return {name: " ".join(" ".join(Page(text).texts).split()) for name, text in parts}


def test_page_one_is_in_plain_words() -> None:
    """No unit of information without a word for it beside; no figure of the computation."""
    html = render(synthetic())
    first = sections(html)["trust"]
    assert "nats" in first
    for place in re.finditer(r"\bnats\b", first):
        assert "surprise" in first[max(place.start() - 160, 0) : place.start()]
    for name, text in sections(html).items():
        told = any(word in text for word in ("R-hat", "k-hat", "pareto k", "Effective draws"))
        assert told == (name == "appendix"), name
    assert "attention; the appendix says which" in first


def test_every_figure_of_page_one_is_held_out_or_says_that_it_is_not() -> None:
    html = render(synthetic())
    assert "Every figure of this section is of rows that were held out" in sections(html)["trust"]
    (truth,) = re.findall(r'<div class="truth">.*?</div>', html, flags=re.DOTALL)
    assert "not held out" in truth


def test_a_class_of_one_or_two_rows_is_named_wherever_it_is_judged() -> None:
    full = synthetic()
    rare = dict(zip(full.classes, (2, 40, 48), strict=True))
    html = render(replace(full, reading=replace(full.reading, class_counts=rare)))
    found = sections(html)
    note = "2 rows: cannot be validated"
    assert "Nothing that is said of “x0” (2 rows) can be validated" in found["trust"]
    assert note in found["read"]
    assert found["good"].count(note) == 3  # ranks, decisions, and what is mistaken for what
    assert "predicted probability of x0" not in html
    assert "cannot be validated" not in render(full)


def test_no_interval_is_empty() -> None:
    full = synthetic()
    nan = float("nan")
    without = tuple(
        replace(row, lower=nan, upper=nan, aleatoric=nan, epistemic=nan) for row in full.doubt.rows
    )
    doubt = replace(full.doubt, rows=without, epistemic=np.zeros(90))
    html = render(replace(full, doubt=doubt))
    assert "– to –" not in html
    assert "90\xa0% interval</th>" not in table_named(html, "Least sure rows")
    assert "90\xa0% interval</th>" in table_named(render(full), "Least sure rows")


def table_named(html: str, label: str) -> str:
    """A table by its name."""
    start = html.index(f'aria-label="{label}"')
    return html[start : html.index("</table>", start)]


def test_labels_beyond_chance_are_told_apart_from_those_it_explains() -> None:
    full = synthetic()
    said = "12 rows held out have a label that was given a probability below 5 %"
    expected = "a calibrated model has about 5 (2 to 8, 9 times in 10)"
    listed = sections(render(full))["odd"]
    assert said in listed
    assert expected in listed
    assert "Listed are those beyond chance" in listed
    none = render(replace(full, oddities=replace(full.oddities, labels=())))
    assert "none is listed" in sections(none)["odd"]
    assert 'aria-label="Labels that look wrong"' not in none


def test_what_was_learned_is_doubted_where_rows_held_out_show_nothing() -> None:
    full = synthetic()
    assert "it may be chance" not in sections(render(full))["learned"]
    few = replace(full, judged=replace(full.judged, rows=12))
    assert "it may be chance" in sections(render(few))["learned"]
    base = full.judged.base
    none = replace(full.judged, base=replace(base, gain=replace(base.gain, mean=0.0)))
    html = render(replace(full, judged=none))
    assert "it may be chance" in sections(html)["learned"]
    assert '<p class="verdict">No:' in html


def test_sparse_report_renders() -> None:
    """No holes, no notes, no posterior, nothing odd, no truth: sections stay, pictures go."""
    full = synthetic()
    sparse = replace(
        full,
        reading=replace(
            full.reading,
            notes=(),
            hidden=0,
            columns=tuple(replace(c, missing=0.0) for c in full.reading.columns),
        ),
        doubt=replace(full.doubt, novel=(), epistemic=np.zeros(90)),
        oddities=replace(full.oddities, cells=(), labels=(), n_cells=0),
        learned=replace(full.learned, means=()),
        imputations=replace(
            full.imputations, missing=0, examples=(), n_checked=0, hidden_truth=False, error=()
        ),
        diagnostics=replace(full.diagnostics, variables=(), findings=(), warnings=()),
        check=None,
        costs=None,
    )
    page = Page(render(sparse))
    assert len(page.all("section")) == 9
    text = " ".join(page.texts)
    assert "No cell is missing" in text
    assert "no cell is missing" in text
    assert "nan" not in text.lower().split()


def test_judgement_is_that_of_the_findings() -> None:
    """A tail above its bound is nothing to say where diagnose() finds it good."""
    full = synthetic()
    assert "1 figure needs attention: pareto k" in render(full)
    good = tuple(replace(one, good=True) for one in full.diagnostics.findings)
    well = render(replace(full, diagnostics=replace(full.diagnostics, findings=good)))
    assert "needs attention" not in well
    assert "The chains agree" in well


def test_members_of_a_point_have_no_intervals() -> None:
    full = synthetic()
    assert (
        "Of 2 members the largest weight has “a network”: 60\xa0%. Under the posterior, by which "
        "intervals are made, its weight is 50\xa0% in the mean, with 90\xa0% probability between "
        "20\xa0% and 80\xa0%"
    ) in render(full)
    nan = float("nan")
    points = tuple(replace(one, mean=nan, lower=nan, upper=nan) for one in full.learned.members)
    html = render(replace(full, learned=replace(full.learned, members=points)))
    assert "the largest weight has “a network”: 60\xa0%." in html
    assert "nan" not in html.lower()


def test_columns_that_make_rows_alike_are_named_and_drawn() -> None:
    report = synthetic("age")
    told = "Whether two rows count as alike depends most on “age” and “silent”; 1 of 2 columns"
    assert f"{told} hardly counts." in render(report)
    without = replace(report, learned=replace(report.learned, relevances=()))
    assert "What makes two rows alike" not in render(without)


def test_a_page_of_a_model_without_a_density() -> None:
    full = synthetic()
    empty = replace(full.learned, by_class=(), component_names=(), weights=(), means=())
    page = Page(
        render(
            replace(
                full,
                estimator="MedianLVQClassifier",
                doubt=replace(full.doubt, novel=()),
                oddities=replace(full.oddities, cells=(), n_cells=0),
                learned=replace(empty, members=()),
            )
        )
    )
    assert len(page.all("section")) == 9
    text = " ".join(" ".join(page.texts).split())
    assert "nearest component" not in text
    assert "members of the stack and their weights" not in text


@pytest.mark.parametrize("n_classes", [2, 12, 15])
def test_many_classes_have_colours(n_classes: int) -> None:
    html = render(synthetic(n_classes=n_classes))
    used = set(re.findall(r'class="[^"]*\b(c\d+)\b', html))
    assert used <= {f"c{i}" for i in range(8)}


def test_dark_print_and_phone_have_their_styles() -> None:
    html = render(synthetic())
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert 'name="viewport"' in html


def test_classes_of_pictures_are_styled() -> None:
    """Every class that a picture uses is in the style sheet."""
    html = render(synthetic())
    style = html[html.index("<style>") : html.index("</style>")]
    used = {
        name
        for picture in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
        for names in re.findall(r'class="([^"]*)"', picture)
        for name in names.split()
    }
    unstyled = {name for name in used if f".{name}" not in style}
    assert unstyled <= {"dash0", "free"}


def test_nothing_that_steers_a_reader_is_on_the_page() -> None:
    """Control characters, turns of the writing direction, halves of characters: in every slot."""
    steering = "\x00\x07\x1b\x9b\u202e\u2066\u200f\u2028\ud800"
    page = render(synthetic(f"a{steering}b"))
    assert not set(steering) & set(page)
    assert page.encode()


NOTE = "Columns 'a' hold text, " + "x" * 500 + ": if it tells nothing, say --ignore 'first name,b'."


def test_a_command_in_a_note_is_whole_and_every_note_is_on_the_page() -> None:
    full = synthetic()
    notes = (NOTE, *(f"Note number {i}." for i in range(20)))
    read = sections(render(replace(full, reading=replace(full.reading, notes=notes))))["read"]
    assert all(note in read for note in notes)
    assert "…" not in read[: read.index("Note number 19.")]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_page_one_answers_before_it_counts_and_counts_before_log_loss(n_classes: int) -> None:
    full = synthetic(n_classes=n_classes)
    html = render(replace(full, costs=None))
    first = sections(html)["trust"]
    told = [findings.verdict(full), "held out", "sensitivity", "predicted probability of"]
    places = [first.lower().index(one.lower()) for one in (*told, "(log loss) is")]
    assert places == sorted(places)
    if n_classes == 2:
        assert "threshold 50 %" in first
        assert "is the more probable class" in first
        for name in ("specificity", "(PPV)", "(NPV)"):
            assert name in first
    else:
        assert "A row is called what is most probable." in first
        table = table_named(html, "Classes on page one")
        assert all(name in table for name in full.classes)


def test_every_member_of_a_stack_has_words() -> None:
    assert set(MEMBER_WORDS) == {*MEMBERS, *TREES}


def test_members_are_named_by_words() -> None:
    names = {name for name in MEMBER_WORDS if "_" in name}  # others are words of the page
    full = synthetic("x")
    members = tuple(
        replace(full.learned.members[0], name=MEMBER_WORDS[name]) for name in sorted(names)
    )
    html = render(replace(full, learned=replace(full.learned, members=members)))
    for name in names:
        assert not re.search(rf"\b{name}\b", html)
        assert escape(MEMBER_WORDS[name]) in html
    assert f"Of {len(members)} members" in html
    assert "most of a say" not in html


def test_a_row_unlike_all_others_names_its_cell() -> None:
    full = synthetic()
    alone = full.doubt.novel[0]
    novel = (replace(alone, column="albumin"), replace(alone, column="age", alone=False))
    table = table_named(render(replace(full, doubt=replace(full.doubt, novel=novel))), "Novel rows")
    lines = table.split("<tr>")
    assert "albumin" in lines[2]
    assert ">this cell<" in lines[2]
    assert ">not this cell alone<" in lines[3]


def test_intervals_that_leave_every_answer_open_say_what_to_do() -> None:
    full = synthetic()
    assert "Refer the row" not in render(full)
    rows = tuple(replace(row, lower=0.002, upper=0.998) for row in full.doubt.rows)
    html = render(replace(full, doubt=replace(full.doubt, rows=rows)))
    assert "Of 1 row listed 1 has an interval wider than 0.8" in html
    assert "Refer the row" in html


def test_text_tiles_and_tables_share_their_width() -> None:
    """The column of the page alone bounds widths: no rule has one for texts or tables."""
    html = render(synthetic())
    style = html[html.index("<style>") : html.index("@media (max-width")]
    rules = re.findall(r"([^{}]+)\{([^{}]*max-width: *[\d.]+rem[^{}]*)\}", style)
    assert {name.strip() for name, _ in rules} == {"header, main, footer", "figcaption"}
    assert re.search(r"\ntable \{[^}]*width: 100%", style)

"""Every item of TRIPOD+AI has an answer or a task, and answers have the figures of the report."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bayesrbf.app.report.collect import Report
from bayesrbf.app.report.judgement import figures
from bayesrbf.app.report.options import ANYTHING, PAGE, TRIPOD, Purpose, read_options
from bayesrbf.app.report.refits import Refits
from bayesrbf.app.report.render import render
from bayesrbf.app.report.tripod import ITEMS, SECTIONS, TABLE, items, said_of
from bayesrbf.app.words import ends, figure, percent, plain
from tests.app.links import dead_links, links_of
from tests.app.report.records import synthetic
from tests.app.report.tables import mixed_table
from tests.commands import answer, refused
from tests.house import ROOT

NUMBERS = (
    "1 2 3a 3b 3c 4 5a 5b 6a 6b 6c 7 8a 8b 8c 9a 9b 9c 10 11 12a 12b 12c 12d 12e 12f 12g 13 14 15 "
    "16 17 18a 18b 18c 18d 18e 18f 19 20a 20b 20c 21 22 23a 23b 24 25 26 27a 27b 27c"
)
"""Parts of the statement, read in checklists that reproduce it."""
MEANT = Purpose("Whoever <b>decides</b>", "Adults.")
HELD_OUT = "Each of 3 centres was held out in turn."


def complete() -> Report:
    """A report of two classes on a table without a missing cell."""
    full = synthetic(n_classes=2)
    columns = tuple(replace(column, missing=0.0) for column in full.reading.columns)
    return replace(full, reading=replace(full.reading, columns=columns, unlabelled=0))


def grouped() -> Report:
    """A report of rows in groups, told what it is for, without parts, costs and refits."""
    full = synthetic(n_classes=2)
    return replace(
        full,
        judged=replace(full.judged, groups=31),
        held_out=HELD_OUT,
        focus=replace(ANYTHING, purpose=MEANT),
        parts=(),
        costs=None,
        refits=Refits(),
    )


REPORTS = {"three classes": synthetic, "complete": complete, "grouped": grouped}


def answers(report: Report) -> dict[str, str]:
    """What the report says of each item."""
    return {item.number: said_of(item, report) for item in ITEMS}


@pytest.mark.parametrize("name", REPORTS)
def test_every_item_has_an_answer_or_a_task(name: str) -> None:
    report = REPORTS[name]()
    text = items(report)
    headings = re.findall(r"^### (\w+) ", text, re.M)
    assert " ".join(headings) == NUMBERS == " ".join(item.number for item in ITEMS)
    for number_of, body in zip(headings, re.split(r"^### .*$", text, flags=re.M)[1:], strict=True):
        (item,) = (item for item in ITEMS if item.number == number_of)
        answered = f"]({PAGE}#" in body
        assert answered == bool(said_of(item, report))
        assert ("- [ ] The author writes: " in body) == bool(item.author)
        assert answered or item.author, number_of
        assert "\n" not in body.strip().split("\n\n")[0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_figures_are_those_of_the_answer_for_machines(n_classes: int) -> None:
    report = synthetic(n_classes=n_classes)
    said, told = answers(report), plain(figures(report))
    assert isinstance(told, dict)
    for name, one in told["against_rest"].items():
        assert f"“{name}” ({one['events']} rows)" in said["23a"]
        for field in ("auroc", "brier", "slope", "intercept", "observed_to_expected"):
            value, low, high = (one[field][end] for end in ("value", "lower", "upper"))
            assert f"{figure(value)} ({ends(low, high, figure)})" in said["23a"]
        for field in ("sensitivity", "specificity", "ppv", "npv"):
            value, low, high = (one[field][end] for end in ("value", "lower", "upper"))
            assert f"{percent(value)} ({ends(low, high, percent)})" in said["23a"]
    loss = told["scores"]["log loss"]
    assert (
        f"Log loss {figure(loss['value'])} ({ends(loss['lower'], loss['upper'], figure)})"
        in said["23a"]
    )
    assert f"{told['rows']} rows held out" in said["23a"]
    assert said["25"] == f"{told['verdict']} {told['evidence']}"
    assert f"Held out: {told['rows']} rows" in said["21"]
    assert all(f"“{name}”" in said["1"] for name in told["classes"])


def test_missing_cells_are_told_by_column_where_there_are_any() -> None:
    full = synthetic()
    assert f"“x real” {percent(full.reading.columns[0].missing)}" in answers(full)["11"]
    assert "“x cat”" not in answers(full)["11"]
    without = answers(complete())["11"]
    assert "By column" not in without


def test_the_learning_curve_stands_at_the_sample_size() -> None:
    full = synthetic()
    assert full.refits.learning is not None
    assert answers(full)["10"].endswith(full.refits.learning.sentence)
    assert "log loss" not in answers(grouped())["10"]


def test_groups_centres_and_purpose_are_said_where_they_are_known() -> None:
    known, unknown = answers(grouped()), answers(synthetic(n_classes=2))
    for one in ("12a", "12c", "12d", "16"):
        assert HELD_OUT in known[one]
        assert HELD_OUT not in unknown[one]
    assert "rows in 31 groups," in known["21"]
    assert known["3b"] == "Intended use: Whoever <b>decides</b>. Population: Adults."
    assert unknown["3b"] == known["23b"] == ""
    assert "“x” (5 parts)" in unknown["23b"]
    assert "Fitted again: 3 samples" in unknown["21"]
    assert "Fitted again" not in known["21"]


def test_places_are_those_of_the_page() -> None:
    report = grouped()
    page = render(report, TRIPOD)
    headings = dict(re.findall(r'<section id="(\w+)">\s*<h2><span>(\w)</span>', page))
    assert {place: f"section {headings[id]}" for place, id in SECTIONS.items() if id != "top"} == {
        place: place for place in SECTIONS if place != "top"
    }
    assert {item.page_section for item in ITEMS if item.known} == {*SECTIONS}
    assert {item.page_section for item in ITEMS if not item.known} == {""}
    answered = sum(map(bool, answers(report).values()))
    assert f"{answered} of the 52 parts of TRIPOD+AI, with boxes" in page
    assert f'<a href="{TRIPOD}">' in page
    assert "Whoever &lt;b&gt;decides&lt;/b&gt;" in page
    assert TRIPOD not in render(report)


def test_the_documentation_has_the_table_of_the_code() -> None:
    page = (ROOT / "docs" / "tripod.md").read_text("utf-8")
    (named,) = re.findall(r"^```{include} (\S+)\n```$", page, re.M)
    table = ROOT / "bayesrbf" / "app" / "report" / TABLE
    assert (ROOT / "docs" / named).resolve() == table
    rows = [line for line in table.read_text("utf-8").splitlines() if re.match(r"\| \d", line)]
    assert len(rows) == len(ITEMS)
    for item, row in zip(ITEMS, rows, strict=True):
        cells = (item.number, item.topic, item.known, item.page_section, item.author)
        assert row == f"| {' | '.join(cell or '–' for cell in cells)} |"


@cache
def hostile() -> str:
    """The items of a table whose every name is Markdown and HTML."""
    return items(synthetic("<b>*x*|[y](z)`"))


def test_names_of_a_table_are_text_in_the_file() -> None:
    assert not re.search(r"(?<!\\)<b>|(?<!\\)\*x", hostile())
    assert r"\<b\>\*x\*\|\[y\](z)\`" in hostile()


@pytest.mark.parametrize("which", REPORTS)
def test_every_link_of_page_and_items_leads_to_a_place(which: str, tmp_path: Path) -> None:
    report = REPORTS[which]()
    (tmp_path / PAGE).write_text(render(report, TRIPOD), "utf-8")
    (tmp_path / TRIPOD).write_text(items(report), "utf-8")
    assert dead_links(tmp_path) == []
    links = links_of((tmp_path / PAGE).read_text("utf-8"))
    assert [link for link in links if not link.startswith("#")] == [TRIPOD]
    assert len(links_of((tmp_path / TRIPOD).read_text("utf-8"))) > 10
    (tmp_path / PAGE).unlink()
    assert dead_links(tmp_path)


@pytest.mark.slow
def test_a_report_writes_the_items_and_never_over_those_of_an_author(tmp_path: Path) -> None:
    file, out = tmp_path / "table.csv", tmp_path / "out"
    mixed_table(45).to_csv(file, index=False)
    words = ["report", str(file), "--target", "outcome", "--out", str(out)]
    words += ["--model", "mixture", "--quick", "--tripod", "--population", MEANT.population or ""]
    told = answer(*words)
    text = (out / TRIPOD).read_text("utf-8")
    assert TRIPOD in told["files"]
    assert told["verdict"] in text
    area = told["against_rest"][told["event"]["name"]]["auroc"]
    assert f"AUROC {figure(area['value'])} ({ends(area['lower'], area['upper'], figure)})" in text
    assert TRIPOD in (out / PAGE).read_text("utf-8")
    assert dead_links(out) == []
    assert read_options(out).focus.purpose == Purpose(None, MEANT.population)
    (out / TRIPOD).write_text("mine")
    for again in (words, [word for word in words if word != "--tripod"]):
        assert "delete" in refused(*again)
        assert (out / TRIPOD).read_text() == "mine"

"""Code on the pages for readers runs in the order in which it stands, and links lead somewhere."""

from __future__ import annotations

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from bayesrbf.app.words import PROMISE

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ["index.md", "reading_tables.md", "tutorial.md"]
PAGES += [f"guides/{file.name}" for file in sorted((DOCS / "guides").glob("*.md"))]
PAGES.remove("guides/index.md")


def blocks(page: str) -> list[str]:
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.S | re.M)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    names: dict[str, object] = {}
    found = blocks(page)
    assert found
    try:
        for number, code in enumerate(found, 1):
            exec(compile(code, f"{page}, block {number}", "exec"), names)
    finally:
        plt.close("all")


def test_a_link_that_leads_nowhere_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    from internal_links import broken

    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>', "utf-8")
    links = ("other.html#here", "other.html#there", "absent.html", "https://example.org/absent")
    text = "".join(f'<a href="{link}">link</a>' for link in links)
    (tmp_path / "page.html").write_text(f'{text}<img src="absent.png">', "utf-8")
    found = list(broken(tmp_path))
    assert [sentence.split()[3].strip(",") for sentence in found] == [
        "absent.html",
        "absent.png",
        "other.html#there",
    ]


@pytest.mark.parametrize("page", ["README.md", "docs/stacks.md", "docs/guides/missing_data.md"])
def test_pages_say_what_a_probability_stands_for(page: str) -> None:
    words = " ".join((DOCS.parent / page).read_text().replace("`", "").replace("*", "").split())
    assert PROMISE.rstrip(".") in words


MATHEMATICS = (DOCS / "mathematics.md").read_text("utf-8")


def test_every_formula_names_its_code() -> None:
    """A topic is what a heading or a bold word begins; that of a formula ends with its code."""
    topics = re.split(r"^(?:#+ |\*\*)", MATHEMATICS, flags=re.M)
    assert [topic[:30] for topic in topics if "$$" in topic and "*Code:*" not in topic] == []


def test_code_that_the_mathematics_name_has_the_formula() -> None:
    found = re.findall(r"`((?:bayesrbf|models)/[\w/]+)\.py`((?:,\s`[\w.]+`)+)", MATHEMATICS)
    assert len(found) == MATHEMATICS.count(".py`")
    for file, listed in found:
        package = "bayesrbf." if file.startswith("models/") else ""
        module = import_module(package + file.replace("/", "."))
        for name in re.findall(r"[\w.]+", listed):
            assert re.search(r"math::|:math:", attrgetter(name)(module).__doc__), (file, name)


def test_links_of_the_mathematics_lead_into_the_reference() -> None:
    reference = (DOCS / "api" / "index.md").read_text("utf-8").split()
    linked = re.findall(r"\{(?:func|class|meth)\}`(bayesrbf(?:\.models)?)\.([\w.]+)`", MATHEMATICS)
    assert len(linked) > 5
    for module, name in linked:
        assert name.split(".")[0] in reference
        assert attrgetter(name)(import_module(module)).__doc__

"""Code on the pages for readers runs in the order in which it stands, and links lead somewhere."""

from __future__ import annotations

import re
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

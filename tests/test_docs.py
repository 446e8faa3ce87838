"""Blocks of code on the pages for readers run in the order in which they stand."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ["index.md", "tutorial.md", *(f"guides/{file.name}" for file in (DOCS / "guides").iterdir())]


def blocks(page: str) -> list[str]:
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.S | re.M)


@pytest.mark.parametrize("page", sorted(PAGES))
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

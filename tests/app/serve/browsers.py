"""A server as its command starts it, a browser before it, and what a reader can make out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.app.report.browsing import browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

ROOT: Final = Path(__file__).resolve().parents[3]
DONE: Final = "#parts:not(:has([aria-busy]))"
"""The answers, once they are those of the cells."""
TEXTS: Final = """() => {
  const shown = [];
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = words.nextNode()); ) {
    const one = node.parentElement, style = getComputedStyle(one), text = node.data.trim();
    if (!text || !one.checkVisibility() || one.closest(".sr, title, noscript, option")) continue;
    let back = one, ground = "";
    for (; back && !ground; back = back.parentElement) {
      const colour = getComputedStyle(back).backgroundColor;
      if (!/, 0\\)$/.test(colour)) ground = colour;
    }
    shown.push([text, one instanceof SVGElement ? style.fill : style.color, ground]);
  }
  for (const one of document.querySelectorAll("select, input:not([type=range], [type=hidden])")) {
    const style = getComputedStyle(one), blank = getComputedStyle(one, "::placeholder");
    shown.push([one.id || one.name, style.color, style.backgroundColor]);
    if (one.placeholder) shown.push([one.placeholder, blank.color, style.backgroundColor]);
  }
  return shown;
}"""
"""Texts that a page shows, with their colours and the grounds on which they stand."""


@contextmanager
def served(folder: Path, *words: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "bayesrbf", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--no-browser", *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found is not None, "the server did not start"
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without any profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Visit:
    """A page, what it said in the console and what it asked for."""

    context: BrowserContext
    page: Page
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def answered(self) -> Page:
        """The page, when its answers are those of the cells."""
        self.page.wait_for_selector(DONE, state="attached", timeout=120_000)
        return self.page


@contextmanager
def visiting(opened: Browser, address: str, **settings: Any) -> Iterator[Visit]:
    """A visit with nothing of earlier ones."""
    context = opened.new_context(**settings)
    context.set_default_timeout(120_000)  # where other tests take all cores
    page = context.new_page()
    visit = Visit(context, page)
    page.on("console", lambda message: visit.console.append(message.text))
    page.on("pageerror", lambda error: visit.console.append(str(error)))
    page.on("request", lambda request: visit.asked.append(request.url))
    try:
        page.goto(address)
        yield visit
    finally:
        context.close()


def contrast(text: str, ground: str) -> float:
    """Ratio of the luminances of two colours, as WCAG 2 defines it, from 1 to 21.

    >>> contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)"), contrast("rgb(9, 9, 9)", "rgb(9, 9, 9)")
    (21.0, 1.0)
    """
    dark, light = sorted((_luminance(text), _luminance(ground)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of a computed colour."""
    found = re.fullmatch(r"rgb\((\d+), (\d+), (\d+)\)", colour)
    assert found is not None, f"{colour} is no opaque colour"
    shares = [int(part) / 255 for part in found.groups()]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

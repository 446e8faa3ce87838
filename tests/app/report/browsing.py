"""What becomes of a page: its elements as a parser has them, and as headless Chromium does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET: Final = (
    "--headless",
    "--no-sandbox",  # in a container, where there is none to have
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever is asked for, nothing leaves the machine
    "--enable-logging=stderr",
    "--virtual-time-budget=2000",
    "--timeout=30000",
)

OWN: Final = re.compile(r"https?://([\w-]+\.)*(google|googleapis|gvt1)\.com/")
"""What the browser itself asks for when it starts."""

VOID: Final = {"meta", "link", "br", "img", "input", "hr"}

Shape = list[tuple[str, tuple[str, ...]]]
"""Elements and the names of their attributes, in order."""


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

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", {}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def shape(self) -> Shape:
        """Elements and the names of their attributes."""
        return [(tag, tuple(sorted(attributes))) for tag, attributes in self.tags]

    @property
    def text(self) -> str:
        """All texts on one line."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every element of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


@dataclass(frozen=True)
class Opened:
    """What became of a page."""

    dom: str  # Its elements, as the browser has them in the end.
    asked: tuple[str, ...]  # Addresses beside the page's own.
    console: tuple[str, ...]  # Lines of its console.


def browser() -> str | None:
    """The path of Chromium, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def opened(page: Path, folder: Path) -> Opened:
    """Open a page with nothing of an earlier one."""
    program, log = browser(), folder / "net.json"
    assert program is not None
    words = [*QUIET, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--dump-dom"]
    done = subprocess.run(
        [program, *words, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Opened(done.stdout, tuple(sorted(_addresses(log) - {page.as_uri()})), tuple(said))


def _addresses(log: Path) -> set[str]:
    """Addresses in what the browser says of its network."""
    text = log.read_text()
    if not text.rstrip().endswith("}"):  # ended in haste, without its last bracket
        text = text.rstrip().rstrip(",") + "]}"
    events = json.loads(text)["events"]
    told = (event.get("params", {}).get("url", "") for event in events)
    asked = {url for url in told if re.match(r"(https?|wss?|ftp|file):", url)}
    return {url for url in asked if not OWN.match(url)}

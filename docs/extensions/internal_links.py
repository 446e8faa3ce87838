"""Every link within the built site is followed: a page, file or heading that is not there warns.

Sphinx itself warns of references that it cannot resolve. This also sees links that were written as
HTML, pictures, scripts, and files that a page loads. Links to other sites need a network; for them
there is ``sphinx-build -b linkcheck docs docs/_build/links``.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


class Page(HTMLParser):
    """Links of a page, and the places in it that links may name."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places = {"", "top"}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links and the names of an element."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            if name in ("id", "name") and value:
                self.places.add(value)


def broken(folder: Path) -> Iterator[str]:
    """Sentences about links of the pages in a folder that lead nowhere, or to another site's code.

    Pages may link to other sites. What a page loads must lie in the folder, or it needs a network.
    """
    root = folder.resolve()
    pages = {
        file: Page(file) for file in sorted(root.rglob("*.html")) if "_static" not in file.parts
    }
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            message = f"{file.relative_to(root)} links to {link}"
            if not target.exists():
                yield f"{message}, which is not there"
            elif target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{message}, and that page has no such place"


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of every broken link of a site that was built."""
    if error is None and app.builder.name == "html":
        for sentence in broken(Path(app.outdir)):
            logger.warning(sentence, type="internal_links")


def setup(app: Sphinx) -> dict[str, bool]:
    """Follow the links when everything is written."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

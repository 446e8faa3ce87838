"""Links of pages and of Markdown in a folder, and where they lead."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"""(?:href|src)=["']([^"']*)["']|(?<!\\)\]\(([^)\s]*)\)""")


def links_of(text: str) -> list[str]:
    """Targets of the links of a page or of a file of Markdown."""
    return [html or markdown for html, markdown in LINK.findall(text)]


def dead_links(folder: Path) -> list[str]:
    """Links of the files of a folder that lead to no file there, or to no place in it."""
    dead = []
    for file in sorted([*folder.glob("*.html"), *folder.glob("*.md")]):
        for link in links_of(file.read_text("utf-8")):
            name, _, place = unquote(link).partition("#")
            target = folder / name if name else file
            if not target.is_file() or (place and f'id="{place}"' not in target.read_text("utf-8")):
                dead.append(f"{file.name}: {link}")
    return dead

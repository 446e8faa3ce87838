"""What was tried to break the package, how many, what held: ``make trust`` writes docs/trust.md.

``python -m tests.trust --only artefact`` runs one section anew and leaves the others as they were;
``--short`` takes the form of continuous integration and writes nothing.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Final

from bayesrbf.version import __version__
from tests.trust import (
    artefact,
    calibration,
    command_line,
    degenerate,
    load,
    oracles,
    reproducibility,
)
from tests.trust.sections import ROOT, Section, written

PAGE: Final = ROOT / "docs" / "trust.md"
SECTIONS: Final[tuple[Section, ...]] = (
    *artefact.SECTIONS,
    command_line.SECTION,
    *load.SECTIONS,
    *calibration.SECTIONS,
    *oracles.SECTIONS,
    *degenerate.SECTIONS,
    reproducibility.SECTION,
)
"""In the order of the page; each is from a module of its own."""

HEAD: Final = f"""\
# What was tried to break it

Written by `make trust` with version {__version__}: each line is a count of a run.
`SECURITY.md` says what is guarded and what is not.
"""


def earlier() -> dict[str, str]:
    """Sections of the page as it is, by title."""
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:] if PAGE.exists() else []
    return {part.partition("\n")[0]: f"## {part.rstrip()}\n" for part in parts}


def put(title: str, text: str) -> None:
    """Write one section into the page; the others stay as they are by now."""
    held = earlier() | {title: text}
    parts = [held[section.title] for section in SECTIONS if section.title in held]
    PAGE.write_text("\n".join([HEAD, *parts]))


def main() -> int:
    """Run sections, write the page, and return 1 where something got through."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--only", choices=names, action="append", help="run this section")
    parser.add_argument("--short", action="store_true", help="few of each, and no page")
    asked = parser.parse_args()
    wrong = 0
    for section in SECTIONS:
        if section.name in (asked.only or names):
            print(f"## {section.title}", flush=True)
            text, through = written(section, not asked.short)
            wrong += through
            if not asked.short:
                put(section.title, text)
    print(f"{wrong} got through")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""What was tried to break the package, how many, what held: ``make trust`` fills docs/trust.md.

``python -m tests.trust --only artefact`` runs one section. What was kept at the same commit is not
run again. ``BAYESRBF_SHARE=0.1`` takes a tenth of the repetitions, and the page says how many of
how many. ``--short`` takes the form of continuous integration and keeps nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from tests import measured
from tests.trust import (
    artefact,
    calibration,
    command_line,
    degenerate,
    load,
    oracles,
    reproducibility,
    serving,
)
from tests.trust.sections import Section

SECTIONS: Final[dict[str, Section]] = {
    section.name: section
    for section in (
        *artefact.SECTIONS,
        command_line.SECTION,
        serving.SECTION,
        *load.SECTIONS,
        *calibration.SECTIONS,
        *oracles.SECTIONS,
        *degenerate.SECTIONS,
        reproducibility.SECTION,
    )
}
"""In the order of the page."""


def main() -> int:
    """Run sections, bring the page up to date, and return 1 where something got through."""
    parser = argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="run this, in this order")
    parser.add_argument("--short", action="store_true", help="few of each, and nothing is kept")
    asked = parser.parse_args()
    share, wrong = float(os.environ.get("BAYESRBF_SHARE", "1")), 0
    for name in asked.only or SECTIONS:
        section = SECTIONS[name]
        print(f"## {name}", flush=True)
        wrong += section.tried() if asked.short else section.run(share)
    if not asked.short:
        measured.main()
    print(f"{wrong} got through")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

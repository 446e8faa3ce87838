"""Draw the pictures of the README: `make pictures`, or `python -m tests.pictures DIR`.

``DIR`` is the folder of the demo, whose report and served page are shown.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image

from tests.app.serve.browsers import ROOT, Visit, chromium, served, visiting

VIEW: Final = {"width": 1185, "height": 1330}
COLOURS: Final = 128
"""Colours of a picture, which keep its file small."""
COSTS: Final = ("--cost", "malignant=5", "--refer", "0.3")
CASE: Final = "?row=82"
"""The case that is shown: a row of the training table with missing cells."""


def draw(folder: Path) -> None:
    """Show the top of the report, and of a case at the desk, in a light Chromium."""
    look = {"viewport": VIEW, "color_scheme": "light"}
    with chromium() as opened:
        with visiting(opened, (folder / "report.html").resolve().as_uri(), **look) as visit:
            shoot(visit, "report.png")
        with (
            served(folder, *COSTS) as address,
            visiting(opened, f"{address}{CASE}", **look) as visit,
        ):
            visit.answered()
            shoot(visit, "serve.png")


def shoot(visit: Visit, name: str) -> None:
    """What is in view, as a file of the documentation."""
    with Image.open(BytesIO(visit.page.screenshot())) as seen:
        seen.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
            ROOT / "docs" / name, optimize=True
        )


if __name__ == "__main__":
    draw(Path(sys.argv[1]))

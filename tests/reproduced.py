"""Tables of published experiments as files: ``python -m tests.reproduced roth --images 10000``.

Runs ``bayesrbf reproduce`` with the same words; what that prints is kept for the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from unittest.mock import patch

from bayesrbf.app.reproduce import app
from reproduce.cells import print_table
from reproduce.published import NONE, Published, beside
from tests.measured import write

MODULES = {
    "caetano": ("caetano",),
    "ferreira": ("ferreira",),
    "nebel": ("nebel",),
    "roth": ("roth",),
    "sdgm": ("hayashi", "sdgm_synthetic"),
    "tabular": ("tabular",),
}


def main(words: Sequence[str]) -> None:
    """Run the command, and keep each of its tables by its place."""
    printed: list[str] = []
    asked = re.sub(r" --(out|data) \S+", "", " ".join(["bayesrbf reproduce", *words]))

    def keep(
        title: str,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        console: object = None,
        published: Published = NONE,
    ) -> None:
        header, rows = beside(header, rows, published)
        columns = list(zip(header, zip(*rows, strict=True), strict=True))
        printed.append(title)
        name = re.sub(r"\W+", "_", asked.removeprefix("bayesrbf reproduce "))
        write(f"reproduce/{name}_{len(printed)}", columns, asked)
        print_table(title, header, rows)

    patches = [patch(f"reproduce.{one}.print_table", keep) for one in MODULES[words[0]]]
    for one in patches:
        one.start()
    app(words)


if __name__ == "__main__":
    main(sys.argv[1:])

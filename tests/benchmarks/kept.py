"""Results of long benchmarks: printed as they come, and kept where a run may stop.

With ``BAYESRBF_RESULTS``, the name of a CSV file, each result is added to it as it comes, and a run
goes on where one stopped. A file is for one kind of benchmark.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

RESULTS = os.environ.get("BAYESRBF_RESULTS")

Row = dict[str, object]


def kept(key: Row, make: Callable[[], Row]) -> Row:
    """A result under its key: that of a run that stopped, or a new one, which is printed."""
    row = known(tuple(key)).get(tuple(key.values()))
    if row is None:
        row = {**key, **make()}
        keep(row)
        told = (f"{one:.3f}" if isinstance(one, float) else str(one) for one in row.values())
        print("| " + " | ".join(told) + " |", flush=True)
    return row


def known(names: tuple[str, ...]) -> dict[tuple[object, ...], Row]:
    """Results of a run that stopped, by the values of their keys."""
    if not RESULTS or not Path(RESULTS).is_file():
        return {}
    rows = pd.read_csv(RESULTS).to_dict("records")
    return {tuple(row[name] for name in names): row for row in rows}


def keep(row: Row) -> None:
    """Write one result down."""
    if RESULTS:
        path = Path(RESULTS)
        pd.DataFrame([row]).to_csv(path, mode="a", header=not path.is_file(), index=False)

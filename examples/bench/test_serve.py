"""``bayesrbf serve`` under load: answers over http beside bare calls, and memory.

A table of 300 rows and 30 columns, fitted by ``bayesrbf fit`` without draws and with them. Requests
at a fixed rate count from the moment at which they were due, so that one that had to wait is slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf.app.report.options import MODEL
from bayesrbf.app.serve.served import CSV, JSON, PARQUET
from bench.figures import show
from bench.tables import mixed
from tests.app.serve.mutations import FORM, file_of
from tests.app.serve.server import Server
from tests.measured import ROOT

ROWS, REALS, CATEGORIES = 300, 18, 12
RATE: Final = 10
"""Requests a second."""
LOAD, TURNS, MANY = 300, 15, 2_000
"""Requests under load, repetitions of others, and requests over which memory is watched."""
FLAT: Final = 10.0
"""MiB by which memory that is flat may grow."""

MS: Final = ("p50, ms", "p99, ms", "bare call, ms")

Line = dict[str, object]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Model folders without draws and with those that the command takes by itself."""
    folder = tmp_path_factory.mktemp("serve")
    table().iloc[:ROWS].to_csv(folder / "table.csv", index=False)
    for inference in ("map", "auto"):
        words = [folder / "table.csv", "--target", "target", "--out", folder / inference]
        command = [sys.executable, "-W", "ignore", "-m", "bayesrbf", "fit", *map(str, words)]
        subprocess.run([*command, "--inference", inference], cwd=ROOT, check=True)
    return {"no draws": folder / "map", "draws": folder / "auto"}


def table() -> pd.DataFrame:
    """Rows to learn from, and a thousand new ones."""
    return mixed(ROWS + 1000, REALS, CATEGORIES, 1)


def new_rows() -> pd.DataFrame:
    """Rows that no fit has seen."""
    return table().iloc[ROWS:].drop(columns="target").reset_index(drop=True)


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON has them."""
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def ask(server: Server, path: str, body: bytes, media_type: str) -> None:
    """One request by a connection of its own; whatever is no answer ends the benchmark."""
    answer = server.ask("POST", path, body, media_type)
    assert answer.status == 200, answer.content


def in_turn(works: dict[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Milliseconds of some works, run in turn, so that they meet the same machine."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(turns):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            taken[name].append(1000 * (time.perf_counter() - start))
    return taken


def at_a_rate(server: Server, path: str, bodies: list[bytes], media_type: str) -> list[float]:
    """Milliseconds from the moment at which each request was due to its answer."""
    begin = time.perf_counter() + 0.2

    def one(number: int) -> float:
        due = begin + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        ask(server, path, bodies[number % len(bodies)], media_type)
        return 1000 * (time.perf_counter() - due)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(LOAD)))


def line_of(what: str, taken: list[float], bare: list[float]) -> Line:
    """A line of the table."""
    return {
        "request": what,
        "times": len(taken),
        "p50, ms": np.quantile(taken, 0.5),
        "p99, ms": np.quantile(taken, 0.99),
        "bare call, ms": np.quantile(bare, 0.5),
        "of the bare call": np.quantile(taken, 0.5) / np.quantile(bare, 0.5),
    }


def requests(folder: Path) -> Iterator[Line]:
    """Probabilities of one row and of many, over http and by a bare ``predict_proba``."""
    estimator: Any = bayesrbf.load(folder / MODEL)
    rows = new_rows()
    single = (rows.iloc[[place]] for place in range(len(rows)))
    bodies = [json.dumps(record).encode() for record in records(rows)]
    many = {JSON: json.dumps(records(rows)).encode()}
    many |= {kind: file_of(rows, kind) for kind in (CSV, PARQUET)}
    with Server(folder, "--timeout", "120") as server:
        for _ in range(20):  # what is prepared once
            ask(server, "/api/predict", bodies[0], JSON)
        taken = at_a_rate(server, "/api/predict", bodies, JSON)
        bare = in_turn({"bare": lambda: estimator.predict_proba(next(single))}, LOAD)["bare"]
        yield line_of(f"one row, {RATE} a second, JSON", taken, bare)
        works: dict[str, Callable[[], object]] = {
            kind: partial(ask, server, "/api/predict", body, kind) for kind, body in many.items()
        }
        times = in_turn(works | {"bare": lambda: estimator.predict_proba(rows)}, TURNS)
        for kind in works:
            yield line_of(f"1,000 rows, {kind}", times[kind], times["bare"])


def page(folder: Path) -> Line:
    """What a typed cell waits for, beside a bare ``uncertainty``."""
    estimator: Any = bayesrbf.load(folder / MODEL)
    rows = new_rows()
    single = (rows.iloc[[place]] for place in range(len(rows)))
    forms = map(form_of, records(rows))
    with Server(folder) as server:
        works: dict[str, Callable[[], object]] = {
            "page": lambda: ask(server, "/parts/answer", next(forms), FORM),
            "bare": lambda: estimator.uncertainty(next(single)),
        }
        times = in_turn(works, 4 * TURNS)
    return line_of("answer of the page, with draws", times["page"], times["bare"])


def form_of(record: dict[str, Any]) -> bytes:
    """A row as the page sends it."""
    cells = {
        f"cell-{place}": cell for place, cell in enumerate(record.values()) if cell is not None
    }
    return urlencode(cells).encode()


def test_serve_speed(folders: dict[str, Path]) -> None:
    found = [*requests(folders["no draws"]), page(folders["draws"])]
    show("serve/speed", found, digits={"of the bare call": 2} | dict.fromkeys(MS, 1))


def test_serve_memory(folders: dict[str, Path]) -> None:
    """Memory after a fifth of the requests, after three fifths and at the end."""
    bodies = [json.dumps(record).encode() for record in records(new_rows())[:100]]
    found = []
    with Server(folders["no draws"]) as server:
        held: dict[str, float] = {}
        for number in range(MANY + 1):
            if number in (MANY // 5, MANY * 3 // 5, MANY):
                held[f"MiB after {number:,}"] = server.memory()
            ask(server, "/api/predict", bodies[number % 100], JSON)
        first, middle, last = held.values()
        grown = max(0.0, 2 * min(middle - first, last - middle))
        found.append({"requests": MANY, **held, "grown, MiB": grown})
    show("serve/memory", found, digits=1)
    assert grown < FLAT
